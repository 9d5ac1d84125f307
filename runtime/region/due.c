// SPDX-License-Identifier: Apache-2.0
/*
 * due.c - a step that repeats the last one to the letter.
 *
 * As long as each request has the size that its slot had last time, and each release comes where it
 * came when the plan was recorded, the inline functions walk along a table of all events and note
 * nothing: how far they have come tells everything.
 *
 *     events   | A comes | B comes | A goes | none    | D comes | C is born | B goes | ... | none
 *                                             E comes, which has no place anywhere: a stop
 *
 * What is born in the parent is no stop where that has it at once: the library notes the birth and
 * goes on behind it. Two more tables say which event is a slot's allocation, and which place of the
 * order a release.
 *
 * Meanwhile two things are out of date:
 *
 *     counts   cursor, places passed, bytes, peaks: known from spans, which are counted once
 *     marks    which slots are live: hardly anybody asks, and the next step does not need them
 *
 * A stop is where something else happens. After it the step goes on along the table if only sizes
 * differed, or a slot without a place was passed: no slot with a place was skipped, none was
 * released before its turn, and no release is late. Steps that stop too often, where births count
 * as well, or get no memory for tables, are left alone for a while.
 *
 * Invariant: while a step goes along the table the track's paths are shut, and exactly those slots
 * below its cursor are live that are not among the `passed` of the order. So what is due keeps the
 * rules of track.h: R1, since events are in the order of slots; R2, since the size is one that
 * fitted; R3, since all releases before it are done, and no slot is overdue.
 */
#include "region/due.h"
#include "base/check.h"
#include "base/error.h"
#include "region/track.h"

#define SLOTS_LEAST 32 /* of a step: with fewer there is nothing to gain */
#define STOPS_FREE 2   /* stops that a step may have, and */
#define STOPS_PART 12  /* one more for each so many slots */
#define WAIT_DOUBLES 6 /* at most, after steps that were not worth it */
#define HEIGHT_PART 8  /* of the plan's height: the most that tables may take */

const struct ebb_due due_nothing = {.request = 1}; /* no alignment, which every request has */

/* What happens between two stops; a rise is the most at once above what there was at the start. */
struct due_span {
    uint32_t events_from, events_to;
    uint32_t slots_to, passed_to; /* where the track is at its end */
    uint32_t births;              /* of blocks that lie in the parent and are counted there */
    uint32_t blocks_rise, blocks_left, granules_rise, granules_left;
    uint64_t bytes_came, bytes_rise, bytes_left;
};

/* ---- steps that are left alone ---- */

static void wait_longer(struct due *due) {
    due->fails += due->fails < WAIT_DOUBLES;
    due->wait = (uint32_t)1 << due->fails;
}

/* ---- tables ---- */

/* Releases of slots without a place are no events. */
static uint32_t count_releases(const struct track *track) {
    const struct plan *plan = track->plan;
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->order_count; i++)
        count += track->slots[plan->order[i]].room != 0;
    return count;
}

static bool take_tables(struct track *track) {
    const struct plan *plan = track->plan;
    struct due *due = &track->due;
    size_t blocks = plan->slot_count, releases = count_releases(track);
    uint32_t spans = STOPS_FREE + plan->slot_count / STOPS_PART;
    size_t bytes = (blocks + releases + 1) * (sizeof *due->events + sizeof *due->blocks) +
                   spans * sizeof *due->spans;
    due->too_large = bytes > plan->height_bytes / HEIGHT_PART;
    if (due->too_large)
        return false;
    error_mute();
    due->events = plan_pool_take("due", bytes, &due->memory);
    error_unmute();
    if (!due->events) {
        wait_longer(due);
        return false;
    }
    due->event_count = (uint32_t)(blocks + releases);
    due->spans = (void *)(due->events + due->event_count + 1);
    due->blocks = (void *)(due->spans + spans);
    due->releases = due->blocks + blocks;
    due->stops_most = spans;
    return true;
}

