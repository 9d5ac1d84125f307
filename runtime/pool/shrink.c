// SPDX-License-Identifier: Apache-2.0
/*
 * shrink.c - giving memory back: on request, and by itself at step boundaries.
 *
 * The moving peak is the second highest of the last POOL_RECENT steps' peaks: one exceptional
 * step does not count, two do. What lies above it plus a margin goes back. A step that was
 * exceptional made many pages resident, and each of those cost ten times what giving it back
 * costs; so it may give back as many at its own close, and no later step is slowed down. A pool
 * that has to shrink without such a step does so in small parts, a quarter of a step at a time.
 *
 * Recent peaks know nothing of what a spike leaves in its parent (survivors): the next step finds
 * it there and needs as much as ever besides. So that is kept above them.
 *
 * A pool that has a time for it (`trim_ns`) gives back as much as that allows instead. Where pages
 * are wanted again soon after, as with a long request among twenty short ones, it keeps as many as
 * the step had that wanted them, until none has wanted half of that for long. What is above that,
 * as after a load that was higher than any other, goes as soon as ever.
 *
 * Invariant: pages that runs own are never touched.
 */
#include "base/error.h"
#include "base/os.h"
#include "base/size.h"
#include "pool/pool.h"
#include "pool/shared.h"
#include "pool/starts.h"

#define SPARE ((size_t)4 << 20)  /* kept above that where much may go at once */
#define SLACK ((size_t)64 << 10) /* kept above the margin: small steps never trim */
#define DESCRIBED_BY 4u          /* bookkeeping has at most this part of the pages it describes */
#define SOON (8 * POOL_RECENT)   /* steps after giving back in which it can be regretted */
#define EARLY POOL_RECENT        /* of these: sooner a load goes on, as the moving peak sees */
#define LONG (32 * POOL_RECENT)  /* steps for which is kept what was regretted */

size_t pool_recent_peak_locked(const struct ebb_pool *pool) {
    const struct recent *recent = &pool->recent;
    size_t highest = 0, second = 0;
    for (unsigned i = 0; i < recent->count; i++) {
        size_t peak = recent->peaks[i];
        second = size_larger(second, size_smaller(peak, highest));
        highest = size_larger(highest, peak);
    }
    return recent->count < 2 ? highest : second;
}

static void note_peak(struct recent *recent) {
    recent->peaks[recent->next] = recent->now;
    recent->next = (recent->next + 1) % POOL_RECENT;
    if (recent->count < POOL_RECENT)
        recent->count++;
}

/* Did the step want pages that were given back, or what is kept since one did? */
static void note_wanted(struct recent *recent) {
    bool wants = recent->given_left && recent->new_bytes > SLACK;
    bool again = wants && recent->given_left <= SOON - EARLY;
    if (recent->given_left)
        recent->given_left = wants ? 0 : recent->given_left - 1;
    if (recent->wanted_left && --recent->wanted_left == 0)
        recent->wanted = 0;
    if (again)
        recent->wanted = size_larger(recent->wanted,
                                     size_smaller(recent->now, recent->given_from));
    if (recent->wanted && (again || recent->now > recent->wanted / 2))
        recent->wanted_left = LONG;
}

/* What regions no longer need of it, *most bytes at most. True: nothing is left. */
static bool trim_bookkeeping(uint64_t deadline_ns, size_t *most) {
    bool no_starts = starts_trim(deadline_ns, most);
    return piece_trim(deadline_ns, most) && no_starts;
}

static uint64_t deadline_of(const struct ebb_pool *pool) {
    return pool->trim_ns ? os.now_ns() + pool->trim_ns : 0;
}

/* After pages goes what described them; what there is no time for waits. Were all of it to go each
 * time that a few pages do, steps that take turns would have to touch it again. */
static void give_described(struct ebb_pool *pool, uint64_t deadline_ns) {
    if (trim_bookkeeping(deadline_ns, &pool->recent.described))
        pool->recent.described = 0;
}

static void cool_locked(struct ebb_pool *pool, size_t cached_target, size_t most) {
    size_t hot = pool->pages.hot_bytes;
    uint64_t deadline = deadline_of(pool);
    pool->given_back += pages_cool(&pool->pages, cached_target,
                                   pool->trim_ns ? SIZE_MAX : most, deadline);
    size_t cooled = hot - pool->pages.hot_bytes; /* resident or not */
    pool->reserved.current -= cooled;
    pool->recent.described += cooled / DESCRIBED_BY;
    give_described(pool, deadline);
}

/* More than so much is given back down to `keep`: rarely much, not a little each time. */
static size_t most_reserved(const struct ebb_pool *pool, size_t keep) {
    return keep + keep / 8 + (pool->trim_ns ? SPARE : 0);
}

/* In parts, each step's end some: what there was before the first of them counts. */
static void note_giving(struct recent *recent, size_t reserved) {
    if (recent->given_left)
        return;
    recent->given_left = SOON;
    recent->given_from = reserved;
}

/* The lower of the last two peaks, of which the newest is noted: the second highest of the recent
 * ones is no lower. */
