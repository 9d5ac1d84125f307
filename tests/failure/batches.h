// SPDX-License-Identifier: Apache-2.0
/*
 * batches.h - acts that collate: many blocks of all sizes, all of them or none. (Every single
 * block of samples, nodes and batches is refused by limits, in tests/bad_input.)
 */
#ifndef FAILURE_BATCHES_H
#define FAILURE_BATCHES_H

#include "failure/scene.h"

/* Samples in the leaf, and an empty region for the batch. */
void batches_prepare(struct scene *scene);

int collate_trees(struct scene *scene);
int collate_boxes(struct scene *scene);

#endif
