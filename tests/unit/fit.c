// SPDX-License-Identifier: Apache-2.0
/*
 * fit.c - best fit: the smallest piece that is large enough, the lowest among equals, against a
 * search over all pieces; and the bounded look-up once a bin holds many.
 */
#include "kit/test.h"

#include "base/size.h"
#include "pool/fit.h"
#include "pool/range.h"

#include <stdlib.h>

enum { MOST = 400 };

static struct ebb_piece pieces[MOST];
static struct fit fit;

static int clear(void **state) {
    (void)state;
    memset(pieces, 0, sizeof pieces);
    memset(&fit, 0xa5, sizeof fit); /* clearing must not depend on what was there */
    fit_clear(&fit);
    return 0;
}

static struct ebb_piece *put(unsigned index, size_t bytes) {
    pieces[index].addr = (index + 1) * ((uintptr_t)1 << 40);
    pieces[index].bytes = bytes;
    fit_insert(&fit, &pieces[index]);
    return &pieces[index];
}

static const struct ebb_piece *search(unsigned count, size_t bytes) {
    const struct ebb_piece *best = NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct ebb_piece *piece = &pieces[i];
        if (piece->bytes >= bytes && (!best || piece->bytes < best->bytes))
            best = piece;
    }
    return best;
}

static void an_empty_fit_finds_nothing(void **state) {
    for (size_t bytes = EBB_UNIT; bytes < (size_t)1 << 45; bytes *= 2)
        assert_null(fit_find(&fit, bytes));
    assert_null(fit_largest(&fit));
}

static void a_size_fits_itself_and_less_and_not_more(void **state) {
    for (size_t bytes = EBB_UNIT; bytes <= 64 * KIB; bytes += EBB_UNIT) {
        struct ebb_piece *piece = put(0, bytes);
        assert_ptr_equal(fit_find(&fit, bytes), piece);
        if (bytes > EBB_UNIT)
            assert_ptr_equal(fit_find(&fit, bytes - EBB_UNIT), piece);
        assert_null(fit_find(&fit, bytes + EBB_UNIT));
        assert_ptr_equal(fit_largest(&fit), piece);
        fit_remove(&fit, piece);
        assert_null(fit_find(&fit, bytes));
    }
}

static void of_three_neighbouring_sizes_the_right_one_is_found(void **state) {
    for (size_t bytes = 2 * EBB_UNIT; bytes <= 300 * MIB; bytes = bytes * 9 / 8 / 64 * 64 + 64) {
        struct ebb_piece *more = put(0, bytes + EBB_UNIT), *same = put(1, bytes);
        struct ebb_piece *less = put(2, bytes - EBB_UNIT);
        assert_ptr_equal(fit_find(&fit, bytes), same);
        assert_ptr_equal(fit_find(&fit, bytes - EBB_UNIT), less);
        assert_ptr_equal(fit_find(&fit, bytes + EBB_UNIT), more);
        assert_ptr_equal(fit_largest(&fit), more);
        fit_remove(&fit, same);
        assert_ptr_equal(fit_find(&fit, bytes), more);
        fit_remove(&fit, more);
        fit_remove(&fit, less);
    }
}

static void the_lowest_of_equals_is_found_first(void **state) {
    static const unsigned order[] = {5, 2, 8, 1, 9, 3};
    for (unsigned i = 0; i < 6; i++)
        put(order[i], 4096);
    static const unsigned sorted[] = {1, 2, 3, 5, 8, 9};
    for (unsigned i = 0; i < 6; i++) {
        assert_ptr_equal(fit_find(&fit, 4096), &pieces[sorted[i]]);
        fit_remove(&fit, &pieces[sorted[i]]);
    }
}

