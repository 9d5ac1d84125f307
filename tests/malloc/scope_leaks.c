// SPDX-License-Identifier: Apache-2.0
/*
 * scope_leaks.c - who allocates what outlives scopes is known after some of them, whoever leaves
 * something behind that goes soon is not, and what survivors pin is bounded.
 */
#include "malloc/scoped.h"

#include <stdlib.h>

static void test_what_leaks_is_allocated_elsewhere(void **state) {
    void *kept[64];
    unsigned elsewhere = 0;
    for (unsigned i = 0; i < 64; i++) {
        ebb_step step = begin(*state);
        kept[i] = make(777, i);
        elsewhere += !is_of_a_scope(kept[i]);
        end(make(100, 1), 100, 1);
        finish(step);
    }
    assert_true(elsewhere >= 60);
    for (unsigned i = 0; i < 64; i++)
        end(kept[i], 777, i);
}

/* A block of one key; it is allocated in a scope. */
static bool lies_in_its_scope(ebb_site *site, void **block) {
    static const char caller;
    ebb_step step = begin(site);
    *block = front_alloc(777, &caller);
    bool lies = is_of_a_scope(*block);
    finish(step);
    return lies;
}

/* So many scopes with survivors, each of a key that nobody has met, are judged. */
static void let_others_survive(ebb_site *site, unsigned scopes) {
    static uintptr_t caller;
    void *last[2] = {NULL, NULL};
    for (unsigned i = 0; i < scopes; i++) {
        do
            caller += 4096;
        while (leaks.count[leaks_key((void *)caller, 100)]);
        ebb_step step = begin(site);
        front_free(last[i % 2]);
        last[i % 2] = front_alloc(100, (void *)caller);
        finish(step);
    }
    finish(begin(site));
    front_free(last[0]);
    front_free(last[1]);
}

/* It makes no more survivors, which would count. Others do; in the end it has another chance. */
static void test_what_leaks_is_known_for_long(void **state) {
    void *kept[8], *block;
    for (unsigned i = 0; i < 8; i++)
        (void)lies_in_its_scope(*state, &kept[i]);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(lies_in_its_scope(*state, &block));
        front_free(block);
        let_others_survive(*state, LEAKS_HALVING);
    }
    assert_true(lies_in_its_scope(*state, &block));
    front_free(block);
    for (unsigned i = 0; i < 8; i++)
        front_free(kept[i]);
}

/* Survivors of ever new sizes, one a scope: what they pin must not grow without bound. */
static void test_pinned_is_bounded(void **state) {
    enum { MANY = 3000 };
    static void *kept[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        ebb_step step = begin(*state);
        kept[i] = front_alloc(16 + i % 500 * 16, (void *)(uintptr_t)(i * 4096));
        for (unsigned k = 0; k < 20; k++)
            front_free(front_alloc(200, NULL));
        finish(step);
        struct tray_pinned pinned = tray_read_pinned();
        assert_true(pinned.bytes <= 4 * pinned.live + 4 * MIB + 128 * TRAY_BYTES);
    }
    for (unsigned i = 0; i < MANY; i++)
        front_free(kept[i]);
    for (unsigned i = 0; i < 200; i++) { /* and scopes are used again */
        ebb_step step = begin(*state);
        kept[0] = front_alloc(16, (void *)(uintptr_t)(i * 4096));
        finish(step);
        front_free(kept[0]);
    }
}

