// SPDX-License-Identifier: Apache-2.0
/*
 * threads.c - what "any thread" promises: unrelated regions of one pool are used by several
 * threads at once, pools come and go meanwhile, and a region is handed from thread to thread.
 *
 * Threads count what goes wrong instead of asserting: cmocka's asserts belong to the main thread.
 * Run under ThreadSanitizer by tests/run.
 */
#include "kit/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 4, ROUNDS = 150 };

static atomic_uint wrong;
static atomic_bool stop;

static void expect(bool holds) {
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

/* Runs `body` on THREADS threads at once; none of them may have seen anything wrong. */
static void on_threads(void *(*body)(void *context), void *context) {
    pthread_t threads[THREADS];
    atomic_store(&wrong, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, context), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void *first_use(void *context) {
    _Atomic(ebb_pool *) *seen = context;
    ebb_pool *pool = ebb_pool_default(), *other = NULL;
    expect(pool != NULL);
    if (!atomic_compare_exchange_strong(seen, &other, pool))
        expect(other == pool);
    ebb_region region = ebb_region_open(NULL);
    expect(ebb_region_alloc(region, 100, 16) != NULL);
    expect(ebb_region_close(region) == 0);
    return NULL;
}

static void the_first_use_by_many_threads_makes_one_default_pool(void **state) {
    _Atomic(ebb_pool *) seen = NULL;
    on_threads(first_use, &seen);
    assert_int_equal(pool_stats_of(ebb_pool_default()).opened_regions, THREADS);
    assert_int_equal(pool_stats_of(ebb_pool_default()).open_regions, 0);
}

/* One step of its own: children, both lanes, releases, a promotion, a mark. */
static void play_step(ebb_region parent, unsigned seed) {
    ebb_region step = OPEN(.name = "step", .parent = parent);
    void *blocks[50];
    size_t sizes[50];
    for (unsigned i = 0; i < 50; i++) {
        sizes[i] = (seed * 7919 + i * 104729) % (i % 5 ? 1000 : 30000);
        blocks[i] = ebb_region_alloc(step, sizes[i], 16);
        expect(blocks[i] != NULL);
        pattern_fill(blocks[i], sizes[i], seed + i);
    }
    ebb_mark mark = ebb_region_mark(step);
    expect(ebb_region_alloc(step, 5000, 64) != NULL);
    expect(ebb_region_rewind(step, mark) == 0);
    for (unsigned i = 0; i < 50; i++)
        expect(pattern_holds(blocks[i], sizes[i], seed + i));
    for (unsigned i = 0; i < 50; i += 3)
        expect(ebb_region_release(step, blocks[i]) == 0);
    struct ebb_survivor survivors[] = {survivor_of(blocks[1], EBB_PROMOTE_COPY),
                                       survivor_of(blocks[10], EBB_PROMOTE_RELINK)};
    expect(ebb_close_keeping(step, parent, survivors, 2, NULL, NULL) == 0);
    expect(pattern_holds(survivors[0].block, sizes[1], seed + 1));
    expect(pattern_holds(survivors[1].block, sizes[10], seed + 10));
    expect(ebb_region_release(parent, survivors[0].block) == 0);
    expect(ebb_region_release(parent, survivors[1].block) == 0);
}

static void *play_steps(void *context) {
    ebb_region root = OPEN(.name = "thread", .pool = context);
    for (unsigned round = 0; round < ROUNDS; round++)
        play_step(root, round);
    expect(ebb_region_close(root) == 0);
    return NULL;
}

static void threads_take_steps_on_one_pool(void **state) {
    struct stage *stage = *state;
    on_threads(play_steps, stage->pool);
    struct ebb_pool_stats stats = pool_stats_of(stage->pool);
    assert_int_equal(stats.open_regions, 1);
    assert_int_equal(stats.opened_regions, 1 + THREADS * (ROUNDS + 1));
    assert_int_equal(stats.blocks.total, THREADS * ROUNDS * 53);
}

static void *trim_all_the_time(void *context) {
    while (!atomic_load(&stop))
        ebb_pool_trim(context, 64 * KIB);
    return NULL;
}

static void a_pool_is_trimmed_while_threads_use_it(void **state) {
    struct stage *stage = *state;
    pthread_t trimmer;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&trimmer, NULL, trim_all_the_time, stage->pool), 0);
    on_threads(play_steps, stage->pool);
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(trimmer, NULL), 0);
}

static void *play_in_limits(void *context) {
    ebb_region root = OPEN(.pool = context);
    for (unsigned round = 0; round < ROUNDS * 10; round++) {
        void *block = ebb_region_alloc(root, 4096, 64);
        if (block) {
            pattern_fill(block, 4096, round);
            expect(pattern_holds(block, 4096, round));
            expect(ebb_region_release(root, block) == 0);
        } else {
            expect(ebb_last_error() == EBB_E_POOL_LIMIT);
        }
    }
    expect(ebb_region_close(root) == 0);
    return NULL;
}

