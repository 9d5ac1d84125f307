// SPDX-License-Identifier: Apache-2.0
/*
 * step_rows.c - steps of one tag that come in rows: gradients that are gathered over several steps
 * and used in one, two networks that take turns, evaluation now and then. Each sort of step gets a
 * plan of its own, and whatever comes in the midst of a row, blocks keep their bytes.
 */
#include "kit/test.h"

#include "region/plan.h"

enum { MOST = 90, KEPT = 3, GATHER = 40, UPDATE = 64 };

struct course {
    ebb_site *site;
    ebb_region parent;
    void *kept[KEPT]; /* gradients: in the parent, from the first step of a row to its last */
    unsigned steps;
};

static struct course course_of(struct stage *stage) {
    struct course course = {.parent = stage->root};
    course.site = ebb_site_create(EBB_SITE_OPTIONS(.name = "rows", .pool = stage->pool));
    assert_non_null(course.site);
    return course;
}

/* Structure depends on the number of blocks as well as sizes do. */
static size_t size_of(unsigned blocks, unsigned i) {
    return 200 + (i * 7 + blocks) % 11 * 700;
}

static void fill_step(ebb_step step, unsigned blocks, void **live) {
    for (unsigned i = 0; i < blocks; i++) {
        live[i] = block_of(step.region, size_of(blocks, i), 64);
        pattern_fill(live[i], size_of(blocks, i), i + blocks);
        unsigned back = 5 + blocks % 4;
        if (i < back || i % 3)
            continue;
        assert_true(pattern_holds(live[i - back], size_of(blocks, i - back), i - back + blocks));
        assert_int_equal(ebb_region_release(step.region, live[i - back]), 0);
        live[i - back] = NULL;
    }
    for (unsigned i = 0; i < blocks; i++)
        assert_true(!live[i] || pattern_holds(live[i], size_of(blocks, i), i + blocks));
}

/* Ends with what was kept before, if it is the last of a row. */
static void drop_kept(struct course *course) {
    for (unsigned i = 0; i < KEPT; i++) {
        if (!course->kept[i])
            continue;
        assert_true(pattern_holds(course->kept[i], 200, i + 1 + GATHER));
        assert_int_equal(ebb_region_release(course->parent, course->kept[i]), 0);
        course->kept[i] = NULL;
    }
}

static void take_step(struct course *course, unsigned blocks, bool keep, bool drop) {
    ebb_step step = ebb_step_begin_under(course->site, course->parent, 7);
    struct ebb_survivor list[KEPT];
    void *live[MOST];
    assert_true(ebb_region_is_open(step.region));
    fill_step(step, blocks, live);
    for (unsigned i = 0; i < KEPT && keep; i++) {
        void *gradient = live[3 * i + 2]; /* alive at the end, if the step is GATHER blocks long */
        assert_non_null(gradient);
        pattern_fill(gradient, 200, i + 1 + GATHER);
        list[i] = survivor_of(gradient, EBB_PROMOTE_COPY);
    }
    if (drop)
        drop_kept(course);
    assert_int_equal(ebb_step_end_keeping(step, course->parent, list, keep ? KEPT : 0, NULL, NULL),
                     0);
    for (unsigned i = 0; i < KEPT && keep; i++)
        course->kept[i] = list[i].block;
    course->steps++;
}

/* So many steps that gather, one that updates. */
static void take_row(struct course *course, unsigned gathering) {
    for (unsigned i = 0; i < gathering; i++)
        take_step(course, GATHER, i == 0 && !course->kept[0], false);
    take_step(course, UPDATE, false, true);
}

/* Rows of four that are foretold and served whole; returns how many steps were recorded. */
static uint64_t take_good_rows(struct course *course, unsigned rows) {
    struct ebb_site_stats before = site_stats(course->site);
    for (unsigned i = 0; i < rows; i++)
        take_row(course, 3);
    struct ebb_site_stats after = site_stats(course->site);
    assert_int_equal(after.row_steps, 4);
    assert_int_equal(after.missed - before.missed, 0);
    return after.recorded_steps - before.recorded_steps;
}

