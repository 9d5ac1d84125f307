// SPDX-License-Identifier: Apache-2.0
/*
 * d9_pools.c - part D9: rules of Postgres' contexts, APR's pools, bumpalo. All of it is here.
 *
 * 118's reparenting of a whole context is ours for what it holds: a build under a temporary region
 * is promoted to the cache, or closed without a trace. 123: the limit of a region is that with
 * which it was opened.
 */
#include "conformance/law.h"
#include "kit/text.h"

/* A cleanup, what it returns, and the text to which it adds its name when it runs. */
struct named {
    struct ebb_cleanup node;
    char name;
    int returns;
    char *ran;
    struct ebb_cleanup *runs;
};

static int note(void *data) {
    struct named *named = data;
    size_t count = strlen(named->ran);
    named->ran[count] = named->name;
    named->ran[count + 1] = '\0';
    if (named->runs)
        assert_int_equal(ebb_cleanup_run(named->runs), 0);
    return named->returns;
}

static void add_named(struct named *named, ebb_region region, char name, char *ran) {
    *named = (struct named){.node = {.run = note, .data = named}, .name = name, .ran = ran};
    assert_int_equal(ebb_cleanup_add(region, &named->node), 0);
}

static void c117_a_reset_closes_children_and_keeps_the_pages_it_was_told(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .hint_bytes = 2 * PAGE);
    ebb_region child = OPEN(.parent = region), grandchild = OPEN(.parent = child);
    struct named cleanups[6];
    char ran[7] = "";
    const ebb_region regions[] = {child, region, grandchild};
    for (int i = 0; i < 6; i++)
        add_named(&cleanups[i], regions[i % 3], (char)('a' + i), ran);
    block_of(region, 5000, 64);
    block_of(grandchild, 5000, 64);
    assert_int_equal(ebb_region_reset(region, 2 * PAGE), 0);
    assert_string_equal(ran, "fcdaeb"); /* children first, within each the newest */
    assert_false(ebb_region_is_open(child) || ebb_region_is_open(grandchild));
    assert_int_equal(stats_of(region).reserved.current, 2 * PAGE);
    assert_int_equal(ebb_region_reset(region, 2 * PAGE), 0);
    assert_string_equal(ran, "fcdaeb");
}

static void c118_a_build_is_kept_or_leaves_no_trace(void **state) {
    struct stage *stage = *state;
    ebb_region cache = OPEN(.name = "cache", .parent = stage->root);
    block_of(cache, 3000, 64);
    for (int round = 0; round < 10; round++) {
        ebb_region temporary = OPEN(.name = "temporary", .parent = cache);
        struct ebb_region_stats before = stats_of(cache);
        struct ebb_survivor built = survivor_of(block_of(temporary, 40000, 4096), EBB_PROMOTE_AUTO);
        block_of(temporary, 90000, 64);
        bool fails = round % 2;
        if (fails) {
            assert_int_equal(ebb_region_close(temporary), 0);
            struct ebb_region_stats after = stats_of(cache);
            before.children = 0;
            assert_memory_equal(&before, &after, sizeof before);
        } else {
            assert_int_equal(ebb_close_keeping(temporary, cache, &built, 1, NULL, NULL), 0);
            assert_int_equal(stats_of(cache).blocks.current, before.blocks.current + 1);
            assert_true(pattern_holds(built.block, 40000, 40000));
        }
    }
    ebb_region below = OPEN(.parent = cache);
    struct ebb_survivor own = survivor_of(block_of(cache, 100, 16), EBB_PROMOTE_COPY);
    assert_refused(ebb_promote(cache, below, &own, 1, NULL), EBB_E_NOT_ANCESTOR); /* a cycle */
}

static void c119_empty_blocks_exist_and_are_released_once(void **state) {
    struct stage *stage = *state;
    void *block = ebb_region_alloc(stage->root, 0, 1);
    assert_non_null(block);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_refused(ebb_region_release(stage->root, block), EBB_E_RELEASED);
}

static void c120_ancestors_and_zeroed_memory(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    assert_true(ebb_region_is_ancestor(stage->root, child));
    assert_false(ebb_region_is_ancestor(child, stage->root));
    void *dirty = block_of(child, 1024, 16);
    assert_int_equal(ebb_region_release(child, dirty), 0);
    unsigned char *zeroed = ebb_region_alloc_zeroed(child, 1024, 16);
    for (size_t i = 0; i < 1024; i++)
        assert_int_equal(zeroed[i], 0);
}

/* Of five cleanups three are run by hand, and the fifth runs the fourth when its turn comes. Even
 * rounds have one more, which does nothing but be there. The third round ends with a reset. */
