// SPDX-License-Identifier: Apache-2.0
/* promote.h - blocks move to a region above: by copy, or relinked (see promote.c). */
#ifndef EBB_REGION_PROMOTE_H
#define EBB_REGION_PROMOTE_H

#include "region/region.h"

/* Adds `more` to `cost`, which may be NULL. */
void promoted_add(struct ebb_promoted *cost, const struct ebb_promoted *more);

/* Counts the bytes that a promotion took from the source to a region above. */
static inline void promoted_count(struct region *source, const struct ebb_promoted *cost) {
    source->promoted += cost->copied_bytes + cost->relinked_bytes;
}

/* A mode besides those of ebb/promote.h: by copy, even if the block was born in the target, since
 * others go on using the original. */
#define PROMOTE_APART (EBB_PROMOTE_RELINK + 1)

/* Promotes blocks of objects as ebb_promote() does. `anywhere`: by copy, to any region. */
int promote_blocks(struct region *source, struct region *target, struct ebb_survivor *list,
                   size_t count, bool anywhere, const void *site, struct ebb_promoted *cost);

/* As ebb_promote(), from a step that ends next: if survivors are few they are copied where they can
 * be, so that the next steps find its pages in one piece. `site`: who promotes; *apart: how many of
 * the copied blocks lay in a safe. */
int promote_at_end_of_step(ebb_region source, ebb_region target, struct ebb_survivor *list,
                           size_t count, const void *site, struct ebb_promoted *cost,
                           uint64_t *apart);

#endif
