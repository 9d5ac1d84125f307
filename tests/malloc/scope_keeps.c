// SPDX-License-Identifier: Apache-2.0
/*
 * scope_keeps.c - pages that a thread's heap has for large blocks that outlived their scopes: not
 * much more than those need, in whichever order they go, and whatever the thread does then; and how
 * pages go that nobody needs.
 */
#include "region/keeper.h"
#include "malloc/scoped.h"

#include "base/os.h"
#include "malloc/general.h"
#include "malloc/options.h"
#include "malloc/resident.h"
#include "pool/pool.h"
#include "region/track.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Less than half of it, so that no look of its own takes it. */
static size_t clear_a_third(void) {
    size_t freed = 0;
    for (unsigned i = 0; i < COUNT; i += 3) {
        freed += is_of_a_scope(blocks[i]) ? BYTES - 2 * EBB_PAGE : 0;
        end(blocks[i], BYTES, i);
        blocks[i] = NULL;
    }
    return freed;
}

static void test_what_a_thread_that_rests_has_free_goes(void **state) {
    struct heap_cooling cooling = {.now_ms = 1, .least_ms = 10};
    fill(*state);
    size_t freed = clear_a_third();
    assert_true(freed > FEW);
    size_t kept = kept_by(here.heap);
    assert_true(heap_cool(&cooling));
    assert_int_equal(kept_by(here.heap), kept);
    cooling.now_ms += cooling.least_ms;
    assert_false(heap_cool(&cooling));
    assert_true(kept_by(here.heap) <= kept - freed);
    clear_rest();
}

static void *cool(void *unused) {
    struct heap_cooling cooling = {.trim = heap_begin_trim()};
    (void)unused;
    (void)heap_cool(&cooling);
    return NULL;
}

