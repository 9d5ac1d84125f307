// SPDX-License-Identifier: Apache-2.0
/*
 * idle.c - what tracks hold that no step has used for long goes back.
 *
 *     berths of all lanes    | 0 | 1 | 2 | ... | n |        every few steps the next one
 *                                    ^ looked at
 *
 * Each berth has a copy of a plan's slots for each course, and may keep the pages of its arena.
 * Where many steps were open at once, or many tags took turns in many berths, most of that is never
 * used again: the lane that was open last is the next one's. So the berths of idle lanes are looked
 * at in turn. A step that comes to such a track copies the slots again. Where more threads take
 * steps, each of them comes more seldom: long is measured by how many steps are open at once. What
 * each course's last step left in its track stays for reports, but for the pages.
 *
 * Invariant: a lane is looked at while it is neither open nor bare, under the lock of its site; a
 * track that is tied to a region in the ring is left alone, and so are all while one that was taken
 * out of it is open.
 */
#include "step/site.h"

#define IDLE_STEPS 64u /* of the site, for each that is open at once: who was not used in them */
#define IDLE_TURN 4u   /* so many steps from one look to the next */

/* The region in the ring may be in other hands: only it says whether the track is tied. */
static bool is_idle(const struct ebb_site *site, const struct berth *berth,
                    const struct track *track) {
    if (!track || (berth->region && berth->followed == track))
        return false;
    uint64_t past = site->stats.steps - track->begun;
    return past / IDLE_STEPS > site->open_most && track_holds(track);
}

static void rest_berth(const struct ebb_site *site, const struct berth *berth) {
    for (unsigned i = 0; i < site->course_count; i++) {
        struct track *track = berth->tracks[i];
        if (!is_idle(site, berth, track))
            continue;
        track_rest(track);
        if (!course_tells_of(&site->courses[i], track))
            (void)track_follow(track, NULL); /* which does not fail */
    }
}

/* A lane after the other, and its berths one after the other. */
static struct berth *next_berth(struct ebb_site *site) {
    struct lane *lane = site->idle_lane;
    if (lane && site->idle_berth < site->options.ring)
        return &lane->ring[++site->idle_berth];
    site->idle_lane = lane && lane->next ? lane->next : site->lanes;
    site->idle_berth = 0;
    return &site->idle_lane->ring[0];
}

static void note_open(struct ebb_site *site) {
    bool anew = site->stats.steps % IDLE_STEPS == 0;
    uint64_t open = site->open_steps - site->lost_steps;
    site->open_most = size_larger(anew ? 0 : site->open_most, open);
}

void idle_look(struct ebb_site *site) {
    note_open(site);
    if (site->stats.steps % IDLE_TURN || site->outcasts.count)
        return;
    struct berth *berth = next_berth(site);
    if (!lane_change(berth->lane, LANE_IDLE, LANE_OPEN)) /* so it becomes no bare step's */
        return;
    rest_berth(site, berth);
    (void)lane_change(berth->lane, LANE_OPEN, LANE_IDLE);
}
