// SPDX-License-Identifier: Apache-2.0
/*
 * promotion.c - blocks move to an ancestor by copy or by relinking, while the source is open:
 * who owns what afterwards, at which address, and what it cost.
 */
#include "kit/test.h"

static int promote_one(ebb_region source, ebb_region target, struct ebb_survivor *survivor,
                       struct ebb_promoted *cost) {
    int result = ebb_promote(source, target, survivor, 1, cost);
    if (result)
        print_error("%s\n", ebb_last_error_text());
    return result;
}

static void a_copy_has_its_own_address_and_the_same_bytes(void **state) {
    static const size_t sizes[] = {0, 1, 100, 1024, 1025, 5000, 100000};
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *block = block_of(child, sizes[i], 16);
        struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_COPY);
        struct ebb_promoted cost = {0};
        assert_int_equal(promote_one(child, stage->root, &survivor, &cost), 0);
        assert_ptr_not_equal(survivor.block, block);
        assert_int_equal(survivor.mode, EBB_PROMOTE_COPY);
        assert_true(pattern_holds(survivor.block, sizes[i], (unsigned)sizes[i]));
        assert_int_equal(ebb_region_block_bytes(stage->root, survivor.block), sizes[i]);
        assert_int_equal(cost.copied_blocks, 1);
        assert_int_equal(cost.copied_bytes, sizes[i]);
        assert_int_equal(cost.relinked_blocks + cost.relinked_bytes + cost.pinned_bytes, 0);
        memset(block, 0, sizes[i]); /* the original is still the child's, and another memory */
        assert_true(pattern_holds(survivor.block, sizes[i], (unsigned)sizes[i]));
        assert_int_equal(ebb_region_release(child, block), 0);
    }
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, sizeof sizes / sizeof *sizes);
}

/* What comes next does not lie right by chance. */
static void leave_askew(ebb_region region) {
    char *block = block_of(region, 16, 16);
    while (((uintptr_t)block + 16) % 64 != 16)
        block = block_of(region, 16, 16);
}

static void a_copy_keeps_the_alignment_of_its_address_or_the_one_asked(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    for (size_t align = 1; align <= EBB_ALIGN_MAX; align *= 2) {
        leave_askew(stage->root);
        struct ebb_survivor natural = survivor_of(block_of(child, 100, align), EBB_PROMOTE_COPY);
        assert_int_equal(promote_one(child, stage->root, &natural, NULL), 0);
        assert_int_equal((uintptr_t)natural.block % (align < 64 ? align : 64), 0);
        struct ebb_survivor asked = survivor_of(block_of(child, 100, 1), EBB_PROMOTE_COPY);
        asked.align = align;
        leave_askew(stage->root);
        assert_int_equal(promote_one(child, stage->root, &asked, NULL), 0);
        assert_int_equal((uintptr_t)asked.block % align, 0);
        assert_true(pattern_holds(asked.block, 100, 100));
    }
}

/* Next to the start of a page. */
static void leave_off_page(ebb_region region) {
    char *block = block_of(region, 1088, 64);
    while (((uintptr_t)block + 1088) % PAGE == 0)
        block = block_of(region, 1088, 64);
}

/* A survivor of steps asks for more alignment than its block has, but by chance where nothing lies
 * before it. */
