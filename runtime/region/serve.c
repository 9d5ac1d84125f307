// SPDX-License-Identifier: Apache-2.0
/*
 * serve.c - slots are served and released, where the inline paths did not suffice.
 *
 * A request takes the next slot. If it does not fit, the slot is skipped and the request is served
 * by an ordinary lane: the plan goes on with the next one. A request with a key that comes for the
 * first time goes ahead to its slot; where another one is out of order the step goes on by the keys
 * alone (wander.h).
 *
 * Releases come in the planned order mostly. Another one is found by its address; one that is late
 * when its place is wanted is overdue (late.c).
 *
 * Invariant: rules R1 to R4 of track.h. A broken R1 or R2 ends the process.
 */
#include "base/check.h"
#include "base/error.h"
#include "region/count.h"
#include "region/remote.h"
#include "region/small.h"

#define SURVIVORS_VARY 2       /* so many times as large as the one before is still one */
#define BESIDE_PART_OF_LOOPS 4 /* where the plan goes on behind a loop that is longer */

/* ---- searching ---- */

/* The number of sorted places below `offset`, or at it and of slots before `id`. The search has
 * branches: steps repeat, so these are predicted, and halving without them takes longer. */
static uint32_t places_before(const struct plan *plan, uint32_t offset, uint32_t id) {
    const struct plan_place *low = plan->places;
    for (uint32_t count = plan->placed_count; count;) {
        uint32_t half = (count + 1) / 2;
        const struct plan_place *place = &low[half - 1];
        low += place->offset < offset || (place->offset == offset && place->slot < id) ? half : 0;
        count -= half;
    }
    return (uint32_t)(low - plan->places);
}

/* True if a slot below the cursor was served in this step; unknown for a block of no bytes. */
static bool was_served(const struct track *track, const struct track_slot *slot) {
    uint32_t bytes = track_asked(track, slot);
    return bytes && bytes <= slot->room;
}

/* The same where slots are served in any order. */
static struct track_slot *find_wandering(const struct track *track, uint32_t offset) {
    uint32_t id = wander_find(track, places_before(track->plan, offset, 0), offset);
    struct track_slot *slot = &track->slots[id];
    return id < track->plan->slot_count && track_is_live(track, slot) ? slot : NULL;
}

/* What is there although many others were to have its place before now. */
static struct track_slot *find_overdue(const struct track *track, uintptr_t addr) {
    for (uint32_t i = 0; i < track->overdue_count; i++) {
        struct track_slot *slot = &track->slots[track->overdue[i]];
        if (slot->addr == addr && track_is_live(track, slot))
            return slot;
    }
    return NULL;
}

/* Many slots may use one place in turn. No two of them live at once, so the live one is the latest
 * that was served. Where many behind it were not, it is overdue by now. */
struct track_slot *track_find(const struct track *track, uintptr_t addr) {
    const struct plan *plan = track->plan;
    struct track_slot *expected = &track->slots[plan->order[track->passed]]; /* also while shut */
    if (expected->addr == addr && track_is_live(track, expected))
        return expected;
    uintptr_t distance = addr < track->base ? SIZE_MAX : addr - track->base;
    if (distance >= plan->height_bytes || distance % RANGE_GRANULE)
        return NULL;
    uint32_t offset = (uint32_t)(distance / RANGE_GRANULE);
    if (track->wander.on)
        return find_wandering(track, offset);
    uint32_t at = places_before(plan, offset, track_cursor(track));
    for (uint32_t looks = 0; at > 0; at--, looks++) {
        struct track_slot *slot = &track->slots[plan->places[at - 1].slot];
        if (looks == TRACK_FAR && find_overdue(track, addr))
            return find_overdue(track, addr);
        if (slot->addr == addr && track_is_live(track, slot))
            return slot;
        if (slot->addr != addr || was_served(track, slot))
            break;
    }
    return NULL;
}

/* The live slot around an address, for messages only. */
static const struct track_slot *find_around(const struct track *track, uintptr_t addr) {
    uint32_t cursor = track_cursor(track);
    for (uint32_t i = 0; i < cursor; i++) {
        const struct track_slot *slot = &track->slots[i];
        if (track_is_live(track, slot) && addr >= slot->addr && addr - slot->addr < slot->room)
            return slot;
    }
    return NULL;
}

