// SPDX-License-Identifier: Apache-2.0
/*
 * step.c - steps begin and end (see ebb/step.h).
 *
 *     begin    a lane, a region; then the oldest of the ring closes, then the track is tied
 *     end      counters are read, the track is done, the site learns, the region goes or stays
 *
 * Invariant: the hook of a step's region leads to its lane exactly while the step is open. A region
 * that closes by other means, as with its parent, ends its step; nothing is learnt from that.
 *
 * Only a lane or a region can be wanting at begin: without memory for learning a step is an
 * ordinary region. Refuses steps that have ended or never began (EBB_E_STALE, EBB_E_ARGUMENT).
 */
#include "step/site.h"

#include "base/error.h"
#include "region/block.h"
#include "region/count.h"
#include "region/promote.h"
#include "region/remote.h"
#include "step/scope.h"

/* ---- begin ---- */

/* The region was closed with its parent, or by mistake. */
static void region_was_closed(struct step_hook *hook) {
    struct lane *lane = (struct lane *)hook;
    lane->region->given_back = NULL; /* the site may be gone when its pages go */
    if (lane->site->options.scope && scope_server)
        scope_server->abandon(&lane->scope); /* its thread may be ending, and the scope with it */
    lane_release(lane);
}

static struct track *make_track(struct ebb_site *site) {
    pthread_mutex_lock(&site->lock);
    error_mute();
    struct track *track = track_create(site->memory);
    error_unmute();
    pthread_mutex_unlock(&site->lock);
    return track;
}

/* False, without an error: there is no memory. */
static bool follow(struct track *track, struct plan *plan) {
    error_mute();
    bool follows = track_follow(track, plan) == 0;
    error_unmute();
    return follows;
}

/* The track of the step's berth, with the plan that is to be served; NULL: no memory, or no use. */
static struct track *ready_track(const struct ticket *ticket, struct berth *berth) {
    const struct lane *lane = ticket->lane;
    struct track **track;
    if (!lane->course || berth->has_outcast)
        return NULL;
    track = &berth->tracks[lane->course - lane->site->courses];
    if (!*track && ticket->mode != LEARN_PLAIN)
        *track = make_track(lane->site);
    if (!*track)
        return NULL;
    if (ticket->mode != LEARN_SERVE)
        track_rest(*track);
    if ((*track)->plan != ticket->plan && !follow(*track, ticket->plan))
        return NULL;
    return ticket->mode == LEARN_PLAIN ? NULL : *track;
}

/* Steps of several courses take turns in a berth: each one's arena is made of the pages that the
 * one before had. Whose plan no course has any more, its slots are not needed, either. */
static void rest_other(struct berth *berth, struct track *track) {
    struct track *other = berth->followed;
    if (berth->has_outcast) /* the other may be in its hands, and waits */
        return;
    if (other && other != track) {
        track_rest(other);
        if (other->plan && plan_is_forgotten(other->plan))
            (void)track_follow(other, NULL); /* which does not fail */
    }
    berth->followed = track;
}

static struct lane_past *past_of(struct lane *lane) {
    return &lane->past[lane->course - lane->site->courses];
}

static void tie(struct lane *lane, struct region *region) {
    const struct lane_past *past = past_of(lane);
    lane->track->above = past->above;
    lane->track->saw_above = past->saw_above;
    lane->track->peak_before = past->peak;
    track_tie(lane->track, region, lane->mode == LEARN_SERVE, lane->mode == LEARN_RECORD);
}

static void set_out(const struct ticket *ticket, struct region *region) {
    struct lane *lane = ticket->lane;
    struct berth *berth = ring_present(lane);
    lane->track = ready_track(ticket, berth);
    rest_other(berth, lane->track);
    lane->region = region;
    lane->mode = lane->track ? ticket->mode : LEARN_PLAIN;
    lane->hook.closed = region_was_closed;
    region->step = &lane->hook;
    region->given_back = &lane->site->given_back;
    if (lane->track) {
        lane->track->begun = ticket->begun;
        lane->track->sizes_wanted = ticket->fits;
        tie(lane, region);
    }
    lane->scope = NULL;
    if (lane->site->options.scope && scope_server)
        lane->scope = scope_server->begin(lane->site, ticket->tag, &lane->scope);
}