static void promote_aligned(const struct stage *stage, struct ebb_survivor survivor, size_t bytes,
                            size_t align, bool askew) {
    bool large = bytes > KIB;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 8; i++) {
        ebb_region parent = OPEN(.parent = stage->root);
        leave_askew(parent);
        leave_off_page(parent);
        ebb_step step = ebb_step_begin_under(site, parent, 0);
        if (askew)
            (large ? leave_off_page : leave_askew)(step.region);
        survivor.block = block_of(step.region, bytes, large ? 64 : 16);
        survivor.align = align;
        assert_int_equal(promote_one(step.region, parent, &survivor, NULL), 0);
        assert_int_equal((uintptr_t)survivor.block % align, 0);
        assert_true(pattern_holds(survivor.block, bytes, (unsigned)bytes));
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(ebb_region_release(parent, survivor.block), 0);
        assert_int_equal(ebb_region_close(parent), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_survivor_has_the_alignment_asked_whatever_way_it_goes(void **state) {
    for (int mode = EBB_PROMOTE_AUTO; mode <= EBB_PROMOTE_RELINK; mode++)
        for (int askew = 0; askew < 2; askew++) {
            promote_aligned(*state, survivor_of(NULL, mode), 100, 64, askew);
            promote_aligned(*state, survivor_of(NULL, mode), 5000, PAGE, askew);
        }
}

static void a_relinked_block_keeps_its_address_and_changes_owner(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.name = "child", .parent = stage->root);
    block_of(child, 5000, 64);
    void *block = block_of(child, 20000, 64);
    block_of(child, 5000, 64);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    struct ebb_promoted cost = {0};
    assert_int_equal(promote_one(child, stage->root, &survivor, &cost), 0);
    assert_ptr_equal(survivor.block, block);
    assert_int_equal(survivor.mode, EBB_PROMOTE_RELINK);
    assert_int_equal(cost.relinked_blocks, 1);
    assert_int_equal(cost.relinked_bytes, 20000);
    assert_int_equal(cost.copied_blocks, 0);
    assert_int_equal(stats_of(child).requested.current, 10000);
    assert_int_equal(stats_of(stage->root).requested.current, 20000);
    assert_refused(ebb_region_release(child, block), EBB_E_FOREIGN);
    ebb_check_pool(stage->pool);
    assert_int_equal(ebb_region_close(child), 0);
    ebb_check_pool(stage->pool);
    assert_true(pattern_holds(block, 20000, 20000));
    assert_int_equal(ebb_region_block_bytes(stage->root, block), 20000);
    assert_ptr_equal(ebb_region_of(block).lane, stage->root.lane);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, 0);
}

static void what_is_written_to_a_relinked_block_is_seen_by_its_new_owner(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    unsigned char *block = block_of(child, 8192, 4096);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(promote_one(child, stage->root, &survivor, NULL), 0);
    block[17] = 99;
    ebb_region_close(child);
    assert_int_equal(((unsigned char *)survivor.block)[17], 99);
}

static void a_small_block_is_copied_though_relinking_was_asked(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    void *block = block_of(child, 1024, 64);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(promote_one(child, stage->root, &survivor, NULL), 0);
    assert_int_equal(survivor.mode, EBB_PROMOTE_COPY);
    assert_ptr_not_equal(survivor.block, block);
}

static void auto_relinks_what_pins_little_and_copies_the_rest(void **state) {
    static const struct {
        size_t bytes;
        int mode;
    } cases[] = {
        {16, EBB_PROMOTE_COPY},     {1025, EBB_PROMOTE_COPY},   {4095, EBB_PROMOTE_COPY},
        {4096, EBB_PROMOTE_RELINK}, {4097, EBB_PROMOTE_RELINK}, {8192, EBB_PROMOTE_RELINK},
        {8193, EBB_PROMOTE_RELINK}, {1 << 20, EBB_PROMOTE_RELINK},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ebb_region child = OPEN(.parent = stage->root);
        void *block = block_of(child, cases[i].bytes, 4096);
        struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_AUTO);
        assert_int_equal(promote_one(child, stage->root, &survivor, NULL), 0);
        assert_int_equal(survivor.mode, cases[i].mode);
        assert_int_equal(survivor.block == block, cases[i].mode == EBB_PROMOTE_RELINK);
        ebb_region_close(child);
        assert_true(pattern_holds(survivor.block, cases[i].bytes, (unsigned)cases[i].bytes));
    }
}

/* What auto does with the block, alone in its pages, that may pin so many percent. */
static int mode_of_auto(struct stage *stage, size_t bytes, size_t before, unsigned percent) {
    ebb_region child = OPEN(.parent = stage->root);
    block_of(child, before, 4096);
    char *block = block_of(child, bytes, 64);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_AUTO);
    struct ebb_promoted cost = {0};
    survivor.pin_percent = (uint16_t)percent;
    uintptr_t from = (uintptr_t)block / PAGE * PAGE;
    uintptr_t to = ((uintptr_t)block + (bytes + 63) / 64 * 64 + PAGE - 1) / PAGE * PAGE;
    size_t pins = to - from - bytes, allowed = percent ? percent : 100;
    assert_int_equal(ebb_close_keeping(child, stage->root, &survivor, 1, &cost, NULL), 0);
    bool relinks = bytes >= 4096 && pins * 100 <= bytes * allowed;
    assert_int_equal(survivor.mode, relinks ? EBB_PROMOTE_RELINK : EBB_PROMOTE_COPY);
    assert_true(cost.pinned_bytes * 100 <= cost.relinked_bytes * allowed);
    assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
    return survivor.mode;
}

