// SPDX-License-Identifier: Apache-2.0
/*
 * close_keeping.c - a region closes and its survivors go to an ancestor: neighbours share pages,
 * the cost says what is pinned in the end, and what was lost is counted.
 */
#include "kit/test.h"

enum { MANY = 400 };

static void survivors_live_and_the_rest_is_lost_and_counted(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor list[3];
    size_t sizes[] = {100, 5000, 50000};
    for (int i = 0; i < 3; i++) {
        list[i] = survivor_of(block_of(child, sizes[i], 64), EBB_PROMOTE_AUTO);
        block_of(child, sizes[i], 64);
        block_of(child, 10, 16);
    }
    void *released = block_of(child, 10, 16);
    assert_int_equal(ebb_region_release(child, released), 0);
    uint64_t lost = 77;
    struct ebb_promoted cost = {0};
    assert_int_equal(ebb_close_keeping(child, stage->root, list, 3, &cost, &lost), 0);
    assert_false(ebb_region_is_open(child));
    assert_int_equal(lost, 6);
    assert_int_equal(cost.copied_blocks + cost.relinked_blocks, 3);
    assert_int_equal(cost.copied_bytes + cost.relinked_bytes, 55100);
    for (int i = 0; i < 3; i++) {
        assert_true(pattern_holds(list[i].block, sizes[i], (unsigned)sizes[i]));
        assert_int_equal(ebb_region_block_bytes(stage->root, list[i].block), sizes[i]);
    }
    assert_int_equal(stats_of(stage->root).blocks.current, 3);
}

static void nothing_lost_is_zero_lost(void **state) {
    struct stage *stage = *state;
    static const int modes[] = {EBB_PROMOTE_COPY, EBB_PROMOTE_RELINK, EBB_PROMOTE_AUTO};
    for (int i = 0; i < 3; i++) {
        ebb_region child = OPEN(.parent = stage->root);
        struct ebb_survivor list[] = {survivor_of(block_of(child, 100, 16), modes[i]),
                                      survivor_of(block_of(child, 30000, 64), modes[i])};
        uint64_t lost = 77;
        assert_int_equal(ebb_close_keeping(child, stage->root, list, 2, NULL, &lost), 0);
        assert_int_equal(lost, 0);
    }
}

static void blocks_of_children_are_lost_too(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root), grandchild = OPEN(.parent = child);
    ebb_region deeper = OPEN(.parent = grandchild);
    block_of(child, 100, 16);
    block_of(grandchild, 100, 16);
    block_of(grandchild, 10000, 64);
    block_of(deeper, 100, 16);
    uint64_t lost = 77;
    assert_int_equal(ebb_close_keeping(child, stage->root, NULL, 0, NULL, &lost), 0);
    assert_int_equal(lost, 4);
}

static void what_other_threads_released_is_not_lost(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root), grandchild = OPEN(.parent = child);
    block_of(child, 100, 16);
    void *small = block_of(child, 100, 16), *large = block_of(grandchild, 10000, 64);
    assert_int_equal(ebb_region_release_remote(child, small), 0);
    assert_int_equal(ebb_region_release_remote(grandchild, large), 0);
    uint64_t lost = 77;
    assert_int_equal(ebb_close_keeping(child, stage->root, NULL, 0, NULL, &lost), 0);
    assert_int_equal(lost, 1);
}

struct late {
    struct ebb_cleanup node;
    ebb_region region;
    void *block;
};

static int release_late(void *data) {
    struct late *late = data;
    return ebb_region_release(late->region, late->block);
}

/* Cleanups run when the call has counted. */
static void what_a_cleanup_releases_is_lost(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor kept = survivor_of(block_of(child, 100, 16), EBB_PROMOTE_COPY);
    struct late late[] = {{.region = child, .block = kept.block},
                          {.region = child, .block = block_of(child, 5000, 64)}};
    for (int i = 0; i < 2; i++) {
        late[i].node = (struct ebb_cleanup){.run = release_late, .data = &late[i]};
        assert_int_equal(ebb_cleanup_add(child, &late[i].node), 0);
    }
    uint64_t lost = 77;
    assert_int_equal(ebb_close_keeping(child, stage->root, &kept, 1, NULL, &lost), 0);
    assert_int_equal(lost, 1);
    assert_true(pattern_holds(kept.block, 100, 100));
}