/* The region of the step, in whose place in the ring nobody is any more; or NULL. */
static struct region *open_region(struct lane *lane, ebb_region parent) {
    struct ebb_site *site = lane->site;
    struct region *oldest = ring_oldest(lane), *above = parent.lane ? region_peek(parent) : NULL;
    if (oldest && above && (above == oldest || region_is_above(oldest, above))) {
        error_set(EBB_E_STALE, "a step of site '%s' below '%s', which closes for it", site->name,
                  above->name);
        return NULL;
    }
    ebb_region handle = ebb_region_open(EBB_REGION_OPTIONS(
        .name = site->name, .parent = parent, .pool = parent.lane ? NULL : site->options.pool));
    struct region *region = region_peek(handle);
    oldest = region ? ring_turn(lane) : NULL;
    if (!oldest)
        return region;
    struct ebb_closed closed = {0, 0}; /* nobody asks for what its cleanups return */
    region_close(oldest, &closed);
    region = region_peek(handle);
    if (!region) {
        ring_turn_back(lane);
        error_set(EBB_E_STALE, "a step of site '%s': a cleanup has closed its parent", site->name);
    }
    return region;
}

static ebb_step begin(ebb_site *site, ebb_region parent, uint64_t tag) {
    const ebb_step none = {region_handle(NULL), NULL};
    struct ticket ticket;
    if (!site) {
        error_set(EBB_E_ARGUMENT, "a step of tag %llu begins without a site",
                  (unsigned long long)tag);
        return none;
    }
    struct region *above = parent.lane ? region_find(parent) : NULL;
    if ((parent.lane && !above) || !lane_take(site, above, tag, &ticket))
        return none;
    struct region *region = open_region(ticket.lane, parent);
    if (region)
        set_out(&ticket, region);
    else
        lane_return(&ticket);
    plan_drop(ticket.own);
    return region ? (ebb_step){region_handle(region), ticket.lane} : none;
}

ebb_step ebb_step_begin_under(ebb_site *site, ebb_region parent, uint64_t tag) {
    return begin(site, parent, tag);
}

ebb_step ebb_step_begin(ebb_site *site, uint64_t tag) {
    return begin(site, (ebb_region){NULL, 0}, tag);
}

/* ---- end ---- */

struct lane *step_find_open(ebb_step step) {
    struct region *region = region_find(step.region);
    if (!region)
        return NULL;
    if (!region->step || region->step->closed != region_was_closed)
        error_set(EBB_E_STALE, "region '%s' is not that of an open step: it has ended, or was none",
                  region->name);
    else if ((void *)region->step != step.lane)
        error_set(EBB_E_ARGUMENT, "region '%s' is that of another step", region->name);
    else
        return (struct lane *)region->step;
    return NULL;
}

/* The same, if this thread may end it. */
static struct lane *find_ending(ebb_step step) {
    struct lane *lane = step_find_open(step);
    if (lane && lane->region->closing) {
        region_refuse_closing(lane->region);
        return NULL;
    }
    return lane && scope_is_own(lane) ? lane : NULL;
}

static bool is_bare(struct region *region) {
    remote_look(region); /* there may be strays */
    return !region->counted.in && !region->reserved.peak && !region->strays;
}

/* Pages that the step leaves serve as a desk for making its plan. */
static bool is_workshop(const struct region *region) {
    return !region->pool->slot && !region->hollow;
}