static void auto_pins_what_it_may_and_not_a_byte_more(void **state) {
    static const unsigned percents[] = {0, 1, 50, 99, 100, 150, UINT16_MAX};
    struct stage *stage = *state;
    int chosen[3] = {0};
    for (size_t bytes = 2944; bytes < 12000; bytes += 64)
        for (size_t before = 4096; before <= 8192; before += 512)
            for (size_t i = 0; i < sizeof percents / sizeof *percents; i++)
                chosen[mode_of_auto(stage, bytes, before, percents[i])]++;
    assert_true(chosen[EBB_PROMOTE_COPY] > 0 && chosen[EBB_PROMOTE_RELINK] > 0);
}

static void of_a_list_the_least_that_may_be_pinned_counts(void **state) {
    struct stage *stage = *state;
    for (unsigned percent = 60; percent <= 140; percent += 40) {
        ebb_region child = OPEN(.parent = stage->root);
        struct ebb_survivor list[2];
        for (size_t i = 0; i < 2; i++) /* one of them alone would pin 3,968 of 4,224 bytes */
            list[i] = survivor_of(block_of(child, 4224, 4096), EBB_PROMOTE_AUTO);
        list[1].pin_percent = (uint16_t)percent;
        assert_int_equal(ebb_close_keeping(child, stage->root, list, 2, NULL, NULL), 0);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(list[i].mode, percent < 94 ? EBB_PROMOTE_COPY : EBB_PROMOTE_RELINK);
    }
}

static void small_neighbours_are_relinked_as_one(void **state) {
    struct stage *stage = *state;
    for (size_t count = 1; count <= 8; count *= 8) {
        ebb_region child = OPEN(.parent = stage->root);
        struct ebb_survivor list[8];
        struct ebb_promoted cost = {0};
        for (size_t i = 0; i < 8; i++)
            list[i] = survivor_of(block_of(child, 2048, 64), EBB_PROMOTE_AUTO);
        assert_int_equal(ebb_close_keeping(child, stage->root, list, count, &cost, NULL), 0);
        assert_int_equal(cost.relinked_blocks, count == 8 ? 8 : 0);
        assert_int_equal(cost.pinned_bytes, 0);
    }
}

#define NEIGHBOURS 16
#define NEIGHBOUR_BYTES ((size_t)4352) /* alone it would pin 3,840 bytes: more than its half */

/* Survivors that lie one behind the other, in an order that is not theirs. */
static void list_neighbours(ebb_region child, struct ebb_survivor *list, int mode) {
    for (size_t i = 0; i < NEIGHBOURS; i++)
        list[i * 5 % NEIGHBOURS] = survivor_of(block_of(child, NEIGHBOUR_BYTES, 256), mode);
    list[0].pin_percent = 50;
}

static void auto_weighs_neighbours_that_share_pages_as_one(void **state) {
    struct stage *stage = *state;
    for (size_t count = NEIGHBOURS; count > 0; count /= 2) {
        ebb_region child = OPEN(.parent = stage->root);
        struct ebb_survivor list[NEIGHBOURS];
        struct ebb_promoted cost = {0};
        list_neighbours(child, list, EBB_PROMOTE_AUTO);
        if (count == NEIGHBOURS / 2) /* every second place: none shares a page with another */
            for (size_t i = 0; i < count; i++)
                list[i] = list[i * 2];
        assert_int_equal(ebb_close_keeping(child, stage->root, list, count, &cost, NULL), 0);
        assert_int_equal(cost.relinked_blocks, count == NEIGHBOURS ? count : 0);
        assert_true(cost.pinned_bytes <= cost.relinked_bytes / 2);
        for (size_t i = 0; i < count; i++) {
            assert_true(pattern_holds(list[i].block, NEIGHBOUR_BYTES, (unsigned)NEIGHBOUR_BYTES));
            assert_int_equal(ebb_region_release(stage->root, list[i].block), 0);
        }
        ebb_check_pool(stage->pool);
    }
}

/* The first fills its page, the second begins the next one and would pin 94 percent; of both
 * together that would be 48. */
