// SPDX-License-Identifier: Apache-2.0
/*
 * d14_promotion.c - part D14: promotion and giving memory back, from the threads of others.
 *
 * 174 (views that alias), and 176 for tensors, are in tests/unit/own.c. 181 is law.h, asked after
 * every case of every part.
 */
#include "conformance/law.h"
#include "base/os.h"
#include "base/poison.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void c173_what_a_step_allocates_never_lands_outside(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 5000, 64);
    struct ebb_region_stats before = stats_of(stage->root);
    for (size_t step = 0; step < 1000; step++) {
        ebb_region region = OPEN(.parent = stage->root);
        void *block = block_of(region, 100 + step, 16);
        block_of(region, step * 37 % 30000, 64);
        block = ebb_region_realloc(region, block, 2000 + step, 16);
        assert_non_null(block);
        assert_non_null(ebb_region_alloc_zeroed(region, 500, 16));
        assert_int_equal(ebb_region_close(region), 0);
    }
    struct ebb_region_stats after = stats_of(stage->root);
    assert_memory_equal(&before, &after, sizeof before);
}

enum { LISTED = 24 };

/* Copies of LISTED blocks of both lanes, padding between them, into a target with this limit. */
static bool promotes_within(struct stage *stage, size_t limit) {
    ebb_region target = OPEN(.parent = stage->root, .limit_bytes = limit);
    ebb_region source = OPEN(.pool = stage->pool);
    assert_int_equal(ebb_region_close(source), 0);
    source = OPEN(.parent = target);
    void *held = block_of(target, 16, 16), *blocks[LISTED];
    struct ebb_survivor list[LISTED];
    for (size_t i = 0; i < LISTED; i++) {
        blocks[i] = block_of(source, i % 2 ? 1100 : 20 + i, 64);
        list[i] = survivor_of(blocks[i], EBB_PROMOTE_COPY);
        list[i].align = 64;
    }
    struct ebb_region_stats before = stats_of(target), source_before = stats_of(source);
    int result = ebb_promote(source, target, list, LISTED, NULL);
    struct ebb_region_stats after = stats_of(target), source_after = stats_of(source);
    assert_conserved(stage->pool);
    assert_memory_equal(&source_before.blocks, &source_after.blocks, 3 * sizeof before.blocks);
    assert_true(pattern_holds(held, 16, 16));
    for (size_t i = 0; result && i < LISTED; i++) {
        assert_refused(result, EBB_E_REGION_LIMIT);
        assert_ptr_equal(list[i].block, blocks[i]);
        assert_memory_equal(&before.blocks, &after.blocks, 3 * sizeof before.blocks);
        assert_int_equal(before.subtree_used, after.subtree_used);
    }
    for (unsigned i = 0; i < LISTED; i++)
        assert_true(pattern_holds(blocks[i], i % 2 ? 1100 : 20 + i, i % 2 ? 1100 : 20 + i));
    assert_int_equal(ebb_region_close(target), 0);
    return result == 0;
}

static void c175_a_promotion_that_fails_in_the_middle_changes_neither_side(void **state) {
    struct stage *stage = *state;
    unsigned failed = 0, succeeded = 0;
    for (size_t limit = 16 * KIB; limit < 36 * KIB; limit += 272) {
        bool promoted = promotes_within(stage, limit);
        failed += !promoted;
        succeeded += promoted;
    }
    assert_true(failed > 10 && succeeded > 10);
}

static void c175_failing_again_and_again_does_not_enlarge_the_target(void **state) {
    struct stage *stage = *state;
    ebb_region target = OPEN(.parent = stage->root, .limit_bytes = 300 * KIB);
    ebb_region source = OPEN(.parent = target);
    struct ebb_survivor list[] = {survivor_of(block_of(source, 70 * KIB, 64), EBB_PROMOTE_COPY),
                                  survivor_of(block_of(source, 100 * KIB, 64), EBB_PROMOTE_COPY)};
    uint64_t once = 0;
    for (int i = 0; i < 100; i++) {
        assert_refused(ebb_promote(source, target, list, 2, NULL), EBB_E_REGION_LIMIT);
        if (i == 0)
            once = stats_of(target).reserved.current;
        assert_int_equal(stats_of(target).reserved.current, once);
        assert_int_equal(stats_of(target).used.current, 0);
    }
}

static void c176_a_copy_is_apart_and_a_relinked_block_is_the_same(void **state) {
    struct stage *stage = *state;
    ebb_region source = OPEN(.parent = stage->root);
    unsigned char *copied = block_of(source, 8192, 4096), *relinked = block_of(source, 8192, 4096);
    struct ebb_survivor list[] = {survivor_of(copied, EBB_PROMOTE_COPY),
                                  survivor_of(relinked, EBB_PROMOTE_RELINK)};
    unsigned char old = copied[100];
    assert_int_equal(ebb_promote(source, stage->root, list, 2, NULL), 0);
    copied[100] = (unsigned char)~old;
    relinked[100] = (unsigned char)~old;
    assert_int_equal(((unsigned char *)list[0].block)[100], old);
    assert_int_equal(((unsigned char *)list[1].block)[100], (unsigned char)~old);
}

/* Calls that reach the system for memory are counted while frames pass. */
static unsigned system_calls;
static struct os_table real_os;

static void *counted_reserve(size_t bytes) {
    system_calls++;
    return real_os.reserve(bytes);
}

#define COUNTED(type, call, result)                        \
    static type counted_##call(void *addr, size_t bytes) { \
        system_calls++;                                    \
        result real_os.call(addr, bytes);                  \
    }
