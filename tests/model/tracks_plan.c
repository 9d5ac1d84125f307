// SPDX-License-Identifier: Apache-2.0
/*
 * tracks_plan.c - a plan made the obvious way: best fit over all pairs. It shares no code with the
 * planner of the library, so each shows what the other does wrong.
 */
#include "model/tracks.h"

#include <stdlib.h>

#define GUEST_EVERY 5
#define GUEST_SELDOM 60 /* where births are no stops of a step, as what a guest does is */

static bool is_placed(const struct record_entry *entry) {
    return !entry->survived && entry->bytes <= PLAN_ROOM_MOST &&
           (size_t)1 << entry->align_log2 <= PLAN_ALIGN_MOST;
}

static uint32_t granules(const struct record_entry *entry) {
    return (uint32_t)((entry->bytes + (entry->bytes == 0) + 15) / 16);
}

/* Alive together: neither went before the other came. */
static bool is_together(const struct record_entry *a, const struct record_entry *b) {
    const struct record_entry *first = a < b ? a : b, *second = a < b ? b : a;
    return first->rank >= second->passed;
}

/* The lowest place, by trying again until no entry before it is in the way. */
static uint32_t lowest(const struct record_entry *record, const struct plan_slot *slots,
                       uint32_t id) {
    uint32_t align = record[id].align_log2 > 4 ? 1u << (record[id].align_log2 - 4) : 1, at = 0;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < id; i++) {
            if (!slots[i].room || !is_together(&record[i], &record[id]))
                continue;
            if (at + granules(&record[id]) > slots[i].offset &&
                slots[i].offset + slots[i].room > at) {
                at = (slots[i].offset + slots[i].room + align - 1) / align * align;
                again = true;
            }
        }
    }
    return at;
}

static const struct plan_slot *sorted;

static int by_place(const void *a, const void *b) {
    const struct plan_place *left = a, *right = b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return left->slot < right->slot ? -1 : 1;
}

static int by_key(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    if (sorted[left].key != sorted[right].key)
        return sorted[left].key < sorted[right].key ? -1 : 1;
    return left < right ? -1 : 1;
}

static void *table(ebb_region memory, uint32_t count) {
    void *at = ebb_region_alloc_array(memory, count + 1, sizeof(uint32_t), 64);
    assert_non_null(at);
    return at;
}

/* Releases of placed blocks and guests in their order; `passed` of slots counts only these. */
static void order_releases(struct plan *plan, const struct record_entry *record,
                           struct plan_slot *slots, uint32_t *order) {
    for (uint32_t rank = 0, more = 1; more; rank++) {
        more = 0;
        for (uint32_t i = 0; i < plan->slot_count; i++) {
            if (record[i].passed == rank)
                slots[i].passed = plan->order_count;
            more |= record[i].passed > rank || (record[i].rank != PLAN_NEVER &&
                                                record[i].rank > rank);
        }
        for (uint32_t i = 0; i < plan->slot_count; i++)
            if (record[i].rank == rank && (slots[i].room || slots[i].guest))
                order[plan->order_count++] = i;
    }
    order[plan->order_count] = plan->slot_count;
}

struct plan *plan_by_the_book(const struct record_entry *record, uint32_t count, unsigned kind) {
    uint32_t guest_every = kind & PLAY_TABLES ? GUEST_SELDOM : GUEST_EVERY;
    bool tenure = (kind & (PLAY_PROMOTE | PLAY_KEEP)) != 0;
    uint32_t height = 1, keyed = 0;
    if (!count)
        return NULL;
    ebb_region memory = ebb_region_open(EBB_REGION_OPTIONS(.name = "plan", .pool = plan_pool()));
    struct plan *plan = ebb_region_alloc_zeroed(memory, sizeof *plan, 64);
    struct plan_slot *slots = ebb_region_alloc_zeroed(memory, (count + 1) * sizeof *slots, 64);
    uint32_t *order = table(memory, count), *keys = table(memory, count);
    struct plan_place *places =
        ebb_region_alloc_array(memory, count + 1, sizeof *places, EBB_UNIT);
    plan->memory = memory;
    plan->slot_count = count;
    atomic_init(&plan->users, 1);
    for (uint32_t i = 0; i < count; i++) {
        slots[i].key = record[i].key;
        slots[i].align_log2 = (uint8_t)record[i].align_log2;
        keyed |= record[i].key;
        keys[i] = i;
        slots[i].tenured = tenure && record[i].survived;
        slots[i].guest = tenure && is_placed(&record[i]) && i % guest_every == 0;
        slots[i].offset = granules(&record[i]);
        if (!is_placed(&record[i]) || slots[i].guest)
            continue;
        slots[i].offset = lowest(record, slots, i);
        slots[i].room = granules(&record[i]);
        places[plan->placed_count++] = (struct plan_place){slots[i].offset, i};
        if (slots[i].offset + slots[i].room > height)
            height = slots[i].offset + slots[i].room;
    }
    order_releases(plan, record, slots, order);
    sorted = slots;
    qsort(places, plan->placed_count, sizeof *places, by_place);
    qsort(keys, count, sizeof *keys, by_key);
    plan->slots = slots;
    plan->order = order;
    plan->places = places;
    plan->by_key = keyed ? keys : NULL;
    plan->wanted = ebb_region_alloc_zeroed(memory, (count + 1) * sizeof *plan->wanted, 64);
    assert_non_null(plan->wanted);
    plan->height_bytes = ((size_t)height * 16 + PAGE - 1) / PAGE * PAGE;
    return plan;
}