static void neighbours_in_pages_of_their_own_are_weighed_apart(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < 4; i++) {
        size_t turn = i % 2;
        ebb_region child = OPEN(.parent = stage->root);
        assert_int_equal(ebb_region_release(child, block_of(child, 3 * PAGE, PAGE)), 0);
        char *full = block_of(child, PAGE, PAGE), *sparse = block_of(child, 4224, 64);
        assert_ptr_equal(sparse, full + PAGE);
        struct ebb_survivor list[2];
        list[turn] = survivor_of(full, EBB_PROMOTE_AUTO);
        list[1 - turn] = survivor_of(sparse, EBB_PROMOTE_AUTO);
        list[0].pin_percent = i < 2 ? 60 : 40;
        assert_int_equal(ebb_close_keeping(child, stage->root, list, 2, NULL, NULL), 0);
        assert_int_equal(list[turn].mode, EBB_PROMOTE_RELINK);
        assert_int_equal(list[1 - turn].mode, EBB_PROMOTE_COPY);
    }
}

static void neighbours_are_weighed_with_what_is_relinked_anyway_and_not_with_copies(void **state) {
    static const int others[] = {EBB_PROMOTE_COPY, EBB_PROMOTE_RELINK};
    struct stage *stage = *state;
    for (size_t at = 0; at < sizeof others / sizeof *others; at++) {
        ebb_region child = OPEN(.parent = stage->root);
        struct ebb_survivor list[NEIGHBOURS];
        list_neighbours(child, list, EBB_PROMOTE_AUTO);
        for (size_t i = 0; i < NEIGHBOURS; i++)
            list[i * 5 % NEIGHBOURS].mode = i % 2 ? others[at] : EBB_PROMOTE_AUTO;
        assert_int_equal(ebb_promote(child, stage->root, list, NEIGHBOURS, NULL), 0);
        for (size_t i = 0; i < NEIGHBOURS; i++)
            assert_int_equal(list[i].mode, others[at]);
        ebb_region_close(child);
    }
}

static void a_list_that_fails_is_weighed_again_the_next_time(void **state) {
    struct stage *stage = *state;
    ebb_region upper = OPEN(.parent = stage->root, .limit_bytes = 96 * KIB);
    ebb_region lower = OPEN(.parent = upper);
    struct ebb_survivor list[NEIGHBOURS + 1];
    list_neighbours(lower, list, EBB_PROMOTE_AUTO);
    list[NEIGHBOURS] = survivor_of(block_of(lower, 20 * KIB, 256), EBB_PROMOTE_COPY);
    for (int turn = 0; turn < 2; turn++)
        assert_refused(ebb_promote(lower, upper, list, NEIGHBOURS + 1, NULL), EBB_E_REGION_LIMIT);
    assert_int_equal(list[0].mode, EBB_PROMOTE_AUTO);
    assert_int_equal(ebb_promote(lower, upper, list, NEIGHBOURS, NULL), 0);
    for (size_t i = 0; i < NEIGHBOURS; i++)
        assert_int_equal(list[i].mode, EBB_PROMOTE_RELINK);
    ebb_check_pool(stage->pool);
}

static void any_ancestor_can_be_the_target(void **state) {
    struct stage *stage = *state;
    ebb_region chain[6] = {stage->root};
    for (int i = 1; i < 6; i++)
        chain[i] = OPEN(.parent = chain[i - 1]);
    for (int target = 0; target < 5; target++) {
        void *large = block_of(chain[target + 1], 30000, 4096);
        void *small = block_of(chain[5], 300, 16);
        struct ebb_survivor a = survivor_of(large, EBB_PROMOTE_RELINK);
        struct ebb_survivor b = survivor_of(small, EBB_PROMOTE_AUTO);
        assert_int_equal(promote_one(chain[target + 1], chain[target], &a, NULL), 0);
        assert_int_equal(promote_one(chain[5], chain[target], &b, NULL), 0);
        assert_ptr_equal(a.block, large);
        assert_int_equal(ebb_region_block_bytes(chain[target], b.block), 300);
        ebb_check_pool(stage->pool);
    }
    ebb_region_close(chain[1]);
    assert_int_equal(stats_of(chain[0]).blocks.current, 2);
}

static void a_relinked_block_released_early_gives_its_place_to_the_host(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    void *block = block_of(child, 20000, 64);
    block_of(child, 5000, 64);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(promote_one(child, stage->root, &survivor, NULL), 0);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    ebb_check_pool(stage->pool);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_ptr_equal(block_of(child, 20000, 64), block);
    assert_refused(ebb_region_release(stage->root, block), EBB_E_FOREIGN);
    assert_int_equal(ebb_region_release(child, block), 0);
}

