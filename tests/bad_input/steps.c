// SPDX-License-Identifier: Apache-2.0
/*
 * steps.c - misuses around sites and steps: options that make no sense, steps that have ended, that
 * are of another site or none, keys and sites that are none, reports without a reader.
 */
#include "bad_input/court.h"

static int write_nowhere(void *context, const char *text, size_t bytes) {
    return 0;
}

static ebb_site *site_of(struct court *court, unsigned ring) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = court->pool, .ring = ring));
    assert_non_null(site);
    return site;
}

static void options_that_make_no_sense_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_site_options options = {.size = 1};
    court_refused_block(court, ebb_site_create(&options), EBB_E_ARGUMENT, "1, expected");
    court_refused_block(court, ebb_site_create(EBB_SITE_OPTIONS(.ring = 65)), EBB_E_ARGUMENT, "65");
}

static void a_step_needs_a_site_and_an_open_parent(void **state) {
    struct court *court = *state;
    ebb_site *site = site_of(court, 0);
    court_note(court);
    assert_false(ebb_region_is_open(ebb_step_begin(NULL, 5).region));
    court_refused(court, ebb_last_error(), EBB_E_ARGUMENT, "5", NULL);
    assert_false(ebb_region_is_open(ebb_step_begin_under(NULL, court->root, 5).region));
    court_refused(court, ebb_last_error(), EBB_E_ARGUMENT, NULL);
    struct ebb_pool_stats before = {.size = sizeof before}, after = before;
    assert_int_equal(ebb_process_read_stats(&before), 0);
    assert_false(ebb_region_is_open(ebb_step_begin_under(site, court->closed, 5).region));
    court_refused(court, ebb_last_error(), EBB_E_STALE, NULL);
    assert_int_equal(ebb_process_read_stats(&after), 0); /* nor got the site any memory for it */
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ebb_site_destroy(site), 0); /* no step is open */
}

static void a_step_that_ended_does_not_end_again(void **state) {
    struct court *court = *state;
    for (unsigned ring = 0; ring < 3; ring++) {
        ebb_site *site = site_of(court, ring);
        ebb_step step = ebb_step_begin(site, 1);
        assert_int_equal(ebb_step_end(step), 0);
        court_note(court);
        court_refused(court, ebb_step_end(step), EBB_E_STALE, NULL);
        court_refused(court, ebb_step_end_keeping(step, court->root, NULL, 0, NULL, NULL),
                      EBB_E_STALE, NULL);
        assert_int_equal(ebb_region_is_open(step.region), ring > 0);
        assert_int_equal(ebb_site_destroy(site), 0);
        court_note(court);
        court_refused(court, ebb_step_end(step), EBB_E_STALE, NULL);
        court_refused_block(court, ebb_step_alloc(step, 10, 16, 1), EBB_E_STALE, "");
    }
}

static void what_is_no_step_does_not_end(void **state) {
    struct court *court = *state;
    ebb_site *site = site_of(court, 0);
    ebb_step a = ebb_step_begin(site, 1), b = ebb_step_begin(site, 1);
    court_note(court);
    court_refused(court, ebb_step_end((ebb_step){.lane = NULL}), EBB_E_STALE, NULL);
    court_refused(court, ebb_step_end((ebb_step){.region = court->child}), EBB_E_STALE, "child",
                  NULL);
    court_refused(court, ebb_step_end((ebb_step){court->child, a.lane}), EBB_E_STALE, NULL);
    court_refused(court, ebb_step_end((ebb_step){a.region, b.lane}), EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_step_end((ebb_step){a.region, NULL}), EBB_E_ARGUMENT, NULL);
    court_refused_block(court, ebb_step_alloc((ebb_step){.lane = NULL}, 1, 1, 1), EBB_E_STALE, "");
    assert_int_equal(ebb_step_end(a), 0);
    assert_int_equal(ebb_step_end(b), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void blocks_of_a_step_are_refused_as_those_of_a_region(void **state) {
    struct court *court = *state;
    ebb_site *site = site_of(court, 0);
    for (int i = 0; i < 4; i++) { /* recorded and planned */
        ebb_step step = ebb_step_begin(site, 1);
        void *block = ebb_step_alloc(step, 100, 16, 9);
        court_note(court);
        court_refused_block(court, ebb_step_alloc(step, 100, 16, 0), EBB_E_ARGUMENT, "100");
        court_refused_block(court, ebb_step_alloc(step, 100, 3, 1), EBB_E_ALIGNMENT, "3");
        court_refused_block(court, ebb_step_alloc(step, 100, 0, 1), EBB_E_ALIGNMENT, "0");
        court_refused_block(court, ebb_step_alloc(step, SIZE_MAX, 16, 1), EBB_E_SIZE, "");
        court_refused(court, ebb_region_release(step.region, (char *)block + 16), EBB_E_INTERIOR,
                      NULL);
        assert_int_equal(ebb_region_release(step.region, block), 0);
        court_note(court);
        court_refused(court, ebb_region_release(step.region, block), EBB_E_RELEASED, NULL);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void survivors_that_are_none_leave_the_step_open(void **state) {
    struct court *court = *state;
    ebb_site *site = site_of(court, 1);
    ebb_step step = ebb_step_begin_under(site, court->child, 1);
    struct ebb_survivor foreign = survivor_of(court->foreign, EBB_PROMOTE_COPY);
    court_note(court);
    court_refused(court, ebb_step_end_keeping(step, court->root, &foreign, 1, NULL, NULL),
                  EBB_E_FOREIGN, NULL);
    court_refused(court, ebb_step_end_keeping(step, court->elsewhere, NULL, 0, NULL, NULL),
                  EBB_E_NOT_ANCESTOR, NULL);
    court_refused(court, ebb_step_end_keeping(step, step.region, NULL, 0, NULL, NULL),
                  EBB_E_NOT_ANCESTOR, NULL);
    court_refused(court, ebb_step_end_keeping(step, court->closed, NULL, 0, NULL, NULL),
                  EBB_E_STALE, NULL);
    court_refused(court, ebb_step_end_keeping(step, court->root, NULL, 1, NULL, NULL),
                  EBB_E_ARGUMENT, NULL);
    assert_true(ebb_region_is_open(step.region));
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void counters_and_reports_need_arguments(void **state) {
    struct court *court = *state;
    ebb_site *site = site_of(court, 0);
    struct ebb_site_stats stats = {.size = 7};
    court_note(court);
    court_refused(court, ebb_site_read_stats(site, &stats), EBB_E_ARGUMENT, "7", NULL);
    court_refused(court, ebb_site_read_stats(site, NULL), EBB_E_ARGUMENT, NULL);
    stats.size = sizeof stats;
    court_refused(court, ebb_site_read_stats(NULL, &stats), EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_report_site(site, EBB_REPORT_TEXT, NULL, NULL), EBB_E_ARGUMENT,
                  "NULL", NULL);
    court_refused(court, ebb_report_site(site, 5, write_nowhere, NULL), EBB_E_ARGUMENT, "5", NULL);
    court_refused(court, ebb_report_site(NULL, EBB_REPORT_TEXT, write_nowhere, NULL),
                  EBB_E_ARGUMENT, NULL);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TRIAL(options_that_make_no_sense_are_refused),
        TRIAL(a_step_needs_a_site_and_an_open_parent),
        TRIAL(a_step_that_ended_does_not_end_again),
        TRIAL(what_is_no_step_does_not_end),
        TRIAL(blocks_of_a_step_are_refused_as_those_of_a_region),
        TRIAL(survivors_that_are_none_leave_the_step_open),
        TRIAL(counters_and_reports_need_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