/* Nor where each scope has much, and keeps a little of it. */
static void test_what_large_scopes_pin_is_bounded(void **state) {
    enum { ROUNDS = 30, MANY = 20000, KEPT = MANY / 100 };
    static void *kept[ROUNDS][KEPT], *others[MANY];
    for (unsigned round = 0; round < ROUNDS; round++) {
        ebb_step step = begin(*state);
        for (unsigned i = 0; i < MANY; i++) /* callers and sizes that never come again */
            others[i] = front_alloc(1000, (void *)(uintptr_t)((round * MANY + i) * 4096));
        for (unsigned i = 0; i < MANY; i++)
            if (i % 100)
                front_free(others[i]);
            else
                kept[round][i / 100] = others[i];
        finish(step);
        struct tray_pinned pinned = tray_read_pinned();
        size_t of_one = MANY * 1008 + 2 * TRAY_BYTES;
        assert_true(pinned.bytes <= 4 * pinned.live + 4 * MIB + 64 * TRAY_BYTES + of_one);
    }
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < KEPT; i++)
            front_free(kept[round][i]);
    for (unsigned i = 0; i < 200; i++)
        finish(begin(*state)); /* scopes are used again */
    ebb_step step = begin(*state);
    assert_false(here.scope->plain);
    finish(step);
}

/* A long scope that keeps a little of everything. */
static void test_a_long_scope_stays_dense(void **state) {
    enum { MANY = 6000 };
    static void *kept[MANY];
    size_t alive = 0, trays = 0;
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < MANY; i++) {
        for (unsigned k = 0; k < 16; k++)
            front_free(front_alloc(1000 + k, NULL));
        void *first = front_alloc(4000, NULL);
        kept[i] = front_alloc(24, NULL);
        alive += 32;
        void *second = front_alloc(4000, NULL);
        front_free(first);
        front_free(second);
        trays = here.scope->trays;
    }
    assert_true(trays * TRAY_BYTES <= 4 * alive + 80 * TRAY_BYTES);
    finish(step);
    for (unsigned i = 0; i < MANY; i++)
        front_free(kept[i]);
}

/* ---- what goes soon is no leak ---- */

enum { SCOPES = 64 };

static void test_what_goes_before_the_next_scope_is_no_leak(void **state) {
    for (unsigned i = 0; i < SCOPES; i++) {
        ebb_step step = begin(*state);
        void *answer = make(777, i);
        assert_true(is_of_a_scope(answer));
        finish(step);
        assert_int_equal(tray_read_pinned().trays, 1);
        end(answer, 777, i);
        assert_int_equal(tray_read_pinned().trays, 0);
    }
    assert_int_equal(leaks_count(), 0);
}

/* As a variable of a loop, which keeps its value until it gets the next one. */
static void test_what_the_next_scope_frees_is_no_leak(void **state) {
    void *last = NULL;
    for (unsigned i = 0; i < SCOPES; i++) {
        ebb_step step = begin(*state);
        void *next = make(777, i);
        assert_true(is_of_a_scope(next));
        if (last)
            end(last, 777, i - 1);
        last = next;
        finish(step);
    }
    assert_int_equal(leaks_count(), 0);
    end(last, 777, SCOPES - 1);
}

/* A tray that went may be another one when it is looked at, with such a block in the same place. */
static void test_a_tray_that_is_used_again_is_not_taken_for_the_same(void **state) {
    for (unsigned i = 0; i < SCOPES; i++) {
        ebb_step outer = begin(*state);
        void *place = make(777, i);
        struct tray *tray = tray_of((uintptr_t)place);
        finish(outer);
        end(place, 777, i);
        ebb_step next = begin(*state);
        void *again = make(777, i);
        assert_ptr_equal(again, place); /* if not, this shows nothing */
        assert_ptr_equal(here.scope->tray, tray);
        finish(next);
        end(again, 777, i);
    }
    assert_int_equal(leaks_count(), 0);
}

/* Of one key, and in one tray: some go and one stays, in each scope. */
static void test_who_stays_is_found_among_those_that_go(void **state) {
    enum { OF_IT = 12 };
    void *kept[SCOPES];
    unsigned elsewhere = 0;
    for (unsigned i = 0; i < SCOPES; i++) {
        void *blocks[OF_IT];
        ebb_step step = begin(*state);
        for (unsigned k = 0; k < OF_IT; k++)
            blocks[k] = make(777, k);
        finish(step);
        kept[i] = blocks[i % OF_IT];
        elsewhere += !is_of_a_scope(kept[i]);
        for (unsigned k = 0; k < OF_IT; k++)
            if (k != i % OF_IT)
                end(blocks[k], 777, k);
    }
    assert_true(elsewhere >= SCOPES - 4);
    for (unsigned i = 0; i < SCOPES; i++)
        end(kept[i], 777, i % OF_IT);
}

