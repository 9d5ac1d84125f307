// SPDX-License-Identifier: Apache-2.0
/*
 * merge.c - two drafts of blocks with keys become one (see merge.h).
 *
 * Both are gone along at once. Where their next slots are of one kind, that is a slot of the merged
 * draft; else what comes before the nearest slot that they have in common is taken over first, from
 * the one that has less of it. To look for that costs nothing: slots of a kind are linked, and who
 * goes along only goes ahead.
 *
 * Invariant: slots of either draft stay in their order, and none goes before it did there, seen
 * from the slots of its own draft.
 */
#include "step/merge.h"

#include "base/size.h"
#include "plan/order.h"

#include <string.h>

#define NONE UINT32_MAX
#define AGE_MOST 16u   /* what no record has had for so many drafts is left out */
#define ADDED_PART 32u /* of what the other has: less is not worth it */

/* One of the two, as it is gone along. */
struct side {
    const struct draft *draft;
    uint32_t *kind;  /* of each slot */
    uint32_t *next;  /* the next slot of the same kind, or NONE */
    uint32_t *first; /* of each kind: the first slot that is not passed, as of the last look */
    uint32_t *place; /* of each slot: its number in the merged draft, or NONE: it is left out */
    uint32_t *order; /* slots by rank */
    uint32_t at;     /* the next slot */
    uint32_t passed; /* ranks that have gone before it */
    uint64_t alive;  /* granules that are there then */
};

struct merging {
    struct side one, other;
    struct draft *merged;
    uint64_t added;  /* granules of slots that only the other has */
    uint64_t alive;  /* granules that are there behind the last merged slot */
    uint64_t most;   /* there may be so many */
    uint32_t *until; /* of each merged slot: the first one that comes when it has gone */
    uint32_t *held;  /* of each merged slot: in how many of the two it is there. Later, before each
                        and before the end: how many go just then */
    struct ordered *list, *scratch;
    ebb_region memory;
};

/* ---- memory ---- */

static bool side_is_over(const struct side *side) {
    return side->at == side->draft->count;
}

static uint32_t *cut(uint32_t **from, size_t count) {
    uint32_t *numbers = *from;
    *from += count;
    return numbers;
}

static void side_make(struct side *side, const struct draft *draft, uint32_t kinds_most,
                      uint32_t **numbers) {
    *side = (struct side){.draft = draft};
    side->kind = cut(numbers, draft->count);
    side->next = cut(numbers, draft->count);
    side->place = cut(numbers, draft->count);
    side->order = cut(numbers, draft->count);
    side->first = cut(numbers, kinds_most);
}

static bool merging_make(struct merging *merging, const struct draft *one,
                         const struct draft *other) {
    size_t both = (size_t)one->count + other->count, lists = 2 * both * sizeof *merging->list;
    size_t bytes = lists + (8 * both + 1) * sizeof(uint32_t);
    char *memory = plan_pool_take("merging", bytes, &merging->memory);
    if (!memory)
        return false;
    uint32_t *numbers = (uint32_t *)(void *)(memory + lists);
    merging->added = merging->alive = 0;
    merging->list = (struct ordered *)(void *)memory;
    merging->scratch = merging->list + both;
    merging->until = cut(&numbers, both);
    merging->held = cut(&numbers, both + 1);
    side_make(&merging->one, one, (uint32_t)both, &numbers);
    side_make(&merging->other, other, (uint32_t)both, &numbers);
    return true;
}

/* ---- kinds ---- */

/* What the slots of both that are one in the merged draft have in common. */
static uint64_t kind_of(const struct draft_slot *slot) {
    return (uint64_t)slot->key << 3 | (uint64_t)(slot->room != 0) << 2 |
           (uint64_t)slot->tenured << 1 | slot->survived;
}

static void list_slots(struct ordered *list, const struct draft *draft, uint32_t from) {
    for (uint32_t i = 0; i < draft->count; i++)
        list[from + i] = (struct ordered){kind_of(&draft->slots[i]), from + i};
}

/* From the last one to the first, so that each finds the one behind it. */
static void link(struct side *side, uint32_t slot, uint32_t kind) {
    side->kind[slot] = kind;
    side->next[slot] = side->first[kind];
    side->first[kind] = slot;
}

/* The key of a slot in the list, whatever became of its block. */
static uint64_t key_of(const struct ordered *listed) {
    return listed->key >> 3;
}

