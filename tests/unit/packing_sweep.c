// SPDX-License-Identifier: Apache-2.0
/*
 * packing_sweep.c - the proof of a plan refuses whatever is none: an overlap by one byte at each
 * kind of boundary, heights and alignments that are missed by one, lives that are no lives; and
 * agrees with a look at every pair on plans that are right or wrong by chance.
 */
#include "kit/test.h"

#include "base/size.h"
#include "kit/instances.h"

#include <stdlib.h>

enum { MOST = 300 };

static bool holds(const struct packing_buffer *buffers, const uint64_t *offsets, uint32_t count,
                  uint64_t height) {
    void *workspace = instance_workspace(count);
    bool valid = packing_is_valid(buffers, offsets, count, height, workspace);
    free(workspace);
    return valid;
}

/* Two buffers and where they lie; in both orders of the list. */
static bool two_hold(struct packing_buffer a, uint64_t at_a, struct packing_buffer b,
                     uint64_t at_b) {
    struct packing_buffer buffers[] = {a, b}, turned[] = {b, a};
    uint64_t offsets[] = {at_a, at_b}, turned_offsets[] = {at_b, at_a};
    bool valid = holds(buffers, offsets, 2, 1000);
    assert_int_equal(holds(turned, turned_offsets, 2, 1000), valid);
    return valid;
}

static void touching_is_no_overlap_and_one_byte_more_is(void **state) {
    struct packing_buffer old = {0, 10, 1, 100}, young = {5, 15, 1, 50};
    assert_true(two_hold(old, 0, young, 100));
    assert_false(two_hold(old, 0, young, 99));
    assert_true(two_hold(old, 50, young, 0));
    assert_false(two_hold(old, 49, young, 0));
    assert_true(two_hold(old, 50, young, 150));
    assert_false(two_hold(old, 50, young, 149));
    assert_false(two_hold(old, 0, young, 0));
    assert_false(two_hold(old, 0, young, 25)); /* inside */
    assert_false(two_hold(young, 0, old, 0));
}

static void a_life_ends_where_the_next_may_begin(void **state) {
    struct packing_buffer first = {0, 5, 1, 100}, next = {5, 6, 1, 100};
    assert_true(two_hold(first, 0, next, 0));
    first.upper = 6;
    assert_false(two_hold(first, 0, next, 0));
    first.upper = 5;
    next.lower = 4;
    assert_false(two_hold(first, 0, next, 0));
    next = (struct packing_buffer){0, 5, 1, 1}; /* the same life */
    assert_false(two_hold(first, 0, next, 99));
    next = (struct packing_buffer){2, 3, 1, 1}; /* within */
    assert_false(two_hold(first, 0, next, 99));
    assert_true(two_hold(first, 0, next, 100));
}

static void neighbours_of_neighbours_are_seen_too(void **state) {
    struct packing_buffer buffers[] = {{0, 9, 1, 10}, {0, 4, 1, 10}, {0, 9, 1, 10}, {5, 9, 1, 11}};
    uint64_t offsets[] = {0, 10, 20, 10};
    assert_false(holds(buffers, offsets, 4, 30)); /* into the one above, with a gap below it */
    offsets[3] = 9;
    assert_false(holds(buffers, offsets, 4, 30)); /* into the one below */
    buffers[3].bytes = 10;
    assert_false(holds(buffers, offsets, 4, 30));
    offsets[3] = 10;
    assert_true(holds(buffers, offsets, 4, 30));
    buffers[3].lower = 3;
    assert_false(holds(buffers, offsets, 4, 30));
}

static void a_large_buffer_over_many_small_ones_is_seen(void **state) {
    static struct packing_buffer buffers[MOST];
    static uint64_t offsets[MOST];
    for (uint32_t i = 0; i < MOST; i++) {
        buffers[i] = (struct packing_buffer){0, 2, 1, 1};
        offsets[i] = i;
    }
    assert_true(holds(buffers, offsets, MOST, MOST));
    for (uint32_t i = 1; i < MOST; i++) {
        buffers[0].bytes = i; /* over all below i */
        assert_int_equal(holds(buffers, offsets, MOST, MOST), i == 1);
    }
    for (uint32_t i = 1; i + 1 < MOST; i++)
        buffers[i].upper = 1;
    buffers[0] = (struct packing_buffer){1, 2, 1, MOST - 1};
    assert_true(holds(buffers, offsets, MOST, MOST));
    buffers[0].bytes = MOST; /* and now over the last one, 298 ranks above */
    assert_false(holds(buffers, offsets, MOST, MOST));
}

static void the_height_is_a_limit_for_each(void **state) {
    struct packing_buffer buffers[] = {{0, 1, 1, 10}, {1, 2, 1, 20}};
    uint64_t offsets[] = {11, 1};
    assert_true(holds(buffers, offsets, 2, 21));
    assert_false(holds(buffers, offsets, 2, 20));
    buffers[1].bytes = 0;
    offsets[1] = 21;
    assert_true(holds(buffers, offsets, 2, 21));
    offsets[1] = 22;
    assert_false(holds(buffers, offsets, 2, 21));
    offsets[0] = 0;
    assert_true(holds(buffers, offsets, 1, 10));
    assert_false(holds(buffers, offsets, 1, 9)); /* larger than the height, which must not wrap */
    assert_false(holds(buffers, offsets, 1, 0));
    assert_true(holds(NULL, NULL, 0, 0));
}

