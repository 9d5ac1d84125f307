// SPDX-License-Identifier: Apache-2.0
/*
 * d10_rmm.c - part D10: RMM's counting and limiting adaptors, in units of 10 MiB.
 *
 * An adaptor over an adaptor is a child region under a parent here; what the outer one counts
 * together is subtree_used of a region with a limit. All of D10 is here.
 */
#include "conformance/law.h"

#define UNIT (10 * MIB)

static void assert_meter(struct ebb_meter meter, uint64_t current, uint64_t peak, uint64_t total) {
    assert_int_equal(meter.current, current);
    assert_int_equal(meter.peak, peak);
    assert_int_equal(meter.total, total);
}

static void c130_empty_is_zero_and_so_is_all_freed(void **state) {
    struct stage *stage = *state;
    void *blocks[10];
    assert_meter(stats_of(stage->root).blocks, 0, 0, 0);
    assert_meter(stats_of(stage->root).requested, 0, 0, 0);
    for (int i = 0; i < 10; i++)
        blocks[i] = untouched(stage->root, UNIT, 64);
    for (int i = 0; i < 10; i++)
        assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
    assert_meter(stats_of(stage->root).blocks, 0, 10, 10);
    assert_meter(stats_of(stage->root).requested, 0, 10 * UNIT, 10 * UNIT);
}

static void c131_value_peak_and_total(void **state) {
    struct stage *stage = *state;
    void *blocks[20];
    for (int i = 0; i < 10; i++)
        blocks[i] = untouched(stage->root, UNIT, 64);
    for (int i = 0; i < 10; i += 2)
        assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
    assert_meter(stats_of(stage->root).requested, 5 * UNIT, 10 * UNIT, 10 * UNIT);
    assert_meter(stats_of(stage->root).blocks, 5, 10, 10);
    for (int i = 10; i < 20; i++)
        blocks[i] = untouched(stage->root, UNIT, 64);
    assert_meter(stats_of(stage->root).requested, 15 * UNIT, 15 * UNIT, 20 * UNIT);
    for (int i = 1; i < 20; i += i < 9 ? 2 : 1)
        assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
    assert_meter(stats_of(stage->root).requested, 0, 15 * UNIT, 20 * UNIT);
    assert_meter(stats_of(stage->root).blocks, 0, 15, 20);
}

static void c132_layers_count_their_own_and_together(void **state) {
    struct stage *stage = *state;
    ebb_region outer = OPEN(.pool = stage->pool, .limit_bytes = 100 * UNIT);
    ebb_region inner = OPEN(.parent = outer);
    void *blocks[15];
    for (int i = 0; i < 15; i++)
        blocks[i] = untouched(i < 10 ? outer : inner, UNIT, 64);
    assert_int_equal(stats_of(outer).subtree_used, 15 * UNIT);
    assert_meter(stats_of(outer).blocks, 10, 10, 10);
    assert_meter(stats_of(inner).blocks, 5, 5, 5);
    assert_meter(stats_of(inner).requested, 5 * UNIT, 5 * UNIT, 5 * UNIT);
    for (int i = 0; i < 15; i++)
        assert_int_equal(ebb_region_release(i < 10 ? outer : inner, blocks[i]), 0);
    assert_int_equal(stats_of(outer).subtree_used, 0);
    assert_meter(stats_of(outer).blocks, 0, 10, 10);
    assert_meter(stats_of(inner).blocks, 0, 5, 5);
    assert_int_equal(ebb_region_close(outer), 0);
}

static void c133_freeing_through_the_wrong_layer_is_refused(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    void *blocks[15];
    for (int i = 0; i < 15; i++)
        blocks[i] = untouched(i < 10 ? stage->root : inner, UNIT, 64);
    for (int i = 0; i < 15; i++)
        if (i < 10)
            assert_refused(ebb_region_release(inner, blocks[i]), EBB_E_FOREIGN);
        else
            assert_int_equal(ebb_region_release(inner, blocks[i]), 0);
    assert_meter(stats_of(stage->root).blocks, 10, 10, 10); /* RMM: 0, and the inner one -10 */
    assert_meter(stats_of(inner).blocks, 0, 5, 5);
}

static void c136_limits_are_exact_and_nest(void **state) {
    struct stage *stage = *state;
    ebb_region ten = OPEN(.parent = stage->root, .limit_bytes = 10 * UNIT);
    void *first = untouched(ten, 4 * UNIT, 64);
    untouched(ten, 4 * UNIT, 64);
    assert_no_block(ebb_region_alloc(ten, 3 * UNIT, 64), EBB_E_REGION_LIMIT);
    assert_int_equal(stats_of(ten).subtree_used, 8 * UNIT);
    assert_int_equal(ebb_region_release(ten, first), 0);
    untouched(ten, 6 * UNIT, 64);
    assert_int_equal(stats_of(ten).subtree_used, stats_of(ten).limit); /* nothing remains */
    ebb_region five = OPEN(.parent = stage->root, .limit_bytes = 5 * UNIT);
    assert_no_block(ebb_region_alloc(five, 5 * UNIT + 1, 64), EBB_E_REGION_LIMIT);
    ebb_region two = OPEN(.parent = five, .limit_bytes = 2 * UNIT);
    assert_no_block(ebb_region_alloc(two, 4 * UNIT, 64), EBB_E_REGION_LIMIT);
    assert_int_equal(stats_of(five).subtree_used, 0);
    assert_int_equal(stats_of(two).subtree_used, 0);
    untouched(five, 5 * UNIT, 64);
}

/* RMM rounds to size classes; ours to 16 bytes, and to 64 and at least 1 KiB above 1 KiB. */
static void c138_sizes_round_to_granules_and_units(void **state) {
    static const struct {
        size_t bytes, used;
    } cases[] = {
        {8, 16},          {264, 272},         {1024, 1024},          {1025, 1088},
        {17 * KIB, 17 * KIB}, {13 * MIB, 13 * MIB}, {2500 * MIB, 2500 * MIB},
    };
    struct stage *stage = *state;
    ebb_region region = OPEN(.measure = true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t before = stats_of(region).used.current;
        untouched(region, cases[i].bytes, 16);
        assert_int_equal(stats_of(region).used.current - before, cases[i].used);
    }
    assert_int_equal(ebb_region_close(region), 0);
    assert_no_block(ebb_region_alloc(stage->root, (size_t)1 << 50, 16), EBB_E_MEMORY);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        CASE(c130_empty_is_zero_and_so_is_all_freed),
        CASE(c131_value_peak_and_total),
        CASE(c132_layers_count_their_own_and_together),
        CASE(c133_freeing_through_the_wrong_layer_is_refused),
        CASE(c136_limits_are_exact_and_nest),
        CASE(c138_sizes_round_to_granules_and_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
