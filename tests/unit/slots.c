// SPDX-License-Identifier: Apache-2.0
/*
 * slots.c - slots that wait for the thread that closed them are none the worse for others: a region
 * is refused only where no slot is closed, in whichever pool, and a trim or the pool's end takes
 * what they keep. Who is refused is told why.
 */
#include "kit/test.h"
#include "base/os.h"
#include "pool/pool.h"
#include "pool/range.h"
#include "region/region.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8, ROUNDS = 3 };

static ebb_pool *used; /* by the threads */
static unsigned refusals;

static void *use_pool(void *context) {
    (void)context;
    ebb_region region = OPEN(.pool = used);
    for (unsigned i = 0; i < 300; i++)
        refusals += !ebb_region_alloc(region, 100 + i * 20, 64);
    refusals += ebb_region_close(region) != 0;
    return NULL;
}

/* Threads, one after the other, so that each leaves a slot in its place. */
static void leave_slots(ebb_pool *pool) {
    used = pool;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, use_pool, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_int_equal(refusals, 0);
}

static unsigned count_waiting(ebb_pool *pool) {
    unsigned waiting = 0;
    for (unsigned i = 0; i < POOL_SPARES; i++)
        waiting += atomic_load(&pool->spare_slots[i].region) != NULL;
    return waiting;
}

static void a_trim_takes_what_waits_and_so_does_the_end(void **state) {
    ebb_pool *pool = POOL(.name = "waiting");
    for (unsigned round = 0; round < ROUNDS; round++) {
        leave_slots(pool);
        assert_int_equal(count_waiting(pool), POOL_SPARES);
        (void)ebb_pool_trim(pool, 0);
        assert_int_equal(count_waiting(pool), 0);
    }
    leave_slots(pool);
    assert_int_equal(pool_stats_of(pool).opened_regions, (ROUNDS + 1) * THREADS);
    assert_int_equal(ebb_check_pool(pool), 0);
    pool_end(pool);
    assert_int_equal(count_waiting(pool), 0); /* the record stays */
}

static void slots_of_shared_pools_wait_in_one_place(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1);
    leave_slots(pool);
    assert_int_equal(pool_stats_of(pool).opened_regions, THREADS);
    ebb_region region = OPEN(.pool = pool);
    ebb_pool *hidden = ((struct region *)region.lane)->pool;
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(count_waiting(hidden), 1);
    pool_end(pool);
}

enum { SLOTS = 20, MOST = 1000 };

static ebb_region opened[MOST];

/* Until it is refused. */
static unsigned open_all(ebb_pool *pool) {
    for (unsigned count = 0; count < MOST; count++) {
        opened[count] = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
        if (ebb_region_is_open(opened[count]))
            continue;
        assert_refused(ebb_last_error(), EBB_E_MEMORY);
        return count;
    }
    fail_msg("%u regions are open", MOST);
    return MOST;
}

static void close_some(unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++)
        assert_int_equal(ebb_region_close(opened[i]), 0);
}

static void assert_counts(ebb_pool *pool, uint64_t open, uint64_t ever) {
    assert_int_equal(pool_stats_of(pool).open_regions, open);
    assert_int_equal(pool_stats_of(pool).opened_regions, ever);
    assert_int_equal(ebb_check_pool(pool), 0);
}

static int refuse_memory(void *addr, size_t bytes) {
    (void)addr;
    (void)bytes;
    return ENOMEM;
}

/* Records of some 2 MiB are open in advance. */
static void where_memory_is_wanting_that_is_told(void **state) {
    int (*real)(void *addr, size_t bytes) = os.open;
    ebb_pool *pool = POOL(.name = "refused");
    os.open = refuse_memory;
    unsigned all = open_all(pool);
    os.open = real;
    assert_text_names("no memory for the slot of another region");
    close_some(0, all);
    pool_end(pool);
}

static void where_memory_for_pools_is_wanting_that_is_told(void **state) {
    static ebb_pool *made[MOST];
    int (*real)(void *addr, size_t bytes) = os.open;
    unsigned count = 0;
    os.open = refuse_memory;
    while (count < MOST && (made[count] = ebb_pool_create(NULL)))
        count++;
    os.open = real;
    assert_true(count < MOST);
    assert_refused(ebb_last_error(), EBB_E_MEMORY);
    assert_text_names("no memory for the record of another pool");
    while (count-- > 0)
        pool_end(made[count]);
}

/* ---- the last tests: from here on there are no other slots ---- */

