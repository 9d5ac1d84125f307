// SPDX-License-Identifier: Apache-2.0
/*
 * trim.c - slots that are there when there is too much are left out (see trim.h).
 *
 * Of each key those that come last are, in the same proportion for all: which is found by halving,
 * as what is alive gets less with it. The first slot of a key always stays, and so do those without
 * a key, which are of no loop.
 *
 * Invariant: the releases of what stays keep their order and what they come before and after, so
 * what is left is a draft of a step that could have been.
 */
#include "step/trim.h"

#include <string.h>

#define LEVELS 128u /* proportions */

struct trimming {
    struct draft *draft;
    uint32_t *order; /* slots by rank; in the end, for each rank, how many before it stay */
    uint32_t *end;   /* of each slot: the first one that comes when it has gone */
    uint32_t *full;  /* before each slot, and the end: with how many of those there was too much */
    uint8_t *level;  /* of each slot: 0, or the higher the later of its key it comes */
    uint32_t levels; /* from here on slots are left out */
    uint64_t most;   /* granules */
    ebb_region memory;
};

static bool trimming_make(struct trimming *trimming, struct draft *draft, uint64_t most) {
    size_t count = draft->count, numbers = draft->released + 1 + count + count + 1;
    uint32_t *memory = plan_pool_take("trimming", numbers * sizeof *memory + count,
                                      &trimming->memory);
    if (!memory)
        return false;
    trimming->draft = draft;
    trimming->most = most / RANGE_GRANULE;
    trimming->levels = LEVELS;
    trimming->order = memory;
    trimming->end = trimming->order + draft->released + 1;
    trimming->full = trimming->end + count;
    trimming->level = (uint8_t *)(trimming->full + count + 1);
    memset(trimming->level, 0, count);
    for (uint32_t i = 0; i < draft->count; i++)
        if (draft->slots[i].rank != PLAN_NEVER)
            trimming->order[draft->slots[i].rank] = i;
    return true;
}

static bool is_out(const struct trimming *trimming, uint32_t slot) {
    return trimming->level[slot] >= trimming->levels;
}

/* With what stays there is never too much. Notes when there is, and when each slot goes. */
static bool fits(struct trimming *trimming) {
    const struct draft *draft = trimming->draft;
    uint64_t alive = 0;
    uint32_t passed = 0;
    trimming->full[0] = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        for (; passed < draft->slots[i].passed; passed++) {
            uint32_t gone = trimming->order[passed];
            alive -= is_out(trimming, gone) ? 0 : draft->slots[gone].room;
            trimming->end[gone] = i;
        }
        trimming->end[i] = draft->count;
        alive += is_out(trimming, i) ? 0 : draft->slots[i].room;
        trimming->full[i + 1] = trimming->full[i] + (alive > trimming->most);
    }
    return !trimming->full[draft->count];
}

/* Of slots that are there when there is too much. */
static void set_levels(struct trimming *trimming, const uint32_t *by_key) {
    const struct draft_slot *slots = trimming->draft->slots;
    uint32_t count = trimming->draft->count;
    for (uint32_t first = 0, behind; first < count; first = behind) {
        for (behind = first; behind < count; behind++)
            if (slots[by_key[behind]].key != slots[by_key[first]].key)
                break;
        for (uint32_t at = first; at < behind; at++) {
            uint32_t slot = by_key[at];
            bool counts = slots[slot].key && slots[slot].room &&
                          trimming->full[trimming->end[slot]] > trimming->full[slot];
            uint64_t level = (uint64_t)(at - first) * LEVELS / (behind - first);
            trimming->level[slot] = counts ? (uint8_t)level : 0;
        }
    }
}

/* As few as will do. False: all stay, or those that have to would still be too much. */
static bool choose(struct trimming *trimming, const uint32_t *by_key) {
    uint32_t fitting = 1, above = LEVELS;
    if (fits(trimming))
        return false;
    set_levels(trimming, by_key);
    trimming->levels = fitting;
    if (!fits(trimming))
        return false;
    while (above - fitting > 1) {
        trimming->levels = (fitting + above) / 2;
        if (fits(trimming))
            fitting = trimming->levels;
        else
            above = trimming->levels;
    }
    trimming->levels = fitting;
    return true;
}

static void number_releases(struct trimming *trimming) {
    uint32_t staying = 0, released = trimming->draft->released;
    for (uint32_t rank = 0; rank < released; rank++) {
        bool stays = !is_out(trimming, trimming->order[rank]);
        trimming->order[rank] = staying;
        staying += stays;
    }
    trimming->order[released] = trimming->draft->released = staying;
}

static void leave_out(struct trimming *trimming) {
    struct draft *draft = trimming->draft;
    uint32_t count = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        if (is_out(trimming, i))
            continue;
        struct draft_slot *slot = &draft->slots[count++];
        *slot = draft->slots[i];
        slot->passed = trimming->order[slot->passed];
        if (slot->rank != PLAN_NEVER)
            slot->rank = trimming->order[slot->rank];
    }
    draft->placed -= draft->count - count;
    draft->count = count;
}

bool draft_trim(struct draft *draft, const uint32_t *by_key, uint64_t most) {
    struct trimming trimming;
    if (!trimming_make(&trimming, draft, most))
        return false;
    bool will_do = choose(&trimming, by_key);
    if (will_do) {
        number_releases(&trimming);
        leave_out(&trimming);
    }
    ebb_region_close(trimming.memory);
    return will_do;
}
