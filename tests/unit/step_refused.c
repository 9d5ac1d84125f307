// SPDX-License-Identifier: Apache-2.0
/*
 * step_refused.c - steps that ask for what the pool's limit refuses, and go another way: the plan
 * serves all the rest as if nobody had asked. What an unplanned step would get is not refused: the
 * arena gives way.
 */
#include "kit/refused.h"

/* Requests of a few blocks up to more than the whole plan, in front of a block that has a slot. */
static void a_try_takes_no_slot_and_no_arena(void **state) {
    enum { BLOCKS = 32 };
    static const size_t tries[] = {3, 5, 20, BLOCKS, BLOCKS + 1};
    for (size_t k = 0; k < sizeof tries / sizeof *tries; k++) {
        ebb_pool *pool = POOL(.limit_reserved_bytes = (BLOCKS + 2) * SIZE);
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
        for (unsigned i = 0; i < STEPS; i++) {
            ebb_step step = ebb_step_begin(site, 0);
            for (unsigned block = 0; block < BLOCKS; block++) {
                if (i >= LEARNING && block == BLOCKS - 2)
                    refused(step.region, tries[k] + 4);
                block_of(step.region, SIZE, 64);
            }
            assert_int_equal(ebb_step_end(step), 0);
        }
        struct ebb_site_stats stats = site_stats(site);
        assert_int_equal(stats.hits, (STEPS - 2) * BLOCKS);
        assert_int_equal(stats.missed, 0);
        assert_int_equal(stats.takeovers, 0);
        assert_int_equal(stats.plans, 1);
        assert_int_equal(ebb_site_destroy(site), 0);
        pool_end(pool);
    }
}

