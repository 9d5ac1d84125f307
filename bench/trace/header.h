// SPDX-License-Identifier: Apache-2.0
//
// header.h - what the '#' lines say: inside bench/trace only.

#ifndef EBB_BENCH_TRACE_HEADER_H
#define EBB_BENCH_TRACE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace.h"

struct trace_header {
    char name[TRACE_WORD_MAX + 1];
    enum trace_view view;
    uint64_t warmup, untouched[2];
    struct trace_totals claimed; // claims, not facts; only trace_header_check() looks at them
    uint32_t seen;               // bit i: row i of the table of header lines was there
    char *notes;                 // room for TRACE_NOTES_MAX bytes and a NUL; `noted` are used
    size_t noted;
};

// Takes in one line that begins with '#'. Lines that the table does not know are
// notes.
bool trace_header_line(struct trace_header *header, const char *text, uint64_t line,
                       struct trace_error *error);

// Compares the claims with what was counted.
bool trace_header_check(const struct trace_header *header, const struct trace_totals *counted,
                        struct trace_error *error);

#endif