static void a_limit_holds_for_all_threads_together(void **state) {
    ebb_pool *pool = POOL(.limit_used_bytes = 3 * 4096);
    ebb_region held = OPEN(.pool = pool);
    block_of(held, 4096, 64);
    on_threads(play_in_limits, pool);
    block_of(held, 8192, 64);
    assert_no_block(ebb_region_alloc(held, 1, 1), EBB_E_POOL_LIMIT);
    ebb_region_close(held);
    pool_end(pool);
}

static void *make_pools(void *context) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        ebb_pool *pool = POOL(.name = "short");
        expect(pool != NULL);
        ebb_region region = OPEN(.pool = pool);
        expect(ebb_region_alloc(region, 5000, 64) != NULL);
        expect(ebb_region_close(region) == 0);
        expect(ebb_pool_destroy(pool) == 0);
    }
    return NULL;
}

static void expect_pool_in(void *context, const char *text) {
    (void)context;
    expect(strstr(text, "pool 'small': reserved") != NULL);
}

static void *grow_and_fail(void *context) {
    ebb_pool *pool = context;
    for (unsigned round = 0; round < ROUNDS; round++) {
        ebb_region region = OPEN(.pool = pool);
        expect(ebb_region_alloc(region, 100000, 64) != NULL);
        expect(ebb_region_alloc(region, (size_t)64 << 20, 64) == NULL);
        expect(ebb_last_error() == EBB_E_POOL_LIMIT);
        expect(ebb_region_close(region) == 0);
    }
    return NULL;
}

static void what_is_exhausted_is_reported_while_others_grow(void **state) {
    (void)state;
    ebb_pool *pool = ebb_pool_create(
        EBB_POOL_OPTIONS(.name = "small", .limit_reserved_bytes = (size_t)16 << 20));
    ebb_report_on_exhausted(expect_pool_in, NULL);
    on_threads(grow_and_fail, pool);
    ebb_report_on_exhausted(NULL, NULL);
    assert_int_equal(ebb_pool_destroy(pool), 0);
}

static void pools_come_and_go_on_many_threads(void **state) {
    struct ebb_pool_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    assert_int_equal(ebb_process_read_stats(&before), 0);
    on_threads(make_pools, NULL);
    assert_int_equal(ebb_process_read_stats(&after), 0); /* quiescent: the threads have ended */
    assert_int_equal(after.open_regions, before.open_regions);
    assert_int_equal(after.owned, before.owned);
}

static void *open_and_close(void *context) {
    for (unsigned round = 0; round < ROUNDS * 100; round++) {
        ebb_region region = OPEN(.pool = context);
        expect(ebb_region_is_open(region));
        expect(ebb_region_close(region) == 0);
    }
    return NULL;
}

static void empty_regions_open_and_close_on_many_threads(void **state) {
    struct stage *stage = *state;
    on_threads(open_and_close, stage->pool);
    assert_int_equal(pool_stats_of(stage->pool).opened_regions, 1 + THREADS * ROUNDS * 100);
    assert_int_equal(pool_stats_of(stage->pool).open_regions, 1);
}

struct handed {
    ebb_region region;
    void *blocks[100];
};

static void *go_on_with_it(void *context) {
    struct handed *handed = context;
    for (size_t i = 0; i < 100; i++) {
        expect(pattern_holds(handed->blocks[i], i * 60, (unsigned)i));
        expect(ebb_region_release(handed->region, handed->blocks[i]) == 0);
    }
    expect(ebb_region_alloc(handed->region, 100, 16) != NULL);
    expect(ebb_region_close(handed->region) == 0);
    return NULL;
}