/* False: both have the same keys. */
static bool find_kinds(struct merging *merging) {
    struct side *one = &merging->one, *other = &merging->other;
    const struct ordered *list = merging->list;
    uint32_t middle = one->draft->count, count = middle + other->draft->count, kind = 0;
    list_slots(merging->list, one->draft, 0);
    list_slots(merging->list, other->draft, middle);
    order_sort(merging->list, merging->scratch, count);
    bool differ = false, in_one = false, in_other = false;
    memset(one->first, 0xff, count * sizeof *one->first);
    memset(other->first, 0xff, count * sizeof *other->first);
    for (uint32_t left = count; left > 0; left--) {
        uint32_t at = left - 1;
        bool of_one = list[at].index < middle;
        if (of_one)
            link(one, list[at].index, kind);
        else
            link(other, list[at].index - middle, kind);
        in_one |= of_one;
        in_other |= !of_one;
        kind += !at || list[at - 1].key != list[at].key;
        if (at && key_of(&list[at - 1]) == key_of(&list[at]))
            continue;
        differ |= in_one != in_other;
        in_one = in_other = false;
    }
    return differ;
}

/* ---- going along ---- */

/* How many slots come before the next one of that kind; NONE: there is none. */
static uint32_t ahead(struct side *side, uint32_t kind) {
    uint32_t *first = &side->first[kind];
    while (*first < side->at)
        *first = side->next[*first];
    return *first == NONE ? NONE : *first - side->at;
}

/* The slot of the side goes before the next one of the merged draft comes. */
static void leave(struct merging *merging, struct side *side, uint32_t slot) {
    uint32_t place = side->place[slot];
    side->alive -= side->draft->slots[slot].room;
    if (place == NONE)
        return;
    merging->until[place] = merging->merged->count;
    if (--merging->held[place] == 0)
        merging->alive -= merging->merged->slots[place].room;
}

/* What stays to the end of its own step is not there any more in what follows that. */
static void leave_all(struct merging *merging, struct side *side) {
    for (uint32_t i = 0; i < side->draft->count; i++)
        if (side->draft->slots[i].rank == PLAN_NEVER)
            leave(merging, side, i);
}

/* The next slot of the side is this one of the merged draft, the last so far, or is left out. */
static void pass(struct merging *merging, struct side *side, uint32_t place) {
    const struct draft *draft = side->draft;
    side->place[side->at] = place;
    side->alive += draft->slots[side->at++].room;
    uint32_t passed = side_is_over(side) ? draft->released : draft->slots[side->at].passed;
    while (side->passed < passed)
        leave(merging, side, side->order[side->passed++]);
    if (side_is_over(side))
        leave_all(merging, side);
}

/* A slot of so many of the two. False: too much is there then. */
static bool add(struct merging *merging, const struct draft_slot *slot, uint32_t held) {
    struct draft *merged = merging->merged;
    merging->held[merged->count] = held;
    merged->slots[merged->count++] = *slot;
    merged->placed += slot->room != 0;
    merged->tenured += slot->tenured;
    merging->alive += slot->room;
    return merging->alive <= merging->most;
}

static bool add_both(struct merging *merging) {
    struct side *one = &merging->one, *other = &merging->other;
    const struct draft_slot *a = &one->draft->slots[one->at];
    const struct draft_slot *b = &other->draft->slots[other->at];
    struct draft_slot slot = *b;
    uint32_t place = merging->merged->count;
    slot.room = (uint32_t)size_larger(a->room, b->room);
    slot.needed = (uint32_t)size_larger(a->needed, b->needed);
    slot.above = (uint32_t)size_larger(a->above, b->above);
    slot.align = (uint16_t)size_larger(a->align, b->align);
    slot.align_log2 = (uint8_t)size_larger(a->align_log2, b->align_log2);
    slot.bound |= a->bound;
    slot.rank = a->rank == PLAN_NEVER ? b->rank : a->rank;
    slot.age = (uint8_t)size_smaller(a->age, b->age);
    bool fits = add(merging, &slot, 2);
    pass(merging, one, place);
    pass(merging, other, place);
    return fits;
}

/* The next slot of `other`, which `one` does not have there. */
static bool add_other(struct merging *merging) {
    struct side *other = &merging->other;
    uint32_t place = merging->merged->count;
    merging->added += other->draft->slots[other->at].needed;
    bool fits = add(merging, &other->draft->slots[other->at], 1);
    pass(merging, other, place);
    return fits;
}

/* Or the other way round. That one gets older. */
static bool add_one(struct merging *merging) {
    struct draft_slot slot = merging->one.draft->slots[merging->one.at];
    bool stays = slot.age++ < AGE_MOST;
    uint32_t place = stays ? merging->merged->count : NONE;
    bool fits = !stays || add(merging, &slot, 1);
    pass(merging, &merging->one, place);
    return fits;
}

