// SPDX-License-Identifier: Apache-2.0
/*
 * full.c - a device that has no memory left, over the fake driver: it is said how full it is, and
 * the handler of exhausted memory hears it; what the pool only keeps makes room, also for plans,
 * and stays where that would not do; what it keeps for a site serves who would be refused.
 *
 * The device has 256 MiB.
 */
#include "scene.h"

#include <stdio.h>

/* What the handler of exhausted memory hears. */
struct heard {
    unsigned calls;
    char text[2048];
};

static void hear(void *context, const char *text) {
    struct heard *heard = context;
    heard->calls++;
    snprintf(heard->text, sizeof heard->text, "%s", text);
}

static void *take(ebb_region region, size_t bytes) {
    void *block = ebb_region_alloc(region, bytes, 256);
    assert_non_null(block);
    return block;
}

/* The pool keeps so many slabs, with room for a block each. */
static void cache_slabs(ebb_pool *pool, int count, size_t bytes) {
    ebb_region regions[4];
    for (int i = 0; i < count; i++) {
        regions[i] = OPEN(.pool = pool);
        take(regions[i], bytes);
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(ebb_region_close(regions[i]), 0);
}

static void a_full_device_says_how_full(void **state) {
    struct gpu *gpu = *state;
    struct heard heard = {.calls = 0};
    void *block = take(gpu->region, 200 * MIB);
    size_t reserved = pool_stats_of(gpu->pool).reserved.current;
    ebb_report_on_exhausted(hear, &heard);
    assert_no_block(ebb_region_alloc(gpu->region, 100 * MIB, 64), EBB_E_DEVICE);
    ebb_report_on_exhausted(NULL, NULL);
    assert_int_equal(heard.calls, 1);
    assert_non_null(strstr(heard.text, "EBB_E_DEVICE: 104857600 bytes at alignment 64, large lane: "
                                       "cuMemAlloc of 104857600 bytes, device 0"));
    assert_text_names("cuMemAlloc of 104857600 bytes, device 0: CUDA_ERROR_OUT_OF_MEMORY (2)");
    assert_text_names("of 268435456 bytes are free");
    assert_int_equal(pool_stats_of(gpu->pool).reserved.current, reserved);
    take(gpu->region, 40 * MIB); /* slabs as long as will do */
    assert_int_equal(ebb_region_release(gpu->region, block), 0);
    take(gpu->region, 100 * MIB); /* in the place of the other */
    assert_int_equal(ebb_check_pool(gpu->pool), 0);
}

/* None of the slabs that the pool keeps is long enough. Who gets a block hears of no refusal. */
static void what_is_cached_makes_room(void **state) {
    struct gpu *gpu = *state;
    struct heard heard = {.calls = 0};
    cache_slabs(gpu->pool, 4, 50 * MIB);
    assert_int_equal(driver_state().allocations, 4);
    assert_no_block(ebb_region_alloc(gpu->region, 100, 3), EBB_E_ALIGNMENT);
    ebb_report_on_exhausted(hear, &heard);
    void *block = take(gpu->region, 180 * MIB);
    ebb_report_on_exhausted(NULL, NULL);
    assert_int_equal(heard.calls, 0);
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
    assert_int_equal(driver_state().allocations, 1 + 1); /* three were enough */
    assert_int_equal(ebb_check_pool(gpu->pool), 0);
    assert_no_block(ebb_region_alloc(gpu->region, 180 * MIB, 64), EBB_E_DEVICE);
    assert_int_equal(ebb_region_release(gpu->region, block), 0);
}

/* No more of it than is asked for, as long as the device does with that. */
static void what_is_cached_stays_where_part_of_it_does(void **state) {
    struct gpu *gpu = *state;
    cache_slabs(gpu->pool, 4, 50 * MIB);
    take(gpu->region, 80 * MIB); /* 28 are free */
    assert_int_equal(driver_state().allocations, 3 + 1);
    assert_int_equal(pool_stats_of(gpu->pool).given_back, 64 * MIB);
    take(gpu->region, 120 * MIB);
    assert_int_equal(driver_state().allocations, 1 + 2);
    assert_int_equal(ebb_check_pool(gpu->pool), 0);
}

/* A step that was exceptional gives back what it had at its end. */
static void a_close_does_not_say_what_the_driver_refuses_to_take(void **state) {
    struct gpu *gpu = *state;
    for (int i = 0; i < 10; i++)
        cache_slabs(gpu->pool, 1, 1 * MIB);
    ebb_region region = OPEN(.pool = gpu->pool);
    take(region, 100 * MIB);
    assert_no_block(ebb_region_alloc(region, 100, 3), EBB_E_ALIGNMENT);
    driver_fail(1, true);
    assert_int_equal(ebb_region_close(region), 0);
    assert_true(driver_relent());
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
    assert_int_equal(ebb_check_pool(gpu->pool), 0);
}

/* Of its arena nobody hears that it was refused. */
static void it_makes_room_for_plans(void **state) {
    struct gpu *gpu = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "late", .pool = gpu->pool));
    for (int i = 0; i < 6; i++) {
        if (i == 3) {
            ebb_pool_trim(gpu->pool, 0);
            cache_slabs(gpu->pool, 4, 55 * MIB);
            assert_true(driver_state().allocated_bytes > 200 * MIB);
        }
        ebb_step step = ebb_step_begin(site, 0);
        for (int k = 0; k < 10; k++)
            take(step.region, 10 * MIB);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).hits, 4 * 10);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void what_no_device_has_leaves_it_alone(void **state) {
    struct gpu *gpu = *state;
    cache_slabs(gpu->pool, 1, 50 * MIB);
    struct ebb_pool_stats before = pool_stats_of(gpu->pool);
    for (unsigned limited = 0; limited < 2; limited++) { /* to what would do without the slab */
        ebb_pool_set_reserved_limit(gpu->pool, limited ? 320 * MIB : 0);
        assert_no_block(ebb_region_alloc(gpu->region, 300 * MIB, 64), EBB_E_DEVICE);
        assert_text_names("cuMemAlloc of 314572800 bytes");
        assert_int_equal(pool_stats_of(gpu->pool).cached, before.cached);
        assert_int_equal(pool_stats_of(gpu->pool).given_back, before.given_back);
    }
    assert_int_equal(driver_state().allocations, 1);
}