static void end_course(struct course *course) {
    drop_kept(course);
    assert_int_equal(ebb_site_destroy(course->site), 0);
    assert_int_equal(stats_of(course->parent).blocks.current, 0);
    assert_int_equal(pool_stats_of(plan_pool()).open_regions, 0);
}

/* ---- rows ---- */

static void gathered_gradients_are_planned_row_by_row(void **state) {
    struct course course = course_of(*state);
    for (unsigned i = 0; i < 6; i++)
        take_row(&course, 3);
    struct ebb_site_stats before = site_stats(course.site);
    assert_int_equal(before.row_steps, 4);
    for (unsigned i = 0; i < 20; i++)
        take_row(&course, 3);
    struct ebb_site_stats after = site_stats(course.site);
    assert_int_equal(after.planned_steps - before.planned_steps, 80);
    assert_int_equal(after.missed - before.missed, 0);
    assert_int_equal(after.hits - before.hits, 20 * (3 * GATHER + UPDATE));
    assert_int_equal(after.tenured_right - before.tenured_right, 20 * KEPT);
    assert_int_equal(after.tenured_wrong, 0);
    assert_int_equal(after.plans, before.plans);
    end_course(&course);
}

/* No sort of step keeps an arena while another one has its turn. */
static void plans_of_several_kinds_need_no_more_pages_than_the_largest(void **state) {
    static const unsigned sorts[] = {GATHER, GATHER, GATHER, MOST};
    uint64_t reserved[2];
    for (unsigned rows = 0; rows < 2; rows++) {
        void *stage = NULL;
        assert_int_equal(stage_open(&stage), 0);
        struct course course = course_of(stage);
        for (unsigned i = 0; i < 80; i++)
            take_step(&course, rows ? sorts[i % 4] : MOST, false, false);
        assert_int_equal(site_stats(course.site).row_steps, rows ? 4 : 0);
        reserved[rows] = pool_stats_of(((struct stage *)stage)->pool).reserved.current;
        end_course(&course);
        assert_int_equal(stage_close(&stage), 0);
    }
    assert_true(reserved[1] <= reserved[0] + reserved[0] / 4);
}

static void two_that_take_turns_have_a_plan_each(void **state) {
    struct course course = course_of(*state);
    for (unsigned i = 0; i < 10; i++) {
        take_step(&course, GATHER, false, false);
        take_step(&course, UPDATE, false, false);
    }
    struct ebb_site_stats before = site_stats(course.site);
    assert_int_equal(before.row_steps, 2);
    for (unsigned i = 0; i < 10; i++) {
        take_step(&course, GATHER, false, false);
        take_step(&course, UPDATE, false, false);
    }
    assert_int_equal(site_stats(course.site).missed - before.missed, 0);
    end_course(&course);
}

static void evaluation_now_and_then_is_planned_in_its_place(void **state) {
    struct course course = course_of(*state);
    for (unsigned i = 0; i < 6 * 10; i++)
        take_step(&course, i % 10 == 9 ? UPDATE : GATHER, false, false);
    struct ebb_site_stats before = site_stats(course.site);
    assert_int_equal(before.row_steps, 10);
    for (unsigned i = 0; i < 5 * 10; i++)
        take_step(&course, i % 10 == 9 ? UPDATE : GATHER, false, false);
    assert_int_equal(site_stats(course.site).missed - before.missed, 0);
    end_course(&course);
}

/* Of the kinds in the row one plan has served two well, and one is recorded, once. */
static void what_served_a_kind_before_its_row_was_found_serves_it_after_that(void **state) {
    struct course course = course_of(*state);
    while (!site_stats(course.site).row_steps)
        take_step(&course, course.steps % 4 == 3 ? UPDATE : GATHER, false, false);
    assert_in_range(course.steps, 12, 16);
    struct ebb_site_stats before = site_stats(course.site);
    for (unsigned i = 0; i < 40; i++)
        take_step(&course, course.steps % 4 == 3 ? UPDATE : GATHER, false, false);
    struct ebb_site_stats after = site_stats(course.site);
    assert_int_equal(after.recorded_steps - before.recorded_steps, 1);
    assert_int_equal(after.plans - before.plans, 1);
    assert_int_equal(after.missed - before.missed, 0);
    assert_int_equal(after.hits - before.hits, 30 * GATHER + 9 * UPDATE);
    end_course(&course);
}

