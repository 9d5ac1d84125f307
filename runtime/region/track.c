// SPDX-License-Identifier: Apache-2.0
/*
 * track.c - tracks: their memory, and how they are tied to a region and untied.
 *
 * A track outlives the regions that it is tied to, so that in a steady step nothing is acquired
 * but the arena's pages, which are hot. Invariant: an untied track serves nothing; the inline
 * paths of a tied one are open only while nothing rare is the case (track_set_paths()).
 */
#include "region/track.h"
#include "base/check.h"
#include "base/error.h"
#include "region/block.h"
#include "region/hold.h"
#include "region/runs.h"
#include "region/small.h"

#include <string.h>

#define WELL_PART 8 /* a step did well that missed less than this part of what was served */

/* What the inline paths find where they shall find nothing. */
static struct track_slot nothing_fits = {.passed = PLAN_NEVER};
static const uint32_t nothing_expected[1]; /* number 0: not live */

/* ---- memory ---- */

static void clear_paths(struct track *track) {
    track->next = track->slots = &nothing_fits;
    track->expected = nothing_expected;
    track->looked = NULL;
}

struct track *track_create(ebb_region memory) {
    struct track *track = ebb_region_alloc_zeroed(memory, sizeof *track, EBB_UNIT);
    if (track)
        clear_paths(track);
    return track;
}

static void forget_plan(struct track *track) {
    due_forget(track);
    wander_forget(track);
    plan_leave(track->plan);
    if (track->slots_limit)
        ebb_region_close(track->slots_memory);
    track->plan = NULL;
    track->slots_limit = 0;
    track->had_grown = track->had_trimmed = false;
    clear_paths(track);
}

void track_forget_record(struct track *track) {
    if (track->record_limit)
        ebb_region_close(track->record_memory);
    if (track->record_limit && track->seen.recorded)
        track->record_before = track->record_lost ? 0 : track->record_count;
    track->record = NULL;
    track->record_limit = track->record_count = 0;
}

void track_destroy(struct track *track) {
    track_rest(track);
    piece_give_up(&track->store);
    track_forget_record(track);
    forget_plan(track);
}

static struct track_slot slot_of(const struct plan_slot *from, uintptr_t base) {
    struct track_slot slot = {.addr = base};
    slot.addr += from->room ? (size_t)from->offset * RANGE_GRANULE : 0;
    slot.room = (uint32_t)(from->room * RANGE_GRANULE);
    slot.passed = from->room ? from->passed : PLAN_NEVER;
    slot.align = (uint32_t)1 << from->align_log2;
    if (!from->room)
        slot.align |= from->tenured ? TRACK_TENURED
                      : from->guest ? TRACK_GUEST
                                    : TRACK_UNPLACED;
    return slot;
}

static void copy_slots(struct track *track, const struct plan *plan) {
    uint32_t before = 0;
    for (uint32_t i = 0; i < plan->slot_count; i++) {
        track->slots[i] = slot_of(&plan->slots[i], track->base);
        track->slots[i].before = before;
        before += plan->slots[i].room;
    }
    track->slots[plan->slot_count] = nothing_fits;
    track->slots[plan->slot_count].before = before;
}

/* The arena is elsewhere than last time. */
static void move_slots(struct track *track, uintptr_t base) {
    uintptr_t distance = base - track->base;
    for (uint32_t i = 0; i < track->plan->slot_count && distance; i++)
        track->slots[i].addr += distance;
    track->base = base;
}

int track_follow(struct track *track, struct plan *plan) {
    if (plan && plan->slot_count >= track->slots_limit) {
        size_t count = (size_t)plan->slot_count + 1;
        ebb_region memory;
        void *slots = plan_pool_take("slots", count * sizeof *track->slots, &memory);
        if (!slots)
            return error_latest();
        forget_plan(track);
        track->slots = slots;
        track->slots_memory = memory;
        track->slots_limit = (uint32_t)count;
    }
    track_forget_record(track);
    if (!plan) {
        forget_plan(track);
        plan_pool_rest(0);
        return 0;
    }
    plan_follow(plan);
    due_forget(track);
    wander_forget(track);
    copy_slots(track, plan);
    plan_leave(track->plan);
    track->plan = plan;
    track->had_grown = track->had_trimmed = false;
    return 0;
}

