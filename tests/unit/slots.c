// SPDX-License-Identifier: Apache-2.0
/*
 * slots.c - slots that wait for the thread that closed them are none the worse for others: a region
 * is refused only where no slot is closed, and a trim or the pool's end takes what they keep.
 */
#include "kit/test.h"
#include "pool/pool.h"
#include "pool/range.h"
#include "region/region.h"

#include <pthread.h>

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

/* The last test: from here on there are no other slots. */
static void no_region_is_refused_while_a_slot_is_closed(void **state) {
    enum { SLOTS = 20 };
    ebb_region open[SLOTS + 1];
    ebb_pool *pool = POOL(.name = "scarce");
    for (unsigned i = 0; i < SLOTS; i++)
        open[i] = OPEN(.pool = pool);
    for (unsigned i = 0; i < SLOTS; i++)
        assert_int_equal(ebb_region_close(open[i]), 0);
    while (range_carve_region())
        continue;
    leave_slots(pool);
    assert_int_equal(count_waiting(pool), POOL_SPARES);
    for (unsigned i = 0; i < SLOTS; i++) {
        open[i] = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
        assert_true(ebb_region_is_open(open[i]));
    }
    open[SLOTS] = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
    assert_false(ebb_region_is_open(open[SLOTS]));
    assert_refused(ebb_last_error(), EBB_E_MEMORY);
    for (unsigned i = 0; i < SLOTS; i++)
        assert_int_equal(ebb_region_close(open[i]), 0);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trim_takes_what_waits_and_so_does_the_end),
        cmocka_unit_test(slots_of_shared_pools_wait_in_one_place),
        cmocka_unit_test(no_region_is_refused_while_a_slot_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