int track_no_block(const struct track *track, uintptr_t addr) {
    const struct track_slot *slot = find_around(track, addr);
    const char *name = track->region->name;
    if (slot && slot->bytes && addr - slot->addr < slot->bytes)
        return error_set(EBB_E_INTERIOR, "%p is inside a block of region '%s', %zu bytes from %p",
                         (void *)addr, name, addr - slot->addr,
                         (void *)slot->addr);
    return error_set(EBB_E_RELEASED, "%p is in free memory of region '%s': released before",
                     (void *)addr, name);
}

/* ---- releasing ---- */

void track_release(struct track *track, struct track_slot *slot) {
    uintptr_t addr = slot->addr;
    if (track_may_peak(track))
        track_note_peaks(track);
    track_leave(track, slot);
    region_poison(track->region, addr, slot->room);
    if (track->taken_over)
        track_leave_stretch(track, addr);
    if (track->wander.on) {
        wander_drop(track, (uint32_t)(slot - track->slots));
        return;
    }
    track->due.strayed |= slot != &track->slots[track->plan->order[track->passed]];
    track_pass_ended(track);
    if (track->overdue_count) {
        track_prune_overdue(track);
        track_set_paths(track);
    }
}

void track_hold(struct track *track, uintptr_t addr, bool held) {
    struct track_slot *slot = track_find(track, addr);
    bool was_held = (slot->align & TRACK_HELD) != 0;
    if (held == was_held)
        return;
    slot->align ^= TRACK_HELD;
    track->held = held ? track->held + 1 : track->held - 1;
    track_set_paths(track);
}

int track_resize(struct track *track, struct track_slot *slot, size_t bytes) {
    struct region *region = track->region;
    uintptr_t addr = slot->addr;
    if (bytes > slot->room)
        return error_set(EBB_E_NO_ROOM, "block %p: %zu bytes asked, %u are there", (void *)addr,
                         bytes, slot->room);
    track_look(track);
    flow_change(&region->requested, slot->bytes, bytes);
    region->calm = 0;
    if (track->sizes_wanted && bytes < slot->bytes) {
        slot->align |= TRACK_TRIMMED;
        track->had_grown = track->had_trimmed = true;
    }
    slot->bytes = (uint32_t)bytes;
    if (!region->hollow) {
        poison_unused(addr, slot->room);
        poison_opened(addr, bytes);
    }
    return 0;
}

/* ---- serving ---- */

/* The plan does not lead anywhere. */
static void give_up(struct track *track) {
    track->serving = false;
    track->seen.given_up = true;
}

/* The slot is the request's, and its place is free. */
static void *fill(struct track *track, struct track_slot *slot, size_t bytes) {
    CHECK_ALWAYS(bytes <= slot->room); /* R2 */
    slot->mark = track->epoch;
    slot->bytes = (uint32_t)bytes;
    track->came_bytes += bytes;
    if (!track->region->hollow)
        poison_opened(slot->addr, bytes);
    track->misses = 0;
    if (track->coarse)
        track->region->calm = 0; /* small blocks that leave look at the peaks */
    return (void *)slot->addr;
}

static void *serve(struct track *track, struct track_slot *slot, size_t bytes) {
    uint32_t id = (uint32_t)(slot - track->slots);
    CHECK_ALWAYS(id >= track->served_to && !track_is_live(track, slot)); /* R1 */
    void *block = fill(track, slot, bytes);
    track->served_to = id + 1;
    due_note_size(track, id);
    return block;
}

/* What came has not got its slot, and is too large for it. */
static void note_needed(struct track *track, struct track_slot *slot, size_t bytes) {
    slot->mark = track->epoch | TRACK_GONE;
    slot->bytes = (uint32_t)size_smaller(bytes, UINT32_MAX);
    track->had_grown = true;
}

/* The slot is too small. */
static void note_growth(struct track *track, struct track_slot *slot, size_t bytes) {
    note_needed(track, slot, bytes);
    track->seen.grown++;
}

/* So much is alive beside the plan that the arena's gaps are wanted for it. A step that wanders may
 * have left the plan altogether, or find its slots elsewhere: what it was served tells. */
static bool has_outgrown(struct track *track, size_t bytes) {
    track_look(track);
    const struct plan *plan = track->plan;
    size_t beside = track->region->large_used - track->live_rooms;
    beside -= size_smaller(beside, track->seen.turned_away_bytes);
    if (track->wander.on && beside <= track->seen.hit_bytes)
        return false;
    return size_larger(beside, bytes) >
           plan->height_bytes / (plan->by_key ? BESIDE_PART_OF_LOOPS : TRACK_BESIDE_PART);
}

