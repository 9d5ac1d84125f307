// SPDX-License-Identifier: Apache-2.0
//
// bytes.h - the bytes of a file, plain or gzip: inside bench/trace only.

#ifndef EBB_BENCH_TRACE_BYTES_H
#define EBB_BENCH_TRACE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "trace.h"

struct trace_bytes {
    int file;
    bool begun, is_gzip;
    bool in_member; // of a gzip file: one has begun and not ended
    z_stream zlib;  // of a plain file: only next_in and avail_in, what was read
    unsigned char input[32 << 10];
};

// Opens `path`, reads nothing yet. False, with the reason in *error; else trace_bytes_close() ends.
bool trace_bytes_open(struct trace_bytes *bytes, const char *path, struct trace_error *error);
void trace_bytes_close(struct trace_bytes *bytes);

// Puts up to `room` (above 0) bytes `to` memory and their number into *got: 0 at the end of the
// file, and not before. False, with the reason in *error, which is said to be in `line`.
bool trace_bytes_read(struct trace_bytes *bytes, char *to, unsigned room, size_t *got,
                      uint64_t line, struct trace_error *error);

#endif
