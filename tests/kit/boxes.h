// SPDX-License-Identifier: Apache-2.0
/* boxes.h - a composite with a field of every kind, and what tests ask about objects. */
#ifndef KIT_BOXES_H
#define KIT_BOXES_H

#include "kit/test.h"

struct box {
    struct ebb_object object;
    struct ebb_object *left, *right;
    struct ebb_object **parts;
    size_t part_count;
    void *bytes;
    size_t byte_count;
};

enum { BOX_LEFT, BOX_RIGHT, BOX_PARTS, BOX_BYTES };

extern struct ebb_type box_type;

/* For cmocka: the type is registered. */
int boxes_prepare(void **state);

/* An empty one; nothing is composed. */
struct box *box_in(ebb_region region);

/* A tensor of so many floats, with a pattern. */
struct ebb_tensor *floats_in(ebb_region region, int64_t count);
bool floats_hold(const struct ebb_tensor *tensor, int64_t count);

/* A view of `count` floats from place `from` on. */
struct ebb_tensor *floats_of(ebb_region region, const struct ebb_tensor *base, int64_t from,
                             int64_t count);

uint64_t live_in(ebb_region region);
bool is_object(const void *address);

#endif