/* The slot is next for this request; it is served or skipped. */
static void *use_slot(struct track *track, struct track_slot *slot, size_t bytes, size_t align) {
    bool aligned = ((slot->addr | align) & (align - 1)) == 0;
    if (slot->align & TRACK_UNPLACED)
        return NULL;
    if (bytes > slot->room) {
        note_growth(track, slot, bytes);
        return NULL;
    }
    if (!aligned || !track->serving) {
        track->seen.strange += !aligned;
        return NULL;
    }
    bool late = track_is_late(track, slot);
    if (late && !track_settle(track, slot)) {
        give_up(track);
    } else if (!late || track_is_apart(track, slot)) {
        return serve(track, slot, bytes);
    }
    track->seen.strange++;
    return NULL;
}

/* ---- the slow way to a slot ---- */

static void count_miss(struct track *track, size_t bytes) {
    track->seen.missed++;
    track->seen.missed_bytes += bytes;
}

/* A takeover asks which slots are live. */
static void note_miss(struct track *track, size_t bytes, bool turned_away) {
    due_settle(track);
    track->open = false;
    count_miss(track, bytes);
    track->seen.turned_away_bytes += turned_away ? bytes : 0;
    track->misses = track->missed_at == track->cursor ? track->misses + 1 : 1;
    if (!track->arena)
        return;
    if (!turned_away && !track->tight && has_outgrown(track, bytes))
        track->serving = !track_outgrow(track, bytes) && track->serving;
    else if (track->misses > TRACK_MISSES_MOST && !track->wander.on)
        give_up(track);
}

/* What the plan had in mind for a slot in the parent. */
static size_t room_above(const struct track *track, uint32_t id) {
    return track->plan->slots[id].offset * RANGE_GRANULE;
}

/* Hardly one of the survivors that the slot was learnt from: the step does something else. If it
 * survives all the same, they have grown. */
bool track_refuses(const struct track *track, uint32_t id, size_t bytes) {
    return bytes > EBB_PAGE && track->slots[id].align & TRACK_TENURED &&
           size_smaller(bytes, PLAN_ROOM_MOST) / SURVIVORS_VARY > room_above(track, id);
}

/* The slot's block is to be in the parent. */
static void *use_above(struct track *track, struct track_slot *slot, size_t bytes, size_t align,
                       bool tenure) {
    uint32_t id = (uint32_t)(slot - track->slots);
    bool guest = (slot->align & TRACK_GUEST) != 0;
    if (guest && bytes > room_above(track, id))
        note_growth(track, slot, bytes);
    if (!tenure)
        return NULL;
    if (track_refuses(track, id, bytes)) {
        note_needed(track, slot, bytes);
        track->had_refused = true;
        return NULL;
    }
    void *block = track->serving ? track_bear(track, bytes, align, guest) : NULL;
    if (!block)
        return NULL;
    slot->mark = track->epoch | TRACK_GONE;
    slot->bytes = (uint32_t)size_smaller(bytes, UINT32_MAX);
    return block;
}

/* The slots from the cursor up to `to` are not served. */
static void skip(struct track *track, uint32_t to) {
    const struct track_slot *slots = track->slots;
    tide_skip(&track->blocks, to - track->cursor);
    tide_skip(&track->granules, slots[to].before - slots[track->cursor].before);
    track->cursor = to;
}

static void *miss(struct track *track, size_t bytes) {
    track->seen.strange++;
    note_miss(track, bytes, false);
    track->missed_at = track->cursor;
    return NULL;
}

static void *place_next(struct track *track, size_t bytes, size_t align, bool tenure) {
    uint32_t id = track->cursor;
    if (id >= track->plan->slot_count)
        return miss(track, bytes);
    struct track_slot *slot = &track->slots[id];
    bool guest = (slot->align & TRACK_GUEST) != 0;
    bool above = guest || (slot->align & TRACK_TENURED), serving = track->serving;
    slot->bytes = 0; /* it has not been served, until it is */
    void *block = above ? use_above(track, slot, bytes, align, tenure)
                        : use_slot(track, slot, bytes, align);
    if (!block && !(slot->align & TRACK_UNPLACED)) /* that one goes where it is meant to */
        note_miss(track, bytes, guest && serving); /* else the parent was not asked */
    track->due.strayed |= !block && slot->room;
    if (!block || above)
        skip(track, id + 1);
    track->cursor = track->missed_at = id + 1;
    return block;
}

