// SPDX-License-Identifier: Apache-2.0
/*
 * site.c - sites: their birth, their end, their counters (see site.h).
 *
 * A site lies in a region of its own, with its lanes; no memory is wanted from the program.
 * Invariant: `open_steps` lanes are open. Refuses options that make no sense (EBB_E_ARGUMENT) and
 * the end of a site with an open step, or of which a cleanup runs, or that is open though it was
 * taken out of its ring (EBB_E_BUSY).
 */
#include "step/site.h"

#include "base/error.h"
#include "base/name.h"
#include "step/scope.h"

static _Atomic(uint64_t) numbers; /* of sites with scopes, so far */

static const struct ebb_site_options defaults = {.size = sizeof(struct ebb_site_options)};

/* ---- birth ---- */

static int check_options(const struct ebb_site_options *options) {
    if (options->size != sizeof *options)
        return error_set(EBB_E_ARGUMENT, "site options: size field is %zu, expected %zu",
                         options->size, sizeof *options);
    if (options->ring > SITE_RING_MOST)
        return error_set(EBB_E_ARGUMENT, "site options: a ring of %u, above %u", options->ring,
                         SITE_RING_MOST);
    return 0;
}

#define SITE_BYTES ((size_t)16 << 10) /* a site, some lanes, their tracks */

static struct ebb_site *make_site(ebb_region memory, const struct ebb_site_options *options) {
    struct ebb_site *site = ebb_region_alloc(memory, sizeof *site, EBB_UNIT);
    if (!site)
        return NULL;
    memset(site, 0, offsetof(struct ebb_site, courses));
    pthread_mutex_init(&site->lock, NULL); /* never fails here: default attributes */
    site->memory = memory;
    ring_prepare(site);
    site->options = *options;
    name_copy(site->name, sizeof site->name, options->name ? options->name : "site");
    site->options.name = site->name;
    site->stats.size = sizeof site->stats;
    if (options->scope) /* relaxed: only that no two are the same matters */
        site->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
    site->is_bare = options->scope && !options->ring && !budget_is_set(&options->budget);
    return site;
}

static struct ebb_site *create(const struct ebb_site_options *options, bool is_inner) {
    if (check_options(options) != 0)
        return NULL;
    sites_prepare();
    ebb_pool *pool = plan_pool();
    if (!pool)
        return NULL;
    ebb_region memory = ebb_region_open(
        EBB_REGION_OPTIONS(.name = "site", .pool = pool, .hint_bytes = SITE_BYTES));
    if (!ebb_region_is_open(memory))
        return NULL;
    struct ebb_site *site = make_site(memory, options);
    if (!site) {
        ebb_region_close(memory);
        return NULL;
    }
    site->is_inner = is_inner;
    sites_add(site);
    return site;
}

struct ebb_site *ebb_site_create(const struct ebb_site_options *options) {
    return create(options ? options : &defaults, false);
}

struct ebb_site *site_create_inner(const struct ebb_site_options *options) {
    return create(options, true);
}

/* ---- end ---- */

static int check_idle(struct ebb_site *site) {
    unsigned closing = 0;
    pthread_mutex_lock(&site->lock); /* whoever ended the last step is done with the site */
    unsigned outcasts = site->outcasts.count;
    uint64_t open = lane_count_open(site);
    for (const struct lane *lane = site->lanes; lane; lane = lane->next)
        closing += ring_count_closing(lane);
    pthread_mutex_unlock(&site->lock);
    if (open)
        return error_set(EBB_E_BUSY, "site '%s' has %llu open steps", site->name,
                         (unsigned long long)open);
    if (closing)
        return error_set(EBB_E_BUSY, "site '%s' has %u steps in rings of which cleanups run",
                         site->name, closing);
    if (outcasts)
        return error_set(EBB_E_BUSY, "site '%s' has %u steps that were taken out of rings, and are "
                         "open", site->name, outcasts);
    return 0;
}

