// SPDX-License-Identifier: Apache-2.0
/*
 * step_threads.c - one site used by several threads at once: each step has its lane, plans are
 * shared, rings are of threads; a step moves between threads; threads come and go.
 *
 * Threads count what goes wrong instead of asserting. Run under ThreadSanitizer by tests/run.
 */
#include "kit/hard.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, STEPS = 60, BLOCKS = 40 };

static atomic_uint wrong;
static pthread_barrier_t end; /* nobody ends before the others have begun */

static void expect(bool holds) {
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

static void on_threads(unsigned count, void *(*body)(void *context), void *context) {
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&end, NULL, count), 0);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, context), 0);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&end);
    assert_int_equal(atomic_load(&wrong), 0);
}

static size_t size_at(unsigned i, unsigned scale) {
    return 200 + i % 5 * 1100 * scale;
}

static void work(ebb_step step, unsigned scale, unsigned seed) {
    void *live[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        live[i] = ebb_region_alloc(step.region, size_at(i, scale), 64);
        expect(live[i] != NULL);
        pattern_fill(live[i], size_at(i, scale), seed + i);
        if (i >= 4 && i % 2 == 0) {
            expect(pattern_holds(live[i - 4], size_at(i - 4, scale), seed + i - 4));
            expect(ebb_region_release(step.region, live[i - 4]) == 0);
        }
    }
    expect(pattern_holds(live[BLOCKS - 1], size_at(BLOCKS - 1, scale), seed + BLOCKS - 1));
}

static void *take_steps(void *context) {
    ebb_site *site = context;
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin(site, i % 3);
        work(step, 1 + i % 3 + (i == STEPS / 2), i * 1000);
        expect(ebb_step_end(step) == 0);
    }
    return NULL;
}

static void threads_take_steps_of_one_site(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    on_threads(THREADS, take_steps, site);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.steps, THREADS * STEPS);
    assert_int_equal(stats.allocations, THREADS * STEPS * BLOCKS);
    assert_true(stats.recorded_steps >= 2); /* how many more hangs on who comes first */
    assert_true(stats.hits > stats.missed * 9);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void *take_steps_in_rings(void *context) {
    ebb_site *site = context;
    unsigned char *before = NULL;
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin(site, 1);
        unsigned char *block = ebb_region_alloc(step.region, 3000, 64);
        pattern_fill(block, 3000, i);
        work(step, 1, i);
        expect(!before || pattern_holds(before, 3000, i - 1));
        before = block;
        expect(ebb_step_end(step) == 0);
    }
    expect(pattern_holds(before, 3000, STEPS - 1));
    pthread_barrier_wait(&end);
    return NULL;
}

static void each_thread_has_a_ring_of_its_own(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .ring = 1);
    on_threads(THREADS, take_steps_in_rings, site);
    assert_int_equal(pool_stats_of(stage->pool).open_regions, 1 + 2 * THREADS);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(pool_stats_of(stage->pool).open_regions, 1);
}

