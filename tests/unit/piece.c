// SPDX-License-Identifier: Apache-2.0
/*
 * piece.c - pieces and their stores: what is taken is distinct, what was prepared cannot fail,
 * splitting and absorbing keep the chain of addresses, and stores give batches they do not need
 * to each other.
 */
#include "kit/test.h"

#include "base/os.h"
#include "pool/range.h"

#include <stdlib.h>

static bool refuse_pieces(enum os_acquisition what) {
    return what != OS_PIECES;
}

static struct os_table real_os;

static int prepare(void **state) {
    (void)state;
    real_os = os;
    return range_prepare();
}

static int restore_os(void **state) {
    (void)state;
    os = real_os;
    return 0;
}

static int by_address(const void *a, const void *b) {
    const uintptr_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

static void pieces_of_a_store_are_distinct(void **state) {
    enum { COUNT = 500 };
    static uintptr_t taken[COUNT];
    struct piece_store store = {0};
    for (int i = 0; i < COUNT; i++) {
        taken[i] = (uintptr_t)piece_take(&store);
        assert_int_not_equal(taken[i], 0);
    }
    qsort(taken, COUNT, sizeof *taken, by_address);
    for (int i = 1; i < COUNT; i++)
        assert_true(taken[i] - taken[i - 1] >= sizeof(struct ebb_piece));
    piece_forget_all(&store);
}

static void a_piece_given_back_is_taken_next(void **state) {
    struct piece_store store = {0};
    struct ebb_piece *a = piece_take(&store), *b = piece_take(&store);
    piece_give(&store, a);
    piece_give(&store, b);
    assert_int_equal(a->state, PIECE_UNUSED);
    assert_ptr_equal(piece_take(&store), b);
    assert_ptr_equal(piece_take(&store), a);
    piece_forget_all(&store);
}

static void what_was_prepared_cannot_fail(void **state) {
    for (unsigned count = 1; count <= 4 * PIECES_PER_BATCH; count++) {
        struct piece_store store = {0};
        for (unsigned before = 0; before < count % 7; before++)
            assert_non_null(piece_take(&store));
        assert_true(piece_prepare(&store, count));
        os.allow = refuse_pieces;
        for (unsigned i = 0; i < count; i++)
            assert_non_null(piece_take(&store));
        os = real_os;
        piece_forget_all(&store);
    }
}

static void a_refused_batch_refuses_only_what_it_was_needed_for(void **state) {
    struct piece_store store = {0};
    unsigned left = 0;
    assert_non_null(piece_take(&store));
    os.allow = refuse_pieces;
    assert_false(piece_prepare(&store, PIECES_PER_BATCH));
    while (piece_take(&store))
        left++;
    assert_int_equal(left, PIECES_PER_BATCH - 2);
    os = real_os;
    assert_non_null(piece_take(&store));
    piece_forget_all(&store);
}

static void a_store_that_forgot_serves_again_without_acquiring(void **state) {
    struct piece_store store = {0};
    for (int i = 0; i < 5000; i++)
        assert_non_null(piece_take(&store));
    piece_forget_all(&store);
    assert_true(store.batches >= 1);
    os.allow = refuse_pieces;
    for (unsigned i = 0; i < store.batches * (PIECES_PER_BATCH - 1); i++)
        assert_non_null(piece_take(&store));
    piece_forget_all(&store);
}

static void batches_beyond_those_kept_go_to_other_stores(void **state) {
    struct piece_store large = {0}, other = {0};
    unsigned batches = 1000;
    for (unsigned i = 0; i < batches * (PIECES_PER_BATCH - 1); i++)
        assert_non_null(piece_take(&large));
    assert_true(large.batches >= batches);
    uintptr_t end = (uintptr_t)range_carve_pieces();
    piece_forget_all(&large);
    assert_true(large.batches < batches);
    unsigned reused = batches - large.batches;
    for (unsigned i = 0; i < reused * (PIECES_PER_BATCH - 1); i++)
        assert_true((uintptr_t)piece_take(&other) < end);
    piece_forget_all(&large);
    piece_forget_all(&other);
}

static void splitting_and_absorbing_keep_the_chain(void **state) {
    struct piece_store store = {0};
    struct ebb_piece *a = piece_take(&store), *b = piece_take(&store), *c = piece_take(&store);
    *a = (struct ebb_piece){.addr = 4096, .bytes = 8192};
    piece_split(a, b, 8192);
    piece_split(a, c, 6144);
    assert_int_equal(a->bytes, 2048);
    assert_int_equal(c->bytes, 2048);
    assert_int_equal(b->bytes, 4096);
    assert_int_equal(piece_end(a), c->addr);
    assert_int_equal(piece_end(c), b->addr);
    assert_int_equal(piece_end(b), 4096 + 8192);
    assert_true(a->after == c && c->before == a && c->after == b && b->before == c && !b->after);
    piece_absorb_after(a, &store);
    assert_true(a->bytes == 4096 && a->after == b && b->before == a);
    piece_absorb_after(a, &store);
    assert_true(a->bytes == 8192 && !a->after);
    piece_forget_all(&store);
}

static void lists_unlink_first_last_and_middle(void **state) {
    struct ebb_piece pieces[3], *head = NULL;
    for (int i = 0; i < 3; i++)
        piece_push(&head, &pieces[i]);
    assert_ptr_equal(head, &pieces[2]);
    piece_unlink(&head, &pieces[1]);
    assert_true(head == &pieces[2] && pieces[2].next == &pieces[0]);
    assert_true(pieces[0].prev == &pieces[2]);
    piece_unlink(&head, &pieces[2]);
    assert_true(head == &pieces[0] && !pieces[0].prev && !pieces[0].next);
    piece_unlink(&head, &pieces[0]);
    assert_null(head);
}

#define PIECE_TEST(test) cmocka_unit_test_teardown(test, restore_os)

int main(void) {
    static const struct CMUnitTest tests[] = {
        PIECE_TEST(pieces_of_a_store_are_distinct),
        PIECE_TEST(a_piece_given_back_is_taken_next),
        PIECE_TEST(what_was_prepared_cannot_fail),
        PIECE_TEST(a_refused_batch_refuses_only_what_it_was_needed_for),
        PIECE_TEST(a_store_that_forgot_serves_again_without_acquiring),
        PIECE_TEST(batches_beyond_those_kept_go_to_other_stores),
        PIECE_TEST(splitting_and_absorbing_keep_the_chain),
        PIECE_TEST(lists_unlink_first_last_and_middle),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