/* ---- tying ---- */

/* The next place of the order, or, while shut, the one behind the last, which is no slot's. */
static const uint32_t *expected_now(const struct track *track) {
    const struct plan *plan = track->plan;
    if (!track->arena && !track->taken_over)
        return nothing_expected; /* and nothing is live */
    return plan->order + (track->expecting ? track->passed : plan->order_count);
}

/* Nothing rare is the case; a track that has an arena is tied. */
static bool is_quiet(const struct track *track) {
    return !EBB_POISON && track->arena && !track->taken_over && !track->held &&
           !track->wander.on && !track_is_behind(track);
}

void track_set_paths(struct track *track) {
    const struct region *region = track->region;
    bool quiet = is_quiet(track);
    track->cursor = track_cursor(track);
    track->open = quiet && track->serving && !track->overdue_count && !track->coarse &&
                  !region->shared; /* heads go elsewhere: safe.c */
    track->next = track->open ? &track->slots[track->cursor] : &nothing_fits;
    /* where steps below have blocks, those in the arena may be theirs */
    track->expecting = quiet && !region_is_leaving(region) && !region->bearers;
    track->expected = expected_now(track);
    track->looked = NULL;
}

/* The arena fills a run of the region. */
static void enter_run(struct track *track, struct region *region, struct ebb_piece *run) {
    struct ebb_piece *arena = piece_take(&track->store), *end = piece_take(&track->store);
    *arena = (struct ebb_piece){.addr = run->addr, .bytes = run->bytes, .after = end};
    arena->state = PIECE_ARENA;
    piece_set_owner(arena, region->owner);
    *end = (struct ebb_piece){.addr = piece_end(run), .before = arena, .end.run = run};
    end->state = PIECE_END;
    run->run.first = arena;
    run->run.end = end;
    piece_push(&region->runs, run);
    region->run_count++;
    meter_add(&region->reserved, run->bytes);
    track->arena = arena;
    track->span = run->bytes;
}

/* Two entries, nearly always those that the arena had before. */
static bool has_entries(struct track *track) {
    if (track->store.ready >= 2)
        return true;
    error_mute();
    bool has = piece_prepare(&track->store, 2);
    error_unmute();
    return has;
}

static bool take_arena(struct track *track, struct region *region) {
    struct ebb_piece *named = track->named;
    bool same;
    if (!has_entries(track))
        return false;
    struct ebb_piece *run = pool_retake(region->pool, &track->kept, region->owner,
                                        track->plan->height_bytes, &same);
    if (!run)
        return false;
    enter_run(track, region, run);
    if (!same || named != track->arena) /* else block_at says so already */
        range_name_window(track->arena);
    track->named = track->arena;
    move_slots(track, run->addr);
    return true;
}

/* The arena's entries go back to the track; returns its run, which is the region's now. */
struct ebb_piece *track_leave_run(struct track *track) {
    struct ebb_piece *arena = track->arena, *run = arena->after->end.run;
    track->arena = NULL;
    piece_give(&track->store, arena->after);
    piece_give(&track->store, arena);
    return run;
}

/* Somebody outside needs bytes of it. Who has given them back does not, though nobody has looked;
 * after a takeover they may be those of any block. */
static bool is_held(const struct track *track) {
    if (!track->held && !track->taken_over)
        return false;
    for (struct ebb_piece *at = track->region->holds; at; at = at->next) {
        struct hold *hold = hold_of(at);
        bool inside = hold->block && (track->taken_over || hold->block->state == PIECE_ARENA);
        if (inside && !hold_is_dropped(hold))
            return true;
    }
    return false;
}

/* The region ends: nothing in the arena is needed any more, or only what is held. Returns the run
 * if it is to be kept. */