static void threads_that_have_ended_leave_their_rings_to_new_ones(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .ring = 1);
    for (int round = 0; round < 20; round++)
        on_threads(1, take_steps_in_rings, site);
    assert_int_equal(pool_stats_of(stage->pool).open_regions, 1 + 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

struct below {
    ebb_site *site;
    ebb_region parent;
};

static void *take_a_step_below(void *context) {
    struct below *below = context;
    ebb_step step = ebb_step_begin_under(below->site, below->parent, 1);
    work(step, 1, 7);
    expect(ebb_step_end(step) == 0);
    return NULL;
}

static void a_ring_below_a_parent_is_not_taken_over_by_steps_of_another(void **state) {
    struct stage *stage = *state;
    struct below below = {SITE(.pool = stage->pool, .ring = 1), OPEN(.parent = stage->root)};
    struct below beside = {below.site, OPEN(.parent = stage->root)};
    struct below nothing = {below.site, {NULL, 0}};
    on_threads(1, take_a_step_below, &below);
    for (int i = 0; i < 10; i++)
        take_a_step_below(i < 5 ? &beside : &nothing); /* in lanes of this thread */
    assert_int_equal(stats_of(below.parent).children, 1);
    assert_int_equal(ebb_region_close(below.parent), 0);
    assert_int_equal(ebb_region_close(beside.parent), 0);
    assert_int_equal(ebb_site_destroy(below.site), 0);
}

/* However many threads there ever were. */
static void a_ring_below_a_parent_goes_on_below_it_when_its_thread_has_ended(void **state) {
    struct stage *stage = *state;
    struct below below = {SITE(.pool = stage->pool, .ring = 1), OPEN(.parent = stage->root)};
    for (int i = 0; i < 10; i++)
        on_threads(1, take_a_step_below, &below);
    take_a_step_below(&below);
    assert_int_equal(stats_of(below.parent).children, 2);
    assert_int_equal(ebb_region_close(below.parent), 0);
    assert_int_equal(ebb_site_destroy(below.site), 0);
}

static void a_ring_without_a_parent_goes_to_the_next_step_below_one(void **state) {
    struct stage *stage = *state;
    struct below below = {SITE(.pool = stage->pool, .ring = 1), OPEN(.parent = stage->root)};
    struct below nothing = {below.site, {NULL, 0}};
    for (int i = 0; i < 2; i++)
        on_threads(1, take_a_step_below, &nothing);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(stats_of(below.parent).children, i);
        assert_int_equal(pool_stats_of(stage->pool).open_regions, 2 + 2);
        on_threads(1, take_a_step_below, &below);
    }
    assert_int_equal(stats_of(below.parent).children, 2);
    assert_int_equal(ebb_region_close(below.parent), 0);
    assert_int_equal(ebb_site_destroy(below.site), 0);
}

/* In the ring lies what the parent hangs below, and what hangs below the parent. */
static void *take_steps_around(void *context) {
    struct below *below = context;
    ebb_step step = ebb_step_begin(below->site, 1);
    expect(ebb_step_end(step) == 0);
    below->parent = ebb_region_open(EBB_REGION_OPTIONS(.parent = step.region));
    return take_a_step_below(context);
}

/* It would close what the step's own parent hangs below. */
static void a_step_that_cannot_begin_takes_no_ring_over(void **state) {
    struct stage *stage = *state;
    struct below below = {SITE(.pool = stage->pool, .ring = 1), {NULL, 0}};
    struct below nothing = {below.site, {NULL, 0}};
    on_threads(1, take_steps_around, &below);
    ebb_step step = ebb_step_begin_under(below.site, below.parent, 1);
    assert_false(ebb_region_is_open(step.region));
    assert_refused(ebb_last_error(), EBB_E_STALE);
    for (int i = 0; i < 5; i++)
        take_a_step_below(&nothing); /* in a lane of this thread */
    assert_true(ebb_region_is_open(below.parent));
    assert_int_equal(stats_of(below.parent).children, 1);
    assert_int_equal(ebb_site_destroy(below.site), 0);
}

struct journey {
    ebb_site *site;
    ebb_step step;
};

static void *go_on(void *context) {
    struct journey *journey = context;
    work(journey->step, 1, 5);
    expect(ebb_step_end(journey->step) == 0);
    return NULL;
}

static void a_step_ends_in_another_thread_than_it_began(void **state) {
    struct stage *stage = *state;
    struct journey journey = {.site = SITE(.pool = stage->pool)};
    for (int i = 0; i < 10; i++) {
        journey.step = ebb_step_begin(journey.site, 1);
        on_threads(1, go_on, &journey);
    }
    struct ebb_site_stats stats = site_stats(journey.site);
    assert_true(stats.planned_steps == 8 && stats.missed == 0);
    assert_int_equal(ebb_site_destroy(journey.site), 0);
}

static void *begin_and_leave_open(void *context) {
    struct journey *journey = context;
    journey->step = ebb_step_begin(journey->site, 1);
    expect(ebb_region_is_open(journey->step.region));
    return NULL;
}

static void a_step_outlives_the_thread_that_began_it(void **state) {
    struct stage *stage = *state;
    struct journey journey = {.site = SITE(.pool = stage->pool, .ring = 2)};
    for (int i = 0; i < 10; i++) {
        on_threads(1, begin_and_leave_open, &journey);
        go_on(&journey);
    }
    assert_int_equal(site_stats(journey.site).planned_steps, 8);
    assert_int_equal(ebb_site_destroy(journey.site), 0);
}

