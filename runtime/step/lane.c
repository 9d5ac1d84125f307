// SPDX-License-Identifier: Apache-2.0
/*
 * lane.c - which lane a step gets.
 *
 * A thread gets a lane back that it had, so that its ring is its own and its tracks are warm.
 * Without rings any free lane will do; with rings only one whose thread has ended, unless a region
 * in it hangs below a parent, which other threads may be using.
 *
 * Invariant: a lane is open for one step at a time. Fails without effect where there is no memory
 * for another lane.
 */
#include "step/site.h"

#include "base/error.h"

/* ---- lanes ---- */

static struct lane *lane_create(struct ebb_site *site) {
    struct lane *lane = ebb_region_alloc_zeroed(site->memory, sizeof *lane, EBB_UNIT);
    if (!lane)
        return NULL;
    lane->site = site;
    if (!ring_create(lane)) {
        ebb_region_release(site->memory, lane);
        return NULL;
    }
    lane->next = site->lanes;
    site->lanes = lane;
    return lane;
}

/* What is in its ring is nobody's any more. */
static bool is_for_all(const struct lane *lane) {
    return !lane->site->options.ring ||
           (seat_is_left(lane->owner) && !ring_hangs_below_a_parent(lane));
}

static struct lane *find_lane(struct ebb_site *site, struct seat seat) {
    struct lane *other = NULL;
    for (struct lane *lane = site->lanes; lane; lane = lane->next) {
        if (lane->is_open)
            continue;
        if (lane->owner.thread == seat.thread)
            return lane;
        if (!other && is_for_all(lane))
            other = lane;
    }
    return other;
}

/* ---- courses ---- */

/*
 * Steps of another tag do the same with other sizes, as a rule. So a new course begins with what
 * was learnt under the tag that a step belonged to last; without memory it begins with nothing.
 */
static void inherit(struct course *course, const struct course *from) {
    if (!from || !from->plan || !from->draft)
        return;
    error_mute();
    course->draft = draft_copy(from->draft);
    error_unmute();
    if (!course->draft)
        return;
    course->plan = from->plan;
    plan_share(course->plan);
    learn_inherit(&course->learning, course->draft->hash);
}

static struct course *find_course(struct ebb_site *site, uint64_t tag) {
    if (site->options.unplanned)
        return NULL;
    for (unsigned i = 0; i < site->course_count; i++)
        if (site->courses[i].tag == tag)
            return &site->courses[i];
    if (site->course_count == SITE_COURSES)
        return NULL;
    struct course *course = &site->courses[site->course_count++];
    course->tag = tag;
    learn_start(&course->learning);
    inherit(course, site->newest);
    return course;
}

static void choose_course(struct ebb_site *site, uint64_t tag, struct ticket *ticket) {
    ticket->course = find_course(site, tag);
    ticket->mode = ticket->course ? learn_next(&ticket->course->learning) : LEARN_PLAIN;
    ticket->plan = ticket->mode == LEARN_SERVE ? ticket->course->plan : NULL;
    if (ticket->plan)
        plan_share(ticket->plan);
    if (ticket->course)
        site->newest = ticket->course;
}

bool lane_take(struct ebb_site *site, uint64_t tag, struct ticket *ticket) {
    struct seat seat = seat_own();
    pthread_mutex_lock(&site->lock);
    struct lane *lane = find_lane(site, seat);
    if (!lane)
        lane = lane_create(site);
    if (lane) {
        lane->owner = seat;
        lane->is_open = true;
        site->open_steps++;
        *ticket = (struct ticket){.lane = lane, .tag = tag};
        choose_course(site, tag, ticket);
    }
    pthread_mutex_unlock(&site->lock);
    return lane != NULL;
}

void lane_release_locked(struct lane *lane) {
    lane->is_open = false;
    lane->site->open_steps--;
}

void lane_release(struct lane *lane) {
    pthread_mutex_lock(&lane->site->lock);
    lane_release_locked(lane);
    pthread_mutex_unlock(&lane->site->lock);
}
