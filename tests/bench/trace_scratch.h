// SPDX-License-Identifier: Apache-2.0
//
// trace_scratch.h - a scratch file, and what trace_read() is expected to make of it.
//
// For test_trace.c and test_trace_refusals.c. Each program has one scratch file, made and removed
// by the group fixtures below; writing replaces what it held.

#ifndef EBB_TESTS_BENCH_TRACE_SCRATCH_H
#define EBB_TESTS_BENCH_TRACE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "trace.h"

#define MAGIC "#ebb-trace 1\n"

int make_scratch(void **state);
int remove_scratch(void **state);

const char *scratch_path(void);
void write_bytes(const void *bytes, size_t count);
size_t write_gzip(const char *text); // bytes of the file

// Reads the scratch file and fails the test unless it is refused with this code, at this line, with
// `part` in the message.
void expect_refused(enum trace_error_code code, uint64_t line, const char *part);

// Reads the scratch file and fails the test unless it is a trace. The caller frees it.
struct ebb_trace *expect_read(void);

// The same for a text.
void refuse_text(const char *text, enum trace_error_code code, uint64_t line, const char *part);
struct ebb_trace *read_text(const char *text);
void accept_text(const char *text);

// Text built line by line. new_text() begins with the magic line; there is only one at a time.
struct text {
    size_t used;
    char bytes[1 << 20];
};

struct text *new_text(void);
__attribute__((format(printf, 2, 3))) void add(struct text *text, const char *format, ...);

#endif
