// SPDX-License-Identifier: Apache-2.0
/* plans.c - what the ends of steps cost that are learnt from, for test_costs.py. */
#include "cases.h"

#include "step/merge.h"

#include <stdlib.h>

#define BYTES ((size_t)4096)

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

int main(int argc, char **argv) {
    static const struct costs_case cases[] = {
        {"merge_too_much", merge_too_much},
        {"plan_guesses", plan_guesses},
    };
    return play_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
