// SPDX-License-Identifier: Apache-2.0
/*
 * pool.c - pools are made, used side by side and ended; reserved = owned + cached throughout.
 */
#include "kit/text.h"

static void the_default_pool_is_one_and_needs_no_set_up(void **state) {
    ebb_pool *pool = ebb_pool_default();
    assert_non_null(pool);
    assert_ptr_equal(ebb_pool_default(), pool);
    uint64_t open = pool_stats_of(pool).open_regions;
    ebb_region region = ebb_region_open(NULL);
    assert_true(ebb_region_is_open(region));
    assert_int_equal(pool_stats_of(pool).open_regions, open + 1);
    block_of(region, 100, 16);
    assert_int_equal(ebb_region_close(region), 0);
}

static void a_new_pool_holds_nothing(void **state) {
    ebb_pool *pool = ebb_pool_create(NULL);
    struct ebb_pool_stats zero = {.size = sizeof zero}, stats = pool_stats_of(pool);
    assert_memory_equal(&stats, &zero, sizeof stats);
    pool_end(pool);
}

static void pages_come_back_as_cached_and_are_used_again(void **state) {
    struct stage *stage = *state;
    for (int step = 0; step < 5; step++) {
        ebb_region child = OPEN(.parent = stage->root);
        block_of(child, 100 * KIB, 64);
        struct ebb_pool_stats open = pool_stats_of(stage->pool);
        assert_true(open.owned >= 100 * KIB);
        assert_int_equal(open.reserved.current, open.owned + open.cached);
        assert_int_equal(ebb_region_close(child), 0);
        struct ebb_pool_stats closed = pool_stats_of(stage->pool);
        assert_int_equal(closed.owned, 0);
        assert_int_equal(closed.cached, open.reserved.current);
        assert_int_equal(closed.reserved.total, open.reserved.total);
        assert_true(step == 0 || closed.reserved.total == closed.reserved.current);
    }
}

static void pools_do_not_share_pages_or_counters(void **state) {
    ebb_pool *a = POOL(.name = "a"), *b = POOL(.name = "b");
    ebb_region in_a = OPEN(.pool = a), in_b = OPEN(.pool = b);
    struct ebb_pool_stats before = pool_stats_of(b);
    block_of(in_a, 1 * MIB, 64);
    struct ebb_pool_stats after = pool_stats_of(b);
    assert_memory_equal(&before, &after, sizeof before);
    ebb_region_close(in_a);
    struct ebb_pool_stats held = pool_stats_of(a);
    assert_true(held.cached >= 1 * MIB);
    block_of(in_b, 1 * MIB, 64);
    assert_int_equal(pool_stats_of(a).cached, held.cached);
    ebb_region_close(in_b);
    pool_end(a);
    pool_end(b);
}

static void a_pool_with_an_open_region_is_busy_and_stays_usable(void **state) {
    ebb_pool *pool = POOL(.name = "crowded");
    ebb_region first = OPEN(.pool = pool), second = OPEN(.pool = pool);
    void *block = block_of(first, 5000, 64);
    struct ebb_pool_stats before = pool_stats_of(pool);
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    assert_text_names("crowded");
    assert_text_names("2");
    struct ebb_pool_stats after = pool_stats_of(pool);
    assert_memory_equal(&before, &after, sizeof before);
    assert_true(pattern_holds(block, 5000, 5000));
    ebb_region_close(first);
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    ebb_region_close(second);
    pool_end(pool);
}

static void destroyed_pools_make_place_for_new_ones(void **state) {
    for (int i = 0; i < 3000; i++) { /* more than can exist at once */
        ebb_pool *pool = ebb_pool_create(NULL);
        assert_non_null(pool);
        ebb_region region = OPEN(.pool = pool);
        if (i % 100 == 0)
            block_of(region, 3 * MIB, 64);
        ebb_region_close(region);
        assert_int_equal(pool_stats_of(pool).opened_regions, 1);
        assert_int_equal(ebb_pool_destroy(pool), 0);
    }
}

static void as_many_pools_as_there_are_places_exist_at_once(void **state) {
    static ebb_pool *pools[4096];
    unsigned count = 0;
    while (count < 4096 && (pools[count] = ebb_pool_create(NULL)))
        count++;
    assert_in_range(count, 500, 4095);
    assert_refused(ebb_last_error(), EBB_E_MEMORY);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(ebb_pool_destroy(pools[i]), 0);
}

