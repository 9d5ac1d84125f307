// SPDX-License-Identifier: Apache-2.0
/*
 * scope_trays.c - trays of a scope that stays open go where nothing in them is alive, and where
 * none can be had its small blocks are the general heap's. What is alive stays as it was.
 */
#include "scoped.h"

#include "base/os.h"

#include <errno.h>
#include <pthread.h>

enum { SMALL = 2000, SMALL_BYTES = 1000 };

static void fill(void **blocks, unsigned seed) {
    for (unsigned i = 0; i < SMALL; i++)
        blocks[i] = make(SMALL_BYTES, seed + i);
}

static void empty(void **blocks, unsigned seed, unsigned but_each) {
    for (unsigned i = 0; i < SMALL; i++)
        if (!but_each || i % but_each)
            end(blocks[i], SMALL_BYTES, seed + i);
}

static void test_a_scope_that_was_left_has_no_trays_where_nothing_is_alive(void **state) {
    void *blocks[SMALL];
    ebb_step step = begin(*state);
    struct scope *scope = here.scope;
    for (unsigned round = 0; round < 3; round++) {
        fill(blocks, round);
        empty(blocks, round, 0);
        assert_true(scope->trays >= 30);
        assert_int_equal(ebb_scope_leave(step), 0);
        assert_int_equal(scope->trays, 0);
        assert_int_equal(open_bytes(*state), 0);
        assert_int_equal(ebb_scope_enter(step), 0);
    }
    finish(step);
    assert_int_equal(tray_read_pinned().trays, 0);
}

/* The others are bumped in as before, and what is free there serves the next. */
static void test_trays_go_from_between_live_blocks(void **state) {
    void *blocks[SMALL], *again[SMALL];
    ebb_step step = begin(*state);
    struct scope *scope = here.scope;
    fill(blocks, 0);
    unsigned before = scope->trays;
    empty(blocks, 0, 400); /* five of 2000 live */
    ebb_step inner = begin(*state);
    assert_true(scope->trays >= 1 && scope->trays <= 6);
    assert_int_equal(open_bytes(*state), scope->trays * TRAY_BYTES);
    finish(inner);
    fill(again, 7);
    assert_true(scope->trays <= before + 1);
    for (unsigned i = 0; i < SMALL; i += 400)
        end(blocks[i], SMALL_BYTES, i);
    empty(again, 7, 0);
    assert_int_equal(scope->bytes, scope->freed_bytes);
    finish(step);
    assert_int_equal(tray_read_pinned().trays, 0);
}

static void *free_them(void *context) {
    void **blocks = context;
    for (unsigned i = 0; i < SMALL; i++)
        if (i % 400)
            front_free(blocks[i]);
    return NULL;
}

