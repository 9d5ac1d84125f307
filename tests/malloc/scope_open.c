// SPDX-License-Identifier: Apache-2.0
/*
 * scope_open.c - what a scope that stays open has no use for goes: pages between its large blocks
 * once it is parked. What is alive stays as it was. Its small blocks: scope_trays.c.
 */
#include "cooler.h"
#include "scoped.h"

#include "base/os.h"
#include "region/region.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define MIB ((size_t)1 << 20)
#define HUGE (2 * MIB)

static void expect_gone(void *block, size_t bytes) {
    assert_int_equal(os.resident(block, bytes), 0);
}

static bool cool(unsigned least_ms, uint64_t now_ms, size_t *given) {
    struct heap_cooling cooling = {.now_ms = now_ms, .least_ms = least_ms};
    bool is_left = heap_cool(&cooling);
    *given = cooling.given;
    return is_left;
}

/* Twice, a second apart: what has rested for so long goes. */
static size_t cool_what_rests(void) {
    size_t first, second;
    (void)cool(1000, 1000, &first);
    assert_false(cool(1000, 2000, &second));
    assert_int_equal(first, 0);
    return second;
}

/* A connection that waits has nothing to do with what its answer took. */
static void test_pages_of_a_scope_that_was_left_go(void **state) {
    size_t given, before = heap_cooled_bytes();
    ebb_step step = begin(*state);
    void *block = make(4 * MIB, 1), *kept = make(100000, 2);
    assert_int_equal(ebb_scope_leave(step), 0);
    assert_int_equal(cool_what_rests(), 0);
    end(block, 4 * MIB, 1);
    assert_true(cool(1000, 1000, &given));
    assert_true(cool(1000, 1999, &given));
    assert_true(os.resident(block, 4 * MIB) == 4 * MIB);
    uint64_t pages = open_bytes(*state);
    assert_false(cool(1000, 2000, &given));
    assert_true(given >= 4 * MIB);
    expect_gone(block, 4 * MIB);
    assert_true(heap_cooled_bytes() - before >= 4 * MIB);
    assert_int_equal(open_bytes(*state), pages);
    assert_false(cool(1000, 9000, &given));
    assert_int_equal(given, 0);
    assert_int_equal(ebb_scope_enter(step), 0);
    void *again = make(4 * MIB, 3); /* what has gone is nobody's loss */
    assert_ptr_equal(again, block);
    assert_int_equal(heap_cooled_bytes(), before);
    end(again, 4 * MIB, 3);
    end(kept, 100000, 2);
    finish(step);
    assert_int_equal(heap_cooled_bytes(), before);
}

static size_t none_resident(void *addr, size_t bytes) {
    (void)addr, (void)bytes;
    return 0;
}

/* Or nobody may ask which are in memory. */
static void test_pages_that_the_system_has_swapped_out_go_as_well(void **state) {
    size_t (*true_resident)(void *addr, size_t bytes) = os.resident;
    ebb_step step = begin(*state);
    void *kept = make(100000, 1), *block = make(4 * MIB, 2);
    end(block, 4 * MIB, 2);
    assert_int_equal(ebb_scope_leave(step), 0);
    os.resident = none_resident;
    size_t given = cool_what_rests();
    os.resident = true_resident;
    assert_int_equal(given, 0);
    expect_gone(block, 4 * MIB);
    end(kept, 100000, 1);
    finish(step);
}

static void test_pages_of_an_outer_scope_go(void **state) {
    ebb_step steps[8];
    void *blocks[8];
    for (unsigned i = 0; i < 8; i++) {
        steps[i] = begin(*state);
        blocks[i] = make(2 * MIB, i);
        end(blocks[i], 2 * MIB, i);
    }
    assert_true(cool_what_rests() >= 2 * MIB * 8);
    for (unsigned i = 0; i < 8; i++)
        expect_gone(blocks[i], 2 * MIB);
    for (unsigned i = 0; i < 8; i++)
        finish(steps[i]);
    assert_int_equal(heap_cooled_bytes(), 0);
}

/* It may compute for long, or wait where nobody sees it. */
static void test_pages_of_a_scope_that_serves_go_where_hardly_anything_is_alive(void **state) {
    ebb_step step = begin(*state);
    void *few = make(100000, 1), *half = make(8 * MIB, 2), *block = make(16 * MIB, 3);
    end(block, 16 * MIB, 3);
    assert_int_equal(cool_what_rests(), 0); /* a third is: it is at work */
    end(half, 8 * MIB, 2);
    assert_true(cool_what_rests() >= 24 * MIB);
    expect_gone(block, 16 * MIB);
    void *more = make(50000, 4);
    end(few, 100000, 1);
    assert_true(cool_what_rests() < MIB);
    end(more, 50000, 4);
    finish(step);
}

enum { PLANNED = 40, BLOCKS = 36 }; /* so many that a step may go along a table (due.c) */

