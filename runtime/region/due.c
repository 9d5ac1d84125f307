// SPDX-License-Identifier: Apache-2.0
/*
 * due.c - a step that does to the letter what it did last time.
 *
 * While each block is asked for with the size that its slot had last time, and each release comes
 * where it came when the plan was recorded, the inline functions go along two tables and note
 * nothing: how far they are tells everything. Two things are then behind:
 *
 *     counts   cursor, places passed, bytes, peaks: told by spans, which are counted once
 *     marks    which slots are live: nobody asks, mostly, and the next step does not need them
 *
 * A stop is where something else happens. Behind it the step goes on along the tables, if only
 * sizes were others, or a slot was passed that has no place: no slot with a place was skipped, none
 * was released before its turn, and no release is late. Steps that stop too often are left alone
 * for a while.
 *
 * Invariant: while a step goes along the tables the track's paths are shut, and exactly those slots
 * below its cursor are live that are not among the `passed` of the order. So what is due keeps the
 * rules of track.h: R1, since the table is in the order of slots; R2, since the size is one that
 * fitted; R3, since all releases before it are done, and no slot is overdue.
 */
#include "base/check.h"
#include "base/error.h"
#include "region/track.h"

#define SLOTS_LEAST 32 /* of a step: in few there is nothing to be had */
#define STOPS_FREE 2   /* in a step, and */
#define STOPS_PART 12  /* one in so many slots */
#define WAIT_DOUBLES 6 /* at most, for steps that were not worth it */
#define HEIGHT_PART 8  /* of the plan's: tables have no more */

const struct ebb_due_block due_no_block;
const struct ebb_due_release due_no_release;

/* What happens between two stops; rises are the most there is at once above the beginning. */
struct due_span {
    uint32_t slots_from, slots_to, passed_from, passed_to;
    uint32_t blocks_rise, granules_rise, granules_left;
    uint64_t bytes_came, bytes_rise, bytes_left;
};

/* ---- tables ---- */

static bool take_tables(struct track *track) {
    const struct plan *plan = track->plan;
    struct due *due = &track->due;
    size_t blocks = (size_t)plan->slot_count + 1, releases = (size_t)plan->order_count + 1;
    uint32_t spans = STOPS_FREE + plan->slot_count / STOPS_PART;
    size_t bytes = blocks * sizeof *due->blocks + releases * sizeof *due->releases +
                   spans * sizeof *due->spans;
    if (bytes > plan->height_bytes / HEIGHT_PART)
        return false;
    error_mute();
    due->blocks = plan_pool_take("due", bytes, &due->memory);
    error_unmute();
    if (!due->blocks)
        return false;
    due->releases = (void *)(due->blocks + blocks);
    due->spans = (void *)(due->releases + releases);
    due->stops_most = spans;
    return true;
}

static struct ebb_due_block block_of(const struct track_slot *slot) {
    bool fits = slot->room && slot->bytes <= slot->room;
    if (!fits)
        return due_no_block;
    return (struct ebb_due_block){slot->addr, slot->bytes, slot->align & (TRACK_LISTED - 1)};
}

static void fill_tables(struct track *track) {
    const struct plan *plan = track->plan;
    struct due *due = &track->due;
    uint32_t before = 0;
    for (uint32_t i = 0; i < plan->slot_count; i++)
        due->blocks[i] = block_of(&track->slots[i]);
    due->blocks[plan->slot_count] = due_no_block;
    for (uint32_t passed = 0; passed < plan->order_count; passed++) {
        const struct track_slot *slot = &track->slots[plan->order[passed]];
        while (before < plan->slot_count && plan->slots[before].passed <= passed)
            before++;
        struct ebb_due_release *release = &due->releases[passed];
        uintptr_t nowhere = (uintptr_t)release; /* a guest's is in the parent, and is not due */
        release->addr = slot->room ? slot->addr : nowhere;
        release->before = &due->blocks[before];
    }
    due->releases[plan->order_count] = due_no_release;
    due->base = track->base;
    due->span_count = 0;
    due->sizes_right = true;
}

void due_forget(struct track *track) {
    if (track->due.blocks)
        ebb_region_close(track->due.memory);
    track->due = (struct due){.blocks = NULL};
}

/* Tables that are right for where the arena is now. A step that was not worth it may have had other
 * sizes in more slots than it may stop for: then the last one tells them. */
static bool ready_tables(struct track *track) {
    struct due *due = &track->due;
    if (due->blocks && due->base == track->base && !due->fails)
        return true;
    if (!due->blocks && !take_tables(track))
        return false;
    fill_tables(track);
    return true;
}

/* ---- going along them ---- */

