// SPDX-License-Identifier: Apache-2.0
/*
 * lane.c - which lane a step gets.
 *
 * A thread gets a lane back that it had, so that its ring is its own and its tracks are warm.
 * Without rings any idle lane will do, if its own is not among those that were open last; with
 * rings only one whose thread has ended, unless a region in it hangs below a parent, which other
 * threads may be using: but for the step's own, which is the calling thread's for now. A cleanup of
 * what would have to close for the step has another lane for its steps.
 *
 * Invariant: a lane has one step at a time; one that is not LANE_OPEN is on the list of idle ones.
 * What is in its ring is its owner's to close: who takes a lane becomes the owner, unless the step
 * cannot begin. Fails without effect where there is no memory for another lane.
 */
#include "step/site.h"

#include "base/error.h"
#include "region/block.h"

#include <limits.h>
#include <string.h>

#define LOOKS 64u /* at idle lanes, for the thread's own, where others will do */

enum lane_state lane_state(const struct lane *lane) {
    /* acquire: whoever ended a step there is done with it */
    return atomic_load_explicit(&lane->state, memory_order_acquire);
}

bool lane_change(struct lane *lane, enum lane_state from, enum lane_state to) {
    /* acquire and release: a step sees what the one before has done with the lane */
    return atomic_compare_exchange_strong_explicit(&lane->state, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

void *lane_allocate(struct ebb_site *site, size_t bytes) {
    void *memory = block_place(region_peek(site->memory), bytes, EBB_UNIT);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

static struct lane *lane_create(struct ebb_site *site, struct seat seat) {
    struct lane *lane = lane_allocate(site, sizeof *lane);
    if (!lane)
        return NULL;
    lane->site = site;
    lane->owner = seat;
    lane->state = LANE_OPEN;
    if (!ring_create(lane)) {
        ebb_region_release(site->memory, lane);
        return NULL;
    }
    lane->next = site->lanes;
    site->lanes = lane;
    return lane;
}

/* What is in its ring is nobody's any more. */
static bool is_left(const struct lane *lane, const struct region *parent) {
    return !lane->site->options.ring ||
           (seat_is_left(lane->owner) && !ring_hangs_below_another(lane, parent));
}

/* True: it has a bare step, which is an ordinary one from now on; the lane is not on the list. */
static bool was_bare(struct lane **place) {
    struct lane *lane = *place;
    if (lane_state(lane) != LANE_BARE || !lane_change(lane, LANE_BARE, LANE_OPEN))
        return false;
    *place = lane->idle_next;
    lane->site->open_steps++;
    return true;
}

static struct lane **find_idle(struct ebb_site *site, struct seat seat,
                               const struct region *parent) {
    struct lane **place = &site->idle, **other = NULL;
    unsigned most = site->options.ring ? UINT_MAX : LOOKS; /* else what is in its ring would stay */
    for (unsigned looks = 0; *place && !(other && looks >= most); looks++) {
        const struct lane *lane = *place;
        if (was_bare(place))
            continue;
        bool own = lane->owner.thread == seat.thread;
        bool serves = (own || (!other && is_left(lane, parent))) && !ring_is_stuck(lane);
        if (own && serves)
            return place;
        other = serves ? place : other;
        place = &(*place)->idle_next;
    }
    return other;
}

/* One that the thread had, another one, or a new one. NULL with an error. */
static struct lane *choose_lane(struct ebb_site *site, struct seat seat,
                                const struct region *parent) {
    if (site->is_ending) {
        error_set(EBB_E_BUSY, "site '%s' is being destroyed, after %llu steps", site->name,
                  (unsigned long long)site->stats.steps);
        return NULL;
    }
    struct lane **place, *lane = NULL;
    while (!lane && (place = find_idle(site, seat, parent)))
        lane = lane_change(*place, LANE_IDLE, LANE_OPEN) ? *place : NULL; /* else just bare */
    if (!lane)
        return lane_create(site, seat);
    *place = lane->idle_next;
    return lane;
}

bool lane_take(struct ebb_site *site, const struct region *parent, uint64_t tag,
               struct ticket *ticket) {
    struct seat seat = seat_own();
    if (bare_take(site, tag, ticket))
        return true;
    pthread_mutex_lock(&site->lock);
    struct lane *lane = choose_lane(site, seat, parent);
    if (lane) {
        *ticket = (struct ticket){.lane = lane, .owner_before = lane->owner, .tag = tag,
                                  .number = ++site->begun};
        lane->before = (struct before){.crowded = site->crowded};
        lane->owner = seat;
        if (site->open_steps++ > site->lost_steps)
            site->crowded = site->begun;
        course_choose(site, ticket);
    }
    pthread_mutex_unlock(&site->lock);
    if (lane)
        bare_note(lane);
    return lane != NULL;
}

void lane_release_locked(struct lane *lane) {
    if (lane_state(lane) == LANE_BARE && lane_change(lane, LANE_BARE, LANE_IDLE))
        return;
    if (lane->course && lane->course->plan && lane->track && lane->track->seen.served)
        lane->course->followed = lane->track;
    lane->course = NULL;
    lane->rhythm = NULL;
    lane->idle_next = lane->site->idle;
    lane->site->idle = lane;
    lane->site->open_steps--;
    lane->site->lost_steps -= lane->is_lost;
    lane->is_lost = false;
    (void)lane_change(lane, LANE_OPEN, LANE_IDLE);
}

/* The step never was, so it met none. Those that began after it may turn out not to begin, either:
 * what they found of it is what it found. */
static void take_back(struct ebb_site *site, const struct ticket *ticket) {
    const struct before *found = &ticket->lane->before;
    if (site->crowded == ticket->number)
        site->crowded = found->crowded;
    for (struct lane *lane = site->lanes; lane; lane = lane->next) {
        if (lane->before.crowded == ticket->number)
            lane->before.crowded = found->crowded;
        if (lane->before.began == ticket->number) {
            lane->before.began = found->began;
            lane->before.used = found->used;
        }
    }
    site->begun -= site->begun == ticket->number; /* which nothing names any more */
}

void lane_return(const struct ticket *ticket) {
    struct ebb_site *site = ticket->lane->site;
    pthread_mutex_lock(&site->lock);
    course_return(site, ticket);
    if (ticket->number)
        take_back(site, ticket);
    ticket->lane->owner = ticket->owner_before;
    lane_release_locked(ticket->lane);
    pthread_mutex_unlock(&site->lock);
}

void lane_release(struct lane *lane) {
    pthread_mutex_lock(&lane->site->lock);
    lane_release_locked(lane);
    pthread_mutex_unlock(&lane->site->lock);
}

static bool is_of_another(const struct lane *lane) {
    return lane->owner.thread != seat_number();
}

void lane_lose_others(struct ebb_site *site) {
    for (struct lane **place = &site->idle; *place;)
        if (!is_of_another(*place) || !was_bare(place))
            place = &(*place)->idle_next;
    for (struct lane *lane = site->lanes; lane; lane = lane->next)
        if (!lane->is_lost && lane_state(lane) == LANE_OPEN && is_of_another(lane)) {
            lane->is_lost = true;
            site->lost_steps++;
        }
}

uint64_t lane_count_open(const struct ebb_site *site) {
    uint64_t open = site->open_steps;
    for (const struct lane *lane = site->lanes; lane; lane = lane->next)
        open += lane_state(lane) == LANE_BARE;
    return open;
}
