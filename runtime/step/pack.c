// SPDX-License-Identifier: Apache-2.0
/*
 * pack.c - a draft becomes a plan: sections, packing, proof, tables.
 *
 *     slots, by birth   |0 0 0|1 1|2|3 3 3 3|   section: grows where a release came between
 *     lives             [lower, upper)          upper: section of the first birth after the release
 *
 * All that is needed meanwhile is one block of a region that is closed at the end:
 *
 *     buffers | offsets | workspace of solving and proof      | numbers
 *                       | list | scratch: between these calls |
 *
 * It makes nothing resident that stays: it lies in pages that the step has left in one piece, if
 * there is such a piece, else in the pool for what is learnt, which keeps few. Invariant: no plan
 * leaves before packing_is_valid() has agreed to its places; that it does not is a bug in ebb.
 *
 * Refuses heights above what was allowed or what offsets of slots can say (EBB_E_SIZE).
 */
#include "step/draft.h"

#include "base/check.h"
#include "base/error.h"
#include "plan/order.h"

/* What packing needs, all of it in `memory`. */
struct packing_desk {
    ebb_region memory;
    struct packing_buffer *buffers; /* placed slots, by number */
    uint32_t *numbers;              /* of the slots that they are */
    uint64_t *offsets;
    void *workspace;
    struct ordered *list, *scratch; /* as long as all slots; in the workspace */
    struct packing_result result;
    bool apart; /* what stays to the end has places of its own */
};

#define APART_PART 8u /* of its height a plan may be higher for that */

/* Of the workspace, which has two lists as well. */
static bool workspace_bytes(const struct draft *draft, size_t *bytes) {
    size_t lists = (size_t)2 * draft->count * sizeof(struct ordered);
    if (!packing_workspace_bytes(draft->placed, bytes))
        return false;
    *bytes = size_align(size_larger(*bytes, lists), sizeof(uint64_t));
    return true;
}

static size_t desk_bytes(const struct draft *draft, size_t workspace) {
    const struct packing_desk *desk;
    return draft->placed * (sizeof *desk->buffers + sizeof *desk->offsets +
                            sizeof *desk->numbers) + workspace;
}

/* In hot pages of the program's pool; what it has counted, and its limit, are for its own. */
static void *take_hot(ebb_pool *pool, size_t bytes, ebb_region *memory) {
    if (!pool || !pool_can_spare(pool, bytes))
        return NULL;
    *memory = region_open_uncounted("packing", pool);
    if (!ebb_region_is_open(*memory))
        return NULL;
    void *block = ebb_region_alloc(*memory, bytes, EBB_UNIT);
    if (!block)
        ebb_region_close(*memory);
    return block;
}

static bool desk_open(struct packing_desk *desk, const struct draft *draft) {
    size_t workspace;
    *desk = (struct packing_desk){.memory = {NULL, 0}};
    if (!workspace_bytes(draft, &workspace))
        return false;
    size_t bytes = desk_bytes(draft, workspace);
    char *block = take_hot(draft->desk, bytes, &desk->memory);
    if (!block)
        block = plan_pool_take("packing", bytes, &desk->memory);
    if (!block)
        return false;
    desk->buffers = (struct packing_buffer *)(void *)block;
    desk->offsets = (uint64_t *)(void *)(desk->buffers + draft->placed);
    desk->workspace = desk->offsets + draft->placed;
    desk->list = desk->workspace;
    desk->scratch = desk->list + draft->count;
    desk->numbers = (uint32_t *)(void *)((char *)desk->workspace + workspace);
    return true;
}

/* ---- lives ---- */

/* The births of placed slots, with the section that each of them falls into. */
static uint32_t list_births(struct packing_desk *desk, const struct draft *draft) {
    uint32_t placed = 0, section = 0, passed = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_slot *slot = &draft->slots[i];
        if (!slot->room)
            continue;
        if (placed && slot->passed != passed)
            section++;
        passed = slot->passed;
        desk->numbers[placed] = i;
        desk->buffers[placed++] = (struct packing_buffer){
            .lower = section, .upper = PLAN_NEVER, .align = slot->align,
            .bytes = (uint64_t)slot->room * RANGE_GRANULE};
    }
    return section + 1;
}

#define NOT_PLACED UINT32_MAX

/* The released ones by rank: all ranks below `released` are there, each once, or a guest's. */
static void list_releases(struct packing_desk *desk, const struct draft *draft) {
    for (uint32_t rank = 0; rank < draft->released; rank++)
        desk->list[rank].index = NOT_PLACED;
    for (uint32_t at = 0; at < draft->placed; at++) {
        uint32_t rank = draft->slots[desk->numbers[at]].rank;
        if (rank != PLAN_NEVER)
            desk->list[rank].index = at;
    }
}