static void a_region_is_handed_to_another_thread(void **state) {
    struct stage *stage = *state;
    for (int round = 0; round < 10; round++) {
        struct handed handed = {.region = OPEN(.parent = stage->root)};
        pthread_t thread;
        for (size_t i = 0; i < 100; i++) {
            handed.blocks[i] = ebb_region_alloc(handed.region, i * 60, 16);
            pattern_fill(handed.blocks[i], i * 60, (unsigned)i);
        }
        atomic_store(&wrong, 0);
        assert_int_equal(pthread_create(&thread, NULL, go_on_with_it, &handed), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(atomic_load(&wrong), 0);
        assert_false(ebb_region_is_open(handed.region));
    }
}

static void *open_one(void) {
    ebb_region region = ebb_region_open(NULL);
    void *slot = region.lane;
    expect(ebb_region_close(region) == 0);
    return slot;
}

/* A thread that opens one, and stays until it may leave: the next one has memory of its own. */
struct visitor {
    pthread_t thread;
    pthread_barrier_t came, may_leave;
    void *slot;
};

static void *visit(void *context) {
    struct visitor *visitor = context;
    visitor->slot = open_one();
    pthread_barrier_wait(&visitor->came);
    pthread_barrier_wait(&visitor->may_leave);
    return NULL;
}

/* They take no line from each other, nor the pool's lock. */
static void eight_threads_in_a_row_have_a_slot_each(void **state) {
    enum { THREADS_IN_A_ROW = 8 };
    static struct visitor visitors[THREADS_IN_A_ROW];
    void *mine = open_one();
    for (unsigned i = 0; i < THREADS_IN_A_ROW; i++) {
        struct visitor *visitor = &visitors[i];
        pthread_barrier_init(&visitor->came, NULL, 2);
        pthread_barrier_init(&visitor->may_leave, NULL, 2);
        assert_int_equal(pthread_create(&visitor->thread, NULL, visit, visitor), 0);
        pthread_barrier_wait(&visitor->came);
        assert_ptr_equal(open_one(), mine);
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(visitors[k].slot, visitor->slot);
    }
    for (unsigned i = 0; i < THREADS_IN_A_ROW; i++) {
        pthread_barrier_wait(&visitors[i].may_leave);
        assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);
        pthread_barrier_destroy(&visitors[i].came);
        pthread_barrier_destroy(&visitors[i].may_leave);
    }
}

struct question {
    ebb_region region;
    const char *block;
};

static void *ask_whose_it_is(void *context) {
    const struct question *question = context;
    for (int round = 0; round < ROUNDS * 10; round++)
        expect(ebb_region_of(question->block + round % 5000).lane == question->region.lane);
    return NULL;
}

static void any_thread_may_ask_whose_a_pointer_is(void **state) {
    struct stage *stage = *state;
    struct question question = {stage->root, block_of(stage->root, 5000, 64)};
    on_threads(ask_whose_it_is, &question);
}

/* Two regions that have only the pool in common: one is the neighbour of what the other cut. */
struct cut {
    ebb_pool *pool;
    atomic_bool done, seen; /* relaxed, so that nothing but the pool's lock orders the threads */
};

static void wait_for(const atomic_bool *told) {
    while (!atomic_load_explicit(told, memory_order_relaxed))
        sched_yield();
}

static void tell(atomic_bool *told) {
    atomic_store_explicit(told, true, memory_order_relaxed);
}

/* Survivors in a row are released until 16 pages between the others go back, and nothing more. */
static void *cut_a_run(void *context) {
    enum { SURVIVORS = 200, FIRST = 20, GONE = 17 };
    struct cut *cut = context;
    struct ebb_survivor list[SURVIVORS];
    ebb_region root = OPEN(.pool = cut->pool), step = OPEN(.parent = root);
    for (unsigned i = 0; i < SURVIVORS; i++)
        list[i] = survivor_of(ebb_region_alloc(step, 4160, 64), EBB_PROMOTE_RELINK);
    expect(ebb_close_keeping(step, root, list, SURVIVORS, NULL, NULL) == 0);
    uint64_t runs = stats_of(root).runs;
    for (unsigned i = FIRST; i < FIRST + GONE; i++)
        expect(ebb_region_release(root, list[i].block) == 0);
    tell(&cut->done);
    wait_for(&cut->seen);
    expect(stats_of(root).runs == runs + 1);
    expect(ebb_region_close(root) == 0);
    return NULL;
}

/* Its run begins where the pages came free, and it claims around it. */
static void look_at_what_was_cut(ebb_pool *pool) {
    ebb_region region = OPEN(.pool = pool);
    for (unsigned i = 0; i < 4; i++)
        expect(ebb_region_alloc(region, 20000, 64) != NULL);
    expect(ebb_region_close(region) == 0);
}

static void a_run_is_cut_while_its_neighbours_are_claimed(void **state) {
    struct stage *stage = *state;
    struct cut cut = {.pool = stage->pool};
    pthread_t thread;
    atomic_store(&wrong, 0);
    assert_int_equal(pthread_create(&thread, NULL, cut_a_run, &cut), 0);
    wait_for(&cut.done);
    look_at_what_was_cut(stage->pool);
    tell(&cut.seen);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_use_by_many_threads_makes_one_default_pool),
        STAGED(threads_take_steps_on_one_pool),
        STAGED(a_pool_is_trimmed_while_threads_use_it),
        cmocka_unit_test(a_limit_holds_for_all_threads_together),
        cmocka_unit_test(what_is_exhausted_is_reported_while_others_grow),
        cmocka_unit_test(pools_come_and_go_on_many_threads),
        STAGED(empty_regions_open_and_close_on_many_threads),
        cmocka_unit_test(eight_threads_in_a_row_have_a_slot_each),
        STAGED(a_region_is_handed_to_another_thread),
        STAGED(any_thread_may_ask_whose_a_pointer_is),
        STAGED(a_run_is_cut_while_its_neighbours_are_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
