// SPDX-License-Identifier: Apache-2.0
/*
 * leaks.c - the live blocks of a region by the site that made them: every block in exactly one
 * group, most bytes first, named, and bounded however many sites there are.
 */
#include "kit/text.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static struct page page;
static const char *symbol; /* that each site is said to lie in; NULL: what is true */

/* The library calls this one. */
int dladdr(const void *address, Dl_info *info) {
    int (*real)(const void *, Dl_info *);
    *(void **)&real = dlsym(RTLD_NEXT, "dladdr");
    int found = real(address, info);
    if (symbol) {
        info->dli_sname = symbol;
        info->dli_saddr = (char *)(uintptr_t)address - 0x12345;
    }
    return found;
}

static bool counting;
static unsigned mallocs; /* while counting */

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
/* So does whatever else is there. A sanitizer has one of its own. */
void *malloc(size_t bytes) {
    static void *(*real)(size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "malloc");
    mallocs += counting;
    return real(bytes);
}
#endif

static void leaks(ebb_region region, enum ebb_report_format format) {
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_leaks(region, format, page_write, &page), 0);
    assert_true(format == EBB_REPORT_TEXT || page_is_json(&page));
}

static uint64_t sum(const char *name, unsigned from, unsigned groups) {
    uint64_t total = 0;
    for (unsigned i = from; i < from + groups; i++)
        total += page_number(&page, name, i);
    return total;
}

static unsigned groups(void) {
    return page_count(&page, "\"site\":");
}

/* Sites: each of these is called from one place only and is not merged into its caller. */
__attribute__((noinline)) static void *from_here(ebb_region region, size_t bytes) {
    void *block = ebb_region_alloc(region, bytes, 16);
    assert_non_null(block);
    return block;
}

__attribute__((noinline)) static void *from_there(ebb_region region, size_t bytes) {
    void *block = ebb_region_alloc_zeroed(region, bytes, 16);
    assert_non_null(block);
    return block;
}

__attribute__((noinline)) static void *from_elsewhere(ebb_region region, size_t bytes) {
    void *block = ebb_region_alloc_array(region, bytes, 2, 16);
    assert_non_null(block);
    return block;
}

__attribute__((noinline)) static void *from_realloc(ebb_region region, size_t bytes) {
    void *block = ebb_region_realloc(region, NULL, bytes, 16);
    assert_non_null(block);
    return block;
}

static void every_site_is_a_group_with_its_blocks_and_bytes(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.name = "leaky", .parent = stage->root, .sites = true);
    for (int i = 0; i < 3; i++)
        from_here(region, 100);
    from_there(region, 5000);
    from_elsewhere(region, 400);
    from_realloc(region, 50);
    leaks(region, EBB_REPORT_JSON);
    assert_int_equal(groups(), 4);
    assert_int_equal(page_number(&page, "blocks", 0), 6); /* of the region */
    assert_int_equal(page_number(&page, "bytes", 0), 5000);
    assert_int_equal(page_number(&page, "bytes", 1), 800);
    assert_int_equal(page_number(&page, "bytes", 2), 300);
    assert_int_equal(page_number(&page, "blocks", 3), 3);
    assert_int_equal(page_number(&page, "bytes", 3), 50);
    leaks(region, EBB_REPORT_TEXT);
    assert_non_null(strstr(page.text, "leaky: 6"));
    assert_non_null(strstr(page.text, "5000 bytes in 1 blocks from "));
    assert_non_null(strstr(page.text, "300 bytes in 3 blocks from "));
    assert_int_equal(page_count(&page, "unknown site"), 0);
    assert_int_equal(page_count(&page, "+0x"), 4);
}

/* Those of C++ are. */
static void long_symbols_are_told_whole(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.name = "leaky", .parent = stage->root, .sites = true);
    char name[4000], expected[sizeof name + 16];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    symbol = name;
    from_here(region, 100);
    snprintf(expected, sizeof expected, "from %s+0x12345\n", name);
    leaks(region, EBB_REPORT_TEXT);
    assert_int_equal(page_count(&page, expected), 1);
    snprintf(expected, sizeof expected, "\"%s+0x12345\"}", name);
    leaks(region, EBB_REPORT_JSON);
    assert_int_equal(page_count(&page, expected), 1);
    symbol = NULL;
}