static struct ebb_due allocation_of(const struct track *track, uint32_t id) {
    const struct track_slot *slot = &track->slots[id];
    if (slot->align & TRACK_TENURED)
        return (struct ebb_due){.addr = id, .request = DUE_BIRTH};
    if (!slot->room || slot->bytes > slot->room)
        return due_nothing;
    uint64_t align = slot->align & (TRACK_LISTED - 1);
    return (struct ebb_due){.addr = slot->addr, .request = align << 32 | slot->bytes};
}

static struct ebb_due release_of(const struct track_slot *slot) {
    return (struct ebb_due){.addr = slot->addr};
}

/* Bytes of the slot's block, as the table has it. */
static uint32_t due_bytes(const struct due *due, uint32_t id) {
    uint64_t request = due->events[due->blocks[id]].request;
    return request >> 32 ? (uint32_t)request : 0;
}

static void fill_tables(struct track *track) {
    const struct plan *plan = track->plan;
    struct due *due = &track->due;
    uint32_t event = 0, passed = 0, released = 0;
    for (uint32_t i = 0; i <= plan->slot_count; i++) {
        uint32_t before = i < plan->slot_count ? plan->slots[i].passed : plan->order_count;
        for (; passed < before; passed++) {
            const struct track_slot *slot = &track->slots[plan->order[passed]];
            if (!slot->room)
                continue;
            due->releases[released++] = passed;
            due->events[event++] = release_of(slot);
        }
        if (i == plan->slot_count)
            break;
        due->blocks[i] = event;
        due->events[event++] = allocation_of(track, i);
    }
    CHECK(event == due->event_count);
    due->releases[released] = plan->order_count;
    due->events[event] = due_nothing;
    due->early_from = due->early_to = 0;
    due->base = track->base;
    due->span_count = 0;
    due->sizes_right = true;
}

void due_forget(struct track *track) {
    if (track->due.events)
        ebb_region_close(track->due.memory);
    track->due = (struct due){.events = NULL};
}

/* Tables that are right for where the arena is now. A step that was not worth it may have had other
 * sizes in more slots than it may stop for: then the last one tells them. */
static bool ready_tables(struct track *track) {
    struct due *due = &track->due;
    if (due->events && due->base == track->base && !due->fails)
        return true;
    if (!due->events && !take_tables(track))
        return false;
    fill_tables(track);
    return true;
}

/* ---- where the step is ---- */

/* Of numbers that rise: the first from `least` on that is not below the bound; `most`: none is. */
static uint32_t find_first(const uint32_t *numbers, uint32_t least, uint32_t most,
                           uint32_t bound) {
    while (least < most) {
        uint32_t middle = least + (most - least) / 2;
        if (numbers[middle] < bound)
            least = middle + 1;
        else
            most = middle;
    }
    return least;
}

/* How many slots' allocations are before the event. */
static uint32_t slots_before(const struct track *track, uint32_t event) {
    return find_first(track->due.blocks, 0, track->plan->slot_count, event);
}

/* How many places of the order are done with then: those of slots without one in the arena, too,
 * if their blocks have come before. */
static uint32_t passed_before(const struct track *track, uint32_t event, uint32_t slots) {
    const struct plan *plan = track->plan;
    uint32_t next = track->due.releases[event - slots];
    return slots == plan->slot_count || next < plan->slots[slots].passed
               ? next
               : plan->slots[slots].passed;
}

/* What is due where the track is: a release behind the last slot's allocation, or the next one. */
static uint32_t next_event(const struct track *track) {
    const struct due *due = &track->due;
    uint32_t slots = track->cursor, event = slots ? due->blocks[slots - 1] + 1 : 0;
    uint32_t last = slots < track->plan->slot_count ? due->blocks[slots] : due->event_count;
    return slots + find_first(due->releases, event - slots, last - slots, track->passed);
}

/* ---- releases that came early ---- */

/* They are done, and not due again where the table has them; but for those that earlier stops have
 * found. */