static size_t lower_of_two(const struct recent *recent) {
    unsigned before = (recent->next + POOL_RECENT - 2) % POOL_RECENT;
    return recent->count < 2 ? 0 : size_smaller(recent->now, recent->peaks[before]);
}

static size_t keep_for(const struct ebb_pool *pool, size_t peak) {
    return peak + peak / 100 * pool->keep_margin_percent + SLACK;
}

/* False: there is no more than steps need, as the last two mostly tell. */
static bool shrink_locked(struct ebb_pool *pool) {
    struct recent *recent = &pool->recent;
    size_t owned = pool->pages.run_bytes;
    size_t least = size_larger(keep_for(pool, lower_of_two(recent)), owned);
    if (pool->reserved.current <= most_reserved(pool, least))
        return false;
    size_t peak = size_larger(pool_recent_peak_locked(pool), recent->wanted);
    size_t keep = keep_for(pool, peak);
    bool is_spike = recent->count == POOL_RECENT && recent->now > 2 * peak; /* no start, either */
    size_t left = is_spike ? owned - size_smaller(owned, recent->before) : 0;
    keep = size_larger(keep + left, owned);
    if (pool->reserved.current <= most_reserved(pool, keep))
        return false;
    size_t most = size_larger(recent->new_bytes, recent->now / 4);
    note_giving(recent, pool->reserved.current);
    cool_locked(pool, keep - owned, size_larger(most, SLACK));
    return true;
}

/* Pages first, and at ends of steps at which none are to go what described those that went. */
static void give_back_locked(struct ebb_pool *pool) {
    size_t owned = pool->pages.run_bytes;
    if (pool->reserved.current > most_reserved(pool, size_larger(owned, SLACK)) &&
        shrink_locked(pool))
        return;
    if (pool->recent.described >= PIECES_BATCH_BYTES)
        give_described(pool, deadline_of(pool));
}

size_t pool_step_ended_locked(struct ebb_pool *pool, size_t untouched) {
    struct recent *recent = &pool->recent;
    size_t owned = pool->pages.run_bytes, given_before = pool->given_back;
    recent->now -= size_smaller(recent->now, untouched);
    note_peak(recent);
    if (pool->trim_ns)
        note_wanted(recent);
    if (!pool->keep_all)
        give_back_locked(pool);
    recent->now = recent->before = owned;
    recent->new_bytes = 0;
    return pool->given_back - given_before;
}

void pool_needs_less_locked(struct ebb_pool *pool, size_t bytes) {
    struct recent *recent = &pool->recent;
    recent->now -= size_smaller(recent->now, bytes);
    recent->before -= size_smaller(recent->before, bytes);
    for (unsigned i = 0; i < recent->count; i++)
        recent->peaks[i] -= size_smaller(recent->peaks[i], bytes);
}

bool pool_give_all_locked(struct ebb_pool *pool) {
    size_t hot = pool->pages.hot_bytes;
    pool->given_back += pages_cool(&pool->pages, 0, SIZE_MAX, 0);
    pool->reserved.current -= hot - pool->pages.hot_bytes;
    return pool->pages.hot_bytes == 0;
}

void pool_keep_hot(struct ebb_pool *pool, size_t bytes) {
    pthread_mutex_lock(&pool->lock);
    cool_locked(pool, bytes, SIZE_MAX);
    pthread_mutex_unlock(&pool->lock);
}

void pool_trim_bookkeeping(uint64_t deadline_ns) {
    size_t most = SIZE_MAX;
    (void)trim_bookkeeping(deadline_ns, &most);
}

bool pool_bookkeeping_is_left(void) {
    size_t nothing = 0;
    return !trim_bookkeeping(0, &nothing);
}

size_t ebb_pool_trim_within(struct ebb_pool *pool, size_t target_bytes, uint64_t budget_ns,
                            size_t *remaining_bytes) {
    if (!pool) {
        error_set(EBB_E_ARGUMENT, "trim of a NULL pool");
        return 0;
    }
    uint64_t now = budget_ns ? os.now_ns() : 0;
    uint64_t deadline = budget_ns < UINT64_MAX - now ? now + budget_ns : 0; /* 0: none */
    if (pool_is_shared(pool)) {
        size_t left, freed = shared_trim(pool, target_bytes, deadline, &left);
        if (remaining_bytes)
            *remaining_bytes = left;
        return freed;
    }
    pthread_mutex_lock(&pool->lock);
    size_t hot = pool->pages.hot_bytes;
    if (pool->drop_spares_locked)
        pool->drop_spares_locked(pool);
    pool_trim_bookkeeping(deadline); /* before pages: once all of these went, it has, too */
    size_t given = pages_cool(&pool->pages, target_bytes, SIZE_MAX, deadline);
    pool->reserved.current -= hot - pool->pages.hot_bytes;
    pool->given_back += given;
    if (remaining_bytes)
        *remaining_bytes = pages_left(&pool->pages, target_bytes);
    pthread_mutex_unlock(&pool->lock);
    return given;
}

size_t ebb_pool_trim(struct ebb_pool *pool, size_t target_bytes) {
    return ebb_pool_trim_within(pool, target_bytes, 0, NULL);
}
