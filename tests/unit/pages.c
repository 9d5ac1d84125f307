// SPDX-License-Identifier: Apache-2.0
/*
 * pages.c - the page heap: runs are taken, grown, cut, given and cooled; pages_check() tiles the
 * slabs after each of it, and the sums of run and hot bytes are exact.
 */
#include "kit/test.h"

#include "base/os.h"
#include "pool/pages.h"
#include "pool/range.h"

static struct pages pages;
static struct os_table real;

static int begin(void **state) {
    (void)state;
    memset(&pages, 0, sizeof pages);
    pages_init(&pages, &kind_host);
    return range_prepare();
}

static int end(void **state) {
    (void)state;
    pages_check(&pages);
    pages_fini(&pages);
    return 0;
}

static struct pages_wish exactly(size_t bytes) {
    return (struct pages_wish){.least = bytes, .extend = bytes, .want = bytes,
                               .want_cold = bytes, .most_cold = SIZE_MAX};
}

static struct ebb_piece *take(size_t bytes) {
    struct pages_wish wish = exactly(bytes);
    struct ebb_piece *run = pages_take(&pages, &wish);
    assert_non_null(run);
    assert_int_equal(run->bytes, bytes);
    assert_int_equal(run->addr % PAGE, 0);
    memset((void *)run->addr, 1, bytes);
    pages_check(&pages);
    return run;
}

static void give(struct ebb_piece *run) {
    pages_give(&pages, run);
    pages_check(&pages);
}

static void expect(size_t runs, size_t hot) {
    assert_int_equal(pages.run_bytes, runs);
    assert_int_equal(pages.hot_bytes, hot);
}

static void runs_are_apart_and_counted_exactly(void **state) {
    struct ebb_piece *a = take(PAGE), *b = take(3 * PAGE), *c = take(64 * PAGE);
    expect(68 * PAGE, 0);
    assert_true(piece_end(a) <= b->addr || piece_end(b) <= a->addr);
    assert_true(piece_end(b) <= c->addr || piece_end(c) <= b->addr);
    give(b);
    expect(65 * PAGE, 3 * PAGE);
    give(a);
    give(c);
    expect(0, 68 * PAGE);
}

static void hot_pages_are_taken_before_cold_ones(void **state) {
    struct ebb_piece *a = take(8 * PAGE);
    uintptr_t addr = a->addr;
    give(a);
    a = take(8 * PAGE);
    assert_true(a->addr == addr);
    expect(8 * PAGE, 0);
    give(a);
}

static void neighbours_that_come_back_merge(void **state) {
    struct ebb_piece *parts[5];
    struct ebb_piece *whole = take(5 * PAGE);
    uintptr_t addr = whole->addr;
    give(whole);
    for (int i = 0; i < 5; i++) {
        struct pages_wish wish = exactly(PAGE);
        parts[i] = pages_take_hot(&pages, &wish);
        assert_non_null(parts[i]);
    }
    static const int order[] = {1, 3, 0, 4, 2};
    for (int i = 0; i < 5; i++)
        give(parts[order[i]]);
    whole = take(5 * PAGE);
    assert_true(whole->addr == addr);
    give(whole);
}

static void a_run_grows_into_what_lies_behind_it(void **state) {
    struct ebb_piece *run = take(2 * PAGE);
    struct pages_wish wish = exactly(3 * PAGE);
    assert_int_equal(pages_extend(&pages, run, &wish), 3 * PAGE);
    assert_int_equal(run->bytes, 5 * PAGE);
    assert_ptr_equal(range_run_at(piece_end(run) - 1), run);
    pages_check(&pages);
    expect(5 * PAGE, 0);
    give(run);
}

static void a_run_with_a_neighbour_behind_it_does_not_grow(void **state) {
    struct ebb_piece *whole = take(6 * PAGE), *right;
    assert_true(pages_prepare_cut(&pages));
    struct ebb_piece *left = pages_cut_out(&pages, whole, whole->addr, whole->addr + 2 * PAGE,
                                           &right);
    struct pages_wish wish = exactly(PAGE);
    assert_int_equal(pages_extend(&pages, left, &wish), 0);
    assert_int_equal(left->bytes, 2 * PAGE);
    expect(6 * PAGE, 0);
    pages_give(&pages, left);
    give(right);
}