static const size_t lengths[BLOCKS] = {
    9000, 3 * MIB, 20000, MIB, 40000, 70000, 2 * MIB, 8200, MIB, 300000, 65536, 5 * MIB,
    9100, MIB, 21000, MIB, 41000, 71000, MIB, 8300, 10000, 310000, 66000, 11000,
    9200, MIB, 22000, MIB, 42000, 72000, MIB, 8400, 12000, 320000, 67000, 13000};

/* Every third one lives on while the scope waits. */
static void make_all(void **blocks) {
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = make(lengths[i], i);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % 3)
            end(blocks[i], lengths[i], i);
}

static size_t count_resident(void **blocks, bool alive) {
    size_t bytes = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        char *from = (char *)size_align((uintptr_t)blocks[i], EBB_PAGE);
        char *to = (char *)size_align_down((uintptr_t)blocks[i] + lengths[i], EBB_PAGE);
        if ((i % 3 == 0) == alive && to > from)
            bytes += os.resident(from, (size_t)(to - from));
    }
    return bytes;
}

/* The kernel joins pages of the arena to huge ones, as it does by itself in its own time. False: it
 * is not to, or never does, or there is no arena. */
static bool join_pages(const struct scope *scope) {
    uintptr_t addr;
    size_t bytes;
    bool is_welcome = false;
    if (!region_find_arena((const struct region *)scope->step.region.lane, &addr, &bytes))
        return false;
    for (uintptr_t at = size_align(addr, HUGE); at + HUGE <= addr + bytes; at += HUGE)
        is_welcome |= madvise((void *)at, HUGE, MADV_COLLAPSE) == 0 || errno != EINVAL;
    return is_welcome;
}

static void end_the_rest(void **blocks) {
    for (unsigned i = 3; i < BLOCKS; i += 3)
        end(blocks[i], lengths[i], i);
}

/* The gaps of an arena, which its plan still fills afterwards. They stay gone. */
static void test_gaps_of_a_plan_go_and_it_is_served(void **state) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    for (unsigned round = 0; round < PLANNED; round++) {
        void *blocks[BLOCKS];
        ebb_step step = begin(*state);
        const struct scope *scope = here.scope;
        make_all(blocks);
        assert_int_equal(ebb_scope_leave(step), 0);
        assert_true(count_resident(blocks, false) >= 4 * MIB);
        size_t alive = count_resident(blocks, true);
        bool is_welcome = join_pages(scope);
        assert_true(cool_what_rests() >= 4 * MIB);
        (void)join_pages(scope);
        /* but for pages that what is alive shares, or has taken since */
        assert_true(count_resident(blocks, false) <= MIB);
        assert_int_equal(count_resident(blocks, true), alive);
        assert_int_equal(ebb_scope_enter(step), 0);
        end(blocks[0], lengths[0], 0);
        assert_true(join_pages(scope) == is_welcome);
        end_the_rest(blocks);
        finish(step);
    }
    assert_int_equal(ebb_site_read_stats(served_of(*state)->hidden, &stats), 0);
    assert_true(stats.hits >= (uint64_t)BLOCKS * 8);
    assert_int_equal(heap_cooled_bytes(), 0);
}

/* The kernel would bring back what went the last time, of which nothing is resident. */
static void test_gaps_of_a_plan_stay_gone_when_it_is_parked_again(void **state) {
    for (unsigned round = 0; round < 6; round++) {
        bool again = round == 5; /* what comes meanwhile is in no plan */
        void *blocks[BLOCKS];
        ebb_step step = begin(*state);
        const struct scope *scope = here.scope;
        make_all(blocks);
        for (unsigned parked = 0; parked < 3 && (again || !parked); parked++) {
            assert_int_equal(ebb_scope_leave(step), 0);
            size_t given = cool_what_rests();
            assert_true(parked ? given < MIB : given >= 4 * MIB);
            (void)join_pages(scope);
            assert_true(count_resident(blocks, false) <= MIB);
            assert_int_equal(ebb_scope_enter(step), 0);
            if (again)
                end(make(100000, BLOCKS), 100000, BLOCKS); /* beside the arena */
        }
        end(blocks[0], lengths[0], 0);
        end_the_rest(blocks);
        finish(step);
    }
}

static void (*advise_huge_of_the_system)(void *addr, size_t bytes);
static void (*advise_small_of_the_system)(void *addr, size_t bytes);
static unsigned advised;

static void count_huge(void *addr, size_t bytes) {
    advised++;
    advise_huge_of_the_system(addr, bytes);
}

static void count_small(void *addr, size_t bytes) {
    advised++;
    advise_small_of_the_system(addr, bytes);
}

enum { WHOLE = 8 };

/* All of the plan is alive. If `more`, one comes that it has no place for, and is freed. */
static size_t park_beside_an_arena(ebb_site *of, bool more) {
    void *blocks[WHOLE];
    ebb_step step = begin(of);
    for (unsigned i = 0; i < WHOLE; i++)
        blocks[i] = make(MIB, i);
    if (more)
        end(make(300000, WHOLE), 300000, WHOLE);
    unsigned before = advised;
    assert_int_equal(ebb_scope_leave(step), 0);
    size_t given = cool_what_rests();
    assert_int_equal(ebb_scope_enter(step), 0);
    assert_int_equal(advised, before);
    for (unsigned i = 0; i < WHOLE; i++)
        end(blocks[i], MIB, i);
    finish(step);
    return given;
}

