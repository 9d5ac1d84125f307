// SPDX-License-Identifier: Apache-2.0
/*
 * scope_counts.c - what a scope counts of its small blocks: what is left of them when it ends is
 * pinned, and nothing else, whichever way the others went. See scope_threads.c for other threads.
 */
#include "malloc/scoped.h"

#include "malloc/scope.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes of the innermost scope's small blocks that are not freed, as placed. */
static uint64_t left_in_scope(void) {
    return here.scope->bytes - here.scope->freed_bytes;
}

static void test_every_free_is_counted(void **state) {
    ebb_step step = begin(*state);
    void *first = make(100, 1), *second = make(200, 2), *last = make(300, 3);
    assert_int_equal(left_in_scope(), 112 + 208 + 320);
    end(last, 300, 3); /* the place is bumped again */
    assert_int_equal(left_in_scope(), 112 + 208);
    end(first, 100, 1); /* and this one kept */
    assert_int_equal(left_in_scope(), 208);
    first = make(100, 4);
    front_free_sized(second, 200);
    assert_int_equal(left_in_scope(), 112);
    end(first, 100, 4);
    front_free(front_alloc_aligned(100, 64, NULL));
    assert_int_equal(left_in_scope(), 0);
    finish(step);
    assert_int_equal(tray_read_pinned().trays, 0);
}

/* One that grew or shrank where it is, and goes, is not taken for another that stays. */
static void test_resizing_is_counted(void **state) {
    static const size_t sizes_to[][2] = {{24, 56}, {24, 24}, {56, 24}, {8000, 24}, {24, 8000}};
    for (unsigned i = 0; i < sizeof sizes_to / sizeof *sizes_to; i++)
        for (unsigned stays = 0; stays < 2; stays++) {
            size_t from = sizes_to[i][0], to = sizes_to[i][1];
            size_t bytes = (to == from ? 64 : to > from ? to - from : from - to) - 8;
            void *caller = (void *)(uintptr_t)((i + 1) * 4096); /* or it is known to survive */
            ebb_step step = begin(*state);
            void *kept = front_alloc(bytes, caller), *resized = front_alloc(from, caller);
            pattern_fill(kept, bytes, 1);
            assert_ptr_equal(front_resize(resized, to, NULL), resized);
            assert_int_equal(left_in_scope(), front_usable(kept) + front_usable(resized) + 16);
            front_free(resized);
            assert_int_equal(left_in_scope(), front_usable(kept) + 8);
            if (!stays)
                end(kept, bytes, 1);
            finish(step);
            assert_int_equal(tray_read_pinned().trays, stays);
            if (stays)
                end(kept, bytes, 1);
            assert_int_equal(tray_read_pinned().trays, 0);
        }
}

static void test_frees_are_counted_by_the_blocks_scope(void **state) {
    ebb_step outer = begin(*state);
    void *first = make(100, 1), *second = make(100, 2);
    struct scope *scope = here.scope;
    ebb_step inner = begin(*state);
    void *third = make(50, 3);
    end(first, 100, 1);
    assert_int_equal(scope->bytes - scope->freed_bytes, 112);
    assert_int_equal(left_in_scope(), 64);
    assert_true(front_resize(second, 90, NULL) == second); /* not this scope's to bump */
    assert_int_equal(scope->bytes - scope->freed_bytes, 112);
    finish(inner);
    assert_int_equal(tray_read_pinned().blocks, 1);
    assert_int_equal(tray_read_pinned().live, 64);
    finish(outer);
    assert_int_equal(tray_read_pinned().blocks, 2);
    assert_int_equal(tray_read_pinned().live, 64 + 112);
    end(second, 90, 2);
    end(third, 50, 3);
}

/* In whichever of many trays it is. */
static void test_one_survivor_of_many_trays(void **state) {
    enum { MANY = 40 * 64 }; /* 64 blocks fill a tray */
    static void *blocks[MANY];
    for (unsigned stays = 0; stays < MANY; stays += 319) {
        ebb_step step = begin(*state);
        for (unsigned i = 0; i < MANY; i++)
            blocks[i] = front_alloc(1000, (void *)(uintptr_t)(stays * 4096));
        for (unsigned i = 0; i < MANY; i++)
            if (i != stays)
                front_free(blocks[i]);
        pattern_fill(blocks[stays], 1000, stays);
        finish(step);
        assert_int_equal(tray_read_pinned().trays, 1);
        assert_int_equal(tray_read_pinned().blocks, 1);
        end(blocks[stays], 1000, stays);
        assert_int_equal(tray_read_pinned().trays, 0);
    }
}

