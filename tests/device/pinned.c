// SPDX-License-Identifier: Apache-2.0
/*
 * pinned.c - pools of pinned memory, registered with the fake driver: slabs are registered once,
 * grow, and are unregistered when they go; steps cost no call of the driver; memory that is used
 * again before the fence is done would be copied wrong, and is not; each call that fails leaves
 * what there was.
 */
#include "scene.h"

#include "pool/pool.h"

#include <pthread.h>
#include <stdlib.h>

static ebb_pool *pinned_pool(void) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .name = "pinned");
    assert_non_null(pool);
    return pool;
}

static size_t pinned_bytes(ebb_pool *pool) {
    size_t bytes;
    assert_int_equal(ebb_pool_pinning(pool, &bytes), EBB_PINNING_REGISTERED);
    assert_int_equal(bytes, driver_state().registered_bytes);
    assert_int_equal(bytes, pool_stats_of(pool).reserved.current);
    assert_int_equal(ebb_check_pool(pool), 0);
    return bytes;
}

static void other_pools_are_not_pinned(void **state) {
    ebb_pool *pool = POOL(.name = "host");
    size_t bytes = 1;
    assert_int_equal(ebb_pool_pinning(pool, &bytes), EBB_PINNING_NONE);
    assert_int_equal(bytes, 0);
    assert_refused(ebb_pool_pinning(NULL, NULL), EBB_E_ARGUMENT);
    pool_end(pool);
}

static void slabs_are_registered_once_and_grow(void **state) {
    ebb_pool *pool = pinned_pool();
    assert_int_equal(pinned_bytes(pool), 0);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 100, 16);
    assert_int_equal(pinned_bytes(pool), 2 * MIB);
    for (int i = 0; i < 40; i++)
        block_of(region, 1 * MIB, 64);
    size_t slabs = driver_state().registered;
    assert_true(slabs >= 4 && slabs <= 7);
    assert_true(pinned_bytes(pool) >= 40 * MIB && pinned_bytes(pool) <= 96 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(driver_state().registered, slabs);
    pool_end(pool);
    assert_driver_is_empty();
}

static void take_and_leave(ebb_pool *pool, size_t bytes) {
    ebb_region region = OPEN(.pool = pool);
    assert_non_null(ebb_region_alloc(region, bytes, 64));
    assert_int_equal(ebb_region_close(region), 0);
}

/* Neither is described by entries that are left over. */
static void slabs_that_come_and_go_leave_nothing(void **state) {
    ebb_pool *pool = pinned_pool();
    unsigned ready = 0;
    for (unsigned i = 0; i < 5; i++) {
        take_and_leave(pool, 3 * MIB);
        ebb_pool_trim(pool, 0);
        assert_int_equal(pinned_bytes(pool), 0);
        assert_true(i == 0 || pool->pages.store.ready == ready);
        ready = pool->pages.store.ready;
    }
    pool_end(pool);
    assert_driver_is_empty();
}

/* Though others are free, in parts that are too short: what the driver does is dear. */
static void slabs_do_not_go_for_a_larger_one(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .keep_margin_percent = 100000);
    assert_non_null(pool);
    ebb_region regions[2] = {OPEN(.pool = pool), OPEN(.pool = pool)};
    for (unsigned i = 0; i < 2; i++)
        assert_non_null(ebb_region_alloc(regions[i], 30 * MIB, 64));
    size_t before = pinned_bytes(pool);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ebb_region_close(regions[i]), 0);
    take_and_leave(pool, 60 * MIB);
    assert_true(pinned_bytes(pool) >= before + 60 * MIB);
    assert_int_equal(pool_stats_of(pool).given_back, 0);
    pool_end(pool);
    assert_driver_is_empty();
}