/* What is alive at the end is pinned, and counted, as if none had gone before. */
static void test_trays_whose_blocks_others_freed_go(void **state) {
    void *blocks[SMALL];
    pthread_t thread;
    ebb_step step = begin(*state);
    struct scope *scope = here.scope;
    fill(blocks, 0);
    assert_int_equal(pthread_create(&thread, NULL, free_them, blocks), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(ebb_scope_leave(step), 0);
    assert_true(scope->trays >= 1 && scope->trays <= 6);
    unsigned trays = scope->trays;
    finish(step);
    assert_true(tray_read_pinned().trays <= trays);
    assert_int_equal(tray_read_pinned().blocks, 5);
    for (unsigned i = 0; i < SMALL; i += 400)
        end(blocks[i], SMALL_BYTES, i);
    assert_int_equal(tray_read_pinned().trays, 0);
}

/* True: it has left its trays. They are few in any case. */
static bool frees_all_now_and_then(ebb_site *of, uint64_t random) {
    ebb_step step = begin(of);
    for (unsigned round = 0; round < 100; round++) {
        void *blocks[300];
        for (unsigned i = 0; i < 300; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            blocks[i] = front_alloc(16 + (size_t)(random >> 40) % 8000, NULL);
        }
        for (unsigned i = 0; i < 300; i++)
            front_free(blocks[i]);
    }
    bool has_left = here.scope->plain;
    assert_true(here.scope->trays <= 128);
    finish(step);
    return has_left;
}

/* It goes on in trays, where it would have left them for good, unless a look comes when a little is
 * alive in most of them. */
static void test_a_scope_that_frees_all_now_and_then_may_stay_in_trays(void **state) {
    enum { MANY = 40 };
    unsigned left = 0;
    for (uint64_t seed = 1; seed <= MANY; seed++)
        left += frees_all_now_and_then(*state, seed);
    assert_true(left <= MANY * 3 / 4);
}

/* A little that is alive in each keeps them, until malloc_trim() finds that it is dead. */
static void test_malloc_trim_takes_trays_of_open_scopes(void **state) {
    void *blocks[SMALL];
    ebb_step step = begin(*state);
    struct scope *scope = here.scope;
    fill(blocks, 0);
    empty(blocks, 0, 2);
    assert_int_equal(ebb_scope_leave(step), 0);
    assert_true(scope->trays >= 30);
    for (unsigned i = 0; i < SMALL; i += 2)
        end(blocks[i], SMALL_BYTES, i);
    assert_true(scope->trays >= 30);
    trim_all();
    assert_int_equal(scope->trays, 0);
    finish(step);
}

/* It would take a look at each of them, to find that these few are alive. */
static void test_a_scope_that_was_left_with_much_alive_is_not_looked_at(void **state) {
    void *blocks[SMALL];
    ebb_step step = begin(*state);
    struct scope *scope = here.scope;
    fill(blocks, 0);
    unsigned before = scope->trays;
    for (unsigned i = SMALL / 6; i < SMALL; i++)
        end(blocks[i], SMALL_BYTES, i);
    assert_int_equal(ebb_scope_leave(step), 0);
    assert_int_equal(scope->trays, before);
    trim_all();
    assert_true(scope->trays <= before / 6 + 1);
    for (unsigned i = 0; i < SMALL / 6; i++)
        end(blocks[i], SMALL_BYTES, i);
    finish(step);
}

enum { TURNED = 600, VAIN_ROUNDS = 40 };

/* 1.2 MB are allocated and freed, more than half of the bytes of 33 trays. */
static void turn_over(void) {
    void *blocks[TURNED];
    for (unsigned i = 0; i < TURNED; i++)
        blocks[i] = make(SMALL_BYTES, i);
    for (unsigned i = 0; i < TURNED; i++)
        end(blocks[i], SMALL_BYTES, i);
}

static void test_looks_that_find_no_empty_tray_get_rare(void **state) {
    void *blocks[SMALL];
    ebb_step step = begin(*state);
    struct scope *scope = here.scope;
    for (unsigned i = 0; i < SMALL; i++)
        blocks[i] = make(i % 50 ? SMALL_BYTES : 20, i);
    for (unsigned i = 0; i < SMALL; i++)
        if (i % 50)
            end(blocks[i], SMALL_BYTES, i);
    unsigned looks = 0;
    for (unsigned round = 0; round < VAIN_ROUNDS; round++) {
        uint64_t before = scope->swept_at;
        turn_over();
        assert_int_equal(ebb_scope_leave(step), 0);
        assert_int_equal(ebb_scope_enter(step), 0);
        looks += scope->swept_at != before;
    }
    assert_in_range(looks, 1, 8);
    assert_true(scope->trays >= 34 && scope->trays <= 37);
    for (unsigned i = 0; i < SMALL; i += 50)
        end(blocks[i], 20, i);
    finish(step);
}

enum { UNSERVED = 10000 }; /* more than fit into trays that are left over */

static unsigned refusals;

static int refuse(void *addr, size_t bytes) {
    (void)addr, (void)bytes;
    refusals++;
    return ENOMEM;
}

static void test_where_no_tray_can_be_had_not_each_block_asks_for_one(void **state) {
    static void *blocks[UNSERVED];
    int (*true_open)(void *addr, size_t bytes) = os.open;
    ebb_step step = begin(*state);
    os.open = refuse;
    for (unsigned i = 0; i < UNSERVED; i++)
        blocks[i] = make(SMALL_BYTES, i);
    os.open = true_open;
    assert_in_range(refusals, 1, 40);
    for (unsigned i = 0; i < UNSERVED; i++)
        end(blocks[i], SMALL_BYTES, i);
    finish(step);
    step = begin(*state); /* the next one has them again */
    void *block = make(SMALL_BYTES, 1);
    assert_true(is_of_a_scope(block));
    end(block, SMALL_BYTES, 1);
    finish(step);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ALONE(test_a_scope_that_was_left_has_no_trays_where_nothing_is_alive),
        ALONE(test_trays_go_from_between_live_blocks),
        ALONE(test_trays_whose_blocks_others_freed_go),
        ALONE(test_a_scope_that_frees_all_now_and_then_may_stay_in_trays),
        ALONE(test_malloc_trim_takes_trays_of_open_scopes),
        ALONE(test_a_scope_that_was_left_with_much_alive_is_not_looked_at),
        ALONE(test_looks_that_find_no_empty_tray_get_rare),
        ALONE(test_where_no_tray_can_be_had_not_each_block_asks_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