/* What was freed serves an aligned request only if it lies right. */
static void test_aligned_blocks_are_used_again(void **state) {
    for (size_t align = 32; align <= 4096; align *= 2)
        for (size_t bytes = 40; bytes < 4000; bytes *= 3) {
            ebb_step step = begin(*state);
            void *plain[8], *fence;
            for (unsigned i = 0; i < 8; i++)
                plain[i] = make(bytes, i);
            fence = make(1, 9);
            for (unsigned i = 0; i < 8; i++) {
                end(plain[i], bytes, i);
                plain[i] = front_alloc_aligned(bytes, align, NULL);
                assert_int_equal((uintptr_t)plain[i] % align, 0);
                pattern_fill(plain[i], bytes, i);
            }
            void *last = make(1, 10);
            for (unsigned i = 0; i < 8; i++) {
                end(plain[i], bytes, i);
                assert_ptr_equal(front_alloc_aligned(bytes, align, NULL), plain[i]);
                pattern_fill(plain[i], bytes, i);
            }
            for (unsigned i = 0; i < 8; i++)
                end(plain[i], bytes, i);
            end(fence, 1, 9);
            end(last, 1, 10);
            assert_int_equal(left_in_scope(), 0);
            finish(step);
            assert_int_equal(tray_read_pinned().trays, 0);
        }
}

/* What a bump skipped for an alignment is no block, and hides none behind it. */
static void test_gaps_are_no_survivors(void **state) {
    for (size_t align = 32; align <= 4096; align *= 2)
        for (unsigned inline_first = 0; inline_first < 2; inline_first++) {
            void *caller = (void *)(uintptr_t)(align * 4096 + inline_first);
            ebb_step step = begin(*state);
            if (inline_first)
                front_free(make(1, 1)); /* there is a tray */
            void *first = front_alloc_aligned(100, align, caller), *between = make(40, 2);
            void *second = front_alloc_aligned(100, align, caller);
            pattern_fill(second, 100, 3);
            end(between, 40, 2);
            front_free(first);
            finish(step);
            assert_int_equal(tray_read_pinned().blocks, 1);
            assert_int_equal(tray_read_pinned().live, 112);
            end(second, 100, 3);
            assert_int_equal(tray_read_pinned().trays, 0);
        }
}

/* One whose sizes change: what was freed serves none of those that come. */
static void test_a_scope_of_ever_other_sizes_stays_dense(void **state) {
    enum { CLASSES = 500, EACH = 64 };
    void *blocks[EACH];
    ebb_step step = begin(*state);
    for (size_t class = 1; class <= CLASSES; class++) {
        for (unsigned i = 0; i < EACH; i++)
            blocks[i] = front_alloc(class * 16, NULL);
        for (unsigned i = 0; i < EACH; i++)
            front_free(blocks[i]);
        front_free(make(8, 1)); /* bumped, between them */
    }
    assert_false(here.scope->plain);
    assert_true(here.scope->trays <= 128);
    finish(step);
}

/* One that is known to survive lies in no page of the scope's step. */
static void test_large_blocks_that_will_survive_are_counted(void **state) {
    enum { BYTES = 10 << 20, ROUNDS = 100 };
    const struct served *served = served_of(*state);
    const struct holding *holding = served->holding;
    void *kept = NULL;
    bool is_known = false;
    for (unsigned i = 0; i < ROUNDS; i++) {
        ebb_step step = begin(*state);
        const struct scope *scope = here.scope;
        void *block = make(BYTES, i), *other = make(100000, i);
        assert_true(served_sum(served, SERVED_OPEN_BYTES) >= BYTES + 100000);
        is_known = scope->tenured_bytes != 0;
        if (is_known) {
            assert_true(front_resize(block, BYTES / 2, NULL) == block);
            assert_int_equal(scope->tenured_bytes, BYTES / 2);
        }
        end(other, 100000, i);
        if (kept)
            front_free(kept);
        kept = block;
        if (i == ROUNDS - 1) { /* it goes before the end, after all */
            front_free(kept);
            assert_int_equal(scope->tenured_bytes, 0);
        }
        finish(step);
        assert_int_equal(served_sum(served, SERVED_OPEN_BYTES), 0);
    }
    assert_true(is_known);
    assert_int_equal(holding->pinned_bytes, 0);
    assert_int_equal(holding->shares, 1);
}