static void the_host_goes_on_allocating_around_departed_blocks(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    void *kept[20];
    for (size_t i = 0; i < 20; i++) {
        void *block = block_of(child, 6000 + i * 500, 64);
        void *gone = block_of(child, 9000, 64);
        struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
        assert_int_equal(promote_one(child, stage->root, &survivor, NULL), 0);
        assert_int_equal(ebb_region_release(child, gone), 0);
        kept[i] = block;
        block_of(child, 300, 16);
        ebb_check_pool(stage->pool);
    }
    ebb_region_close(child);
    for (size_t i = 0; i < 20; i++)
        assert_true(pattern_holds(kept[i], 6000 + i * 500, (unsigned)(6000 + i * 500)));
    struct ebb_region_stats stats = stats_of(stage->root);
    assert_int_equal(stats.waste, stats.pinned);
    ebb_check_pool(stage->pool);
}

/* Two blocks of a step, the first of which its parent got by relinking. */
struct pair {
    ebb_region middle, child;
    struct ebb_survivor to_middle, to_root;
    void *first, *second;
};

static struct pair relink_first(const struct stage *stage) {
    struct pair pair = {.middle = OPEN(.parent = stage->root)};
    pair.child = OPEN(.parent = pair.middle);
    pair.first = block_of(pair.child, 20000, 4096);
    pair.second = block_of(pair.child, 20000, 4096);
    pair.to_middle = survivor_of(pair.first, EBB_PROMOTE_RELINK);
    pair.to_root = survivor_of(pair.second, EBB_PROMOTE_RELINK);
    assert_int_equal(promote_one(pair.child, pair.middle, &pair.to_middle, NULL), 0);
    return pair;
}

static void a_second_heir_gets_copies(void **state) {
    struct stage *stage = *state;
    struct pair pair = relink_first(stage);
    assert_int_equal(promote_one(pair.child, stage->root, &pair.to_root, NULL), 0);
    assert_int_equal(pair.to_middle.mode, EBB_PROMOTE_RELINK);
    assert_int_equal(pair.to_root.mode, EBB_PROMOTE_COPY);
    ebb_region_close(pair.child);
    assert_true(pattern_holds(pair.first, 20000, 20000));
    ebb_region_close(pair.middle);
    assert_true(pattern_holds(pair.to_root.block, 20000, 20000));
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
}

static void when_all_guests_are_gone_there_may_be_another_heir(void **state) {
    struct stage *stage = *state;
    struct pair pair = relink_first(stage);
    assert_int_equal(ebb_region_release(pair.middle, pair.first), 0);
    assert_int_equal(promote_one(pair.child, stage->root, &pair.to_root, NULL), 0);
    assert_int_equal(pair.to_root.mode, EBB_PROMOTE_RELINK);
    assert_ptr_equal(pair.to_root.block, pair.second);
    ebb_region_close(pair.middle);
    assert_true(pattern_holds(pair.second, 20000, 20000));
    assert_int_equal(ebb_region_release(stage->root, pair.second), 0);
}

/* Two blocks share pages, and a run: it goes with neither, until there is one. */
static void survivors_that_share_a_run_go_further_by_copy(void **state) {
    struct stage *stage = *state;
    ebb_region middle = OPEN(.parent = stage->root), child = OPEN(.parent = middle);
    char *first = block_of(child, 6000, 4096), *second = block_of(child, 6000, 64);
    assert_ptr_equal(second, first + 6016);
    struct ebb_survivor list[] = {survivor_of(first, EBB_PROMOTE_RELINK),
                                  survivor_of(second, EBB_PROMOTE_RELINK)};
    assert_int_equal(ebb_close_keeping(child, middle, list, 2, NULL, NULL), 0);
    assert_int_equal(stats_of(middle).runs, 1);
    list[0].mode = list[1].mode = EBB_PROMOTE_RELINK;
    assert_int_equal(promote_one(middle, stage->root, &list[0], NULL), 0);
    assert_int_equal(list[0].mode, EBB_PROMOTE_COPY);
    assert_int_equal(ebb_region_release(middle, first), 0);
    assert_int_equal(promote_one(middle, stage->root, &list[1], NULL), 0);
    assert_int_equal(list[1].mode, EBB_PROMOTE_RELINK);
    assert_ptr_equal(list[1].block, second);
    assert_int_equal(stats_of(middle).runs, 0);
    ebb_check_pool(stage->pool);
    ebb_region_close(middle);
    assert_true(pattern_holds(list[0].block, 6000, 6000));
    assert_true(pattern_holds(second, 6000, 6000));
}