static void *make_sites(void *context) {
    for (unsigned i = 0; i < 10; i++) {
        ebb_site *site = SITE(.pool = context, .ring = i % 3);
        for (unsigned k = 0; k < 4; k++) {
            ebb_step step = ebb_step_begin(site, 1);
            work(step, 1, k);
            expect(ebb_step_end(step) == 0);
        }
        expect(site_stats(site).planned_steps == 2);
        expect(ebb_site_destroy(site) == 0);
    }
    return NULL;
}

static void sites_come_and_go_on_many_threads(void **state) {
    struct stage *stage = *state;
    on_threads(THREADS, make_sites, stage->pool);
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t height_after(ebb_pool *pool, uint64_t search_ns, unsigned steps) {
    ebb_site *site = SITE(.pool = pool, .search_ns = search_ns);
    struct ebb_site_stats stats;
    uint64_t began = now_ns();
    for (unsigned i = 0; i < 5 || (i < steps && now_ns() - began < 2 * search_ns); i++) {
        ebb_step step = ebb_step_begin(site, 1);
        expect(hard_blocks(step));
        expect(ebb_step_end(step) == 0);
        stats = site_stats(site);
        if (i > 2 && stats.plans > 1)
            break;
    }
    assert_int_equal(stats.missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    return stats.plan_height;
}

static void a_better_plan_is_found_meanwhile(void **state) {
    struct stage *stage = *state;
    uint64_t plain = height_after(stage->pool, 0, 0), better = plain;
    for (uint64_t budget = HARD_SEARCH_NS; better == plain && budget < 100 * HARD_SEARCH_NS;
         budget *= 4) /* others may have the processors */
        better = height_after(stage->pool, budget, UINT32_MAX);
    assert_true(better < plain);
}

static void a_site_ends_though_its_search_has_an_hour(void **state) {
    struct stage *stage = *state;
    height_after(stage->pool, UINT64_C(3600) * 1000000000, 0);
}

static void steps_are_served_while_better_plans_are_looked_for(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .search_ns = 2000000);
    on_threads(THREADS, take_steps, site);
    assert_int_equal(site_stats(site).steps, THREADS * STEPS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

enum { AT_ONCE = 200 };

struct crowd {
    ebb_site *site;
    ebb_step steps[AT_ONCE];
};

static void begin_all(struct crowd *crowd) {
    for (unsigned i = 0; i < AT_ONCE; i++)
        crowd->steps[i] = ebb_step_begin(crowd->site, 0);
}

/* The one that began first ends first. */
static void end_all(struct crowd *crowd) {
    for (unsigned i = 0; i < AT_ONCE; i++)
        expect(ebb_step_end(crowd->steps[i]) == 0);
}

static bool has_lane(const struct crowd *crowd, const void *lane, unsigned count) {
    unsigned i = 0;
    while (i < count && crowd->steps[i].lane != lane)
        i++;
    return i < count;
}

static void *begin_as_many(void *context) {
    const struct crowd *before = context;
    struct crowd own = {.site = before->site};
    begin_all(&own);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        expect(has_lane(before, own.steps[i].lane, AT_ONCE));
        expect(!has_lane(&own, own.steps[i].lane, i));
    }
    end_all(&own);
    return NULL;
}

/* The thread's own that was open last, or another's: a lane is made for more open steps alone. */
static void idle_lanes_are_used_again(void **state) {
    struct stage *stage = *state;
    static struct crowd crowd;
    crowd.site = SITE(.pool = stage->pool);
    begin_all(&crowd);
    end_all(&crowd);
    ebb_step step = ebb_step_begin(crowd.site, 0);
    assert_ptr_equal(step.lane, crowd.steps[AT_ONCE - 1].lane);
    assert_int_equal(ebb_step_end(step), 0);
    on_threads(1, begin_as_many, &crowd);
    on_threads(1, begin_as_many, &crowd); /* who had all of them has ended */
    begin_as_many(&crowd);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(ebb_site_destroy(crowd.site), 0);
}

static void *begin_and_end_as_many(void *context) {
    begin_all(context);
    end_all(context);
    return NULL;
}

/* Or what is in it would stay, for nobody else may have the ring. */
static void a_ring_is_found_among_those_that_ended_threads_left(void **state) {
    struct stage *stage = *state;
    static struct crowd crowd;
    crowd.site = SITE(.pool = stage->pool, .ring = 1);
    ebb_step step = ebb_step_begin(crowd.site, 0);
    const void *lane = step.lane;
    assert_int_equal(ebb_step_end(step), 0);
    on_threads(1, begin_and_end_as_many, &crowd);
    step = ebb_step_begin(crowd.site, 0);
    assert_ptr_equal(step.lane, lane);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(crowd.site), 0);
}

/* ---- a step that waits for a slot ---- */

struct meddling {
    ebb_region oldest; /* of the ring, which a thread resets */
    ebb_region held;   /* in the slot that the step waits for */
    sem_t waits, begun;
};

static bool say_that_it_waits(void *context) {
    struct meddling *meddling = context;
    return sem_post(&meddling->waits) == 0;
}

/* In the middle of the reset. */
static int let_it_begin(void *context) {
    struct meddling *meddling = context;
    expect(ebb_region_close(meddling->held) == 0);
    expect(sem_wait(&meddling->begun) == 0);
    return 0;
}

static void *reset_oldest(void *context) {
    struct meddling *meddling = context;
    expect(sem_wait(&meddling->waits) == 0);
    expect(ebb_region_reset(meddling->oldest, EBB_KEEP_ALL) == 0);
    return NULL;
}

static ebb_region take_step(ebb_site *site, struct ebb_cleanup *cleanup) {
    ebb_step step = ebb_step_begin(site, 1);
    if (cleanup)
        assert_int_equal(ebb_cleanup_add(step.region, cleanup), 0);
    assert_int_equal(ebb_step_end(step), 0);
    return step.region;
}

/* It was closed in the middle of that, and its slot another's. */
static void a_step_that_waited_leaves_what_another_thread_resets_open(void **state) {
    struct meddling meddling;
    struct ebb_cleanup cleanup = {.run = let_it_begin, .data = &meddling};
    pthread_t thread;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 3, .slot_bytes = 4 * MIB,
                          .wait_ns = UINT64_C(60000000000), .go_on = say_that_it_waits,
                          .go_on_context = &meddling);
    ebb_site *site = SITE(.pool = pool, .ring = 1);
    (void)state;
    assert_int_equal(sem_init(&meddling.waits, 0, 0) + sem_init(&meddling.begun, 0, 0), 0);
    meddling.held = OPEN(.pool = pool);
    meddling.oldest = take_step(site, &cleanup);
    ebb_region kept = take_step(site, NULL);
    assert_int_equal(pthread_create(&thread, NULL, reset_oldest, &meddling), 0);
    ebb_step step = ebb_step_begin(site, 1);
    sem_post(&meddling.begun);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(ebb_region_is_open(step.region) && ebb_region_is_open(kept));
    assert_true(ebb_region_alloc(meddling.oldest, 9000, 64) != NULL);
    assert_int_equal(ebb_step_end(step), 0);
    assert_refused(ebb_site_destroy(site), EBB_E_BUSY);
    assert_int_equal(ebb_region_close(meddling.oldest), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(atomic_load(&wrong), 0);
    pool_end(pool);
    sem_destroy(&meddling.waits);
    sem_destroy(&meddling.begun);
}

enum { MANY = 1100 };

struct generation {
    ebb_site *site;
    const void *lanes[MANY];
    atomic_uint count;
    sem_t ends;
};

static void *take_one_and_wait(void *context) {
    struct generation *generation = context;
    ebb_step step = ebb_step_begin(generation->site, 0);
    expect(ebb_step_end(step) == 0);
    generation->lanes[atomic_fetch_add(&generation->count, 1)] = step.lane;
    sem_wait(&generation->ends);
    return NULL;
}

/* So many threads live at once. False: the system has no room for them. */
static bool live_and_end(struct generation *generation) {
    static pthread_t threads[MANY];
    pthread_attr_t small;
    unsigned made = 0;
    int error = 0;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, (size_t)256 << 10), 0);
    assert_int_equal(sem_init(&generation->ends, 0, 0), 0);
    while (made < MANY && !error) {
        error = pthread_create(&threads[made], &small, take_one_and_wait, generation);
        made += !error;
    }
    while (atomic_load(&generation->count) < made)
        sched_yield();
    for (unsigned i = 0; i < made; i++)
        sem_post(&generation->ends);
    for (unsigned i = 0; i < made; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    sem_destroy(&generation->ends);
    pthread_attr_destroy(&small);
    assert_true(!error || error == EAGAIN);
    return !error;
}

