// SPDX-License-Identifier: Apache-2.0
/*
 * measure.c - a measuring region says what hint an ordinary one needs: with it the ordinary
 * region never grows when it is asked the same way, with one page less it does. What counts its
 * blocks one by one, limits and sites, changes nothing in that.
 *
 * A scenario is played on any region; it must not look at addresses, only keep them.
 */
#include "kit/test.h"

typedef void scenario(ebb_region region);

static void *take(ebb_region region, size_t bytes, size_t align) {
    void *block = ebb_region_alloc(region, bytes, align);
    assert_non_null(block);
    return block;
}

static void one_small_block(ebb_region region) {
    take(region, 1, 1);
}

static void one_large_block(ebb_region region) {
    take(region, 100001, 64);
}

static void a_page_exactly(ebb_region region) {
    take(region, 4096, 64);
}

static void a_page_and_a_byte(ebb_region region) {
    take(region, 4097, 64);
}

static void many_small_blocks(ebb_region region) {
    for (size_t i = 0; i < 3000; i++)
        take(region, i * 7 % 1025, 16);
}

static void both_lanes(ebb_region region) {
    for (size_t i = 0; i < 500; i++) {
        take(region, i * 13 % 1025, 64);
        if (i % 5 == 0)
            take(region, i * 1009 % 200000, 64);
    }
}

static void releases_between(ebb_region region) {
    void *blocks[64] = {NULL};
    for (size_t i = 0; i < 4000; i++) {
        size_t at = i * 31 % 64;
        assert_int_equal(ebb_region_release(region, blocks[at]), 0);
        blocks[at] = take(region, i * 389 % (i % 3 ? 1000 : 90000), i % 4 ? 16 : 1024);
    }
}

static void aligned_blocks(ebb_region region) {
    for (size_t i = 1; i <= 2000; i++)
        take(region, i * 392 % 997 + 1, 64);
}

static void aligned_blocks_among_others(ebb_region region) {
    for (size_t i = 0; i < 2000; i++) {
        take(region, i * 7 % 100, 16);
        take(region, i * 13 % 200, (size_t)32 << i % 5);
    }
}

/* What stays is a tenth of what comes, so holes are used, and windows are begun again. */
static void aligned_blocks_that_are_released(ebb_region region) {
    void *blocks[600] = {NULL};
    for (size_t i = 0; i < 12000; i++) {
        size_t at = i * i % 2003 % 600;
        assert_int_equal(ebb_region_release(region, blocks[at]), 0);
        blocks[at] = take(region, i * 389 % (i % 4 ? 100 : 1000), i % 3 ? 64 : 16);
        if (i % 8 == 0)
            assert_int_equal(ebb_region_release(region, take(region, i % 300, 128)), 0);
    }
}

static void aligned_blocks_between_marks(ebb_region region) {
    for (size_t round = 0; round < 20; round++) {
        ebb_mark mark = ebb_region_mark(region);
        for (size_t i = 0; i < 100; i++)
            take(region, i * 97 % 500, i % 2 ? 64 : 16);
        if (round % 3)
            assert_int_equal(ebb_region_rewind(region, mark), 0);
    }
}

static void a_spike_that_is_released(ebb_region region) {
    void *spike = take(region, 5 * MIB, 64);
    assert_int_equal(ebb_region_release(region, spike), 0);
    take(region, 100, 16);
    take(region, 5000, 64);
}

static void marks_and_rewinds(ebb_region region) {
    for (size_t round = 0; round < 20; round++) {
        ebb_mark mark = ebb_region_mark(region);
        for (size_t i = 0; i < 50; i++)
            take(region, i * 97 % 5000, 16);
        if (round % 3)
            assert_int_equal(ebb_region_rewind(region, mark), 0);
    }
}

static void blocks_that_grow_in_place(ebb_region region) {
    void *block = take(region, 4096, 64);
    for (size_t bytes = 4096; bytes < 300000; bytes += 7000)
        if (ebb_region_resize(region, block, bytes) != 0)
            return;
}

static void page_aligned_blocks(ebb_region region) {
    for (size_t i = 0; i < 100; i++) {
        take(region, i * 77 % 9000, 4096);
        take(region, 100, 16);
    }
}

