// SPDX-License-Identifier: Apache-2.0
/*
 * step_odd.c - steps after odd ones: after an update the gradients are gone, so the next step's
 * stay, though it allocates what all others do. What is recorded of such steps, what serves them,
 * and where nobody expects anything of them.
 */
#include "kit/test.h"

#include "step/site.h"

enum { GRADIENTS = 8, BLOCKS = 3 * GRADIENTS, MORE = 10, BYTES = 20000 };

enum sort {
    GATHER, /* gradients are added to those that are there */
    UPDATE, /* and used, and are gone */
    ODD     /* something else; gradients stay as they are */
};

struct loop {
    ebb_site *site;
    ebb_region parent;
    void *batch, *gradients[GRADIENTS]; /* in the parent */
    bool leaves_nothing;
};

static struct loop loop_of(struct stage *stage) {
    struct loop loop = {.parent = stage->root};
    loop.site = ebb_site_create(EBB_SITE_OPTIONS(.name = "odd", .pool = stage->pool));
    assert_non_null(loop.site);
    return loop;
}

static void drop(struct loop *loop, void **block) {
    if (*block)
        assert_int_equal(ebb_region_release(loop->parent, *block), 0);
    *block = NULL;
}

static void add_gradient(struct loop *loop, ebb_step step, unsigned i,
                         struct ebb_survivor *kept) {
    void *gradient = block_of(step.region, BYTES + 64 * i, 64);
    pattern_fill(gradient, BYTES + 64 * i, i);
    if (!loop->gradients[i] && !loop->leaves_nothing)
        *kept = survivor_of(gradient, EBB_PROMOTE_COPY);
    else
        assert_int_equal(ebb_region_release(step.region, gradient), 0);
}

/* The batch for the next step comes first. */
static void take_batch(struct loop *loop, ebb_step step, struct ebb_survivor *kept) {
    void *batch = block_of(step.region, BYTES, 64);
    drop(loop, &loop->batch);
    if (!loop->leaves_nothing)
        *kept = survivor_of(batch, EBB_PROMOTE_COPY);
}

static void take_more(ebb_step step, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(ebb_region_release(step.region, block_of(step.region, BYTES * 3, 64)), 0);
}

static void pass(struct loop *loop, enum sort sort) {
    ebb_step step = ebb_step_begin_under(loop->site, loop->parent, 0);
    struct ebb_survivor kept[1 + GRADIENTS] = {{.block = NULL}}, list[1 + GRADIENTS];
    void *forward[BLOCKS];
    unsigned count = 0, from[1 + GRADIENTS];
    take_batch(loop, step, &kept[0]);
    block_of(step.region, 48, 16); /* so two records that differ are not enough */
    for (unsigned i = 0; i < BLOCKS; i++)
        forward[i] = block_of(step.region, BYTES, 64);
    for (unsigned i = 0; i < GRADIENTS && sort != ODD; i++) {
        assert_int_equal(ebb_region_release(step.region, forward[i]), 0);
        add_gradient(loop, step, i, &kept[1 + i]);
    }
    if (sort == UPDATE)
        for (unsigned i = 0; i < GRADIENTS; i++)
            drop(loop, &loop->gradients[i]);
    take_more(step, sort == GATHER ? 0 : MORE);
    for (unsigned i = 0; i <= GRADIENTS; i++)
        if (kept[i].block) {
            from[count] = i;
            list[count++] = kept[i];
        }
    assert_int_equal(ebb_step_end_keeping(step, loop->parent, list, count, NULL, NULL), 0);
    for (unsigned i = 0; i < count; i++)
        *(from[i] ? &loop->gradients[from[i] - 1] : &loop->batch) = list[i].block;
    for (unsigned i = 0; i < GRADIENTS; i++)
        assert_true(!loop->gradients[i] || pattern_holds(loop->gradients[i], BYTES + 64 * i, i));
}

/* Three that gather, one that updates. */
static void pass_row(struct loop *loop) {
    for (unsigned i = 0; i < 4; i++)
        pass(loop, i == 3 ? UPDATE : GATHER);
}

static uint64_t recorded_in(struct loop *loop, enum sort sort) {
    uint64_t before = site_stats(loop->site).recorded_steps;
    pass(loop, sort);
    return site_stats(loop->site).recorded_steps - before;
}

static uint64_t missed_in(struct loop *loop, enum sort sort) {
    uint64_t before = site_stats(loop->site).missed;
    pass(loop, sort);
    return site_stats(loop->site).missed - before;
}

static void end(struct loop *loop) {
    drop(loop, &loop->batch);
    for (unsigned i = 0; i < GRADIENTS; i++)
        drop(loop, &loop->gradients[i]);
    assert_int_equal(ebb_site_destroy(loop->site), 0);
    assert_int_equal(stats_of(loop->parent).blocks.current, 0);
}

/* ---- a plan of its own ---- */

/* The plan of the others would serve it badly. */
static void what_comes_after_odd_steps_is_recorded_and_planned(void **state) {
    struct loop loop = loop_of(*state);
    pass_row(&loop);
    for (unsigned row = 0; row < 2; row++) {
        assert_int_equal(recorded_in(&loop, GATHER), 1);
        assert_int_equal(recorded_in(&loop, GATHER), 0);
        assert_int_equal(missed_in(&loop, GATHER), 0);
        assert_int_equal(recorded_in(&loop, UPDATE), 0);
    }
    assert_int_equal(missed_in(&loop, GATHER), 0);
    end(&loop);
}

