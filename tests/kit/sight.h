// SPDX-License-Identifier: Apache-2.0
/*
 * sight.h - everything that can be seen of a region and its objects, to show that a call that
 * failed changed none of it.
 */
#ifndef KIT_SIGHT_H
#define KIT_SIGHT_H

#include "kit/test.h"

struct sight {
    struct ebb_region_stats stats;
    struct ebb_object_counts objects[EBB_OBJECT_KINDS_MAX], all;
    size_t listed;
    void *newest[8];
};

struct sight sight_of(ebb_region region);

/* The call failed with this code, its text names these parts (up to NULL), and nothing changed. */
void assert_sight_refused(ebb_region region, const struct sight *before, int result, int code, ...);

/* Nothing changed but, perhaps, the pages that the region holds. */
void assert_sight_same(ebb_region region, const struct sight *before);

#endif