static void pass_early(struct track *track, uint32_t event) {
    struct due *due = &track->due;
    uint32_t slots = track->cursor;
    if (event < due->early_to) {
        event = due->early_to;
        slots = slots_before(track, event);
    }
    for (; due->releases[event - slots] < track->passed; event++) {
        if (slots < track->plan->slot_count && due->blocks[slots] == event) {
            slots++;
            continue;
        }
        due->events[event] = due_nothing;
        due->early_from = due->early_to ? due->early_from : event;
        due->early_to = event + 1;
    }
}

/* The next step may have them where they were. */
static void put_early_back(struct track *track) {
    struct due *due = &track->due;
    uint32_t event = due->early_from, slots = slots_before(track, event);
    for (; event < due->early_to; event++)
        if (slots < track->plan->slot_count && due->blocks[slots] == event)
            slots++;
        else
            due->events[event] =
                release_of(&track->slots[track->plan->order[due->releases[event - slots]]]);
    due->early_from = due->early_to = 0;
}

/* ---- going along them ---- */

static uint32_t event_now(const struct track *track) {
    uintptr_t at = (uintptr_t)track->region->lane.due, from = (uintptr_t)track->due.events;
    return (uint32_t)((at - from) / sizeof *track->due.events);
}

static void enter(struct track *track) {
    struct due *due = &track->due;
    due->on = true;
    track_set_paths(track);
    if (!due->unmarked) {
        due->marked_slots = track->cursor;
        due->marked_passed = track->passed;
    }
    due->event = next_event(track);
    pass_early(track, due->event);
    track->region->lane.due = &due->events[due->event];
}

void due_begin(struct track *track) {
    struct due *due = &track->due;
    due->strayed = false;
    due->stops = due->births = 0;
    bool waits = due->wait != 0;
    due->wait -= waits;
    due->tried = !waits && !due->too_large && due->in_order && track->open && track->expecting &&
                 !track->plan->by_key && track->plan->slot_count >= SLOTS_LEAST &&
                 ready_tables(track);
    if (due->tried)
        enter(track);
    else
        due->sizes_right = false;
}

static bool goes_on(const struct track *track) {
    const struct due *due = &track->due;
    return due->tried && !due->strayed && due->stops + due->births < due->stops_most;
}

/* Nothing is due any more. */
static bool is_at_end(const struct track *track) {
    return track->cursor == track->plan->slot_count && track->passed == track->plan->order_count;
}

/* The next release was to come before a slot that has been passed, because it has no place. The
 * slots behind it would not wait. */
