// SPDX-License-Identifier: Apache-2.0
/* tsv.h - rows `bench<TAB>case<TAB>allocator<TAB>metric<TAB>value` in files. */
#ifndef EBB_BENCH_TSV_H
#define EBB_BENCH_TSV_H

#include "bench.h"

/* Writes all rows. 0, or -1 after a message on standard error. */
int tsv_write(const struct bench *bench, const char *path);

/* Takes in the rows of another benchmark. 0, or -1 after a message with the line's number. */
int tsv_import(struct bench *bench, const char *path);

#endif