static void a_block_larger_than_slabs_gets_one_of_its_size(void **state) {
    ebb_pool *pool = pinned_pool();
    ebb_region region = OPEN(.pool = pool);
    void *block = block_of(region, 90 * MIB, 64);
    assert_true(pattern_holds(block, 90 * MIB, (unsigned)(90 * MIB)));
    assert_int_equal(driver_state().registered, 1);
    assert_true(pinned_bytes(pool) < 93 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

static void a_step_like_the_last_one_asks_the_driver_nothing(void **state) {
    ebb_pool *pool = pinned_pool();
    static const size_t sizes[] = {5000, 100000, 1100000, 1800000, 3000000, 33 << 20};
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
        for (int step = 0; step < 40; step++) {
            if (step == 20) /* the pool has got used to it */
                fake_cuda_fail(0, false);
            ebb_region region = OPEN(.pool = pool);
            for (size_t i = 0; i < (sizes[size] > 10 * MIB ? 3 : 30); i++)
                assert_non_null(ebb_region_alloc(region, sizes[size] + i % 3 * 9000, 64));
            assert_int_equal(ebb_region_close(region), 0);
            if (step >= 20)
                assert_int_equal(fake_cuda_fail(0, false), 0);
        }
    pool_end(pool);
}

static void a_trim_unregisters_slabs_that_are_free_all_over(void **state) {
    ebb_pool *pool = pinned_pool();
    ebb_region keeps = OPEN(.pool = pool), goes = OPEN(.pool = pool);
    void *kept = block_of(keeps, 1000, 16);
    block_of(goes, 30 * MIB, 64);
    size_t before = pinned_bytes(pool);
    assert_int_equal(ebb_region_close(goes), 0);
    size_t given = ebb_pool_trim(pool, 0);
    assert_true(given >= 28 * MIB);
    assert_int_equal(pinned_bytes(pool), before - given);
    assert_true(pattern_holds(kept, 1000, 1000));
    assert_int_equal(ebb_pool_trim(pool, 0), 0);
    assert_int_equal(ebb_region_close(keeps), 0);
    assert_int_equal(ebb_pool_trim(pool, 0), before - given);
    assert_int_equal(pinned_bytes(pool), 0);
    block_of(goes = OPEN(.pool = pool), 3 * MIB, 64); /* and begins again */
    assert_int_equal(ebb_region_close(goes), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

static void a_trim_in_parts_comes_to_an_end(void **state) {
    ebb_pool *pool = pinned_pool();
    ebb_region keeps = OPEN(.pool = pool), goes = OPEN(.pool = pool);
    block_of(keeps, 1000, 16); /* the rest of its slab is cached and stays */
    for (int i = 0; i < 30; i++)
        block_of(goes, 1 * MIB, 64);
    assert_int_equal(ebb_region_close(goes), 0);
    size_t left = 1;
    unsigned parts = 0;
    for (; left && parts < 100; parts++)
        ebb_pool_trim_within(pool, 0, 1, &left); /* one slab each time */
    assert_true(parts > 1 && parts < 10);
    assert_int_equal(driver_state().registered, 1);
    assert_int_equal(ebb_region_close(keeps), 0);
    pool_end(pool);
}

static void what_remains_is_not_more_than_is_above_the_target(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .keep_all = true);
    ebb_region region = OPEN(.pool = pool);
    for (int i = 0; i < 40; i++)
        block_of(region, 1 * MIB, 64);
    assert_int_equal(ebb_region_close(region), 0);
    for (int part = 0; part < 4; part++) {
        size_t left;
        ebb_pool_trim_within(pool, 27 * MIB, 1, &left);
        assert_true(left <= pool_stats_of(pool).cached - 27 * MIB);
    }
    pool_end(pool);
}

static void what_steps_do_not_need_goes_back_by_itself(void **state) {
    ebb_pool *pool = pinned_pool();
    for (int step = 0; step < 60; step++) {
        ebb_region region = OPEN(.pool = pool);
        for (int i = 0; i < (step == 5 ? 60 : 2); i++)
            block_of(region, 1 * MIB, 64);
        assert_int_equal(ebb_region_close(region), 0);
    }
    assert_true(pinned_bytes(pool) <= 8 * MIB);
    pool_end(pool);
    assert_driver_is_empty();
}

static void a_limit_counts_whole_slabs(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .limit_reserved_bytes = 5 * MIB);
    ebb_region region = OPEN(.pool = pool), other = OPEN(.pool = pool);
    block_of(region, 1000, 16);
    assert_no_block(ebb_region_alloc(region, 4 * MIB, 64), EBB_E_POOL_LIMIT);
    assert_int_equal(pinned_bytes(pool), 2 * MIB);
    block_of(other, 1900 * KIB, 64); /* in the same slab */
    assert_int_equal(pinned_bytes(pool), 2 * MIB);
    block_of(other, 1900 * KIB, 64); /* in one that is as long as will do */
    assert_int_equal(pinned_bytes(pool), 4 * MIB);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(ebb_region_close(region), 0);
    region = OPEN(.pool = pool); /* the slabs that there are make room for the one that fits */
    block_of(region, 4 * MIB - 64 * KIB, 64);
    assert_int_equal(pinned_bytes(pool), 4 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

/* Slabs that are in use stay, whatever is free in them: they make no room. */
static void a_block_that_is_refused_drops_no_slab(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .limit_reserved_bytes = 5 * MIB,
                          .keep_all = true);
    ebb_region region = OPEN(.pool = pool), other = OPEN(.pool = pool);
    block_of(region, 100000, 64);
    block_of(other, 2000000, 64);
    assert_int_equal(ebb_region_close(other), 0);
    struct ebb_pool_stats before = pool_stats_of(pool);
    assert_no_block(ebb_region_alloc(region, 2500000, 64), EBB_E_POOL_LIMIT);
    assert_text_names("in a slab of 4194304; limit leaves 3145728 of 5242880 in pool 'pool'");
    struct ebb_pool_stats after = pool_stats_of(pool);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

static void no_more_slabs_are_dropped_than_make_room(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .limit_reserved_bytes = 8 * MIB,
                          .keep_all = true);
    ebb_region slabs[3];
    for (int i = 0; i < 3; i++) {
        slabs[i] = OPEN(.pool = pool);
        block_of(slabs[i], 2 * MIB - 64 * KIB, 64);
    }
    assert_int_equal(pinned_bytes(pool), 8 * MIB); /* 2, 2 and 4 */
    for (int i = 0; i < 3; i++)
        assert_int_equal(ebb_region_close(slabs[i]), 0);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 4 * MIB + 64 * KIB, 64);
    assert_int_equal(pool_stats_of(pool).reserved.current, 8 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

/* A device copies from a batch; the next batch is written when `fence` is done, or at once. */
static bool arrives_whole(ebb_pool *pool, ebb_pool *device, bool fenced) {
    ebb_region region = OPEN(.pool = device), batch = OPEN(.pool = pool);
    unsigned char *bytes = ebb_region_alloc(batch, 100000, 64), *back = malloc(100000);
    void *images = ebb_region_alloc(region, 100000, 256);
    struct ebb_fence fence = {{0}};
    assert_true(bytes && back && images);
    memset(bytes, 1, 100000);
    assert_int_equal(ebb_copy_to_device(region, images, 0, bytes, 100000, NULL), 0);
    assert_int_equal(ebb_fence_record(&fence, 0, NULL), 0);
    while (fenced && ebb_fence_is_done(&fence) != 1)
        ;
    memset(bytes, 2, 100000); /* the batch's memory is used again */
    assert_int_equal(ebb_device_finish(region, NULL), 0);
    assert_int_equal(ebb_copy_from_device(region, images, 0, back, 100000, NULL), 0);
    bool whole = back[0] == 1 && memcmp(back, back + 1, 99999) == 0;
    free(back);
    assert_int_equal(ebb_fence_end(&fence), 0);
    assert_int_equal(ebb_region_close(batch), 0);
    assert_int_equal(ebb_region_close(region), 0);
    return whole;
}

static void a_fence_keeps_a_batch_until_the_device_has_it(void **state) {
    ebb_pool *pool = pinned_pool(), *device = POOL(.kind = EBB_KIND_DEVICE);
    assert_non_null(device);
    assert_true(arrives_whole(pool, device, true));
    assert_false(arrives_whole(pool, device, false)); /* or the test would show nothing */
    pool_end(pool);
    pool_end(device);
    assert_driver_is_empty();
}

static void huge_pages_are_pinned_too(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_HUGE | EBB_KIND_PINNED);
    assert_non_null(pool);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 5 * MIB, 64);
    assert_true(pinned_bytes(pool) >= 5 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

/* Makes a pool, grows, trims and ends it; what fails is done again, until it is done. */
static unsigned live(unsigned nth, bool all) {
    unsigned refusals = 0;
    ebb_pool *pool;
    driver_fail(nth, all);
    while (!(pool = POOL(.kind = EBB_KIND_PINNED))) {
        assert_int_equal(ebb_last_error(), EBB_E_DEVICE);
        refusals += driver_relent();
        assert_driver_is_empty();
    }
    ebb_region region = OPEN(.pool = pool);
    for (size_t i = 0; i < 12; i++) {
        void *block;
        uint64_t owned = stats_of(region).used.current;
        while (!(block = ebb_region_alloc(region, 1 * MIB, 64))) {
            assert_int_equal(ebb_last_error(), EBB_E_DEVICE);
            assert_text_names("cu");
            assert_int_equal(stats_of(region).used.current, owned);
            refusals += driver_relent();
            ebb_check_pool(pool);
        }
        memset(block, 1, 1 * MIB);
    }
    assert_int_equal(ebb_region_close(region), 0);
    ebb_pool_trim(pool, 4 * MIB); /* what is refused stays */
    ebb_check_pool(pool);
    while (ebb_pool_destroy(pool) != 0) {
        assert_int_equal(ebb_last_error(), EBB_E_DEVICE);
        refusals += driver_relent();
        assert_int_equal(ebb_check_pool(pool), 0);
    }
    refusals += driver_relent();
    return refusals;
}

static void each_call_that_fails_leaves_what_there_was(void **state) {
    unsigned nth = 1;
    for (; live(nth, nth % 2 == 0) != 0; nth++)
        assert_driver_is_empty();
    assert_true(nth > 25);
    assert_driver_is_empty();
}

static ebb_pool *inherited;
static ebb_region inherited_region;
static void *inherited_block;

/* The child has a copy of what was there. It cannot pin more, and ends nothing of the parent's. */
static int go_on_in_the_child(void) {
    int bad = !pattern_holds(inherited_block, 5000, 5000);
    size_t bytes = 1;
    bad |= ebb_pool_pinning(inherited, &bytes) != EBB_PINNING_NONE || bytes != 0;
    memset(inherited_block, 0, 5000);
    bad |= ebb_region_alloc(inherited_region, 50 * MIB, 64) != NULL;
    bad |= ebb_last_error() != EBB_E_DEVICE;
    bad |= ebb_region_close(inherited_region) != 0;
    bad |= ebb_pool_trim(inherited, 0) == 0;
    return bad | (ebb_pool_destroy(inherited) != 0);
}

static void a_forked_child_does_not_unregister(void **state) {
    inherited = pinned_pool();
    inherited_region = OPEN(.pool = inherited);
    inherited_block = block_of(inherited_region, 5000, 64);
    assert_int_equal(in_a_child(go_on_in_the_child), 0);
    assert_true(pattern_holds(inherited_block, 5000, 5000));
    assert_true(pinned_bytes(inherited) > 0);
    assert_int_equal(ebb_region_close(inherited_region), 0);
    pool_end(inherited);
    assert_driver_is_empty();
}

static void a_device_that_is_not_there_is_refused(void **state) {
    assert_null(POOL(.kind = EBB_KIND_PINNED, .device = 9));
    assert_refused(ebb_last_error(), EBB_E_DEVICE);
    assert_text_names("device 9 asked, the CUDA driver has 2");
}

static ebb_region lender;

static void *release_there(void *block) {
    return ebb_region_release_remote(lender, block) ? block : NULL;
}

/* Who asks is refused, and again when what is cached should have made room; then it is there. */
static void what_another_thread_gave_back_serves_unheard_of(void **state) {
    ebb_pool *pool = pinned_pool();
    ebb_region root = OPEN(.pool = pool), others[2];
    pthread_t thread;
    void *bad;
    (void)state;
    for (int i = 0; i < 2; i++)
        block_of(others[i] = OPEN(.pool = pool), 32 * MIB, 64);
    lender = OPEN(.parent = root);
    void *block = block_of(lender, 60 * MIB, 64);
    block_of(lender, 20 * MIB, 64); /* in a slab of its own: the other one goes */
    for (int i = 0; i < 2; i++)
        assert_int_equal(ebb_region_close(others[i]), 0);
    assert_int_equal(pthread_create(&thread, NULL, release_there, block), 0);
    assert_int_equal(pthread_join(thread, &bad), 0);
    assert_null(bad);
    assert_no_block(ebb_region_alloc(root, 100, 3), EBB_E_ALIGNMENT);
    driver_fail(1, true);
    assert_non_null(ebb_region_alloc(root, 60 * MIB, 64));
    assert_true(driver_relent());
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_pools_are_not_pinned),
        cmocka_unit_test(slabs_are_registered_once_and_grow),
        cmocka_unit_test(slabs_that_come_and_go_leave_nothing),
        cmocka_unit_test(slabs_do_not_go_for_a_larger_one),
        cmocka_unit_test(a_block_larger_than_slabs_gets_one_of_its_size),
        cmocka_unit_test(a_step_like_the_last_one_asks_the_driver_nothing),
        cmocka_unit_test(a_trim_unregisters_slabs_that_are_free_all_over),
        cmocka_unit_test(a_trim_in_parts_comes_to_an_end),
        cmocka_unit_test(what_remains_is_not_more_than_is_above_the_target),
        cmocka_unit_test(what_steps_do_not_need_goes_back_by_itself),
        cmocka_unit_test(a_limit_counts_whole_slabs),
        cmocka_unit_test(a_block_that_is_refused_drops_no_slab),
        cmocka_unit_test(no_more_slabs_are_dropped_than_make_room),
        cmocka_unit_test(a_fence_keeps_a_batch_until_the_device_has_it),
        cmocka_unit_test(huge_pages_are_pinned_too),
        cmocka_unit_test(each_call_that_fails_leaves_what_there_was),
        cmocka_unit_test(a_forked_child_does_not_unregister),
        cmocka_unit_test(a_device_that_is_not_there_is_refused),
        cmocka_unit_test(what_another_thread_gave_back_serves_unheard_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