/* ---- keys ---- */

/* The slot that the order has for a request that the next one is not for: the first one with the
 * key, if that is still to come: what lies between was left out. slot_count: none. */
static uint32_t ahead_in_order(const struct track *track, uint32_t key) {
    uint32_t first = plan_first_with(track->plan, key);
    return first >= track->cursor ? first : track->plan->slot_count;
}

static bool is_next(const struct track *track, uint32_t key) {
    const struct plan *plan = track->plan;
    return track->cursor < plan->slot_count &&
           (!key || plan->slots[track->cursor].key == key);
}

/* However many they are, none of them is touched but the first. Where releases are passed, those of
 * so many need not be, if there is memory. */
static void leave_out(struct track *track, uint32_t to) {
    if (to - track->cursor > TRACK_FAR)
        (void)wander_prepare(track);
    struct track_slot *first = &track->slots[track->cursor];
    first->mark = track->epoch | TRACK_LEFT;
    first->bytes = to;
    track->left_out += to - track->cursor;
    skip(track, to);
}

/* True if the next slot, or one ahead, which is the next one then, is the request's. */
static bool is_in_order(struct track *track, uint32_t key) {
    uint32_t id = is_next(track, key) ? track->cursor : ahead_in_order(track, key);
    const struct track_slot *slot = &track->slots[id];
    if (id == track->plan->slot_count)
        return false;
    if (id > track->cursor) /* before releases are passed that are those of slots between */
        leave_out(track, id);
    bool late = track->serving && track_is_late(track, slot);
    return !(slot->room && late) || (track_settle(track, slot) && track_is_apart(track, slot));
}

/* The cursor tells nothing any more: it is behind all slots. */
static void leave_order(struct track *track) {
    uint32_t count = track->plan->slot_count;
    if (!wander_begin(track))
        return;
    track->overdue_count = 0;
    skip(track, count);
}

/* True if the request is not for the next slot, but for one with its key, wherever that is. */
static bool wanders(struct track *track, uint32_t key) {
    if (track->wander.on || !track->plan->by_key)
        return track->wander.on;
    bool in_order = is_in_order(track, key);
    if (!in_order && track->serving)
        leave_order(track);
    return !in_order;
}

/* The plan does not know the key, so the slot has another one. */
static bool is_strange(const struct track *track, uint32_t id, uint32_t key) {
    const struct plan *plan = track->plan;
    return plan->slots[id].key != key && plan_first_with(plan, key) == plan->slot_count;
}

static void *serve_wandering(struct track *track, uint32_t id, size_t bytes, uint32_t key) {
    struct track_slot *slot = &track->slots[id];
    track->seen.borrowed_bytes += is_strange(track, id, key) ? bytes : 0;
    track->wander.blocks++;
    track->wander.granules += slot->room / RANGE_GRANULE;
    wander_add(track, id);
    return fill(track, slot, bytes);
}

static void *place_by_key(struct track *track, size_t bytes, size_t align, uint32_t key,
                          bool tenure) {
    bool serves = track->wander.on && track->serving;
    uint32_t count = track->plan->slot_count;
    uint32_t id = serves ? wander_seek(track, bytes, align, key) : count;
    track->seen.longer |= serves && key && id == count;
    if (id == count)
        return miss(track, bytes);
    struct track_slot *slot = &track->slots[id];
    if (slot->room)
        return serve_wandering(track, id, bytes, key);
    if (slot->align & TRACK_UNPLACED)
        return NULL;
    void *block = use_above(track, slot, bytes, align, tenure);
    if (!block)
        note_miss(track, bytes, (slot->align & TRACK_GUEST) != 0);
    return block;
}

static void *place(struct track *track, size_t bytes, size_t align, uint32_t key, bool tenure) {
    return wanders(track, key) ? place_by_key(track, bytes, align, key, tenure)
                               : place_next(track, bytes, align, tenure);
}

/* The large lane has the arena, or the pool, and the step does something else than the plan: no
 * slot tells anything of it any more. A plan with keys may go on elsewhere. */
static bool is_lost(const struct track *track) {
    return !track->arena && track->seen.strange && !track->plan->by_key;
}