static void no_region_is_refused_while_a_slot_is_closed(void **state) {
    ebb_pool *pool = POOL(.name = "scarce");
    for (unsigned i = 0; i < SLOTS; i++)
        opened[i] = OPEN(.pool = pool);
    close_some(0, SLOTS);
    while (range_carve_region())
        continue;
    leave_slots(pool);
    assert_int_equal(count_waiting(pool), POOL_SPARES);
    unsigned all = open_all(pool);
    assert_text_names("can be open");
    assert_true(all >= SLOTS);
    close_some(0, all);
    assert_counts(pool, 0, SLOTS + THREADS + all);
    assert_int_equal(open_all(pool), all);
    close_some(0, all);
    pool_end(pool);
}

static void slots_change_hands_and_counts_stay(void **state) {
    ebb_pool *first = POOL(.name = "first"), *second = POOL(.name = "second");
    unsigned all = open_all(first), half = all / 2;
    assert_true(all >= SLOTS);
    assert_counts(first, all, all);
    close_some(half, all);
    ebb_region theirs[MOST];
    memcpy(theirs, opened, sizeof theirs);
    assert_int_equal(open_all(second), all - half);
    assert_counts(first, half, all);
    assert_counts(second, all - half, all - half);
    for (unsigned i = 0; i < all; i++)
        assert_int_equal(ebb_region_is_open(theirs[i]), i < half);
    close_some(0, all - half);
    for (unsigned i = 0; i < half; i++)
        assert_int_equal(ebb_region_close(theirs[i]), 0);
    pool_end(first);
    assert_int_equal(open_all(second), all); /* those of a pool that has ended, too */
    assert_counts(second, all, all - half + all);
    close_some(0, all);
    first = POOL(.name = "third"); /* with the record of the first */
    assert_counts(first, 0, 0);
    assert_int_equal(open_all(first), all);
    assert_counts(first, all, all);
    assert_counts(second, 0, all - half + all);
    close_some(0, all);
    pool_end(first);
    pool_end(second);
}

static ebb_pool *pools[2];
static atomic_uint opened_in[2];

/* Regions of either pool in turn, three at once: there are fewer slots, and some are refused. */
static void *open_in_turn(void *context) {
    unsigned at = *(unsigned *)context;
    for (unsigned i = 0; i < 2000; i++) {
        ebb_region regions[3];
        for (unsigned k = 0; k < 3; k++) {
            unsigned which = (at + i / 7) % 2;
            regions[k] = ebb_region_open(EBB_REGION_OPTIONS(.pool = pools[which]));
            atomic_fetch_add(&opened_in[which], ebb_region_is_open(regions[k]));
        }
        for (unsigned k = 0; k < 3; k++)
            if (ebb_region_is_open(regions[k]) && ebb_region_close(regions[k]) != 0)
                return context;
    }
    return NULL;
}

static void pools_take_slots_from_each_other_at_once(void **state) {
    enum { SCARCE = 2 * THREADS };
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    for (unsigned i = 0; i < 2; i++)
        pools[i] = POOL(.name = "either");
    unsigned all = open_all(pools[0]);
    close_some(0, SCARCE);
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, open_in_turn, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    close_some(SCARCE, all);
    assert_counts(pools[0], 0, all + atomic_load(&opened_in[0]));
    assert_counts(pools[1], 0, atomic_load(&opened_in[1]));
    assert_int_equal(open_all(pools[1]), all);
    close_some(0, all);
    pool_end(pools[0]);
    pool_end(pools[1]);
}

static void what_ebb_works_in_is_open_and_in_no_count(void **state) {
    ebb_pool *pool = POOL(.name = "worked in");
    ebb_region own = OPEN(.pool = pool);
    assert_counts(pool, 1, 1);
    ebb_region work = region_open_uncounted("work", pool);
    assert_non_null(ebb_region_alloc(work, 5000, 64));
    assert_counts(pool, 1, 1);
    assert_int_equal(ebb_region_close(own), 0);
    assert_counts(pool, 0, 1);
    assert_int_equal(ebb_pool_destroy(pool), EBB_E_BUSY);
    assert_int_equal(ebb_region_close(work), 0);
    assert_counts(pool, 0, 1);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trim_takes_what_waits_and_so_does_the_end),
        cmocka_unit_test(slots_of_shared_pools_wait_in_one_place),
        cmocka_unit_test(where_memory_is_wanting_that_is_told),
        cmocka_unit_test(where_memory_for_pools_is_wanting_that_is_told),
        cmocka_unit_test(no_region_is_refused_while_a_slot_is_closed),
        cmocka_unit_test(slots_change_hands_and_counts_stay),
        cmocka_unit_test(pools_take_slots_from_each_other_at_once),
        cmocka_unit_test(what_ebb_works_in_is_open_and_in_no_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
