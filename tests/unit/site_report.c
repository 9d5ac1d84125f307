// SPDX-License-Identifier: Apache-2.0
/* site_report.c - what a site has learnt, in text and JSON. */
#include "kit/text.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static ebb_site *site_with_steps(struct stage *stage, unsigned steps) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "a \"site\"", .pool = stage->pool));
    for (unsigned i = 0; i < steps; i++) {
        ebb_step step = ebb_step_begin(site, 1);
        void *first = block_of(step.region, 5000, 64);
        assert_int_equal(ebb_region_release(step.region, first), 0);
        block_of(step.region, 3000, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    return site;
}

static void a_site_in_words(void **state) {
    static struct page page;
    page = (struct page){.length = 0};
    ebb_site *site = site_with_steps(*state, 12);
    assert_int_equal(ebb_report_site(site, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_int_equal(page_count(&page, "site a \"site\": 12 steps, 10 planned, 2 recorded\n"), 1);
    assert_int_equal(page_count(&page, "allocated 24 blocks, 96000 bytes"), 1);
    assert_int_equal(page_count(&page, "served from plans 20 blocks, 80000 bytes; missed 0 blocks, "
                                       "0 bytes (100.0 % of bytes served)"), 1);
    assert_int_equal(page_count(&page, "suspended"), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_site_in_json(void **state) {
    static struct page page;
    page = (struct page){.length = 0};
    ebb_site *site = site_with_steps(*state, 12);
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_report_site(site, EBB_REPORT_JSON, page_write, &page), 0);
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_true(page_is_json(&page));
    assert_int_equal(page_count(&page, "\"site\":\"a \\\"site\\\"\""), 1);
    assert_int_equal(page_number(&page, "steps", 0), 12);
    assert_int_equal(page_number(&page, "hits", 0), 20);
    assert_int_equal(page_number(&page, "plan_slots", 0), 2);
    assert_true(page_number(&page, "plan_height", 0) == stats.plan_height);
    assert_true(page_number(&page, "planning_ns", 0) == stats.planning_ns);
    assert_true(page_number(&page, "reserved_peak", 0) == stats.reserved_peak);
    assert_int_equal(page_count(&page, "\"suspended\":false"), 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_report_of_a_site_stops_when_it_is_told_to(void **state) {
    static struct page page;
    for (unsigned stop = 1; stop <= 3; stop++) {
        ebb_site *site = site_with_steps(*state, 0);
        page = (struct page){.stop_at = stop};
        assert_int_equal(ebb_report_site(site, EBB_REPORT_TEXT, page_write, &page), 77);
        assert_int_equal(page.calls, stop);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* Such steps repeat to the letter, but a plan would hold more than they do. */
static void steps_that_repeat_are_not_said_to_vary(void **state) {
    static struct page page;
    enum { BLOCKS = 20000, ALIVE = 8 };
    struct stage *stage = *state;
    page = (struct page){.length = 0};
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 6; i++) {
        void *alive[ALIVE] = {NULL};
        ebb_step step = ebb_step_begin(site, 1);
        for (unsigned block = 0; block < BLOCKS; block++) {
            void **place = &alive[block % ALIVE];
            assert_int_equal(ebb_region_release(step.region, *place), 0); /* NULL at first */
            *place = block_of(step.region, 2048, 64);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_true(site_stats(site).suspended);
    assert_int_equal(ebb_report_site(site, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_int_equal(page_count(&page, "2 recorded, suspended: no plans for now\n"), 1);
    assert_int_equal(page_count(&page, "repeat"), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- all that the text says ---- */

static void learn_step(struct stage *stage, ebb_site *site, size_t first_bytes);

/* Grown, over its budget, and told three times of a block that it does not have. */
static void take_odd_step(struct stage *stage, ebb_site *site) {
    ebb_step step = ebb_step_begin_under(site, stage->root, 7);
    void *other = block_of(stage->root, 100, 16);
    for (unsigned i = 1; i <= 20; i++)
        block_of(step.region, i * 10000, 64);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ebb_region_release_remote(step.region, other), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_region_release(stage->root, other), 0);
}

/* As those that were learnt from, but that nothing is kept of it. */
static void take_step_that_keeps_nothing(struct stage *stage, ebb_site *site) {
    ebb_step step = ebb_step_begin_under(site, stage->root, 7);
    assert_int_equal(ebb_region_release(step.region, block_of(step.region, 5000, 64)), 0);
    block_of(step.region, 3000, 64);
    block_of(step.region, 2000, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

/* Where each number is not 0 that has no place of its own in another test. */
static ebb_site *site_of_all_kinds(struct stage *stage) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "all kinds", .pool = stage->pool,
                                                      .budget = {.allocations = 10}));
    for (unsigned i = 0; i < 8; i++)
        learn_step(stage, site, 5000);
    take_step_that_keeps_nothing(stage, site);
    take_odd_step(stage, site);
    take_odd_step(stage, site);
    return site;
}

static double percent(uint64_t part, uint64_t whole) {
    return 100.0 * (double)part / (double)whole;
}

/* In the order of the text; at most as exact as it. */
static unsigned list_figures(const struct ebb_site_stats *stats, double *figures) {
    const double in_order[] = {
        (double)stats->steps, (double)stats->planned_steps, (double)stats->recorded_steps,
        (double)stats->allocations, (double)stats->allocated_bytes, (double)stats->used_peak,
        (double)stats->reserved_peak, (double)stats->given_back, (double)stats->hits,
        (double)stats->hit_bytes, (double)stats->missed, (double)stats->missed_bytes,
        percent(stats->hit_bytes, stats->hit_bytes + stats->missed_bytes), (double)stats->plans,
        (double)stats->planning_ns / 1e6, (double)stats->plan_slots, (double)stats->plan_height,
        (double)stats->plan_max_live, percent(stats->plan_height, stats->plan_max_live),
        (double)stats->tenured_right, (double)stats->tenured_right_bytes,
        (double)stats->tenured_wrong, (double)stats->tenured_wrong_bytes, (double)stats->guests,
        (double)stats->guest_bytes, (double)stats->takeovers, (double)stats->strays,
        (double)stats->excesses,
    };
    memcpy(figures, in_order, sizeof in_order);
    return sizeof in_order / sizeof *in_order;
}

static void each_number_of_the_text_is_that_of_the_site(void **state) {
    static struct page page;
    double figures[40];
    page = (struct page){.length = 0};
    ebb_site *site = site_of_all_kinds(*state);
    struct ebb_site_stats stats = site_stats(site);
    unsigned count = list_figures(&stats, figures), said = 0;
    assert_true(stats.takeovers && stats.strays && stats.excesses);
    assert_true(stats.missed && stats.tenured_right);
    assert_true(stats.tenured_wrong);
    assert_int_equal(stats.row_steps, 0);
    assert_int_equal(ebb_report_site(site, EBB_REPORT_TEXT, page_write, &page), 0);
    for (char *at = page.text, *after; *(at += strcspn(at, "0123456789")); at = after) {
        double number = strtod(at, &after);
        assert_true(said < count);
        if (fabs(number - figures[said]) > 0.051)
            print_error("number %u is %s", said, at);
        assert_true(fabs(number - figures[said]) <= 0.051);
        said++;
    }
    assert_int_equal(said, count);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- plans ---- */

/* One step: a block released at once, one that is kept until the end, one that is promoted. */
static void learn_step(struct stage *stage, ebb_site *site, size_t first_bytes) {
    ebb_step step = ebb_step_begin_under(site, stage->root, 7);
    struct ebb_survivor kept = {.align = 64};
    void *first = block_of(step.region, first_bytes, 64);
    assert_int_equal(ebb_region_release(step.region, first), 0);
    block_of(step.region, 3000, 64);
    kept.block = block_of(step.region, 2000, 64);
    assert_int_equal(ebb_step_end_keeping(step, stage->root, &kept, 1, NULL, NULL), 0);
    assert_int_equal(ebb_region_release(stage->root, kept.block), 0);
}

static ebb_site *site_with_survivors(struct stage *stage, unsigned steps, size_t bytes,
                                     size_t last_bytes) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "keeps", .pool = stage->pool));
    for (unsigned i = 0; i < steps; i++)
        learn_step(stage, site, i + 1 < steps ? bytes : last_bytes);
    return site;
}

static void a_plan_is_written_slot_by_slot_with_what_the_last_step_got(void **state) {
    static struct page page;
    page = (struct page){.length = 0};
    ebb_site *site = site_with_survivors(*state, 8, 5000, 4900);
    assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
    assert_true(page_is_json(&page));
    assert_int_equal(page_count(&page, "{\"site\":\"keeps\",\"tag\":7,\"height\":"), 1);
    assert_int_equal(page_count(&page, "\"followed\":true"), 1);
    /* both are placed at the start: the second is born after the first has gone */
    assert_int_equal(page_count(&page, "[[\"placed\",0,5056,0,4900],[\"placed\",0,3008,1,3000],"
                                       "[\"tenured\",0,0,1,2000]]"), 1);
    assert_int_equal(page_count(&page, "\"order\":[0]"), 1);
    assert_int_equal(page_number(&page, "max_live", 0), 5056);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void slots_that_were_too_small_or_never_reached_are_told(void **state) {
    static struct page page;
    page = (struct page){.length = 0};
    struct stage *stage = *state;
    ebb_site *site = site_with_survivors(stage, 8, 200, 209);
    assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
    assert_int_equal(page_count(&page, "[\"placed\",0,208,0,209],[\"placed\",0,3008,1,3000]"), 1);
    ebb_step step = ebb_step_begin_under(site, stage->root, 7);
    assert_int_equal(ebb_step_end(step), 0);
    page = (struct page){.length = 0};
    assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
    assert_int_equal(page_count(&page, ",0]"), 3);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The region forgets its blocks and its track; what they got is told all the same. */
static void what_a_step_got_before_it_was_reset_is_told(void **state) {
    static struct page page;
    page = (struct page){.length = 0};
    struct stage *stage = *state;
    ebb_site *site = site_with_survivors(stage, 8, 5000, 5000);
    ebb_step step = ebb_step_begin_under(site, stage->root, 7);
    void *first = block_of(step.region, 4900, 64);
    assert_int_equal(ebb_region_release(step.region, first), 0);
    block_of(step.region, 2900, 64);
    assert_int_equal(ebb_region_reset(step.region, 0), 0);
    block_of(step.region, 100, 64);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
    assert_int_equal(page_count(&page, "\"followed\":true"), 1);
    assert_int_equal(page_count(&page, "[[\"placed\",0,5056,0,4900],[\"placed\",0,3008,1,2900],"
                                       "[\"tenured\",0,0,1,0]]"), 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Two sorts of steps take turns under one tag, each with a plan of its own; then comes another. */
static void the_plan_of_the_last_step_is_told_where_steps_come_in_rows(void **state) {
    static struct page page;
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 32; i++) {
        ebb_step step = ebb_step_begin(site, i < 31 ? 7 : 8);
        for (unsigned block = 0; block < (i % 2 ? 5 : 9); block++)
            block_of(step.region, 1000 + 500 * (i % 2), 64);
        assert_int_equal(ebb_step_end(step), 0);
        if (i < 28)
            continue;
        page = (struct page){.length = 0};
        assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
        assert_int_equal(page_count(&page, "\"placed\""), i == 29 ? 5 : 9);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Steps of two tags take turns in a ring, so that each has a place of its own there. */
static void the_plan_of_a_step_that_lies_farther_back_in_the_ring_is_told(void **state) {
    static struct page page;
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .ring = 1));
    for (unsigned i = 0; i < 12; i++) {
        ebb_step step = ebb_step_begin(site, 7 + i % 2);
        block_of(step.region, 1000 + i, 64);
        assert_int_equal(ebb_step_end(step), 0);
        if (i < 10)
            continue;
        page = (struct page){.length = 0};
        assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
        assert_int_equal(page_count(&page, "\"followed\":true"), 1);
        assert_int_equal(page_count(&page, ",1010]]"), 1);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void step_of(ebb_site *site, uint64_t tag, size_t bytes) {
    ebb_step step = ebb_step_begin(site, tag);
    block_of(step.region, bytes, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

/* All others of the tag have left what they had when the last step's is told; no older one's is. */
static void the_last_step_of_a_tag_is_told_however_many_others_came_since(void **state) {
    static struct page page;
    struct stage *stage = *state;
    for (unsigned ring = 0; ring < 3; ring++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .ring = ring));
        for (unsigned i = 0; i < 40; i++)
            step_of(site, 7 + i / 20, i == 39 ? 999 : 1000);
        for (unsigned i = 0; i < 300; i++) {
            step_of(site, 7, 1000);
            page = (struct page){.length = 0};
            assert_int_equal(ebb_report_plan(site, 8, page_write, &page), 0);
            assert_int_equal(page_count(&page, "\"followed\":true"), 1);
            assert_int_equal(page_count(&page, ",999]]"), 1);
        }
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

struct turn {
    ebb_site *site;
    size_t bytes;
};

static void *take_steps(void *context) {
    const struct turn *turn = context;
    for (unsigned i = 0; i < 6; i++) {
        ebb_step step = ebb_step_begin(turn->site, 7);
        block_of(step.region, turn->bytes, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    return NULL;
}

/* Each thread has a ring of its own. */
static void the_plan_of_the_last_step_is_told_whatever_its_thread(void **state) {
    static struct page page;
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .ring = 1));
    struct turn here = {site, 1000}, there = {site, 999};
    pthread_t thread;
    for (unsigned i = 0; i < 2; i++) {
        take_steps(&here);
        page = (struct page){.length = 0};
        assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
        assert_int_equal(page_count(&page, ",1000]]"), 1);
        assert_int_equal(pthread_create(&thread, NULL, take_steps, &there), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        page = (struct page){.length = 0};
        assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
        assert_int_equal(page_count(&page, ",999]]"), 1);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void without_a_plan_there_is_nothing_to_tell(void **state) {
    static struct page page;
    page = (struct page){.length = 0};
    ebb_site *site = site_with_survivors(*state, 1, 100, 100);
    assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 0);
    assert_int_equal(ebb_report_plan(site, 8, page_write, &page), 0);
    assert_string_equal(page.text, "{\"site\":\"keeps\",\"tag\":7}"
                                   "{\"site\":\"keeps\",\"tag\":8}");
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void no_plan_is_reported_while_a_step_is_open(void **state) {
    static struct page page;
    page = (struct page){.length = 0};
    ebb_site *site = site_with_survivors(*state, 3, 100, 100);
    ebb_step step = ebb_step_begin(site, 7);
    assert_int_equal(ebb_report_plan(site, 7, page_write, &page), EBB_E_BUSY);
    assert_non_null(strstr(ebb_last_error_text(), "'keeps' has 1 open steps"));
    assert_int_equal(page.calls, 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_report_plan(site, 7, NULL, &page), EBB_E_ARGUMENT);
    assert_int_equal(ebb_report_plan(NULL, 7, page_write, &page), EBB_E_ARGUMENT);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_report_of_a_plan_stops_when_it_is_told_to(void **state) {
    static struct page page;
    ebb_site *site = site_with_survivors(*state, 8, 5000, 5000);
    for (unsigned stop = 1; stop <= 10; stop++) {
        page = (struct page){.stop_at = stop};
        assert_int_equal(ebb_report_plan(site, 7, page_write, &page), 77);
        assert_int_equal(page.calls, stop);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(a_site_in_words),
        STAGED(steps_that_repeat_are_not_said_to_vary),
        STAGED(each_number_of_the_text_is_that_of_the_site),
        STAGED(a_site_in_json),
        STAGED(a_report_of_a_site_stops_when_it_is_told_to),
        STAGED(a_plan_is_written_slot_by_slot_with_what_the_last_step_got),
        STAGED(slots_that_were_too_small_or_never_reached_are_told),
        STAGED(what_a_step_got_before_it_was_reset_is_told),
        STAGED(the_plan_of_the_last_step_is_told_where_steps_come_in_rows),
        STAGED(the_plan_of_a_step_that_lies_farther_back_in_the_ring_is_told),
        STAGED(the_last_step_of_a_tag_is_told_however_many_others_came_since),
        STAGED(the_plan_of_the_last_step_is_told_whatever_its_thread),
        STAGED(without_a_plan_there_is_nothing_to_tell),
        STAGED(no_plan_is_reported_while_a_step_is_open),
        STAGED(a_report_of_a_plan_stops_when_it_is_told_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