static void set_lives(struct packing_desk *desk, const struct draft *draft) {
    uint32_t sections = list_births(desk, draft), born = 0;
    list_releases(desk, draft);
    for (uint32_t rank = 0; rank < draft->released; rank++) {
        while (born < draft->placed && draft->slots[desk->numbers[born]].passed <= rank)
            born++;
        uint32_t index = desk->list[rank].index;
        if (index != NOT_PLACED)
            desk->buffers[index].upper =
                born < draft->placed ? desk->buffers[born].lower : sections;
    }
    for (uint32_t at = 0; at < draft->placed; at++)
        if (desk->buffers[at].upper == PLAN_NEVER)
            desk->buffers[at].upper = sections;
}

/* ---- tables ---- */

/* Tables of a plan, behind it in one block. */
struct tables {
    struct plan_slot *slots;
    struct plan_place *places;
    uint32_t *order, *by_key;
    _Atomic(uint32_t) *wanted;
};

static struct plan *plan_create(const struct draft *draft, struct tables *tables) {
    size_t slots = draft->count * sizeof *tables->slots;
    size_t places = draft->placed * sizeof *tables->places;
    size_t order = ((size_t)draft->released + 1) * sizeof *tables->order;
    size_t by_key = draft->keyed ? draft->count * sizeof *tables->by_key : 0;
    size_t wanted = draft->count * sizeof *tables->wanted;
    ebb_region memory;
    struct plan *plan =
        plan_pool_take("plan", sizeof *plan + slots + places + order + by_key + wanted, &memory);
    if (!plan)
        return NULL;
    *plan = (struct plan){.memory = memory};
    atomic_init(&plan->users, 1);
    tables->slots = (struct plan_slot *)(void *)(plan + 1);
    tables->places = (struct plan_place *)(void *)(tables->slots + draft->count);
    tables->order = (uint32_t *)(void *)(tables->places + draft->placed);
    uint32_t *behind = tables->order + draft->released + 1;
    tables->by_key = by_key ? behind : NULL;
    tables->wanted = (_Atomic(uint32_t) *)(behind + (by_key ? draft->count : 0));
    return plan;
}

static void fill_slots(struct plan_slot *slots, const struct draft *draft,
                       const struct packing_desk *desk) {
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_slot *slot = &draft->slots[i];
        slots[i] = (struct plan_slot){.offset = slot->needed, .room = slot->room,
                                      .passed = slot->passed, .key = slot->key,
                                      .above = slot->above, .tenured = slot->tenured,
                                      .guest = slot->guest, .survived = slot->survived,
                                      .bound = slot->bound, .align_log2 = slot->align_log2,
                                      .age = slot->age};
    }
    for (uint32_t at = 0; at < draft->placed; at++)
        slots[desk->numbers[at]].offset = (uint32_t)(desk->offsets[at] / RANGE_GRANULE);
}

static void fill_order(uint32_t *order, const struct draft *draft) {
    for (uint32_t i = 0; i < draft->count; i++)
        if (draft->slots[i].rank != PLAN_NEVER)
            order[draft->slots[i].rank] = i;
    order[draft->released] = draft->count;
}

static void sort_numbers(struct packing_desk *desk, uint32_t count, uint32_t *numbers) {
    order_sort(desk->list, desk->scratch, count);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = desk->list[i].index;
}

static void fill_places(struct plan_place *places, const struct draft *draft,
                        const struct plan_slot *slots, struct packing_desk *desk) {
    for (uint32_t at = 0; at < draft->placed; at++)
        desk->list[at] = (struct ordered){desk->offsets[at], desk->numbers[at]};
    order_sort(desk->list, desk->scratch, draft->placed);
    for (uint32_t at = 0; at < draft->placed; at++) {
        uint32_t slot = desk->list[at].index;
        places[at] = (struct plan_place){slots[slot].offset, slot};
    }
}

static void fill_by_key(uint32_t *by_key, const struct draft *draft, struct packing_desk *desk) {
    for (uint32_t i = 0; i < draft->count; i++)
        desk->list[i] = (struct ordered){draft->slots[i].key, i};
    sort_numbers(desk, draft->count, by_key);
}

static void start_wanted(_Atomic(uint32_t) *wanted, const struct draft *draft) {
    for (uint32_t i = 0; i < draft->count; i++)
        atomic_init(&wanted[i], 0);
}