static void test_several_of_one_scope_count_once(void **state) {
    void *kept[3];
    ebb_step step = begin(*state);
    for (unsigned k = 0; k < 3; k++)
        kept[k] = make(777, k);
    finish(step);
    finish(begin(*state));
    assert_int_equal(leaks_count(), 0);
    for (unsigned k = 0; k < 3; k++)
        end(kept[k], 777, k);
}

/* Others that go soon, of many callers, before it and after it. In how many scopes it was hidden;
 * then its key is known, and no other. */
static unsigned scopes_that_hide(ebb_site *site, unsigned others, size_t bytes) {
    void **blocks = malloc(others * sizeof *blocks), *kept[SCOPES];
    unsigned hidden = 0;
    assert_non_null(blocks);
    for (unsigned i = 0; i < SCOPES; i++) {
        ebb_step step = begin(site);
        for (unsigned k = 0; k < others; k++) {
            blocks[k] = front_alloc(bytes, (void *)(uintptr_t)(k % 40 * 4096));
            if (k == others / 20)
                kept[i] = make(777, i);
        }
        hidden += is_of_a_scope(kept[i]);
        finish(step);
        for (unsigned k = 0; k < others; k++)
            front_free(blocks[k]);
    }
    assert_int_equal(leaks_count(), 1);
    for (unsigned i = 0; i < SCOPES; i++)
        end(kept[i], 777, i);
    free(blocks);
    return hidden;
}

static void test_who_stays_is_found_between_many_others(void **state) {
    assert_true(scopes_that_hide(*state, 600, 40) <= 4);
}

/* More trays than are looked at, so that it takes a few scopes more. */
static void test_who_stays_is_found_between_many_trays(void **state) {
    assert_true(scopes_that_hide(*state, 1100, 4000) <= 24);
}

/* ---- their trays ---- */

static void test_a_tray_whose_last_block_goes_is_the_threads_next(void **state) {
    ebb_step step = begin(*state);
    void *answer = make(100, 1);
    struct tray *tray = tray_of((uintptr_t)answer);
    finish(step);
    unsigned stashed = here.heap->stashed;
    end(answer, 100, 1);
    assert_int_equal(here.heap->stashed, stashed + 1);
    step = begin(*state);
    answer = make(100, 2);
    assert_ptr_equal(tray_of((uintptr_t)answer), tray);
    end(answer, 100, 2);
    finish(step);
}

/* Its key is what lies behind the block before it, and any number will do. */
static void test_a_few_bytes_above_a_block_harm_no_more_than_a_key(void **state) {
    ebb_step step = begin(*state);
    char *block = make(24, 1), *next = make(24, 2);
    memset(block + 24, 0x41, 4);
    assert_int_equal(front_usable(next), 24);
    finish(step);
    finish(begin(*state));
    end(next, 24, 2);
    end(block, 24, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_what_leaks_is_allocated_elsewhere),
        SERVED(test_what_leaks_is_known_for_long),
        SERVED(test_pinned_is_bounded),
        SERVED(test_what_large_scopes_pin_is_bounded),
        SERVED(test_a_long_scope_stays_dense),
        SERVED(test_what_goes_before_the_next_scope_is_no_leak),
        SERVED(test_what_the_next_scope_frees_is_no_leak),
        SERVED(test_a_tray_that_is_used_again_is_not_taken_for_the_same),
        SERVED(test_who_stays_is_found_among_those_that_go),
        SERVED(test_several_of_one_scope_count_once),
        SERVED(test_who_stays_is_found_between_many_others),
        SERVED(test_who_stays_is_found_between_many_trays),
        SERVED(test_a_tray_whose_last_block_goes_is_the_threads_next),
        SERVED(test_a_few_bytes_above_a_block_harm_no_more_than_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
