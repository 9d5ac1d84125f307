// SPDX-License-Identifier: Apache-2.0
/*
 * scope_keeps.c - pages that a thread's heap has for large blocks that outlived their scopes: not
 * much more than those need, in whichever order they go, and whatever the thread does then.
 */
#include "malloc/scoped.h"

#include <pthread.h>

enum { COUNT = 1000, BYTES = 40000, STEP = 7919, FEW = 2 << 20 };

static void *blocks[COUNT];

/* A cache that grows, an entry in each scope. */
static void fill(ebb_site *site) {
    for (unsigned i = 0; i < COUNT; i++) {
        ebb_step step = begin(site);
        blocks[i] = make(BYTES, i);
        finish(step);
    }
}

/* All but each `pins`th go, 0: all; in the order in which they came, backwards, or mixed. */
static size_t clear(unsigned order, unsigned pins) {
    size_t left = 0;
    for (unsigned k = 0; k < COUNT; k++) {
        unsigned i = order == 0 ? k : order == 1 ? COUNT - 1 - k : k * STEP % COUNT;
        if (pins && i % pins == 0) {
            left += BYTES;
            continue;
        }
        end(blocks[i], BYTES, i);
        blocks[i] = NULL;
    }
    return left;
}

static void clear_rest(void) {
    for (unsigned i = 0; i < COUNT; i++)
        if (blocks[i])
            end(blocks[i], BYTES, i);
}

static size_t kept_by(const struct heap *heap) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_region_read_stats(heap->keeper, &stats), 0);
    assert_int_equal(ebb_check_pool(heap_pool()), 0);
    return stats.reserved.current;
}

static void test_scopes_of_small_blocks_look_for_what_is_free(void **state) {
    for (unsigned order = 0; order < 3; order++)
        for (unsigned pins = 0; pins <= 10; pins += 5) {
            fill(*state);
            size_t left = clear(order, pins);
            for (unsigned i = 0; i < 1000; i++) {
                ebb_step step = begin(*state);
                end(make(100, i), 100, i);
                finish(step);
            }
            assert_true(kept_by(here.heap) <= 2 * left + FEW);
            clear_rest();
        }
}

static void test_a_thread_that_only_frees_keeps_little(void **state) {
    for (unsigned order = 0; order < 3; order++)
        for (unsigned pins = 0; pins <= 10; pins += 5) {
            fill(*state);
            size_t left = clear(order, pins);
            assert_true(kept_by(here.heap) <= 2 * left + 2 * FEW);
            clear_rest();
        }
}

enum { TENTH = COUNT / 10, LONG = 300, LARGE = 16 << 20 };

/* A few that are large, in one go; once more after many scopes. */
static void test_a_few_large_ones_are_as_much(void **state) {
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < LONG; i++) {
            ebb_step step = begin(*state);
            blocks[i] = front_alloc(i < TENTH / 10 ? LARGE : 100, NULL);
            finish(step);
        }
        for (unsigned i = 0; i < LONG; i++)
            front_free(blocks[i]);
        assert_true(kept_by(here.heap) <= FEW);
        memset(blocks, 0, sizeof blocks);
    }
}

/* Its place would have to be found each time. */
static void test_a_large_one_after_each_scope_keeps_its_place(void **state) {
    unsigned given = 0;
    for (unsigned i = 0; i < LONG; i++) {
        ebb_step step = begin(*state);
        void *block = front_alloc(LARGE, NULL);
        finish(step);
        front_free(block);
        given += kept_by(here.heap) < LARGE;
    }
    assert_true(given <= LONG / 16);
}

static void test_a_trim_takes_all_of_it(void **state) {
    fill(*state);
    size_t left = clear(2, 5);
    trim_all();
    assert_true(kept_by(here.heap) <= left + COUNT / 5 * 2 * EBB_PAGE);
    clear_rest();
    trim_all();
    assert_true(kept_by(here.heap) <= 16 << 10);
}

struct ender {
    ebb_site *site;
    struct heap *heap;
    bool clears;
};

static void *fill_and_end(void *context) {
    struct ender *ender = context;
    fill(ender->site);
    ender->heap = here.heap;
    if (ender->clears)
        clear(2, 0);
    return NULL;
}

/* The tender may be at the same: until then it has the heap. */
static void await_tidied(struct heap *heap) {
    bool is_taken;
    do {
        heap_tidy_left();
        heap_lock(true);
        is_taken = heap->is_taken || atomic_load(&heap->handed_in);
        heap_lock(false);
    } while (is_taken);
}

/* Whoever frees them. */
static void test_a_thread_that_has_ended_keeps_nothing(void **state) {
    for (unsigned clears = 0; clears < 2; clears++) {
        struct ender ender = {.site = *state, .clears = clears};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, fill_and_end, &ender), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (!clears)
            clear(2, 0);
        await_tidied(ender.heap);
        assert_true(kept_by(ender.heap) <= 16 << 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_scopes_of_small_blocks_look_for_what_is_free),
        SERVED(test_a_thread_that_only_frees_keeps_little),
        SERVED(test_a_few_large_ones_are_as_much),
        SERVED(test_a_large_one_after_each_scope_keeps_its_place),
        SERVED(test_a_trim_takes_all_of_it),
        SERVED(test_a_thread_that_has_ended_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
