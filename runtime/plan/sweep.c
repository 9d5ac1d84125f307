// SPDX-License-Identifier: Apache-2.0
/*
 * sweep.c - packing_is_valid(): is this a plan?
 *
 * Time is swept from birth to birth. The buffers alive, ranked by offset, are bits of a set, and a
 * buffer is born into it: it must not reach into the one above, nor the one below into it.
 *
 * Invariant: the buffers in the set do not overlap. So they lie in the order of their ranks, and
 * comparing each newcomer with its two neighbours is enough. It believes nothing of what it is
 * given: not that sums fit, nor that lives are lives. Shares only the sorting with the planner.
 */
#include "plan/packing.h"

#include "base/size.h"
#include "plan/order.h"
#include "plan/ranks.h"

struct sweep {
    const struct packing_buffer *buffers;
    const uint64_t *offsets;
    uint32_t count;
    struct ordered *births, *deaths, *scratch;
    uint32_t *rank_of, *buffer_at;
    struct rank_set alive;
};

static bool is_placed(const struct packing_buffer *buffer, uint64_t offset, uint64_t height) {
    return buffer->lower < buffer->upper && size_is_power_of_two(buffer->align) &&
           (offset & (buffer->align - 1)) == 0 && buffer->bytes <= height &&
           offset <= height - buffer->bytes;
}

static bool all_are_placed(const struct sweep *sweep, uint64_t height) {
    for (uint32_t i = 0; i < sweep->count; i++)
        if (!is_placed(&sweep->buffers[i], sweep->offsets[i], height))
            return false;
    return true;
}

static void rank(struct sweep *sweep) {
    struct ordered *list = sweep->births; /* not in use yet */
    for (uint32_t i = 0; i < sweep->count; i++)
        list[i] = (struct ordered){sweep->offsets[i], i};
    order_sort(list, sweep->scratch, sweep->count);
    for (uint32_t i = 0; i < sweep->count; i++) {
        sweep->buffer_at[i] = list[i].index;
        sweep->rank_of[list[i].index] = i;
    }
}

static void sort_lives(struct sweep *sweep) {
    for (uint32_t i = 0; i < sweep->count; i++) {
        sweep->births[i] = (struct ordered){sweep->buffers[i].lower, i};
        sweep->deaths[i] = (struct ordered){sweep->buffers[i].upper, i};
    }
    order_sort(sweep->births, sweep->scratch, sweep->count);
    order_sort(sweep->deaths, sweep->scratch, sweep->count);
}

static uint64_t end_of(const struct sweep *sweep, uint32_t buffer) {
    return sweep->offsets[buffer] + sweep->buffers[buffer].bytes;
}

static bool bear(struct sweep *sweep, uint32_t buffer) {
    uint32_t rank = sweep->rank_of[buffer];
    uint32_t below = ranks_below(&sweep->alive, rank), above = ranks_above(&sweep->alive, rank);
    if (below != RANK_NONE && end_of(sweep, sweep->buffer_at[below]) > sweep->offsets[buffer])
        return false;
    if (above != RANK_NONE && end_of(sweep, buffer) > sweep->offsets[sweep->buffer_at[above]])
        return false;
    ranks_add(&sweep->alive, rank);
    return true;
}

static bool all_are_apart(struct sweep *sweep) {
    uint32_t dead = 0;
    for (uint32_t born = 0; born < sweep->count; born++) {
        uint64_t now = sweep->births[born].key;
        for (; sweep->deaths[dead].key <= now; dead++)
            ranks_drop(&sweep->alive, sweep->rank_of[sweep->deaths[dead].index]);
        uint32_t buffer = sweep->births[born].index;
        if (sweep->buffers[buffer].bytes > 0 && !bear(sweep, buffer))
            return false;
    }
    return true;
}

bool packing_is_valid(const struct packing_buffer *buffers, const uint64_t *offsets,
                      uint32_t count, uint64_t height, void *workspace) {
    struct sweep sweep = {.buffers = buffers, .offsets = offsets, .count = count};
    sweep.births = workspace;
    sweep.deaths = sweep.births + count;
    sweep.scratch = sweep.deaths + count;
    uint64_t *words = (uint64_t *)(sweep.scratch + count);
    sweep.rank_of = (uint32_t *)(words + ranks_words(count));
    sweep.buffer_at = sweep.rank_of + count;
    if (!all_are_placed(&sweep, height))
        return false;
    ranks_clear(&sweep.alive, words, count);
    rank(&sweep);
    sort_lives(&sweep);
    return all_are_apart(&sweep);
}
