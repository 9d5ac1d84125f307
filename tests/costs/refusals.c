// SPDX-License-Identifier: Apache-2.0
/*
 * refusals.c - a step with a plan tries for what no gap of it has room for, under a limit on pages,
 * for test_costs.py: as often as it has blocks. Called `full`, all of these are alive, or `gaps`,
 * each second one.
 */
#include "kit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)16384)

__attribute__((noinline)) static void counted_tries(ebb_region region, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_null(ebb_region_alloc(region, 64 * BYTES, 64));
}

/* Takes all, releases each `every`th, or none, and then tries. */
static void play(ebb_step step, void **blocks, size_t count, size_t every, size_t tries) {
    for (size_t i = 0; i < count; i++) {
        blocks[i] = ebb_region_alloc(step.region, BYTES, 64);
        assert_non_null(blocks[i]);
    }
    for (size_t i = 0; every && i < count; i += every)
        assert_int_equal(ebb_region_release(step.region, blocks[i]), 0);
    counted_tries(step.region, tries);
    for (size_t i = 0; i < count; i++)
        if (!every || i % every)
            assert_int_equal(ebb_region_release(step.region, blocks[i]), 0);
    assert_int_equal(ebb_step_end(step), 0);
}

int main(int argc, char **argv) {
    size_t count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    size_t every = count && !strcmp(argv[1], "gaps") ? 2 : 0;
    if (!every && (!count || strcmp(argv[1], "full") != 0)) {
        fputs("usage: refusals full|gaps COUNT\n", stderr);
        return 2;
    }
    void **blocks = calloc(count, sizeof *blocks);
    assert_non_null(blocks);
    ebb_pool *pool = POOL(.name = "tight", .limit_reserved_bytes = (count + 48) * BYTES);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < 5; i++)
        play(ebb_step_begin(site, 0), blocks, count, every, 0);
    uint64_t hits = site_stats(site).hits;
    play(ebb_step_begin(site, 0), blocks, count, every, count);
    assert_int_equal(site_stats(site).hits, hits + count);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
    free(blocks);
    return 0;
}