/* True if it is `one`'s turn, as that has less before what they have in common. Where there is
 * nothing it is who has more that is to go yet, so that what belongs together is whole before
 * something begins that it has nothing to do with. */
static bool is_next(struct side *one, struct side *other) {
    uint32_t before_one = ahead(one, other->kind[other->at]);
    uint32_t before_other = ahead(other, one->kind[one->at]);
    if (before_one == before_other)
        return one->alive > other->alive;
    return before_one < before_other;
}

/* The next slot of the merged draft. False: too much is there then. */
static bool go_on(struct merging *merging) {
    struct side *one = &merging->one, *other = &merging->other;
    if (side_is_over(one))
        return add_other(merging);
    if (side_is_over(other))
        return add_one(merging);
    if (one->kind[one->at] == other->kind[other->at])
        return add_both(merging);
    return is_next(one, other) ? add_one(merging) : add_other(merging);
}

static bool go_along(struct merging *merging) {
    while (!side_is_over(&merging->one) || !side_is_over(&merging->other))
        if (!go_on(merging))
            return false;
    return true;
}

/* ---- lives ---- */

static bool is_released(const struct merging *merging, uint32_t slot) {
    const struct draft *merged = merging->merged;
    return merged->slots[slot].room &&
           (merged->slots[slot].rank != PLAN_NEVER || merging->until[slot] < merged->count);
}

/* Those that go at once do so in the order that they had, as far as there was one. */
static void number_releases(struct merging *merging) {
    struct draft *merged = merging->merged;
    uint32_t released = 0, passed = 0;
    memset(merging->held, 0, ((size_t)merged->count + 1) * sizeof *merging->held);
    for (uint32_t i = 0; i < merged->count; i++) {
        if (!is_released(merging, i))
            continue;
        uint64_t key = (uint64_t)merging->until[i] << 32 | merged->slots[i].rank;
        merging->list[released++] = (struct ordered){key, i};
        merging->held[merging->until[i]]++;
    }
    order_sort(merging->list, merging->scratch, released);
    for (uint32_t i = 0; i < merged->count; i++) {
        passed += merging->held[i];
        merged->slots[i].passed = passed;
        merged->slots[i].rank = PLAN_NEVER;
    }
    for (uint32_t rank = 0; rank < released; rank++)
        merged->slots[merging->list[rank].index].rank = rank;
    merged->released = released;
}

/* ---- both ---- */

static uint64_t mix(uint64_t one, uint64_t other) {
    return (one ^ other >> 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void order_slots(struct side *side) {
    for (uint32_t i = 0; i < side->draft->count; i++)
        if (side->draft->slots[i].rank != PLAN_NEVER)
            side->order[side->draft->slots[i].rank] = i;
}

/* NULL: there is no memory, or too much would be alive at once. */
static struct draft *merge(struct merging *merging) {
    const struct draft *one = merging->one.draft, *other = merging->other.draft;
    struct draft *merged = merging->merged = draft_create(one->count + other->count);
    if (!merged)
        return NULL;
    merged->count = 0;
    merged->keyed = merged->wider = merged->several = true;
    merged->coarse = one->coarse;
    merged->hash = mix(one->hash, other->hash);
    order_slots(&merging->one);
    order_slots(&merging->other);
    if (!go_along(merging)) {
        draft_drop(merged);
        return NULL;
    }
    number_releases(merging);
    return merged;
}

static bool is_worth_it(const struct merging *merging) {
    const struct draft *other = merging->other.draft;
    uint64_t granules = 0;
    for (uint32_t i = 0; i < other->count; i++)
        granules += other->slots[i].needed;
    return merging->added >= granules / ADDED_PART;
}

struct draft *draft_merge(const struct draft *one, const struct draft *other,
                          uint64_t count_most, uint64_t bytes_most) {
    struct merging merging;
    bool suit = one->keyed && other->keyed && one->coarse == other->coarse &&
                size_larger(one->count, other->count) <= count_most;
    if (!suit || !merging_make(&merging, one, other))
        return NULL;
    merging.most = bytes_most / RANGE_GRANULE;
    struct draft *merged = find_kinds(&merging) ? merge(&merging) : NULL;
    bool will_do = merged && merged->count <= count_most && is_worth_it(&merging);
    ebb_region_close(merging.memory);
    if (will_do)
        return merged;
    draft_drop(merged);
    return NULL;
}
