// SPDX-License-Identifier: Apache-2.0
/*
 * step_in_vain.c - steps that cannot begin: their site is as if nobody had tried.
 */
#include "kit/passes.h"
#include "kit/text.h"

#include "step/site.h"

/* Their parent is gone. */
static void steps_that_cannot_begin_take_no_tags(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    ebb_region gone = OPEN(.pool = stage->pool);
    assert_int_equal(ebb_region_close(gone), 0);
    take_loose_step(site, 7, 1);
    const struct course *newest = site->newest;
    for (uint64_t tag = 0; tag < 2 * SITE_TAGS; tag++) {
        assert_false(ebb_region_is_open(ebb_step_begin_under(site, gone, tag).region));
        assert_int_equal(ebb_last_error(), EBB_E_STALE);
        assert_int_equal(site->course_count, 1);
        assert_ptr_equal(site->newest, newest);
    }
    assert_int_equal(newest->rhythm->begun, 1);
    for (uint64_t tag = 0; tag < SITE_TAGS; tag++)
        take_loose_step(site, tag, 1);
    assert_int_equal(site->course_count, SITE_TAGS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Several begin before the first of them turns out not to, in whatever order. */
static void steps_that_cannot_begin_at_the_same_time_take_no_tags(void **state) {
    enum { STEPS = 3 };
    static const uint64_t tags[][STEPS] = {{1, 1, 1}, {1, 2, 1}, {2, 1, 1}};
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    take_loose_step(site, 7, 1);
    const struct course *newest = site->newest;
    for (unsigned round = 0; round < 2 * STEPS; round++) {
        struct ticket tickets[STEPS];
        for (unsigned i = 0; i < STEPS; i++)
            assert_true(lane_take(site, NULL, tags[round / 2][i], &tickets[i]));
        for (unsigned i = 0; i < STEPS; i++) {
            const struct ticket *ticket = &tickets[round % 2 ? STEPS - 1 - i : i];
            plan_drop(ticket->own);
            lane_return(ticket);
        }
        assert_int_equal(site->course_count, 1);
        assert_ptr_equal(site->newest, newest);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Which another thread, or a cleanup, begins: another new tag each time. */
static void steps_that_cannot_begin_take_no_tags_while_others_do(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (uint64_t tag = 0; tag < SITE_TAGS - 1; tag++) { /* the last would find all taken */
        struct ticket ticket;
        assert_true(lane_take(site, NULL, SITE_TAGS + tag, &ticket));
        take_loose_step(site, tag, 1);
        plan_drop(ticket.own);
        lane_return(&ticket);
    }
    take_loose_step(site, SITE_TAGS - 1, 1);
    assert_int_equal(site->course_count, SITE_TAGS);
    for (uint64_t tag = 0; tag < SITE_TAGS; tag++) {
        ebb_step step = ebb_step_begin(site, tag);
        const struct course *course = ((const struct lane *)step.lane)->course;
        assert_non_null(course);
        assert_int_equal(course->tag, tag);
        assert_int_equal(course->steps, 2);
        assert_int_equal(course->rhythm->begun, 2);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Not even as tag 0, whose last step began before any had ended. */
static void a_step_that_cannot_begin_has_no_plan_to_report(void **state) {
    static struct page page;
    struct stage *stage = *state;
    struct ticket ticket;
    page = (struct page){.length = 0};
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    ebb_step steps[3] = {ebb_step_begin(site, 0), ebb_step_begin(site, 0)};
    assert_true(lane_take(site, NULL, 1, &ticket));
    steps[2] = ebb_step_begin(site, 2);
    plan_drop(ticket.own);
    lane_return(&ticket);
    for (unsigned i = 0; i < 3; i++) {
        block_of(steps[i].region, 5000, 64);
        assert_int_equal(ebb_step_end(steps[i]), 0);
    }
    assert_non_null(site->courses[0].plan);
    assert_int_equal(ebb_report_plan(site, 0, page_write, &page), 0);
    assert_int_equal(page_count(&page, "[\"placed\",0,5056,"), 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Of the older tag, while no other step is open, or one is. */
static void steps_that_cannot_begin_make_no_tag_the_newest(void **state) {
    struct stage *stage = *state;
    ebb_region gone = OPEN(.pool = stage->pool);
    assert_int_equal(ebb_region_close(gone), 0);
    for (unsigned open = 0; open < 2; open++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        for (unsigned i = 0; i < 32; i++) /* the older one comes in rows */
            take_loose_step(site, i / 28, i < 28 && i % 3 ? 40 : 0);
        const struct course *older = site->courses, *newest = site->newest;
        assert_true(older->rhythm->period && newest->plan && older->plan != newest->plan);
        ebb_step other = open ? ebb_step_begin(site, 1) : (ebb_step){.lane = NULL};
        uint64_t used = older->used, begun = site->begun;
        struct ebb_site_stats before = site_stats(site);
        assert_false(ebb_region_is_open(ebb_step_begin_under(site, gone, 0).region));
        assert_int_equal(ebb_last_error(), EBB_E_STALE);
        struct ebb_site_stats after = site_stats(site);
        assert_memory_equal(&after, &before, sizeof after);
        assert_ptr_equal(site->newest, newest);
        assert_int_equal(older->used, used);
        assert_int_equal(site->crowded, 0);
        assert_int_equal(site->begun, begun); /* whatever met another is as long ago as it was */
        if (!open)
            other = ebb_step_begin(site, 2);
        assert_ptr_equal(site->newest->plan, newest->plan);
        assert_int_equal(ebb_step_end(other), 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* The older tag's, in whatever order they turn out not to begin; those of the second half met one
 * that goes on. */
static void steps_that_cannot_begin_at_the_same_time_make_no_tag_the_newest(void **state) {
    enum { STEPS = 3, ORDERS = 6 };
    static const unsigned orders[ORDERS][STEPS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct stage *stage = *state;
    for (unsigned round = 0; round < 2 * ORDERS; round++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        take_loose_step(site, 1, 1);
        take_loose_step(site, 2, 1);
        const struct course *older = site->courses, *newest = site->newest;
        uint64_t used = older->used, began = older->began;
        ebb_step other = round < ORDERS ? (ebb_step){.lane = NULL} : ebb_step_begin(site, 2);
        struct ticket tickets[STEPS];
        for (unsigned i = 0; i < STEPS; i++)
            assert_true(lane_take(site, NULL, 1, &tickets[i]));
        for (unsigned i = 0; i < STEPS; i++) {
            const struct ticket *ticket = &tickets[orders[round % ORDERS][i]];
            plan_drop(ticket->own);
            lane_return(ticket);
        }
        assert_ptr_equal(site->newest, newest);
        assert_int_equal(older->used, used);
        assert_int_equal(older->began, began);
        assert_int_equal(site->crowded, 0);
        if (other.lane)
            assert_int_equal(ebb_step_end(other), 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* It ended while a thread took pages of its pool, too. */
static void end_met(ebb_step step) {
    ((struct region *)step.region.lane)->track->kept.meetings--;
    block_of(step.region, 50000, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

/* Two of them, in whatever order: with one that ends meanwhile they have nothing to do. */
static void what_ends_while_others_cannot_begin_has_met_whom_it_met(void **state) {
    enum { WARM = 3, STEPS = 2 };
    struct stage *stage = *state;
    for (unsigned round = 0; round < 2 * STEPS; round++) {
        bool met = round >= STEPS;
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        for (unsigned i = 0; i < WARM; i++)
            take_loose_step(site, 1, 0);
        ebb_step step = ebb_step_begin(site, 1);
        block_of(step.region, 30000, 64);
        struct ticket tickets[STEPS];
        assert_true(lane_take(site, NULL, 1, &tickets[0]));
        if (met)
            end_met(step);
        assert_true(lane_take(site, NULL, 1, &tickets[1]));
        for (unsigned i = 0; i < STEPS; i++) {
            const struct ticket *ticket = &tickets[round % 2 ? STEPS - 1 - i : i];
            plan_drop(ticket->own);
            lane_return(ticket);
        }
        assert_int_equal(course_is_alone(site), !met);
        if (!met)
            assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(steps_that_cannot_begin_take_no_tags),
        STAGED(steps_that_cannot_begin_at_the_same_time_take_no_tags),
        STAGED(steps_that_cannot_begin_take_no_tags_while_others_do),
        STAGED(a_step_that_cannot_begin_has_no_plan_to_report),
        STAGED(steps_that_cannot_begin_make_no_tag_the_newest),
        STAGED(steps_that_cannot_begin_at_the_same_time_make_no_tag_the_newest),
        STAGED(what_ends_while_others_cannot_begin_has_met_whom_it_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
