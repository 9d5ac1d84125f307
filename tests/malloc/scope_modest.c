// SPDX-License-Identifier: Apache-2.0
/*
 * scope_modest.c - large blocks of a site whose scopes have few bytes of them are the general
 * heap's, until a scope has more; and what its threads count together is exact.
 */
#include "malloc/scoped.h"

#include "pool/pool.h"
#include "step/site.h"

#include <pthread.h>

enum { FEW = 100000 };

/* Takes a scope with blocks of so many bytes in all; the number of them that were the scope's. */
static unsigned take(ebb_site *site, size_t bytes) {
    ebb_step step = begin(site);
    void *blocks[96];
    unsigned count = 0, scoped = 0;
    for (; bytes; count++) {
        size_t part = bytes < FEW ? bytes : FEW;
        blocks[count] = make(part, count);
        scoped += is_of_a_scope(blocks[count]);
        bytes -= part;
    }
    for (unsigned i = 0; i < count; i++)
        front_free(blocks[i]);
    finish(step);
    return scoped;
}

static void become_modest(ebb_site *site) {
    for (unsigned i = 0; i < SERVED_MODEST_SCOPES; i++)
        assert_int_equal(take(site, 2 * FEW), 2);
    assert_int_equal(take(site, 2 * FEW), 0);
}

static void test_few_bytes_are_the_general_heaps(void **state) {
    become_modest(*state);
    assert_int_equal(take(*state, 10 * FEW), 0);
    const struct served *served = served_of(*state);
    uint64_t blocks = served_sum(served, SERVED_BLOCKS), bytes = served_sum(served, SERVED_BYTES);
    assert_int_equal(take(*state, FEW), 0);
    assert_int_equal(served_sum(served, SERVED_BLOCKS), blocks); /* of scopes */
    assert_int_equal(served_sum(served, SERVED_BYTES), bytes);
    assert_int_equal(served_sum(served, SERVED_SCOPES), SERVED_MODEST_SCOPES + 3);
}

/* In a scope of its own; whether they were the scope's. */
static bool take_halves(ebb_site *site) {
    enum { HALF = SERVED_MODEST_BYTES / 2 };
    ebb_step step = begin(site);
    void *half = make(HALF, 1), *other = make(HALF, 2);
    bool is_scoped = is_of_a_scope(half);
    assert_true(is_of_a_scope(other) == is_scoped);
    assert_int_equal(here.scope->asked_bytes, SERVED_MODEST_BYTES);
    end(half, HALF, 1);
    end(other, HALF, 2);
    finish(step);
    return is_scoped;
}

/* As many bytes as are few, and one more. */
static void test_few_bytes_end_where_it_is_said(void **state) {
    for (unsigned i = 0; i < SERVED_MODEST_SCOPES; i++)
        assert_true(take_halves(*state));
    assert_false(take_halves(*state));
    assert_true(served_is_modest(served_of(*state)));
    ebb_step step = begin(*state);
    void *more = make(SERVED_MODEST_BYTES + 1, 3);
    assert_true(is_of_a_scope(more));
    end(more, SERVED_MODEST_BYTES + 1, 3);
    finish(step);
    assert_false(served_is_modest(served_of(*state)));
}

static void test_many_bytes_are_the_scopes_again(void **state) {
    become_modest(*state);
    assert_int_equal(take(*state, 30 * FEW), 30 - SERVED_MODEST_BYTES / FEW);
    assert_int_equal(take(*state, 30 * FEW), 30);
    become_modest(*state);
}

/* Once it has a step, all that comes is there. */
static void test_a_scope_is_not_of_two_minds(void **state) {
    become_modest(*state);
    ebb_step step = begin(*state);
    void *much = make(2 << 20, 1), *little = make(FEW, 2);
    assert_true(is_of_a_scope(much) && is_of_a_scope(little));
    end(much, 2 << 20, 1);
    void *next = make(FEW, 3);
    assert_true(is_of_a_scope(next));
    end(next, FEW, 3);
    end(little, FEW, 2);
    finish(step);
}

static void test_a_site_is_modest_by_itself(void **state) {
    ebb_site *other = SITE(.name = "other");
    become_modest(*state);
    assert_int_equal(take(other, FEW), 1);
    assert_int_equal(take(*state, FEW), 0);
    assert_int_equal(ebb_site_destroy(other), 0);
}

/* What the general heap served may survive like anything of its own. */
static void test_survivors_pin_nothing(void **state) {
    become_modest(*state);
    ebb_step step = begin(*state);
    void *kept = make(FEW, 1);
    finish(step);
    assert_int_equal(served_of(*state)->holding->pinned_bytes, 0);
    assert_int_equal(served_sum(served_of(*state), SERVED_SURVIVED_BLOCKS), 0);
    end(kept, FEW, 1);
}