static void released_blocks_are_no_leaks(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .sites = true);
    void *blocks[40];
    for (size_t i = 0; i < 40; i++)
        blocks[i] = i % 2 ? from_here(region, i * 90) : from_there(region, 100);
    for (size_t i = 1; i < 40; i += 2)
        assert_int_equal(ebb_region_release(region, blocks[i]), 0);
    leaks(region, EBB_REPORT_JSON);
    assert_int_equal(groups(), 1);
    assert_int_equal(page_number(&page, "bytes", 0), 2000);
    for (size_t i = 0; i < 40; i += 2)
        assert_int_equal(ebb_region_release(region, blocks[i]), 0);
    leaks(region, EBB_REPORT_JSON);
    assert_int_equal(groups(), 0);
    assert_int_equal(page_number(&page, "blocks", 0), 0);
}

/* Nobody has looked at what it handed in since. */
static void what_another_thread_released_is_no_leak(void **state) {
    struct stage *stage = *state;
    void *small = from_here(stage->root, 100), *large = from_here(stage->root, 20000);
    from_here(stage->root, 7);
    assert_int_equal(ebb_region_release_remote(stage->root, small), 0);
    assert_int_equal(ebb_region_release_remote(stage->root, large), 0);
    leaks(stage->root, EBB_REPORT_JSON);
    assert_int_equal(groups(), 1);
    assert_int_equal(page_number(&page, "blocks", 0), 1);
    assert_int_equal(page_number(&page, "bytes", 0), 7);
}

static void without_sites_all_blocks_are_one_group(void **state) {
    struct stage *stage = *state;
    from_here(stage->root, 100);
    from_there(stage->root, 5000);
    leaks(stage->root, EBB_REPORT_JSON);
    assert_int_equal(groups(), 1);
    assert_int_equal(page_number(&page, "bytes", 0), 5100);
    assert_int_equal(page_number(&page, "blocks", 1), 2);
    assert_non_null(strstr(page.text, "unknown site"));
}

static void the_sum_over_groups_is_what_is_live(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .sites = true);
    for (size_t i = 0; i < 3000; i++) {
        void *block = i % 3 ? from_here(region, i % 1500) : from_realloc(region, i * 3 % 9000);
        if (i % 4 == 0)
            assert_int_equal(ebb_region_release(region, block), 0);
    }
    struct ebb_region_stats stats = stats_of(region);
    leaks(region, EBB_REPORT_JSON);
    assert_int_equal(sum("blocks", 1, groups()), stats.blocks.current);
    assert_int_equal(sum("bytes", 0, groups()), stats.requested.current);
}

#define SITE_8(region, bytes)                                                                    \
    block_of_site(ebb_region_alloc(region, bytes, 16)),                                          \
        block_of_site(ebb_region_alloc(region, bytes, 16)),                                      \
        block_of_site(ebb_region_alloc(region, bytes, 16)),                                      \
        block_of_site(ebb_region_alloc(region, bytes, 16)),                                      \
        block_of_site(ebb_region_alloc(region, bytes, 16)),                                      \
        block_of_site(ebb_region_alloc(region, bytes, 16)),                                      \
        block_of_site(ebb_region_alloc(region, bytes, 16)),                                      \
        block_of_site(ebb_region_alloc(region, bytes, 16))

static void block_of_site(const void *block) {
    assert_non_null(block);
}

static void sites_beyond_the_32nd_are_summed(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .sites = true);
    block_of_site(ebb_region_alloc(region, 100000, 16)); /* the most, and the one met last */
    SITE_8(region, 10);
    SITE_8(region, 2000), SITE_8(region, 2000), SITE_8(region, 2000), SITE_8(region, 2000);
    leaks(region, EBB_REPORT_JSON);
    assert_int_equal(groups(), 33);
    assert_int_equal(page_number(&page, "bytes", 0), 100000);
    assert_int_equal(page_number(&page, "bytes", 32), 2080); /* all others */
    assert_int_equal(sum("blocks", 1, 33), 41);
    assert_int_equal(sum("bytes", 0, 33), 100000 + 32 * 2000 + 80);
    assert_non_null(strstr(page.text, "all other sites"));
}

/* Where a scope serves malloc(), that would be a block more in the region that is reported. */
static void a_report_of_many_sites_allocates_nothing(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .sites = true);
    SITE_8(region, 10), SITE_8(region, 20), SITE_8(region, 10), SITE_8(region, 30);
    SITE_8(region, 10), SITE_8(region, 20), SITE_8(region, 10), SITE_8(region, 30);
    memset(&page, 0, sizeof page);
    counting = true;
    int result = ebb_report_leaks(region, EBB_REPORT_TEXT, page_write, &page);
    counting = false;
    assert_int_equal(result, 0);
    assert_int_equal(mallocs, 0);
}