static void growing_takes_no_cold_page_above_what_is_allowed(void **state) {
    struct ebb_piece *run = take(2 * PAGE);
    struct pages_wish wish = exactly(3 * PAGE);
    wish.most_cold = 3 * PAGE - 1;
    assert_int_equal(pages_extend(&pages, run, &wish), 0);
    wish.most_cold = 3 * PAGE;
    wish.want_cold = 10 * PAGE;
    assert_int_equal(pages_extend(&pages, run, &wish), 3 * PAGE);
    give(run);
}

static void cutting_out_the_middle_leaves_three_runs(void **state) {
    struct ebb_piece *run = take(9 * PAGE), *right;
    uintptr_t addr = run->addr;
    assert_true(pages_prepare_cut(&pages));
    struct ebb_piece *middle = pages_cut_out(&pages, run, addr + 3 * PAGE, addr + 5 * PAGE,
                                             &right);
    assert_true(run->addr == addr && run->bytes == 3 * PAGE);
    assert_true(middle->addr == addr + 3 * PAGE && middle->bytes == 2 * PAGE);
    assert_true(right && right->addr == addr + 5 * PAGE && right->bytes == 4 * PAGE);
    assert_ptr_equal(range_run_at(middle->addr), middle);
    assert_ptr_equal(range_run_at(piece_end(middle) - 1), middle);
    expect(9 * PAGE, 0);
    pages_give(&pages, run);
    pages_give(&pages, right);
    expect(2 * PAGE, 7 * PAGE);
    give(middle);
}

static void cutting_out_everything_is_the_run_itself(void **state) {
    struct ebb_piece *run = take(4 * PAGE), *right = run;
    assert_true(pages_prepare_cut(&pages));
    assert_ptr_equal(pages_cut_out(&pages, run, run->addr, piece_end(run), &right), run);
    assert_null(right);
    give(run);
}

static void cooling_stops_at_the_target(void **state) {
    for (size_t target = 0; target <= 40; target += 8) {
        give(take(32 * PAGE));
        size_t kept = target < 32 ? target * PAGE : 32 * PAGE;
        size_t given = pages_cool(&pages, target * PAGE, SIZE_MAX, 0);
        assert_int_equal(given, 32 * PAGE - kept);
        expect(0, kept);
        pages_check(&pages);
        pages_cool(&pages, 0, SIZE_MAX, 0);
        expect(0, 0);
    }
}

static void cooling_leaves_more_than_a_target_between_pages_cold(void **state) {
    give(take(4 * PAGE));
    pages_cool(&pages, 2 * PAGE + 1, SIZE_MAX, 0);
    expect(0, 2 * PAGE);
    pages_cool(&pages, 2 * PAGE - 1, SIZE_MAX, 0);
    expect(0, PAGE);
}

static void cooling_takes_no_more_than_asked(void **state) {
    give(take(32 * PAGE));
    pages_cool(&pages, 0, 5 * PAGE + 17, 0);
    expect(0, 27 * PAGE);
    pages_cool(&pages, 0, PAGE - 1, 0);
    expect(0, 27 * PAGE);
}

static void the_highest_pages_cool_first(void **state) {
    struct ebb_piece *run = take(4 * PAGE);
    uintptr_t addr = run->addr;
    give(run);
    pages_cool(&pages, 3 * PAGE, SIZE_MAX, 0);
    struct pages_wish wish = exactly(3 * PAGE);
    run = pages_take_hot(&pages, &wish);
    assert_true(run && run->addr == addr);
    give(run);
}

static void a_run_larger_than_a_slab_gets_a_slab_of_its_own(void **state) {
    struct pages_wish wish = exactly(((size_t)1 << 30) + 4 * MIB);
    struct ebb_piece *run = pages_take(&pages, &wish);
    assert_non_null(run);
    assert_int_equal(run->bytes, wish.least);
    pages_check(&pages);
    give(run);
    assert_int_equal(pages_cool(&pages, 0, SIZE_MAX, 0), 0); /* never touched */
    expect(0, 0);
}

static void more_than_the_range_holds_is_refused(void **state) {
    struct pages_wish wish = exactly(range.bytes + PAGE);
    assert_null(pages_take(&pages, &wish));
    assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
    expect(0, 0);
}

/* ---- which pages ---- */

