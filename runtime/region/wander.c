// SPDX-License-Identifier: Apache-2.0
/*
 * wander.c - slots by their keys, in any order (see wander.h).
 *
 * Invariant: while a step wanders, the set of live ranks is that of the live slots. What the lanes
 * take over stays in it until it is released, though nothing is served any more.
 */
#include "base/check.h"
#include "base/error.h"
#include "region/track.h"

#include <string.h>

/* Slots that are looked at for a request, on average; what is left of that serves later ones. */
#define LOOKS_EACH 8u
#define LOOKS_MOST 512u

#define BORROWED_TIMES 2u /* so many times as large a slot of another key may be */
#define FREE_PART 8u      /* of the height, before one whose key has slots gets such a one */

/* ---- memory ---- */

static void rank_slots(const struct plan *plan, uint32_t *ranks) {
    memset(ranks, 0, plan->slot_count * sizeof *ranks);
    for (uint32_t at = 0; at < plan->placed_count; at++)
        ranks[plan->places[at].slot] = at + 1;
}

static void find_ends(const struct plan *plan, struct wander *wander) {
    uint32_t least = plan->order_count;
    for (uint32_t i = 0; i < plan->slot_count; i++)
        wander->ends[i] = PLAN_NEVER;
    for (uint32_t at = 0; at < plan->order_count; at++)
        wander->ends[plan->order[at]] = at;
    wander->ends_from[plan->slot_count] = least;
    for (uint32_t i = plan->slot_count; i > 0; i--) {
        least = wander->ends[i - 1] < least ? wander->ends[i - 1] : least;
        wander->ends_from[i - 1] = least;
    }
}

static bool make(struct track *track) {
    struct wander *wander = &track->wander;
    const struct plan *plan = track->plan;
    size_t words = ranks_words(plan->placed_count + 1) * sizeof(uint64_t);
    size_t numbers = ((size_t)plan->slot_count + 1) * sizeof(uint32_t);
    size_t turns = plan->slot_count * sizeof *wander->turns;
    error_mute();
    uint64_t *memory = plan_pool_take("wander", words + turns + 3 * numbers, &wander->memory);
    error_unmute();
    if (!memory)
        return false;
    ranks_clear(&wander->live, memory, plan->placed_count + 1);
    wander->turns = (struct wander_turn *)(void *)((char *)memory + words);
    wander->ranks = (uint32_t *)(void *)(wander->turns + plan->slot_count);
    wander->ends = wander->ranks + plan->slot_count;
    wander->ends_from = wander->ends + plan->slot_count;
    memset(wander->turns, 0, turns); /* of no epoch */
    rank_slots(plan, wander->ranks);
    find_ends(plan, wander);
    wander->made = true;
    return true;
}

bool wander_prepare(struct track *track) {
    return track->wander.made || make(track);
}

void wander_forget(struct track *track) {
    if (track->wander.made)
        ebb_region_close(track->wander.memory);
    track->wander.made = false;
}

bool wander_begin(struct track *track) {
    struct wander *wander = &track->wander;
    const struct plan *plan = track->plan;
    uint32_t cursor = track_cursor(track);
    if (!wander_prepare(track))
        return false;
    ranks_clear(&wander->live, wander->live.level[0], plan->placed_count + 1);
    for (uint32_t i = track_visited(track, 0, cursor); i < cursor;
         i = track_visited(track, i + 1, cursor))
        if (track_is_live(track, &track->slots[i]))
            wander_add(track, i);
    wander->next = cursor;
    wander->spare = LOOKS_MOST;
    wander->on = true;
    return true;
}

/* ---- live slots ---- */

void wander_add(struct track *track, uint32_t slot) {
    ranks_add(&track->wander.live, track->wander.ranks[slot]);
}

void wander_drop(struct track *track, uint32_t slot) {
    ranks_drop(&track->wander.live, track->wander.ranks[slot]);
}

uint32_t wander_find(const struct track *track, uint32_t place, uint32_t offset) {
    const struct plan *plan = track->plan;
    uint32_t rank = ranks_above(&track->wander.live, place);
    bool found = rank != RANK_NONE && plan->places[rank - 1].offset == offset;
    return found ? plan->places[rank - 1].slot : plan->slot_count;
}

/* The live slot with this rank. */
static const struct plan_slot *slot_of(const struct track *track, uint32_t rank) {
    uint32_t slot = track->plan->places[rank - 1].slot;
    CHECK(track_is_live(track, &track->slots[slot]));
    return &track->plan->slots[slot];
}

static bool is_apart(const struct plan_slot *below, const struct plan_slot *above) {
    return below->offset + below->room <= above->offset;
}

/* R4: not live, and apart from the live slots next to it. These are apart from each other and from
 * all others, so it is, too. */
