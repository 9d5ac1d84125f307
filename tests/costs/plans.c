// SPDX-License-Identifier: Apache-2.0
/* plans.c - what the ends of steps cost that are learnt from, and steps that ask for little of what
 * was learnt, for test_costs.py. */
#include "cases.h"

#include "step/merge.h"

#include <stdlib.h>

#define BYTES ((size_t)4096)

enum { FEW = 10 };

/* ---- merging ---- */

/* All stay, and each second key is the draft's own. */
static struct draft *draft_with(uint32_t own, size_t count) {
    struct record_entry *record = calloc(count, sizeof *record);
    assert_non_null(record);
    for (uint32_t i = 0; i < count; i++)
        record[i] = (struct record_entry){.bytes = BYTES, .rank = PLAN_NEVER, .align_log2 = 6,
                                          .key = 1 + i + (i & 1 ? own : 0)};
    struct draft *draft = draft_from_record(record, (uint32_t)count,
                                            draft_hash(record, (uint32_t)count), NULL,
                                            DRAFT_TENURE_NONE);
    assert_non_null(draft);
    free(record);
    return draft;
}

static void merge_too_much(size_t count) {
    struct draft *one = draft_with(1u << 20, count), *other = draft_with(1u << 21, count);
    assert_null(draft_merge(one, other, UINT32_MAX, count * BYTES / 8 * 9));
    draft_drop(one);
    draft_drop(other);
}

/* ---- guesses ---- */

/* Blocks of sizes that leave gaps wherever they lie; each step has other ones of 8 by 8. */
static void play_step(ebb_site *site, size_t count, unsigned turn) {
    void *alive[40] = {NULL};
    ebb_step step = ebb_step_begin(site, 0);
    for (size_t i = 0, came = 0; i < count; i++) {
        if (i / 8 % 5 == turn % 5)
            continue;
        void **at = &alive[came++ % 40];
        assert_int_equal(ebb_region_release(step.region, *at), 0);
        *at = ebb_step_alloc(step, 512 + i * 37 % 64 * 64, 64, 1 + (uint32_t)i);
        assert_non_null(*at);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

static void plan_guesses(size_t count) {
    ebb_site *site = ebb_site_create(NULL);
    for (unsigned turn = 0; turn < 3; turn++)
        play_step(site, count, turn);
    assert_int_equal(site_stats(site).plans, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- a step that asks for few of a plan's blocks */

/* Those with the keys from `first` on, but the first `shift` of them come last. The first of each
 * pair leaves when the second has come. */
static void take_keys(ebb_site *site, uint32_t first, uint32_t count, uint32_t shift) {
    void *blocks[2];
    ebb_step step = ebb_step_begin(site, 0);
    for (uint32_t i = 0; i < count; i++) {
        blocks[i % 2] = ebb_step_alloc(step, BYTES, 64, first + (shift + i) % count);
        assert_non_null(blocks[i % 2]);
        if (i % 2)
            assert_int_equal(ebb_region_release(step.region, blocks[0]), 0);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

static __attribute__((noinline)) void counted_few(ebb_site *site, uint32_t first, uint32_t shift) {
    take_keys(site, first, FEW, shift);
}

/* The last ones of all, in their order, or each time in another one. */
static void take_few(size_t count, uint32_t shift) {
    uint32_t first = (uint32_t)count - FEW + 1;
    ebb_site *site = ebb_site_create(NULL);
    for (unsigned turn = 0; turn < 3; turn++)
        take_keys(site, 1, (uint32_t)count, 0);
    for (unsigned turn = 1; turn < 4; turn++) { /* the first time takes memory */
        take_keys(site, first, FEW, shift * turn);
        take_keys(site, 1, (uint32_t)count, 0);
    }
    uint64_t hits = site_stats(site).hits;
    counted_few(site, first, shift * 4);
    assert_int_equal(site_stats(site).hits - hits, FEW);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void few_in_order(size_t count) {
    take_few(count, 0);
}

static void few_that_wander(size_t count) {
    take_few(count, 2);
}

/* ---- one place for many, of which the first is still there ---- */

/* All but the last block of the place leave before the next one comes; or only the first one
 * comes. Then one comes that stays, and has a place of its own. */
static ebb_step take_turns(ebb_site *site, uint32_t count, void **last) {
    ebb_step step = ebb_step_begin(site, 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(ebb_region_release(step.region, *last), 0);
        *last = ebb_step_alloc(step, 2 * BYTES, 64, 2 + i);
        assert_non_null(*last);
    }
    assert_non_null(ebb_step_alloc(step, BYTES, 64, 1));
    return step;
}

static __attribute__((noinline)) void counted_finds(ebb_region region, void *block, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ebb_region_block_bytes(region, block), 2 * BYTES);
}

static void find_before_many(size_t count) {
    ebb_site *site = ebb_site_create(NULL);
    for (unsigned turn = 0; turn < 3; turn++) {
        void *last = NULL;
        ebb_step step = take_turns(site, (uint32_t)count, &last);
        assert_int_equal(ebb_region_release(step.region, last), 0);
        assert_int_equal(ebb_step_end(step), 0);
    }
    uint64_t hits = site_stats(site).hits;
    void *first = NULL;
    ebb_step step = take_turns(site, 1, &first);
    counted_finds(step.region, first, count);
    assert_int_equal(ebb_region_release(step.region, first), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).hits - hits, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(int argc, char **argv) {
    static const struct costs_case cases[] = {
        {"merge_too_much", merge_too_much},
        {"plan_guesses", plan_guesses},
        {"few_in_order", few_in_order},
        {"few_that_wander", few_that_wander},
        {"find_before_many", find_before_many},
    };
    return play_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