static void a_name_is_cut_at_31_bytes(void **state) {
    static const char name[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    static struct page page;
    for (size_t length = 30; length <= 32; length++) {
        char given[40];
        memcpy(given, name, length);
        given[length] = '\0';
        ebb_pool *pool = POOL(.name = given);
        memset(given, 'X', length); /* the name was copied */
        page.length = 0;
        assert_int_equal(ebb_report_pool(pool, EBB_REPORT_TEXT, page_write, &page), 0);
        size_t kept = length < 31 ? length : 31;
        assert_memory_equal(page.text, "pool ", 5);
        assert_memory_equal(page.text + 5, name, kept);
        assert_int_equal(page.text[5 + kept], ':');
        pool_end(pool);
    }
}

static void opened_regions_counts_every_open_once(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < 10; i++) {
        ebb_region a = OPEN(.pool = stage->pool), b = OPEN(.parent = a);
        assert_int_equal(pool_stats_of(stage->pool).opened_regions, 1 + 2 * (i + 1));
        assert_int_equal(pool_stats_of(stage->pool).open_regions, 3);
        assert_true(ebb_region_is_open(b));
        ebb_region_close(a);
        assert_int_equal(pool_stats_of(stage->pool).open_regions, 1);
    }
}

static void the_process_sums_its_pools(void **state) {
    ebb_pool *a = POOL(.name = "a"), *b = POOL(.name = "b");
    struct ebb_pool_stats before = {.size = sizeof before}, after = before;
    assert_int_equal(ebb_process_read_stats(&before), 0);
    ebb_region in_a = OPEN(.pool = a), in_b = OPEN(.pool = b);
    block_of(in_a, 3000, 64);
    block_of(in_b, 50, 16);
    assert_int_equal(ebb_process_read_stats(&after), 0);
    assert_int_equal(after.blocks.current - before.blocks.current, 2);
    assert_int_equal(after.requested.current - before.requested.current, 3050);
    assert_int_equal(after.open_regions - before.open_regions, 2);
    uint64_t owned = pool_stats_of(a).owned + pool_stats_of(b).owned;
    assert_int_equal(after.owned - before.owned, owned);
    assert_int_equal(after.reserved.current, after.owned + after.cached);
    ebb_region_close(in_a);
    ebb_region_close(in_b);
    pool_end(a);
    pool_end(b);
}

/* Of the 16 steps that the pool remembers two are large; were a plan's making one of them, one. */
static void what_ebb_does_between_steps_is_no_region_and_no_step(void **state) {
    enum { RECENT = 16, LARGE = 2 };
    struct stage *stage = *state;
    uint64_t opened = pool_stats_of(stage->pool).opened_regions;
    for (unsigned i = 0; i < LARGE; i++) {
        ebb_region large = OPEN(.pool = stage->pool);
        block_of(large, 8 * MIB, 64);
        assert_int_equal(ebb_region_close(large), 0);
    }
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < RECENT - LARGE; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned k = 0; k < 100; k++)
            block_of(step.region, 5000, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_true(site_stats(site).plans >= 1);
    assert_int_equal(pool_stats_of(stage->pool).opened_regions, opened + RECENT);
    assert_true(pool_stats_of(stage->pool).recent_peak >= 8 * MIB);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The large region has closed before a step below the same one ends, and a plan is made for it. */
static void plans_take_nothing_from_what_a_step_had_at_its_peak(void **state) {
    enum { STEPS = 12, BLOCKS = 3000 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned turn = 0; turn < 3; turn++) {
        ebb_region epoch = OPEN(.parent = stage->root), large = OPEN(.parent = epoch);
        block_of(epoch, 100, 16);
        block_of(large, 8 * MIB, 64);
        assert_int_equal(ebb_region_close(large), 0);
        for (unsigned i = 0; i < STEPS; i++) {
            ebb_step step = ebb_step_begin_under(site, epoch, 0);
            for (unsigned k = 0; k < BLOCKS; k++)
                block_of(step.region, 64 + (turn * STEPS + i) / 2 * 16, 16);
            assert_int_equal(ebb_step_end(step), 0);
        }
        assert_int_equal(ebb_region_close(epoch), 0);
        assert_true(pool_stats_of(stage->pool).recent_peak >= 8 * MIB);
    }
    assert_true(site_stats(site).plans >= 3);
    assert_int_equal(pool_stats_of(stage->pool).given_back, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_pool_is_one_and_needs_no_set_up),
        cmocka_unit_test(a_new_pool_holds_nothing),
        STAGED(pages_come_back_as_cached_and_are_used_again),
        cmocka_unit_test(pools_do_not_share_pages_or_counters),
        cmocka_unit_test(a_pool_with_an_open_region_is_busy_and_stays_usable),
        cmocka_unit_test(destroyed_pools_make_place_for_new_ones),
        cmocka_unit_test(as_many_pools_as_there_are_places_exist_at_once),
        cmocka_unit_test(a_name_is_cut_at_31_bytes),
        STAGED(opened_regions_counts_every_open_once),
        STAGED(what_ebb_does_between_steps_is_no_region_and_no_step),
        STAGED(plans_take_nothing_from_what_a_step_had_at_its_peak),
        cmocka_unit_test(the_process_sums_its_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