static void enter(struct track *track) {
    struct due *due = &track->due;
    struct ebb_lane *lane = &track->region->lane;
    due->on = true;
    track_set_paths(track);
    if (!due->unmarked) {
        due->marked_slots = track->cursor;
        due->marked_passed = track->passed;
    }
    lane->due_block = &due->blocks[track->cursor];
    lane->due_release = &due->releases[track->passed];
}

void due_begin(struct track *track) {
    struct due *due = &track->due;
    due->strayed = false;
    due->stops = 0;
    due->tried = !due->wait && due->in_order && track->open && track->expecting &&
                 !track->plan->by_key && track->plan->slot_count >= SLOTS_LEAST &&
                 ready_tables(track);
    due->wait -= due->wait != 0;
    if (due->tried)
        enter(track);
    else
        due->sizes_right = false;
}

static bool goes_on(const struct track *track) {
    const struct due *due = &track->due;
    return due->tried && !due->strayed && due->stops < due->stops_most;
}

/* Nothing is due any more. */
static bool is_at_end(const struct track *track) {
    return track->cursor == track->plan->slot_count && track->passed == track->plan->order_count;
}

/* The next release was to come before a slot that has been passed, because it has no place. The
 * slots behind it would not wait. */
static bool is_late(const struct track *track) {
    const struct ebb_due_block *before = track->due.releases[track->passed].before;
    return before && before < &track->due.blocks[track_cursor(track)];
}

void due_resume(struct track *track) {
    struct due *due = &track->due;
    if (due->on || !due->tried || due->paused)
        return;
    bool passes = due->unmarked || (track->open && track->expecting);
    if (passes && !due->unmarked)
        track_pass_ended(track);
    if (!passes || !goes_on(track) || is_late(track)) {
        due_settle(track);
        return;
    }
    if (!due->unmarked || track->open || !is_at_end(track))
        enter(track);
}

static uint32_t slots_now(const struct track *track) {
    uintptr_t at = (uintptr_t)track->region->lane.due_block, from = (uintptr_t)track->due.blocks;
    return (uint32_t)((at - from) / sizeof *track->due.blocks);
}

static uint32_t passed_now(const struct track *track) {
    uintptr_t at = (uintptr_t)track->region->lane.due_release;
    return (uint32_t)((at - (uintptr_t)track->due.releases) / sizeof *track->due.releases);
}

/* ---- counts ---- */

/* What happened since the last stop, not counted. */
static struct due_span since_stop(const struct track *track) {
    return (struct due_span){.slots_from = track->cursor,
                             .slots_to = slots_now(track),
                             .passed_from = track->passed,
                             .passed_to = passed_now(track)};
}

static void count_release(const struct track *track, uint32_t passed, struct due_span *span) {
    uint32_t id = track->plan->order[passed];
    span->granules_left += track->slots[id].room / RANGE_GRANULE;
    span->bytes_left += id < track->due.marked_slots ? track->slots[id].bytes
                                                     : track->due.blocks[id].bytes;
}

static void count_rise(const struct track *track, uint32_t slots, uint32_t passed,
                       struct due_span *span) {
    uint32_t granules = track->slots[slots].before - track->slots[span->slots_from].before;
    uint32_t came = slots - span->slots_from, left = passed - span->passed_from;
    if (came > left + span->blocks_rise)
        span->blocks_rise = came - left;
    if (granules > (uint64_t)span->granules_left + span->granules_rise)
        span->granules_rise = granules - span->granules_left;
    if (span->bytes_came > span->bytes_left + span->bytes_rise)
        span->bytes_rise = span->bytes_came - span->bytes_left;
}

static void count_span(const struct track *track, struct due_span *span) {
    const struct plan *plan = track->plan;
    uint32_t passed = span->passed_from;
    for (uint32_t i = span->slots_from; i < span->slots_to; i++) {
        for (; passed < plan->slots[i].passed; passed++)
            count_release(track, passed, span);
        span->bytes_came += track->due.blocks[i].bytes;
        count_rise(track, i + 1, passed, span);
    }
    for (; passed < span->passed_to; passed++)
        count_release(track, passed, span);
}

static bool is_same(const struct due_span *a, const struct due_span *b) {
    return a->slots_from == b->slots_from && a->slots_to == b->slots_to &&
           a->passed_from == b->passed_from && a->passed_to == b->passed_to;
}

/* What happened since the last stop is counted once, while sizes stay: spans are in the order in
 * which steps make them. */
static const struct due_span *span_now(const struct track *track, struct due_span *now) {
    const struct due *due = &track->due;
    *now = since_stop(track);
    bool alike = !due->marked_slots; /* else some may have had other sizes */
    struct due_span *known = due->spans + due->stops;
    if (alike && due->stops < due->span_count && is_same(known, now))
        return known;
    count_span(track, now);
    return now;
}

