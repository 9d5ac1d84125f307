// SPDX-License-Identifier: Apache-2.0
/*
 * stream.h - a recording in memory: blocks by number instead of address, marks that balance.
 *
 * Made of a spool by stream_decode(), written as a trace by render.c.
 */
#ifndef EBB_BENCH_TOOL_STREAM_H
#define EBB_BENCH_TOOL_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool_read.h"

#ifndef STREAM_MOVES_MAX
#define STREAM_MOVES_MAX (1 << 25) /* a test sets it lower */
#endif

enum { STREAM_DEPTH_MAX = 16, STREAM_NO_BLOCK = -1 };

struct block {
    uint64_t size;
    int32_t from; /* the block that realloc() made it of, or STREAM_NO_BLOCK */
    uint16_t site;
    uint8_t align_log2;
    uint8_t op; /* enum spool_op of its birth: MALLOC, CALLOC, ALIGNED, REALLOC_TO */
};

enum move_kind { MOVE_BIRTH, MOVE_END, MOVE_BEGIN_REGION, MOVE_END_REGION, MOVE_NOTHING };

struct move {
    uint32_t block; /* BEGIN_REGION: the place of its argument */
    uint16_t lane;
    uint8_t move; /* enum move_kind */
    uint8_t kind; /* of regions */
};

struct stream {
    struct block *block;
    size_t block_count, block_room;
    struct move *move;
    size_t move_count, move_room;
    uint64_t *argument; /* of regions */
    size_t argument_count, argument_room;
    uint64_t unknown_frees; /* of blocks that were never seen to be born */
    uint64_t lost_frees;    /* an address came again without one */
    uint64_t too_deep;      /* regions below STREAM_DEPTH_MAX others */
    uint64_t calls;         /* of the named function, or marks */
    bool cut;               /* there were more than STREAM_MOVES_MAX moves */
    bool marked;            /* the program has marks of its own; else all regions are of ticks */
};

/*
 * Decodes a spool. `ticks` are sequence numbers at which a period of time ended (--every); they
 * count only where the program has no marks of its own. False after a message: no memory.
 */
bool stream_decode(struct stream *stream, const struct spool_file *spool, const uint32_t *ticks,
                   size_t tick_count);

void stream_free(struct stream *stream);

#endif
