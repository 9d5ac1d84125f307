// SPDX-License-Identifier: Apache-2.0
/*
 * bare.c - steps that are there for their scope alone (see ebb/scope.h).
 *
 * While no step of a site with scopes ever had anything in its region, there is nothing to learn,
 * and all that a step needs of the site is a lane: its thread takes the one that it had last, with
 * one exchange. The lane stays on the list of idle ones; no line of the site is written, which
 * threads on several processors would take from each other. The first step that has something in
 * its region ends this for all that come after it. Whoever looks for an idle lane and meets one
 * that is taken so makes the step an ordinary one, which is met no more.
 *
 * Invariant: a lane that is LANE_BARE has no course, and is on the list of idle ones.
 */
#include "step/site.h"

#define LATEST 4u /* sites that a thread remembers its lane of */

static _Thread_local struct latest {
    uint64_t site; /* its number */
    struct lane *lane;
} latest[LATEST];

static bool is_bare(const struct ebb_site *site) {
    /* relaxed: a step that begins meanwhile may be the last bare one */
    return atomic_load_explicit(&site->is_bare, memory_order_relaxed);
}

void bare_note(struct lane *lane) {
    if (is_bare(lane->site))
        latest[lane->site->number % LATEST] = (struct latest){lane->site->number, lane};
}

/* The lane is free, whether it is still bare or became an ordinary one meanwhile. */
static void bare_give(struct lane *lane) {
    if (!lane_change(lane, LANE_BARE, LANE_IDLE))
        lane_release(lane);
}

bool bare_take(struct ebb_site *site, uint64_t tag, struct ticket *ticket) {
    if (!is_bare(site))
        return false;
    const struct latest *last = &latest[site->number % LATEST];
    struct lane *lane = last->lane;
    if (last->site != site->number || !lane_change(lane, LANE_IDLE, LANE_BARE))
        return false;
    if (lane->owner.thread != seat_own().thread) {
        bare_give(lane);
        return false;
    }
    *ticket = (struct ticket){.lane = lane, .owner_before = lane->owner, .tag = tag,
                              .mode = LEARN_PLAIN};
    return true;
}

bool bare_end(struct lane *lane, const struct ended *ended) {
    if (!ended->empty || lane_state(lane) != LANE_BARE)
        return false;
    /* relaxed: only who has the lane writes it */
    uint64_t steps = atomic_load_explicit(&lane->bare_steps, memory_order_relaxed);
    atomic_store_explicit(&lane->bare_steps, steps + 1, memory_order_relaxed);
    bare_give(lane);
    return true;
}

uint64_t bare_count(const struct ebb_site *site) {
    uint64_t steps = 0;
    for (const struct lane *lane = site->lanes; lane; lane = lane->next)
        steps += atomic_load_explicit(&lane->bare_steps, memory_order_relaxed);
    return steps;
}