void *track_place(struct track *track, size_t bytes, size_t align, uint32_t key, bool tenure) {
    remote_look(track->region);
    if (!track->shadowing)
        return NULL;
    if (is_lost(track)) {
        count_miss(track, bytes);
        return NULL;
    }
    CHECK(!track->due.on);
    if (track->due.unmarked && (key || track->slots[track_cursor(track)].room))
        due_settle(track);
    track->cursor = track_cursor(track);
    track->open = false;
    if (track->served_to < track->cursor)
        track->served_to = track->cursor; /* what was served inline */
    void *block = place(track, bytes, align, key, tenure);
    track_set_paths(track);
    return block;
}

void track_pass(struct track *track, size_t bytes, size_t align, uint32_t key, bool tenure) {
    if (!key && track_leaves_next(track)) {
        track_pass_next(track, 0);
        return;
    }
    bool serving = track->serving;
    track->serving = false;
    (void)track_place(track, bytes, align, key, tenure);
    track->serving = serving && track->arena && !track->seen.given_up;
    track_set_paths(track);
}

/* ---- what cannot be had ---- */

/* An upper bound of the free bytes in the region's pages. */
static size_t free_in(struct region *region) {
    small_fold(region);
    return count_waste(region);
}

/* True if so many bytes are nowhere to be had: a program may try that, and do without. */
static bool is_hopeless(const struct track *track, size_t bytes) {
    struct region *region = track->region;
    size_t above = region->parent ? free_in(region->parent) : 0; /* it may be born there */
    return !pool_could_have(region->pool, bytes, free_in(region) + above);
}

/* True if the next slot is one of the parent's and the request may be meant for it. */
static bool may_be_above(const struct track *track, size_t bytes) {
    uint32_t id = track_cursor(track), align = track->slots[id].align;
    return align & TRACK_GUEST || (align & TRACK_TENURED && !track_refuses(track, id, bytes));
}

enum track_turn track_turn(struct track *track, size_t bytes, uint32_t key) {
    track->tight = track->shadowing && bytes > track->slots[track_cursor(track)].room &&
                   !pool_could_have(track->region->pool, size_align(bytes, EBB_PAGE), 0);
    if (!track->tight)
        return TRACK_FIRST;
    bool by_key = track->wander.on || (key && track->plan->by_key);
    if (!by_key && !may_be_above(track, bytes))
        return TRACK_LAST;
    return is_hopeless(track, bytes) ? TRACK_TOLD : TRACK_FIRST;
}

struct track_missed track_missed(const struct track *track) {
    const struct track_seen *seen = &track->seen;
    return (struct track_missed){.blocks = seen->missed, .bytes = seen->missed_bytes,
                                 .turned_away_bytes = seen->turned_away_bytes,
                                 .grown = seen->grown, .strange = seen->strange,
                                 .cursor = track_cursor(track),
                                 .passed = track->passed, .missed_at = track->missed_at,
                                 .misses = track->misses,
                                 .had_grown = track->had_grown, .seen_longer = seen->longer};
}

/* No slot was passed: neither is it one more in a row, nor anything that the plan does not know. */
static void forget_try(struct track *track, const struct track_missed *before) {
    track->missed_at = before->missed_at;
    track->misses = before->misses;
    track->seen.strange = before->strange;
}

/* The slot that was skipped has no place in the arena that others wait for: it is the next one
 * again. Others' releases may have passed it in the order meanwhile. */
static void step_back(struct track *track, const struct track_missed *before) {
    track->blocks.from--;
    track->blocks.calm--;
    track->cursor = before->cursor;
    track->passed = before->passed;
    forget_try(track, before);
    track_pass_ended(track);
}

/* A slot was passed, for what nobody has got. */
static void unpass(struct track *track, const struct track_missed *before) {
    due_settle(track);
    track->cursor = track_cursor(track);
    track->open = false;
    track->had_grown = before->had_grown;
    struct track_slot *passed = &track->slots[track->cursor - 1];
    passed->mark = passed->bytes = 0;
    if (!passed->room && track->cursor == before->cursor + 1)
        step_back(track, before);
    track_set_paths(track);
}

void track_unmiss(struct track *track, const struct track_missed *before) {
    track->seen.missed = before->blocks;
    track->seen.missed_bytes = before->bytes;
    track->seen.turned_away_bytes = before->turned_away_bytes;
    track->seen.grown = before->grown;
    track->seen.longer = before->seen_longer;
    if (track_cursor(track) != before->cursor && !track->wander.on)
        unpass(track, before);
    else
        forget_try(track, before);
}