static void two_rounds_with_a_reset(ebb_region region) {
    both_lanes(region);
    assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
    one_large_block(region);
}

/* The last block of the run comes again: the ordinary region has nothing behind it, the measuring
 * one always has. What they place must not depend on that. */
static void the_last_block_of_the_hint_again(ebb_region region) {
    take(region, 2048, 64);
    take(region, 2048, 64);
    void *gap = take(region, 8192, 64);
    take(region, 2048, 64);
    void *last_but_one = take(region, 2048, 64), *last = take(region, 4096, 64);
    assert_int_equal(ebb_region_release(region, gap), 0);
    assert_int_equal(ebb_region_release(region, last), 0);
    take(region, 4096, 64);
    assert_int_equal(ebb_region_release(region, last_but_one), 0);
    take(region, 6144, 64);
    take(region, 4096, 64);
}

/* It has had a child: a root of which is not like one without. */
static void have_a_child(ebb_region region) {
    assert_int_equal(ebb_region_close(OPEN(.parent = region)), 0);
}

/* Who plays: what differs changes what is counted, but not where blocks lie. */
struct player {
    const char *name;
    size_t limit, pool_limit;
    bool sites;
};

enum { PLAIN, LIMITED, IN_A_LIMITED_POOL, WITH_SITES, PLAYERS };

static const struct player players[PLAYERS] = {
    [PLAIN] = {.name = "a plain region"},
    [LIMITED] = {.name = "a limited region", .limit = 1024 * MIB},
    [IN_A_LIMITED_POOL] = {.name = "a region in a limited pool", .pool_limit = 1024 * MIB},
    [WITH_SITES] = {.name = "a region with sites", .sites = true},
};

static size_t measured(scenario *play, bool has_child, bool sites) {
    ebb_region region = OPEN(.name = "measuring", .measure = true, .sites = sites);
    if (has_child)
        have_a_child(region);
    play(region);
    size_t hint = ebb_region_measured(region);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(hint % PAGE, 0);
    return hint;
}

/* Plays on a region that reserved `hint` bytes at once, a root or below one; true if it needed
 * more. */
static bool grows(const struct player *player, scenario *play, size_t hint, bool is_below) {
    ebb_pool *pool = POOL(.name = "played", .limit_used_bytes = player->pool_limit);
    ebb_region root = is_below ? OPEN(.pool = pool) : (ebb_region){NULL, 0};
    ebb_region region = OPEN(.pool = is_below ? NULL : pool, .parent = root, .hint_bytes = hint,
                             .limit_bytes = player->limit, .sites = player->sites);
    assert_true(ebb_region_is_open(region));
    assert_int_equal(stats_of(region).reserved.current, hint);
    play(region);
    uint64_t peak = stats_of(region).reserved.peak;
    assert_true(ebb_region_measured(region) == peak);
    ebb_check_pool(pool);
    ebb_region_close(is_below ? root : region);
    pool_end(pool);
    return peak > hint;
}

/* Measured and played as roots, or measured with a child and played below a root. */
static const struct {
    const char *name;
    scenario *play;
} scenarios[] = {
    {"one_small_block", one_small_block},
    {"one_large_block", one_large_block},
    {"a_page_exactly", a_page_exactly},
    {"a_page_and_a_byte", a_page_and_a_byte},
    {"many_small_blocks", many_small_blocks},
    {"both_lanes", both_lanes},
    {"releases_between", releases_between},
    {"aligned_blocks", aligned_blocks},
    {"aligned_blocks_among_others", aligned_blocks_among_others},
    {"aligned_blocks_that_are_released", aligned_blocks_that_are_released},
    {"aligned_blocks_between_marks", aligned_blocks_between_marks},
    {"a_spike_that_is_released", a_spike_that_is_released},
    {"marks_and_rewinds", marks_and_rewinds},
    {"page_aligned_blocks", page_aligned_blocks},
    {"two_rounds_with_a_reset", two_rounds_with_a_reset},
    {"the_last_block_of_the_hint_again", the_last_block_of_the_hint_again},
};

