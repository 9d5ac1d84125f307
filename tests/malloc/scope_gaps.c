// SPDX-License-Identifier: Apache-2.0
/*
 * scope_gaps.c - looks at parked scopes end, however many gaps there are: each does a part, and the
 * next one goes on there. Each gap comes once, each scope has its turn, and an owner gets in.
 */
#include "scoped.h"

#include "base/os.h"
#include "region/region.h"
#include "region/track.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define MIB ((size_t)1 << 20)

/* ---- what is given back ---- */

enum { RANGES = 4096 };

static int (*true_give_back)(void *addr, size_t bytes);
static struct { uintptr_t addr; size_t bytes; } ranges[RANGES];
static unsigned range_count;
static uintptr_t refused; /* what begins here stays */

static int note_range(void *addr, size_t bytes) {
    if ((uintptr_t)addr == refused)
        return -1;
    ranges[range_count].addr = (uintptr_t)addr;
    ranges[range_count++].bytes = bytes;
    return true_give_back(addr, bytes);
}

static size_t sum_of_ranges(void) {
    size_t sum = 0;
    for (unsigned i = 0; i < range_count; i++) {
        sum += ranges[i].bytes;
        for (unsigned j = 0; j < i; j++)
            assert_true(ranges[i].addr - ranges[j].addr >= ranges[j].bytes &&
                        ranges[j].addr - ranges[i].addr >= ranges[i].bytes);
    }
    return sum;
}

/* Each look is late from the first: it does one part. How many looks it took. */
static unsigned cool_bit_by_bit(size_t *given, unsigned most) {
    struct heap_cooling cooling = {.limit_ns = 1};
    unsigned looks = 1;
    range_count = 0;
    os.give_back = note_range;
    while (heap_cool(&cooling) && looks < most)
        looks++;
    os.give_back = true_give_back;
    *given = cooling.given;
    return looks;
}

/* ---- many gaps ---- */

enum { BLOCKS = 2000, BYTES = 9000 };

static void make_gaps(void **blocks, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        assert_non_null(blocks[i] = front_alloc(BYTES, NULL));
    for (unsigned i = 1; i < count; i += 2)
        front_free(blocks[i]);
}

static void end_rest(void **blocks, unsigned count) {
    for (unsigned i = 0; i < count; i += 2)
        front_free(blocks[i]);
}

static void test_each_gap_comes_once_though_each_look_is_late(void **state) {
    static void *blocks[BLOCKS];
    size_t given, before = heap_cooled_bytes();
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = make(BYTES, i);
    for (unsigned i = 1; i < BLOCKS; i += 2)
        end(blocks[i], BYTES, i);
    assert_int_equal(ebb_scope_leave(step), 0);
    unsigned looks = cool_bit_by_bit(&given, BLOCKS * 4);
    printf("# %u looks\n", looks);
    assert_true(looks < BLOCKS * 4);
    assert_true(given >= BLOCKS / 2 * EBB_PAGE);
    assert_true(heap_cooled_bytes() - before >= given);
    assert_true(sum_of_ranges() >= given);
    for (unsigned i = 0; i < BLOCKS; i += 2)
        assert_true(pattern_holds(blocks[i], BYTES, i));
    assert_int_equal(ebb_scope_enter(step), 0);
    end_rest(blocks, BLOCKS);
    assert_int_equal(heap_cooled_bytes(), before);
    finish(step);
}

enum { PLANNED = 40, SLOTS = 48 }; /* so many that a step may go along a table (due.c) */

static size_t slot_bytes(unsigned slot) {
    return 100000 + slot * 5000;
}

static void fill_slots(void **blocks) {
    for (unsigned i = 0; i < SLOTS; i++)
        blocks[i] = make(slot_bytes(i), i);
    for (unsigned i = 0; i < SLOTS; i++)
        if (i % 3)
            end(blocks[i], slot_bytes(i), i);
}