static void test_nothing_is_told_of_an_arena_of_which_nothing_goes(void **state) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    advise_huge_of_the_system = os.advise_huge;
    advise_small_of_the_system = os.advise_small;
    os.advise_huge = count_huge;
    os.advise_small = count_small;
    for (unsigned round = 0; round < 12; round++)
        assert_true(park_beside_an_arena(*state, round >= 8) >= (round >= 8 ? 200000 : 0));
    os.advise_huge = advise_huge_of_the_system;
    os.advise_small = advise_small_of_the_system;
    assert_int_equal(ebb_site_read_stats(served_of(*state)->hidden, &stats), 0);
    assert_true(stats.hits >= WHOLE && advised); /* when the arena came */
}

/* The owner's malloc_trim() does not ask how long, or how much is alive. */
static void test_malloc_trim_takes_what_open_scopes_have(void **state) {
    ebb_step outer = begin(*state);
    void *kept = make(3 * MIB, 1), *block = make(2 * MIB, 2);
    end(block, 2 * MIB, 2);
    ebb_step inner = begin(*state);
    void *more = make(3 * MIB, 3), *other = make(2 * MIB, 4);
    end(other, 2 * MIB, 4);
    assert_int_equal(trim_all(), 1);
    expect_gone(block, 2 * MIB);
    expect_gone(other, 2 * MIB);
    end(more, 3 * MIB, 3);
    end(kept, 3 * MIB, 1);
    finish(inner);
    finish(outer);
}

enum { THREADS = 4, ROUNDS = 300, LIVE = 16 };

static ebb_site *site;
static atomic_uint wrong;

static void expect(bool holds) {
    atomic_fetch_add(&wrong, !holds);
}

static void replace(void **block, size_t *bytes, unsigned seed, size_t wanted) {
    if (*block) {
        expect(pattern_holds(*block, *bytes, seed));
        front_free(*block);
    }
    *bytes = wanted;
    *block = wanted ? front_alloc(wanted, NULL) : NULL;
    if (wanted)
        pattern_fill(*block, wanted, seed);
}

/* Some scopes at once, in and out of which it goes, as a loop with connections does. */
static void *play(void *number) {
    void *blocks[LIVE] = {NULL};
    size_t bytes[LIVE] = {0};
    uint64_t random = (uintptr_t)number * 7919 + 1;
    ebb_step steps[4];
    for (unsigned i = 0; i < 4; i++) {
        steps[i] = ebb_step_begin(site, i);
        expect(ebb_scope_leave(steps[i]) == 0);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned which = (unsigned)(random >> 40) % 4;
        expect(ebb_scope_enter(steps[which]) == 0);
        for (unsigned i = 0; i < 6; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            unsigned place = (unsigned)(random >> 33) % LIVE;
            size_t wanted = random >> 62 ? 9000 + (size_t)(random >> 20) % 900000 : 0;
            replace(&blocks[place], &bytes[place], place, wanted);
        }
        expect(ebb_scope_leave(steps[which]) == 0);
        if (round % 37 == 0) {
            expect(ebb_step_end(steps[which]) == 0);
            steps[which] = ebb_step_begin(site, which);
            expect(ebb_scope_leave(steps[which]) == 0);
        }
    }
    for (unsigned i = 0; i < LIVE; i++)
        replace(&blocks[i], &bytes[i], i, 0);
    for (unsigned i = 0; i < 4; i++)
        expect(ebb_step_end(steps[i]) == 0);
    return NULL;
}

static void test_no_byte_of_a_live_block_goes(void **state) {
    atomic_bool over = false;
    pthread_t threads[THREADS], cooler;
    site = *state;
    assert_int_equal(pthread_create(&cooler, NULL, cool_all_the_time, &over), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    atomic_store(&over, true);
    assert_int_equal(pthread_join(cooler, NULL), 0);
    trim_all();
    assert_int_equal(heap_cooled_bytes(), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ALONE(test_pages_of_a_scope_that_was_left_go),
        ALONE(test_pages_that_the_system_has_swapped_out_go_as_well),
        ALONE(test_pages_of_an_outer_scope_go),
        ALONE(test_pages_of_a_scope_that_serves_go_where_hardly_anything_is_alive),
        ALONE(test_gaps_of_a_plan_go_and_it_is_served),
        ALONE(test_gaps_of_a_plan_stay_gone_when_it_is_parked_again),
        ALONE(test_nothing_is_told_of_an_arena_of_which_nothing_goes),
        ALONE(test_malloc_trim_takes_what_open_scopes_have),
        ALONE(test_no_byte_of_a_live_block_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