static void what_another_thread_released_is_none_to_keep(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor survivor = survivor_of(block_of(child, 100, 16), EBB_PROMOTE_COPY);
    uint64_t lost = 77;
    assert_int_equal(ebb_region_release_remote(child, survivor.block), 0);
    assert_int_equal(ebb_promote(child, stage->root, &survivor, 1, NULL), EBB_E_RELEASED);
    survivor.block = block_of(child, 5000, 64);
    assert_int_equal(ebb_region_release_remote(child, survivor.block), 0);
    assert_int_equal(ebb_close_keeping(child, stage->root, &survivor, 1, NULL, &lost),
                     EBB_E_RELEASED);
    assert_int_equal(lost, 77);
    assert_int_equal(ebb_close_keeping(child, stage->root, NULL, 0, NULL, &lost), 0);
    assert_int_equal(lost, 0);
}

/* Released twice in the target: nothing is left there if its pages went along. */
static void a_survivor_that_went_with_its_pages_is_foreign(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor kept = survivor_of(block_of(child, 2 * PAGE, 64), EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(child, stage->root, &kept, 1, NULL, NULL), 0);
    void *block = kept.block;
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, 0);
    assert_refused(ebb_region_release(stage->root, block), EBB_E_FOREIGN);
}

static void an_empty_list_closes(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    assert_int_equal(ebb_close_keeping(child, stage->root, NULL, 0, NULL, NULL), 0);
    assert_false(ebb_region_is_open(child));
}

static void the_cost_says_what_is_pinned_in_the_end(void **state) {
    struct stage *stage = *state;
    for (size_t bytes = 1100; bytes < 60000; bytes += 1777) {
        ebb_region child = OPEN(.parent = stage->root);
        block_of(child, 2000, 64);
        struct ebb_survivor survivor = survivor_of(block_of(child, bytes, 64), EBB_PROMOTE_RELINK);
        block_of(child, 2000, 64);
        struct ebb_promoted cost = {0};
        uint64_t pinned = stats_of(stage->root).pinned;
        assert_int_equal(ebb_close_keeping(child, stage->root, &survivor, 1, &cost, NULL), 0);
        assert_int_equal(cost.relinked_bytes, bytes);
        assert_int_equal(cost.pinned_bytes, stats_of(stage->root).pinned - pinned);
        assert_true(cost.pinned_bytes < 2 * PAGE);
    }
    assert_int_equal(stats_of(stage->root).waste, stats_of(stage->root).pinned);
}

struct older {
    ebb_region region;
    void *block;
};

static int release_older(void *data) {
    struct older *older = data;
    return ebb_region_release(older->region, older->block);
}

/* The older one is alone in its run, or pins its pages anew for the one beside it. */
static void what_cleanups_release_meanwhile_is_not_in_the_cost(void **state) {
    struct stage *stage = *state;
    for (size_t others = 0; others < 2; others++) {
        ebb_region before = OPEN(.parent = stage->root), child = OPEN(.parent = stage->root);
        struct ebb_survivor list[2];
        for (size_t i = 0; i <= others; i++)
            list[i] = survivor_of(block_of(before, 5000, 64), EBB_PROMOTE_RELINK);
        assert_int_equal(
            ebb_close_keeping(before, stage->root, list, 1 + others, NULL, NULL), 0);
        struct older older = {stage->root, list[0].block};
        struct ebb_cleanup cleanup = {.run = release_older, .data = &older};
        assert_int_equal(ebb_cleanup_add(child, &cleanup), 0);
        block_of(child, 2000, 64);
        struct ebb_survivor kept = survivor_of(block_of(child, 5000, 64), EBB_PROMOTE_RELINK);
        struct ebb_promoted cost = {0};
        assert_int_equal(ebb_close_keeping(child, stage->root, &kept, 1, &cost, NULL), 0);
        assert_int_equal(cost.pinned_bytes, 8192 - 5056);
    }
}

struct parting {
    ebb_region source, target;
    struct ebb_survivor survivor;
    struct ebb_promoted cost;
};

static int promote_at_last(void *data) {
    struct parting *parting = data;
    return ebb_promote(parting->source, parting->target, &parting->survivor, 1, &parting->cost);
}