/* From here on the step is over, but its lane is not free and its region still open. */
static void finish(struct lane *lane, struct ended *ended) {
    struct region *region = lane->region;
    *ended = (struct ended){.promoted_bytes = region->promoted,
                            .pool = is_workshop(region) ? region->pool : NULL};
    region->step = NULL;
    if (lane->scope)
        scope_server->end(lane->scope);
    lane->scope = NULL;
    ended->bare = is_bare(region);
    ended->empty = ended->bare && lane->mode == LEARN_PLAIN;
    if (ended->empty) /* `cost` and `seen` are all zero */
        return;
    if (lane->track) {
        error_mute();
        track_finish(lane->track, &ended->seen);
        error_unmute();
    }
    ended->cost = region_read_cost(region);
    if (lane->track)
        *past_of(lane) = (struct lane_past){lane->track->above, lane->track->sees_above,
                                            ended->cost.reserved_peak};
    ended->strays = region->strays;
}

/* True: it was counted as well, under the same lock. */
static bool learn(struct lane *lane, const struct ended *ended, struct excess *excess) {
    if (ended->empty)
        return false;
    error_mute();
    bool counted = course_learn(lane, ended, excess);
    error_unmute();
    return counted;
}

/* The region closes or stays for the ring, the site learns, the lane is free. Who calls this tells
 * the program what was too much, last. */
static int retire(struct lane *lane, const struct ended *ended, struct excess *excess) {
    struct region *region = lane->region;
    struct ebb_closed closed = {0, 0};
    excess->told.site = NULL;
    if (!ring_keep(lane, region))
        region_close(region, &closed);
    if (!bare_end(lane, ended) && !learn(lane, ended, excess))
        site_count(lane, ended, excess);
    return region_closed(&closed);
}

int ebb_step_end(ebb_step step) {
    struct ended ended;
    struct excess excess;
    struct lane *lane = find_ending(step);
    if (!lane)
        return error_latest();
    finish(lane, &ended);
    int result = retire(lane, &ended, &excess);
    excess_tell(&excess);
    return result;
}

/* Blocks of the step that end with it, but those that live on as copies. */
static uint64_t count_lost(struct region *region, uint64_t copied) {
    if (region->track)
        due_rest(region->track);
    return count_live_blocks(region) - copied;
}

int ebb_step_end_keeping(ebb_step step, ebb_region target, struct ebb_survivor *survivors,
                         size_t count, struct ebb_promoted *cost, uint64_t *lost_blocks) {
    struct ebb_promoted spent = {0};
    struct ended ended;
    struct excess excess;
    uint64_t apart;
    struct lane *lane = find_ending(step);
    if (!lane)
        return error_latest();
    if (target.lane == step.region.lane && target.generation == step.region.generation)
        return error_set(EBB_E_NOT_ANCESTOR, "the step of region '%s' cannot keep into itself",
                         lane->region->name);
    remote_settle_below(lane->region); /* not later: what was copied would count as gone */
    int result = promote_at_end_of_step(step.region, target, survivors, count,
                                        __builtin_return_address(0), &spent, &apart);
    if (result)
        return result;
    const struct region *keeper = (const struct region *)target.lane;
    size_t before = keeper->pinned_by_ends;
    if (lost_blocks)
        *lost_blocks = count_lost(lane->region, spent.copied_blocks - apart);
    finish(lane, &ended);
    result = retire(lane, &ended, &excess);
    spent.pinned_bytes += keeper->pinned_by_ends - before;
    promoted_add(cost, &spent);
    excess_tell(&excess);
    return result;
}

/* ---- blocks ---- */

void *ebb_step_alloc(ebb_step step, size_t bytes, size_t align, uint32_t key) {
    struct region *region = region_find(step.region);
    if (!region)
        return NULL;
    if (!key) {
        error_set(EBB_E_ARGUMENT, "key 0 of a block of %zu bytes is none", bytes);
        return NULL;
    }
    return block_allocate_keyed(region, bytes, align, key, __builtin_return_address(0));
}
