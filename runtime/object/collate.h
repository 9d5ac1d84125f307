// SPDX-License-Identifier: Apache-2.0
/*
 * collate.h - what the parts of collating share.
 *
 *     collate.c          trees, side by side: checked, then built
 *     collate_leaf.c     which way a leaf goes, and whether it can
 *     collate_dense.c    stacked and padded
 *     collate_rows.c     ragged and packed
 *     collate_plain.c    numbers, strings, bytes, none
 *
 * A *column* is the object at one place of all samples: [count] pointers, the first sample's
 * first. There is one for each level of the trees.
 */
#ifndef EBB_OBJECT_COLLATE_H
#define EBB_OBJECT_COLLATE_H

#include "object/batch.h"
#include "object/sample.h"

#include <ebb/collate.h>

/* One step down in the first sample. */
struct collate_step {
    const struct ebb_node *node;
    size_t place;
};

struct collation {
    ebb_region region;
    size_t count; /* of samples */
    const struct ebb_collate_options *options;
    void **columns;              /* [levels][count] */
    struct ebb_tensor **tensors; /* [count] those of the column that we are at */
    void **targets;              /* [rule_count] what their paths lead to */
    struct collate_step path[EBB_DEPTH_MAX + 1];
    unsigned depth;
    struct ebb_collated done;
};

#define COLLATE_PATH_BYTES 100

/* "target/boxes" of where the collation is; returns `text`, which has COLLATE_PATH_BYTES. */
const char *collate_path(const struct collation *collation, char *text);

/* ---- leaves: check gives 0 or the error, build an object in the region or NULL ---- */

int collate_check_leaf(struct collation *collation, void *const *column);
void *collate_build_leaf(struct collation *collation, void *const *column);

/* The tensors of a column of tensors or samples are in collation->tensors. */
int collate_check_dense(const struct collation *collation, const struct ebb_collate_rule *rule);
struct ebb_tensor *collate_build_dense(struct collation *collation,
                                       const struct ebb_collate_rule *rule);

int collate_check_rows(const struct collation *collation);
void *collate_build_rows(struct collation *collation, const struct ebb_collate_rule *rule);
struct ebb_sample *collate_build_ragged(struct collation *collation, void *const *column);

/* EBB_E_SHAPE: sample `at` is of another shape than the first. */
int collate_misshapen(const struct collation *collation, size_t at);

/* Values; and those of them that become a list. */
bool collate_is_plain(const struct ebb_object *object);
bool collate_becomes_list(const struct ebb_object *object);
void *collate_build_plain(struct collation *collation, void *const *column);

#endif