struct turn {
    ebb_step step;
    void *outside, *inside;
    int left, entered;
};

static int give_up_the_thread(void *data) {
    struct turn *turn = data;
    turn->left = ebb_scope_leave(turn->step);
    turn->outside = make(64, 1);
    turn->entered = ebb_scope_enter(turn->step);
    turn->inside = make(64, 2);
    return 0;
}

/* Nothing ends the step meanwhile, but its scope is another matter. */
static void test_a_cleanup_leaves_and_enters_a_scope(void **state) {
    struct turn turn = {.step = begin(*state)};
    struct ebb_cleanup node = {.run = give_up_the_thread, .data = &turn};
    ebb_region child = ebb_region_open(EBB_REGION_OPTIONS(.parent = turn.step.region));
    assert_int_equal(ebb_cleanup_add(child, &node), 0);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(turn.left, 0);
    assert_int_equal(turn.entered, 0);
    assert_false(is_of_a_scope(turn.outside));
    assert_true(is_of_a_scope(turn.inside));
    end(turn.outside, 64, 1);
    end(turn.inside, 64, 2);
    finish(turn.step);
}

/* No other scope of the thread need end before. */
static void test_a_stuck_scope_ends_with_its_site(void **state) {
    enum { LARGE = 8000 };
    static void *large[LARGE];
    bool (*allow)(enum os_acquisition) = os.allow;
    ebb_site *brief = SITE(.name = "brief");
    ebb_step step = begin(brief);
    for (unsigned i = 0; i < LARGE; i++)
        large[i] = make(10000, i);
    finish_without_memory(step);
    assert_non_null(here.heap->stuck);
    os.allow = allow_nothing;
    assert_refused(ebb_site_destroy(brief), EBB_E_BUSY);
    os.allow = allow;
    assert_int_equal(ebb_site_destroy(brief), 0);
    assert_null(here.heap->stuck);
    for (unsigned i = 0; i < LARGE; i++)
        end(large[i], 10000, i);
}

/* Only its large blocks wait for memory: a tray has gone, or is pinned. */
static void test_a_stuck_scope_has_no_trays(void **state) {
    enum { SMALL = 100, LARGE = 1000 };
    static void *small[SMALL], *large[LARGE];
    const struct served *served = served_of(*state);
    const struct holding *holding = served->holding;
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < SMALL; i++)
        small[i] = make(1000, i);
    for (unsigned i = 0; i < LARGE; i++)
        large[i] = make(40000, i);
    for (unsigned i = 1; i < SMALL; i++)
        end(small[i], 1000, i);
    uint64_t pages = ((const struct region *)here.scope->step.region.lane)->reserved.current;
    assert_int_equal(here.scope->trays, 2);
    assert_int_equal(served_sum(served, SERVED_OPEN_BYTES), pages + 2 * TRAY_BYTES);
    finish_without_memory(step);
    assert_non_null(here.heap->stuck);
    assert_int_equal(served_sum(served, SERVED_OPEN_BYTES), pages);
    assert_int_equal(holding->pinned_bytes, TRAY_BYTES);
    finish(begin(*state)); /* it is tried again */
    assert_null(here.heap->stuck);
    assert_int_equal(served_sum(served, SERVED_OPEN_BYTES), 0);
    end(small[0], 1000, 0);
    assert_int_equal(holding->pinned_bytes, LARGE * front_usable(large[0]));
    for (unsigned i = 0; i < LARGE; i++)
        end(large[i], 40000, i);
    assert_int_equal(holding->pinned_bytes, 0);
    assert_int_equal(holding->shares, 1);
}

