// SPDX-License-Identifier: Apache-2.0
/*
 * packing.c - plans of all kinds of buffers against a look at every pair; what is refused; that
 * effort is spent as it was asked for; that the same comes out again.
 */
#include "kit/test.h"

#include "base/size.h"
#include "kit/instances.h"

#include <stdlib.h>

enum { MOST = 600, MANY = 2500, UNTOUCHED = 0x5a };

static const struct packing_effort once = {.keys = 1}, thorough = {.keys = PACKING_ORDERS};

struct plan {
    uint64_t offsets[MANY];
    struct packing_result result;
};

static int solve(struct plan *plan, const struct packing_buffer *buffers, uint32_t count,
                 struct packing_effort effort) {
    void *workspace = instance_workspace(count);
    memset(plan, UNTOUCHED, sizeof *plan);
    int error = packing_solve(buffers, count, &effort, workspace, plan->offsets, &plan->result);
    free(workspace);
    return error;
}

static bool both_call_it_valid(const struct plan *plan, const struct packing_buffer *buffers,
                               uint32_t count) {
    void *workspace = instance_workspace(count);
    bool valid = packing_is_valid(buffers, plan->offsets, count, plan->result.height, workspace);
    free(workspace);
    return valid && instance_holds(buffers, plan->offsets, count, plan->result.height);
}

/* Solves and demands a plan whose height is that of its highest buffer. */
static struct packing_result planned(const struct packing_buffer *buffers, uint32_t count,
                                     struct packing_effort effort) {
    static struct plan plan;
    assert_int_equal(solve(&plan, buffers, count, effort), 0);
    assert_true(both_call_it_valid(&plan, buffers, count));
    assert_true(plan.result.max_live == instance_max_live(buffers, count));
    uint64_t highest = 0;
    for (uint32_t i = 0; i < count; i++)
        if (plan.offsets[i] + buffers[i].bytes > highest)
            highest = plan.offsets[i] + buffers[i].bytes;
    assert_true(plan.result.height == highest);
    assert_true(highest >= plan.result.max_live);
    return plan.result;
}

static void refused(const struct packing_buffer *buffers, uint32_t count,
                    struct packing_effort effort, int code) {
    static struct plan plan, untouched;
    memset(&untouched, UNTOUCHED, sizeof untouched);
    assert_refused(solve(&plan, buffers, count, effort), code);
    assert_memory_equal(&plan, &untouched, sizeof plan);
}

/* ---- plans */

static void no_buffers_need_no_room(void **state) {
    struct packing_result result = planned(NULL, 0, once);
    assert_true(result.height == 0 && result.max_live == 0 && result.tries == 0);
}

static void one_buffer_lies_at_the_bottom(void **state) {
    struct packing_buffer buffer = {.lower = 7, .upper = 8, .align = 4096, .bytes = 100};
    struct packing_result result = planned(&buffer, 1, once);
    assert_true(result.height == 100 && result.max_live == 100 && result.tries == 1);
    buffer.bytes = 0;
    assert_true(planned(&buffer, 1, thorough).height == 0);
    buffer = (struct packing_buffer){.upper = UINT32_MAX, .align = 1u << 31, .bytes = 1};
    assert_true(planned(&buffer, 1, thorough).height == 1);
}

static void buffers_of_random_lives_never_overlap(void **state) {
    static struct packing_buffer buffers[MOST];
    static const struct instance_shape shapes[] = {
        {1, 1, 100, 0},        {2, 2, 3, 0},         {4, 9, 1, 2},     {50, 3, 1 << 20, 0},
        {400, 400, 64, 12},    {400, 20, 4096, 6},   {30, 300, 0, 3},  {1000, 1, 9, 0},
        {1 << 30, 1 << 30, (uint64_t)1 << 40, 12}, {100, 100, 5, 0},
    };
    uint64_t seed = 4;
    for (unsigned i = 0; i < 400; i++) {
        uint32_t count = (uint32_t)(instance_draw(&seed) % (i % 10 == 0 ? MOST : 40));
        instance_fill(buffers, count, shapes[i % (sizeof shapes / sizeof *shapes)], &seed);
        struct packing_result one = planned(buffers, count, once);
        struct packing_result all = planned(buffers, count, thorough);
        assert_true(all.height <= one.height && all.max_live == one.max_live);
        assert_in_range(all.tries, one.tries, PACKING_ORDERS);
    }
}