static int by_address(const void *left, const void *right) {
    const char *const *a = left, *const *b = right;
    return (*a > *b) - (*a < *b);
}

/* Each of a thousand threads and more is seen to end. */
static void rings_of_many_threads_are_left_to_new_ones(void **state) {
    struct stage *stage = *state;
    static struct generation first, second;
    first.site = second.site = SITE(.pool = stage->pool, .ring = 1);
    if (!live_and_end(&first) || !live_and_end(&second)) {
        assert_int_equal(ebb_site_destroy(first.site), 0);
        skip();
    }
    qsort(first.lanes, MANY, sizeof *first.lanes, by_address);
    for (unsigned i = 0; i < MANY; i++)
        assert_non_null(bsearch(&second.lanes[i], first.lanes, MANY, sizeof *first.lanes,
                                by_address));
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(ebb_site_destroy(first.site), 0);
}

enum { LENGTHS = 400, LONG_ONE = 10, LENGTH_BLOCKS = 6 };

static pthread_barrier_t together;

struct lengths {
    ebb_site *site;
    uint64_t held; /* by short steps of the second half, all together */
};

/* One step in ten is a hundred times as long; each is open while those of others are. */
static void *take_lengths(void *context) {
    struct lengths *lengths = context;
    for (unsigned i = 0; i < LENGTHS; i++) {
        bool is_long = i % LONG_ONE == 0;
        ebb_step step = ebb_step_begin(lengths->site, 0);
        for (unsigned k = 0; k < LENGTH_BLOCKS; k++)
            expect(ebb_region_alloc(step.region, is_long ? MIB : 10 * KIB, 64) != NULL);
        pthread_barrier_wait(&together);
        if (i > LENGTHS / 2 && !is_long)
            lengths->held += stats_of(step.region).reserved.current;
        pthread_barrier_wait(&together);
        expect(ebb_step_end(step) == 0);
    }
    return NULL;
}