static void expect_only_gaps_gone(void **blocks) {
    for (unsigned i = 0; i < SLOTS; i++) {
        void *page = (void *)size_align((uintptr_t)blocks[i], EBB_PAGE);
        if (i % 3)
            assert_int_equal(os.resident(page, 90000), 0);
        else
            assert_true(pattern_holds(blocks[i], slot_bytes(i), i));
    }
}

static const struct due *due_of(const struct scope *scope) {
    const struct region *region = (const struct region *)scope->step.region.lane;
    return region->track ? &region->track->due : NULL;
}

/* In the arena of a plan, too; and while a step goes along a table, with no slot marked. */
static void test_each_gap_of_a_plan_comes_once(void **state) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    unsigned along = 0;
    for (unsigned round = 0; round < PLANNED; round++) {
        void *blocks[SLOTS];
        size_t given;
        ebb_step step = begin(*state);
        const struct scope *scope = here.scope;
        fill_slots(blocks);
        assert_int_equal(ebb_scope_leave(step), 0);
        const struct due *due = due_of(scope);
        along += due && due->on;
        assert_true(cool_bit_by_bit(&given, 1000) < 1000);
        assert_true(given >= 2 * MIB);
        assert_true(sum_of_ranges() >= given);
        expect_only_gaps_gone(blocks);
        assert_int_equal(ebb_scope_enter(step), 0);
        for (unsigned i = 0; i < SLOTS; i += 3)
            end(blocks[i], slot_bytes(i), i);
        finish(step);
    }
    assert_int_equal(ebb_site_read_stats(served_of(*state)->hidden, &stats), 0);
    assert_true(stats.hits >= (uint64_t)SLOTS * 8);
    printf("# %u rounds along the table\n", along);
    assert_true(along >= PLANNED / 4 || EBB_POISON);
}

/* More than a look has time to walk over, though none of their pages is resident. */
static void test_a_trim_of_very_many_gaps_ends(void **state) {
    enum { MANY = 200000, LOOKS = 20000 };
    void **blocks = calloc(MANY, sizeof *blocks);
    assert_non_null(blocks);
    ebb_step step = begin(*state);
    make_gaps(blocks, MANY);
    assert_int_equal(ebb_scope_leave(step), 0);
    struct heap_cooling cooling = {.limit_ns = 1000000, .trim = heap_begin_trim()};
    unsigned looks = 1;
    while (heap_cool(&cooling) && looks < LOOKS)
        looks++;
    printf("# %u looks\n", looks);
    assert_true(looks < LOOKS);
    assert_true(heap_cooled_bytes() >= MANY / 2 * EBB_PAGE);
    (void)trim_all();
    assert_int_equal(ebb_scope_enter(step), 0);
    end_rest(blocks, MANY);
    finish(step);
    free(blocks);
}

/* ---- turns ---- */

static void test_a_scope_with_many_gaps_keeps_no_other_from_its_turn(void **state) {
    static void *blocks[BLOCKS];
    ebb_step outer = begin(*state);
    void *kept = make(100000, 1), *block = make(4 * MIB, 2);
    end(block, 4 * MIB, 2);
    assert_int_equal(ebb_scope_leave(outer), 0);
    ebb_step step = begin(*state);
    make_gaps(blocks, BLOCKS);
    assert_int_equal(ebb_scope_leave(step), 0); /* it is looked at first */
    size_t given;
    assert_int_equal(cool_bit_by_bit(&given, 40), 40);
    assert_int_equal(os.resident(block, 4 * MIB), 0);
    assert_int_equal(ebb_scope_enter(step), 0);
    end_rest(blocks, BLOCKS);
    finish(step);
    assert_int_equal(ebb_scope_enter(outer), 0);
    end(kept, 100000, 1);
    finish(outer);
    assert_int_equal(heap_cooled_bytes(), 0);
}

