// SPDX-License-Identifier: Apache-2.0
/* plans.c - what the ends of steps cost that are learnt from, for test_costs.py. */
#include "cases.h"

#include "step/merge.h"

#include <stdlib.h>

#define BYTES ((size_t)4096)

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

int main(int argc, char **argv) {
    static const struct costs_case cases[] = {
        {"merge_too_much", merge_too_much},
    };
    return play_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