static void a_guest_is_promoted_further_by_copy_while_its_host_is_open(void **state) {
    struct stage *stage = *state;
    ebb_region middle = OPEN(.parent = stage->root), child = OPEN(.parent = middle);
    void *block = block_of(child, 20000, 4096);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(promote_one(child, middle, &survivor, NULL), 0);
    survivor.mode = EBB_PROMOTE_RELINK;
    assert_int_equal(promote_one(middle, stage->root, &survivor, NULL), 0);
    assert_int_equal(survivor.mode, EBB_PROMOTE_COPY);
    ebb_check_pool(stage->pool);
    ebb_region_close(middle);
    assert_true(pattern_holds(survivor.block, 20000, 20000));
}

static void a_survivor_with_a_run_of_its_own_takes_it_along_at_once(void **state) {
    struct stage *stage = *state;
    ebb_region middle = OPEN(.parent = stage->root), child = OPEN(.parent = middle);
    void *block = block_of(child, 20000, 4096);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(child, middle, &survivor, 1, NULL, NULL), 0);
    assert_int_equal(stats_of(middle).reserved.current, 20480);
    survivor.mode = EBB_PROMOTE_RELINK;
    assert_int_equal(promote_one(middle, stage->root, &survivor, NULL), 0);
    assert_int_equal(survivor.mode, EBB_PROMOTE_RELINK);
    assert_ptr_equal(survivor.block, block);
    assert_int_equal(stats_of(middle).reserved.current, 0);
    assert_int_equal(stats_of(middle).pinned, 0);
    assert_int_equal(stats_of(stage->root).reserved.current, 20480);
    assert_int_equal(stats_of(stage->root).pinned, 20480 - 20032);
    ebb_check_pool(stage->pool);
    ebb_region_close(middle);
    assert_true(pattern_holds(block, 20000, 20000));
}

static void what_the_target_owns_already_stays_as_it_is(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    void *large = block_of(stage->root, 20000, 4096), *small = block_of(stage->root, 100, 16);
    struct ebb_survivor list[] = {survivor_of(large, EBB_PROMOTE_RELINK),
                                  survivor_of(small, EBB_PROMOTE_COPY)};
    struct ebb_region_stats before = stats_of(stage->root);
    struct ebb_promoted cost = {0}, nothing = {0};
    assert_int_equal(ebb_promote(child, stage->root, list, 2, &cost), 0);
    assert_int_equal(ebb_promote(stage->root, stage->root, list, 2, &cost), 0);
    struct ebb_region_stats after = stats_of(stage->root);
    assert_memory_equal(&before, &after, sizeof before);
    assert_memory_equal(&cost, &nothing, sizeof cost);
    assert_ptr_equal(list[0].block, large);
    assert_ptr_equal(list[1].block, small);
    assert_int_equal(ebb_region_seal(stage->root), 0);
    assert_refused(ebb_promote(child, stage->root, list, 2, &cost), EBB_E_SEALED);
    assert_int_equal(ebb_promote(stage->root, stage->root, list, 2, &cost), 0); /* none comes */
}

static void an_empty_list_does_nothing(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    assert_int_equal(ebb_promote(child, stage->root, NULL, 0, NULL), 0);
    assert_int_equal(stats_of(stage->root).blocks.total, 0);
}

static void costs_are_added_to_what_is_there(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_promoted cost = {.copied_blocks = 10, .copied_bytes = 1000, .relinked_bytes = 7};
    struct ebb_survivor survivor = survivor_of(block_of(child, 100, 16), EBB_PROMOTE_COPY);
    assert_int_equal(promote_one(child, stage->root, &survivor, &cost), 0);
    assert_int_equal(cost.copied_blocks, 11);
    assert_int_equal(cost.copied_bytes, 1100);
    assert_int_equal(cost.relinked_bytes, 7);
}