/* A block that grows is asked for as well, wherever it lies. */
static void test_what_grows_is_counted(void **state) {
    for (unsigned modest = 0; modest < 2; modest++) {
        if (modest)
            become_modest(*state);
        for (unsigned i = 0; i < 20; i++) {
            ebb_step step = begin(*state);
            void *block = make(20000, i);
            assert_int_equal(is_of_a_scope(block), !modest || i);
            for (size_t bytes = 40000; bytes < 3 << 20; bytes *= 2)
                block = front_resize(block, bytes, NULL);
            assert_true(pattern_holds(block, 20000, i));
            assert_true(here.scope->asked_bytes > SERVED_MODEST_BYTES);
            front_free(block);
            finish(step);
            assert_false(served_is_modest(served_of(*state)));
        }
    }
}

/* A growth that nobody can have asks for nothing. */
static void test_what_is_refused_is_not_counted(void **state) {
    become_modest(*state);
    ebb_step step = begin(*state);
    void *block = make(FEW, 1);
    uint64_t asked = here.scope->asked_bytes;
    assert_null(front_resize(block, PTRDIFF_MAX, NULL));
    assert_int_equal(here.scope->asked_bytes, asked);
    end(block, FEW, 1);
    finish(step);
    assert_true(served_is_modest(served_of(*state)));
}

/* What another site's step has left in the pool goes, though no scope has a step any more. */
static void test_what_others_left_goes(void **state) {
    ebb_site *other = SITE(.name = "other");
    const struct ebb_pool *pool = heap_pool();
    become_modest(*state);
    ebb_step step = begin(other);
    end(make(32 << 20, 1), 32 << 20, 1);
    finish(step);
    size_t left = pool->pages.hot_bytes;
    assert_true(left > 16 << 20);
    for (unsigned i = 0; i < 3000 && pool->pages.hot_bytes > left / 4; i++)
        assert_int_equal(take(*state, FEW), 0);
    assert_true(pool->pages.hot_bytes <= left / 4);
    assert_int_equal(ebb_site_destroy(other), 0);
}

/* Pages that a busy thread is about to need do not go while it pauses for a moment. */
static void test_nothing_ages_by_force_while_scopes_come(void **state) {
    struct trim_idle idle = {0};
    for (unsigned look = 1; look <= 100; look++) {
        take(*state, FEW);
        assert_false(trim_when_idle(&idle, 250, 1000));
        assert_int_equal(idle.since_decay_ms, look * 250 % GENERAL_AGES_MS);
    }
    assert_false(trim_when_idle(&idle, 250, 1000));
    assert_int_equal(idle.since_decay_ms, 0);
}

static void test_a_thread_knows_its_lanes_of_several_sites(void **state) {
    ebb_site *sites[3];
    for (unsigned i = 0; i < 3; i++) { /* each of them has a hidden one */
        sites[i] = SITE(.name = "one of three");
        take(sites[i], FEW);
    }
    for (unsigned round = 0; round < 50; round++)
        for (unsigned i = 0; i < 3; i++)
            take(sites[i], FEW);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(bare_count(sites[i]) >= 45);
        assert_int_equal(ebb_site_destroy(sites[i]), 0);
    }
}

enum { THREADS = 3 * SERVED_SHARES, SCOPES = 50 };

static void *count(void *site) {
    for (unsigned i = 0; i < SCOPES; i++) {
        ebb_step step = begin(site);
        end(make(100, i), 100, i);
        finish(step);
    }
    return NULL;
}

/* Of more threads than there are shares. */
static void test_counts_are_exact(void **state) {
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, *state), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    const struct served *served = served_of(*state);
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(*state, &stats), 0);
    assert_int_equal(stats.steps, THREADS * SCOPES);
    assert_int_equal(served_sum(served, SERVED_SCOPES), THREADS * SCOPES);
    assert_int_equal(served_sum(served, SERVED_BLOCKS), THREADS * SCOPES);
    assert_int_equal(served_sum(served, SERVED_BYTES), THREADS * SCOPES * 112);
    assert_int_equal(served_sum(served, SERVED_OPEN), 0);
    assert_int_equal(served_sum(served, SERVED_OPEN_BYTES), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_few_bytes_are_the_general_heaps),
        SERVED(test_few_bytes_end_where_it_is_said),
        SERVED(test_many_bytes_are_the_scopes_again),
        SERVED(test_a_scope_is_not_of_two_minds),
        SERVED(test_a_site_is_modest_by_itself),
        SERVED(test_survivors_pin_nothing),
        SERVED(test_what_grows_is_counted),
        SERVED(test_what_is_refused_is_not_counted),
        SERVED(test_what_others_left_goes),
        SERVED(test_nothing_ages_by_force_while_scopes_come),
        SERVED(test_a_thread_knows_its_lanes_of_several_sites),
        SERVED(test_counts_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
