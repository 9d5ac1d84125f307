// SPDX-License-Identifier: Apache-2.0
/* order.h - sorting indices by numbers. */
#ifndef EBB_PLAN_ORDER_H
#define EBB_PLAN_ORDER_H

#include <stdint.h>

struct ordered {
    uint64_t key;
    uint32_t index;
};

/* Sorts by key, equal keys as they stand; `scratch` is as long as `list`. O(count). */
void order_sort(struct ordered *list, struct ordered *scratch, uint32_t count);

#endif
