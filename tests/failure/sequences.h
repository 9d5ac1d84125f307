// SPDX-License-Identifier: Apache-2.0
/*
 * sequences.h - acts that make objects of several blocks, large and small: all of them or none.
 * (Every single block is refused by limits, in tests/unit/sequences.c.)
 */
#ifndef FAILURE_SEQUENCES_H
#define FAILURE_SEQUENCES_H

#include "failure/scene.h"

/* A list and a packed sequence in the leaf, and an empty region for results. */
void sequences_prepare(struct scene *scene);

int pack_a_list(struct scene *scene);
int pad_what_is_packed(struct scene *scene);
int unpack_what_is_packed(struct scene *scene);
int join_what_is_packed(struct scene *scene);

#endif
