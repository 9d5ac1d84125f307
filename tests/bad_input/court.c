// SPDX-License-Identifier: Apache-2.0
/* court.c - see court.h. */
#include "bad_input/court.h"

#include <stdlib.h>

static void open_regions(struct court *court) {
    court->root = OPEN(.name = "root", .pool = court->pool);
    court->child = OPEN(.name = "child", .parent = court->root);
    court->sealed = OPEN(.name = "sealed", .parent = court->root, .sealed = true);
    court->limited = OPEN(.name = "limited", .pool = court->limited_pool, .limit_bytes = 4096);
    court->elsewhere = OPEN(.name = "elsewhere", .pool = court->other_pool);
    court->measuring = OPEN(.name = "measuring", .measure = true);
}

static void make_blocks(struct court *court) {
    court->small = block_of(court->child, 100, 16);
    court->gone_small = block_of(court->child, 100, 16);
    block_of(court->child, 48, 16);
    court->large = block_of(court->child, 5000, 64);
    court->gone_large = block_of(court->child, 20000, 64);
    court->gone_window = block_of(court->child, 3000, 64);
    block_of(court->child, 5000, 64);
    court->root_large = block_of(court->root, 9000, 64);
    court->foreign = block_of(court->elsewhere, 5000, 64);
    court->phantom = ebb_region_alloc(court->measuring, 5000, 64);
    assert_int_equal(ebb_region_release(court->child, court->gone_small), 0);
    assert_int_equal(ebb_region_release(court->child, court->gone_large), 0);
    assert_int_equal(ebb_region_release(court->child, court->gone_window), 0);
}

int court_open(void **state) {
    struct court *court = calloc(1, sizeof *court);
    if (!court)
        return -1;
    court->pool = POOL(.name = "court");
    court->other_pool = POOL(.name = "other");
    court->limited_pool = POOL(.name = "limited pool", .limit_used_bytes = 6000);
    open_regions(court);
    ebb_region closed = OPEN(.name = "closed", .parent = court->root);
    block_of(closed, 100, 16);
    block_of(closed, 50000, 64);
    assert_int_equal(ebb_region_close(closed), 0);
    court->closed = closed;
    make_blocks(court);
    court_note(court);
    *state = court;
    return 0;
}

int court_close(void **state) {
    struct court *court = *state;
    ebb_region_close(court->root);
    ebb_region_close(court->limited);
    ebb_region_close(court->elsewhere);
    ebb_region_close(court->measuring);
    pool_end(court->pool);
    pool_end(court->other_pool);
    pool_end(court->limited_pool);
    free(court);
    return 0;
}

void court_note(struct court *court) {
    const ebb_region regions[COURT_REGIONS] = {court->root,    court->child,     court->sealed,
                                               court->limited, court->elsewhere, court->measuring};
    ebb_pool *const pools[COURT_POOLS] = {court->pool, court->other_pool, court->limited_pool};
    for (int i = 0; i < COURT_REGIONS; i++)
        court->regions[i] = stats_of(regions[i]);
    for (int i = 0; i < COURT_POOLS; i++)
        court->pools[i] = pool_stats_of(pools[i]);
}

static void assert_nothing_changed(struct court *court) {
    struct court before = *court;
    court_note(court);
    assert_memory_equal(before.regions, court->regions, sizeof before.regions);
    assert_memory_equal(before.pools, court->pools, sizeof before.pools);
    assert_true(pattern_holds(court->small, 100, 100));
    assert_true(pattern_holds(court->large, 5000, 5000));
    assert_true(pattern_holds(court->root_large, 9000, 9000));
    assert_true(pattern_holds(court->foreign, 5000, 5000));
    ebb_check_pool(court->pool);
}

void court_refused(struct court *court, int result, int code, ...) {
    va_list parts;
    assert_refused(result, code);
    va_start(parts, code);
    for (const char *part; (part = va_arg(parts, const char *));)
        assert_text_names(part);
    va_end(parts);
    assert_nothing_changed(court);
}

void court_refused_block(struct court *court, const void *block, int code, const char *part) {
    assert_null(block);
    court_refused(court, ebb_last_error(), code, part, NULL);
}