static void expect_exact(const struct player *player, bool is_below, bool sites) {
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        size_t hint = measured(scenarios[i].play, is_below, sites);
        if (grows(player, scenarios[i].play, hint, is_below))
            fail_msg("%s: %s grows beyond its hint of %zu", player->name, scenarios[i].name, hint);
        if (hint > PAGE && !grows(player, scenarios[i].play, hint - PAGE, is_below))
            fail_msg("%s: %s needs a page less than its hint of %zu", player->name,
                     scenarios[i].name, hint);
    }
}

static void the_measured_hint_is_exact(void **state) {
    expect_exact(&players[PLAIN], false, false);
}

static void a_hint_measured_above_children_is_exact_below_a_root(void **state) {
    expect_exact(&players[PLAIN], true, false);
}

static void the_measured_hint_is_exact_where_blocks_are_counted_one_by_one(void **state) {
    for (int i = LIMITED; i < PLAYERS; i++) {
        expect_exact(&players[i], false, false);
        expect_exact(&players[i], true, false);
    }
}

static void a_hint_measured_with_sites_is_exact(void **state) {
    for (int i = PLAIN; i < PLAYERS; i++)
        expect_exact(&players[i], false, true);
}

static void growing_in_place_is_measured(void **state) {
    size_t hint = measured(blocks_that_grow_in_place, false, false);
    assert_true(hint >= 290000);
    for (int i = PLAIN; i < PLAYERS; i++)
        assert_false(grows(&players[i], blocks_that_grow_in_place, hint, false));
}

static void a_measuring_region_takes_nothing_and_counts_everything(void **state) {
    struct stage *stage = *state;
    struct ebb_pool_stats before = pool_stats_of(stage->pool);
    struct ebb_pool_stats process = {.size = sizeof process}, process_after = process;
    assert_int_equal(ebb_process_read_stats(&process), 0);
    ebb_region region = OPEN(.pool = stage->pool, .measure = true);
    take(region, 5 * MIB, 64);
    take(region, 100, 16);
    void *gone = take(region, 1000, 16);
    assert_int_equal(ebb_region_release(region, gone), 0);
    struct ebb_region_stats stats = stats_of(region);
    assert_int_equal(stats.blocks.current, 2);
    assert_int_equal(stats.blocks.total, 3);
    assert_int_equal(stats.requested.current, 5 * MIB + 100);
    assert_int_equal(ebb_process_read_stats(&process_after), 0);
    assert_memory_equal(&process, &process_after, sizeof process);
    struct ebb_pool_stats after = pool_stats_of(stage->pool);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ebb_region_close(region), 0);
}

static void an_empty_measuring_region_needs_no_hint(void **state) {
    ebb_region region = OPEN(.measure = true);
    assert_int_equal(ebb_region_measured(region), 0);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(ebb_region_measured(region), 0);
    assert_refused(ebb_last_error(), EBB_E_STALE);
}

static void a_reset_forgets_no_measure(void **state) {
    ebb_region region = OPEN(.measure = true);
    take(region, 1 * MIB, 64);
    size_t hint = ebb_region_measured(region);
    assert_true(hint >= 1 * MIB);
    assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
    assert_int_equal(ebb_region_measured(region), hint);
    take(region, 1000, 64);
    assert_int_equal(ebb_region_reset(region, 0), 0);
    assert_int_equal(ebb_region_measured(region), hint);
    take(region, 2 * MIB, 64);
    assert_true(ebb_region_measured(region) >= 2 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
}

static void a_measuring_region_has_no_limit(void **state) {
    ebb_region region = OPEN(.measure = true, .limit_bytes = 1000);
    take(region, 5 * MIB, 64);
    take(region, 10, 1);
    assert_int_equal(ebb_region_close(region), 0);
}

static void children_of_measuring_regions_measure(void **state) {
    ebb_region region = OPEN(.measure = true), child = OPEN(.parent = region);
    take(child, 50000, 64);
    assert_int_equal(ebb_region_measured(child), 53248);
    assert_int_equal(ebb_region_measured(region), 0);
    assert_int_equal(ebb_region_close(region), 0);
}

static void they_may_name_any_pool_as_their_parent_did(void **state) {
    struct stage *stage = *state;
    struct ebb_pool_stats before = pool_stats_of(stage->pool);
    ebb_region region = OPEN(.pool = stage->pool, .measure = true);
    ebb_region child = OPEN(.pool = stage->pool, .parent = region);
    ebb_region below = OPEN(.pool = ebb_pool_default(), .parent = child, .measure = true);
    take(child, 50000, 64);
    take(below, 50000, 64);
    assert_int_equal(ebb_region_measured(child), 53248);
    struct ebb_pool_stats after = pool_stats_of(stage->pool);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ebb_region_close(region), 0);
}