static void c121_five_rounds_of_cleanups(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct named cleanups[5][6];
    char ran[40] = "";
    for (int round = 0; round < 5; round++) {
        struct named *own = cleanups[round];
        for (int i = 0; i < (round % 2 ? 5 : 6); i++)
            add_named(&own[i], region, (char)('a' + i), ran);
        own[2].returns = 7;
        own[4].runs = &own[3].node;
        for (int again = 0; again < 2; again++) {
            assert_int_equal(ebb_cleanup_run(&own[0].node), 0);
            assert_int_equal(ebb_cleanup_run(&own[1].node), 0);
            assert_int_equal(ebb_cleanup_run(&own[2].node), again ? 0 : 7);
        }
        if (round == 2)
            assert_int_equal(ebb_region_reset(region, 0), 0);
    }
    assert_string_equal(ran, "abcabcabc" "fededfed" "abcabc");
    assert_int_equal(ebb_region_close(region), 0);
    assert_string_equal(ran, "abcabcabc" "fededfed" "abcabc" "feded");
}

static void c122_a_name_has_a_default_and_can_be_chosen(void **state) {
    struct stage *stage = *state;
    static struct page page;
    assert_true(ebb_region_is_open(OPEN(.parent = stage->root)));
    assert_true(ebb_region_is_open(OPEN(.name = "chosen", .parent = stage->root)));
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_region(stage->root, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_int_equal(page_count(&page, "  region: "), 1);
    assert_int_equal(page_count(&page, "  chosen: "), 1);
}

static bool fits(ebb_region region, size_t bytes) {
    void *block = ebb_region_alloc(region, bytes, 8);
    if (!block)
        assert_refused(ebb_last_error(), EBB_E_REGION_LIMIT);
    return block != NULL;
}

static void c123_limits_grant_and_refuse(void **state) {
    struct stage *stage = *state;
    ebb_region unlimited = OPEN(.parent = stage->root);
    assert_int_equal(stats_of(unlimited).reserved.current, 0);
    assert_true(fits(unlimited, 5));
    ebb_region tiny = OPEN(.parent = stage->root, .limit_bytes = 1); /* 0 would mean no limit */
    assert_false(fits(tiny, 5));
    ebb_region half = OPEN(.parent = stage->root, .limit_bytes = 512);
    assert_true(fits(half, 8));
    assert_false(fits(half, 2048 * 8));
    ebb_region wide = OPEN(.parent = stage->root, .limit_bytes = 16384);
    assert_true(fits(wide, 2000 * 8));
    assert_true(stats_of(wide).reserved.current <= 16384);
    assert_int_equal(ebb_region_reset(wide, 0), 0);
    assert_int_equal(stats_of(wide).limit, 16384);
    assert_true(fits(wide, 2000 * 8));
    assert_false(fits(wide, 2000 * 8));
    ebb_region narrow = OPEN(.parent = stage->root, .limit_bytes = 64);
    assert_true(fits(narrow, 8));
}

static void c125_neighbours_stay_intact(void **state) {
    struct stage *stage = *state;
    uint32_t *value = untouched(stage->root, 4, 4);
    *value = 0x12345678;
    unsigned char *a = untouched(stage->root, 40, 1);
    memset(a, 0xaa, 40);
    unsigned char *b = untouched(stage->root, 40, 1);
    memset(b, 0xbb, 40);
    assert_int_equal(ebb_region_release(stage->root, a), 0); /* dropped between two others */
    unsigned char *grown = ebb_region_realloc(stage->root, b, 500, 1);
    assert_non_null(grown);
    block_of(stage->root, 100000, 64); /* a new chunk */
    for (int i = 0; i < 40; i++)
        assert_int_equal(grown[i], 0xbb);
    assert_int_equal(*value, 0x12345678);

    uint32_t *answer = untouched(stage->root, 400, 4);
    *answer = 42;
    ebb_mark mark = ebb_region_mark(stage->root);
    assert_ptr_equal(ebb_region_realloc(stage->root, answer, 4, 4), answer); /* shrinks */
    block_of(stage->root, 300, 4);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    block_of(stage->root, 300, 4);
    assert_int_equal(*answer, 42);
    assert_int_equal(*value, 0x12345678);
}

static void build(ebb_region region) {
    for (size_t i = 0; i < 300; i++)
        block_of(region, 1 + i * 11 % 2500, 16);
}

static void c126_failing_builds_reserve_at_most_twice_one(void **state) {
    struct stage *stage = *state;
    ebb_region once = OPEN(.parent = stage->root);
    build(once);
    uint64_t one = stats_of(once).reserved.current;
    assert_int_equal(ebb_region_close(once), 0);
    ebb_region region = OPEN(.parent = stage->root);
    for (int i = 0; i < 36; i++) {
        ebb_mark guard = ebb_region_mark(region);
        build(region);
        assert_int_equal(ebb_region_rewind(region, guard), 0);
    }
    assert_true(stats_of(region).reserved.peak <= 2 * one);
    assert_int_equal(stats_of(region).blocks.current, 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        CASE(c117_a_reset_closes_children_and_keeps_the_pages_it_was_told),
        CASE(c118_a_build_is_kept_or_leaves_no_trace),
        CASE(c119_empty_blocks_exist_and_are_released_once),
        CASE(c120_ancestors_and_zeroed_memory),
        CASE(c121_five_rounds_of_cleanups),
        CASE(c122_a_name_has_a_default_and_can_be_chosen),
        CASE(c123_limits_grant_and_refuse),
        CASE(c125_neighbours_stay_intact),
        CASE(c126_failing_builds_reserve_at_most_twice_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