/* Only a run that goes along at once is in the cost of the promotion that takes it. */
static void what_others_have_relinked_to_the_target_is_in_the_cost(void **state) {
    struct stage *stage = *state;
    for (int alone = 0; alone < 2; alone++) {
        ebb_region source = OPEN(.parent = stage->root), below = OPEN(.parent = source);
        block_of(below, 2000, 64);
        struct ebb_survivor early = survivor_of(block_of(below, 7000, 64), EBB_PROMOTE_RELINK);
        assert_int_equal(ebb_promote(below, stage->root, &early, 1, NULL), 0);
        ebb_region maker = alone ? OPEN(.parent = source) : source;
        struct ebb_survivor made = survivor_of(block_of(maker, 5000, 64), EBB_PROMOTE_RELINK);
        if (alone)
            assert_int_equal(ebb_close_keeping(maker, source, &made, 1, NULL, NULL), 0);
        struct parting parting = {source, stage->root, made, {0}};
        struct ebb_cleanup cleanup = {.run = promote_at_last, .data = &parting};
        assert_int_equal(ebb_cleanup_add(source, &cleanup), 0);
        struct ebb_promoted cost = {0};
        uint64_t pinned = stats_of(stage->root).pinned;
        assert_int_equal(ebb_close_keeping(source, stage->root, NULL, 0, &cost, NULL), 0);
        assert_int_equal(parting.cost.relinked_blocks, 1);
        assert_int_equal(parting.cost.pinned_bytes != 0, alone);
        assert_int_equal(cost.pinned_bytes + parting.cost.pinned_bytes,
                         stats_of(stage->root).pinned - pinned);
    }
}

static void a_run_that_comes_along_counts_as_pinned(void **state) {
    struct stage *stage = *state;
    ebb_region middle = OPEN(.parent = stage->root), child = OPEN(.parent = middle);
    struct ebb_survivor survivor = survivor_of(block_of(child, 5000, 64), EBB_PROMOTE_RELINK);
    struct ebb_promoted cost = {0};
    assert_int_equal(ebb_close_keeping(child, middle, &survivor, 1, &cost, NULL), 0);
    assert_int_equal(cost.pinned_bytes, 8192 - 5056);
    cost = (struct ebb_promoted){0};
    survivor.mode = EBB_PROMOTE_RELINK;
    assert_int_equal(ebb_close_keeping(middle, stage->root, &survivor, 1, &cost, NULL), 0);
    assert_int_equal(survivor.mode, EBB_PROMOTE_RELINK);
    assert_int_equal(cost.pinned_bytes, 8192 - 5056);
    assert_int_equal(stats_of(stage->root).pinned, 8192 - 5056);
}

static void neighbours_share_the_pages_between_them(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor list[8];
    for (int i = 0; i < 8; i++)
        list[i] = survivor_of(block_of(child, 5056, 64), EBB_PROMOTE_RELINK);
    uintptr_t first = (uintptr_t)list[0].block, end = (uintptr_t)list[7].block + 5056;
    struct ebb_promoted cost = {0};
    assert_int_equal(ebb_close_keeping(child, stage->root, list, 8, &cost, NULL), 0);
    size_t pages = (end + PAGE - 1) / PAGE * PAGE - first / PAGE * PAGE;
    assert_int_equal(stats_of(stage->root).reserved.current, pages);
    assert_int_equal(stats_of(stage->root).runs, 1);
    assert_int_equal(cost.pinned_bytes, pages - 8 * 5056);
    for (int i = 0; i < 8; i++) {
        assert_true(stats_of(stage->root).reserved.current >= (8 - (unsigned)i) * (size_t)5056);
        assert_true(stats_of(stage->root).reserved.current <= pages);
        assert_true(pattern_holds(list[7 - i].block, 5056, 5056));
        assert_int_equal(ebb_region_release(stage->root, list[7 - i].block), 0);
        ebb_check_pool(stage->pool);
    }
    assert_int_equal(stats_of(stage->root).reserved.current, 0);
}

static void pages_that_hold_no_survivor_go_back(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor list[10];
    for (int i = 0; i < 10; i++) {
        list[i] = survivor_of(block_of(child, 8192, 4096), EBB_PROMOTE_RELINK);
        block_of(child, 1 * MIB, 4096);
    }
    assert_int_equal(ebb_close_keeping(child, stage->root, list, 10, NULL, NULL), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, 10 * 8192);
    assert_int_equal(pool_stats_of(stage->pool).owned, 10 * 8192);
    assert_true(pool_stats_of(stage->pool).cached >= 9 * MIB);
    for (int i = 0; i < 10; i++)
        assert_true(pattern_holds(list[i].block, 8192, 8192));
}