static struct ebb_piece *return_arena(struct track *track) {
    struct region *region = track->region;
    if (!track->arena && !track->taken_over)
        return NULL;
    bool held = is_held(track);
    /* after a takeover the region's lane has places in it, which are forgotten with all others */
    struct ebb_piece *run = track->arena ? track_leave_run(track)
                                         : runs_around(region, track->base);
    if (held) { /* it ends with the region's other runs, or stays after a reset as they do */
        runs_unmark(region, run);
        pool_leave(region->pool, &track->kept);
        return NULL;
    }
    piece_unlink(&region->runs, run);
    region->run_count--;
    meter_subtract(&region->reserved, run->bytes);
    return run;
}

bool track_holds(const struct track *track) {
    return track->plan || track->record_limit || track->kept.run;
}

void track_rest(struct track *track) {
    pool_unkeep(&track->kept);
}

/* No slot is live from here on. */
static void new_epoch(struct track *track) {
    uint32_t count = track->plan ? track->plan->slot_count : 0;
    bool last = track->epoch > UINT32_MAX - 2 * TRACK_EPOCH;
    /* with keys it is clear which sizes are of an epoch before */
    bool grown = track->had_grown && (!count || !track->plan->by_key);
    track->epoch = last ? TRACK_EPOCH : track->epoch + TRACK_EPOCH;
    bool anew = grown || track->had_trimmed || track->held || last;
    if (anew)
        track->due.in_order = track->due.sizes_right = false;
    for (uint32_t i = 0; i < count && anew; i++) {
        track->slots[i].mark = track->slots[i].bytes = 0;
        track->slots[i].align &= ~(TRACK_LISTED | TRACK_HELD | TRACK_TRIMMED);
    }
    track->had_grown = track->had_trimmed = false;
}

static void reset(struct track *track) {
    new_epoch(track);
    memset(&track->seen, 0, sizeof track->seen);
    track->arena = NULL;
    track->passed = track->cursor = track->served_to = track->overdue_count = 0;
    track->left_out = 0;
    track->misses = track->missed_at = track->held = 0;
    track->wander.on = false;
    track->wander.blocks = track->wander.granules = 0;
    track->record_count = track->released = 0;
    track->open = track->serving = track->shadowing = track->recording = false;
    track->expecting = false;
    track->taken_over = track->record_lost = track->noted_small = track->had_refused = false;
    track->came_bytes = 0;
    track->blocks = track->granules = track->bytes = (struct track_tide){0};
    track->live_rooms = track->above_now = track->guest_used = track->left_above = 0;
    track->gapless = (struct track_gapless){.bytes = SIZE_MAX};
    track->sees_above = false;
}

void track_tie(struct track *track, struct region *region, bool serve, bool record) {
    bool plain = !region->metered && !region->measuring;
    CHECK(!track->region && !region->track && !flow_now(&region->counted));
    reset(track);
    bool follows = serve && plain && track->plan && !region->sealed;
    track->serving = track->shadowing = follows && take_arena(track, region);
    track->recording = record && plain && !track->serving;
    track->coarse = track->serving && track->plan->coarse;
    track->seen.served = track->serving;
    track->seen.unserved = follows && !track->serving;
    track->seen.recorded = track->recording;
    if (!track->serving && !track->recording)
        return;
    track->region = region;
    region->track = track;
    if (track->recording)
        block_set_quick(region);
    region->calm = 0;
    windows_set_inline(region);
    track_set_paths(track);
    track_note_above(track);
    track->above = size_larger(track->above, track->above_now);
    due_begin(track);
}

/* Returns what return_arena() does. */
static struct ebb_piece *untie(struct track *track) {
    due_end(track);
    track->due.unmarked = false;
    track_look(track);
    struct ebb_piece *run = return_arena(track);
    track->region->track = NULL;
    track->region = NULL;
    track->arena = NULL;
    track->cursor = track_cursor(track); /* for reports: how far the step had come */
    track->serving = track->shadowing = track->recording = track->open = false;
    track->expecting = false;
    track->next = &nothing_fits;
    track->expected = nothing_expected;
    track->looked = NULL;
    return run;
}