static void steps_that_one_plan_serves_well_are_left_as_they_are(void **state) {
    struct course course = course_of(*state);
    for (unsigned i = 0; i < 200; i++) {
        void *live[MOST];
        ebb_step step = ebb_step_begin_under(course.site, course.parent, 7);
        fill_step(step, GATHER, live);
        if (i % 5 == 4)
            block_of(step.region, 64, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(course.site);
    assert_int_equal(stats.row_steps, 0);
    assert_true(stats.hits > stats.missed * 9);
    end_course(&course);
}

/* ---- what disturbs them ---- */

/* Four of five steps are as the row before says, so that alone would not end it. */
static void rows_that_become_longer_are_planned_anew(void **state) {
    struct course course = course_of(*state);
    for (unsigned i = 0; i < 20; i++)
        take_row(&course, 3);
    assert_int_equal(site_stats(course.site).row_steps, 4);
    for (unsigned i = 0; i < 10; i++)
        take_row(&course, 4);
    struct ebb_site_stats before = site_stats(course.site);
    assert_int_equal(before.row_steps, 5);
    for (unsigned i = 0; i < 10; i++)
        take_row(&course, 4);
    assert_int_equal(site_stats(course.site).missed - before.missed, 0);
    end_course(&course);
}

static void an_odd_step_is_no_lesson(void **state) {
    struct course course = course_of(*state);
    for (unsigned i = 0; i < 8; i++)
        take_row(&course, 3);
    for (unsigned odd = 0; odd < 4; odd++) {
        for (unsigned i = 0; i < 4; i++)
            take_step(&course, i == odd ? MOST - odd : i == 3 ? UPDATE : GATHER, i == 0 && odd,
                      i == 3);
        drop_kept(&course);
        assert_int_equal(take_good_rows(&course, 5), 0);
    }
    end_course(&course);
}

/* So many blocks that stay to the end; of two, a MiB more. */
static void take_step_with_large_blocks(struct course *course, unsigned blocks, unsigned large) {
    ebb_step step = ebb_step_begin_under(course->site, course->parent, 7);
    for (unsigned i = 0; i < blocks; i++)
        block_of(step.region, 500 + (i % 20 == large ? MIB : 0), 64);
    assert_int_equal(ebb_step_end(step), 0);
}

/* The large blocks are others in each row, so all sizes that were seen are far above what any step
 * needs: a plan grows to that only where an odd step passes for a measure. */
static void an_odd_step_is_no_measure_of_what_a_plan_may_need(void **state) {
    struct course course = course_of(*state);
    uint64_t highest = 0;
    for (unsigned i = 0; i < 60; i++)
        take_step_with_large_blocks(&course, i % 3 == 2 ? UPDATE : GATHER, MOST);
    ebb_step odd = ebb_step_begin_under(course.site, course.parent, 7);
    block_of(odd.region, 32 * MIB, 64);
    assert_int_equal(ebb_step_end(odd), 0);
    for (unsigned i = 1; i < 48; i++) {
        take_step_with_large_blocks(&course, i % 3 == 2 ? UPDATE : GATHER, i % 3 ? MOST : i / 3);
        uint64_t height = site_stats(course.site).plan_height;
        highest = height > highest ? height : highest;
    }
    assert_int_equal(site_stats(course.site).row_steps, 3);
    assert_true(highest > 2 * MIB && highest < 8 * MIB);
    end_course(&course);
}

static void a_row_that_breaks_off_goes_on_with_the_next(void **state) {
    struct course course = course_of(*state);
    for (unsigned i = 0; i < 8; i++)
        take_row(&course, 3);
    for (unsigned gathering = 0; gathering < 6; gathering++) {
        take_row(&course, gathering);
        take_good_rows(&course, 6);
    }
    end_course(&course);
}

/* Steps that were foretold, of which none is as foretold when the rhythm is lost meanwhile. */
static void steps_that_end_after_their_row_are_no_lesson_for_its_kinds(void **state) {
    struct course course = course_of(*state);
    ebb_step open[16];
    for (unsigned i = 0; i < 8; i++)
        take_row(&course, 3);
    for (unsigned i = 0; i < 16; i++)
        open[i] = ebb_step_begin_under(course.site, course.parent, 7);
    for (unsigned i = 0; i < 6; i++)
        take_step(&course, 10 + i, false, true);
    assert_int_equal(site_stats(course.site).row_steps, 0);
    for (unsigned i = 0; i < 16; i++) {
        void *live[MOST];
        fill_step(open[i], MOST - i, live);
        assert_int_equal(ebb_step_end(open[i]), 0);
    }
    while (site_stats(course.site).row_steps != 4)
        take_row(&course, 3);
    assert_int_equal(take_good_rows(&course, 3), 0);
    end_course(&course);
}

static void rows_that_change_are_learnt_again_and_again(void **state) {
    struct course course = course_of(*state);
    for (unsigned change = 0; change < 8; change++) {
        for (unsigned i = 0; i < 60; i++)
            take_step(&course, i % 3 ? 20 + change : 50 + change, false, false);
        struct ebb_site_stats before = site_stats(course.site);
        for (unsigned i = 0; i < 30; i++)
            take_step(&course, i % 3 ? 20 + change : 50 + change, false, false);
        struct ebb_site_stats after = site_stats(course.site);
        assert_int_equal(after.row_steps, 3);
        assert_int_equal(after.missed - before.missed, 0);
        assert_int_equal(after.planned_steps - before.planned_steps, 30);
    }
    end_course(&course);
}

/* Rows of chance, odd steps and slips; fill_step() looks at all bytes. */
static void whatever_comes_blocks_keep_their_bytes(void **state) {
    struct course course = course_of(*state);
    uint32_t chance = 5;
    uint64_t blocks = 0;
    for (unsigned part = 0; part < 12; part++) {
        unsigned row = 2 + part % 5, sort = 30 + part * 3;
        for (unsigned i = 0; i < 80; i++) {
            chance = chance * 1664525 + 1013904223;
            unsigned odd = chance >> 28;
            i += odd == 1;
            unsigned count = odd == 0 ? 1 + chance % MOST : i % row ? GATHER : sort;
            take_step(&course, count, count == GATHER && !course.kept[0], odd > 7);
            blocks += count;
        }
        drop_kept(&course);
    }
    struct ebb_site_stats stats = site_stats(course.site);
    assert_true(stats.steps == course.steps && stats.allocations == blocks);
    assert_true(stats.hits > blocks / 3);
    end_course(&course);
}

/* ---- tags, rings, threads ---- */

static void each_tag_has_rows_of_its_own(void **state) {
    struct stage *stage = *state;
    struct course course = course_of(stage);
    uint64_t missed = 0;
    for (unsigned i = 0; i < 120; i++) {
        for (uint64_t tag = 1; tag <= 3; tag++) {
            ebb_step step = ebb_step_begin_under(course.site, stage->root, tag);
            void *live[MOST];
            fill_step(step, i % (unsigned)(tag + 1) ? GATHER : GATHER + 10 * (unsigned)tag, live);
            assert_int_equal(ebb_step_end(step), 0);
        }
        if (i == 60)
            missed = site_stats(course.site).missed;
    }
    struct ebb_site_stats stats = site_stats(course.site);
    assert_int_equal(stats.row_steps, 4); /* of the third tag: the newest */
    assert_int_equal(stats.missed - missed, 0);
    end_course(&course);
}

static void take_tagged_steps(struct course *course, uint64_t tag, const unsigned *row,
                              unsigned length, unsigned steps) {
    for (unsigned i = 0; i < steps; i++) {
        ebb_step step = ebb_step_begin_under(course->site, course->parent, tag);
        void *live[MOST];
        fill_step(step, row[i % length], live);
        assert_int_equal(ebb_step_end(step), 0);
    }
}

/* Two rows of four kinds take all entries, the others come later. */
static void entries_of_kinds_go_from_tag_to_tag_and_none_is_a_tag_less(void **state) {
    static const unsigned first[] = {20, 30, 50, 60}, second[] = {24, 36, 44, 56},
                          turns[] = {GATHER, UPDATE};
    struct course course = course_of(*state);
    take_tagged_steps(&course, 1, first, 4, 80);
    take_tagged_steps(&course, 1, second, 4, 80);
    take_tagged_steps(&course, 2, turns, 2, 80);
    struct ebb_site_stats before = site_stats(course.site);
    take_tagged_steps(&course, 2, turns, 2, 40);
    assert_true(before.row_steps == 2 && site_stats(course.site).missed == before.missed);
    take_tagged_steps(&course, 1, second, 4, 80);
    before = site_stats(course.site);
    take_tagged_steps(&course, 1, second, 4, 40);
    assert_true(before.row_steps == 4 && site_stats(course.site).missed == before.missed);
    before = site_stats(course.site);
    for (uint64_t tag = 3; tag <= 17; tag++)
        take_tagged_steps(&course, tag, turns, 1, 4);
    struct ebb_site_stats after = site_stats(course.site);
    assert_int_equal(after.planned_steps + after.recorded_steps,
                     before.planned_steps + before.recorded_steps + 14 * 4);
    end_course(&course);
}

/* Twelve kinds for eight entries, each of a long row: who has one keeps it. */
static void kinds_of_several_tags_do_not_drive_each_other_out(void **state) {
    struct course course = course_of(*state);
    uint64_t recorded = 0;
    for (unsigned i = 0; i < 12 * 16; i++) {
        for (unsigned tag = 1; tag <= 4; tag++) {
            ebb_step step = ebb_step_begin_under(course.site, course.parent, tag);
            void *live[MOST];
            fill_step(step, (i + 5 * tag) % 16 ? GATHER : UPDATE, live);
            assert_int_equal(ebb_step_end(step), 0);
        }
        if (i == 8 * 16)
            recorded = site_stats(course.site).recorded_steps;
    }
    assert_int_equal(site_stats(course.site).recorded_steps, recorded);
    end_course(&course);
}

static void rows_go_round_in_a_ring(void **state) {
    struct stage *stage = *state;
    enum { RING = 3 };
    void *live[RING + 1][MOST] = {{NULL}};
    unsigned counts[RING + 1] = {0};
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .ring = RING));
    for (unsigned i = 0; i < 120; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        unsigned at = i % (RING + 1), count = counts[at] = i % 5 ? GATHER : UPDATE;
        fill_step(step, count, live[at]);
        for (unsigned k = 0; k <= RING; k++)
            for (unsigned b = 0; b < counts[k]; b++)
                assert_true(!live[k][b] || pattern_holds(live[k][b], size_of(counts[k], b),
                                                         b + counts[k]));
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_true(stats.row_steps == 5 && stats.hits > stats.allocations / 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_site_that_does_not_learn_knows_no_rows(void **state) {
    struct stage *stage = *state;
    struct course course = {.parent = stage->root};
    course.site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .unplanned = true));
    for (unsigned i = 0; i < 10; i++)
        take_row(&course, 3);
    assert_int_equal(site_stats(course.site).row_steps + site_stats(course.site).hits, 0);
    end_course(&course);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(gathered_gradients_are_planned_row_by_row),
        cmocka_unit_test(plans_of_several_kinds_need_no_more_pages_than_the_largest),
        STAGED(two_that_take_turns_have_a_plan_each),
        STAGED(evaluation_now_and_then_is_planned_in_its_place),
        STAGED(what_served_a_kind_before_its_row_was_found_serves_it_after_that),
        STAGED(steps_that_one_plan_serves_well_are_left_as_they_are),
        STAGED(rows_that_become_longer_are_planned_anew),
        STAGED(an_odd_step_is_no_lesson),
        STAGED(an_odd_step_is_no_measure_of_what_a_plan_may_need),
        STAGED(a_row_that_breaks_off_goes_on_with_the_next),
        STAGED(steps_that_end_after_their_row_are_no_lesson_for_its_kinds),
        STAGED(rows_that_change_are_learnt_again_and_again),
        STAGED(whatever_comes_blocks_keep_their_bytes),
        STAGED(each_tag_has_rows_of_its_own),
        STAGED(entries_of_kinds_go_from_tag_to_tag_and_none_is_a_tag_less),
        STAGED(kinds_of_several_tags_do_not_drive_each_other_out),
        STAGED(rows_go_round_in_a_ring),
        STAGED(a_site_that_does_not_learn_knows_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
