// SPDX-License-Identifier: Apache-2.0
/*
 * order.c - a stable radix sort, a byte at a time from the lowest. (qsort() may allocate.)
 *
 * Invariant: after the pass for a byte the list is sorted by this byte and all below. A byte that
 * is the same in all keys costs one look at them, and a sorted list nothing else.
 */
#include "plan/order.h"

#include <stdbool.h>
#include <string.h>

static bool is_sorted(const struct ordered *list, uint32_t count) {
    for (uint32_t i = 1; i < count; i++)
        if (list[i - 1].key > list[i].key)
            return false;
    return true;
}

static unsigned byte_of(uint64_t key, unsigned shift) {
    return (unsigned)(key >> shift) & 0xff;
}

/* Copies `from` to `to`, sorted by one byte; false, and nothing copied, if all have the same. */
static bool sort_byte(const struct ordered *from, struct ordered *to, uint32_t count,
                      unsigned shift) {
    uint32_t starts[257] = {0};
    for (uint32_t i = 0; i < count; i++)
        starts[byte_of(from[i].key, shift) + 1]++;
    if (starts[byte_of(from[0].key, shift) + 1] == count)
        return false;
    for (unsigned byte = 1; byte < 256; byte++)
        starts[byte] += starts[byte - 1];
    for (uint32_t i = 0; i < count; i++)
        to[starts[byte_of(from[i].key, shift)]++] = from[i];
    return true;
}

void order_sort(struct ordered *list, struct ordered *scratch, uint32_t count) {
    if (is_sorted(list, count))
        return;
    struct ordered *from = list, *to = scratch;
    for (unsigned shift = 0; shift < 64; shift += 8)
        if (sort_byte(from, to, count, shift)) {
            struct ordered *filled = to;
            to = from;
            from = filled;
        }
    if (from != list)
        memcpy(list, from, count * sizeof *list);
}
