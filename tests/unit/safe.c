// SPDX-License-Identifier: Apache-2.0
/*
 * safe.c - the safe of a region in shared memory, which lies in the default pool: what it holds
 * counts in the region's limits, a call that fails leaves no trace in it, its end ends no step, and
 * who hears that it has no room hears of the region.
 */
#include "kit/dlpack.h"

#include "pool/pool.h"

#include <stdio.h>

enum { MANY = 10000, LIMIT = 256 << 10, TEXT_BYTES = 2048 };

static ebb_pool *pool_of_slots(void) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 2, .slot_bytes = 16 * MIB);
    assert_non_null(pool);
    return pool;
}

/* A view is nothing but a head in the safe. */
static unsigned take_views(ebb_region region, unsigned most) {
    struct ebb_tensor *base = tensor_of_bytes(region, 1);
    unsigned count = 0;
    while (count < most && ebb_tensor_view(region, base, 1, &(int64_t){1}, &(int64_t){1}, 0))
        count++;
    return count;
}

static void what_it_holds_counts_in_the_regions_limits(void **state) {
    ebb_pool *pool = pool_of_slots();
    for (unsigned above = 0; above < 2; above++) {
        ebb_region limited = OPEN(.pool = pool, .limit_bytes = LIMIT);
        ebb_region region = above ? OPEN(.parent = limited) : limited;
        assert_in_range(take_views(region, MANY), 100, MANY - 1);
        assert_int_equal(ebb_last_error(), EBB_E_REGION_LIMIT);
        assert_in_range(stats_of(limited).subtree_used, LIMIT / 2, LIMIT);
        if (above) {
            assert_int_equal(ebb_region_close(region), 0);
            assert_int_equal(stats_of(limited).subtree_used, 0);
        }
        assert_int_equal(ebb_region_close(limited), 0);
    }
    pool_end(pool);
}

/* But in no limit of the shared pool, which are about its slots. */
static void elements_in_it_count_in_limits_of_regions_alone(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 16 * MIB,
                          .limit_used_bytes = MIB);
    ebb_region region = OPEN(.pool = pool), ordinary = OPEN(.name = "ordinary");
    ebb_region limited = OPEN(.parent = region, .limit_bytes = MIB);
    struct ebb_tensor *tensor = tensor_of_bytes(ordinary, 4 * MIB);
    assert_no_block(ebb_object_move(tensor, limited), EBB_E_REGION_LIMIT);
    tensor = ebb_object_move(tensor, region);
    assert_non_null(tensor);
    assert_true(pattern_holds(tensor->data, 4 * MIB, (unsigned)(4 * MIB)));
    assert_true(stats_of(region).used.current < MIB);
    assert_no_block(ebb_region_alloc(region, 2 * MIB, 64), EBB_E_POOL_LIMIT);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(ebb_region_close(ordinary), 0);
    pool_end(pool);
}

static void its_end_is_no_end_of_a_step(void **state) {
    const struct recent *recent = &ebb_pool_default()->recent;
    ebb_pool *pool = pool_of_slots();
    ebb_region region = OPEN(.pool = pool), step = OPEN(.pool = ebb_pool_default());
    block_of(step, 100, 16);
    (void)take_views(region, 10);
    unsigned ended = recent->count;
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(recent->count, ended);
    assert_int_equal(ebb_region_close(step), 0); /* that one is */
    assert_int_equal(recent->count, ended + 1);
    pool_end(pool);
}

/* The heads of two tensors come and go, then there is no room for what was to be packed. */
static void fail_to_pack(ebb_region region, ebb_region source) {
    struct ebb_tensor *huge = ebb_tensor_view(source, tensor_of_bytes(source, 1), 1,
                                              &(int64_t){64 * MIB}, &(int64_t){0}, 0);
    struct ebb_tensor *list[] = {huge, huge};
    assert_non_null(huge);
    assert_null(ebb_sequences_pack(region, list, 2, NULL));
    assert_int_equal(ebb_last_error(), EBB_E_REGION_LIMIT);
}

