// SPDX-License-Identifier: Apache-2.0
/*
 * asked.c - ebb_region_of() from another thread while the runs of the block's region change.
 *
 * By chance: without the order in which pages are named most runs of the first two fail. Not by
 * chance under ThreadSanitizer: what is read while it changes is read and written atomically.
 */
#include "kit/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#if defined __has_feature
#if __has_feature(thread_sanitizer)
#define SEES_RACES /* whenever there could have been one */
#elif __has_feature(address_sanitizer)
#define IS_SLOW
#endif
#endif
#if defined SEES_RACES || defined __SANITIZE_THREAD__
enum { ROUNDS = 50 };
#elif defined IS_SLOW || defined __SANITIZE_ADDRESS__
enum { ROUNDS = 500 }; /* chance has enough of them in other builds */
#else
enum { ROUNDS = 5000 };
#endif

enum { BYTES = 100 * 1024, PLACES = 12 /* of the run's entry in lines of the cache */ };

struct asker {
    _Atomic(char *) address; /* NULL: none */
    ebb_region region;       /* that it lies in */
    atomic_bool is_over, asks;
    atomic_ulong right, wrong; /* answers */
};

static void *ask(void *context) {
    struct asker *asker = context;
    while (!atomic_load(&asker->is_over)) {
        atomic_store(&asker->asks, true);
        const char *address = atomic_load(&asker->address);
        for (unsigned i = 0; address && i < 50; i++)
            atomic_fetch_add(ebb_region_of(address).lane == asker->region.lane ? &asker->right
                                                                               : &asker->wrong, 1);
        atomic_store(&asker->asks, false);
    }
    return NULL;
}

/* Mostly it has asked before this returns: it may not run just now. */
static void begin_asking(struct asker *asker, char *address) {
    unsigned long before = atomic_load(&asker->right);
    atomic_store(&asker->address, address);
    for (unsigned i = 0; i < 2000 && atomic_load(&asker->right) == before; i++)
        continue;
}

static void stop_asking(struct asker *asker) {
    atomic_store(&asker->address, NULL);
    while (atomic_load(&asker->asks))
        sched_yield();
}

static void *some_of(ebb_region region, size_t bytes) {
    void *block = ebb_region_alloc(region, bytes, 64);
    assert_non_null(block);
    return block;
}

typedef void change_runs(struct asker *asker, ebb_pool *pool);

static void ask_while(change_runs *change, unsigned rounds) {
    static struct asker asker;
    pthread_t thread;
    memset(&asker, 0, sizeof asker);
    ebb_pool *pool = POOL(.name = "asked", .keep_all = true);
    assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
    ebb_region others[PLACES];
    for (unsigned i = 0; i < PLACES; i++) {
        others[i] = OPEN(.pool = pool);
        block_of(others[i], BYTES, 64);
        for (unsigned j = 0; j < rounds || atomic_load(&asker.right) == 0; j++)
            change(&asker, pool); /* the asker may not run for long */
    }
    atomic_store(&asker.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < PLACES; i++)
        assert_int_equal(ebb_region_close(others[i]), 0);
    assert_int_equal(asker.wrong, 0);
    pool_end(pool);
}

/* The block lies behind what goes back, and is named last: see pages_split(). */
static void cut(struct asker *asker, ebb_pool *pool) {
    ebb_region root = asker->region = OPEN(.pool = pool);
    void *large = some_of(root, 5 * BYTES);
    char *block = some_of(root, 3000);
    size_t before = stats_of(root).reserved.current;
    assert_int_equal(ebb_region_release(root, large), 0);
    begin_asking(asker, block);
    for (unsigned i = 0; i < 8; i++) {
        ebb_region step = OPEN(.pool = pool, .parent = root);
        some_of(step, 100);
        assert_int_equal(ebb_region_close(step), 0);
    }
    assert_true(stats_of(root).reserved.current < before / 2);
    stop_asking(asker);
    assert_int_equal(ebb_region_close(root), 0);
}

static void a_block_is_found_while_its_run_is_cut(void **state) {
    (void)state;
    ask_while(cut, ROUNDS);
}

/*
 *     region's first run | other's | region's second run      the other's pages come to the region:
 *     region's only run                                       claimed behind the first, then joined
 */
static void join(struct asker *asker, ebb_pool *pool) {
    ebb_region warm = OPEN(.pool = pool, .hint_bytes = 12 * BYTES);
    assert_int_equal(ebb_region_close(warm), 0);
    ebb_region region = asker->region = OPEN(.pool = pool, .hint_bytes = BYTES);
    ebb_region other = OPEN(.pool = pool, .hint_bytes = BYTES);
    some_of(region, BYTES);
    char *block = some_of(region, BYTES);
    assert_int_equal(stats_of(region).runs, 2);
    assert_int_equal(ebb_region_close(other), 0);
    begin_asking(asker, block + BYTES - 100);
    for (unsigned i = 0; i < 4 && stats_of(region).runs == 2; i++)
        some_of(region, BYTES);
    assert_int_equal(stats_of(region).runs, 1);
    stop_asking(asker);
    assert_int_equal(ebb_region_close(region), 0);
}

static void a_block_is_found_while_its_run_is_joined(void **state) {
    (void)state;
    ask_while(join, ROUNDS);
}

/* The same, but it is the second run that takes the pages in front of it. */
static void claim_before(struct asker *asker, ebb_pool *pool) {
    ebb_region warm = OPEN(.pool = pool, .hint_bytes = 12 * BYTES);
    assert_int_equal(ebb_region_close(warm), 0);
    ebb_region other = OPEN(.pool = pool, .hint_bytes = BYTES);
    ebb_region region = asker->region = OPEN(.pool = pool, .hint_bytes = BYTES);
    ebb_region behind = OPEN(.pool = pool, .hint_bytes = BYTES);
    char *block = some_of(region, BYTES);
    assert_int_equal(ebb_region_close(other), 0);
    begin_asking(asker, block + BYTES - 100);
    assert_true((char *)some_of(region, BYTES / 2) < block);
    stop_asking(asker);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(ebb_region_close(behind), 0);
}

static void a_block_is_found_while_its_run_begins_earlier(void **state) {
    (void)state;
    ask_while(claim_before, ROUNDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_found_while_its_run_is_cut),
        cmocka_unit_test(a_block_is_found_while_its_run_is_joined),
        cmocka_unit_test(a_block_is_found_while_its_run_begins_earlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