/* An arena is kept in a slab that is in use otherwise: no slab can be given back. */
static void what_is_kept_does_where_there_is_no_more(void **state) {
    struct gpu *gpu = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "kept", .pool = gpu->pool));
    cache_slabs(gpu->pool, 1, 6 * MIB);
    take(gpu->region, 200 * KIB);
    ebb_region others = OPEN(.pool = gpu->pool, .hint_bytes = 248 * MIB);
    for (unsigned limited = 0; limited < 2; limited++) {
        for (int i = 0; i < 6; i++) {
            ebb_step step = ebb_step_begin(site, 0);
            for (int k = 0; k < 5; k++)
                take(step.region, 1 * MIB);
            assert_int_equal(ebb_step_end(step), 0);
        }
        size_t reserved = pool_stats_of(gpu->pool).reserved.current;
        ebb_pool_set_reserved_limit(gpu->pool, limited ? reserved : 0);
        ebb_region region = OPEN(.pool = gpu->pool);
        take(region, 4 * MIB);
        assert_int_equal(pool_stats_of(gpu->pool).reserved.current, reserved);
        assert_int_equal(ebb_region_close(region), 0);
    }
    assert_int_equal(ebb_region_close(others), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* With those of an empty arena the limit leaves as many pages, but a block is in its slab. */
static void an_arena_stays_that_gives_no_slab(void **state) {
    enum { STEPS = 8, BLOCKS = 3 };
    struct gpu *gpu = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "limited", .pool = gpu->pool));
    take(gpu->region, 200 * KIB);
    for (int i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        if (i == STEPS - 1) {
            size_t reserved = pool_stats_of(gpu->pool).reserved.current;
            assert_int_equal(ebb_pool_set_reserved_limit(gpu->pool, reserved + 1 * MIB), 0);
            assert_no_block(ebb_region_alloc(step.region, 2 * MIB, 64), EBB_E_POOL_LIMIT);
        }
        for (int k = 0; k < BLOCKS; k++)
            take(step.region, 400 * KIB);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).takeovers, 0);
    assert_int_equal(site_stats(site).hits, (STEPS - 2) * BLOCKS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        ON_GPU(a_full_device_says_how_full),
        ON_GPU(what_is_cached_makes_room),
        ON_GPU(what_is_cached_stays_where_part_of_it_does),
        ON_GPU(a_close_does_not_say_what_the_driver_refuses_to_take),
        ON_GPU(it_makes_room_for_plans),
        ON_GPU(what_no_device_has_leaves_it_alone),
        ON_GPU(an_arena_stays_that_gives_no_slab),
        ON_GPU(what_is_kept_does_where_there_is_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
