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
 * A pool that has a time for it (`trim_ns`) gives back as much as that allows instead. Where pages
 * are wanted again soon after, as with a long request among twenty short ones, it looks back twice
 * as far from then on: its peaks are those of spans of steps. Where they are not, half as far.
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
#define SPAN_LOG2_MOST 5u        /* 512 steps are looked back on at most */
#define SOON 4u                  /* times what is looked back on */

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
    if (recent->left) {
        size_t *newest = &recent->peaks[(recent->next + POOL_RECENT - 1) % POOL_RECENT];
        *newest = size_larger(*newest, recent->now);
        recent->left--;
        return;
    }
    recent->left = (1u << recent->span_log2) - 1;
    recent->peaks[recent->next] = recent->now;
    recent->next = (recent->next + 1) % POOL_RECENT;
    if (recent->count < POOL_RECENT)
        recent->count++;
}

/* Was it right to give pages back? Once for each time that this was done. */
static void judge_giving(struct recent *recent) {
    bool is_late = ++recent->steps >= SOON * POOL_RECENT << recent->span_log2;
    bool is_regretted = recent->gave && recent->new_bytes > SLACK;
    if (!is_late && !is_regretted)
        return;
    if (is_regretted && recent->span_log2 < SPAN_LOG2_MOST)
        recent->span_log2++;
    else if (!is_regretted && recent->span_log2)
        recent->span_log2--;
    recent->gave = false;
    recent->steps = 0;
}

static void cool_locked(struct ebb_pool *pool, size_t cached_target, size_t most) {
    size_t hot = pool->pages.hot_bytes;
    uint64_t deadline = pool->trim_ns ? os.now_ns() + pool->trim_ns : 0;
    pool->given_back += pages_cool(&pool->pages, cached_target,
                                   pool->trim_ns ? SIZE_MAX : most, deadline);
    pool->reserved.current -= hot - pool->pages.hot_bytes;
    starts_trim();
    piece_trim();
}

/* More than so much is given back down to `keep`: rarely much, not a little each time. */
static size_t most_reserved(const struct ebb_pool *pool, size_t keep) {
    return keep + keep / 8 + (pool->trim_ns ? SPARE : 0);
}

static void shrink_locked(struct ebb_pool *pool) {
    const struct recent *recent = &pool->recent;
    size_t owned = pool->pages.run_bytes;
    size_t peak = pool_recent_peak_locked(pool);
    size_t keep = peak + peak / 100 * pool->keep_margin_percent + SLACK;
    keep = size_larger(keep, owned);
    if (pool->reserved.current > most_reserved(pool, keep)) {
        size_t most = size_larger(recent->new_bytes, recent->now / 4);
        cool_locked(pool, keep - owned, size_larger(most, SLACK));
        pool->recent.gave = true;
        pool->recent.steps = 0;
    }
}

void pool_step_ended_locked(struct ebb_pool *pool, size_t untouched) {
    struct recent *recent = &pool->recent;
    size_t owned = pool->pages.run_bytes;
    recent->now -= size_smaller(recent->now, untouched);
    note_peak(recent);
    if (pool->trim_ns)
        judge_giving(recent);
    if (!pool->keep_all && pool->reserved.current > most_reserved(pool, size_larger(owned, SLACK)))
        shrink_locked(pool);
    recent->now = owned;
    recent->new_bytes = 0;
}

bool pool_give_all_locked(struct ebb_pool *pool) {
    size_t hot = pool->pages.hot_bytes;
    pool->given_back += pages_cool(&pool->pages, 0, SIZE_MAX, 0);
    pool->reserved.current -= hot - pool->pages.hot_bytes;
    return pool->pages.hot_bytes == 0;
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
    size_t given = pages_cool(&pool->pages, target_bytes, SIZE_MAX, deadline);
    pool->reserved.current -= hot - pool->pages.hot_bytes;
    pool->given_back += given;
    starts_trim();
    piece_trim();
    if (remaining_bytes)
        *remaining_bytes = pages_left(&pool->pages, target_bytes);
    pthread_mutex_unlock(&pool->lock);
    return given;
}

size_t ebb_pool_trim(struct ebb_pool *pool, size_t target_bytes) {
    return ebb_pool_trim_within(pool, target_bytes, 0, NULL);
}