static struct plan *write_plan(const struct draft *draft, struct packing_desk *desk) {
    struct tables tables;
    struct plan *plan = plan_create(draft, &tables);
    if (!plan)
        return NULL;
    plan->slot_count = draft->count;
    plan->order_count = draft->released;
    plan->placed_count = draft->placed;
    plan->guest_count = draft->guests;
    plan->height_bytes = size_align(size_larger((size_t)desk->result.height, 1), EBB_PAGE);
    plan->confirmed = draft->confirmed;
    plan->coarse = draft->coarse;
    plan->several = draft->several;
    plan->apart = desk->apart;
    plan->hash = draft->hash;
    plan->max_live_bytes = (size_t)desk->result.max_live;
    fill_slots(tables.slots, draft, desk);
    fill_order(tables.order, draft);
    fill_places(tables.places, draft, tables.slots, desk);
    if (draft->keyed)
        fill_by_key(tables.by_key, draft, desk);
    start_wanted(tables.wanted, draft);
    plan->slots = tables.slots;
    plan->order = tables.order;
    plan->places = tables.places;
    plan->by_key = tables.by_key;
    plan->wanted = tables.wanted;
    return plan;
}

/* ---- packing ---- */

/* Of steps with keys what stays to the end is there from the beginning, too: in another order than
 * the plan's it would come before what its place has before it. False: there is no such block, or
 * nothing else. */
static bool set_apart(struct packing_desk *desk, const struct draft *draft) {
    uint32_t apart = 0;
    for (uint32_t at = 0; draft->keyed && at < draft->placed; at++) {
        if (draft->slots[desk->numbers[at]].rank != PLAN_NEVER)
            continue;
        desk->buffers[at].lower = 0;
        apart++;
    }
    return apart && apart < draft->placed;
}

/* Packs once more, with what stays to the end in places of its own, if that is hardly higher. A
 * search would only lower the other plan. */
static void pack_apart(struct packing_desk *desk, const struct draft *draft,
                       const struct packing_effort *effort) {
    struct packing_result before = desk->result;
    uint64_t most = before.height + before.height / APART_PART;
    struct packing_effort bounded = *effort;
    bounded.height_most = most < effort->height_most ? most : effort->height_most;
    if (effort->search_ns || !set_apart(desk, draft))
        return;
    error_mute();
    desk->apart = packing_solve(desk->buffers, draft->placed, &bounded, desk->workspace,
                                desk->offsets, &desk->result) == 0;
    error_unmute();
    desk->result.max_live = before.max_live;
    if (!desk->apart)
        set_lives(desk, draft);
}

static struct plan *pack(const struct draft *draft, const struct packing_effort *effort,
                         uint64_t height_most, struct packing_desk *desk) {
    uint64_t sayable = (uint64_t)UINT32_MAX * RANGE_GRANULE;
    uint64_t most = height_most < sayable ? height_most : sayable;
    struct packing_effort bounded = *effort;
    bounded.height_most = most;
    set_lives(desk, draft);
    if (packing_solve(desk->buffers, draft->placed, &bounded, desk->workspace, desk->offsets,
                      &desk->result) != 0)
        return NULL;
    if (desk->result.height > most) { /* a search may have ended so */
        error_set(EBB_E_SIZE, "a plan would need %llu bytes, above %llu",
                  (unsigned long long)desk->result.height, (unsigned long long)most);
        return NULL;
    }
    pack_apart(desk, draft, &bounded);
    CHECK_ALWAYS(packing_is_valid(desk->buffers, desk->offsets, draft->placed,
                                  desk->result.height, desk->workspace));
    return write_plan(draft, desk);
}

static uint64_t sum_of_rooms(const struct draft *draft) {
    uint64_t granules = 0;
    for (uint32_t i = 0; i < draft->count; i++)
        granules += draft->slots[i].room;
    return granules * RANGE_GRANULE;
}

struct plan *draft_plan(const struct draft *draft, const struct packing_effort *effort,
                        uint64_t height_most) {
    struct packing_desk desk;
    if (!draft->placed && !draft->tenured) {
        error_set(EBB_E_SIZE, "none of %u blocks has a place in a plan", draft->count);
        return NULL;
    }
    if (sum_of_rooms(draft) > PLAN_ROOMS_MOST) {
        error_set(EBB_E_SIZE, "%u blocks of a plan have %llu bytes together, at most %llu can be",
                  draft->placed, (unsigned long long)sum_of_rooms(draft),
                  (unsigned long long)PLAN_ROOMS_MOST);
        return NULL;
    }
    if (!desk_open(&desk, draft))
        return NULL;
    struct plan *plan = pack(draft, effort, height_most, &desk);
    ebb_region_close(desk.memory);
    return plan;
}
