// SPDX-License-Identifier: Apache-2.0
/*
 * budget.c - limits of regions: exact to the byte as rounded, inherited by all descendants,
 * charged on every level or on none.
 */
#include "kit/test.h"

/* A region with this limit grants the block, or refuses it by its limit. */
static bool limit_grants(struct stage *stage, size_t limit, size_t bytes, size_t align) {
    ebb_region region = OPEN(.name = "limited", .parent = stage->root, .limit_bytes = limit);
    void *block = ebb_region_alloc(region, bytes, align);
    if (!block)
        assert_refused(ebb_last_error(), EBB_E_REGION_LIMIT);
    struct ebb_region_stats stats = stats_of(region);
    assert_int_equal(stats.subtree_used, stats.used.current);
    assert_int_equal(stats.blocks.total, block != NULL);
    assert_true(block || stats.reserved.total == 0);
    ebb_region_close(region);
    return block != NULL;
}

static void limits_are_exact_to_the_byte_as_rounded(void **state) {
    static const struct {
        size_t bytes, align, used;
    } cases[] = {
        {0, 1, 16},        {1, 1, 16},          {15, 16, 16},        {16, 16, 16},
        {17, 16, 32},      {1008, 64, 1008},    {1009, 64, 1024},    {1024, 64, 1024},
        {1025, 64, 1088},  {0, 128, 1024},      {1024, 128, 1024},   {4096, 64, 4096},
        {4097, 64, 4160},  {65535, 64, 65536},  {65537, 4096, 65600}, {1, 2 << 20, 1024},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(limit_grants(stage, cases[i].used - 1, cases[i].bytes, cases[i].align));
        assert_true(limit_grants(stage, cases[i].used, cases[i].bytes, cases[i].align));
        assert_true(limit_grants(stage, cases[i].used + 1, cases[i].bytes, cases[i].align));
    }
}

static void a_limit_covers_all_descendants(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 10240);
    ebb_region child = OPEN(.parent = limited), grandchild = OPEN(.parent = child);
    block_of(limited, 1024, 64);
    block_of(child, 4096, 64);
    block_of(grandchild, 4096, 64);
    assert_int_equal(stats_of(limited).subtree_used, 9216);
    assert_no_block(ebb_region_alloc(grandchild, 1025, 64), EBB_E_REGION_LIMIT);
    assert_no_block(ebb_region_alloc(child, 1025, 64), EBB_E_REGION_LIMIT);
    void *last = block_of(grandchild, 1024, 64);
    assert_no_block(ebb_region_alloc(limited, 1, 1), EBB_E_REGION_LIMIT);
    assert_int_equal(ebb_region_release(grandchild, last), 0);
    block_of(limited, 1024, 16);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(stats_of(limited).subtree_used, 2048);
    block_of(limited, 8192, 64);
}

static void the_narrowest_limit_on_the_way_up_refuses(void **state) {
    struct stage *stage = *state;
    ebb_region wide = OPEN(.name = "wide", .parent = stage->root, .limit_bytes = 8192);
    ebb_region between = OPEN(.name = "between", .parent = wide);
    ebb_region narrow = OPEN(.name = "narrow", .parent = between, .limit_bytes = 4096);
    ebb_region deep = OPEN(.name = "deep", .parent = narrow);
    assert_no_block(ebb_region_alloc(deep, 4097, 64), EBB_E_REGION_LIMIT);
    assert_text_names("'narrow'");
    assert_text_names("'deep'");
    assert_text_names("4160");
    assert_int_equal(stats_of(wide).subtree_used, 0);
    block_of(deep, 2048, 64);
    block_of(between, 4096, 64);
    block_of(deep, 1024, 64);
    assert_no_block(ebb_region_alloc(deep, 1025, 64), EBB_E_REGION_LIMIT);
    assert_no_block(ebb_region_alloc(between, 2049, 64), EBB_E_REGION_LIMIT);
    assert_text_names("'wide'");
    assert_int_equal(stats_of(wide).subtree_used, stats_of(narrow).subtree_used + 4096);
}

static void a_wide_limit_that_refuses_charges_no_narrow_one(void **state) {
    struct stage *stage = *state;
    ebb_region wide = OPEN(.parent = stage->root, .limit_bytes = 4096);
    ebb_region child = OPEN(.parent = wide, .limit_bytes = 1 * MIB);
    block_of(wide, 2048, 64);
    for (int i = 0; i < 10; i++) {
        assert_no_block(ebb_region_alloc(child, 2049, 64), EBB_E_REGION_LIMIT);
        assert_no_block(ebb_region_alloc(child, 1 * MIB, 64), EBB_E_REGION_LIMIT);
        assert_int_equal(stats_of(child).subtree_used, 0);
        assert_int_equal(stats_of(wide).subtree_used, 2048);
    }
    block_of(child, 2048, 64);
}