static void buffers_alive_all_at_once_lie_without_gaps(void **state) {
    static struct packing_buffer buffers[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        buffers[i] = (struct packing_buffer){.lower = i, .upper = MOST + i, .align = 1,
                                             .bytes = i * 37 % 101};
    struct packing_result result = planned(buffers, MOST, once);
    assert_true(result.height == result.max_live && result.tries == 1);
}

static void a_chain_takes_the_room_of_its_largest_link(void **state) {
    static struct packing_buffer buffers[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        buffers[i] = (struct packing_buffer){.lower = MOST - i, .upper = MOST - i + 1, .align = 64,
                                             .bytes = 1 + i % 77};
    assert_true(planned(buffers, MOST, once).height == 77);
    for (uint32_t i = 0; i < MOST; i++)
        buffers[i].upper++; /* each touches the next */
    assert_true(planned(buffers, MOST, once).height <= 77 + 128);
}

static void stacks_and_queues_are_as_low_as_can_be(void **state) {
    static struct packing_buffer buffers[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        buffers[i] = (struct packing_buffer){.lower = i, .upper = 2 * MOST - i, .align = 16,
                                             .bytes = 16};
    assert_true(planned(buffers, MOST, once).height == 16 * MOST);
    for (uint32_t i = 0; i < MOST; i++)
        buffers[i].upper = i + 10;
    assert_true(planned(buffers, MOST, once).height == 16 * 10);
}

static void equal_buffers_are_told_apart(void **state) {
    static struct packing_buffer buffers[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        buffers[i] = (struct packing_buffer){.lower = 3, .upper = 5, .align = 8, .bytes = 8};
    assert_true(planned(buffers, MOST, thorough).height == 8 * MOST);
}

static void alignment_costs_less_than_itself_a_buffer(void **state) {
    for (uint32_t align = 1; align <= 4096; align *= 2) {
        struct packing_buffer buffers[3] = {{0, 2, align, 1}, {0, 2, align, 1}, {1, 3, align, 1}};
        assert_true(planned(buffers, 3, once).height == 2 * align + 1);
    }
}

static void buffers_without_bytes_disturb_nobody(void **state) {
    static struct packing_buffer buffers[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        buffers[i] = (struct packing_buffer){.upper = 9, .align = 4096, .bytes = i % 7 ? 0 : 4096};
    assert_true(planned(buffers, MOST, once).height == (MOST + 6) / 7 * 4096);
}

static void the_order_of_the_list_does_not_matter_for_the_proof(void **state) {
    static struct packing_buffer buffers[MOST], turned[MOST];
    uint64_t seed = 99;
    instance_fill(buffers, MOST, (struct instance_shape){300, 40, 1000, 4}, &seed);
    for (uint32_t i = 0; i < MOST; i++)
        turned[i] = buffers[MOST - 1 - i];
    assert_true(planned(buffers, MOST, once).max_live == planned(turned, MOST, once).max_live);
}

static void the_same_buffers_get_the_same_plan(void **state) {
    static struct packing_buffer buffers[MOST];
    static struct plan plan, again;
    uint64_t seed = 5;
    for (unsigned round = 0; round < 20; round++) {
        instance_fill(buffers, MOST, (struct instance_shape){100 + round, 60, 90, 3}, &seed);
        assert_int_equal(solve(&plan, buffers, MOST, thorough), 0);
        assert_int_equal(solve(&again, buffers, MOST, thorough), 0);
        assert_memory_equal(plan.offsets, again.offsets, sizeof plan.offsets);
        assert_true(plan.result.height == again.result.height);
    }
}

/* Seven bytes are alive at once four times. Whom size and lifetime put first leaves a hole, and the
 * order that has the crowd alone is the third. */
static void who_lives_when_most_is_alive_goes_first(void **state) {
    static const struct packing_buffer buffers[] = {
        {0, 3, 1, 2}, {0, 4, 1, 3}, {1, 5, 1, 2}, {3, 8, 1, 2}, {6, 7, 1, 5}};
    assert_true(planned(buffers, 5, once).height == 9);
    struct packing_result result = planned(buffers, 5, thorough);
    assert_true(result.height == 7 && result.max_live == 7 && result.tries == 3);
}

static void an_order_that_is_no_better_changes_nothing(void **state) {
    static struct packing_buffer buffers[MOST];
    static struct plan one, all;
    uint64_t seed = 15;
    unsigned kept = 0; /* alignment often puts max-live out of reach: then all orders are tried */
    for (unsigned round = 0; round < 200; round++) {
        instance_fill(buffers, 9, (struct instance_shape){8, 3, 100, 6}, &seed);
        assert_int_equal(solve(&one, buffers, 9, once), 0);
        assert_int_equal(solve(&all, buffers, 9, thorough), 0);
        if (one.result.height != all.result.height || all.result.tries == 1)
            continue;
        assert_memory_equal(one.offsets, all.offsets, sizeof one.offsets);
        kept++;
    }
    assert_in_range(kept, 5, 200);
}

/* ---- effort */

static uint64_t ticks;

static uint64_t tick(void) {
    return ticks++;
}

static uint64_t tick_near_the_end_of_time(void) {
    return UINT64_MAX - 100 + ticks++ % 200;
}

/* Three buffers a section, in a ring: hard to pack. */
static void fill_hard(struct packing_buffer *buffers, uint32_t count) {
    uint64_t seed = 11;
    instance_fill(buffers, count, (struct instance_shape){60, 25, 1000, 0}, &seed);
}

static void a_search_ends_when_the_clock_says_so(void **state) {
    static struct packing_buffer buffers[MOST];
    fill_hard(buffers, MOST);
    struct packing_result before = planned(buffers, MOST, once);
    assert_true(before.height > before.max_live && before.tries == 1);
    ticks = 0;
    struct packing_effort effort = {.keys = 1, .search_ns = 50, .clock_ns = tick};
    struct packing_result after = planned(buffers, MOST, effort);
    assert_int_equal(after.tries, 1 + 49); /* one look sets the end, at the 51st it is reached */
    assert_true(after.height < before.height);
    ticks = 0;
    effort.search_ns = 200;
    effort.clock_ns = tick_near_the_end_of_time;
    assert_true(planned(buffers, MOST, effort).tries >= 99);
}

static uint64_t looks_left; /* until the end of time */

static uint64_t tick_to_the_end(void) {
    if (!looks_left)
        return UINT64_MAX;
    looks_left--;
    return 1;
}

static void orders_are_tried_while_there_is_time(void **state) {
    static struct packing_buffer buffers[MANY];
    fill_hard(buffers, MANY);
    struct packing_effort effort = {.keys = PACKING_ORDERS, .search_ns = 1, .orders_too = true,
                                    .clock_ns = tick};
    assert_int_equal(planned(buffers, MANY, effort).tries, 1);
    effort.search_ns = 50;
    assert_true(planned(buffers, MANY, effort).tries > PACKING_ORDERS);
    effort.search_ns = 4; /* a try of as many looks at the clock twice: in the midst of one */
    struct packing_result result = planned(buffers, MANY, effort);
    assert_int_equal(result.tries, 2);
    assert_true(result.height == planned(buffers, MANY, once).height);
    effort.orders_too = false;
    assert_true(planned(buffers, MANY, effort).tries > planned(buffers, MANY, thorough).tries);
}

/* Random lives, hundreds of them at once: none of the orders is enough, and all look at much. */
static void orders_are_begun_while_their_work_is_within_its_bound(void **state) {
    static struct packing_buffer buffers[MANY];
    uint64_t seed = 12, most = packing_work_most(MANY);
    instance_fill(buffers, MANY, (struct instance_shape){2 * MANY, MANY / 2, 65536, 6}, &seed);
    struct packing_result first = planned(buffers, MANY, once);
    struct packing_result result = planned(buffers, MANY, thorough);
    assert_in_range(result.tries, 2, PACKING_ORDERS - 1);
    assert_true(result.work > first.work && result.work <= most);
    struct packing_effort effort = {.keys = PACKING_ORDERS, .search_ns = 50, .orders_too = true,
                                    .clock_ns = tick}; /* whose bound is that time */
    struct packing_result more = planned(buffers, MANY, effort);
    assert_true(more.tries > PACKING_ORDERS && more.work > most);
}

/* So many of random lives, up to that long. */
static struct packing_result planned_at_random(uint32_t count, uint32_t life,
                                               struct packing_effort effort) {
    struct packing_buffer *buffers = malloc(count * sizeof *buffers);
    uint64_t *offsets = malloc(count * sizeof *offsets), seed = 13;
    void *workspace = instance_workspace(count);
    assert_true(buffers && offsets);
    instance_fill(buffers, count, (struct instance_shape){count, life, 65536, 6}, &seed);
    struct packing_result result;
    assert_int_equal(packing_solve(buffers, count, &effort, workspace, offsets, &result), 0);
    assert_true(packing_is_valid(buffers, offsets, count, result.height, workspace));
    free(workspace);
    free(offsets);
    free(buffers);
    return result;
}

static uint64_t most_work_of_one(uint32_t count) {
    return (uint64_t)64 * count + 65536;
}

/* The same bound is left to them, whether others failed or not, but for one order each. */
static void plans_of_which_one_is_wanted_have_one_bound_together(void **state) {
    static struct packing_buffer buffers[MANY];
    uint64_t seed = 12, most = packing_work_most(MANY), worked = 0;
    instance_fill(buffers, MANY, (struct instance_shape){2 * MANY, MANY / 2, 65536, 6}, &seed);
    struct packing_result alone = planned(buffers, MANY, thorough);
    struct packing_effort effort = {.keys = PACKING_ORDERS, .worked = &worked};
    struct packing_result first = planned(buffers, MANY, effort);
    assert_true(first.height == alone.height && first.tries == alone.tries && worked == first.work);
    struct packing_result second = planned(buffers, MANY, effort);
    assert_true(second.tries == 1 && worked == first.work + second.work);
    worked = 0;
    effort.height_most = first.max_live; /* no order comes so low */
    refused(buffers, MANY, effort, EBB_E_SIZE);
    assert_in_range(worked, 1, most / 4 * 3);
    worked = UINT64_MAX / 2;
    effort.height_most = 0;
    assert_int_equal(planned(buffers, MANY, effort).tries, 1);
}

static void no_order_is_tried_where_none_can_be_low_enough(void **state) {
    static struct packing_buffer buffers[MOST];
    fill_hard(buffers, MOST);
    uint64_t worked = 0;
    struct packing_result any = planned(buffers, MOST, thorough);
    struct packing_effort effort = {.keys = PACKING_ORDERS, .worked = &worked,
                                    .height_most = any.max_live - 1};
    refused(buffers, MOST, effort, EBB_E_SIZE);
    assert_text_names("are the most that is wanted");
    assert_true(worked == 0);
    effort.height_most = any.height - 1;
    refused(buffers, MOST, effort, EBB_E_SIZE);
    assert_true(worked > 0);
    worked = 0;
    effort.height_most = any.height;
    assert_true(planned(buffers, MOST, effort).height <= any.height);
}

/* It begins with what is too high. */
static void a_search_may_come_below_the_height_that_is_wanted(void **state) {
    static struct packing_buffer buffers[MOST];
    fill_hard(buffers, MOST);
    struct packing_result before = planned(buffers, MOST, once);
    ticks = 0;
    struct packing_effort effort = {.keys = 1, .search_ns = 50, .clock_ns = tick,
                                    .height_most = before.height - 1};
    assert_true(planned(buffers, MOST, effort).height < before.height);
}

static void the_bound_of_work_leaves_one_order_to_a_large_step(void **state) {
    enum { LARGE = 250000 };
    assert_true(packing_work_most(2 * LARGE) == packing_work_most(LARGE));
    struct packing_result result = planned_at_random(LARGE, LARGE / 6, thorough);
    assert_int_equal(result.tries, 1);
    assert_true(result.height > result.max_live / 200 * 201); /* which is not enough */
    assert_true(result.work <= most_work_of_one(LARGE));
}

/* Few are alive at once, so an order looks at little, as it does in real steps. */
static void a_step_of_many_buffers_is_laid_by_all_orders_where_they_look_at_little(void **state) {
    enum { LARGE = 92000 };
    struct packing_result result = planned_at_random(LARGE, 12, thorough);
    assert_int_equal(result.tries, PACKING_ORDERS);
    assert_true(result.work <= packing_work_most(LARGE));
}

static void an_order_that_time_bounds_looks_at_more(void **state) {
    enum { LARGE = 20000 };
    struct packing_effort effort = {.keys = 1, .search_ns = 1, .orders_too = true,
                                    .clock_ns = tick};
    struct packing_result bounded = planned_at_random(LARGE, LARGE / 6, once);
    struct packing_result timed = planned_at_random(LARGE, LARGE / 6, effort);
    assert_true(bounded.tries == 1 && bounded.work <= most_work_of_one(LARGE));
    assert_true(timed.tries == 1 && timed.work > most_work_of_one(LARGE));
    assert_true(timed.height < bounded.height);
}

static void nothing_is_planned_that_nobody_wants_any_more(void **state) {
    static struct packing_buffer buffers[MANY];
    fill_hard(buffers, MANY);
    const struct packing_effort effort = {.keys = 1, .search_ns = 10,
                                          .clock_ns = tick_to_the_end};
    looks_left = 1; /* in the midst of the first try */
    refused(buffers, MANY, effort, EBB_E_ARGUMENT);
    assert_text_names("no time is left for 2500 buffers");
}

static void a_search_is_repeatable_up_to_the_clock(void **state) {
    static struct packing_buffer buffers[MOST];
    static struct plan plan, again;
    struct packing_effort effort = {.keys = 3, .search_ns = 30, .clock_ns = tick};
    fill_hard(buffers, MOST);
    assert_int_equal(solve(&plan, buffers, MOST, effort), 0);
    assert_int_equal(solve(&again, buffers, MOST, effort), 0);
    assert_memory_equal(&plan, &again, sizeof plan);
}

static void enough_is_enough(void **state) {
    static struct packing_buffer buffers[MOST];
    fill_hard(buffers, MOST);
    struct packing_result first = planned(buffers, MOST, once);
    struct packing_effort effort = {.keys = PACKING_ORDERS, .target = first.height};
    assert_int_equal(planned(buffers, MOST, effort).tries, 1);
    effort.target = first.height - 1;
    assert_true(planned(buffers, MOST, effort).tries > 1);
    effort = (struct packing_effort){.keys = PACKING_ORDERS, .slack_ppm = 1000000};
    assert_int_equal(planned(buffers, MOST, effort).tries, 1);
    uint64_t over = first.height - first.max_live;
    effort.slack_ppm = (uint32_t)(over * 1000000 / first.max_live);
    assert_true(planned(buffers, MOST, effort).tries > 1);
    effort.slack_ppm++;
    assert_int_equal(planned(buffers, MOST, effort).tries, 1);
}

/* ---- refusals */

static void lives_that_end_before_they_begin_are_refused(void **state) {
    struct packing_buffer buffers[] = {{0, 1, 1, 1}, {5, 5, 1, 1}};
    refused(buffers, 2, once, EBB_E_ARGUMENT);
    assert_text_names("buffer 1 lives from 5 to 5");
    buffers[1].lower = 6;
    buffers[1].bytes = 0;
    refused(buffers, 2, once, EBB_E_ARGUMENT);
    assert_text_names("from 6 to 5");
    buffers[1].lower = 4;
    planned(buffers, 2, once);
}

static void alignments_that_are_no_power_of_two_are_refused(void **state) {
    static const uint32_t wrong[] = {0, 3, 48, 4095, 4097, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct packing_buffer buffer = {.upper = 1, .align = wrong[i], .bytes = 1};
        refused(&buffer, 1, once, EBB_E_ALIGNMENT);
    }
    assert_text_names("buffer 0 is aligned to 4294967295");
}

static void effort_that_makes_no_sense_is_refused(void **state) {
    struct packing_buffer buffer = {.upper = 1, .align = 1, .bytes = 1};
    refused(&buffer, 1, (struct packing_effort){.keys = 0}, EBB_E_ARGUMENT);
    refused(&buffer, 1, (struct packing_effort){.keys = PACKING_ORDERS + 1}, EBB_E_ARGUMENT);
    assert_text_names("8 orders to try, 1 to 7");
    refused(&buffer, 1, (struct packing_effort){.keys = 1, .search_ns = 17}, EBB_E_ARGUMENT);
    assert_text_names("17 ns");
    refused(&buffer, 1, (struct packing_effort){.keys = 1, .slack_ppm = 1000001}, EBB_E_ARGUMENT);
    assert_text_names("1000001 millionths");
}

static void heights_beyond_the_address_space_are_refused(void **state) {
    struct packing_buffer buffers[] = {{0, 2, 1, EBB_SIZE_MAX - 10}, {1, 3, 1, 10}};
    assert_true(planned(buffers, 2, thorough).height == EBB_SIZE_MAX);
    buffers[1].bytes = 11;
    refused(buffers, 2, thorough, EBB_E_SIZE);
    assert_text_names("9223372036854775807 bytes are alive at once");
    buffers[1].lower = 2; /* not alive together: then the sum does not matter */
    assert_true(planned(buffers, 2, once).height == EBB_SIZE_MAX - 10);
    buffers[0].bytes = EBB_SIZE_MAX + 1;
    refused(buffers, 2, once, EBB_E_SIZE);
    assert_text_names("buffer 0 has 9223372036854775808 bytes");
    buffers[0].bytes = UINT64_MAX;
    refused(buffers, 2, once, EBB_E_SIZE);
}

static void padding_beyond_the_address_space_is_refused(void **state) {
    /* Either way round, the second one starts at a multiple of 2^31. */
    struct packing_buffer buffers[] = {{0, 2, 1u << 31, EBB_SIZE_MAX - 10}, {0, 2, 1u << 31, 5}};
    refused(buffers, 2, thorough, EBB_E_SIZE);
    assert_text_names("9223372036854775802 bytes alive at once do not fit");
    assert_text_names("7 tries");
}

static void many_huge_buffers_in_turn_do_not_add_up(void **state) {
    static struct packing_buffer buffers[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        buffers[i] = (struct packing_buffer){i, i + 1, 1, EBB_SIZE_MAX - i};
    assert_true(planned(buffers, MOST, once).height == EBB_SIZE_MAX);
    for (uint32_t i = 0; i < MOST; i++) /* none of the sums fits */
        buffers[i] = (struct packing_buffer){i, i + 1, 1, 1ull << 62};
    assert_true(planned(buffers, MOST, once).height == 1ull << 62);
}

static void a_workspace_has_a_size_unless_there_are_too_many(void **state) {
    size_t bytes = 0, more = 0;
    assert_true(packing_workspace_bytes(0, &bytes));
    assert_true(packing_workspace_bytes(PACKING_COUNT_MAX, &more) && more > bytes);
    assert_false(packing_workspace_bytes((size_t)PACKING_COUNT_MAX + 1, &bytes));
    assert_false(packing_workspace_bytes(SIZE_MAX, &bytes));
    struct packing_buffer buffer = {.upper = 1, .align = 1, .bytes = 1};
    struct packing_result result = {.tries = 3};
    assert_refused(packing_solve(&buffer, PACKING_COUNT_MAX + 1, &once, NULL, NULL, &result),
                   EBB_E_ARGUMENT);
    assert_text_names("1073741825 buffers");
    assert_int_equal(result.tries, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_buffers_need_no_room),
        cmocka_unit_test(one_buffer_lies_at_the_bottom),
        cmocka_unit_test(buffers_of_random_lives_never_overlap),
        cmocka_unit_test(buffers_alive_all_at_once_lie_without_gaps),
        cmocka_unit_test(a_chain_takes_the_room_of_its_largest_link),
        cmocka_unit_test(stacks_and_queues_are_as_low_as_can_be),
        cmocka_unit_test(equal_buffers_are_told_apart),
        cmocka_unit_test(alignment_costs_less_than_itself_a_buffer),
        cmocka_unit_test(buffers_without_bytes_disturb_nobody),
        cmocka_unit_test(the_order_of_the_list_does_not_matter_for_the_proof),
        cmocka_unit_test(the_same_buffers_get_the_same_plan),
        cmocka_unit_test(who_lives_when_most_is_alive_goes_first),
        cmocka_unit_test(an_order_that_is_no_better_changes_nothing),
        cmocka_unit_test(a_search_ends_when_the_clock_says_so),
        cmocka_unit_test(orders_are_tried_while_there_is_time),
        cmocka_unit_test(orders_are_begun_while_their_work_is_within_its_bound),
        cmocka_unit_test(plans_of_which_one_is_wanted_have_one_bound_together),
        cmocka_unit_test(no_order_is_tried_where_none_can_be_low_enough),
        cmocka_unit_test(a_search_may_come_below_the_height_that_is_wanted),
        cmocka_unit_test(the_bound_of_work_leaves_one_order_to_a_large_step),
        cmocka_unit_test(a_step_of_many_buffers_is_laid_by_all_orders_where_they_look_at_little),
        cmocka_unit_test(an_order_that_time_bounds_looks_at_more),
        cmocka_unit_test(nothing_is_planned_that_nobody_wants_any_more),
        cmocka_unit_test(a_search_is_repeatable_up_to_the_clock),
        cmocka_unit_test(enough_is_enough),
        cmocka_unit_test(lives_that_end_before_they_begin_are_refused),
        cmocka_unit_test(alignments_that_are_no_power_of_two_are_refused),
        cmocka_unit_test(effort_that_makes_no_sense_is_refused),
        cmocka_unit_test(heights_beyond_the_address_space_are_refused),
        cmocka_unit_test(padding_beyond_the_address_space_is_refused),
        cmocka_unit_test(many_huge_buffers_in_turn_do_not_add_up),
        cmocka_unit_test(a_workspace_has_a_size_unless_there_are_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