/* Runs of these lengths, one behind the other. */
static void take_row(struct ebb_piece **runs, const size_t *counts, size_t length) {
    size_t total = 0;
    for (size_t i = 0; i < length; i++)
        total += counts[i];
    struct ebb_piece *rest = take(total * PAGE);
    for (size_t i = 0; i < length; i++) {
        assert_true(pages_prepare_cut(&pages));
        runs[i] = pages_cut_out(&pages, rest, rest->addr, rest->addr + counts[i] * PAGE, &rest);
    }
    assert_null(rest);
}

static void keepers_take_the_smallest_hot_piece_and_steps_no_splinter(void **state) {
    static const size_t counts[] = {3, 1, 8, 1, 64, 1, 5, 1, 63};
    struct ebb_piece *runs[9];
    take_row(runs, counts, 9);
    for (size_t i = 0; i < 9; i += 2)
        give(runs[i]);
    expect(4 * PAGE, 143 * PAGE);
    struct pages_wish wish = exactly(4 * PAGE);
    wish.keeper = true;
    struct ebb_piece *of_keeper = pages_take(&pages, &wish);
    assert_true(of_keeper->addr == piece_end(runs[5])); /* of 5 pages */
    wish = exactly(PAGE);
    struct ebb_piece *of_step = pages_take(&pages, &wish);
    assert_true(of_step->addr == piece_end(runs[1])); /* of 8; 3 are less than an eighth of 64 */
    wish.keeper = true;
    struct ebb_piece *last = pages_take(&pages, &wish);
    assert_true(last->addr == piece_end(of_keeper)); /* what was left there */
    pages_check(&pages);
    for (size_t i = 1; i < 9; i += 2)
        give(runs[i]);
    give(of_keeper);
    give(of_step);
    give(last);
}

static void hot_pages_with_cold_ones_behind_them_stay_within_the_limit(void **state) {
    give(take(4 * PAGE));
    struct pages_wish wish = exactly(8 * PAGE);
    wish.most_cold = 4 * PAGE - 1;
    assert_null(pages_take(&pages, &wish));
    assert_int_equal(ebb_last_error(), EBB_E_POOL_LIMIT);
    expect(0, 4 * PAGE);
    wish.most_cold = 4 * PAGE;
    struct ebb_piece *run = pages_take(&pages, &wish);
    assert_int_equal(run->bytes, 8 * PAGE);
    expect(8 * PAGE, 0);
    give(run);
}

/* It has what it needs, and is out of the way of those that grow. */
static void a_run_that_will_not_grow_goes_to_the_end_of_the_smallest_gap(void **state) {
    static const size_t counts[] = {4, 32, 4, 16, 4};
    struct ebb_piece *runs[5];
    take_row(runs, counts, 5);
    uintptr_t end = piece_end(runs[3]);
    give(runs[1]);
    give(runs[3]);
    assert_int_equal(pages_cool(&pages, 0, SIZE_MAX, 0), 48 * PAGE);
    struct pages_wish wish = exactly(10 * PAGE);
    wish.exact = true;
    struct ebb_piece *exact = pages_take(&pages, &wish);
    assert_true(piece_end(exact) == end);
    assert_int_equal(exact->bytes, 10 * PAGE);
    pages_check(&pages);
    for (size_t i = 0; i < 5; i += 2)
        give(runs[i]);
    give(exact);
}

/* ---- beside other heaps ---- */

static struct pages other;
static struct ebb_piece *of_other; /* what it took while a heap of these tests gave a slab back */

/* The system calls that tables cost are where another thread comes between. */
static int give_back(void *addr, size_t bytes) {
    if (!range_reserves((uintptr_t)addr) && !of_other) {
        struct pages_wish wish = exactly(16 * MIB);
        of_other = pages_take(&other, &wish);
        range_name_block(of_other);
    }
    return real.give_back(addr, bytes);
}

static int lock_none(void *addr, size_t bytes) {
    (void)addr, (void)bytes;
    return 0;
}

static void begin_other(void) {
    memset(&other, 0, sizeof other);
    pages_init(&other, &kind_host);
    of_other = NULL;
    real = os;
    os.give_back = give_back;
    os.lock = lock_none; /* however few may be locked here */
}

static void end_other(void) {
    os = real;
    assert_non_null(of_other);
    assert_ptr_equal(range_block_at(of_other->addr), of_other);
    assert_ptr_equal(range_run_at(of_other->addr), of_other);
    assert_ptr_equal(range_run_at(piece_end(of_other) - 1), of_other);
    pages_give(&other, of_other);
    pages_fini(&other);
}