static void blocks_relinked_to_the_region_are_reported_wherever_they_lie(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor survivor = survivor_of(block_of(child, 20000, 4096), EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_promote(child, stage->root, &survivor, 1, NULL), 0);
    for (int closed = 0; closed < 2; closed++) {
        leaks(stage->root, EBB_REPORT_JSON);
        assert_int_equal(groups(), 1);
        assert_int_equal(page_number(&page, "bytes", 0), 20000);
        assert_int_equal(page_number(&page, "blocks", 1), 1);
        if (!closed) {
            leaks(child, EBB_REPORT_JSON);
            assert_int_equal(groups(), 0);
            ebb_region_close(child);
        }
    }
}

static void the_report_stops_when_the_callback_says_so(void **state) {
    struct stage *stage = *state;
    from_here(stage->root, 100);
    memset(&page, 0, sizeof page);
    page.stop_at = 2;
    assert_int_equal(ebb_report_leaks(stage->root, EBB_REPORT_JSON, page_write, &page), 77);
    assert_int_equal(page.calls, 2);
}

/* Whoever it was born for. */
static void what_a_step_bore_in_the_region_has_its_site(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.name = "leaky", .parent = stage->root, .sites = true);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct ebb_survivor kept = {.mode = EBB_PROMOTE_COPY};
    void *first = from_here(region, 5000);
    for (int i = 0; i < 3; i++) {
        ebb_step step = ebb_step_begin_under(site, region, 1);
        kept.block = from_here(step.region, 5000);
        if (i == 2)
            assert_int_equal(stats_of(region).blocks.current, 2);
        assert_int_equal(ebb_promote(step.region, region, &kept, 1, NULL), 0);
        assert_int_equal(ebb_step_end(step), 0);
        if (i < 2)
            assert_int_equal(ebb_region_release(region, kept.block), 0);
    }
    leaks(region, EBB_REPORT_JSON);
    assert_int_equal(groups(), 1);
    assert_int_equal(ebb_region_release(region, first), 0);
    assert_int_equal(ebb_region_release(region, kept.block), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A block that is relinked keeps the site that made it, if its region knew it. */
static void the_site_goes_with_a_relinked_block(void **state) {
    struct stage *stage = *state;
    for (int known = 0; known < 2; known++) {
        ebb_region region = OPEN(.parent = stage->root, .sites = true);
        ebb_region child = OPEN(.parent = region, .sites = known != 0);
        void *blocks[2] = {NULL, NULL};
        for (int i = 0; i < 2; i++)
            blocks[i] = from_here(i ? child : region, 20000);
        struct ebb_survivor survivor = survivor_of(blocks[1], EBB_PROMOTE_RELINK);
        assert_int_equal(ebb_promote(child, region, &survivor, 1, NULL), 0);
        assert_ptr_equal(survivor.block, blocks[1]);
        leaks(region, EBB_REPORT_JSON);
        assert_int_equal(groups(), known ? 1 : 2);
        assert_int_equal(ebb_region_close(region), 0);
    }
}

/* Of a step that follows a plan, blocks in the arena are among the others. */
static void planned_blocks_are_counted(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (int i = 0; i < 6; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        void *first = block_of(step.region, 3000, 64), *second = block_of(step.region, 100, 16);
        block_of(step.region, 5000, 64);
        block_of(step.region, 20, 16);
        leaks(step.region, EBB_REPORT_JSON);
        assert_int_equal(groups(), 1);
        assert_int_equal(sum("blocks", 1, 1), 4);
        assert_int_equal(sum("bytes", 0, 1), 8120);
        assert_int_equal(ebb_region_release(step.region, first), 0);
        assert_int_equal(ebb_region_release(step.region, second), 0);
        leaks(step.region, EBB_REPORT_JSON);
        assert_int_equal(sum("blocks", 1, 1), 2);
        assert_int_equal(sum("bytes", 0, 1), 5020);
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_true(stats.hits >= 12);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(every_site_is_a_group_with_its_blocks_and_bytes),
        STAGED(what_a_step_bore_in_the_region_has_its_site),
        STAGED(long_symbols_are_told_whole),
        STAGED(released_blocks_are_no_leaks),
        STAGED(what_another_thread_released_is_no_leak),
        STAGED(without_sites_all_blocks_are_one_group),
        STAGED(the_sum_over_groups_is_what_is_live),
        STAGED(sites_beyond_the_32nd_are_summed),
        STAGED(a_report_of_many_sites_allocates_nothing),
        STAGED(blocks_relinked_to_the_region_are_reported_wherever_they_lie),
        STAGED(the_report_stops_when_the_callback_says_so),
        STAGED(the_site_goes_with_a_relinked_block),
        STAGED(planned_blocks_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
