// SPDX-License-Identifier: Apache-2.0
/*
 * live.c - bytes alive, birth by birth (see live.h).
 *
 * The most until a tile dies is found from the last birth to the first. Only moments count at which
 * more is alive than at all those between them and the tile's birth: they are a stack.
 *
 * Invariant: from its top to its bottom moments are later and heights are larger.
 */
#include "plan/live.h"

#include "base/size.h"

bool live_fill(uint64_t *live, const struct tile *tiles, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        live[i] = 0;
    uint64_t now = 0;
    for (uint32_t i = 0; i < count; i++) {
        now = now - live[i] + tiles[i].bytes; /* so far live[i] is what ends there */
        if (now > EBB_SIZE_MAX)
            return false;
        live[i] = now;
        if (tiles[i].end < count)
            live[tiles[i].end] += tiles[i].bytes; /* all that end there have been alive here */
    }
    return true;
}

/* The last of the stack's moments that is before `end` is the highest of them. */
static uint64_t highest_before(const struct low *stack, uint32_t depth, uint32_t end) {
    uint32_t later = 0, before = depth - 1;
    while (later < before) {
        uint32_t middle = (later + before) / 2;
        if (stack[middle].start < end)
            before = middle;
        else
            later = middle + 1;
    }
    return stack[before].height;
}

void live_to_most(uint64_t *live, const struct tile *tiles, uint32_t count, struct low *stack) {
    uint32_t depth = 0;
    for (uint32_t i = count; i > 0;) {
        i--;
        while (depth > 0 && stack[depth - 1].height <= live[i])
            depth--;
        stack[depth++] = (struct low){live[i], i};
        live[i] = highest_before(stack, depth, tiles[i].end);
    }
}