static void who_takes_addresses_of_a_heap_that_ends_is_not_forgotten(void **state) {
    begin_other();
    give(take(16 * MIB));
    pages_fini(&pages);
    end_other();
}

static void who_takes_addresses_of_a_slab_that_goes_is_not_forgotten(void **state) {
    pages_init(&pages, &kind_pinned);
    begin_other();
    give(take(8 * PAGE));
    (void)pages_cool(&pages, 0, SIZE_MAX, 0);
    expect(0, 0);
    end_other();
}

/* ---- giving back ---- */

static size_t none_resident(void *addr, size_t bytes) {
    (void)addr, (void)bytes;
    return 0;
}

static void what_the_system_has_swapped_out_goes_as_well(void **state) {
    struct ebb_piece *run = take(4 * PAGE);
    const char *bytes = (const char *)run->addr;
    give(run);
    real = os;
    os.resident = none_resident;
    assert_int_equal(pages_cool(&pages, 0, SIZE_MAX, 0), 0);
    os = real;
    expect(0, 0);
    assert_int_equal(bytes[0] | bytes[4 * PAGE - 1], 0);
}

static void the_longest_kept_goes_first_whoever_went_before(void **state) {
    static const size_t counts[] = {1, 1, 1, 1, 1, 1};
    struct ebb_piece *runs[6];
    take_row(runs, counts, 6);
    for (size_t i = 0; i < 5; i++)
        pages_keep(&pages, runs[i], i);
    pages_unkeep(&pages, runs[2]);
    pages_retake(&pages, runs[0]); /* it was the longest kept */
    pages_cool(&pages, 2 * PAGE, SIZE_MAX, 0);
    expect(2 * PAGE, 2 * PAGE);
    assert_true(runs[3]->state == PIECE_KEPT && runs[4]->state == PIECE_KEPT);
    pages_cool(&pages, PAGE, SIZE_MAX, 0);
    assert_true(runs[3]->state != PIECE_KEPT && runs[4]->state == PIECE_KEPT);
    pages_cool(&pages, 0, SIZE_MAX, 0);
    pages_keep(&pages, runs[0], 6); /* into an empty list */
    pages_keep(&pages, runs[5], 7);
    pages_check(&pages);
    pages_cool(&pages, PAGE, SIZE_MAX, 0);
    assert_int_equal(runs[5]->state, PIECE_KEPT);
    pages_cool(&pages, 0, SIZE_MAX, 0);
    expect(0, 0);
}

#define PAGES_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
    static const struct CMUnitTest tests[] = {
        PAGES_TEST(runs_are_apart_and_counted_exactly),
        PAGES_TEST(hot_pages_are_taken_before_cold_ones),
        PAGES_TEST(neighbours_that_come_back_merge),
        PAGES_TEST(a_run_grows_into_what_lies_behind_it),
        PAGES_TEST(a_run_with_a_neighbour_behind_it_does_not_grow),
        PAGES_TEST(growing_takes_no_cold_page_above_what_is_allowed),
        PAGES_TEST(cutting_out_the_middle_leaves_three_runs),
        PAGES_TEST(cutting_out_everything_is_the_run_itself),
        PAGES_TEST(cooling_stops_at_the_target),
        PAGES_TEST(cooling_leaves_more_than_a_target_between_pages_cold),
        PAGES_TEST(cooling_takes_no_more_than_asked),
        PAGES_TEST(the_highest_pages_cool_first),
        PAGES_TEST(a_run_larger_than_a_slab_gets_a_slab_of_its_own),
        PAGES_TEST(more_than_the_range_holds_is_refused),
        PAGES_TEST(keepers_take_the_smallest_hot_piece_and_steps_no_splinter),
        PAGES_TEST(hot_pages_with_cold_ones_behind_them_stay_within_the_limit),
        PAGES_TEST(a_run_that_will_not_grow_goes_to_the_end_of_the_smallest_gap),
        PAGES_TEST(who_takes_addresses_of_a_heap_that_ends_is_not_forgotten),
        PAGES_TEST(who_takes_addresses_of_a_slab_that_goes_is_not_forgotten),
        PAGES_TEST(what_the_system_has_swapped_out_goes_as_well),
        PAGES_TEST(the_longest_kept_goes_first_whoever_went_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
