// SPDX-License-Identifier: Apache-2.0
//
// fields.h - the fields of one line: inside bench/trace only.

#ifndef EBB_BENCH_TRACE_FIELDS_H
#define EBB_BENCH_TRACE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

struct trace_fields {
    uint64_t number[2];
    char word[TRACE_WORD_MAX + 1];
    char origin;
};

// Takes `text` apart, which must consist of exactly the fields of `pattern`, each after one space:
//     n  a decimal number, into number[0], then number[1]
//     w  a word of 1 to TRACE_WORD_MAX printable characters
//     o  one letter of the format's table of origins
// False, with TRACE_ERROR_FIELDS or TRACE_ERROR_NUMBER_TOO_LARGE in *error, for anything else.
bool trace_fields_scan(struct trace_fields *fields, const char *text, const char *pattern,
                       uint64_t line, struct trace_error *error);

#endif