static bool is_late(const struct track *track) {
    uint32_t cursor = track_cursor(track);
    return cursor && track->passed < track->plan->slots[cursor - 1].passed;
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

/* ---- counts ---- */

static void count_release(const struct track *track, uint32_t passed, struct due_span *span) {
    uint32_t id = track->plan->order[passed];
    span->blocks_left++;
    span->granules_left += track->slots[id].room / RANGE_GRANULE;
    span->bytes_left += id < track->due.marked_slots ? track->slots[id].bytes
                                                     : due_bytes(&track->due, id);
}

/* Slot `to` is the next one now, where slot `from` was it before. */
static void count_rise(const struct track *track, uint32_t from, uint32_t to,
                       struct due_span *span) {
    uint32_t granules = track->slots[to].before - track->slots[from].before;
    uint32_t came = to - from - span->births;
    if (came > span->blocks_left + span->blocks_rise)
        span->blocks_rise = came - span->blocks_left;
    if (granules > (uint64_t)span->granules_left + span->granules_rise)
        span->granules_rise = granules - span->granules_left;
    if (span->bytes_came > span->bytes_left + span->bytes_rise)
        span->bytes_rise = span->bytes_came - span->bytes_left;
}

/* What happened between two events, in numbers; the slot that was the next one before. */
static uint32_t count_span(const struct track *track, struct due_span *span) {
    const struct due *due = &track->due;
    uint32_t from = slots_before(track, span->events_from), slots = from;
    for (uint32_t event = span->events_from; event < span->events_to; event++) {
        if (slots == track->plan->slot_count || due->blocks[slots] != event) {
            count_release(track, due->releases[event - slots], span);
            continue;
        }
        span->births += !track->slots[slots].room;
        span->bytes_came += due_bytes(due, slots++);
        count_rise(track, from, slots, span);
    }
    span->slots_to = slots;
    span->passed_to = passed_before(track, span->events_to, slots);
    return from;
}

static bool is_same(const struct due_span *a, const struct due_span *b) {
    return a->events_from == b->events_from && a->events_to == b->events_to;
}

/* What happened since the last stop is counted once, while sizes stay: spans are in the order in
 * which steps make them. */
static const struct due_span *span_now(const struct track *track, struct due_span *now) {
    const struct due *due = &track->due;
    *now = (struct due_span){.events_from = due->event, .events_to = event_now(track)};
    bool alike = !due->marked_slots; /* else some may have had other sizes */
    struct due_span *known = due->spans + due->stops;
    if (alike && due->stops < due->span_count && is_same(known, now))
        return known;
    (void)count_span(track, now);
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
    add_to_tide(&track->blocks, track->cursor, span->blocks_rise, span->blocks_left);
    tide_skip(&track->blocks, span->births);
    add_to_tide(&track->granules, track->slots[track->cursor].before, span->granules_rise,
                span->granules_left);
    add_to_tide(&track->bytes, track->came_bytes, span->bytes_rise, span->bytes_left);
    track->came_bytes += span->bytes_came;
    track->cursor = span->slots_to;
    if (track->passed < span->passed_to)
        track->passed = span->passed_to;
    due_shut(track->region);
    due->stops++;
    due->births += span->births;
    due->on = false;
    due->unmarked = true;
}

void due_rest(struct track *track) {
    if (!track->due.on)
        return;
    count(track);
    track->due.stops--; /* it is the end, which is no stop too many */
}

void due_gather(struct track *track) {
    count(track);
    track_gather(track);
    due_resume(track);
}

void due_note_size(struct track *track, uint32_t id) {
    struct due *due = &track->due;
    if (!due->events || due->base != track->base) /* else addresses of two places would mix */
        return;
    if (due_bytes(due, id) == track->slots[id].bytes)
        return;
    due->events[due->blocks[id]] = allocation_of(track, id);
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
        slot->bytes = due_bytes(due, i);
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
    /* after the end of the step, in a ring or a cleanup, no slot is passed */
    if (!due->tried || track->cursor == track->plan->slot_count || next->room) {
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
    if (due->early_to)
        put_early_back(track);
    if (!due->unmarked || due->sizes_right)
        return;
    bool all = due->marked_slots == 0 && track->cursor == track->plan->slot_count;
    mark(track);
    due->sizes_right = all;
}

void due_finish(struct track *track) {
    struct due *due = &track->due;
    uint32_t end = due->on; /* which is no stop too many */
    if (due->on)
        count(track);
    if (due->tried && !due->strayed && due->stops + due->births < due->stops_most + end)
        due->fails = 0;
    else if (due->tried)
        wait_longer(due);
    due_end(track);
}

/* ---- for others ---- */

/* Read once; what is where it points may be left meanwhile, but can be looked at. */
static struct track as_it_is(const volatile struct track *track) {
    return *track;
}

void due_include(const struct track *track, struct flow *counted, struct flow *requested,
                 struct flow *used) {
    const struct track now = as_it_is(track);
    if (!now.region || !now.plan || !now.due.events)
        return;
    struct due_span span = {.events_from = now.due.event, .events_to = event_now(&now)};
    if (span.events_to > now.due.event_count || span.events_from > span.events_to)
        return; /* it was left, by who is at work there */
    uint32_t from = count_span(&now, &span);
    uint64_t granules = now.slots[span.slots_to].before - now.slots[from].before;
    flow_raise(counted, span.blocks_rise);
    flow_raise(requested, span.bytes_rise);
    flow_raise(used, (uint64_t)span.granules_rise * RANGE_GRANULE);
    flow_bring(counted, span.slots_to - from - span.births);
    flow_leave(counted, span.blocks_left);
    flow_bring(requested, span.bytes_came);
    flow_leave(requested, span.bytes_left);
    flow_bring(used, granules * RANGE_GRANULE);
    flow_leave(used, (uint64_t)span.granules_left * RANGE_GRANULE);
}
