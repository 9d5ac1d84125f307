// SPDX-License-Identifier: Apache-2.0
/*
 * broken_plans.c - what would let live blocks overlap ends the process, in every build: places that
 * are none, of a planner that made a mistake (the linker has put a function of ours in its place),
 * and a slot that was served before, or is in use. Of those that were in use none is any more where
 * the numbers of steps begin anew.
 */
#include "kit/ends.h"
#include "kit/tables.h"

#include "plan/packing.h"

int __real_packing_solve(const struct packing_buffer *buffers, uint32_t count,
                         const struct packing_effort *effort, void *workspace, uint64_t *offsets,
                         struct packing_result *result);
int __wrap_packing_solve(const struct packing_buffer *buffers, uint32_t count,
                         const struct packing_effort *effort, void *workspace, uint64_t *offsets,
                         struct packing_result *result);

enum { BYTES = 5000, LEARNING = 2 };

static bool mistaken;

int __wrap_packing_solve(const struct packing_buffer *buffers, uint32_t count,
                         const struct packing_effort *effort, void *workspace, uint64_t *offsets,
                         struct packing_result *result) {
    int error = __real_packing_solve(buffers, count, effort, workspace, offsets, result);
    if (mistaken)
        offsets[1] = offsets[0];
    return error;
}

/* Two blocks, both to its end. */
static ebb_step begin(ebb_site *site) {
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < 2; i++)
        block_of(step.region, BYTES, 64);
    return step;
}

static void end_mistaken(void *step) {
    mistaken = true;
    ebb_step_end(*(ebb_step *)step);
}

/* At the slow way, since the alignment is another. */
static void ask(void *step) {
    (void)!ebb_region_alloc(((ebb_step *)step)->region, BYTES, 32);
}

/* Behind the first block of a step that is served. */
static void ask_served(void *step) {
    track_of(*(ebb_step *)step)->served_to = 2;
    ask(step);
}

static void ask_live(void *step) {
    struct track *track = track_of(*(ebb_step *)step);
    track->slots[1].mark = track->epoch;
    ask(step);
}

static void assert_broken(void (*act)(void *), ebb_step step, const char *invariant) {
    char said[300];
    assert_int_equal(signal_of(act, &step, said, sizeof said), SIGABRT);
    assert_non_null(strstr(said, invariant));
}

static void no_plan_with_blocks_that_overlap_is_published(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    assert_int_equal(ebb_step_end(begin(site)), 0);
    ebb_step step = begin(site);
    assert_broken(end_mistaken, step, "packing_is_valid(");
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).plans, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void no_slot_is_served_twice(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < LEARNING; i++)
        assert_int_equal(ebb_step_end(begin(site)), 0);
    ebb_step step = ebb_step_begin(site, 0);
    block_of(step.region, BYTES, 64);
    assert_broken(ask_served, step, "id >= track->served_to");
    assert_broken(ask_live, step, "!track_is_live(track, slot)");
    ask(&step);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).hits, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Both blocks are there when the first step with number 1 ends. */
static void numbers_of_steps_may_begin_anew(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < LEARNING; i++)
        assert_int_equal(ebb_step_end(begin(site)), 0);
    ebb_step step = begin(site);
    struct track *track = track_of(step);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ebb_step_end(step), 0);
        track->epoch = UINT32_MAX;
        step = ebb_step_begin(site, 0);
        assert_true(track_of(step) == track && track->epoch == TRACK_EPOCH);
        ask(&step);
        ask(&step);
    }
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).hits, 6);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(no_plan_with_blocks_that_overlap_is_published),
        STAGED(no_slot_is_served_twice),
        STAGED(numbers_of_steps_may_begin_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