/* A site for each of so many threads; what a short step holds on the average. */
static uint64_t held_by_short_steps(ebb_pool *pool, unsigned count) {
    struct lengths lengths[THREADS];
    pthread_t threads[THREADS];
    uint64_t held = 0;
    assert_int_equal(pthread_barrier_init(&together, NULL, count), 0);
    for (unsigned i = 0; i < count; i++) {
        lengths[i] = (struct lengths){.site = SITE(.pool = pool)};
        assert_int_equal(pthread_create(&threads[i], NULL, take_lengths, &lengths[i]), 0);
    }
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(ebb_site_destroy(lengths[i].site), 0);
        held += lengths[i].held;
    }
    pthread_barrier_destroy(&together);
    assert_int_equal(atomic_load(&wrong), 0);
    return held / count / (LENGTHS / 2 - LENGTHS / 2 / LONG_ONE);
}

/* The pages of the longest are there anyway, if nobody else could have them. */
static void steps_of_other_sites_could_have_the_pages_of_a_long_one(void **state) {
    struct stage *stage = *state;
    assert_true(held_by_short_steps(stage->pool, 1) > 5 * MIB);
    assert_true(held_by_short_steps(stage->pool, THREADS) < 2 * MIB);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(threads_take_steps_of_one_site),
        STAGED(each_thread_has_a_ring_of_its_own),
        STAGED(threads_that_have_ended_leave_their_rings_to_new_ones),
        STAGED(a_ring_below_a_parent_is_not_taken_over_by_steps_of_another),
        STAGED(a_ring_below_a_parent_goes_on_below_it_when_its_thread_has_ended),
        STAGED(a_ring_without_a_parent_goes_to_the_next_step_below_one),
        STAGED(a_step_that_cannot_begin_takes_no_ring_over),
        STAGED(a_step_ends_in_another_thread_than_it_began),
        STAGED(a_step_outlives_the_thread_that_began_it),
        STAGED(sites_come_and_go_on_many_threads),
        STAGED(idle_lanes_are_used_again),
        STAGED(a_step_that_waited_leaves_what_another_thread_resets_open),
        STAGED(a_ring_is_found_among_those_that_ended_threads_left),
        STAGED(rings_of_many_threads_are_left_to_new_ones),
        STAGED(a_better_plan_is_found_meanwhile),
        STAGED(a_site_ends_though_its_search_has_an_hour),
        STAGED(steps_of_other_sites_could_have_the_pages_of_a_long_one),
        STAGED(steps_are_served_while_better_plans_are_looked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
