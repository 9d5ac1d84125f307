// SPDX-License-Identifier: Apache-2.0
/*
 * shrink.c - giving memory back: on request, and by itself at step boundaries.
 *
 * The moving peak is the second highest of the last POOL_RECENT steps' peaks: one exceptional
 * step does not count, two do. Recent peaks know nothing of what the last step leaves in its parent
 * (survivors), where that is more than steps found so far: the next one finds it there and needs as
 * much as ever besides. So that is kept above them. What lies above both plus a margin goes back.
 * The margin is a part of what steps need above what was owned all the time: a cache that they
 * leave as it is needs none, however large it is. And it is the lowest that counts, since steps of
 * several threads overlap, and find there what others have for a moment.
 *
 * An exceptional step made many pages resident, and each of those cost ten times what giving it
 * back costs; so it may give back as many at its own close, and no later step is slowed down. A
 * pool that has to shrink without such a step does so in small parts, a quarter of a step at a
 * time.
 *
 * A pool that has a time for it (`trim_ns`) gives back as much as that allows instead. Where pages
 * are wanted again soon after, as with a long request among twenty short ones, it keeps as many as
 * the step had that wanted them, until none has wanted half of that for long. What is above that,
 * as after a load that was higher than any other, goes as soon as ever.
 *
 * Where a step needs new pages though others are hot, because these are in parts, parts go in
 * return, if the pool would else hold more than it ever did. But in the first steps only, of which
 * nothing is known, and until in all as many bytes went as it holds: steps that go on to differ
 * would fault for ever, and the parts would get smaller.
 *
 * Pages that ebb works in to make a plan are no part of what steps had: it works between them.
 *
 * Invariant: pages that runs own are never touched.
 */
#include "base/error.h"
#include "base/os.h"
#include "base/size.h"
#include "pool/pool.h"
#include "pool/shared.h"
#include "pool/starts.h"

#define LITTLE ((size_t)4 << 20) /* up to that margins are parts of all */
#define SPARE ((size_t)4 << 20)  /* kept above that where much may go at once */
#define SLACK ((size_t)64 << 10) /* kept above the margin: small steps never trim */
#define DESCRIBED_BY 4u          /* bookkeeping has at most this part of the pages it describes */
#define LEVEL_LEAST ((size_t)256 << 10) /* new pages for which others go; less is not worth it */
#define SOON (8 * POOL_RECENT)   /* steps after giving back in which it can be regretted */
#define EARLY POOL_RECENT        /* of these: sooner a load goes on, as the moving peak sees */
#define LONG (32 * POOL_RECENT)  /* steps for which is kept what was regretted */

/* What recent steps tell of the next one, in owned bytes. */
struct outlook {
    size_t peak;  /* the moving peak */
    size_t base;  /* the least that a step found when it began, and what there is now */
    size_t crest; /* the most that one found */
};

/* Of the newest steps, `most` at most: of fewer, the peak and the crest are no higher, and the base
 * is no lower. */
static struct outlook look(const struct ebb_pool *pool, unsigned most) {
    const struct recent *recent = &pool->recent;
    struct outlook seen = {.base = pool_owned_locked(pool)};
    unsigned count = most < recent->count ? most : recent->count;
    size_t highest = 0, second = 0;
    for (unsigned back = 1; back <= count; back++) {
        unsigned i = (recent->next + POOL_RECENT - back) % POOL_RECENT;
        second = size_larger(second, size_smaller(recent->peaks[i], highest));
        highest = size_larger(highest, recent->peaks[i]);
        seen.base = size_smaller(seen.base, recent->found[i]);
        seen.crest = size_larger(seen.crest, recent->found[i]);
    }
    seen.peak = count < 2 ? highest : second;
    return seen;
}

size_t pool_recent_peak_locked(const struct ebb_pool *pool) {
    return look(pool, POOL_RECENT).peak;
}

