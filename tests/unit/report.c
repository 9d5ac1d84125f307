// SPDX-License-Identifier: Apache-2.0
/*
 * report.c - the tree of regions in text and JSON: complete, well formed, stoppable, and the same
 * numbers as the counters.
 */
#include "kit/text.h"

#include <stdio.h>

static struct page page;

static int clear(void **state) {
    memset(&page, 0, sizeof page);
    return stage_open(state);
}

static const char *report(ebb_region region, enum ebb_report_format format) {
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_region(region, format, page_write, &page), 0);
    return page.text;
}

static void a_region_is_one_line_of_text_with_its_numbers(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.name = "step", .parent = stage->root, .limit_bytes = 100000);
    block_of(region, 5000, 64);
    block_of(region, 100, 16);
    report(region, EBB_REPORT_TEXT);
    assert_int_equal(page_count(&page, "\n"), 1);
    assert_int_equal(page.text[page.length - 1], '\n');
    assert_non_null(strstr(page.text, "step: 2 blocks, requested 5100, used 5168"));
    assert_non_null(strstr(page.text, "limit 100000"));
}

static void json_carries_the_same_numbers_as_the_counters(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 5000, 64);
    void *gone = block_of(stage->root, 30000, 64);
    assert_int_equal(ebb_region_release(stage->root, gone), 0);
    struct ebb_region_stats stats = stats_of(stage->root);
    report(stage->root, EBB_REPORT_JSON);
    assert_true(page_is_json(&page));
    assert_int_equal(page_number(&page, "blocks", 0), stats.blocks.current);
    assert_int_equal(page_number(&page, "requested", 0), stats.requested.current);
    assert_int_equal(page_number(&page, "used", 0), stats.used.current);
    assert_int_equal(page_number(&page, "used_peak", 0), stats.used.peak);
    assert_int_equal(page_number(&page, "reserved", 0), stats.reserved.current);
    assert_int_equal(page_number(&page, "waste", 0), stats.waste);
    assert_int_equal(page_number(&page, "pinned", 0), stats.pinned);
}

static void trees_of_every_shape_are_well_formed(void **state) {
    struct stage *stage = *state;
    ebb_region regions[60] = {stage->root};
    for (int i = 1; i < 60; i++) {
        regions[i] = OPEN(.name = "node", .parent = regions[i * 31 % i]);
        report(stage->root, EBB_REPORT_JSON);
        assert_true(page_is_json(&page));
        assert_int_equal(page_count(&page, "\"name\":"), i + 1);
        report(stage->root, EBB_REPORT_TEXT);
        assert_int_equal(page_count(&page, "\n"), i + 1);
    }
    for (int i = 1; i < 60; i += 7) {
        report(regions[i], EBB_REPORT_JSON);
        assert_true(page_is_json(&page));
    }
}

static void children_are_indented_below_their_parent(void **state) {
    struct stage *stage = *state;
    ebb_region a = OPEN(.name = "outer", .parent = stage->root);
    ebb_region b = OPEN(.name = "inner", .parent = a);
    assert_true(ebb_region_is_open(b));
    report(stage->root, EBB_REPORT_TEXT);
    const char *outer = strstr(page.text, "\n  outer"), *inner = strstr(page.text, "\n    inner");
    assert_true(outer && inner && outer < inner);
    report(a, EBB_REPORT_TEXT);
    assert_memory_equal(page.text, "outer", 5);
    assert_non_null(strstr(page.text, "\n  inner"));
}

static void names_with_any_bytes_stay_well_formed_json(void **state) {
    struct stage *stage = *state;
    for (int byte = 1; byte < 256; byte++) {
        char name[] = {'a', (char)byte, 'b', '\0'};
        ebb_region region = OPEN(.name = name, .parent = stage->root);
        report(region, EBB_REPORT_JSON);
        assert_true(page_is_json(&page));
        ebb_region_close(region);
    }
}