/* The next steps may find it. What came behind it was behind another one. */
static void note_span(struct track *track, const struct due_span *span) {
    struct due *due = &track->due;
    if (due->marked_slots || due->stops > due->span_count || due->stops >= due->stops_most)
        return;
    due->spans[due->stops] = *span;
    due->span_count = due->stops + 1;
}

static void add_to_tide(struct track_tide *tide, uint64_t came, uint64_t rise, uint64_t left) {
    tide_note(tide, came + rise);
    tide->calm += left;
}

/* The track counts what was done inline; the lane is shut. */
static void count(struct track *track) {
    struct due *due = &track->due;
    struct due_span now;
    const struct due_span *span = span_now(track, &now);
    if (span == &now)
        note_span(track, &now);
    add_to_tide(&track->blocks, track->cursor, span->blocks_rise,
                span->passed_to - span->passed_from);
    add_to_tide(&track->granules, track->slots[track->cursor].before, span->granules_rise,
                span->granules_left);
    add_to_tide(&track->bytes, track->came_bytes, span->bytes_rise, span->bytes_left);
    track->came_bytes += span->bytes_came;
    track->cursor = span->slots_to;
    track->passed = span->passed_to;
    region_shut_due(track->region);
    due->stops++;
    due->on = false;
    due->unmarked = true;
}

void due_gather(struct track *track) {
    count(track);
    track_gather(track);
    due_resume(track);
}

void due_note_size(struct track *track, uint32_t id) {
    struct due *due = &track->due;
    if (!due->blocks || due->base != track->base) /* else addresses of two places would mix */
        return;
    if (due->blocks[id].bytes == track->slots[id].bytes)
        return;
    due->blocks[id] = block_of(&track->slots[id]);
    due->span_count = 0;
}

/* ---- marks ---- */

static void mark(struct track *track) {
    const struct plan *plan = track->plan;
    struct due *due = &track->due;
    track->cursor = track_cursor(track);
    for (uint32_t i = due->marked_slots; i < track->cursor; i++) {
        struct track_slot *slot = &track->slots[i];
        if (!slot->room)
            continue;
        slot->mark = track->epoch;
        slot->bytes = due->blocks[i].bytes;
    }
    for (uint32_t i = due->marked_passed; i < track->passed; i++)
        track->slots[plan->order[i]].mark = 0;
    due->unmarked = due->sizes_right = false;
}

void due_settle(struct track *track) {
    struct due *due = &track->due;
    if (due->on)
        count(track);
    if (!due->unmarked)
        return;
    mark(track);
    track_set_paths(track);
}

void due_stop(struct track *track) {
    struct due *due = &track->due;
    if (due->on)
        count(track);
    const struct track_slot *next = &track->slots[track->cursor];
    if (track->cursor == track->plan->slot_count || next->room) {
        due_settle(track);
    } else {
        track->next = &track->slots[track->cursor];
        track->open = true;
    }
}

/* ---- the end of a step ---- */

void due_end(struct track *track) {
    struct due *due = &track->due;
    due->tried = false;
    if (due->on)
        count(track);
    if (!due->unmarked || due->sizes_right)
        return;
    bool all = due->marked_slots == 0 && track->cursor == track->plan->slot_count;
    mark(track);
    due->sizes_right = all;
}

static void wait_longer(struct due *due) {
    due->fails += due->fails < WAIT_DOUBLES;
    due->wait = (uint32_t)1 << due->fails;
}

void due_finish(struct track *track) {
    struct due *due = &track->due;
    bool worth_it = goes_on(track); /* the end is no stop too many */
    if (due->on)
        count(track);
    if (worth_it)
        due->fails = 0;
    else if (due->tried)
        wait_longer(due);
    due_end(track);
}

/* ---- for others ---- */

void due_include(const struct track *track, struct flow *counted, struct flow *requested,
                 struct flow *used) {
    const struct plan *plan = track->plan;
    struct due_span span = since_stop(track);
    if (span.slots_to > plan->slot_count || span.passed_to > plan->order_count ||
        span.slots_from > span.slots_to || span.passed_from > span.passed_to)
        return; /* it was left meanwhile, by who is at work there */
    count_span(track, &span);
    counted->in += span.slots_to - span.slots_from;
    counted->out += span.passed_to - span.passed_from;
    requested->in += span.bytes_came;
    requested->out += span.bytes_left;
    const struct track_slot *slots = track->slots;
    used->in += (uint64_t)(slots[span.slots_to].before - slots[span.slots_from].before) *
                RANGE_GRANULE;
    used->out += (uint64_t)span.granules_left * RANGE_GRANULE;
}
