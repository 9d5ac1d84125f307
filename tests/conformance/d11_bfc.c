// SPDX-License-Identifier: Apache-2.0
/*
 * d11_bfc.c - part D11: ONNX Runtime's BFC arena, ExecuTorch's allocators. All of it is here,
 * with our rounding (16 bytes, not 256) and our empty blocks (they exist). 140: a place that small
 * blocks have had stays theirs, so the first pointer comes again among large blocks; among others
 * no page comes in its stead.
 */
#include "conformance/law.h"
#include "failure/fault.h"

#include <stdio.h>

static void c140_every_size_once(void **state) {
    struct stage *stage = *state;
    static void *blocks[1024];
    uint64_t used = 0;
    for (size_t bytes = 1; bytes <= 1023; bytes++) {
        blocks[bytes] = block_of(stage->root, bytes, 16);
        used += (bytes + 15) / 16 * 16;
        assert_int_equal(ebb_region_block_bytes(stage->root, blocks[bytes]), bytes);
    }
    assert_int_equal(stats_of(stage->root).blocks.current, 1023);
    assert_int_equal(stats_of(stage->root).used.current, used);
    assert_int_equal(stats_of(stage->root).requested.current, 1023 * 1024 / 2);
    for (size_t bytes = 1; bytes <= 1023; bytes++)
        assert_int_equal(ebb_region_release(stage->root, blocks[bytes]), 0);
    assert_int_equal(stats_of(stage->root).used.current, 0);
}

/* 1024 times four blocks, all released: with the first one, BFC's 4097 allocations. */
static void come_and_go(ebb_region region, size_t least) {
    static const size_t bytes[] = {4, 8, 8, 4};
    void *blocks[4];
    for (size_t i = 0; i < 1024; i++) {
        for (size_t k = 0; k < 4; k++)
            blocks[k] = block_of(region, least + i * bytes[k], 16);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(ebb_region_release(region, blocks[k]), 0);
    }
}

static void c140_the_first_place_again(void **state) {
    struct stage *stage = *state;
    for (size_t least = 0; least <= EBB_SMALL_MAX_BYTES + 1; least += EBB_SMALL_MAX_BYTES + 1) {
        ebb_region region = OPEN(.parent = stage->root);
        void *first = block_of(region, 4096, 16);
        assert_int_equal(ebb_region_release(region, first), 0);
        come_and_go(region, least);
        assert_int_equal(stats_of(region).used.current, 0);
        uint64_t reserved = stats_of(region).reserved.current;
        void *last = block_of(region, 4096, 16);
        assert_true(last == first || least == 0); /* pages of small blocks stay theirs */
        assert_int_equal(stats_of(region).reserved.current, reserved);
        assert_int_equal(stats_of(region).blocks.total, 4098);
        assert_int_equal(ebb_region_close(region), 0);
    }
}

static void c141_the_text_carries_what_is_asked_and_what_there_is(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 1 * MIB);
    assert_non_null(ebb_region_alloc(region, 0, 1)); /* BFC: NULL; 16 bytes of ours */
    block_of(region, 4, 4);                          /* BFC: 256; 16 bytes of ours */
    assert_int_equal(stats_of(region).used.current, 32);
    assert_no_block(ebb_region_alloc(region, 2 * MIB, 64), EBB_E_REGION_LIMIT);
    assert_text_names("2097152 bytes asked");
    assert_text_names("32 of 1048576 bytes in use");
}

static void c142_reserving_takes_what_was_said_and_failing_is_an_error(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.pool = stage->pool, .hint_bytes = 1 * MIB);
    assert_int_equal(pool_stats_of(stage->pool).reserved.current, 1048576);
    fault_arm(1, true);
    void *block = ebb_region_alloc(region, 2048 * MIB, 64); /* beyond a slab */
    fault_disarm();
    assert_no_block(block, EBB_E_MEMORY);
    assert_int_equal(pool_stats_of(stage->pool).reserved.current, 1048576);
    ebb_region_close(region);
}

static void c143_one_survivor_of_64_mib_pins_its_pages_only(void **state) {
    struct stage *stage = *state;
    for (size_t bytes = 256; bytes <= 2048; bytes *= 8) {
        ebb_region region = OPEN(.parent = stage->root);
        untouched(region, 32 * MIB, 64);
        struct ebb_survivor survivor = survivor_of(block_of(region, bytes, 16),
                                                   EBB_PROMOTE_RELINK);
        untouched(region, 32 * MIB, 64);
        assert_true(stats_of(region).reserved.current >= 64 * MIB);
        assert_int_equal(ebb_close_keeping(region, stage->root, &survivor, 1, NULL, NULL), 0);
        assert_true(stats_of(stage->root).reserved.current <= 4 * PAGE + 2 * PAGE);
        assert_true(pattern_holds(survivor.block, bytes, (unsigned)bytes));
        ebb_pool_trim(stage->pool, 0);
        assert_true(pool_stats_of(stage->pool).reserved.current <= 4 * PAGE + 2 * PAGE);
    }
}

static void c145_capacity_alignment_and_the_first_address_again(void **state) {
    struct stage *stage = *state;
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 16 * PAGE), 0);
    void *first = block_of(stage->root, 100, 16);
    assert_no_block(ebb_region_alloc(stage->root, 8, 3), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(stage->root, 17 * PAGE, 16), EBB_E_POOL_LIMIT);
    char numbers[80];
    snprintf(numbers, sizeof numbers, "69632 bytes of pages asked, limit leaves %zu",
             16 * PAGE - (size_t)stats_of(stage->root).reserved.current);
    assert_text_names(numbers);
    assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
    assert_ptr_equal(block_of(stage->root, 100, 16), first);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        CASE(c140_every_size_once),
        CASE(c140_the_first_place_again),
        CASE(c141_the_text_carries_what_is_asked_and_what_there_is),
        CASE(c142_reserving_takes_what_was_said_and_failing_is_an_error),
        CASE(c143_one_survivor_of_64_mib_pins_its_pages_only),
        CASE(c145_capacity_alignment_and_the_first_address_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