int ebb_site_destroy(struct ebb_site *site) {
    if (!site)
        return 0;
    if (check_idle(site) != 0)
        return EBB_E_BUSY;
    if (scope_server && site->served && scope_server->forget(site) != 0)
        return error_latest();
    search_end(site);
    site->is_ending = true; /* for cleanups in its rings */
    for (struct lane *lane = site->lanes; lane; lane = lane->next)
        ring_end(lane);
    for (unsigned i = 0; i < site->course_count; i++)
        course_end(&site->courses[i]);
    sites_remove(site);
    pthread_mutex_destroy(&site->lock);
    ebb_region_close(site->memory);
    plan_pool_rest(0);
    return 0;
}

/* ---- counters ---- */

uint64_t ended_allocations(const struct ended *ended) {
    const struct track_seen *seen = &ended->seen;
    return ended->cost.blocks + seen->tenured_right + seen->tenured_wrong + seen->guests;
}

static struct ebb_churn_budget spent_by(const struct ended *ended) {
    const struct track_seen *seen = &ended->seen;
    return (struct ebb_churn_budget){
        .bytes = ended->cost.bytes + seen->tenured_right_bytes +
                 seen->tenured_wrong_bytes + seen->guest_bytes,
        .allocations = ended_allocations(ended),
        .promoted_bytes = ended->promoted_bytes,
        .reserved_bytes = ended->cost.reserved_peak,
    };
}

static void count_seen(struct ebb_site_stats *stats, const struct track_seen *seen) {
    stats->planned_steps += seen->served;
    stats->recorded_steps += seen->recorded;
    stats->hits += seen->hits;
    stats->hit_bytes += seen->hit_bytes;
    stats->missed += seen->missed;
    stats->missed_bytes += seen->missed_bytes;
    stats->tenured_right += seen->tenured_right;
    stats->tenured_right_bytes += seen->tenured_right_bytes;
    stats->tenured_wrong += seen->tenured_wrong;
    stats->tenured_wrong_bytes += seen->tenured_wrong_bytes;
    stats->guests += seen->guests;
    stats->guest_bytes += seen->guest_bytes;
    stats->takeovers += seen->taken_over;
}

void site_count_locked(struct lane *lane, const struct ended *ended, struct excess *excess) {
    struct ebb_site *site = lane->site;
    struct ebb_site_stats *stats = &site->stats;
    struct ebb_churn_budget spent = spent_by(ended);
    stats->excesses += excess_find(excess, &site->options, stats->steps, &spent);
    stats->steps++;
    stats->allocations += spent.allocations;
    stats->allocated_bytes += spent.bytes;
    stats->strays += ended->strays;
    stats->used_peak = size_larger(stats->used_peak, ended->cost.used_peak);
    stats->reserved_peak = size_larger(stats->reserved_peak, ended->cost.reserved_peak);
    count_seen(stats, &ended->seen);
    if (!ended->bare)
        atomic_store_explicit(&site->is_bare, false, memory_order_relaxed);
    lane_release_locked(lane);
    idle_look(site);
}

void site_count(struct lane *lane, const struct ended *ended, struct excess *excess) {
    struct ebb_site *site = lane->site; /* the lane may be another thread's soon */
    pthread_mutex_lock(&site->lock);
    site_count_locked(lane, ended, excess);
    pthread_mutex_unlock(&site->lock);
}

void site_count_plan(struct ebb_site *site, const struct plan *plan) {
    struct ebb_site_stats *stats = &site->stats;
    stats->plans++;
    stats->plan_slots = plan->slot_count;
    stats->plan_height = plan->height_bytes;
    stats->plan_max_live = plan->max_live_bytes;
}

int ebb_site_read_stats(struct ebb_site *site, struct ebb_site_stats *stats) {
    if (!site || !stats || stats->size != sizeof *stats)
        return error_set(EBB_E_ARGUMENT, "site stats: site %p, size field is %zu, expected %zu",
                         (void *)site, stats ? stats->size : 0, sizeof *stats);
    pthread_mutex_lock(&site->lock);
    *stats = site->stats;
    stats->steps += bare_count(site);
    stats->suspended = site->newest && site->newest->learning.suspended;
    stats->row_steps = course_row(site);
    /* relaxed: regions that close add to it */
    stats->given_back = atomic_load_explicit(&site->given_back, memory_order_relaxed);
    pthread_mutex_unlock(&site->lock);
    return 0;
}