static bool is_free(const struct track *track, uint32_t slot) {
    const struct plan_slot *own = &track->plan->slots[slot];
    uint32_t rank = track->wander.ranks[slot];
    if (track_is_live(track, &track->slots[slot]))
        return false;
    uint32_t below = ranks_below(&track->wander.live, rank);
    if (below != RANK_NONE && !is_apart(slot_of(track, below), own))
        return false;
    uint32_t above = ranks_above(&track->wander.live, rank);
    return above == RANK_NONE || is_apart(own, slot_of(track, above));
}

/* ---- turns ---- */

/* The first place in by_key of a slot with the key, from this number on, or of one behind. */
static uint32_t first_with(const struct plan *plan, uint32_t key, uint32_t number) {
    uint32_t low = 0, high = plan->slot_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, id = plan->by_key[middle];
        uint32_t other = plan->slots[id].key;
        if (other < key || (other == key && id < number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_key(const struct plan *plan, uint32_t at, uint32_t key) {
    return at < plan->slot_count && plan->slots[plan->by_key[at]].key == key;
}

uint32_t plan_first_with(const struct plan *plan, uint32_t key) {
    uint32_t at = first_with(plan, key, 0);
    return has_key(plan, at, key) ? plan->by_key[at] : plan->slot_count;
}

static bool suits(const struct track *track, uint32_t id, size_t bytes, size_t align) {
    const struct track_slot *slot = &track->slots[id];
    if (!slot->room)
        return true;
    return bytes <= slot->room && ((slot->addr | align) & (align - 1)) == 0 && is_free(track, id);
}

/* ---- slots of other keys ---- */

/* An eighth of the arena is free: who takes others' places then is hardly in their way. */
static bool has_room(const struct track *track) {
    uint64_t came = track_came_granules(track) - track->granules.from;
    uint64_t left = tide_left(&track->granules);
    uint64_t live = track->live_rooms + came * RANGE_GRANULE - left * RANGE_GRANULE;
    size_t height = track->plan->height_bytes;
    return live <= height - height / FREE_PART;
}

/* A slot of any key, and not far too large: the highest there is, as most requests that find their
 * own come lower. */
static uint32_t borrow(struct track *track, size_t bytes, size_t align) {
    const struct plan *plan = track->plan;
    struct wander *wander = &track->wander;
    for (uint32_t at = plan->placed_count; at > 0 && wander->spare; at--, wander->spare--) {
        uint32_t id = plan->places[at - 1].slot;
        if (track->slots[id].room / BORROWED_TIMES <= bytes && suits(track, id, bytes, align))
            return id;
    }
    return plan->slot_count;
}

/* ---- seeking ---- */

uint32_t wander_seek(struct track *track, size_t bytes, size_t align, uint32_t key) {
    const struct plan *plan = track->plan;
    struct wander *wander = &track->wander;
    uint32_t first = first_with(plan, key, 0);
    bool all_live = true;
    wander->spare = (uint32_t)size_smaller(wander->spare + LOOKS_EACH, LOOKS_MOST);
    if (!has_key(plan, first, key))
        return key ? borrow(track, bytes, align) : plan->slot_count;
    struct wander_turn *turn = &wander->turns[first];
    /* who has no key goes on where the step is */
    bool goes_on = turn->epoch == track->epoch && key;
    uint32_t at = goes_on ? turn->at : first_with(plan, key, wander->next);
    at = has_key(plan, at, key) ? at : first;
    for (uint32_t from = at; wander->spare; wander->spare--) {
        uint32_t id = plan->by_key[at++];
        /* also of what was in vain: the next request looks farther */
        *turn = (struct wander_turn){track->epoch, at};
        if (suits(track, id, bytes, align)) {
            wander->next = id + 1;
            return id;
        }
        all_live &= track_is_live(track, &track->slots[id]);
        at = has_key(plan, at, key) ? at : first;
        if (at == from)
            break;
    }
    bool borrows = key && all_live && has_room(track);
    return borrows ? borrow(track, bytes, align) : plan->slot_count;
}

/* ---- checking ---- */

static bool has_rank(const struct wander *wander, uint32_t rank) {
    return ranks_above(&wander->live, rank - 1) == rank;
}

void wander_check(const struct track *track) {
    const struct plan *plan = track->plan;
    const struct plan_slot *below = NULL;
    bool serves = track->arena || track->taken_over;
    uint32_t count = track->wander.on && serves ? plan->placed_count : 0;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t id = plan->places[at].slot;
        bool live = track_is_live(track, &track->slots[id]);
        CHECK_ALWAYS(has_rank(&track->wander, at + 1) == live);
        CHECK_ALWAYS(!live || !below || is_apart(below, &plan->slots[id]));
        below = live ? &plan->slots[id] : below;
    }
}