/* What is parked while a trim is at work is not for it, or it might go on for ever. */
static void test_a_trim_leaves_alone_what_was_parked_since(void **state) {
    struct heap_cooling cooling = {.trim = heap_begin_trim()};
    ebb_step step = begin(*state);
    void *kept = make(100000, 1), *block = make(4 * MIB, 2);
    end(block, 4 * MIB, 2);
    assert_int_equal(ebb_scope_leave(step), 0);
    assert_false(heap_cool(&cooling));
    assert_int_equal(os.resident(block, 4 * MIB), 4 * MIB);
    assert_int_equal(trim_all(), 1);
    assert_int_equal(os.resident(block, 4 * MIB), 0);
    end(kept, 100000, 1);
    finish(step);
}

/* ---- the owner ---- */

enum { WANTED_AT = 3, LARGE_MIB = 32 };

static atomic_uint parts;
static struct heap *owner;
static atomic_bool is_at_work;

/* In the midst of it the owner comes. */
static int meet_the_owner(void *addr, size_t bytes) {
    if (atomic_fetch_add(&parts, 1) + 1 == WANTED_AT) {
        atomic_store(&is_at_work, true);
        while (!atomic_load(&owner->is_wanted))
            sched_yield();
    }
    return true_give_back(addr, bytes);
}

static void *cool_once(void *is_left) {
    struct heap_cooling cooling = {0};
    *(bool *)is_left = heap_cool(&cooling);
    return NULL;
}

static void test_an_owner_gets_in_while_pages_go(void **state) {
    pthread_t cooler;
    bool is_left = false;
    ebb_step step = begin(*state);
    void *few = make(20000, 1), *block = make(LARGE_MIB * MIB, 2), *kept = make(20000, 3);
    end(block, LARGE_MIB * MIB, 2);
    assert_int_equal(ebb_scope_leave(step), 0);
    owner = here.heap;
    os.give_back = meet_the_owner;
    assert_int_equal(pthread_create(&cooler, NULL, cool_once, &is_left), 0);
    while (!atomic_load(&is_at_work))
        sched_yield();
    end(few, 20000, 1);
    assert_int_equal(pthread_join(cooler, NULL), 0);
    os.give_back = true_give_back;
    assert_int_equal(atomic_load(&parts), WANTED_AT);
    assert_true(is_left);
    assert_false(atomic_load(&owner->is_wanted));
    assert_int_equal(trim_all(), 1);
    assert_int_equal(os.resident(block, LARGE_MIB * MIB), 0);
    end(kept, 20000, 3);
    finish(step);
}

enum { CACHED_MIB = 32 };

static int (*true_wait)(const void *word, uint32_t value, uint64_t ns);
static uint64_t (*true_now_ns)(void);
static _Atomic(uint64_t) passed_ns;
static unsigned pauses, locked;

/* Each part takes a millisecond. */
static uint64_t pass_ns(void) {
    return true_now_ns() + atomic_fetch_add(&passed_ns, 1000000);
}

static int note_pause(const void *word, uint32_t value, uint64_t ns) {
    struct ebb_pool *pool = heap_pool();
    pauses++;
    if (pthread_mutex_trylock(&pool->lock) == 0)
        pthread_mutex_unlock(&pool->lock);
    else
        locked++;
    return true_wait(word, value, ns);
}

/* Nor does the pool keep others out while what it has cached goes. */
static void test_a_trim_of_much_that_is_cached_lets_others_in(void **unused) {
    struct ebb_pool *pool = heap_pool();
    (void)unused;
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "brief", .pool = pool));
    pattern_fill(ebb_region_alloc(region, CACHED_MIB * MIB, 16), CACHED_MIB * MIB, 1);
    assert_int_equal(ebb_region_close(region), 0);
    true_now_ns = os.now_ns;
    true_wait = os.wait;
    os.now_ns = pass_ns;
    os.wait = note_pause;
    assert_int_equal(trim_all(), 1);
    os.now_ns = true_now_ns;
    os.wait = true_wait;
    printf("# %u pauses\n", pauses);
    assert_true(pauses >= CACHED_MIB / 4);
    assert_int_equal(locked, 0);
    assert_int_equal(pool->pages.hot_bytes, 0);
}