/* In the order of a fork, which comes in between. */
static void test_locks_of_pools_are_taken_before_that_of_heaps(void **state) {
    pthread_t cooler;
    fill(*state);
    (void)clear_a_third();
    pthread_mutex_lock(&heap_pool()->lock);
    assert_int_equal(pthread_create(&cooler, NULL, cool, NULL), 0);
    usleep(100000); /* it waits by then */
    alarm(60);
    heap_lock(true);
    alarm(0);
    heap_lock(false);
    pthread_mutex_unlock(&heap_pool()->lock);
    assert_int_equal(pthread_join(cooler, NULL), 0);
    clear_rest();
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

/* Pieces that are too short to be looked at otherwise, between blocks that stay. */
static void test_a_trim_takes_single_pages(void **unused) {
    enum { MANY = 100, SHORT = 3 * EBB_PAGE };
    void *places[MANY];
    (void)unused;
    ebb_region keeper = OPEN(.name = "keeper");
    for (unsigned i = 0; i < MANY; i++)
        places[i] = block_of(keeper, SHORT, EBB_PAGE);
    for (unsigned i = 0; i < MANY; i += 2)
        assert_int_equal(ebb_region_release(keeper, places[i]), 0);
    keeper_settle((struct region *)keeper.lane, true);
    assert_int_equal(stats_of(keeper).reserved.current, MANY / 2 * SHORT);
    assert_int_equal(ebb_check_pool(ebb_pool_default()), 0);
    assert_int_equal(ebb_region_close(keeper), 0);
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

/* Pages in which there is some of one of the blocks, which lie in the order of the list. */
static size_t pages_of(void *const *list, unsigned count, size_t bytes) {
    size_t pages = 0;
    uintptr_t behind = 0; /* the last page that was counted */
    for (unsigned i = 0; i < count; i++) {
        uintptr_t from = (uintptr_t)list[i] / EBB_PAGE;
        uintptr_t to = ((uintptr_t)list[i] + bytes - 1) / EBB_PAGE + 1;
        pages += to - size_larger(from, size_smaller(behind, to));
        behind = to;
    }
    return pages;
}

/* A gap of less than two pages may have one, or none, and says nothing of the others. */
static void test_a_trim_takes_each_page_among_gaps_that_have_none(void **unused) {
    enum { MANY = 500, GAP = 7168, SHORT = 1088 };
    static void *gaps[MANY], *places[MANY];
    (void)unused;
    ebb_region keeper = OPEN(.name = "keeper");
    for (unsigned i = 0; i < MANY; i++) {
        gaps[i] = block_of(keeper, GAP, 64);
        places[i] = block_of(keeper, SHORT, 64);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(ebb_region_release(keeper, gaps[i]), 0);
    keeper_settle((struct region *)keeper.lane, true);
    assert_int_equal(stats_of(keeper).reserved.current, pages_of(places, MANY, SHORT) * EBB_PAGE);
    assert_int_equal(ebb_check_pool(ebb_pool_default()), 0);
    assert_int_equal(ebb_region_close(keeper), 0);
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
        heap_tidy_left();
        assert_true(kept_by(ender.heap) <= 16 << 10);
    }
}

/* ---- whose they are ---- */

/* Neither of the scope, planned or not, nor of what outlived it. */
static void test_the_program_is_led_to_no_region_of_theirs(void **state) {
    for (unsigned round = 0; round < 8; round++) { /* the later ones by plan */
        ebb_step step = begin(*state);
        void *block = make(BYTES, round), *dies = make(BYTES, 7);
        assert_true(range_holds((uintptr_t)block));
        assert_refused(ebb_region_release(ebb_region_of(block), block), EBB_E_STALE);
        assert_refused(ebb_region_release(ebb_region_of(dies), dies), EBB_E_STALE);
        end(dies, BYTES, 7);
        finish(step);
        assert_refused(ebb_region_release(ebb_region_of(block), block), EBB_E_STALE);
        end(block, BYTES, round);
    }
}

/* ---- what cannot be ---- */

static void grow(void *place, const char *text) {
    void **block = place;
    (void)text;
    *block = front_resize(*block, 3 * MIB, NULL);
}

/* A block that cannot grow where it is is no failure of the call that has the handler called. */
static void test_a_handler_may_grow_a_block_while_a_call_fails(void **state) {
    ebb_region root = OPEN(.limit_bytes = 96 << 10), child = OPEN(.parent = root);
    struct ebb_survivor survivor = survivor_of(block_of(child, 60 << 10, 64), EBB_PROMOTE_COPY);
    ebb_step step = begin(*state);
    void *block = make(9000, 1), *beside = make(9000, 2), *before = block;
    ebb_report_on_exhausted(grow, &block);
    assert_refused(ebb_promote(child, root, &survivor, 1, NULL), EBB_E_REGION_LIMIT);
    ebb_report_on_exhausted(NULL, NULL);
    assert_true(block != before && front_usable(block) >= 3 * MIB);
    end(block, 9000, 1);
    end(beside, 9000, 2);
    finish(step);
    assert_int_equal(ebb_region_close(root), 0);
}

enum { PLANNED = 40, UNTIL_DUE = 12 };

static void expect_no_object(ebb_region region, void *block) {
    assert_false(ebb_region_is_open(ebb_object_owner(block)));
    assert_refused(ebb_last_error(), EBB_E_FOREIGN);
    assert_false(ebb_region_owns(region, block));
    assert_no_block(ebb_object_as(block, &ebb_type_tensor), EBB_E_FOREIGN);
    assert_refused(ebb_object_end(block), EBB_E_FOREIGN);
}

/* Another thread may ask while the scope's own goes along the plan, so nothing is settled there. */
static void test_questions_about_objects_change_no_scope(void **state) {
    void *planned[PLANNED], *kept = make(BYTES, 3);
    for (unsigned round = 0; round < UNTIL_DUE; round++) {
        ebb_step step = begin(*state);
        for (unsigned i = 0; i < PLANNED; i++)
            planned[i] = make(20000 + 64 * i, i);
        const struct region *region = (struct region *)here.scope->step.region.lane;
        bool is_due = region->track && region->track->due.on;
        assert_true(is_due || EBB_POISON || round < UNTIL_DUE - 1);
        expect_no_object(step.region, planned[round]);
        expect_no_object(step.region, (char *)planned[round] + 64);
        expect_no_object(step.region, planned[0]);
        expect_no_object(step.region, kept);
        assert_int_equal(is_due, region->track && region->track->due.on);
        front_free(kept);
        kept = planned[0];
        for (unsigned i = 1; i < PLANNED; i++)
            end(planned[i], 20000 + 64 * i, i);
        finish(step);
    }
    front_free(kept);
}

/* ---- how they go ---- */

enum { LOOK_NS = 1000000 };

static uint64_t (*true_now_ns)(void);
static __thread unsigned asked; /* 0: this thread has the true time */

/* Each time that it is asked for, a tenth of a look has gone by. */
static uint64_t pass_ns(void) {
    return asked ? (uint64_t)asked++ * (LOOK_NS / 10) : true_now_ns();
}

struct rester {
    ebb_site *site;
    sem_t rests, wakes;
};

static void *fill_and_rest(void *context) {
    struct rester *rester = context;
    fill(rester->site);
    sem_post(&rester->rests);
    while (sem_wait(&rester->wakes) != 0)
        continue;
    return NULL;
}

/* It does not even walk through what it is too late for, and comes to all of it in the end. */
static void test_a_look_at_what_others_have_freed_ends_in_time(void **state) {
    struct rester rester = {.site = *state};
    struct heap_cooling cooling = {.limit_ns = LOOK_NS};
    pthread_t thread;
    unsigned looks = 0, longest = 0;
    sem_init(&rester.rests, 0, 0);
    sem_init(&rester.wakes, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, fill_and_rest, &rester), 0);
    while (sem_wait(&rester.rests) != 0)
        continue;
    clear(2, 0);
    for (bool is_left = true; is_left; looks++) {
        asked = 1;
        is_left = heap_cool(&cooling);
        longest = asked > longest ? asked : longest;
    }
    asked = 0;
    printf("# %u looks, the time asked for %u times at most\n", looks, longest);
    assert_true(longest < 50);
    sem_post(&rester.wakes);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Of many blocks there is much bookkeeping, more than one look has time for; pages or not. */
static void test_looks_in_idle_time_take_bookkeeping_too(void **state) {
    enum { MANY = 20000, TICK_MS = 20000, LOOKS = 10000 };
    static void *many[MANY];
    struct trim_idle idle = {0};
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < MANY; i++)
        many[i] = front_alloc(9000, NULL);
    for (unsigned i = 0; i < MANY; i++)
        front_free(many[i]);
    finish(step);
    struct ebb_pool *pool = heap_pool();
    pthread_mutex_lock(&pool->lock);
    assert_true(pool_give_all_locked(pool));
    pthread_mutex_unlock(&pool->lock);
    bool was_left = pool_bookkeeping_is_left(), is_done = false;
    unsigned looks = 0;
    while (!is_done && looks++ < LOOKS) {
        asked = 1;
        is_done = trim_when_idle(&idle, TICK_MS, 0);
    }
    asked = 0;
    printf("# %u looks\n", looks);
    assert_true(was_left && looks > 2 && is_done);
    assert_false(pool_bookkeeping_is_left());
}

static uint64_t stopped_ns;
static size_t (*true_resident)(void *addr, size_t bytes);

static uint64_t late_ns(void) {
    return true_now_ns() + stopped_ns;
}

static size_t stop_for_an_hour(void *addr, size_t bytes) {
    stopped_ns += 3600000000000;
    return true_resident(addr, bytes);
}

static void test_a_process_that_is_stopped_as_it_asks_asks_again_soon(void **state) {
    enum { MUCH = 16 << 20 };
    ebb_step step = begin(*state);
    void *few = make(BYTES, 1);
    true_resident = os.resident;
    os.resident = stop_for_an_hour;
    os.now_ns = late_ns;
    size_t before = resident_large();
    os.resident = true_resident;
    void *much = make(MUCH, 2);
    stopped_ns += 60000000000;
    size_t after = resident_large();
    os.now_ns = pass_ns;
    assert_true(stopped_ns > 3600000000000);
    assert_in_range(after, before + MUCH / 2, before + 2 * MUCH);
    end(few, BYTES, 1);
    end(much, MUCH, 2);
    finish(step);
}

/* As pages go in a free(), which leaves errno alone. */
static void test_pages_that_are_locked_are_refused_silently(void **unused) {
    size_t bytes = 32 << 10;
    (void)unused;
    char *block = je_malloc(bytes);
    assert_non_null(block);
    if (mlock(block, bytes) != 0)
        skip();
    je_free(block);
    errno = 77;
    general_trim();
    assert_int_equal(errno, 77);
    assert_int_equal(munlock(block, bytes), 0);
}

int main(void) {
    true_now_ns = os.now_ns;
    os.now_ns = pass_ns; /* before there is another thread */
    options.idle_ms = 0; /* the tests alone trim */
    const struct CMUnitTest tests[] = {
        SERVED(test_scopes_of_small_blocks_look_for_what_is_free),
        SERVED(test_a_thread_that_only_frees_keeps_little),
        SERVED(test_a_few_large_ones_are_as_much),
        SERVED(test_a_large_one_after_each_scope_keeps_its_place),
        SERVED(test_what_a_thread_that_rests_has_free_goes),
        SERVED(test_locks_of_pools_are_taken_before_that_of_heaps),
        SERVED(test_a_trim_takes_all_of_it),
        cmocka_unit_test(test_a_trim_takes_single_pages),
        cmocka_unit_test(test_a_trim_takes_each_page_among_gaps_that_have_none),
        SERVED(test_a_thread_that_has_ended_keeps_nothing),
        SERVED(test_the_program_is_led_to_no_region_of_theirs),
        SERVED(test_a_handler_may_grow_a_block_while_a_call_fails),
        SERVED(test_questions_about_objects_change_no_scope),
        SERVED(test_a_look_at_what_others_have_freed_ends_in_time),
        SERVED(test_looks_in_idle_time_take_bookkeeping_too),
        SERVED(test_a_process_that_is_stopped_as_it_asks_asks_again_soon),
        cmocka_unit_test(test_pages_that_are_locked_are_refused_silently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
