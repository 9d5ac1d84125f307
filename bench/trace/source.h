// SPDX-License-Identifier: Apache-2.0
//
// source.h - the lines of a file, plain or gzip. For the readers under bench, not for their users.

#ifndef EBB_BENCH_TRACE_SOURCE_H
#define EBB_BENCH_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "trace.h"

enum { TRACE_SOURCE_BUFFER = 64 << 10 };

//     buffer   0 .............. begin ................ end ............ TRACE_SOURCE_BUFFER
//              lines handed out | read, not handed out | free
struct trace_source {
    struct trace_bytes bytes;
    uint64_t line; // number of the line handed out last
    bool may_end_open; // the last line needs no newline; not so unless it is set
    size_t begin, end;
    size_t last; // where the line handed out last begins
    char buffer[TRACE_SOURCE_BUFFER];
};

// Opens `path`; false, with the reason in *error, where that fails. A source that was opened ends
// with trace_source_close().
bool trace_source_open(struct trace_source *source, const char *path, struct trace_error *error);
void trace_source_close(struct trace_source *source);

// The next line, ended by a NUL instead of its newline, valid until the next call. NULL at the end
// of the file (error->code is TRACE_OK) and on errors (it is not).
const char *trace_source_next(struct trace_source *source, struct trace_error *error);

// The line that was handed out last, and is not valid any more, comes next once more.
void trace_source_again(struct trace_source *source);

// As trace_read(), of a source that is open and stays so, and whose next line is its first.
struct ebb_trace *trace_read_source(struct trace_source *source, struct trace_error *error);

#endif