static void hundreds_of_survivors_in_any_order(void **state) {
    static struct ebb_survivor list[MANY];
    struct stage *stage = *state;
    for (int round = 0; round < 3; round++) {
        ebb_region child = OPEN(.parent = stage->root);
        for (size_t i = 0; i < MANY; i++) {
            size_t bytes = i * 131 % 9000;
            list[i * 7 % MANY] = survivor_of(block_of(child, bytes, 16), round);
            if (i % 3 == 0)
                block_of(child, i * 53 % 20000, 16);
        }
        assert_int_equal(ebb_close_keeping(child, stage->root, list, MANY, NULL, NULL), 0);
        ebb_check_pool(stage->pool);
        for (size_t i = 0; i < MANY; i++) {
            size_t bytes = i * 131 % 9000;
            void *block = list[i * 7 % MANY].block;
            assert_true(pattern_holds(block, bytes, (unsigned)bytes));
            assert_int_equal(ebb_region_block_bytes(stage->root, block), bytes);
            assert_int_equal(ebb_region_release(stage->root, block), 0);
        }
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
        ebb_check_pool(stage->pool);
    }
}

static void blocks_promoted_before_are_kept_with_the_survivors(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    void *early = block_of(child, 12288, 4096), *late = block_of(child, 12288, 4096);
    struct ebb_survivor first = survivor_of(early, EBB_PROMOTE_RELINK);
    struct ebb_survivor second = survivor_of(late, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_promote(child, stage->root, &first, 1, NULL), 0);
    uint64_t lost = 77;
    assert_int_equal(ebb_close_keeping(child, stage->root, &second, 1, NULL, &lost), 0);
    assert_int_equal(lost, 0);
    assert_true(pattern_holds(early, 12288, 12288) && pattern_holds(late, 12288, 12288));
    assert_int_equal(stats_of(stage->root).blocks.current, 2);
}

static void guests_that_are_listed_move_on(void **state) {
    struct stage *stage = *state;
    ebb_region middle = OPEN(.parent = stage->root), child = OPEN(.parent = middle);
    struct ebb_survivor survivor = survivor_of(block_of(child, 12288, 4096), EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_promote(child, middle, &survivor, 1, NULL), 0);
    uint64_t lost = 77;
    survivor.mode = EBB_PROMOTE_RELINK;
    assert_int_equal(ebb_close_keeping(middle, stage->root, &survivor, 1, NULL, &lost), 0);
    assert_int_equal(lost, 0);
    assert_false(ebb_region_is_open(child));
    assert_true(pattern_holds(survivor.block, 12288, 12288));
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
}

static void a_failed_close_keeping_leaves_the_source_open(void **state) {
    struct stage *stage = *state;
    ebb_region upper = OPEN(.parent = stage->root, .limit_bytes = 9000);
    ebb_region child = OPEN(.parent = upper);
    struct ebb_survivor list[] = {survivor_of(block_of(child, 100, 16), EBB_PROMOTE_COPY),
                                  survivor_of(block_of(child, 5000, 64), EBB_PROMOTE_COPY)};
    void *blocks[] = {list[0].block, list[1].block};
    struct ebb_region_stats before[] = {stats_of(upper), stats_of(child)};
    uint64_t lost = 77;
    struct ebb_promoted cost = {0}, nothing = {0};
    assert_refused(ebb_close_keeping(child, upper, list, 2, &cost, &lost), EBB_E_REGION_LIMIT);
    assert_true(ebb_region_is_open(child));
    struct ebb_region_stats after[] = {stats_of(upper), stats_of(child)};
    assert_memory_equal(&before[0].blocks, &after[0].blocks, 3 * sizeof(struct ebb_meter));
    assert_int_equal(before[0].subtree_used, after[0].subtree_used);
    assert_memory_equal(&before[1], &after[1], sizeof before[1]);
    assert_memory_equal(&cost, &nothing, sizeof cost);
    assert_int_equal(lost, 77);
    for (int i = 0; i < 2; i++)
        assert_ptr_equal(list[i].block, blocks[i]);
    assert_int_equal(list[0].mode, EBB_PROMOTE_COPY);
    list[0].mode = list[1].mode = EBB_PROMOTE_RELINK;
    assert_int_equal(ebb_close_keeping(child, upper, list, 2, NULL, NULL), 0);
}

