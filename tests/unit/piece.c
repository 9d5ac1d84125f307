// SPDX-License-Identifier: Apache-2.0
/*
 * piece.c - pieces and their stores: what is taken is distinct, what was prepared cannot fail,
 * splitting and absorbing keep the chain of addresses, and stores give batches they do not need
 * to each other.
 */
#include "kit/slow.h"
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

/* That a store has in all its batches. */
static unsigned entries_of(const struct piece_store *store) {
    return PIECES_IN_FIRST - 1 + (store->batches - 1) * (PIECES_PER_BATCH - 1);
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
    assert_int_equal(left, PIECES_IN_FIRST - 2);
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
    for (unsigned i = 0; i < entries_of(&store); i++)
        assert_non_null(piece_take(&store));
    assert_null(piece_take(&store));
    os = real_os;
    piece_forget_all(&store);
}

static void small_stores_share_pages(void **state) {
    enum { STORES = 64 };
    static struct piece_store stores[STORES];
    uintptr_t pages[STORES], different = 0;
    for (int i = 0; i < STORES; i++)
        pages[i] = (uintptr_t)piece_take(&stores[i]) / EBB_PAGE;
    qsort(pages, STORES, sizeof *pages, by_address);
    for (int i = 0; i < STORES; i++)
        different += i == 0 || pages[i] != pages[i - 1];
    assert_true(different <= STORES / 4 + 1);
    for (int i = 0; i < STORES; i++)
        piece_give_up(&stores[i]);
}

static uintptr_t part_of(const struct ebb_piece *piece) {
    return (uintptr_t)piece / PIECES_FIRST_BYTES;
}

/* An old name of an entry leads to an entry for ever, never into the midst of two. */
static void first_batches_stay_first_batches(void **state) {
    enum { STORES = 100, MANY = 10000 };
    static struct piece_store stores[STORES];
    static uintptr_t firsts[STORES];
    struct piece_store large = {0};
    for (int i = 0; i < STORES; i++)
        firsts[i] = part_of(piece_take(&stores[i]));
    for (int i = 0; i < STORES; i++)
        piece_give_up(&stores[i]);
    for (int i = 0; i < MANY; i++) {
        uintptr_t part = part_of(piece_take(&large));
        for (int k = 0; k < STORES && part != part_of(large.first); k++)
            assert_true(part != firsts[k]);
    }
    piece_give_up(&large);
    for (int i = 0; i < STORES; i++) {
        uintptr_t part = part_of(piece_take(&stores[i]));
        bool again = false;
        for (int k = 0; k < STORES; k++)
            again |= part == firsts[k];
        assert_true(again);
    }
    for (int i = 0; i < STORES; i++)
        piece_give_up(&stores[i]);
}

static void what_a_store_gave_up_is_wiped_with_it(void **state) {
    struct piece_store store = {0};
    struct ebb_piece *few[2 * PIECES_PER_BATCH];
    for (unsigned i = 0; i < 2 * PIECES_PER_BATCH; i++) {
        few[i] = piece_take(&store);
        few[i]->state = PIECE_BLOCK;
    }
    piece_give_up(&store);
    piece_wipe(&store);
    for (unsigned i = 0; i < 2 * PIECES_PER_BATCH; i++)
        assert_int_equal(few[i]->state, PIECE_UNUSED);
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

static void *take_many(void *unused) {
    struct piece_store store = {0};
    for (unsigned i = 0; i < 3 * PIECES_PER_BATCH; i++)
        assert_non_null(piece_take(&store));
    piece_give_up(&store);
    return unused;
}

static void nobody_waits_while_the_system_takes_pages(void **state) {
    size_t most = PIECES_BATCH_BYTES;
    take_many(NULL);
    slow_begin(take_many);
    assert_false(piece_trim(0, &most));
    assert_int_equal(slow_end(), 0);
    assert_int_equal(most, 0);
}

static struct piece_store wiped;

/* Its owner begins anew while the system has it, and does not take it. */
static int wipe_and_refuse(void *addr, size_t bytes) {
    (void)addr, (void)bytes;
    piece_wipe(&wiped);
    return -1;
}

static void what_is_just_going_is_wiped(void **state) {
    struct ebb_piece *piece = NULL;
    size_t most = SIZE_MAX;
    for (unsigned i = 0; i < 2 * PIECES_PER_BATCH; i++)
        assert_non_null(piece_take(&wiped));
    piece = wiped.first->next + PIECES_PER_BATCH / 2;
    piece_put_state(piece, PIECE_BLOCK);
    piece_give_up(&wiped);
    os.give_back = wipe_and_refuse;
    assert_false(piece_trim(0, &most));
    assert_int_equal(piece->state, PIECE_UNUSED);
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
        PIECE_TEST(small_stores_share_pages),
        PIECE_TEST(first_batches_stay_first_batches),
        PIECE_TEST(what_a_store_gave_up_is_wiped_with_it),
        PIECE_TEST(batches_beyond_those_kept_go_to_other_stores),
        PIECE_TEST(nobody_waits_while_the_system_takes_pages),
        PIECE_TEST(what_is_just_going_is_wiped),
        PIECE_TEST(splitting_and_absorbing_keep_the_chain),
        PIECE_TEST(lists_unlink_first_last_and_middle),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