static void names_in_utf8_stay_readable_and_are_cut_cleanly(void **state) {
    struct stage *stage = *state;
    static const char *const pieces[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8c\x8a"};
    for (int i = 0; i < 3; i++)
        for (size_t before = 0; before < 8; before++) {
            char name[64] = "";
            memset(name, 'x', before);
            while (strlen(name) < 40)
                strcat(name, pieces[i]);
            ebb_region region = OPEN(.name = name, .parent = stage->root);
            report(region, EBB_REPORT_JSON);
            assert_true(page_is_json(&page));
            size_t kept = (31 - before) / strlen(pieces[i]);
            assert_int_equal(page_count(&page, pieces[i]), kept);
            assert_int_equal(page_count(&page, "\\u"), 0); /* half a character would be one */
            ebb_region_close(region);
        }
}

static void names_of_pools_and_sites_are_cut_between_characters(void **state) {
    static const char name[] = "x\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                               "0123456789abc\xf0\x9f\x8c\x8a";
    ebb_pool *pool = POOL(.name = name);
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_pool(pool, EBB_REPORT_JSON, page_write, &page), 0);
    assert_int_equal(page_count(&page, "9abc\""), 1);
    pool_end(pool);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = name));
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_site(site, EBB_REPORT_JSON, page_write, &page), 0);
    assert_int_equal(page_count(&page, "9abc\""), 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Nothing else could be done: bytes of another encoding are kept up to the last that fits. */
static void names_that_are_no_utf8_are_cut_where_the_room_ends(void **state) {
    struct stage *stage = *state;
    for (int byte = 0x80; byte < 0x100; byte++) {
        char name[64] = "", shown[8];
        memset(name, byte, 40);
        ebb_region region = OPEN(.name = name, .parent = stage->root);
        report(region, EBB_REPORT_JSON);
        snprintf(shown, sizeof shown, "\\udc%02x", (unsigned)byte);
        assert_int_equal(page_count(&page, shown), 31);
        ebb_region_close(region);
    }
}

static void a_name_stays_in_its_line_of_text(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.name = "a\nb\x1b[2J\xc3(\xc3\xa9", .parent = stage->root);
    report(region, EBB_REPORT_TEXT);
    assert_memory_equal(page.text, "a?b?[2J?(\xc3\xa9: 0 blocks", 21);
    assert_int_equal(page_count(&page, "\n"), 1);
    ebb_pool *pool = POOL(.name = "two\nlines");
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_pool(pool, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_memory_equal(page.text, "pool two?lines: used 0", 22);
    pool_end(pool);
}

/* Also one whose characters are UTF-8: a control of ASCII's upper half, what ends a line, and what
 * turns the rest of it. */
static void a_name_does_nothing_to_who_shows_it(void **state) {
    (void)state;
    ebb_site *site =
        ebb_site_create(EBB_SITE_OPTIONS(.name = "\xc2\x9b" "31m\xe2\x80\xa8x\xe2\x80\xae\xc3"));
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_site(site, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_memory_equal(page.text, "site ?31m?x??: 0 steps", 22);
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_site(site, EBB_REPORT_JSON, page_write, &page), 0);
    assert_true(page_is_json(&page));
    assert_int_equal(page_count(&page, "\"\\u009b31m\\u2028x\\u202e\\udcc3\""), 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void release_remotely(ebb_region region, size_t bytes) {
    assert_int_equal(ebb_region_release_remote(region, block_of(region, bytes, 16)), 0);
}

/* Nobody has looked at what it handed in since. */
static void what_another_thread_released_is_counted_no_more(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.name = "child", .parent = stage->root);
    for (int whole = 0; whole < 2; whole++) {
        release_remotely(stage->root, 5000);
        release_remotely(child, 100);
        memset(&page, 0, sizeof page);
        assert_int_equal(
            whole ? ebb_report_pool(stage->pool, EBB_REPORT_JSON, page_write, &page)
                  : ebb_report_region(stage->root, EBB_REPORT_JSON, page_write, &page), 0);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(page_number(&page, "requested", i), 0);
        for (unsigned i = 0; i < 2 + (unsigned)whole; i++)
            assert_int_equal(page_number(&page, "used", i), 0);
    }
}

static void a_sealed_region_says_so(void **state) {
    struct stage *stage = *state;
    report(stage->root, EBB_REPORT_JSON);
    assert_non_null(strstr(page.text, "\"sealed\":false"));
    assert_int_equal(ebb_region_seal(stage->root), 0);
    report(stage->root, EBB_REPORT_JSON);
    assert_non_null(strstr(page.text, "\"sealed\":true"));
    assert_non_null(strstr(report(stage->root, EBB_REPORT_TEXT), "(sealed)"));
}

static void a_pool_lists_its_roots_behind_its_own_numbers(void **state) {
    struct stage *stage = *state;
    ebb_region other = OPEN(.name = "other", .pool = stage->pool);
    ebb_region child = OPEN(.name = "child", .parent = other);
    block_of(child, 5000, 64);
    struct ebb_pool_stats stats = pool_stats_of(stage->pool);
    assert_int_equal(ebb_report_pool(stage->pool, EBB_REPORT_JSON, page_write, &page), 0);
    assert_true(page_is_json(&page));
    assert_int_equal(page_number(&page, "owned", 0), stats.owned);
    assert_int_equal(page_number(&page, "cached", 0), stats.cached);
    assert_int_equal(page_number(&page, "open_regions", 0), 3);
    assert_int_equal(page_count(&page, "\"name\":"), 3);
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_pool(stage->pool, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_memory_equal(page.text, "pool stage:", 11);
    assert_int_equal(page_count(&page, "\n"), 4);
    ebb_region_close(other);
}

static void a_pool_without_regions_is_well_formed(void **state) {
    ebb_pool *pool = POOL(.name = "empty \"pool\"");
    assert_int_equal(ebb_report_pool(pool, EBB_REPORT_JSON, page_write, &page), 0);
    assert_true(page_is_json(&page));
    pool_end(pool);
}

static void no_pool_is_the_default_pool(void **state) {
    assert_int_equal(ebb_report_pool(NULL, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_memory_equal(page.text, "pool default:", 13);
}

static void the_report_ends_when_the_callback_says_so(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 5; i++)
        assert_true(ebb_region_is_open(OPEN(.parent = stage->root)));
    static const enum ebb_report_format formats[] = {EBB_REPORT_TEXT, EBB_REPORT_JSON};
    for (int i = 0; i < 2; i++)
        for (unsigned stop = 1; stop < 8; stop++) {
            memset(&page, 0, sizeof page);
            page.stop_at = stop;
            unsigned expected = stop;
            int result = ebb_report_region(stage->root, formats[i], page_write, &page);
            assert_true(result == 77 || (result == 0 && page.calls < stop));
            assert_true(page.calls <= expected);
        }
}

static void a_deep_tree_keeps_one_line_a_region(void **state) {
    struct stage *stage = *state;
    ebb_region at = stage->root;
    for (int i = 0; i < 200; i++)
        at = OPEN(.name = "deep", .parent = at);
    report(stage->root, EBB_REPORT_TEXT);
    assert_int_equal(page_count(&page, "\n"), 201);
    report(stage->root, EBB_REPORT_JSON);
    assert_true(page_is_json(&page));
}

#define REPORT_TEST(test) cmocka_unit_test_setup_teardown(test, clear, stage_close)

/* Roots of a shared pool lie in slots, each a heap of its own. */
static void a_shared_pools_report_has_the_trees_of_its_slots(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.name = "slots", .kind = EBB_KIND_SHARED, .slots = 3,
                          .slot_bytes = MIB);
    ebb_region one = OPEN(.name = "one", .pool = pool), two = OPEN(.name = "two", .pool = pool);
    ebb_region below = OPEN(.name = "below", .parent = two);
    block_of(below, 5000, 64);
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_pool(pool, EBB_REPORT_JSON, page_write, &page), 0);
    assert_true(page_is_json(&page));
    assert_int_equal(page_count(&page, "\"name\":\"one\""), 1);
    assert_int_equal(page_count(&page, "\"name\":\"two\""), 1);
    assert_int_equal(page_count(&page, "\"name\":\"below\""), 1);
    assert_int_equal(ebb_region_close(one), 0);
    assert_int_equal(ebb_region_close(two), 0);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        REPORT_TEST(a_region_is_one_line_of_text_with_its_numbers),
        REPORT_TEST(json_carries_the_same_numbers_as_the_counters),
        REPORT_TEST(trees_of_every_shape_are_well_formed),
        REPORT_TEST(children_are_indented_below_their_parent),
        REPORT_TEST(names_with_any_bytes_stay_well_formed_json),
        REPORT_TEST(names_in_utf8_stay_readable_and_are_cut_cleanly),
        REPORT_TEST(names_of_pools_and_sites_are_cut_between_characters),
        REPORT_TEST(names_that_are_no_utf8_are_cut_where_the_room_ends),
        REPORT_TEST(a_name_stays_in_its_line_of_text),
        REPORT_TEST(a_name_does_nothing_to_who_shows_it),
        REPORT_TEST(what_another_thread_released_is_counted_no_more),
        REPORT_TEST(a_sealed_region_says_so),
        REPORT_TEST(a_pool_lists_its_roots_behind_its_own_numbers),
        REPORT_TEST(a_pool_without_regions_is_well_formed),
        REPORT_TEST(no_pool_is_the_default_pool),
        REPORT_TEST(the_report_ends_when_the_callback_says_so),
        REPORT_TEST(a_deep_tree_keeps_one_line_a_region),
        cmocka_unit_test(a_shared_pools_report_has_the_trees_of_its_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
