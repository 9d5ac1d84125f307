// SPDX-License-Identifier: Apache-2.0
/*
 * ring.c - ended steps that stay readable.
 *
 *     ring of 2     | step 6 | step 7 | step 5 |   step 8 begins: the region of step 5 closes
 *                             berth of step 8 = 8 modulo 3
 *
 * Invariant: a region in a berth is open and its hook leads there; whoever closes it, a step that
 * begins or a parent that ends, takes it out. A step that has waited for a slot of a shared pool
 * may find that another thread is in a callback of the region by then, or of one below: it takes it
 * out, no more, and the program closes it, before the site ends. Nothing else of another thread is
 * seen here: it may not be at work there. Fails only where a lane is made.
 */
#include "step/site.h"

static unsigned berth_count(const struct lane *lane) {
    return lane->site->options.ring + 1;
}

/* The region is closed with its parent. */
static void forget(struct step_hook *hook) {
    struct berth *berth = (struct berth *)hook;
    pthread_mutex_lock(&berth->lane->site->lock);
    berth->region->given_back = NULL; /* the site may be gone when its pages go */
    berth->region = NULL;
    pthread_mutex_unlock(&berth->lane->site->lock);
}

/* The program has closed a region that was taken out. */
static void forget_outcast(struct step_hook *hook) {
    struct outcasts *outcasts = (struct outcasts *)hook;
    pthread_mutex_lock(&outcasts->site->lock);
    outcasts->count--;
    pthread_mutex_unlock(&outcasts->site->lock);
}

void ring_prepare(struct ebb_site *site) {
    site->outcasts = (struct outcasts){.hook = {.closed = forget_outcast}, .site = site};
}

bool ring_create(struct lane *lane) {
    unsigned count = berth_count(lane);
    lane->ring = lane_allocate(lane->site, count * sizeof *lane->ring);
    if (!lane->ring)
        return false;
    for (unsigned i = 0; i < count; i++) {
        lane->ring[i].hook.closed = forget;
        lane->ring[i].lane = lane;
    }
    return true;
}

bool ring_hangs_below_another(const struct lane *lane, const struct region *parent) {
    for (unsigned i = 0; i < berth_count(lane); i++) {
        const struct berth *berth = &lane->ring[i];
        if (berth->region && berth->parent && berth->parent != parent)
            return true;
    }
    return false;
}

static const struct berth *next_berth(const struct lane *lane) {
    return &lane->ring[lane->steps % berth_count(lane)];
}

/* That of the next step's berth. */
static struct region *oldest(const struct lane *lane) {
    return next_berth(lane)->region;
}

bool ring_follows(const struct lane *lane, const struct course *course, const struct plan *plan) {
    const struct track *track = next_berth(lane)->tracks[course - lane->site->courses];
    return track && track->plan == plan;
}

bool ring_is_stuck(const struct lane *lane) {
    return lane->site->options.ring && oldest(lane) && oldest(lane)->closing;
}

unsigned ring_count_closing(const struct lane *lane) {
    unsigned closing = 0;
    for (unsigned i = 0; i < berth_count(lane); i++)
        closing += lane->ring[i].region && lane->ring[i].region->closing;
    return closing;
}

struct berth *ring_present(const struct lane *lane) {
    return &lane->ring[(lane->steps - 1) % berth_count(lane)];
}

struct region *ring_oldest(const struct lane *lane) {
    if (!lane->site->options.ring)
        return NULL;
    pthread_mutex_lock(&lane->site->lock);
    struct region *region = oldest(lane);
    pthread_mutex_unlock(&lane->site->lock);
    return region;
}

static struct region *take_out(struct berth *berth) {
    struct region *region = berth->region;
    berth->region = NULL;
    if (region)
        region->step = NULL;
    return region;
}

struct region *ring_turn(struct lane *lane) {
    lane->steps++;
    if (!lane->site->options.ring)
        return NULL;
    pthread_mutex_lock(&lane->site->lock);
    struct berth *berth = ring_present(lane);
    struct region *region = take_out(berth);
    berth->has_outcast = berth->has_outcast && lane->site->outcasts.count;
    if (region && region->closing) { /* lane_take() saw it before the step waited */
        region->given_back = NULL;   /* as in forget() */
        region->step = &lane->site->outcasts.hook;
        lane->site->outcasts.count++;
        berth->has_outcast = true;
        region = NULL;
    }
    pthread_mutex_unlock(&lane->site->lock);
    return region;
}

void ring_turn_back(struct lane *lane) {
    lane->steps--;
}

bool ring_keep(struct lane *lane, struct region *region) {
    struct berth *berth = ring_present(lane);
    if (!lane->site->options.ring)
        return false;
    pthread_mutex_lock(&lane->site->lock);
    berth->region = region;
    berth->parent = region->parent;
    region->step = &berth->hook;
    pthread_mutex_unlock(&lane->site->lock);
    return true;
}

void ring_end(struct lane *lane) {
    struct ebb_closed closed = {0, 0};
    for (unsigned i = 0; i < berth_count(lane); i++) {
        struct berth *berth = &lane->ring[i];
        if (berth->region)
            region_close(berth->region, &closed); /* which takes it out, once its cleanups ran */
        for (unsigned k = 0; k < SITE_COURSES; k++)
            if (berth->tracks[k])
                track_destroy(berth->tracks[k]);
    }
}
