// SPDX-License-Identifier: Apache-2.0
/*
 * trees.h - random trees of objects. Structure, kinds, dtypes and shapes follow from one seed,
 * values from another: trees of one structure are what a loader collates.
 */
#ifndef KIT_TREES_H
#define KIT_TREES_H

#include "kit/test.h"

/* A sequence of pseudo-random numbers. */
struct dice {
    uint64_t state;
};

uint64_t dice_roll(struct dice *dice, uint64_t sides);

/* Which leaves a tree may have. */
enum tree_style {
    TREE_ANY = 0,        /* all */
    TREE_COLLATABLE = 1, /* no types that collate does not know */
};

/* A tree in the region; NULL if something could not be made (limits, acquisitions). */
void *tree_make(ebb_region region, uint64_t structure, uint64_t values, enum tree_style style);

/* The type of leaf that ebb has never heard of. */
struct ebb_type *tree_own_type(void);

#endif