/* Large and small ones take turns: less than a sixteenth of the plan, in front of a small one. */
static void nor_does_a_small_try(void **state) {
    enum { BLOCKS = 64, SUM = BLOCKS / 2 * (SIZE + SIZE / 2) };
    ebb_pool *pool = POOL(.limit_reserved_bytes = SUM + SIZE);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned block = 0; block < BLOCKS; block++) {
            if (i >= LEARNING && block == BLOCKS - 3)
                refused_bytes(step.region, SUM / 20);
            block_of(step.region, block % 2 ? SIZE / 2 : SIZE, 64);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.hits, (STEPS - 2) * BLOCKS);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(stats.plans, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* What is refused until others' releases are looked for takes one slot of the plan, not two, and is
 * missed, however large it is. */
static void a_second_try_takes_no_second_slot(void **state) {
    for (unsigned blocks = 8; blocks <= 64; blocks *= 8) {
        ebb_pool *pool = POOL(0);
        ebb_region run = OPEN(.pool = pool), other = OPEN(.parent = run);
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
        void *waits = relinked_block(other, 4);
        for (unsigned i = 0; i <= LEARNING; i++) {
            ebb_step step = ebb_step_begin_under(site, run, 0);
            for (unsigned block = 0; block < blocks; block++) {
                if (i == LEARNING && block == blocks - 2) {
                    fill_up(pool);
                    refused(step.region, 3); /* in front of a slot, too */
                    assert_int_equal(ebb_region_release_remote(other, waits), 0);
                    block_of(step.region, 3 * SIZE, 64);
                }
                block_of(step.region, SIZE, 64);
            }
            assert_int_equal(ebb_step_end(step), 0);
        }
        struct ebb_site_stats stats = site_stats(site);
        unsigned outgrown = blocks < 16; /* then nothing is served behind it */
        assert_int_equal(stats.takeovers, outgrown);
        assert_int_equal(stats.missed, 2 + outgrown); /* the last one has no slot any more */
        assert_int_equal(stats.hits, (LEARNING - 1) * blocks - 1 - outgrown);
        assert_int_equal(ebb_site_destroy(site), 0);
        assert_int_equal(ebb_region_close(run), 0);
        pool_end(pool);
    }
}

enum { ALIKE = 32 };

/* The steps that are learnt: blocks that live to the end, with keys, and some small ones, which are
 * not as many each time. */
static void take_alike(ebb_site *site, bool keyed, unsigned small) {
    ebb_step step = ebb_step_begin(site, 0);
    for (uint32_t block = 1; block <= ALIKE; block++)
        assert_non_null(keyed ? ebb_step_alloc(step, SIZE, 64, block)
                              : ebb_region_alloc(step.region, SIZE, 64));
    for (unsigned block = 0; block < small; block++)
        block_of(step.region, 48, 16);
    assert_int_equal(ebb_step_end(step), 0);
}

struct odd {
    size_t bytes;
    unsigned blocks;
    bool keyed, coarse, marked;
};

/* Less than the arena has room for, and more than the limit leaves beside it. */
static void take_odd(ebb_site *site, const struct odd *odd) {
    ebb_step step = ebb_step_begin(site, 0);
    for (uint32_t key = 1; odd->keyed && key <= 2; key++) /* there is one between them */
        assert_non_null(ebb_step_alloc(step, SIZE, 64, 2 * key - 1));
    assert_true(!odd->marked || ebb_region_mark(step.region).serial);
    for (unsigned block = 0; block < odd->blocks; block++) {
        void *got = block_of(step.region, odd->bytes, 16);
        pattern_fill(got, odd->bytes, block);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

static void what_the_arena_has_room_for_is_not_refused(void **state) {
    static const struct odd odds[] = {
        {.bytes = 100 << 10, .blocks = 20},
        {.bytes = 100 << 10, .blocks = 18, .keyed = true},
        {.bytes = 100 << 10, .blocks = 20, .marked = true},
        {.bytes = 48, .blocks = 20000, .coarse = true},
    };
    for (size_t k = 0; k < sizeof odds / sizeof *odds; k++)
        for (unsigned unplanned = 0; unplanned < 2; unplanned++) {
            const struct odd *odd = &odds[k];
            ebb_pool *pool = POOL(0);
            ebb_site *site = ebb_site_create(
                EBB_SITE_OPTIONS(.pool = pool, .unplanned = unplanned != 0));
            for (unsigned i = 0; i < LEARNING; i++)
                take_alike(site, odd->keyed, odd->coarse ? 10 + i : 0);
            (void)ebb_pool_trim(pool, 0);
            size_t beside = odd->bytes > SIZE ? 2 * SIZE : 0;
            assert_int_equal(ebb_pool_set_reserved_limit(pool, ALIKE * SIZE + beside), 0);
            struct ebb_site_stats learnt = site_stats(site);
            assert_int_equal(learnt.plans > 0, !unplanned);
            take_odd(site, odd);
            assert_int_equal(site_stats(site).takeovers - learnt.takeovers, !unplanned);
            for (unsigned i = 0; i < LEARNING; i++)
                take_alike(site, odd->keyed, 0);
            assert_int_equal(site_stats(site).hits - learnt.hits,
                             unplanned ? 0 : LEARNING * ALIKE + (odd->keyed ? 2 : 0));
            assert_int_equal(ebb_site_destroy(site), 0);
            pool_end(pool);
        }
}

/* Two blocks that live to the end. */
static void take_pair(ebb_site *site, size_t first, size_t second) {
    ebb_step step = ebb_step_begin(site, 0);
    block_of(step.region, first, 64);
    block_of(step.region, second, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

/* A site with a plan for these two, and a limit on pages from now on. */
static ebb_site *pair_site(ebb_pool *pool, size_t first, size_t second, size_t limit) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < LEARNING; i++)
        take_pair(site, first, second);
    assert_int_equal(site_stats(site).plan_height, first + second);
    (void)ebb_pool_trim(pool, 0);
    assert_int_equal(ebb_pool_set_reserved_limit(pool, limit), 0);
    return site;
}

/* That of both sizes is higher than the limit, which each step fits. */
static void a_plan_that_is_too_high_for_the_limit_gives_way(void **state) {
    ebb_pool *pool = POOL(0);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    take_pair(site, 60 * KIB, 64 * KIB);
    take_pair(site, 64 * KIB, 60 * KIB);
    assert_int_equal(site_stats(site).plan_height, 128 * KIB);
    assert_int_equal(ebb_pool_set_reserved_limit(pool, 124 * KIB), 0);
    for (unsigned i = 0; i < 100; i++)
        take_pair(site, 40 * KIB, 80 * KIB);
    assert_int_equal(site_stats(site).plan_height, 120 * KIB);
    assert_in_range(site_stats(site).planned_steps, 50, 100);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* Nor is one made so high that serves well as it is. */
static void no_plan_grows_above_the_limit(void **state) {
    enum { ALL = 100 };
    ebb_pool *pool = POOL(.limit_reserved_bytes = 126 * KIB);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < ALL; i++)
        take_pair(site, i % 4 == 1 ? 60 * KIB : 80 * KIB, i % 4 == 1 ? 44 * KIB : 40 * KIB);
    assert_int_equal(site_stats(site).plan_height, 124 * KIB);
    for (unsigned i = 0; i < ALL; i++) /* the first one has the arena, but not as it is planned */
        take_pair(site, i % 4 ? 80 * KIB : 84 * KIB, 40 * KIB);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.planned_steps, 2 * ALL - stats.recorded_steps);
    assert_int_equal(stats.plan_height, 124 * KIB);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* There are as many bytes, but in two parts; or nothing of the plan is to come. */
static void a_try_that_would_fit_in_parts_harms_no_plan(void **state) {
    static const size_t tries[] = {46 * KIB, 50 * KIB, 60 * KIB};
    for (unsigned k = 0; k < 2 * sizeof tries / sizeof *tries; k++) {
        ebb_pool *pool = POOL(0);
        ebb_site *site = pair_site(pool, 60 * KIB, 44 * KIB, 120 * KIB);
        struct ebb_site_stats learnt = site_stats(site);
        for (unsigned i = 0; i < LEARNING; i++) {
            ebb_step step = ebb_step_begin(site, 0);
            for (unsigned block = 0; block < 3; block++) {
                if (block == 1 + k % 2)
                    refused_bytes(step.region, tries[k / 2]);
                if (block < 2)
                    block_of(step.region, (block ? 44 : 60) * KIB, 64);
            }
            assert_int_equal(ebb_step_end(step), 0);
        }
        struct ebb_site_stats stats = site_stats(site);
        assert_int_equal(stats.hits - learnt.hits, 2 * LEARNING);
        assert_int_equal(stats.missed, learnt.missed);
        assert_int_equal(stats.takeovers, 0);
        assert_int_equal(stats.plans, learnt.plans);
        assert_int_equal(stats.plan_height, 104 * KIB);
        assert_int_equal(ebb_site_destroy(site), 0);
        pool_end(pool);
    }
}

/* The lane looks at the smallest gap alone, where a block of 100 KiB does not fit at a page. */
static void a_gap_that_no_lane_would_find_is_none(void **state) {
    static const size_t sizes[] = {103, 102, 101, 20, 8, 8}; /* one behind the other */
    enum { BLOCKS = sizeof sizes / sizeof *sizes, TRIED_AT = 4 };
    ebb_pool *pool = POOL(0);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i <= LEARNING; i++) {
        void *blocks[BLOCKS];
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned k = 0; k < BLOCKS; k++) {
            if (i == LEARNING && k == TRIED_AT) {
                assert_int_equal((uintptr_t)blocks[0] % 4096, 0);
                assert_int_equal((uintptr_t)blocks[2] % 4096, KIB);
                assert_int_equal(ebb_region_release(step.region, blocks[0]), 0);
                assert_int_equal(ebb_region_release(step.region, blocks[2]), 0);
                fill_up(pool);
                assert_no_block(ebb_region_alloc(step.region, 100 * KIB, 4096), EBB_E_POOL_LIMIT);
            }
            blocks[k] = block_of(step.region, sizes[k] * KIB, 64);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).takeovers, 0);
    assert_int_equal(site_stats(site).hits, (LEARNING - 1) * BLOCKS);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

enum { GAPS_MOST = 8 };

/* One behind the other in the plan; the last step of the site releases two, and has no pages. */
struct gaps {
    size_t kib[GAPS_MOST];
    unsigned released[2];
    size_t offsets[2]; /* of these in their page */
};

static void try_in_gaps(const struct gaps *gaps, void (*try)(ebb_region)) {
    ebb_pool *pool = POOL(0);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i <= LEARNING; i++) {
        void *blocks[GAPS_MOST];
        unsigned count = 0;
        ebb_step step = ebb_step_begin(site, 0);
        for (; gaps->kib[count]; count++)
            blocks[count] = block_of(step.region, gaps->kib[count] * KIB, 64);
        for (unsigned k = 0; k < 2 && i == LEARNING; k++) {
            void *gone = blocks[gaps->released[k]];
            assert_int_equal((uintptr_t)gone % 4096, gaps->offsets[k]);
            assert_int_equal(ebb_region_release(step.region, gone), 0);
        }
        if (i == LEARNING) {
            fill_up(pool);
            try(step.region);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).takeovers, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

static void try_more_and_more(ebb_region region) {
    for (unsigned i = 0; i < 3; i++)
        assert_no_block(ebb_region_alloc(region, 100 * KIB, 4096), EBB_E_POOL_LIMIT);
    block_of(region, 102 * KIB, 4096);
}

/* The smaller gap has no room for it, and is not looked at. */
static void more_may_have_a_gap_where_less_has_none(void **state) {
    static const struct gaps gaps = {{103, 102, 101, 20, 8, 8}, {0, 2}, {0, KIB}};
    try_in_gaps(&gaps, try_more_and_more);
}

static void try_at_a_page(ebb_region region) {
    block_of(region, 100 * KIB, 4096);
}

/* Of gaps of one size the lane looks at the first. */
static void the_first_of_two_gaps_is_one(void **state) {
    static const struct gaps gaps = {{101, 101, 101, 20, 8, 8}, {0, 2}, {0, 2 * KIB}};
    try_in_gaps(&gaps, try_at_a_page);
}

/* A step that fits the limit, but not beside the arena, nor what is left of that in it. */
static void an_empty_arena_is_in_nobodys_way(void **state) {
    static const size_t pairs[][2] = {{112, 8}, {80, 40}, {116, 2}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        ebb_pool *pool = POOL(0);
        ebb_site *site = pair_site(pool, 60 * KIB, 44 * KIB, 120 * KIB);
        ebb_step step = ebb_step_begin(site, 0);
        void *first = block_of(step.region, 60 * KIB, 64);
        assert_int_equal(ebb_region_release(step.region, first), 0);
        refused_bytes(step.region, 121 * KIB);
        block_of(step.region, pairs[k][0] * KIB, 64);
        block_of(step.region, pairs[k][1] * KIB, 64);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(site_stats(site).takeovers, 1);
        for (unsigned i = 0; i < LEARNING; i++)
            take_pair(site, 60 * KIB, 44 * KIB);
        assert_int_equal(site_stats(site).hits, 2 * (2 * LEARNING - 2) + 1);
        assert_int_equal(ebb_site_destroy(site), 0);
        pool_end(pool);
    }
}

/* Nor where it is no limit that is in the way of another place, but the end of a slot. */
static void an_empty_arena_is_in_nobodys_way_in_a_slot(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 4 * MIB);
    ebb_site *site = pair_site(pool, 1 * MIB, 1500 * KIB, 0);
    ebb_step step = ebb_step_begin(site, 0);
    block_of(step.region, 3 * MIB, 64);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).takeovers, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* A site whose steps take 2000 KiB, and what they took is kept. */
static ebb_site *kept_site(ebb_pool *pool, ebb_region root) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin_under(site, root, 0);
        for (unsigned k = 0; k < 5; k++)
            block_of(step.region, 400 * KIB, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    return site;
}

/* Behind it are cold pages, for which cached ones that lie elsewhere make room. */
static void a_run_grows_over_what_is_kept(void **state) {
    ebb_pool *pool = POOL(.keep_all = true);
    ebb_region cached = OPEN(.pool = pool, .hint_bytes = 3 * MIB), first = OPEN(.pool = pool);
    block_of(first, 6400 * KIB, 64);
    assert_int_equal(ebb_region_close(first), 0);
    ebb_region region = OPEN(.pool = pool);
    void *block = block_of(region, 4 * MIB, 64);
    ebb_site *site = kept_site(pool, (ebb_region){NULL, 0});
    assert_int_equal(ebb_region_close(cached), 0);
    assert_int_equal(ebb_region_release(region, block), 0);
    ebb_pool_set_reserved_limit(pool, pool_stats_of(pool).reserved.current);
    block_of(region, 8 * MIB, 64);
    assert_int_equal(ebb_check_pool(pool), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* Whether or not other pages are hot as well. */
static void ask_too_much(bool has_hole) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 16 * MIB,
                          .limit_reserved_bytes = 3 * MIB);
    ebb_region root = OPEN(.pool = pool), hole = OPEN(.parent = root, .hint_bytes = 256 * KIB);
    block_of(root, 1000, 64);
    ebb_site *site = kept_site(pool, root);
    ebb_region wall = OPEN(.parent = root, .hint_bytes = 64 * KIB);
    if (has_hole)
        assert_int_equal(ebb_region_close(hole), 0);
    refused_bytes(root, 2560 * KIB);
    ebb_region other = OPEN(.parent = root, .hint_bytes = 500 * KIB);
    ebb_step step = ebb_step_begin_under(site, root, 0);
    for (unsigned k = 0; k < 5; k++)
        block_of(step.region, 400 * KIB, 64);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).hits, (STEPS - 2 + 1) * 5);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(ebb_region_close(wall), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* There would be no piece of that length: what is kept is not lost to who takes hot pages. */
static void a_try_in_vain_leaves_what_is_kept(void **state) {
    ask_too_much(true);
    ask_too_much(false);
}

/* The slot has as many, but in two parts: another region lies behind the arena. */
static void an_empty_arena_stays_where_its_pages_make_no_piece(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 8 * MIB);
    ebb_region root = OPEN(.pool = pool);
    ebb_site *site = kept_site(pool, root);
    ebb_step step = ebb_step_begin_under(site, root, 0);
    ebb_region wall = OPEN(.parent = root, .hint_bytes = 64 * KIB);
    refused_bytes(step.region, 6500 * KIB);
    for (unsigned k = 0; k < 5; k++)
        block_of(step.region, 400 * KIB, 64);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).takeovers, 0);
    assert_int_equal(site_stats(site).hits, (STEPS - 2 + 1) * 5);
    assert_int_equal(ebb_region_close(wall), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* A step that fits the limit where the run beside the arena grows: what is free there counts. */
static void a_run_grows_where_an_empty_arena_was_in_its_way(void **state) {
    ebb_pool *pool = POOL(0);
    ebb_site *site = pair_site(pool, 32 * KIB, 28 * KIB, 168 * KIB);
    ebb_step step = ebb_step_begin(site, 0);
    void *first = block_of(step.region, 68 * KIB, 64);
    assert_int_equal(ebb_region_release(step.region, first), 0);
    block_of(step.region, 156 * KIB, 64);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* The next runs lie there, one behind the other. */
static void leave_hot(ebb_pool *pool, size_t bytes) {
    assert_int_equal(ebb_region_close(OPEN(.pool = pool, .hint_bytes = bytes)), 0);
}

/* The step's own run is free, but another region has the pages behind it, or behind the arena: that
 * lies right in front of the run, right behind it, or elsewhere. */
static void an_empty_arena_is_in_the_way_of_its_neighbours_alone(void **state) {
    enum { IN_FRONT, BEHIND, APART, PLACES };
    for (unsigned place = 0; place < PLACES; place++) {
        bool apart = place == APART;
        ebb_pool *pool = POOL(0);
        ebb_site *site = pair_site(pool, 2 * KIB, 58 * KIB, 84 * KIB);
        struct ebb_site_stats learnt = site_stats(site);
        if (!apart)
            leave_hot(pool, 80 * KIB);
        ebb_region before = OPEN(.pool = pool, .hint_bytes = place == BEHIND ? 16 * KIB : 0);
        ebb_step step = ebb_step_begin(site, 0);
        assert_int_equal(ebb_region_close(before), 0);
        if (apart)
            leave_hot(pool, 20 * KIB);
        char *first = block_of(step.region, 3 * KIB, 64); /* for which its slot is too small */
        ebb_region other = OPEN(.pool = pool, .hint_bytes = 4 * KIB);
        char *end = block_of(other, 2 * KIB, 64);
        assert_int_equal(end - first, (place == BEHIND ? 76 : 16) * KIB);
        assert_int_equal(ebb_region_release(step.region, first), 0);
        if (apart)
            refused_bytes(step.region, 72 * KIB);
        block_of(step.region, (apart ? 58 : 72) * KIB, 64);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(site_stats(site).takeovers, !apart);
        assert_int_equal(site_stats(site).hits - learnt.hits, apart);
        assert_int_equal(ebb_region_close(other), 0);
        assert_int_equal(ebb_site_destroy(site), 0);
        pool_end(pool);
    }
}

/* An arena in front of the step's own run of 16 KiB, behind which another region has the pages, or
 * those behind a gap that has no memory. KiB. */
struct vain {
    size_t first, second, limit;
    size_t gap, tried;
    bool bears; /* the step has had a child, so it claims nothing around its run */
};

/* The run cannot have all of the arena's pages, however many there are for a block. */
static void try_in_vain(const struct vain *vain) {
    ebb_pool *pool = POOL(0);
    ebb_site *site = pair_site(pool, vain->first * KIB, vain->second * KIB, vain->limit * KIB);
    struct ebb_site_stats learnt = site_stats(site);
    leave_hot(pool, (vain->first + vain->second + 16 + vain->gap + 4) * KIB);
    ebb_step step = ebb_step_begin(site, 0);
    char *own = block_of(step.region, vain->first * KIB * 3 / 2, 64); /* its slot is too small */
    ebb_region gap = OPEN(.pool = pool, .hint_bytes = vain->gap * KIB);
    ebb_region other = OPEN(.pool = pool, .hint_bytes = 4 * KIB);
    char *end = block_of(other, 2 * KIB, 64);
    assert_int_equal(end - own, (16 + vain->gap) * KIB);
    assert_int_equal(ebb_region_close(gap), 0);
    (void)ebb_pool_trim(pool, 0);
    assert_int_equal(ebb_region_release(step.region, own), 0);
    if (vain->bears)
        assert_int_equal(ebb_region_close(OPEN(.parent = step.region)), 0);
    refused_bytes(step.region, vain->tried * KIB);
    block_of(step.region, vain->second * KIB, 64);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).takeovers, 0);
    assert_int_equal(site_stats(site).hits - learnt.hits, 1);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

static void an_empty_arena_stays_that_the_run_behind_it_would_not_claim(void **state) {
    try_in_vain(&(struct vain){8, 232, 264, .tried = 248});
    try_in_vain(&(struct vain){2, 58, 84, .tried = 72, .bears = true});
    try_in_vain(&(struct vain){2, 58, 88, .gap = 8, .tried = 82});
}

/* A plan of 125 KiB needs pages for 128. */
static void part_of_a_page_is_no_room(void **state) {
    enum { ALL = 100 };
    ebb_pool *pool = POOL(.limit_reserved_bytes = 126 * KIB);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < ALL; i++)
        take_pair(site, i == 1 ? 60 * KIB : 80 * KIB, i == 1 ? 45 * KIB : 40 * KIB);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.plan_height, 120 * KIB);
    assert_int_equal(stats.plans, 1);
    assert_in_range(stats.planned_steps, ALL - 30, ALL);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* Beside the arena of the other there would be no place for the larger block. */