static void a_pool_limit_that_refuses_charges_no_region(void **state) {
    ebb_pool *pool = POOL(.limit_used_bytes = 4096);
    ebb_region limited = OPEN(.pool = pool, .limit_bytes = 1 * MIB);
    ebb_region child = OPEN(.parent = limited);
    block_of(child, 2048, 64);
    assert_no_block(ebb_region_alloc(child, 2049, 64), EBB_E_POOL_LIMIT);
    assert_int_equal(stats_of(limited).subtree_used, 2048);
    block_of(child, 2048, 64);
    ebb_region_close(limited);
    pool_end(pool);
}

static void every_release_gives_its_bytes_back(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 64 * KIB);
    for (size_t round = 0; round < 2000; round++) {
        void *blocks[6];
        for (size_t i = 0; i < 6; i++)
            blocks[i] = block_of(limited, (round * 97 + i * 1313) % 7000, 64);
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(ebb_region_release(limited, blocks[(i + round) % 6]), 0);
        assert_int_equal(stats_of(limited).subtree_used, stats_of(limited).used.current);
    }
    assert_int_equal(stats_of(limited).used.current, 0);
    block_of(limited, 64 * KIB, 64);
}

/* All that a limit allows is handed in by others, again and again. */
static void hand_over(ebb_region region, size_t bytes, size_t count, int refusal) {
    void *blocks[16];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++)
            blocks[i] = block_of(region, bytes, 64);
        assert_no_block(ebb_region_alloc(region, bytes, 64), refusal);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(ebb_region_release_remote(region, blocks[i]), 0);
    }
}

static void what_others_released_is_in_the_way_of_no_limit(void **state) {
    struct stage *stage = *state;
    for (size_t bytes = 64; bytes <= 16384; bytes *= 4) {
        ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 16 * bytes);
        hand_over(limited, bytes, 16, EBB_E_REGION_LIMIT);
        assert_int_equal(ebb_region_close(limited), 0);
        ebb_pool *pool = POOL(.limit_used_bytes = 4 * bytes);
        ebb_region region = OPEN(.pool = pool);
        hand_over(region, bytes, 4, EBB_E_POOL_LIMIT);
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
    }
}

/* A tree below one limit, or in a pool that limits used bytes: parent, two children. */
struct family {
    ebb_pool *pool;
    ebb_region regions[3];
};

static struct family family_of(size_t limit, bool of_pool) {
    struct family family = {.pool = POOL(.limit_used_bytes = of_pool ? limit : 0)};
    family.regions[0] = OPEN(.pool = family.pool, .limit_bytes = of_pool ? 0 : limit);
    family.regions[1] = OPEN(.parent = family.regions[0], .hint_bytes = 256 * KIB);
    family.regions[2] = OPEN(.parent = family.regions[0]);
    return family;
}

static void family_end(struct family *family) {
    assert_int_equal(ebb_region_close(family->regions[0]), 0);
    pool_end(family->pool);
}

/* Wherever they lie in the tree, and whoever asks there. */
static void what_others_released_in_the_tree_is_in_the_way_of_no_limit(void **state) {
    static const size_t sizes[] = {64, 1024, 80000};
    for (int way = 0; way < 3 * 3 * 2 * 3; way++) {
        size_t bytes = sizes[way % 3];
        struct family family = family_of(4 * bytes, way / 3 % 2);
        ebb_region from = family.regions[way / 6 % 3], to = family.regions[way / 18];
        for (int round = 0; round < 3; round++) {
            void *blocks[4], *again[4];
            for (int i = 0; i < 4; i++)
                blocks[i] = block_of(from, bytes, 64);
            assert_null(ebb_region_alloc(to, bytes, 64));
            for (int i = 0; i < 4; i++)
                assert_int_equal(ebb_region_release_remote(from, blocks[i]), 0);
            for (int i = 0; i < 4; i++)
                again[i] = i % 2 ? ebb_region_alloc_zeroed(to, bytes, 64)
                                 : ebb_region_alloc(to, bytes, 64);
            for (int i = 0; i < 4; i++)
                assert_true(again[i] && ebb_region_release(to, again[i]) == 0);
        }
        family_end(&family);
    }
}

