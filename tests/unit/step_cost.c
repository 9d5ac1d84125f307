// SPDX-License-Identifier: Apache-2.0
/*
 * step_cost.c - what the end of a step has pinned is known before the program hears of the excess:
 * its cost is of that end alone, whatever the program does then.
 */
#include "kit/test.h"

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

enum { ROOM = 5056 }; /* of a block of 5000 bytes: two pages pin the rest */

struct program {
    ebb_region target;
    struct ebb_promoted *cost; /* of the end that it hears of */
    uint64_t seen;             /* pinned bytes of it by then */
    struct ebb_survivor older; /* of the target, or of `other` */
    ebb_region other;
    unsigned heard;
};

static void hear(struct program *program) {
    program->seen = program->cost->pinned_bytes;
    program->heard++;
}

static void promote_more(void *context, const struct ebb_churn_excess *excess) {
    (void)excess;
    struct program *program = context;
    hear(program);
    assert_int_equal(ebb_close_keeping(program->other, program->target, &program->older, 1, NULL,
                                       NULL), 0);
    assert_int_equal(program->older.mode, EBB_PROMOTE_RELINK);
}

static void release_older(void *context, const struct ebb_churn_excess *excess) {
    (void)excess;
    struct program *program = context;
    hear(program);
    assert_int_equal(ebb_region_release(program->target, program->older.block), 0);
}

static void close_target(void *context, const struct ebb_churn_excess *excess) {
    (void)excess;
    struct program *program = context;
    hear(program);
    assert_int_equal(ebb_region_close(program->target), 0);
}

static void expect_own_cost(struct stage *stage, struct program *program,
                            void (*on_excess)(void *, const struct ebb_churn_excess *)) {
    struct ebb_promoted cost = {0};
    program->cost = &cost;
    ebb_site *site = SITE(.pool = stage->pool, .unplanned = true, .on_excess = on_excess,
                          .context = program, .budget = {.allocations = 1});
    ebb_step step = ebb_step_begin_under(site, program->target, 0);
    block_of(step.region, 2000, 64);
    struct ebb_survivor kept = survivor_of(block_of(step.region, 5000, 64), EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_step_end_keeping(step, program->target, &kept, 1, &cost, NULL), 0);
    assert_int_equal(kept.mode, EBB_PROMOTE_RELINK);
    assert_int_equal(program->heard, 1);
    assert_int_equal(cost.pinned_bytes, 2 * PAGE - ROOM);
    assert_int_equal(program->seen, cost.pinned_bytes);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void what_the_program_promotes_then_is_not_of_the_end(void **state) {
    struct stage *stage = *state;
    struct program program = {.target = stage->root, .other = OPEN(.parent = stage->root)};
    program.older = survivor_of(block_of(program.other, 5000, 64), EBB_PROMOTE_RELINK);
    expect_own_cost(stage, &program, promote_more);
    assert_int_equal(stats_of(stage->root).pinned, 2 * (2 * PAGE - ROOM));
}

static void nor_is_what_it_releases(void **state) {
    struct stage *stage = *state;
    struct program program = {.target = stage->root};
    ebb_region before = OPEN(.parent = stage->root);
    program.older = survivor_of(block_of(before, 5000, 64), EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(before, stage->root, &program.older, 1, NULL, NULL), 0);
    expect_own_cost(stage, &program, release_older);
}

static void the_target_may_end_then(void **state) {
    struct stage *stage = *state;
    struct program program = {.target = OPEN(.parent = stage->root)};
    expect_own_cost(stage, &program, close_target);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(what_the_program_promotes_then_is_not_of_the_end),
        STAGED(nor_is_what_it_releases),
        STAGED(the_target_may_end_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