static void none_is_made_of_one_of_two_sizes_where_the_limit_forbids_both(void **state) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = 124 * KIB);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < 100; i++)
        take_pair(site, i == 1 ? 60 * KIB : 40 * KIB, i == 1 ? 44 * KIB : 80 * KIB);
    assert_int_equal(site_stats(site).plan_height, 120 * KIB);
    assert_int_equal(site_stats(site).takeovers, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_takes_no_slot_and_no_arena),
        cmocka_unit_test(nor_does_a_small_try),
        cmocka_unit_test(a_second_try_takes_no_second_slot),
        cmocka_unit_test(what_the_arena_has_room_for_is_not_refused),
        cmocka_unit_test(a_plan_that_is_too_high_for_the_limit_gives_way),
        cmocka_unit_test(no_plan_grows_above_the_limit),
        cmocka_unit_test(a_try_that_would_fit_in_parts_harms_no_plan),
        cmocka_unit_test(a_gap_that_no_lane_would_find_is_none),
        cmocka_unit_test(more_may_have_a_gap_where_less_has_none),
        cmocka_unit_test(the_first_of_two_gaps_is_one),
        cmocka_unit_test(an_empty_arena_is_in_nobodys_way),
        cmocka_unit_test(an_empty_arena_is_in_nobodys_way_in_a_slot),
        cmocka_unit_test(a_run_grows_over_what_is_kept),
        cmocka_unit_test(a_try_in_vain_leaves_what_is_kept),
        cmocka_unit_test(an_empty_arena_stays_where_its_pages_make_no_piece),
        cmocka_unit_test(a_run_grows_where_an_empty_arena_was_in_its_way),
        cmocka_unit_test(an_empty_arena_is_in_the_way_of_its_neighbours_alone),
        cmocka_unit_test(an_empty_arena_stays_that_the_run_behind_it_would_not_claim),
        cmocka_unit_test(part_of_a_page_is_no_room),
        cmocka_unit_test(none_is_made_of_one_of_two_sizes_where_the_limit_forbids_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