static void a_block_grows_into_what_others_released_in_the_tree(void **state) {
    for (int way = 0; way < 4; way++) {
        size_t bytes = way / 2 ? 320 : 64000;
        struct family family = family_of(3 * bytes, way % 2);
        ebb_region parent = family.regions[0], child = family.regions[1];
        void *released = block_of(parent, bytes, 64), *grown = block_of(child, bytes, 64);
        assert_int_equal(ebb_region_release_remote(parent, released), 0);
        assert_int_equal(ebb_region_resize(child, grown, 3 * bytes), 0);
        assert_int_equal(ebb_region_resize(child, grown, bytes), 0);
        released = block_of(parent, bytes, 64);
        assert_int_equal(ebb_region_release_remote(parent, released), 0);
        assert_ptr_equal(ebb_region_realloc(child, grown, 3 * bytes, 64), grown);
        family_end(&family);
    }
}

static void count_report(void *context, const char *text) {
    (void)text;
    ++*(int *)context;
}

/* What is tried again, and served, was not refused. */
static void the_handler_hears_only_of_what_is_refused_in_the_end(void **state) {
    int reports = 0;
    struct family family = family_of(1 * MIB, false);
    ebb_region parent = family.regions[0], child = family.regions[1];
    ebb_report_on_exhausted(count_report, &reports);
    for (int way = 0; way < 2; way++) {
        void *released = block_of(parent, 1 * MIB, 64);
        assert_int_equal(ebb_region_release_remote(parent, released), 0);
        assert_no_block(ebb_region_alloc(child, 16, 3), EBB_E_ALIGNMENT);
        void *block = block_of(child, way ? 16 : 2000, 16);
        assert_int_equal(reports, 0);
        assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
        assert_text_names("alignment");
        assert_int_equal(ebb_region_release(child, block), 0);
    }
    assert_null(ebb_region_alloc(child, 2 * MIB, 64));
    assert_int_equal(reports, 1);
    ebb_report_on_exhausted(NULL, NULL);
    family_end(&family);
}

/* In each lane: what lies behind, or nothing, or room of its window. */
static void a_block_that_shrinks_gives_its_bytes_back(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 8 * KIB);
    void *large = block_of(region, 4096, 64), *small = block_of(region, 1024, 16);
    void *last = block_of(region, 1024, 16);
    assert_int_equal(ebb_region_resize(region, small, 100), 0);
    assert_int_equal(stats_of(region).subtree_used, 4096 + 112 + 1024);
    assert_int_equal(ebb_region_resize(region, last, 200), 0);
    assert_int_equal(stats_of(region).subtree_used, 4096 + 112 + 208);
    assert_int_equal(ebb_region_resize(region, large, 2000), 0);
    assert_int_equal(stats_of(region).subtree_used, 2048 + 112 + 208);
    assert_int_equal(stats_of(region).used.current, 2048 + 112 + 208);
    assert_no_block(ebb_region_alloc(region, 8192 - 2048 - 112 - 208 + 1, 64),
                    EBB_E_REGION_LIMIT);
    block_of(region, 8192 - 2048 - 64 * 5, 64);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(stats_of(stage->root).subtree_used, 0);
}

static void padding_in_front_of_blocks_does_not_count(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 64);
    void *first = block_of(limited, 16, 16), *second = block_of(limited, 16, 64);
    assert_int_equal(stats_of(limited).subtree_used, 32);
    void *third = block_of(limited, 16, 64), *fourth = block_of(limited, 16, 16);
    assert_int_equal(stats_of(limited).subtree_used, 64);
    assert_no_block(ebb_region_alloc(limited, 0, 1), EBB_E_REGION_LIMIT);
    assert_int_equal(ebb_region_release(limited, fourth), 0);
    assert_int_equal(stats_of(limited).subtree_used, 48);
    assert_int_equal(ebb_region_release(limited, third), 0);
    assert_int_equal(ebb_region_release(limited, first), 0);
    assert_int_equal(ebb_region_release(limited, second), 0);
    assert_int_equal(stats_of(limited).subtree_used, 0);
    block_of(limited, 64, 64);
}

/* A small block and an aligned one come and go; few of the aligned ones stay. Returns their bytes,
 * which reach `most`. */
static size_t keep_few(ebb_region region, size_t kept, size_t most) {
    for (size_t i = 0; kept + 80 + 16 <= most; i++) {
        void *small = block_of(region, 16, 16), *aligned = block_of(region, 80, 64);
        assert_int_equal(ebb_region_release(region, small), 0);
        if (i % 40 == 0)
            kept += 80;
        else
            assert_int_equal(ebb_region_release(region, aligned), 0);
        assert_int_equal(stats_of(region).used.current, kept);
    }
    return kept;
}