/* Of the row only the updates have to be recorded. */
static void the_kind_that_it_turns_out_to_be_goes_on_with_its_plan(void **state) {
    struct loop loop = loop_of(*state);
    while (!site_stats(loop.site).row_steps)
        pass_row(&loop);
    assert_int_equal(site_stats(loop.site).row_steps, 4);
    struct ebb_site_stats before = site_stats(loop.site);
    for (unsigned row = 0; row < 10; row++)
        pass_row(&loop);
    struct ebb_site_stats after = site_stats(loop.site);
    assert_int_equal(after.recorded_steps - before.recorded_steps, 1);
    assert_int_equal(after.missed - before.missed, 0);
    end(&loop);
}

/* ---- and where it needs none ---- */

static void pass_all(struct loop *loop, unsigned steps) {
    for (unsigned i = 0; i < steps; i++)
        pass(loop, GATHER);
}

static void where_it_is_as_the_others_it_is_recorded_once(void **state) {
    static const unsigned gaps[] = {3, 6, 2, 7, 4, 5};
    struct loop loop = loop_of(*state);
    pass_all(&loop, 4);
    pass(&loop, ODD);
    assert_int_equal(recorded_in(&loop, GATHER), 1);
    uint64_t recorded = site_stats(loop.site).recorded_steps;
    pass(&loop, ODD); /* no second one in a row */
    pass(&loop, GATHER);
    for (unsigned i = 0; i < 6; i++) {
        pass(&loop, ODD);
        pass_all(&loop, gaps[i]);
    }
    assert_int_equal(site_stats(loop.site).recorded_steps, recorded);
    end(&loop);
}

static void after_a_plan_has_proven_itself_nothing_is_expected(void **state) {
    struct loop loop = loop_of(*state);
    pass_all(&loop, 24);
    pass(&loop, ODD);
    assert_int_equal(recorded_in(&loop, GATHER), 0);
    assert_int_equal(missed_in(&loop, GATHER), 0);
    end(&loop);
}

static void nor_of_steps_that_leave_nothing_behind(void **state) {
    struct loop loop = loop_of(*state);
    loop.leaves_nothing = true;
    pass_all(&loop, 4);
    pass(&loop, ODD);
    assert_int_equal(recorded_in(&loop, GATHER), 0);
    assert_int_equal(missed_in(&loop, GATHER), 0);
    end(&loop);
}

/* ---- a row is found ---- */

static enum sort sort_of(unsigned step) {
    return step % 4 == 3 ? UPDATE : GATHER;
}

/* The last of so many steps shows it. */
static unsigned steps_to_a_row(struct stage *stage) {
    struct loop loop = loop_of(stage);
    unsigned steps = 0;
    while (!site_stats(loop.site).row_steps)
        pass(&loop, sort_of(steps++));
    end(&loop);
    return steps;
}

/* The step that shows the row suspends it. The kinds that it served have one step recorded. */
static void a_plan_that_is_suspended_goes_to_no_kind(void **state) {
    unsigned steps = steps_to_a_row(*state);
    struct loop loop = loop_of(*state);
    for (unsigned i = 0; i < steps; i++) {
        if (i == steps - 1)
            loop.site->courses[0].learning.long_ppm = 0;
        pass(&loop, sort_of(i));
    }
    assert_int_equal(site_stats(loop.site).row_steps, 4);
    for (unsigned i = 0; i < loop.site->course_count; i++)
        assert_true(!loop.site->courses[i].plan || loop.site->courses[i].learning.planned);
    pass(&loop, GATHER);
    assert_int_equal(recorded_in(&loop, GATHER), 1);
    assert_int_equal(missed_in(&loop, GATHER), 0);
    end(&loop);
}

static struct course *kind_of(struct loop *loop, uint32_t count, uint32_t before) {
    struct course *course = loop->site->courses;
    while (course->kind.count != count || course->kind.before != before)
        course++;
    return course;
}

/* As if a thread were at work for it since the row was lost, while the others find it again. */
static void nor_does_a_plan_go_to_a_kind_that_one_is_made_for(void **state) {
    struct loop loop = loop_of(*state);
    unsigned steps = 0, each = BLOCKS + GRADIENTS + 2;
    while (!site_stats(loop.site).row_steps)
        pass(&loop, sort_of(steps++));
    struct course *kind = kind_of(&loop, each, each);
    assert_non_null(kind->plan);
    rhythm_start(loop.site->courses[0].rhythm);
    course_end(kind);
    kind->planning = true;
    while (!site_stats(loop.site).row_steps)
        pass(&loop, sort_of(steps++));
    assert_null(kind->plan);
    kind->planning = false;
    end(&loop);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(what_comes_after_odd_steps_is_recorded_and_planned),
        STAGED(the_kind_that_it_turns_out_to_be_goes_on_with_its_plan),
        STAGED(where_it_is_as_the_others_it_is_recorded_once),
        STAGED(after_a_plan_has_proven_itself_nothing_is_expected),
        STAGED(nor_of_steps_that_leave_nothing_behind),
        STAGED(a_plan_that_is_suspended_goes_to_no_kind),
        STAGED(nor_does_a_plan_go_to_a_kind_that_one_is_made_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
