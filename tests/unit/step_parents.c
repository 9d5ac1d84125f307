// SPDX-License-Identifier: Apache-2.0
/*
 * step_parents.c - steps and what lies above them: blocks born in the parent that are released,
 * resized, rewound past or promoted further; parents that are steps, or end in odd places.
 */
#include "kit/test.h"

enum { STEPS = 12 };

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

static const ebb_region none = {NULL, 0};

static ebb_step begin(ebb_site *site, ebb_region parent) {
    ebb_step step = ebb_step_begin_under(site, parent, 1);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

/* A block that survives between two that do not. */
static void *survivor_in(ebb_step step) {
    block_of(step.region, 3000, 64);
    void *block = block_of(step.region, 5000, 64);
    pattern_fill(block, 5000, 1);
    block_of(step.region, 2000, 64);
    return block;
}

static void keep(ebb_step step, ebb_region target, void *block, int mode) {
    struct ebb_survivor survivor = survivor_of(block, mode);
    assert_int_equal(ebb_step_end_keeping(step, target, &survivor, 1, NULL, NULL), 0);
    assert_true(pattern_holds(survivor.block, 5000, 1));
    assert_int_equal(ebb_region_release(target, survivor.block), 0);
}

/* Survivors are born in `parent` from here on. */
static ebb_site *site_that_tenures(ebb_pool *pool, ebb_region parent) {
    ebb_site *site = SITE(.pool = pool);
    for (int i = 0; i < 3; i++) {
        ebb_step step = begin(site, parent);
        keep(step, parent, survivor_in(step), EBB_PROMOTE_COPY);
    }
    assert_int_equal(site_stats(site).tenured_right, 1);
    return site;
}

/* The last of these steps is promoted from after a mark. */
static void rewind_last(const struct stage *stage, size_t bytes, int mode) {
    ebb_site *site = SITE(.pool = stage->pool);
    for (int left = 3; left >= 0; left--) {
        ebb_step step = begin(site, stage->root);
        block_of(step.region, 3000, 64);
        struct ebb_survivor survivor = survivor_of(block_of(step.region, bytes, 64), mode);
        ebb_mark mark = {NULL, 0};
        if (!left) {
            assert_ptr_equal(ebb_region_of(survivor.block).lane, stage->root.lane);
            mark = ebb_region_mark(stage->root);
        }
        assert_int_equal(ebb_promote(step.region, stage->root, &survivor, 1, NULL), 0);
        assert_true(pattern_holds(survivor.block, bytes, (unsigned)bytes));
        assert_int_equal(ebb_region_block_bytes(stage->root, survivor.block), bytes);
        assert_int_equal(left ? ebb_region_release(stage->root, survivor.block)
                              : ebb_region_rewind(stage->root, mark), 0);
        assert_int_equal(ebb_region_block_bytes(stage->root, survivor.block), 0);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_rewind_ends_what_was_promoted_since_though_it_was_born_before(void **state) {
    for (int mode = EBB_PROMOTE_AUTO; mode <= EBB_PROMOTE_RELINK; mode++) {
        rewind_last(*state, 100, mode);
        rewind_last(*state, 5000, mode);
    }
}

static void what_is_born_in_the_parent_and_goes_further_up_leaves_the_parent(void **state) {
    struct stage *stage = *state;
    ebb_region parent = OPEN(.parent = stage->root);
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < STEPS; i++) {
        ebb_step step = begin(site, parent);
        keep(step, stage->root, survivor_in(step), i % 3);
        assert_int_equal(stats_of(parent).blocks.current, 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_rewind_of_the_parent_takes_nothing_from_its_steps(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root);
    for (int i = 0; i < 4; i++) {
        ebb_mark mark = ebb_region_mark(stage->root);
        ebb_step step = begin(site, stage->root);
        void *block = survivor_in(step);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        void *others[8];
        for (unsigned k = 0; k < 8; k++) {
            others[k] = block_of(stage->root, 5000, 64);
            pattern_fill(others[k], 5000, 10 + k);
        }
        assert_true(pattern_holds(block, 5000, 1));
        assert_int_equal(ebb_region_block_bytes(step.region, block), 5000);
        assert_int_equal(ebb_step_end(step), 0);
        for (unsigned k = 0; k < 8; k++) {
            assert_true(pattern_holds(others[k], 5000, 10 + k));
            assert_int_equal(ebb_region_release(stage->root, others[k]), 0);
        }
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A large block takes another way to the parent than a small one. */
static void a_parent_that_is_sealed_or_has_a_mark_bears_nothing(void **state) {
    struct stage *stage = *state;
    static const size_t sizes[] = {100, 5000};
    for (int i = 0; i < 4; i++) {
        ebb_region parent = OPEN(.parent = stage->root);
        ebb_site *site = SITE(.pool = stage->pool);
        for (int k = 0; k < 5; k++) {
            ebb_step step = begin(site, parent);
            block_of(step.region, 3000, 64);
            bool shut = k == 4;
            if (shut && i % 2)
                assert_int_equal(ebb_region_seal(parent), 0);
            else if (shut)
                assert_int_not_equal(ebb_region_mark(parent).serial, 0);
            uint64_t total = stats_of(parent).blocks.total;
            void *block = ebb_region_alloc(step.region, sizes[i / 2], 16);
            ebb_region owner = k < 2 || shut ? step.region : parent;
            assert_ptr_equal(ebb_region_of(block).lane, owner.lane);
            assert_int_equal(stats_of(parent).blocks.total - total, owner.lane == parent.lane);
            struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_COPY);
            if (!shut)
                assert_int_equal(ebb_promote(step.region, parent, &survivor, 1, NULL), 0);
            assert_int_equal(ebb_step_end(step), 0);
        }
        assert_int_equal(stats_of(parent).blocks.current, 4);
        assert_int_equal(ebb_region_close(parent), 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

static void a_step_can_count_what_it_lost_wherever_that_was_born(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root);
    ebb_step step = begin(site, stage->root);
    uint64_t lost = 99;
    survivor_in(step);
    assert_int_equal(ebb_step_end_keeping(step, stage->root, NULL, 0, NULL, &lost), 0);
    assert_int_equal(lost, 3);
    assert_int_equal(site_stats(site).tenured_wrong, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_block_that_was_born_above_is_listed_once(void **state) {
    struct stage *stage = *state;
    ebb_region parent = OPEN(.parent = stage->root);
    ebb_site *site = site_that_tenures(stage->pool, parent);
    ebb_region targets[] = {parent, stage->root};
    for (int i = 0; i < 2; i++) {
        ebb_step step = begin(site, parent);
        void *block = survivor_in(step);
        struct ebb_survivor list[2] = {survivor_of(block, EBB_PROMOTE_AUTO),
                                       survivor_of(block, EBB_PROMOTE_AUTO)};
        assert_refused(ebb_promote(step.region, targets[i], list, 2, NULL), EBB_E_DUPLICATE);
        keep(step, targets[i], block, EBB_PROMOTE_AUTO);
        assert_int_equal(stats_of(parent).blocks.current, 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Small ones lie in windows, which have other flags. */
static void a_small_block_that_was_born_above_is_listed_once(void **state) {
    struct stage *stage = *state;
    ebb_region parent = OPEN(.parent = stage->root);
    ebb_region targets[] = {parent, stage->root};
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 8; i++) {
        ebb_step step = begin(site, parent);
        block_of(step.region, 3000, 64);
        void *block = block_of(step.region, 100, 16);
        struct ebb_survivor list[2] = {survivor_of(block, EBB_PROMOTE_AUTO),
                                       survivor_of(block, EBB_PROMOTE_AUTO)};
        assert_refused(ebb_promote(step.region, targets[i % 2], list, 2, NULL), EBB_E_DUPLICATE);
        assert_int_equal(ebb_step_end_keeping(step, targets[i % 2], list, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(targets[i % 2], list[0].block), 0);
        assert_int_equal(stats_of(parent).blocks.current, 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* What is asked of a block is looked at wherever it was born; a list that is refused leaves all. */
static void what_is_asked_of_a_block_that_was_born_above_must_be_right(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < STEPS; i++) {
        ebb_step step = begin(site, stage->root);
        struct ebb_survivor list[2];
        for (int k = 0; k < 2; k++)
            list[k] = survivor_of(block_of(step.region, 700, 16), EBB_PROMOTE_AUTO);
        list[1].align = 24;
        assert_refused(ebb_promote(step.region, stage->root, list, 2, NULL), EBB_E_ALIGNMENT);
        list[1].align = EBB_ALIGN_MAX * 2;
        assert_refused(ebb_promote(step.region, stage->root, list, 2, NULL), EBB_E_ALIGNMENT);
        list[1].align = 0;
        list[1].mode = EBB_PROMOTE_RELINK + 1;
        assert_refused(ebb_promote(step.region, stage->root, list, 2, NULL), EBB_E_ARGUMENT);
        list[1].mode = -1;
        assert_refused(ebb_promote(step.region, stage->root, list, 2, NULL), EBB_E_ARGUMENT);
        list[1].mode = EBB_PROMOTE_AUTO;
        assert_int_equal(ebb_step_end_keeping(step, stage->root, list, 2, NULL, NULL), 0);
        for (int k = 0; k < 2; k++)
            assert_int_equal(ebb_region_release(stage->root, list[k].block), 0);
    }
    assert_true(site_stats(site).tenured_right > 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The least that a survivor allows counts for the whole list, wherever it was born. */
static void what_a_block_that_was_born_above_allows_counts_for_all(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 2 * STEPS; i++) {
        ebb_step step = begin(site, stage->root);
        block_of(step.region, 3000, 64);
        struct ebb_survivor list[2] = {survivor_of(block_of(step.region, 100, 16), 0)};
        list[0].pin_percent = 1;
        bool last = i == 2 * STEPS - 1;
        if (last) /* in pages that it fills to six tenths */
            list[1] = survivor_of(block_of(step.region, 5000, 64), EBB_PROMOTE_AUTO);
        size_t count = last ? 2 : 1;
        assert_int_equal(ebb_step_end_keeping(step, stage->root, list, count, NULL, NULL), 0);
        assert_true(!last || list[1].mode == EBB_PROMOTE_COPY);
        for (size_t k = 0; k < count; k++)
            assert_int_equal(ebb_region_release(stage->root, list[k].block), 0);
    }
    assert_true(site_stats(site).tenured_right > STEPS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Until it is promoted it is the step's alone: what the parent places there later is not taken for
 * it, nor is it taken for what the parent has. */
static void what_was_born_above_is_not_the_parents_yet(void **state) {
    struct stage *stage = *state;
    static const size_t sizes[] = {100, 5000};
    for (int i = 0; i < 2; i++) {
        size_t bytes = sizes[i];
        ebb_site *site = SITE(.pool = stage->pool);
        for (int k = 0; k < 5; k++) {
            bool gone = k >= 2 && k % 2;
            ebb_step step = begin(site, stage->root);
            block_of(step.region, 3000, 64);
            void *block = block_of(step.region, bytes, 16), *own = block_of(stage->root, bytes, 16);
            pattern_fill(block, bytes, 1);
            struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_AUTO);
            assert_refused(ebb_region_release(stage->root, block), EBB_E_FOREIGN);
            assert_refused(ebb_region_resize(stage->root, block, 50), EBB_E_FOREIGN);
            assert_no_block(ebb_region_realloc(stage->root, block, 9000, 16), EBB_E_FOREIGN);
            assert_int_equal(ebb_region_block_bytes(stage->root, block), 0);
            assert_int_equal(ebb_region_release(stage->root, own), 0);
            if (gone)
                assert_int_equal(ebb_region_release(step.region, block), 0);
            own = block_of(stage->root, bytes, 16);
            pattern_fill(own, bytes, 2);
            if (!gone)
                assert_int_equal(ebb_promote(step.region, stage->root, &survivor, 1, NULL), 0);
            assert_int_equal(ebb_step_end(step), 0);
            assert_true(pattern_holds(own, bytes, 2));
            assert_true(gone || pattern_holds(survivor.block, bytes, 1));
            assert_int_equal(ebb_region_release(stage->root, own), 0);
            if (!gone)
                assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
            assert_int_equal(stats_of(stage->root).blocks.current, 0);
        }
        assert_true(site_stats(site).tenured_right && site_stats(site).tenured_wrong);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* One step within another, both of which have plans from some time on: what survives the inner one
 * has a slot in the outer one's arena, while the outer one's own blocks go as planned. */
static void *inner_step(ebb_site *site, ebb_region outer, void *own, bool kept) {
    ebb_step step = begin(site, outer);
    void *first = block_of(step.region, 3000, 64), *block = block_of(step.region, 5000, 64);
    pattern_fill(block, 5000, 1);
    struct ebb_survivor list[2] = {survivor_of(block, EBB_PROMOTE_COPY),
                                   survivor_of(block, EBB_PROMOTE_COPY)};
    assert_refused(ebb_region_release(outer, block), EBB_E_FOREIGN);
    assert_refused(ebb_promote(step.region, outer, list, 2, NULL), EBB_E_DUPLICATE);
    assert_int_equal(ebb_region_release(outer, own), 0);
    assert_int_not_equal(ebb_region_release(outer, own), 0);
    assert_int_equal(ebb_region_release(step.region, first), 0);
    uint64_t lost = 0;
    assert_int_equal(ebb_step_end_keeping(step, outer, list, kept ? 1 : 0, NULL, &lost), 0);
    assert_int_equal(lost, kept ? 0 : 1);
    return kept ? list[0].block : NULL;
}

static void what_is_born_in_a_planned_step_is_of_the_one_below_until_it_is_promoted(void **state) {
    struct stage *stage = *state;
    ebb_site *outside = SITE(.pool = stage->pool), *inside = SITE(.pool = stage->pool);
    for (int i = 0; i < 2 * STEPS; i++) {
        bool kept = i != 2 * STEPS - 3; /* once for nothing */
        ebb_step step = begin(outside, stage->root);
        void *own = block_of(step.region, 5000, 64), *block = NULL;
        uint64_t served = site_stats(inside).hits;
        pattern_fill(own, 5000, 2);
        block = inner_step(inside, step.region, own, kept);
        assert_int_equal(stats_of(step.region).blocks.current, kept);
        assert_true(!kept || pattern_holds(block, 5000, 1));
        if (i == 2 * STEPS - 1)
            assert_int_equal(site_stats(inside).hits, served + 2);
        if (kept)
            assert_int_equal(ebb_region_release(step.region, block), 0);
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(inside).tenured_wrong, 1);
    assert_true(site_stats(inside).tenured_right > STEPS);
    assert_true(site_stats(outside).hits > STEPS);
    assert_int_equal(ebb_site_destroy(inside), 0);
    assert_int_equal(ebb_site_destroy(outside), 0);
}

/* Survivors that are not born above have no slot: the plan goes on behind them. */
static void what_is_not_to_be_born_above_leaves_the_plan_as_it_is(void **state) {
    struct stage *stage = *state;
    static const size_t sizes[] = {100, 5000};
    for (int k = 0; k < 2; k++) {
        ebb_site *site = SITE(.pool = stage->pool, .tenure_none = true);
        for (int i = 0; i < STEPS; i++) {
            ebb_step step = begin(site, stage->root);
            block_of(step.region, 3000, 64);
            struct ebb_survivor survivor =
                survivor_of(block_of(step.region, sizes[k], 64), EBB_PROMOTE_AUTO);
            pattern_fill(survivor.block, sizes[k], 1);
            block_of(step.region, 2000, 64);
            assert_int_equal(stats_of(step.region).blocks.current, 3);
            assert_int_equal(ebb_step_end_keeping(step, stage->root, &survivor, 1, NULL, NULL), 0);
            assert_true(pattern_holds(survivor.block, sizes[k], 1));
            assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
        }
        assert_int_equal(site_stats(site).hits, 2 * (STEPS - 2));
        assert_int_equal(site_stats(site).plans, 1);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* The outer step is recorded while the inner one bears blocks in it. */
static void a_recorded_step_knows_what_was_born_in_it(void **state) {
    struct stage *stage = *state;
    ebb_site *outer = SITE(.name = "outer", .pool = stage->pool);
    ebb_site *inner = SITE(.name = "inner", .pool = stage->pool);
    for (int i = 0; i < 4; i++) {
        ebb_step whole = begin(outer, stage->root);
        for (int k = 0; k < 10; k++) {
            ebb_step part = begin(inner, whole.region);
            keep(part, whole.region, survivor_in(part), EBB_PROMOTE_COPY);
        }
        assert_int_equal(ebb_step_end(whole), 0);
    }
    struct ebb_site_stats stats = site_stats(outer);
    assert_int_equal(stats.planned_steps, 2);
    assert_true(stats.plan_max_live < 2 * 8192);
    assert_int_equal(ebb_site_destroy(inner), 0);
    assert_int_equal(ebb_site_destroy(outer), 0);
}

static void a_block_that_two_release_is_counted_once_more(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 6; i++) {
        ebb_step step = begin(site, stage->root);
        void *a = block_of(step.region, 3000, 64), *b = block_of(step.region, 5000, 64);
        void *c = block_of(step.region, 100, 16);
        void *list[] = {a, a, b, a, c, b, c};
        for (unsigned k = 0; k < 2 + (unsigned)i; k++)
            assert_int_equal(ebb_region_release_remote(step.region, list[k]), 0);
        assert_true(stats_of(step.region).blocks.current <= 2);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_true(site_stats(site).strays >= 6);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_block_that_was_released_before_is_a_stray(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 6; i++) {
        ebb_step step = begin(site, stage->root);
        void *large = block_of(step.region, 3000, 64), *small = block_of(step.region, 100, 16);
        void *other = block_of(step.region, 3000, 64);
        assert_int_equal(ebb_region_release(step.region, large), 0);
        assert_int_equal(ebb_region_release(step.region, small), 0);
        assert_int_equal(ebb_region_release_remote(step.region, small), 0);
        assert_int_equal(ebb_region_release_remote(step.region, other), 0);
        assert_int_equal(ebb_region_release_remote(step.region, large), 0);
        assert_int_equal(stats_of(step.region).blocks.current, 0);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(site_stats(site).strays, 2 * (i + 1));
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A pool that ends before the site that used it. */
static void a_site_outlives_its_pool(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.name = "short"), *other = NULL;
    ebb_site *site = SITE(.pool = pool);
    for (int i = 0; i < 4; i++) {
        ebb_step step = begin(site, none);
        survivor_in(step);
        assert_int_equal(ebb_step_end(step), 0);
    }
    pool_end(pool);
    other = POOL(.name = "next");
    ebb_region root = OPEN(.pool = other);
    for (int i = 0; i < 4; i++) {
        ebb_step step = begin(site, root);
        survivor_in(step);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(other);
}

static void kept_arenas_are_trimmed_like_other_pages(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .ring = 1);
    for (int i = 0; i < STEPS; i++) {
        ebb_step step = begin(site, stage->root);
        void *block = survivor_in(step);
        if (i % 2)
            ebb_pool_trim(stage->pool, 0);
        assert_true(pattern_holds(block, 5000, 1));
        assert_int_equal(ebb_step_end(step), 0);
        if (i % 3 == 0)
            ebb_pool_trim(stage->pool, 0);
        ebb_check_pool(stage->pool);
    }
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- in the step itself ---- */

static void a_planned_step_can_be_rewound_and_sealed(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 5; i++) {
        ebb_step step = begin(site, stage->root);
        void *first = block_of(step.region, 3000, 64);
        ebb_mark mark = {NULL, 0};
        if (i == 3)
            mark = ebb_region_mark(step.region);
        if (i == 4)
            assert_int_equal(ebb_region_seal(step.region), 0);
        void *second = ebb_region_alloc(step.region, 5000, 64);
        assert_true((second == NULL) == (i == 4));
        if (i == 3) {
            assert_int_equal(ebb_region_rewind(step.region, mark), 0);
            assert_int_equal(ebb_region_block_bytes(step.region, second), 0);
        }
        assert_int_equal(stats_of(step.region).blocks.current, i < 3 ? 2 : 1);
        assert_int_equal(ebb_region_block_bytes(step.region, first), 3000);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Marks of slots lie beside alignments: none is taken for the other, whatever is asked. */
/* A step is recorded while blocks are born in it: what it releases itself is noted all the same. */
static void a_recorded_step_that_bears_knows_what_it_releases(void **state) {
    struct stage *stage = *state;
    ebb_site *inner = SITE(.pool = stage->pool), *outer = SITE(.pool = stage->pool);
    for (int i = 0; i < STEPS; i++) {
        bool nested = i >= STEPS / 2;
        ebb_step above = nested ? begin(outer, stage->root) : (ebb_step){stage->root, NULL};
        void *own = block_of(above.region, 1000, 16);
        ebb_step step = begin(inner, above.region);
        block_of(step.region, 3000, 64);
        struct ebb_survivor kept = survivor_of(block_of(step.region, 700, 16), EBB_PROMOTE_AUTO);
        assert_int_equal(ebb_region_release(above.region, own), 0);
        assert_int_equal(ebb_step_end_keeping(step, above.region, &kept, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(above.region, kept.block), 0);
        own = block_of(above.region, 1000, 16);
        assert_int_equal(ebb_region_release(above.region, own), 0);
        if (nested)
            assert_int_equal(ebb_step_end(above), 0);
    }
    assert_int_equal(site_stats(inner).tenured_right, STEPS - 2);
    assert_int_equal(site_stats(outer).plan_max_live, 1008 + 704); /* and not twice 1008 */
    assert_int_equal(ebb_site_destroy(inner), 0);
    assert_int_equal(ebb_site_destroy(outer), 0);
}

static void an_alignment_that_is_none_is_refused_where_a_block_is_born(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 100, 16); /* there is room to bump */
    for (size_t align = 1; align <= EBB_ALIGN_MAX; align *= 2) {
        ebb_site *site = SITE(.pool = stage->pool);
        for (int i = 0; i < 4; i++) {
            ebb_step step = begin(site, stage->root);
            for (size_t flag = align * 2; i && flag; flag *= 2)
                assert_no_block(ebb_region_alloc(step.region, 100, flag | align), EBB_E_ALIGNMENT);
            assert_no_block(ebb_region_alloc(step.region, 100, 0), EBB_E_ALIGNMENT);
            void *block = block_of(step.region, 5000, align);
            assert_ptr_equal(ebb_region_of(block).lane,
                             i < 2 ? step.region.lane : stage->root.lane);
            pattern_fill(block, 5000, 1);
            keep(step, stage->root, block, EBB_PROMOTE_COPY);
        }
        assert_int_equal(site_stats(site).tenured_right, 2);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

static void what_does_not_survive_is_not_born_above_whatever_its_alignment(void **state) {
    struct stage *stage = *state;
    for (size_t align = 1; align <= EBB_ALIGN_MAX; align *= 2) {
        ebb_site *site = SITE(.pool = stage->pool);
        for (int i = 0; i < 4; i++) {
            ebb_step step = begin(site, stage->root);
            block_of(step.region, 3000, 64);
            const void *block = ebb_step_alloc(step, 5000, align, 7);
            assert_ptr_equal(ebb_region_of(block).lane, step.region.lane);
            assert_int_equal(ebb_step_end(step), 0);
        }
        assert_int_equal(site_stats(site).tenured_wrong, 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* More releases are overdue than a track notes. `turned`: those that are in the way come last. */
static void stop_releasing(const struct stage *stage, bool turned) {
    enum { MANY = 80 };
    ebb_site *site = SITE(.pool = stage->pool);
    for (int i = 0; i < 6; i++) {
        ebb_step step = begin(site, stage->root);
        void *blocks[MANY + 1];
        for (unsigned k = 0; k < MANY; k++) {
            blocks[k] = block_of(step.region, 2000, 64);
            pattern_fill(blocks[k], 2000, k);
        }
        for (unsigned k = 0; k < MANY && i < 3; k++)
            assert_int_equal(
                ebb_region_release(step.region, blocks[turned ? MANY - 1 - k : k]), 0);
        blocks[MANY] = block_of(step.region, 3000, 64);
        pattern_fill(blocks[MANY], 3000, MANY);
        for (unsigned k = 0; k < MANY && i >= 3; k++)
            assert_true(pattern_holds(blocks[k], 2000, k));
        assert_int_equal(stats_of(step.region).blocks.current, i < 3 ? 1 : MANY + 1);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).planned_steps, 4);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_step_may_stop_releasing(void **state) {
    stop_releasing(*state, false);
    stop_releasing(*state, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_rewind_ends_what_was_promoted_since_though_it_was_born_before),
        STAGED(what_is_born_in_the_parent_and_goes_further_up_leaves_the_parent),
        STAGED(a_rewind_of_the_parent_takes_nothing_from_its_steps),
        STAGED(a_parent_that_is_sealed_or_has_a_mark_bears_nothing),
        STAGED(a_step_can_count_what_it_lost_wherever_that_was_born),
        STAGED(a_block_that_was_born_above_is_listed_once),
        STAGED(a_small_block_that_was_born_above_is_listed_once),
        STAGED(what_is_asked_of_a_block_that_was_born_above_must_be_right),
        STAGED(what_a_block_that_was_born_above_allows_counts_for_all),
        STAGED(what_was_born_above_is_not_the_parents_yet),
        STAGED(what_is_born_in_a_planned_step_is_of_the_one_below_until_it_is_promoted),
        STAGED(what_is_not_to_be_born_above_leaves_the_plan_as_it_is),
        STAGED(a_recorded_step_knows_what_was_born_in_it),
        STAGED(a_block_that_was_released_before_is_a_stray),
        STAGED(a_block_that_two_release_is_counted_once_more),
        cmocka_unit_test(a_site_outlives_its_pool),
        STAGED(kept_arenas_are_trimmed_like_other_pages),
        STAGED(a_planned_step_can_be_rewound_and_sealed),
        STAGED(a_recorded_step_that_bears_knows_what_it_releases),
        STAGED(an_alignment_that_is_none_is_refused_where_a_block_is_born),
        STAGED(what_does_not_survive_is_not_born_above_whatever_its_alignment),
        STAGED(a_step_may_stop_releasing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