static void sums_that_wrap_deceive_nobody(void **state) {
    struct packing_buffer buffers[] = {{0, 1, 1, 16}, {0, 1, 1, 16}};
    uint64_t offsets[] = {0, UINT64_MAX - 7};
    assert_false(holds(buffers, offsets, 2, UINT64_MAX));
    assert_false(holds(buffers, offsets, 2, 64));
    buffers[1].bytes = UINT64_MAX;
    offsets[1] = 16;
    assert_false(holds(buffers, offsets, 2, UINT64_MAX));
    buffers[1].bytes = UINT64_MAX - 16;
    assert_true(holds(buffers, offsets, 2, UINT64_MAX));
}

static void an_offset_must_be_aligned(void **state) {
    for (uint32_t align = 1; align; align *= 2) {
        struct packing_buffer buffer = {0, 1, align, 1};
        uint64_t offset = (uint64_t)align * 3;
        assert_true(holds(&buffer, &offset, 1, UINT64_MAX));
        offset += align / 2;
        assert_int_equal(holds(&buffer, &offset, 1, UINT64_MAX), align == 1);
    }
    struct packing_buffer odd = {0, 1, 3, 1};
    uint64_t offset = 0;
    assert_false(holds(&odd, &offset, 1, 1));
    odd.align = 0;
    assert_false(holds(&odd, &offset, 1, 1));
}

static void lives_that_are_none_are_no_plan(void **state) {
    struct packing_buffer buffers[] = {{3, 3, 1, 1}, {0, 9, 1, 1}};
    uint64_t offsets[] = {0, 1};
    assert_false(holds(buffers, offsets, 2, 2));
    buffers[0].lower = 4;
    assert_false(holds(buffers, offsets, 2, 2));
    buffers[0].upper = 5;
    assert_true(holds(buffers, offsets, 2, 2));
}

static void buffers_without_bytes_overlap_nobody(void **state) {
    struct packing_buffer none = {0, 9, 1, 0}, some = {3, 5, 1, 100};
    assert_true(two_hold(none, 50, some, 0));
    assert_true(two_hold(none, 0, some, 0));
    assert_true(two_hold(none, 50, none, 50));
    /* and do not stand between two that do */
    struct packing_buffer buffers[] = {{0, 9, 1, 100}, none, {0, 9, 1, 100}};
    uint64_t offsets[] = {0, 50, 99};
    assert_false(holds(buffers, offsets, 3, 1000));
}

static void it_agrees_with_a_look_at_every_pair(void **state) {
    static struct packing_buffer buffers[MOST];
    static uint64_t offsets[MOST];
    uint64_t seed = 21;
    unsigned right = 0;
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t count = (uint32_t)(1 + instance_draw(&seed) % 6);
        instance_fill(buffers, count, (struct instance_shape){6, 4, 5, 1}, &seed);
        for (uint32_t i = 0; i < count; i++)
            offsets[i] = instance_draw(&seed) % 12;
        bool valid = instance_holds(buffers, offsets, count, 14);
        assert_int_equal(holds(buffers, offsets, count, 14), valid);
        right += valid;
    }
    assert_in_range(right, 2000, 18000);
}

/* A plan that is right, then each buffer in turn a byte lower or higher. */
static void each_byte_that_a_tight_plan_moves_by_is_noticed(void **state) {
    static struct packing_buffer buffers[MOST];
    static uint64_t offsets[MOST];
    uint64_t seed = 8;
    unsigned wrong = 0;
    instance_fill(buffers, MOST, (struct instance_shape){90, 30, 40, 0}, &seed);
    struct packing_result result;
    void *workspace = instance_workspace(MOST);
    assert_int_equal(packing_solve(buffers, MOST, &(struct packing_effort){.keys = 1}, workspace,
                                   offsets, &result), 0);
    free(workspace);
    for (uint32_t i = 0; i < 2 * MOST; i++) {
        uint64_t was = offsets[i / 2];
        offsets[i / 2] = i % 2 ? was + 1 : was > 0 ? was - 1 : 0;
        bool valid = instance_holds(buffers, offsets, MOST, result.height);
        assert_int_equal(holds(buffers, offsets, MOST, result.height), valid);
        wrong += !valid;
        offsets[i / 2] = was;
    }
    assert_true(wrong > MOST / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(touching_is_no_overlap_and_one_byte_more_is),
        cmocka_unit_test(a_life_ends_where_the_next_may_begin),
        cmocka_unit_test(neighbours_of_neighbours_are_seen_too),
        cmocka_unit_test(a_large_buffer_over_many_small_ones_is_seen),
        cmocka_unit_test(the_height_is_a_limit_for_each),
        cmocka_unit_test(sums_that_wrap_deceive_nobody),
        cmocka_unit_test(an_offset_must_be_aligned),
        cmocka_unit_test(lives_that_are_none_are_no_plan),
        cmocka_unit_test(buffers_without_bytes_overlap_nobody),
        cmocka_unit_test(it_agrees_with_a_look_at_every_pair),
        cmocka_unit_test(each_byte_that_a_tight_plan_moves_by_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