static void a_call_that_fails_leaves_no_trace_in_it(void **state) {
    struct stage *stage = *state;
    ebb_pool *pool = pool_of_slots();
    ebb_region region = OPEN(.pool = pool, .limit_bytes = 32 * MIB);
    (void)take_views(region, 10);
    struct ebb_region_stats before = stats_of(region);
    struct ebb_pool_stats safe_before = pool_stats_of(ebb_pool_default());
    fail_to_pack(region, stage->root);
    struct ebb_region_stats after = stats_of(region);
    struct ebb_pool_stats safe_after = pool_stats_of(ebb_pool_default());
    assert_int_equal(safe_after.blocks.current, safe_before.blocks.current);
    assert_int_equal(safe_after.requested.current, safe_before.requested.current);
    assert_int_equal(safe_after.used.current, safe_before.used.current);
    assert_int_equal(after.blocks.current, before.blocks.current);
    assert_int_equal(after.subtree_used, before.subtree_used);
    assert_int_equal(ebb_check_pool(ebb_pool_default()), 0);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* The head of a tensor without elements is all that there is of it, and no block of the region. */
static void what_is_copied_from_it_is_not_lost(void **state) {
    (void)state;
    ebb_pool *pool = pool_of_slots();
    ebb_region root = OPEN(.pool = pool);
    for (unsigned form = 0; form < 4; form++) {
        unsigned steps = form & 1, blocks = form & 2 ? 5 : 0;
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
        ebb_step step = {.region = OPEN(.parent = root)};
        if (steps)
            step = ebb_step_begin_under(site, root, 0);
        struct ebb_survivor head = survivor_of(tensor_of_bytes(step.region, 0), EBB_PROMOTE_COPY);
        uint64_t lost = 77;
        for (unsigned i = 0; i < blocks; i++)
            block_of(step.region, 5000, 64);
        int result = steps ? ebb_step_end_keeping(step, root, &head, 1, NULL, &lost)
                           : ebb_close_keeping(step.region, root, &head, 1, NULL, &lost);
        assert_int_equal(result, 0);
        assert_int_equal(lost, blocks);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* Releases by others make room for the heads that lie there as for blocks in the pages. */
static void what_others_released_makes_room_for_heads(void **state) {
    (void)state;
    ebb_pool *pool = pool_of_slots();
    for (unsigned above = 0; above < 2; above++) {
        ebb_region limited = OPEN(.pool = pool, .limit_bytes = LIMIT);
        ebb_region region = above ? OPEN(.parent = limited) : limited;
        void *block = block_of(region, LIMIT / 2, 64);
        struct ebb_tensor *base = tensor_of_bytes(region, 1);
        assert_in_range(take_views(region, MANY), 100, MANY - 1);
        while (ebb_region_alloc(region, 16, 16))
            ;
        assert_int_equal(ebb_region_release_remote(region, block), 0);
        assert_non_null(ebb_tensor_view(region, base, 1, &(int64_t){1}, &(int64_t){1}, 0));
        block = block_of(region, LIMIT / 2 - 2 * PAGE, 64);
        while (ebb_region_alloc(region, 64, 64))
            ;
        while (ebb_region_alloc(region, 16, 16))
            ;
        assert_int_equal(ebb_region_release_remote(region, block), 0);
        assert_non_null(tensor_of_bytes(region, 100));
        assert_int_equal(ebb_check_pool(pool), 0);
        assert_int_equal(ebb_region_close(limited), 0);
    }
    pool_end(pool);
}

static void keep_text(void *context, const char *text) {
    snprintf(context, TEXT_BYTES, "%s", text);
}

/* Not those of the safe alone, which the program does not know. */
static void what_has_no_room_in_it_is_reported_with_the_regions_and_their_pool(void **state) {
    static const char *const parts[] = {
        "EBB_E_REGION_LIMIT: ", "\n  pool 'shelf': ", "\n  pool 'default': ", "\n  process: ",
        "\n  region 'safe of child': ", "\n  region 'child': ", "\n  region 'batch': ",
        ", limit 262144 with "};
    static char text[TEXT_BYTES];
    (void)state;
    ebb_pool *pool = POOL(.name = "shelf", .kind = EBB_KIND_SHARED, .slots = 1,
                          .slot_bytes = 16 * MIB);
    ebb_region limited = OPEN(.name = "batch", .pool = pool, .limit_bytes = LIMIT);
    ebb_region region = OPEN(.name = "child", .parent = limited);
    ebb_report_on_exhausted(keep_text, text);
    for (unsigned empty = 0; empty < 2; empty++) {
        const char *at = text;
        if (empty)
            assert_null(ebb_tensor_new(region, bytes8, 1, &(int64_t){0}));
        else
            assert_in_range(take_views(region, MANY), 100, MANY - 1);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++, at++)
            if (!(at = strstr(at, parts[i])))
                fail_msg("'%s' is not in '%s', or not there", parts[i], text);
        text[0] = '\0';
    }
    ebb_report_on_exhausted(NULL, NULL);
    assert_int_equal(ebb_region_close(limited), 0);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_holds_counts_in_the_regions_limits),
        cmocka_unit_test(elements_in_it_count_in_limits_of_regions_alone),
        cmocka_unit_test(its_end_is_no_end_of_a_step),
        STAGED(a_call_that_fails_leaves_no_trace_in_it),
        cmocka_unit_test(what_is_copied_from_it_is_not_lost),
        cmocka_unit_test(what_others_released_makes_room_for_heads),
        cmocka_unit_test(what_has_no_room_in_it_is_reported_with_the_regions_and_their_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