static void promoted_blocks_survive_a_rewind_of_their_source(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    ebb_mark mark = ebb_region_mark(child);
    void *large = block_of(child, 20000, 4096), *small = block_of(child, 100, 16);
    block_of(child, 20000, 64);
    struct ebb_survivor list[] = {survivor_of(large, EBB_PROMOTE_RELINK),
                                  survivor_of(small, EBB_PROMOTE_COPY)};
    assert_int_equal(ebb_promote(child, stage->root, list, 2, NULL), 0);
    assert_int_equal(ebb_region_rewind(child, mark), 0);
    ebb_check_pool(stage->pool);
    assert_int_equal(stats_of(child).blocks.current, 0);
    assert_true(pattern_holds(list[0].block, 20000, 20000));
    assert_true(pattern_holds(list[1].block, 100, 100));
    assert_int_equal(stats_of(stage->root).blocks.current, 2);
}

static void a_block_promoted_before_a_mark_survives_the_rewind_of_its_owner(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor survivor = survivor_of(block_of(child, 20000, 4096), EBB_PROMOTE_RELINK);
    assert_int_equal(promote_one(child, stage->root, &survivor, NULL), 0);
    ebb_mark mark = ebb_region_mark(stage->root);
    block_of(stage->root, 5000, 64);
    assert_int_equal(ebb_region_close(child), 0); /* the pages change hands after the mark */
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    assert_int_equal(ebb_region_block_bytes(stage->root, survivor.block), 20000);
    assert_true(pattern_holds(survivor.block, 20000, 20000));
}

static void a_relinked_block_can_shrink_and_not_grow(void **state) {
    struct stage *stage = *state;
    for (int closed = 0; closed < 2; closed++) {
        ebb_region child = OPEN(.parent = stage->root);
        void *block = block_of(child, 20000, 4096);
        struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
        assert_int_equal(promote_one(child, stage->root, &survivor, NULL), 0);
        if (closed)
            ebb_region_close(child);
        assert_refused(ebb_region_resize(stage->root, block, 20100), EBB_E_NO_ROOM);
        assert_int_equal(ebb_region_resize(stage->root, block, 9000), 0);
        assert_int_equal(ebb_region_block_bytes(stage->root, block), 9000);
        assert_true(pattern_holds(block, 9000, 20000));
        ebb_check_pool(stage->pool);
        void *moved = ebb_region_realloc(stage->root, block, 50000, 64);
        assert_true(moved && moved != block && pattern_holds(moved, 9000, 20000));
        ebb_check_pool(stage->pool);
        ebb_region_close(child);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(a_copy_has_its_own_address_and_the_same_bytes),
        STAGED(a_copy_keeps_the_alignment_of_its_address_or_the_one_asked),
        STAGED(a_survivor_has_the_alignment_asked_whatever_way_it_goes),
        STAGED(a_relinked_block_keeps_its_address_and_changes_owner),
        STAGED(what_is_written_to_a_relinked_block_is_seen_by_its_new_owner),
        STAGED(a_small_block_is_copied_though_relinking_was_asked),
        STAGED(auto_relinks_what_pins_little_and_copies_the_rest),
        STAGED(auto_pins_what_it_may_and_not_a_byte_more),
        STAGED(of_a_list_the_least_that_may_be_pinned_counts),
        STAGED(small_neighbours_are_relinked_as_one),
        STAGED(auto_weighs_neighbours_that_share_pages_as_one),
        STAGED(neighbours_in_pages_of_their_own_are_weighed_apart),
        STAGED(neighbours_are_weighed_with_what_is_relinked_anyway_and_not_with_copies),
        STAGED(a_list_that_fails_is_weighed_again_the_next_time),
        STAGED(any_ancestor_can_be_the_target),
        STAGED(a_relinked_block_released_early_gives_its_place_to_the_host),
        STAGED(the_host_goes_on_allocating_around_departed_blocks),
        STAGED(a_second_heir_gets_copies),
        STAGED(when_all_guests_are_gone_there_may_be_another_heir),
        STAGED(survivors_that_share_a_run_go_further_by_copy),
        STAGED(a_guest_is_promoted_further_by_copy_while_its_host_is_open),
        STAGED(a_survivor_with_a_run_of_its_own_takes_it_along_at_once),
        STAGED(what_the_target_owns_already_stays_as_it_is),
        STAGED(an_empty_list_does_nothing),
        STAGED(costs_are_added_to_what_is_there),
        STAGED(promoted_blocks_survive_a_rewind_of_their_source),
        STAGED(a_block_promoted_before_a_mark_survives_the_rewind_of_its_owner),
        STAGED(a_relinked_block_can_shrink_and_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