/* What lives is granted, to the limit; then what came since a mark goes, and the rest. */
static void fill_to_the_limit(ebb_region region, size_t limit) {
    size_t half = keep_few(region, 0, limit / 2);
    ebb_mark mark = ebb_region_mark(region);
    keep_few(region, half, limit);
    assert_int_equal(ebb_region_rewind(region, mark), 0);
    assert_int_equal(stats_of(region).used.current, half);
    assert_int_equal(ebb_region_reset(region, 0), 0);
    block_of(region, limit, 64);
}

static void padding_of_blocks_that_are_gone_is_in_the_way_of_no_limit(void **state) {
    struct stage *stage = *state;
    size_t limit = 32 * KIB;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = limit);
    fill_to_the_limit(limited, limit);
    ebb_pool *pool = POOL(.limit_used_bytes = limit);
    fill_to_the_limit(OPEN(.pool = pool), limit);
    ebb_check_pool(pool);
    ebb_pool_destroy(pool);
}

static void promoting_moves_a_charge_to_the_target(void **state) {
    struct stage *stage = *state;
    ebb_region upper = OPEN(.parent = stage->root, .limit_bytes = 64 * KIB);
    ebb_region lower = OPEN(.parent = upper, .limit_bytes = 32 * KIB);
    void *block = block_of(lower, 16 * KIB, 4096);
    struct ebb_survivor relinked = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_promote(lower, upper, &relinked, 1, NULL), 0);
    assert_int_equal(stats_of(lower).subtree_used, 0);
    assert_int_equal(stats_of(upper).subtree_used, 16 * KIB);
    block = block_of(lower, 16 * KIB, 64);
    struct ebb_survivor copied = survivor_of(block, EBB_PROMOTE_COPY);
    assert_int_equal(ebb_promote(lower, upper, &copied, 1, NULL), 0);
    assert_int_equal(stats_of(lower).subtree_used, 16 * KIB);
    assert_int_equal(stats_of(upper).subtree_used, 48 * KIB);
    assert_int_equal(ebb_region_close(lower), 0);
    assert_int_equal(stats_of(upper).subtree_used, 32 * KIB);
    assert_int_equal(ebb_region_release(upper, relinked.block), 0);
    assert_int_equal(ebb_region_release(upper, copied.block), 0);
    assert_int_equal(stats_of(upper).subtree_used, 0);
}

static void a_copy_over_budget_is_refused_and_a_relink_is_not(void **state) {
    struct stage *stage = *state;
    ebb_region upper = OPEN(.parent = stage->root, .limit_bytes = 24 * KIB);
    ebb_region lower = OPEN(.parent = upper);
    void *block = block_of(lower, 16 * KIB, 4096);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_COPY);
    struct ebb_region_stats before = stats_of(upper);
    assert_refused(ebb_promote(lower, upper, &survivor, 1, NULL), EBB_E_REGION_LIMIT);
    struct ebb_region_stats after = stats_of(upper);
    assert_memory_equal(&before, &after, sizeof before);
    assert_ptr_equal(survivor.block, block);
    survivor.mode = EBB_PROMOTE_RELINK;
    assert_int_equal(ebb_promote(lower, upper, &survivor, 1, NULL), 0);
    assert_int_equal(stats_of(upper).subtree_used, 16 * KIB);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(limits_are_exact_to_the_byte_as_rounded),
        STAGED(a_limit_covers_all_descendants),
        STAGED(the_narrowest_limit_on_the_way_up_refuses),
        STAGED(a_wide_limit_that_refuses_charges_no_narrow_one),
        cmocka_unit_test(a_pool_limit_that_refuses_charges_no_region),
        STAGED(every_release_gives_its_bytes_back),
        STAGED(what_others_released_is_in_the_way_of_no_limit),
        cmocka_unit_test(what_others_released_in_the_tree_is_in_the_way_of_no_limit),
        cmocka_unit_test(a_block_grows_into_what_others_released_in_the_tree),
        cmocka_unit_test(the_handler_hears_only_of_what_is_refused_in_the_end),
        STAGED(a_block_that_shrinks_gives_its_bytes_back),
        STAGED(padding_in_front_of_blocks_does_not_count),
        STAGED(padding_of_blocks_that_are_gone_is_in_the_way_of_no_limit),
        STAGED(promoting_moves_a_charge_to_the_target),
        STAGED(a_copy_over_budget_is_refused_and_a_relink_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