/* A plan for steps that differ has more than each of them. */
static bool is_complete(const struct track *track) {
    const struct track_seen *seen = &track->seen;
    return track->plan && seen->served && !seen->strange && !track->wander.on &&
           (track->plan->several || track_cursor(track) == track->plan->slot_count);
}

/* What the step has left out behind the last slot: nothing was asked for there. With keys that is
 * clear anyway. */
static void forget_rest(struct track *track) {
    bool forgets = track->seen.complete && !track->plan->by_key;
    uint32_t count = forgets ? track->plan->slot_count : 0;
    for (uint32_t i = track_cursor(track); i < count; i++)
        track->slots[i].bytes = 0;
}

static void detach(struct track *track) {
    struct region *region = track->region;
    struct ebb_piece *run = untie(track);
    if (run)
        pool_keep(region->pool, run, &track->kept);
    block_set_quick(region);
    windows_set_inline(region);
}

/* Nobody looks for the entries of small blocks any more, unless some were born here for steps
 * below. What was promoted where it is are large ones, whose notes lie elsewhere. */
static void forget_notes(const struct region *region) {
    if (region->bearers)
        return;
    for (const struct ebb_piece *run = region->runs; run; run = run->next)
        range_forget_notes(run->addr, run->bytes);
}

static void note_refused(struct track *track) {
    uint32_t cursor = track->had_refused ? track_cursor(track) : 0;
    for (uint32_t i = 0; i < cursor; i++)
        if (track_has_refused(track, i))
            track->seen.refused_bytes += track_asked(track, &track->slots[i]);
}

/* Few steps that go this well enlarge a plan; one that does will have room for all of them. Others
 * would add up sizes that make it too high. A step under another's plan tells nothing of those that
 * it is for. */
static void note_wanted(struct track *track) {
    const struct track_seen *seen = &track->seen;
    bool well = seen->complete && seen->missed_bytes < seen->hit_bytes / WELL_PART;
    bool tells = track->had_grown && well && !track->sizes_wanted;
    uint32_t cursor = tells ? track_cursor(track) : 0;
    for (uint32_t i = track_visited(track, 0, cursor); i < cursor;
         i = track_visited(track, i + 1, cursor)) {
        const struct track_slot *slot = &track->slots[i];
        if (slot->room && slot->bytes > slot->room)
            plan_want(track->plan, i, slot->bytes);
    }
}

void track_finish(struct track *track, struct track_seen *seen) {
    if (track->region) {
        remote_look(track->region);
        due_finish(track);
        if (track->recording && track->noted_small)
            forget_notes(track->region);
        track_look(track);
        track->seen.complete = is_complete(track);
        forget_rest(track);
        track->due.in_order = track->seen.complete && !track->due.strayed && !track->had_grown &&
                              !track->held;
        note_refused(track);
        note_wanted(track);
        track_note_lost(track);
        track_note_above(track);
        track->above = track->above_now;
        track->cursor = track_cursor(track);
        track->serving = track->shadowing = track->recording = track->open = false;
        track_set_paths(track);
        if (!track->seen.served)
            detach(track);
    }
    *seen = track->seen;
}

/* ---- what a region does ---- */

void track_stop(struct track *track) {
    if (!track->shadowing && !track->recording)
        return;
    track->seen.given_up = true;
    track->cursor = track_cursor(track);
    track->open = track->serving = track->shadowing = false;
    track_set_paths(track);
}

static void forget(struct track *track) {
    track->seen.given_up = true;
    track->record_lost = true;
    track_end_born(track);
}

void track_forget(struct track *track) {
    forget(track);
    detach(track);
}

struct ebb_piece *track_part(struct track *track) {
    forget(track);
    return untie(track);
}

/* How far a step has come along its plan. */
struct reach {
    uint64_t blocks, granules, bytes;
};