enum { HEAPS = 50, TICKS = 500, TICK_MS = 250, LEAST_MS = 100 };

static pthread_barrier_t rest_begins, rest_ends;
static _Atomic(uint64_t) read_ns;

/* In the time of one look it is read ten times. */
static uint64_t creep_ns(void) {
    return atomic_fetch_add(&read_ns, 100000);
}

/* It has an empty tray. */
static void *rest_after_a_scope(void *site) {
    ebb_step step = begin(site);
    front_free(front_alloc(100, NULL));
    finish(step);
    (void)pthread_barrier_wait(&rest_begins);
    (void)pthread_barrier_wait(&rest_ends);
    return NULL;
}

static void begin_to_rest(pthread_t *threads, void *site) {
    assert_int_equal(pthread_barrier_init(&rest_begins, NULL, HEAPS + 1), 0);
    assert_int_equal(pthread_barrier_init(&rest_ends, NULL, HEAPS + 1), 0);
    for (unsigned i = 0; i < HEAPS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, rest_after_a_scope, site), 0);
    (void)pthread_barrier_wait(&rest_begins);
    true_now_ns = os.now_ns;
    os.now_ns = creep_ns;
}

static void end_to_rest(const pthread_t *threads) {
    os.now_ns = true_now_ns;
    (void)pthread_barrier_wait(&rest_ends);
    for (unsigned i = 0; i < HEAPS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* True: in the end nothing is left. */
static bool look_for_long(struct trim_idle *idle) {
    bool is_done = false;
    for (unsigned i = 0; i < TICKS; i++)
        is_done = trim_when_idle(idle, TICK_MS, LEAST_MS);
    return is_done;
}

/* More heaps than a look reaches: it is known all the same that none of them has anything left, and
 * found in one of them what comes later. */
static void test_looks_that_reach_few_heaps_see_that_nothing_is_left(void **state) {
    pthread_t threads[HEAPS];
    struct trim_idle idle = {0};
    begin_to_rest(threads, *state);
    bool was_done = look_for_long(&idle);
    ebb_step step = begin(*state);
    void *kept = make(100000, 1), *block = make(4 * MIB, 2);
    end(block, 4 * MIB, 2);
    assert_int_equal(ebb_scope_leave(step), 0);
    (void)look_for_long(&idle);
    size_t resident = os.resident(block, 4 * MIB);
    assert_int_equal(ebb_scope_enter(step), 0);
    end(kept, 100000, 1);
    finish(step);
    bool is_done = look_for_long(&idle);
    end_to_rest(threads);
    assert_true(was_done && is_done);
    assert_int_equal(resident, 0);
}

static unsigned count_empty_trays(void) {
    unsigned count = 0;
    heap_lock(true);
    for (struct heap *heap = heap_newest(); heap; heap = heap->next)
        for (unsigned i = 0; i < HEAP_STASH; i++)
            count += atomic_load(&heap->stash[i]) != NULL;
    heap_lock(false);
    return count;
}

/* Half of the heaps are passed by looks in idle time, in which nothing has waited long enough. */
static void test_a_trim_reaches_all_heaps_whoever_else_looks(void **state) {
    pthread_t threads[HEAPS];
    struct heap_cooling idle = {.now_ms = 1, .least_ms = 1000, .limit_ns = 1};
    struct heap_cooling trim = {.limit_ns = 1, .trim = heap_begin_trim()};
    begin_to_rest(threads, *state);
    unsigned before = count_empty_trays(), most = heap_newest()->number + 1;
    for (unsigned i = 0; i < most / 2; i++)
        (void)heap_cool(&trim);
    for (unsigned i = most / 2; i < most; i++)
        (void)heap_cool(&idle);
    for (unsigned i = 0; i < TICKS && heap_cool(&trim); i++)
        continue;
    unsigned after = count_empty_trays();
    end_to_rest(threads);
    assert_true(before >= HEAPS);
    assert_int_equal(after, 0);
}

/* More of them than a look reaches, and no pages for large blocks. */
static void test_a_trim_takes_the_empty_trays_of_all_heaps(void **state) {
    pthread_t threads[HEAPS];
    begin_to_rest(threads, *state);
    unsigned before = count_empty_trays();
    size_t reserved = heap_pool()->reserved.current;
    (void)trim_all();
    unsigned after = count_empty_trays();
    end_to_rest(threads);
    assert_int_equal(reserved, 0);
    assert_true(before >= HEAPS);
    assert_int_equal(after, 0);
}

/* ---- what counts ---- */

static uint64_t given_back(void) {
    struct ebb_pool *pool = heap_pool();
    pthread_mutex_lock(&pool->lock);
    uint64_t bytes = pool->given_back;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

/* A gap whose pages the system does not take is passed, and not counted; the others go. */
static void test_pages_that_cannot_go_stay(void **state) {
    size_t given;
    ebb_step step = begin(*state);
    void *blocks[5];
    for (unsigned i = 0; i < 5; i++)
        blocks[i] = make(2 * MIB, i);
    end(blocks[1], 2 * MIB, 1);
    end(blocks[3], 2 * MIB, 3);
    assert_int_equal(ebb_scope_leave(step), 0);
    refused = size_align((uintptr_t)blocks[1], EBB_PAGE);
    (void)cool_bit_by_bit(&given, 1000);
    refused = 0;
    assert_int_equal(os.resident(blocks[1], 2 * MIB), 2 * MIB);
    assert_int_equal(os.resident(blocks[3], 2 * MIB), 0);
    assert_true(heap_cooled_bytes() >= given && given < 4 * MIB);
    assert_int_equal(ebb_scope_enter(step), 0);
    for (unsigned i = 0; i < 5; i += 2)
        end(blocks[i], 2 * MIB, i);
    finish(step);
    assert_int_equal(heap_cooled_bytes(), 0);
}

/* Pages that went while the scope was parked are not there when the pool gives back the rest. */
static void test_pages_that_go_count_once(void **state) {
    ebb_step step = begin(*state);
    void *kept = make(MIB, 1), *block = make(8 * MIB, 2);
    end(block, 8 * MIB, 2);
    uint64_t before = given_back();
    assert_int_equal(trim_all(), 1);
    assert_true(given_back() - before >= 8 * MIB);
    assert_true(given_back() - before < 10 * MIB);
    end(kept, MIB, 1);
    finish(step);
    (void)trim_all();
    assert_true(given_back() - before < 12 * MIB);
}

int main(void) {
    true_give_back = os.give_back;
    /* Else the kernel may join what is left of an arena to a huge page, all of it resident. */
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    const struct CMUnitTest tests[] = {
        ALONE(test_each_gap_comes_once_though_each_look_is_late),
        ALONE(test_each_gap_of_a_plan_comes_once),
        ALONE(test_a_trim_of_very_many_gaps_ends),
        ALONE(test_a_scope_with_many_gaps_keeps_no_other_from_its_turn),
        ALONE(test_a_trim_leaves_alone_what_was_parked_since),
        ALONE(test_an_owner_gets_in_while_pages_go),
        ALONE(test_a_trim_of_much_that_is_cached_lets_others_in),
        ALONE(test_pages_that_cannot_go_stay),
        ALONE(test_pages_that_go_count_once),
        ALONE(test_looks_that_reach_few_heaps_see_that_nothing_is_left),
        ALONE(test_a_trim_reaches_all_heaps_whoever_else_looks),
        ALONE(test_a_trim_takes_the_empty_trays_of_all_heaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