/* They wait to be merged, in any order. */
static void gaps_lie_as_they_came(void **state) {
    for (size_t bytes = EBB_UNIT; bytes < 1 * KIB; bytes += EBB_UNIT) {
        for (unsigned i = 0; i < 6; i++)
            put(i * 3 % 7, bytes);
        fit_remove(&fit, &pieces[6]);
        for (unsigned i = 6; i-- > 0;) {
            if (i == 2) /* pieces[6] */
                continue;
            assert_ptr_equal(fit_find(&fit, bytes), &pieces[i * 3 % 7]);
            fit_remove(&fit, &pieces[i * 3 % 7]);
        }
        assert_true(fit_is_empty(&fit));
    }
}

static void random_sizes_match_a_search_over_all(void **state) {
    srand(11);
    for (unsigned count = 0; count < FIT_LOOK; count++) {
        put(count, EBB_UNIT * (size_t)(1 + rand() % 3000));
        for (int question = 0; question < 50; question++) {
            size_t bytes = EBB_UNIT * (size_t)(1 + rand() % 3100);
            const struct ebb_piece *best = search(count + 1, bytes), *found = fit_find(&fit, bytes);
            assert_int_equal(best != NULL, found != NULL);
            assert_true(!best || found->bytes == best->bytes);
        }
    }
}

static void a_crowded_bin_still_gives_a_piece_that_fits(void **state) {
    for (unsigned i = 0; i < MOST; i++)
        put(i, 1 * MIB + EBB_UNIT * (i * 7919 % MOST));
    for (size_t bytes = 64 * KIB; bytes <= 1 * MIB; bytes += 64 * KIB - EBB_UNIT) {
        const struct ebb_piece *found = fit_find(&fit, bytes);
        assert_true(found && found->bytes >= bytes);
    }
    for (unsigned i = 0; i < MOST; i++)
        fit_remove(&fit, &pieces[i]);
    assert_null(fit_largest(&fit));
}

static bool count_piece(void *context, struct ebb_piece *piece) {
    unsigned *counts = context;
    counts[piece - pieces]++;
    return counts[MOST] == 0 || --counts[MOST] != 0;
}

static void each_piece_is_visited_once_or_until_stopped(void **state) {
    unsigned counts[MOST + 1] = {0}, total = 0;
    for (unsigned i = 0; i < 100; i++)
        put(i, EBB_UNIT << (i % 30));
    fit_each(&fit, count_piece, counts);
    for (unsigned i = 0; i < MOST; i++)
        assert_int_equal(counts[i], i < 100);
    memset(counts, 0, sizeof counts);
    counts[MOST] = 7; /* stops at the seventh */
    fit_each(&fit, count_piece, counts);
    for (unsigned i = 0; i < MOST; i++)
        total += counts[i];
    assert_int_equal(total, 7);
}

static void sizes_that_no_piece_can_have_are_not_found(void **state) {
    struct ebb_piece *largest = put(0, RANGE_MOST);
    put(1, EBB_UNIT);
    assert_ptr_equal(fit_find(&fit, RANGE_MOST), largest);
    for (size_t bytes = RANGE_MOST + EBB_UNIT; bytes < SIZE_MAX / 2; bytes *= 2)
        assert_null(fit_find(&fit, bytes));
    assert_null(fit_find(&fit, size_align_down(SIZE_MAX, EBB_UNIT)));
}

#define FIT_TEST(test) cmocka_unit_test_setup(test, clear)

int main(void) {
    static const struct CMUnitTest tests[] = {
        FIT_TEST(an_empty_fit_finds_nothing),
        FIT_TEST(a_size_fits_itself_and_less_and_not_more),
        FIT_TEST(of_three_neighbouring_sizes_the_right_one_is_found),
        FIT_TEST(the_lowest_of_equals_is_found_first),
        FIT_TEST(gaps_lie_as_they_came),
        FIT_TEST(random_sizes_match_a_search_over_all),
        FIT_TEST(a_crowded_bin_still_gives_a_piece_that_fits),
        FIT_TEST(each_piece_is_visited_once_or_until_stopped),
        FIT_TEST(sizes_that_no_piece_can_have_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