/* Bytes of survivors, in two blocks that are not neighbours, between what fills the step. */
static struct ebb_promoted keep_of_step(const struct stage *stage, size_t survivors, size_t all,
                                        int mode) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .unplanned = true));
    ebb_step step = ebb_step_begin_under(site, stage->root, 0);
    struct ebb_survivor list[2];
    struct ebb_promoted cost = {0};
    for (int i = 0; i < 2; i++) {
        assert_non_null(ebb_region_alloc(step.region, (all - survivors) / 2, 64));
        list[i] = survivor_of(block_of(step.region, survivors / 2, 64), mode);
    }
    assert_int_equal(ebb_step_end_keeping(step, stage->root, list, 2, &cost, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(pattern_holds(list[i].block, survivors / 2, (unsigned)(survivors / 2)));
        assert_int_equal(ebb_region_release(stage->root, list[i].block), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
    return cost;
}

/* So that the next steps find its pages in one piece. */
static void few_survivors_of_a_step_are_copied(void **state) {
    struct stage *stage = *state;
    static const struct {
        size_t survivors, all;
        int mode, copied;
    } cases[] = {
        {64 * KIB, MIB, EBB_PROMOTE_AUTO, 2},      {64 * KIB, MIB, EBB_PROMOTE_RELINK, 0},
        {512 * KIB, MIB, EBB_PROMOTE_AUTO, 0},     {4 * MIB, 64 * MIB, EBB_PROMOTE_AUTO, 2},
        {4 * MIB + 8192, 64 * MIB, EBB_PROMOTE_AUTO, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ebb_promoted cost =
            keep_of_step(stage, cases[i].survivors, cases[i].all, cases[i].mode);
        assert_int_equal(cost.copied_blocks, cases[i].copied);
        assert_int_equal(cost.relinked_blocks, 2 - cases[i].copied);
        assert_int_equal(cost.copied_bytes + cost.relinked_bytes, cases[i].survivors);
    }
}

/* Relinking takes no page. */
static void few_survivors_are_relinked_where_no_page_is_left(void **state) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = 2 * MIB);
    struct stage stage = {.pool = pool, .root = OPEN(.pool = pool)};
    int before = ebb_last_error();
    block_of(stage.root, 900 * KIB, 64);
    struct ebb_promoted cost = keep_of_step(&stage, 128 * KIB, MIB, EBB_PROMOTE_AUTO);
    assert_int_equal(cost.copied_blocks, 0);
    assert_int_equal(cost.relinked_blocks, 2);
    assert_int_equal(ebb_last_error(), before);
    assert_int_equal(ebb_region_close(stage.root), 0);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(survivors_live_and_the_rest_is_lost_and_counted),
        STAGED(nothing_lost_is_zero_lost),
        STAGED(blocks_of_children_are_lost_too),
        STAGED(what_other_threads_released_is_not_lost),
        STAGED(what_a_cleanup_releases_is_lost),
        STAGED(what_another_thread_released_is_none_to_keep),
        STAGED(a_survivor_that_went_with_its_pages_is_foreign),
        STAGED(an_empty_list_closes),
        STAGED(the_cost_says_what_is_pinned_in_the_end),
        STAGED(what_cleanups_release_meanwhile_is_not_in_the_cost),
        STAGED(what_others_have_relinked_to_the_target_is_in_the_cost),
        STAGED(a_run_that_comes_along_counts_as_pinned),
        STAGED(neighbours_share_the_pages_between_them),
        STAGED(pages_that_hold_no_survivor_go_back),
        STAGED(hundreds_of_survivors_in_any_order),
        STAGED(blocks_promoted_before_are_kept_with_the_survivors),
        STAGED(guests_that_are_listed_move_on),
        STAGED(a_failed_close_keeping_leaves_the_source_open),
        STAGED(few_survivors_of_a_step_are_copied),
        cmocka_unit_test(few_survivors_are_relinked_where_no_page_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
