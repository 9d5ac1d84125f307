// SPDX-License-Identifier: Apache-2.0
/* spool_read.h - a spool on disk, checked and in the order in which things happened. */
#ifndef EBB_BENCH_TOOL_SPOOL_READ_H
#define EBB_BENCH_TOOL_SPOOL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool.h"

struct spool_file {
    const struct spool_head *head;
    const struct spool_record *records; /* of all chunks */
    size_t bytes;                       /* of the mapping */
    size_t chunk_count;
    uint32_t *order; /* by sequence number: place of the record + 1, 0 where there is none */
    size_t order_count;
};

/* Opens and checks the spool at `path`. False after a message. */
bool spool_file_open(struct spool_file *spool, const char *path);

void spool_file_close(struct spool_file *spool);

/* What a spool says of itself, without the rest of it. */
struct spool_glance {
    uint64_t records; /* roughly; 0: it is no spool, or none yet */
    uint32_t space;   /* in which its process has its number; 0: not known */
    bool unlocked;    /* it was locked, and nobody has it mapped any more */
};

/* False with errno: it cannot be read. */
bool spool_file_glance(const char *path, struct spool_glance *glance);

/* The lane of a record. */
static inline uint32_t spool_file_lane(const struct spool_file *spool, size_t place) {
    const struct spool_record *head = &spool->records[place / SPOOL_CHUNK_RECORDS *
                                                      SPOOL_CHUNK_RECORDS];
    return (uint32_t)head->when;
}

#endif