static void a_region_with_memory_has_no_child_that_measures(void **state) {
    struct stage *stage = *state;
    assert_false(ebb_region_is_open(OPEN(.parent = stage->root, .measure = true)));
    assert_refused(ebb_last_error(), EBB_E_ARGUMENT);
}

/* The first of two blocks that need addresses of their own is alone in its run. */
static void what_went_back_stays_measured(void **state) {
    ebb_region region = OPEN(.measure = true);
    take(region, 1, 16);
    size_t bytes = (size_t)stats_of(region).reserved.current / 4 * 3;
    assert_int_equal(ebb_region_close(region), 0);
    region = OPEN(.measure = true);
    void *first = take(region, bytes, 64);
    take(region, bytes, 64);
    size_t hint = ebb_region_measured(region);
    assert_true(hint >= 2 * bytes);
    assert_int_equal(ebb_region_release(region, first), 0);
    assert_int_equal(stats_of(region).runs, 1);
    assert_int_equal(ebb_region_measured(region), hint);
    assert_int_equal(ebb_region_close(region), 0);
}

/* Each has 4 GiB of them, or what a block needs. */
static void addresses_of_measuring_regions_come_back(void **state) {
    enum { MOST = 300 };
    static ebb_region regions[MOST];
    int count = 0;
    while (count < MOST && ebb_region_is_open(regions[count] = OPEN(.measure = true)) &&
           ebb_region_alloc(regions[count], 10, 16))
        count++;
    assert_true(count > 4);
    for (int i = 0; i <= count && i < MOST; i++)
        (void)ebb_region_close(regions[i]);
    ebb_region region = OPEN(.pool = NULL);
    block_of(region, 100, 16);
    assert_int_equal(ebb_region_close(region), 0);
    size_t step = (size_t)count * 4 * MIB; /* a thousandth of all */
    for (size_t bytes = step; bytes <= 60 * step; bytes += step) { /* 1.8 times all there are */
        region = OPEN(.measure = true);
        take(region, bytes, 64);
        assert_int_equal(ebb_region_close(region), 0);
    }
}

static void a_hint_is_rounded_to_pages_and_reserved_at_once(void **state) {
    struct stage *stage = *state;
    static const size_t hints[] = {1, 4095, 4096, 4097, 100000, 10 << 20};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        ebb_region region = OPEN(.parent = stage->root, .hint_bytes = hints[i]);
        size_t pages = (hints[i] + PAGE - 1) / PAGE * PAGE;
        struct ebb_region_stats stats = stats_of(region);
        assert_int_equal(stats.reserved.current, pages);
        assert_int_equal(stats.runs, 1);
        assert_int_equal(stats.waste, pages);
        block_of(region, pages, 64);
        assert_int_equal(stats_of(region).reserved.peak, pages);
        ebb_region_close(region);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_measured_hint_is_exact),
        cmocka_unit_test(a_hint_measured_above_children_is_exact_below_a_root),
        cmocka_unit_test(the_measured_hint_is_exact_where_blocks_are_counted_one_by_one),
        cmocka_unit_test(a_hint_measured_with_sites_is_exact),
        cmocka_unit_test(growing_in_place_is_measured),
        STAGED(a_measuring_region_takes_nothing_and_counts_everything),
        cmocka_unit_test(an_empty_measuring_region_needs_no_hint),
        cmocka_unit_test(a_reset_forgets_no_measure),
        cmocka_unit_test(a_measuring_region_has_no_limit),
        cmocka_unit_test(children_of_measuring_regions_measure),
        STAGED(they_may_name_any_pool_as_their_parent_did),
        STAGED(a_region_with_memory_has_no_child_that_measures),
        cmocka_unit_test(what_went_back_stays_measured),
        cmocka_unit_test(addresses_of_measuring_regions_come_back),
        STAGED(a_hint_is_rounded_to_pages_and_reserved_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