#define NO_RESULT

COUNTED(int, open, return)
COUNTED(int, close, return)
COUNTED(int, shut, return)
COUNTED(int, reopen, return)
COUNTED(int, give_back, return)
COUNTED(size_t, resident, return)
COUNTED(void, release, NO_RESULT)
COUNTED(int, cover, return)
COUNTED(int, populate, return)
COUNTED(void, advise_huge, NO_RESULT)
COUNTED(void, advise_small, NO_RESULT)
COUNTED(int, wipe_in_children, return)
COUNTED(int, lock, return)
COUNTED(void, unlock, NO_RESULT)

/* All that maps, unmaps, protects, advises or locks. */
static void count_system_calls(void) {
    real_os = os;
    system_calls = 0;
    os.reserve = counted_reserve;
    os.open = counted_open;
    os.close = counted_close;
    os.shut = counted_shut;
    os.reopen = counted_reopen;
    os.give_back = counted_give_back;
    os.resident = counted_resident;
    os.release = counted_release;
    os.cover = counted_cover;
    os.populate = counted_populate;
    os.advise_huge = counted_advise_huge;
    os.advise_small = counted_advise_small;
    os.wipe_in_children = counted_wipe_in_children;
    os.lock = counted_lock;
    os.unlock = counted_unlock;
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void play_frame(ebb_pool *pool) {
    ebb_region frame = OPEN(.name = "frame", .pool = pool);
    for (int i = 0; i < 2; i++) {
        unsigned char *buffer = untouched(frame, 6200000, 4096);
        for (size_t at = 0; at < 6200000; at += 4096)
            buffer[at] = (unsigned char)at;
    }
    assert_int_equal(ebb_region_close(frame), 0);
}

static void c179_frames_need_no_system_call_and_no_fresh_page(void **state) {
    struct stage *stage = *state;
    int frames = EBB_POISON ? 300 : 20000;
    for (int i = 0; i < 20; i++)
        play_frame(stage->pool);
    uint64_t total = pool_stats_of(stage->pool).reserved.total;
    count_system_calls();
    long before = faults();
    for (int i = 0; i < frames; i++)
        play_frame(stage->pool);
    long after = faults();
    os = real_os;
    assert_int_equal(system_calls, 0);
    assert_int_equal(pool_stats_of(stage->pool).reserved.total, total);
    assert_true(EBB_ASAN || after - before < 200);
}

static size_t resident(const void *block, size_t bytes) {
    static unsigned char in_core[4096];
    size_t count = 0;
    assert_true(bytes / PAGE <= sizeof in_core);
    assert_int_equal(mincore((void *)(uintptr_t)block, bytes, in_core), 0);
    for (size_t i = 0; i < bytes / PAGE; i++)
        count += in_core[i] & 1;
    return count * PAGE;
}

static void c180_a_trim_returns_what_is_really_gone(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.pool = stage->pool, .hint_bytes = 8 * MIB);
    char *block = block_of(region, 8 * MIB, 4096);
    ebb_region_close(region);
    size_t before = resident(block, 8 * MIB);
    size_t given = ebb_pool_trim(stage->pool, 3 * MIB);
    assert_true(pool_stats_of(stage->pool).cached <= 3 * MIB);
    assert_int_equal(given, before - resident(block, 8 * MIB));
    assert_int_equal(ebb_pool_trim(stage->pool, 3 * MIB), 0);
    size_t remaining = 0;
    given = ebb_pool_trim_within(stage->pool, 0, 1, &remaining);
    assert_int_equal(given, 1 * MIB);
    assert_int_equal(remaining, 2 * MIB);
    assert_int_equal(remaining, pool_stats_of(stage->pool).cached);
    assert_int_equal(resident(block, 8 * MIB), 2 * MIB);
}

static void c181_moving_and_promoting_change_nothing_that_lives(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct ebb_survivor list[60];
    uint64_t bytes = 0;
    for (size_t i = 0; i < 60; i++) {
        size_t size = i * 977 % 20000;
        list[i] = survivor_of(block_of(region, size, 64), (int)(i % 3));
        bytes += size;
    }
    assert_conserved(stage->pool);
    assert_int_equal(ebb_close_keeping(region, stage->root, list, 60, NULL, NULL), 0);
    assert_conserved(stage->pool);
    assert_int_equal(pool_stats_of(stage->pool).blocks.current, 60);
    assert_int_equal(pool_stats_of(stage->pool).requested.current, bytes);
    for (size_t i = 0; i < 60; i++) {
        assert_int_equal(ebb_region_release(stage->root, list[i].block), 0);
        assert_conserved(stage->pool);
    }
    assert_int_equal(pool_stats_of(stage->pool).blocks.current, 0);
    assert_int_equal(pool_stats_of(stage->pool).requested.current, 0);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0); /* padding counts until now */
    assert_int_equal(pool_stats_of(stage->pool).used.current, 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        CASE(c173_what_a_step_allocates_never_lands_outside),
        CASE(c175_a_promotion_that_fails_in_the_middle_changes_neither_side),
        CASE(c175_failing_again_and_again_does_not_enlarge_the_target),
        CASE(c176_a_copy_is_apart_and_a_relinked_block_is_the_same),
        CASE(c179_frames_need_no_system_call_and_no_fresh_page),
        CASE(c180_a_trim_returns_what_is_really_gone),
        CASE(c181_moving_and_promoting_change_nothing_that_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
