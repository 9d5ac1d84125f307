// SPDX-License-Identifier: Apache-2.0
/*
 * step.c - sites and steps as programs see them: what is served when, rings, tags, survivors,
 * budgets, counters; steps that end in unusual ways.
 */
#include "kit/test.h"

enum { BLOCKS = 60 };

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

static ebb_step begin(ebb_site *site, ebb_region parent, uint64_t tag) {
    ebb_step step = ebb_step_begin_under(site, parent, tag);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

static size_t size_at(unsigned i, unsigned scale) {
    return 100 + i % 7 * 1500 * scale;
}

/* What a step does: blocks come, every third goes some blocks later, all keep their bytes. */
static void work(ebb_step step, unsigned blocks, unsigned scale) {
    void *live[BLOCKS] = {NULL};
    for (unsigned i = 0; i < blocks; i++) {
        live[i] = block_of(step.region, size_at(i, scale), 64);
        pattern_fill(live[i], size_at(i, scale), i);
        if (i >= 9 && i % 3 == 0) {
            assert_true(pattern_holds(live[i - 9], size_at(i - 9, scale), i - 9));
            assert_int_equal(ebb_region_release(step.region, live[i - 9]), 0);
            live[i - 9] = NULL;
        }
    }
    for (unsigned i = 0; i < blocks; i++)
        assert_true(!live[i] || pattern_holds(live[i], size_at(i, scale), i));
}

static void take_step(ebb_site *site, ebb_region parent, uint64_t tag, unsigned scale) {
    ebb_step step = begin(site, parent, tag);
    work(step, BLOCKS, scale);
    assert_int_equal(ebb_step_end(step), 0);
    assert_false(ebb_region_is_open(step.region));
}

/* ---- learning ---- */

static void from_the_third_step_on_all_blocks_come_from_the_plan(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.name = "train", .pool = stage->pool);
    for (int i = 0; i < 20; i++)
        take_step(site, (ebb_region){NULL, 0}, 1, 1);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.steps, 20);
    assert_int_equal(stats.recorded_steps, 2);
    assert_int_equal(stats.planned_steps, 18);
    assert_int_equal(stats.allocations, 20 * BLOCKS);
    assert_int_equal(stats.hits, 18 * BLOCKS);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(stats.plans, 1);
    assert_int_equal(stats.plan_slots, BLOCKS);
    assert_true(stats.plan_height >= stats.plan_max_live);
    assert_true(stats.allocated_bytes / 20 * 18 == stats.hit_bytes);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_site_that_is_told_so_does_not_learn(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.unplanned = true, .pool = stage->pool);
    for (int i = 0; i < 10; i++)
        take_step(site, (ebb_region){NULL, 0}, 1, 1);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.steps, 10);
    assert_int_equal(stats.planned_steps + stats.recorded_steps + stats.hits + stats.plans, 0);
    assert_int_equal(stats.allocations, 10 * BLOCKS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_larger_step_is_served_whole_when_it_comes_again(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 5; i++)
        take_step(site, stage->root, 1, 1);
    take_step(site, stage->root, 1, 2);
    struct ebb_site_stats before = site_stats(site);
    assert_true(before.missed > 0);
    assert_int_equal(before.plans, 2);
    for (unsigned i = 0; i < 5; i++)
        take_step(site, stage->root, 1, 2 - i % 2);
    struct ebb_site_stats after = site_stats(site);
    assert_true(after.missed == before.missed && after.plans == 2);
    assert_int_equal(after.recorded_steps, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The last has a block beside its plan of 4 MiB, while 16 MiB are hot. */
static void what_comes_beside_a_plan_takes_little_more_than_it_needs(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (unsigned i = 0; i < 6; i++) {
        ebb_step step = begin(site, stage->root, 1);
        for (unsigned block = 0; block < 4 + (i == 5); block++)
            block_of(step.region, block < 4 ? MIB : 40 * KIB, 64);
        struct ebb_region_stats stats = stats_of(step.region);
        if (i == 5)
            assert_true(stats.reserved.current <= 4 * MIB + 128 * KIB);
        assert_int_equal(ebb_step_end(step), 0);
        ebb_region other = OPEN(.pool = stage->pool);
        block_of(other, 16 * MIB, 64);
        assert_int_equal(ebb_region_close(other), 0);
    }
    assert_int_equal(site_stats(site).planned_steps, 4);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* However many pages are hot around it. */
static void a_small_step_holds_few_pages(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .unplanned = true);
    for (unsigned i = 0; i < 4; i++) {
        ebb_region other = OPEN(.pool = stage->pool);
        block_of(other, 16 * MIB, 64);
        assert_int_equal(ebb_region_close(other), 0);
        ebb_step step = begin(site, stage->root, 1);
        for (unsigned block = 0; block < 6; block++)
            block_of(step.region, 6 * KIB, 64);
        assert_in_range(stats_of(step.region).reserved.current, 36 * KIB, 160 * KIB);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void each_tag_has_a_plan_of_its_own(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (unsigned i = 0; i < 10; i++)
        for (uint64_t tag = 0; tag < 4; tag++)
            take_step(site, stage->root, tag, 1 + (unsigned)tag);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.recorded_steps, 8);
    assert_int_equal(stats.plans, 4);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void tags_beyond_the_sixteenth_are_not_planned(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 3; i++)
        for (uint64_t tag = 0; tag < 20; tag++)
            take_step(site, stage->root, tag * 1000, 1);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.recorded_steps, 32);
    assert_int_equal(stats.planned_steps, 16);
    assert_int_equal(stats.steps, 60);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void steps_that_never_repeat_are_left_to_best_fit(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    uint32_t chance = 1;
    for (int i = 0; i < 100; i++) {
        ebb_step step = begin(site, stage->root, 1);
        void *last = NULL;
        for (int k = 0; k < 80; k++) {
            chance = chance * 1664525 + 1013904223;
            void *block = block_of(step.region, 64 + chance % 50000, 64);
            if (last && chance % 3)
                assert_int_equal(ebb_region_release(step.region, last), 0);
            last = block;
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.suspended);
    assert_in_range(stats.planned_steps, 1, 30);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void empty_steps_are_counted_and_nothing_is_learnt_from_them(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (unsigned i = 0; i < 300; i++)
        assert_int_equal(ebb_step_end(begin(site, stage->root, 1)), 0);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.steps, 300);
    assert_int_equal(stats.allocations + stats.planned_steps + stats.reserved_peak, 0);
    uint64_t recorded = stats.recorded_steps;
    for (unsigned i = 0; i < 100; i++)
        take_step(site, stage->root, 1, 1);
    stats = site_stats(site);
    assert_int_equal(stats.recorded_steps, recorded + 2);
    assert_true(stats.planned_steps >= 20 && stats.missed == 0);
    assert_int_equal(ebb_step_end(begin(site, stage->root, 1)), 0);
    take_step(site, stage->root, 1, 1);
    assert_int_equal(site_stats(site).planned_steps, stats.planned_steps + 2);
    assert_int_equal(site_stats(site).allocations, 101 * BLOCKS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void keys_let_a_plan_follow_loops_of_varying_length(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (unsigned i = 0; i < 40; i++) {
        ebb_step step = begin(site, stage->root, 1);
        for (unsigned k = 0; k < 20 - i % 5; k++) {
            void *hidden = ebb_step_alloc(step, 5000, 64, 1);
            void *gate = ebb_step_alloc(step, 300, 16, 2);
            assert_true(hidden && gate);
            assert_int_equal(ebb_region_release(step.region, hidden), 0);
        }
        assert_non_null(ebb_step_alloc(step, 9000, 64, UINT32_MAX));
        assert_non_null(ebb_step_alloc(step, 9000, 64, 0x80000001));
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.hits > stats.missed * 19);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* One with a key came before them in this step, and behind them in those that were recorded. */
static void blocks_without_keys_have_what_is_next_or_was_passed(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (unsigned i = 0; i < 3; i++) {
        ebb_step step = begin(site, stage->root, 1);
        assert_true(i < 2 || ebb_step_alloc(step, 2000, 64, 7)); /* far ahead */
        for (unsigned k = 0; k < 10; k++)
            assert_non_null(i < 2 && k >= 7 ? ebb_step_alloc(step, 5000, 64, k)
                                            : ebb_region_alloc(step.region, 5000, 64));
        assert_true(i < 2 || ebb_step_alloc(step, 2000, 64, 8));
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).hits, 10);
    assert_int_equal(site_stats(site).missed, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- survivors ---- */

/* A step that makes two results, and keeps them: block 3 and block 7. */
static struct ebb_promoted keep_step(ebb_site *site, ebb_region parent, bool keep) {
    struct ebb_promoted cost = {0};
    uint64_t lost = 99;
    ebb_step step = begin(site, parent, 1);
    void *blocks[10];
    for (unsigned i = 0; i < 10; i++) {
        blocks[i] = block_of(step.region, 6000 + 100 * i, 64);
        pattern_fill(blocks[i], 6000, i);
    }
    assert_int_equal(ebb_region_release(step.region, blocks[5]), 0);
    struct ebb_survivor list[2] = {survivor_of(blocks[3], EBB_PROMOTE_AUTO),
                                   survivor_of(blocks[7], EBB_PROMOTE_COPY)};
    assert_int_equal(ebb_step_end_keeping(step, parent, list, keep ? 2 : 0, &cost, &lost), 0);
    assert_true(lost <= 9 && lost >= 7);
    for (unsigned i = 0; i < 2 && keep; i++) {
        assert_true(pattern_holds(list[i].block, 6000, i ? 7 : 3));
        assert_int_equal(ebb_region_release(parent, list[i].block), 0);
    }
    return cost;
}

static void what_survives_is_born_in_the_parent_and_costs_nothing(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 2; i++)
        assert_true(keep_step(site, stage->root, true).copied_blocks >= 1);
    for (int i = 0; i < 10; i++) {
        struct ebb_promoted cost = keep_step(site, stage->root, true);
        assert_true(cost.copied_blocks == 0 && cost.relinked_blocks == 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.tenured_right, 20);
    assert_int_equal(stats.tenured_right_bytes, 10 * (6300 + 6700));
    assert_int_equal(stats.tenured_wrong, 0);
    assert_int_equal(stats.allocations, 12 * 10);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

static void what_was_born_there_for_nothing_ends_with_the_step(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 3; i++)
        keep_step(site, stage->root, true);
    keep_step(site, stage->root, false);
    assert_int_equal(site_stats(site).tenured_wrong, 2);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    for (int i = 0; i < 10; i++)
        keep_step(site, stage->root, false);
    assert_true(site_stats(site).tenured_wrong <= 4); /* it has been unlearnt */
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void nothing_is_born_in_the_parent_where_that_is_not_wanted(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .tenure_none = true);
    for (int i = 0; i < 12; i++)
        assert_true(keep_step(site, stage->root, true).copied_blocks >= 1);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.tenured_right + stats.tenured_wrong, 0);
    assert_int_equal(stats.planned_steps, 10);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_promotion_that_fails_leaves_the_step_open(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    ebb_step step = begin(site, stage->root, 1);
    struct ebb_survivor list[2] = {survivor_of(block_of(step.region, 100, 16), EBB_PROMOTE_COPY)};
    list[1] = list[0];
    struct ebb_promoted cost = {.copied_blocks = 3};
    uint64_t lost = 7;
    assert_refused(ebb_step_end_keeping(step, stage->root, list, 2, &cost, &lost),
                   EBB_E_DUPLICATE);
    assert_refused(ebb_step_end_keeping(step, step.region, list, 1, &cost, &lost),
                   EBB_E_NOT_ANCESTOR);
    assert_true(cost.copied_blocks == 3 && lost == 7 && ebb_region_is_open(step.region));
    assert_int_equal(site_stats(site).steps, 0);
    assert_int_equal(ebb_step_end_keeping(step, stage->root, list, 1, NULL, NULL), 0);
    assert_int_equal(site_stats(site).steps, 1);
    assert_int_equal(ebb_region_release(stage->root, list[0].block), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- rings ---- */

static void a_step_can_be_read_until_its_place_in_the_ring_is_needed(void **state) {
    struct stage *stage = *state;
    for (unsigned ring = 0; ring <= 5; ring++) {
        ebb_site *site = SITE(.pool = stage->pool, .ring = ring);
        ebb_step steps[30];
        unsigned char *blocks[30];
        for (unsigned i = 0; i < 30; i++) {
            steps[i] = begin(site, i % 2 ? stage->root : (ebb_region){NULL, 0}, 1);
            blocks[i] = block_of(steps[i].region, 5000, 64);
            pattern_fill(blocks[i], 5000, i);
            work(steps[i], 20, 1);
            /* step k closes when its N-th step after the next one begins */
            for (unsigned k = 0; k < i; k++)
                assert_int_equal(ebb_region_is_open(steps[k].region), ring > 0 && i < k + 1 + ring);
            assert_int_equal(ebb_step_end(steps[i]), 0);
            for (unsigned k = i < ring ? 0 : i - ring; k <= i && ring; k++)
                assert_true(pattern_holds(blocks[k], 5000, k));
        }
        assert_int_equal(pool_stats_of(stage->pool).open_regions, 1 + (ring ? ring + 1 : 0));
        assert_int_equal(site_stats(site).planned_steps, 28);
        assert_int_equal(site_stats(site).missed, 0);
        assert_int_equal(ebb_site_destroy(site), 0);
        assert_int_equal(pool_stats_of(stage->pool).open_regions, 1);
    }
}

static void a_parent_takes_along_what_is_in_the_ring(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .ring = 3);
    for (int round = 0; round < 6; round++) {
        ebb_region parent = OPEN(.parent = stage->root);
        for (int i = 0; i < 5; i++) {
            ebb_step step = begin(site, parent, 1);
            work(step, 20, 1);
            assert_int_equal(ebb_step_end(step), 0);
        }
        assert_int_equal(ebb_region_close(parent), 0);
        assert_int_equal(pool_stats_of(stage->pool).open_regions, 1);
    }
    assert_int_equal(site_stats(site).steps, 30);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void keeping_works_with_a_ring(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .ring = 2);
    for (int i = 0; i < 10; i++)
        keep_step(site, stage->root, true);
    assert_int_equal(site_stats(site).tenured_right, 16);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

/* ---- unusual ends ---- */

static void steps_nest_and_end_in_any_order(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 10; i++) {
        ebb_step a = begin(site, stage->root, 1), b = begin(site, stage->root, 2);
        ebb_step c = begin(site, b.region, 3);
        work(c, 10, 1);
        work(a, 20, 1);
        work(b, 30, 1);
        assert_int_equal(ebb_step_end(i % 2 ? a : c), 0);
        assert_int_equal(ebb_step_end(i % 2 ? c : a), 0);
        assert_int_equal(ebb_step_end(b), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.steps == 30 && stats.planned_steps == 24 && stats.missed == 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_step_ends_with_its_parent(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (unsigned i = 0; i < 10; i++) {
        ebb_region parent = OPEN(.parent = stage->root);
        ebb_step step = begin(site, parent, 1), inner = begin(site, step.region, 2);
        work(step, 30, 1);
        work(inner, i % 3 * 10, 1);
        assert_int_equal(ebb_region_close(parent), 0);
        assert_refused(ebb_step_end(step), EBB_E_STALE);
        assert_refused(ebb_step_end(inner), EBB_E_STALE);
    }
    assert_int_equal(site_stats(site).steps, 0); /* nothing is learnt from a step that broke off */
    take_step(site, stage->root, 1, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static int end_the_step(void *data) {
    return ebb_step_end(*(ebb_step *)data) == EBB_E_BUSY ? 0 : -1;
}

static void a_cleanup_of_the_region_cannot_end_its_step_again(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    ebb_step step = begin(site, stage->root, 1);
    struct ebb_cleanup node = {.run = end_the_step, .data = &step};
    assert_int_equal(ebb_cleanup_add(step.region, &node), 0);
    assert_int_equal(ebb_cleanup_remove(&node), 0);
    ebb_region child = OPEN(.parent = step.region);
    assert_int_equal(ebb_cleanup_add(child, &node), 0);
    assert_int_equal(ebb_region_close(child), 0); /* the step is `closing` meanwhile: EBB_E_BUSY */
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static int return_five(void *data) {
    return 5;
}

static void a_cleanup_that_fails_is_reported(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    ebb_step step = begin(site, stage->root, 1);
    struct ebb_cleanup node = {.run = return_five};
    assert_int_equal(ebb_cleanup_add(step.region, &node), 0);
    assert_refused(ebb_step_end(step), EBB_E_CLEANUP);
    assert_false(ebb_region_is_open(step.region));
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_site_with_an_open_step_is_not_destroyed(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.name = "busy", .pool = stage->pool);
    ebb_step step = begin(site, stage->root, 1);
    assert_refused(ebb_site_destroy(site), EBB_E_BUSY);
    assert_text_names("'busy' has 1 open");
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_site_destroy(NULL), 0);
}

static void a_step_under_a_limit_is_an_ordinary_region(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = MIB);
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 6; i++)
        take_step(site, limited, 1, 1);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.recorded_steps + stats.planned_steps, 0);
    assert_int_equal(stats.allocations, 6 * BLOCKS);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(limited), 0);
}

/* ---- budgets ---- */

struct told {
    unsigned times;
    uint64_t step;
    struct ebb_churn_budget spent, budget;
    char site[32], text[400];
    ebb_site *to_read;
    ebb_step to_end;
    int ended;
};

static void listen(void *context, const struct ebb_churn_excess *excess) {
    struct told *told = context;
    told->times++;
    told->step = excess->step;
    told->spent = excess->spent;
    told->budget = excess->budget;
    strncpy(told->site, excess->site, sizeof told->site - 1);
    strncpy(told->text, excess->text, sizeof told->text - 1);
    assert_int_equal(site_stats(told->to_read).excesses, told->times); /* no lock is held */
    told->ended = ebb_step_end(told->to_end);
}

static void a_step_beyond_its_budget_is_reported(void **state) {
    struct stage *stage = *state;
    struct told told = {.times = 0};
    ebb_site *site = SITE(.name = "tight", .pool = stage->pool, .on_excess = listen,
                          .context = &told, .budget = {.bytes = 1000, .allocations = 2});
    told.to_read = site;
    for (unsigned count = 1; count <= 4; count++) {
        ebb_step step = told.to_end = begin(site, stage->root, 1);
        for (unsigned i = 0; i < count; i++)
            assert_non_null(ebb_region_alloc(step.region, 333, 16));
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(told.times, count < 3 ? 0 : count - 2);
    }
    assert_string_equal(told.site, "tight");
    assert_string_equal(told.text,
                        "step 3 of 'tight': 1332 bytes over 1000, 4 allocations over 2");
    assert_true(told.step == 3 && told.spent.bytes == 1332 && told.spent.allocations == 4);
    assert_true(told.budget.bytes == 1000 && told.budget.promoted_bytes == 0);
    assert_int_equal(told.ended, EBB_E_STALE);
    assert_int_equal(site_stats(site).excesses, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void promoted_and_reserved_bytes_have_bounds_too(void **state) {
    struct stage *stage = *state;
    struct told told = {.times = 0};
    ebb_site *site = SITE(.pool = stage->pool, .on_excess = listen, .context = &told,
                          .budget = {.promoted_bytes = 499, .reserved_bytes = 1});
    told.to_read = site;
    ebb_step step = begin(site, stage->root, 1);
    struct ebb_survivor one = survivor_of(block_of(step.region, 500, 16), EBB_PROMOTE_COPY);
    assert_int_equal(ebb_step_end_keeping(step, stage->root, &one, 1, NULL, NULL), 0);
    assert_int_equal(told.times, 1);
    assert_true(told.spent.promoted_bytes == 500 && told.spent.reserved_bytes >= PAGE);
    assert_non_null(strstr(told.text, "500 promoted bytes over 499, "));
    assert_non_null(strstr(told.text, " reserved bytes over 1"));
    assert_int_equal(ebb_region_release(stage->root, one.block), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void within_the_budget_nothing_is_reported(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool,
                          .budget = {.bytes = 333, .allocations = 1, .promoted_bytes = 1});
    ebb_step step = begin(site, stage->root, 1);
    assert_non_null(ebb_region_alloc(step.region, 333, 16));
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).excesses, 0);
    take_step(site, stage->root, 1, 1); /* nobody listens */
    assert_int_equal(site_stats(site).excesses, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static int nothing_is_left(void **state) {
    struct stage *stage = *state;
    assert_int_equal(stats_of(stage->root).children, 0);
    return stage_close(state);
}

#define CHECKED(test) cmocka_unit_test_setup_teardown(test, stage_open, nothing_is_left)

int main(void) {
    static const struct CMUnitTest tests[] = {
        CHECKED(from_the_third_step_on_all_blocks_come_from_the_plan),
        CHECKED(a_site_that_is_told_so_does_not_learn),
        CHECKED(a_larger_step_is_served_whole_when_it_comes_again),
        CHECKED(what_comes_beside_a_plan_takes_little_more_than_it_needs),
        CHECKED(a_small_step_holds_few_pages),
        CHECKED(each_tag_has_a_plan_of_its_own),
        CHECKED(tags_beyond_the_sixteenth_are_not_planned),
        CHECKED(steps_that_never_repeat_are_left_to_best_fit),
        CHECKED(empty_steps_are_counted_and_nothing_is_learnt_from_them),
        CHECKED(keys_let_a_plan_follow_loops_of_varying_length),
        CHECKED(blocks_without_keys_have_what_is_next_or_was_passed),
        CHECKED(what_survives_is_born_in_the_parent_and_costs_nothing),
        CHECKED(what_was_born_there_for_nothing_ends_with_the_step),
        CHECKED(nothing_is_born_in_the_parent_where_that_is_not_wanted),
        CHECKED(a_promotion_that_fails_leaves_the_step_open),
        CHECKED(a_step_can_be_read_until_its_place_in_the_ring_is_needed),
        CHECKED(a_parent_takes_along_what_is_in_the_ring),
        CHECKED(keeping_works_with_a_ring),
        CHECKED(steps_nest_and_end_in_any_order),
        CHECKED(a_step_ends_with_its_parent),
        CHECKED(a_cleanup_of_the_region_cannot_end_its_step_again),
        CHECKED(a_cleanup_that_fails_is_reported),
        CHECKED(a_site_with_an_open_step_is_not_destroyed),
        CHECKED(a_step_under_a_limit_is_an_ordinary_region),
        CHECKED(a_step_beyond_its_budget_is_reported),
        CHECKED(promoted_and_reserved_bytes_have_bounds_too),
        CHECKED(within_the_budget_nothing_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