static void note_step(struct recent *recent) {
    recent->peaks[recent->next] = recent->now;
    recent->found[recent->next] = recent->before;
    recent->next = (recent->next + 1) % POOL_RECENT;
    if (recent->count < POOL_RECENT)
        recent->count++;
}

/* Did the step want pages that were given back, or what is kept since one did? */
static void note_wanted(struct ebb_pool *pool) {
    struct recent *recent = &pool->recent;
    if (!recent->given_left && !recent->wanted)
        return;
    size_t base = look(pool, POOL_RECENT).base;
    size_t need = recent->now - size_smaller(recent->now, base);
    bool wants = recent->given_left && recent->new_bytes > SLACK;
    bool again = wants && recent->given_left <= SOON - EARLY;
    if (recent->given_left)
        recent->given_left = wants ? 0 : recent->given_left - 1;
    if (recent->wanted_left && --recent->wanted_left == 0)
        recent->wanted = 0;
    if (again)
        recent->wanted = size_larger(recent->wanted, size_smaller(need, recent->given_from));
    if (recent->wanted && (again || need > recent->wanted / 2))
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

/* Whoever's step ends need not hear what a driver refuses to take: it stays. */
static void cool_locked(struct ebb_pool *pool, size_t cached_target, size_t most) {
    size_t hot = pool->pages.hot_bytes;
    uint64_t deadline = deadline_of(pool);
    error_mute();
    pool->given_back += pages_cool(&pool->pages, cached_target,
                                   pool->trim_ns ? SIZE_MAX : most, deadline);
    error_unmute();
    size_t cooled = hot - pool->pages.hot_bytes; /* resident or not */
    pool->reserved.current -= cooled;
    pool->recent.described += cooled / DESCRIBED_BY;
    give_described(pool, deadline);
}

/* So much that is nobody's stays, whatever steps need. */
static size_t spare(const struct ebb_pool *pool) {
    return pool->trim_ns ? SPARE : 0;
}

/* What margins are parts of: what steps need above the base, or all where that is little, for what
 * is small anyhow need not be kept so short that some of it goes each time. */
static size_t varying(size_t level, size_t base) {
    return size_larger(level - base, size_smaller(level, LITTLE));
}

/* For steps that need as much as `peak`; not less than regions own. */
static size_t keep_for(const struct ebb_pool *pool, size_t peak, size_t base) {
    size_t level = size_larger(peak, pool->pages.run_bytes);
    return level + varying(level, base) / 100 * pool->keep_margin_percent + SLACK;
}

/* Is there so much more that it is given back down to `keep`? Rarely much, not a little often. */
static bool is_much(const struct ebb_pool *pool, size_t keep, size_t base) {
    return pool->reserved.current > keep + varying(keep, base) / 8 + spare(pool);
}

/* In parts, each step's end some: what there was before the first of them counts. */
static void note_giving(struct recent *recent, size_t above_base) {
    if (recent->given_left)
        return;
    recent->given_left = SOON;
    recent->given_from = above_base;
}

/* Is there more than steps need, as the last two of them tell? All of them tell of no less. */
static bool is_much_for_two(const struct ebb_pool *pool) {
    struct outlook seen = look(pool, 2);
    return is_much(pool, keep_for(pool, seen.peak, seen.base), seen.base);
}

/* For steps as all of them tell, with the margin or what is left for them to find. */
static size_t keep_for_all(const struct ebb_pool *pool, const struct outlook *seen) {
    size_t owned = pool_owned_locked(pool), left = owned - size_smaller(owned, seen->crest);
    size_t peak = size_larger(seen->peak, seen->base + pool->recent.wanted);
    return size_larger(keep_for(pool, peak, seen->base), peak + left + SLACK);
}

/* False: there is no more than steps need. */
static bool shrink_locked(struct ebb_pool *pool) {
    struct recent *recent = &pool->recent;
    if (!is_much_for_two(pool))
        return false;
    struct outlook seen = look(pool, POOL_RECENT);
    size_t keep = keep_for_all(pool, &seen);
    if (!is_much(pool, keep, seen.base))
        return false;
    size_t step = recent->now - size_smaller(recent->now, seen.base);
    size_t most = size_larger(recent->new_bytes, step / 4);
    note_giving(recent, pool->reserved.current - seen.base);
    cool_locked(pool, keep - pool->pages.run_bytes, size_larger(most, SLACK));
    return true;
}

/* Pages first, and at ends of steps at which none are to go what described those that went. */
static void give_back_locked(struct ebb_pool *pool) {
    if (pool->pages.hot_bytes > SLACK + spare(pool) && shrink_locked(pool))
        return;
    if (pool->recent.described >= PIECES_BATCH_BYTES)
        give_described(pool, deadline_of(pool));
}

/* The peak without what the step never used, unless it was there before the step had that. */
static size_t needed_peak(const struct recent *recent, size_t untouched,
                          const struct growth *growth) {
    size_t since = recent->now - size_smaller(recent->now, untouched);
    size_t before = growth->boundaries == recent->boundaries ? growth->peak : 0;
    return size_larger(since, size_smaller(before, recent->now));
}

size_t pool_step_ended_locked(struct ebb_pool *pool, size_t untouched,
                              const struct growth *growth) {
    struct recent *recent = &pool->recent;
    size_t owned = pool_owned_locked(pool), given_before = pool->given_back;
    recent->now = needed_peak(recent, untouched, growth);
    note_step(recent);
    if (pool->trim_ns)
        note_wanted(pool);
    if (!pool->keep_all)
        give_back_locked(pool);
    recent->now = recent->before = owned;
    recent->new_bytes = 0;
    recent->boundaries++;
    return pool->given_back - given_before;
}

void pool_work_ended_locked(struct ebb_pool *pool, size_t bytes) {
    pool->work_bytes -= bytes;
}

void pool_needs_less_locked(struct ebb_pool *pool, size_t bytes) {
    struct recent *recent = &pool->recent;
    recent->now -= size_smaller(recent->now, bytes);
    recent->before -= size_smaller(recent->before, bytes);
    for (unsigned i = 0; i < recent->count; i++) {
        recent->peaks[i] -= size_smaller(recent->peaks[i], bytes);
        recent->found[i] -= size_smaller(recent->found[i], bytes);
    }
}

bool pool_give_all_locked(struct ebb_pool *pool) {
    size_t hot = pool->pages.hot_bytes;
    pool->given_back += pages_cool(&pool->pages, 0, SIZE_MAX, 0);
    pool->reserved.current -= hot - pool->pages.hot_bytes;
    return pool->pages.hot_bytes == 0 && pages_clear(&pool->pages);
}

/* Steps are still to come of which nothing is known, and the pool may give pages back. */
static bool may_level(const struct ebb_pool *pool) {
    return pool->recent.count < POOL_RECENT && !pool->keep_all && !pool->pages.kind->whole &&
           !pool_is_leased(pool);
}

void pool_level_locked(struct ebb_pool *pool) {
    struct pages *pages = &pool->pages;
    size_t hot = pages->hot_bytes, held = pages->run_bytes + hot, peak = pool->reserved.peak;
    size_t above = held - size_smaller(held, peak);
    size_t most = size_smaller(above, peak - size_smaller(peak, pool->levelled));
    if (most < LEVEL_LEAST || hot - pages->kept_bytes < above - above / 4 || !may_level(pool))
        return;
    size_t target = size_larger(hot - size_smaller(hot, most), pages->kept_bytes);
    pool->given_back += pages_cool(pages, target, most, deadline_of(pool));
    pool->levelled += hot - pages->hot_bytes;
    pool->recent.described += (hot - pages->hot_bytes) / DESCRIBED_BY;
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
