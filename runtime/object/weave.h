// SPDX-License-Identifier: Apache-2.0
/* weave.h - blocks of strands and tiles of steps: what the loops of weave.c work on. */
#ifndef EBB_OBJECT_WEAVE_H
#define EBB_OBJECT_WEAVE_H

#include "object/strand.h"

enum { STRANDS = 64, STEPS = 8 };

/* Some strands. */
struct block {
    int64_t count;
    bool sorted; /* none is longer than the one before */
    bool plain; /* all rows are row-major */
    bool dense; /* and follow each other without gaps */
    struct strand strands[STRANDS];
    int64_t ranks[STRANDS]; /* of the sequences, if their other form is packed */
};

/* A few steps of a block and, of packed rows, where those of its first strand are. */
struct tile {
    int64_t first, steps;
    int64_t rank_step;
    const int64_t *strides; /* of packed rows */
    char *lines[STEPS];
};

static inline int64_t rows_in_tile(const struct strand *strand, const struct tile *tile) {
    int64_t left = strand->length - tile->first;
    return left < tile->steps ? left : tile->steps;
}

/* Where a block lies in a padded tensor, and how long all its sequences are there. */
struct frame {
    bool left; /* padding is before the first step */
    int64_t padded_length;
    char *origin; /* first step of the block's first sequence */
    int64_t batch_step, time_step;
};

/* The row of a strand that is at a step of the frame; below 0 or too large: padding. */
static inline int64_t frame_row(const struct frame *frame, const struct strand *strand,
                                int64_t step) {
    return frame->left ? step - frame->padded_length + strand->length : step;
}

static inline char *frame_place(const struct frame *frame, int64_t at, int64_t step) {
    return frame->origin + at * frame->batch_step + step * frame->time_step;
}

#endif