static int end_of(pid_t child) {
    int status = 0;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Blocks are counted by their heads: one that was overwritten is not believed. */
static void test_an_overwritten_head_ends_the_process(void **state) {
    static const uint32_t marks[] = {0, 0x41414141, TRAY_LIVE, TRAY_LIVE + 8, TRAY_LIVE + 0xfff0};
    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(STDERR_FILENO); /* it says so there */
            ebb_step step = ebb_step_begin(*state, 0);
            char *block = front_alloc(100, NULL), *next = front_alloc(100, NULL);
            assert_ptr_equal(block + front_usable(block) + 8, next);
            tray_head_of(next)->mark = marks[i];
            _exit(ebb_step_end(step) == 0 ? 0 : 1);
        }
        assert_int_equal(end_of(child), SIGABRT);
    }
}

/* Though its head has gone with its page. */
static void test_who_frees_twice_what_is_gone_ends_the_process(void **state) {
    enum { MANY = 200 };
    void *blocks[MANY];
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < MANY; i++)
        blocks[i] = make(200, i);
    for (unsigned i = 1; i < MANY; i++)
        end(blocks[i], 200, i);
    finish(step);
    trim_all();
    assert_true(tray_read_pinned().bytes <= TRAY_BYTES / 2);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(STDERR_FILENO); /* it says so there */
        front_free(blocks[MANY / 2]);
        _exit(0);
    }
    assert_int_equal(end_of(child), SIGABRT);
    end(blocks[0], 200, 0);
}

/* Only lists that may have a block are cleared: not those of all sizes that ever were freed. */
static void test_a_sweep_forgets_sizes_of_which_nothing_is_left(void **state) {
    enum { LARGEST = 8000, COUNT = 6 * 7, OTHER = 2000 }; /* 7 fill a tray */
    void *blocks[COUNT];
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < COUNT; i++)
        blocks[i] = make(LARGEST, i);
    void *other = make(OTHER, 1), *last = make(24, 2); /* in a tray of their own */
    for (unsigned i = 0; i < COUNT; i++)
        end(blocks[i], LARGEST, i);
    assert_true(here.scope->freed_steps >= LARGEST);
    scope_sweep_wholly(here.scope);
    assert_int_equal(here.scope->trays, 1);
    assert_int_equal(here.scope->freed_steps, 0);
    end(other, OTHER, 1);
    assert_in_range(here.scope->freed_steps, OTHER, OTHER + 16);
    end(last, 24, 2);
    finish(step);
}

enum { NESTED = 1000, SPARES_MOST = 32 }; /* records that wait beside those in use */

/* Of scopes that are open as many records may wait as there are, and some. */
static void nest_scopes(ebb_site *site) {
    static ebb_step steps[NESTED];
    const struct heap *heap = NULL;
    for (unsigned i = 0; i < NESTED; i++) {
        steps[i] = begin(site);
        heap = here.heap;
        assert_int_equal(heap->opens, i + 1);
    }
    for (unsigned i = NESTED; i-- > 0;) {
        finish(steps[i]);
        assert_int_equal(heap->opens, i);
        assert_true(heap->spares <= i + SPARES_MOST);
    }
}

static void test_records_of_scopes_wait_for_the_next_and_go(void **state) {
    for (unsigned i = 0; i < 2; i++)
        nest_scopes(*state);
    assert_true(here.heap->spares <= SPARES_MOST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_every_free_is_counted),
        SERVED(test_resizing_is_counted),
        SERVED(test_frees_are_counted_by_the_blocks_scope),
        SERVED(test_one_survivor_of_many_trays),
        SERVED(test_aligned_blocks_are_used_again),
        SERVED(test_gaps_are_no_survivors),
        SERVED(test_a_scope_of_ever_other_sizes_stays_dense),
        SERVED(test_large_blocks_that_will_survive_are_counted),
        SERVED(test_a_cleanup_leaves_and_enters_a_scope),
        SERVED(test_a_stuck_scope_has_no_trays),
        SERVED(test_a_stuck_scope_ends_with_its_site),
        SERVED(test_an_overwritten_head_ends_the_process),
        SERVED(test_who_frees_twice_what_is_gone_ends_the_process),
        SERVED(test_a_sweep_forgets_sizes_of_which_nothing_is_left),
        SERVED(test_records_of_scopes_wait_for_the_next_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
