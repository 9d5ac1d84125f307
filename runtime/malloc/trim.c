// SPDX-License-Identifier: Apache-2.0
/* trim.c - giving memory back (see trim.h). Nothing here can fail. */
#include "malloc/trim.h"
#include "malloc/general.h"
#include "malloc/heap.h"
#include "malloc/scope.h"
#include "malloc/swings.h"

#include "base/error.h"
#include "base/os.h"
#include "base/size.h"
#include "pool/pool.h"

#define AT_ONCE_NS 1000000u      /* a trim in idle time may take so long, or hold a lock */
#define PAUSE_NS 50000u          /* between two of its parts */
#define PAUSES_MOST 100u         /* in a row */
#define LEAST ((size_t)1 << 20)  /* so much goes at least in one part */

/* They count as what the pool has given back. */
static void note_given(size_t bytes) {
    struct ebb_pool *pool = heap_pool();
    if (!bytes)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->given_back += bytes;
    pthread_mutex_unlock(&pool->lock);
}

/* All pages that regions have, free or not. */
static size_t reserved(void) {
    struct ebb_pool *pool = heap_pool();
    if (!pool)
        return 0;
    pthread_mutex_lock(&pool->lock);
    size_t bytes = pool->reserved.current;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

/* Who waits for a lock gets it, even if that is unfair and the system busy. */
static void let_others_in(void) {
    static const uint32_t nobody;
    unsigned pauses = 0;
    do
        (void)os.wait(&nobody, 0, PAUSE_NS);
    while (heap_is_awaited() && ++pauses < PAUSES_MOST);
}

/* What others have freed of threads that rest, what is free in parked scopes, and empty trays; the
 * bytes without these. Each heap has its turn. No more goes then than there is, or threads at work
 * could keep this one here for ever. */
static size_t cool_all(void) {
    struct heap_cooling cooling = {.limit_ns = AT_ONCE_NS, .trim = heap_begin_trim()};
    size_t most = reserved();
    while (heap_cool(&cooling) && (!cooling.is_around || cooling.given < most))
        let_others_in();
    note_given(cooling.given);
    return cooling.given;
}

/* The same where it has waited long enough, a part. True: nothing is left. */
static bool cool_part(struct trim_idle *idle, unsigned least_ms) {
    struct heap_cooling cooling = {.now_ms = idle->now_ms,
                                   .least_ms = least_ms,
                                   .limit_ns = AT_ONCE_NS,
                                   .turn_of = idle->turn_of,
                                   .exhausted = idle->exhausted};
    bool is_left = heap_cool(&cooling);
    idle->turn_of = cooling.turn_of;
    idle->exhausted = cooling.exhausted;
    note_given(cooling.given);
    return !is_left;
}

/* Pages of trays that survivors pin, but do not need; the bytes. What others have begun ends first:
 * then all trays are looked at. Guarded, what is freed is held back. */
static size_t thin_all(void) {
    size_t bytes = 0;
    for (unsigned ends = 0; ends < 2 && !GUARDED;) {
        if (tray_thin(AT_ONCE_NS, true, &bytes))
            let_others_in();
        else
            ends++;
    }
    return bytes;
}

/* A part, where survivors pin too much. True: nothing is left. */
static bool thin_part(struct trim_idle *idle) {
    if (GUARDED || !scope_pins_too_much())
        return true;
    if (tray_thin(AT_ONCE_NS, false, &idle->thinned))
        return false;
    bool done = !idle->thinned;
    idle->thinned = 0;
    return done;
}

/* What the pool has cached, in parts as long as there is less after each; then the rest. */
static size_t trim_pool(ebb_pool *trimmed) {
    size_t left = SIZE_MAX, before, given = 0;
    do {
        before = left;
        given += ebb_pool_trim_within(trimmed, 0, AT_ONCE_NS, &left);
        if (left)
            let_others_in();
    } while (left && left < before);
    return given + ebb_pool_trim(trimmed, 0);
}

int trim_all(void) {
    heap_tidy_left();
    if (here.heap) {
        heap_drain(here.heap);
        heap_settle(here.heap);
        scope_rest_all(here.heap);
        heap_drop_stash(here.heap);
    }
    general_refresh();
    size_t before = general_read("stats.resident"), given = cool_all() + thin_all();
    general_trim();
    general_refresh();
    error_mute();
    if (heap_pool())
        given += trim_pool(heap_pool());
    error_unmute();
    return given || general_read("stats.resident") < before;
}

/* Ends of scopes in a row that find nothing to give before no more look. */
#define LOOKS 64u

size_t trim_after(bool had_step) {
    static _Atomic(unsigned) looks; /* to come. As it is it is not written: nobody takes the line */
    struct ebb_pool *pool = heap_pool();
    unsigned left = atomic_load_explicit(&looks, memory_order_relaxed);
    size_t back = 0;
    if (!had_step && left && pool) {
        pthread_mutex_lock(&pool->lock);
        back = pool_step_ended_locked(pool, 0, &(struct growth){0});
        pthread_mutex_unlock(&pool->lock);
    }
    unsigned next = had_step || back ? LOOKS : left ? left - 1 : 0;
    if (next != left)
        atomic_store_explicit(&looks, next, memory_order_relaxed);
    return back;
}

static size_t cached(struct ebb_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    size_t bytes = pool->pages.hot_bytes;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

/* An eighth of what is cached, or a little, and bookkeeping. True: nothing is left. */
static bool trim_part(void) {
    struct ebb_pool *pool = heap_pool();
    size_t bytes = cached(pool), part = size_larger(bytes / 8, LEAST);
    (void)ebb_pool_trim_within(pool, bytes > part ? bytes - part : 0, AT_ONCE_NS, NULL);
    return cached(pool) == 0 && !pool_bookkeeping_is_left();
}

/* For how long the count has been the same. */
static uint64_t idle_for(uint64_t *seen, uint64_t count, uint64_t idle_ms, unsigned tick_ms) {
    bool is_same = *seen == count;
    *seen = count;
    return is_same ? idle_ms + tick_ms : 0;
}

/* Threads at work see to the pages of their arenas themselves, and when one pauses for a moment
 * only, what it needs next is not to go. Arenas of threads that rest are looked at now and then. */
static void decay(struct trim_idle *idle, unsigned tick_ms) {
    idle->since_decay_ms += tick_ms;
    if (!idle->idle_ms && idle->since_decay_ms < GENERAL_AGES_MS)
        return;
    idle->since_decay_ms = 0;
    general_decay();
}

bool trim_when_idle(struct trim_idle *idle, unsigned tick_ms, unsigned least_ms) {
    struct heap_ended ended = heap_read_ended();
    uint64_t changes = ended.scopes + (idle->falls = swings_count());
    idle->idle_ms = idle_for(&idle->changes, changes, idle->idle_ms, tick_ms);
    idle->large_idle_ms =
        idle_for(&idle->large_scopes, ended.large_scopes, idle->large_idle_ms, tick_ms);
    heap_tidy_left();
    idle->now_ms += tick_ms;
    bool done = cool_part(idle, least_ms);
    done = thin_part(idle) && done;
    decay(idle, tick_ms);
    if (idle->large_idle_ms < least_ms)
        return false;
    error_mute();
    done = (!heap_pool() || trim_part()) && done;
    error_unmute();
    /* what the general heap has freed ages for ten seconds */
    return done && idle->idle_ms > least_ms + GENERAL_AGES_MS;
}