static struct reach reach_now(const struct track *track) {
    return (struct reach){track_came_blocks(track), track_came_granules(track), track->came_bytes};
}

/* The same, asked by any thread while another is at work in the step: each field is read once, and
 * slots where they are. False: they do not go together, or were gathered meanwhile. Where slots
 * were is memory that can be read, whatever is there now. */
static bool reach_from_outside(const volatile struct track *track, struct reach *reach) {
    const struct track_slot *slots = track->slots;
    uintptr_t from = (uintptr_t)slots, next = (uintptr_t)track->next;
    size_t limit = track->slots_limit, cursor = track->cursor;
    size_t place = !track->open ? cursor : next < from ? limit : (next - from) / sizeof *slots;
    if (place >= limit || slots == &nothing_fits || slots != track->slots)
        return false;
    *reach = (struct reach){place + track->wander.blocks,
                            slots[place].before + track->wander.granules, track->came_bytes};
    return reach->blocks >= track->blocks.from && reach->granules >= track->granules.from &&
           reach->bytes >= track->bytes.from;
}

/* What came and left since it was gathered. Unless the plan is coarse every block of the region was
 * seen, so all others are in its counters. */
static void include(const struct track *track, const struct reach *reach, struct flow *counted,
                    struct flow *requested, struct flow *used) {
    if (!track->coarse) {
        flow_raise(counted, track->blocks.most);
        flow_raise(requested, track->bytes.most);
        flow_raise(used, track->granules.most * RANGE_GRANULE);
    }
    flow_leave(counted, tide_left(&track->blocks));
    flow_leave(requested, tide_left(&track->bytes));
    flow_leave(used, tide_left(&track->granules) * RANGE_GRANULE);
    flow_bring(counted, reach->blocks - track->blocks.from);
    flow_bring(requested, reach->bytes - track->bytes.from);
    flow_bring(used, (reach->granules - track->granules.from) * RANGE_GRANULE);
}

void track_include(const struct track *track, struct flow *counted, struct flow *requested,
                   struct flow *used) {
    struct reach reach;
    if (!reach_from_outside(track, &reach))
        return;
    include(track, &reach, counted, requested, used);
    if (track->due.on)
        due_include(track, counted, requested, used);
}

/* Nothing came or left since it was gathered last. */
static bool is_gathered(const struct track *track) {
    const struct track_tide *blocks = &track->blocks;
    return track_came_blocks(track) == blocks->from && blocks->calm == blocks->from;
}

static void restart(struct track_tide *tide, uint64_t came) {
    *tide = (struct track_tide){.from = came, .calm = came};
}

static __attribute__((noinline)) void gather(struct track *track) {
    struct region *region = track->region;
    if (!track->coarse)
        track_note_peaks(track);
    struct reach reach = reach_now(track);
    uint64_t came = (reach.granules - track->granules.from) * RANGE_GRANULE;
    uint64_t left = tide_left(&track->granules) * RANGE_GRANULE;
    include(track, &reach, &region->counted, &region->requested, &region->used);
    region->large_used = region->large_used + came - left;
    track->live_rooms = track->live_rooms + came - left;
    if (left || track->gapless.alone)
        track->gapless = (struct track_gapless){.bytes = SIZE_MAX};
    track->seen.hits += reach.blocks - track->blocks.from;
    track->seen.hit_bytes += reach.bytes - track->bytes.from;
    restart(&track->blocks, reach.blocks);
    restart(&track->granules, reach.granules);
    restart(&track->bytes, reach.bytes);
}

void track_gather(struct track *track) {
    if (!is_gathered(track))
        gather(track);
}

void track_look(struct track *track) {
    small_fold(track->region);
}

void track_each_live(const struct track *track, track_visit *visit, void *context) {
    uint32_t cursor = track_cursor(track);
    for (uint32_t i = 0; i < cursor; i++) {
        const struct track_slot *slot = &track->slots[i];
        if (track_is_live(track, slot))
            visit(context, slot->addr, slot->bytes, slot->room);
    }
}
