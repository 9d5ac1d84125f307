// SPDX-License-Identifier: Apache-2.0
/*
 * regions.c - misuses around regions and pools: stale handles everywhere, marks that are not
 * valid, options that make no sense, pools that cannot be destroyed, reports without a reader.
 */
#include "bad_input/court.h"

#include <stdio.h>

static int write_nowhere(void *context, const char *text, size_t bytes) {
    (void)context, (void)text, (void)bytes;
    return 0;
}

/* Every function that takes a handle refuses this one. */
static void assert_stale(struct court *court, ebb_region stale) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    court_refused_block(court, ebb_region_alloc(stale, 16, 16), EBB_E_STALE, "");
    court_refused_block(court, ebb_region_alloc(stale, 5000, 64), EBB_E_STALE, "");
    court_refused_block(court, ebb_region_alloc_slow(stale, 16, 16), EBB_E_STALE, "");
    court_refused_block(court, ebb_region_alloc_zeroed(stale, 16, 16), EBB_E_STALE, "");
    court_refused_block(court, ebb_region_alloc_array(stale, 4, 4, 16), EBB_E_STALE, "");
    court_refused_block(court, ebb_region_realloc(stale, NULL, 16, 16), EBB_E_STALE, "");
    court_refused_block(court, ebb_region_realloc(stale, court->small, 16, 16), EBB_E_STALE, "");
    court_refused(court, ebb_region_release(stale, court->small), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_resize(stale, court->small, 10), EBB_E_STALE, NULL);
    assert_int_equal(ebb_region_block_bytes(stale, court->small), 0);
    court_refused(court, ebb_last_error(), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_close(stale), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_close_strict(stale), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_seal(stale), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_reset(stale, 0), EBB_E_STALE, NULL);
    assert_int_equal(ebb_region_mark(stale).serial, 0);
    court_refused(court, ebb_last_error(), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_rewind(stale, (ebb_mark){NULL, 0}), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_read_stats(stale, &stats), EBB_E_STALE, NULL);
    assert_int_equal(ebb_region_measured(stale), 0);
    court_refused(court, ebb_last_error(), EBB_E_STALE, NULL);
    court_refused(court, ebb_report_region(stale, EBB_REPORT_TEXT, write_nowhere, NULL),
                  EBB_E_STALE, NULL);
    court_refused(court, ebb_report_leaks(stale, EBB_REPORT_TEXT, write_nowhere, NULL),
                  EBB_E_STALE, NULL);
    assert_false(ebb_region_is_open(stale));
    assert_false(ebb_region_is_open(ebb_region_parent(stale)));
    assert_false(ebb_region_is_ancestor(court->root, stale));
    assert_false(ebb_region_is_ancestor(stale, court->child));
}

static void a_closed_regions_handle_is_stale_everywhere(void **state) {
    struct court *court = *state;
    assert_stale(court, court->closed);
}

static void handles_that_never_were_one_are_stale(void **state) {
    struct court *court = *state;
    ebb_region none = ebb_region_of(NULL);
    assert_stale(court, none);
    ebb_region other = court->child; /* a generation that is not this slot's */
    other.generation += 2;
    assert_stale(court, other);
    other.generation -= 4;
    assert_stale(court, other);
    other.generation = court->child.generation + 1;
    assert_stale(court, other);
    other.generation = 0;
    assert_stale(court, other);
}

static void a_zero_handle_is_stale_for_every_call_but_the_inline_one(void **state) {
    struct court *court = *state;
    ebb_region zero = {NULL, 0};
    court_refused_block(court, ebb_region_alloc_slow(zero, 16, 16), EBB_E_STALE, "");
    court_refused(court, ebb_region_close(zero), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_release(zero, court->small), EBB_E_STALE, NULL);
    assert_false(ebb_region_is_open(zero));
}

static void the_text_of_a_stale_handle_names_its_generation(void **state) {
    struct court *court = *state;
    char part[40];
    snprintf(part, sizeof part, "generation %llu",
             (unsigned long long)court->closed.generation);
    court_refused(court, ebb_region_close(court->closed), EBB_E_STALE, part, NULL);
}

static void rewinding_to_marks_that_are_not_valid_is_refused(void **state) {
    struct court *court = *state;
    ebb_mark foreign = ebb_region_mark(court->root), mark = ebb_region_mark(court->child);
    ebb_mark inner = ebb_region_mark(court->child);
    assert_int_equal(ebb_region_rewind(court->child, mark), 0);
    court_note(court);
    court_refused(court, ebb_region_rewind(court->child, foreign), EBB_E_MARK, "'child'", NULL);
    court_refused(court, ebb_region_rewind(court->child, mark), EBB_E_MARK, "0 are set", NULL);
    court_refused(court, ebb_region_rewind(court->child, inner), EBB_E_MARK, NULL);
    court_refused(court, ebb_region_rewind(court->child, (ebb_mark){NULL, 0}), EBB_E_MARK, NULL);
    ebb_mark broken = {(const char *)foreign.place + 8, foreign.serial};
    court_refused(court, ebb_region_rewind(court->root, broken), EBB_E_MARK, NULL);
    broken = (ebb_mark){foreign.place, foreign.serial + 1};
    court_refused(court, ebb_region_rewind(court->root, broken), EBB_E_MARK, NULL);
    broken = (ebb_mark){court->small, foreign.serial};
    court_refused(court, ebb_region_rewind(court->root, broken), EBB_E_MARK, NULL);
    assert_int_equal(ebb_region_rewind(court->root, foreign), 0);
}

static void options_that_make_no_sense_open_nothing(void **state) {
    struct court *court = *state;
    struct ebb_region_options options = {.size = 0};
    for (size_t size = 0; size < 2 * sizeof options; size += 8) {
        options.size = size;
        if (size == sizeof options)
            continue;
        assert_false(ebb_region_is_open(ebb_region_open(&options)));
        court_refused(court, ebb_last_error(), EBB_E_ARGUMENT, "size field", NULL);
    }
    ebb_region wrong = OPEN(.name = "wrong", .parent = court->root, .pool = court->other_pool);
    assert_false(ebb_region_is_open(wrong));
    court_refused(court, ebb_last_error(), EBB_E_ARGUMENT, "wrong", "root", "another pool", NULL);
    wrong = OPEN(.name = "wrong", .parent = court->root, .measure = true);
    assert_false(ebb_region_is_open(wrong));
    court_refused(court, ebb_last_error(), EBB_E_ARGUMENT, "root", "does not measure", NULL);
    wrong = OPEN(.parent = court->closed);
    assert_false(ebb_region_is_open(wrong));
    court_refused(court, ebb_last_error(), EBB_E_STALE, NULL);
}

static void a_hint_above_a_limit_opens_nothing(void **state) {
    struct court *court = *state;
    assert_int_equal(ebb_pool_set_reserved_limit(court->pool, 1 * MIB), 0);
    ebb_region wrong = OPEN(.parent = court->root, .hint_bytes = 1 * MIB + 1);
    assert_false(ebb_region_is_open(wrong));
    court_refused(court, ebb_last_error(), EBB_E_POOL_LIMIT, "1052672", NULL);
    assert_int_equal(ebb_pool_set_reserved_limit(court->pool, 0), 0);
}

static void pool_options_of_another_size_make_no_pool(void **state) {
    struct court *court = *state;
    struct ebb_pool_options options = {.size = 0};
    for (size_t size = 0; size < 2 * sizeof options; size += 8) {
        options.size = size;
        if (size != sizeof options)
            court_refused_block(court, ebb_pool_create(&options), EBB_E_ARGUMENT, "size field");
    }
}

static bool never_asked(void *context) {
    (void)context;
    return false;
}

static void options_that_a_kind_of_pool_has_no_use_for_are_refused(void **state) {
    struct court *court = *state;
    static const unsigned kinds[] = {EBB_KIND_HOST, EBB_KIND_HUGE, EBB_KIND_PINNED};
    for (unsigned i = 0; i < 3; i++) {
        struct ebb_pool_options options = {.size = sizeof options, .kind = kinds[i], .slots = 77};
        court_refused_block(court, ebb_pool_create(&options), EBB_E_ARGUMENT, "77 slots");
        options = (struct ebb_pool_options){.size = sizeof options, .kind = kinds[i]};
        options.slot_bytes = 4711;
        court_refused_block(court, ebb_pool_create(&options), EBB_E_ARGUMENT, "4711 bytes");
        options.slot_bytes = 0;
        options.wait_ns = 815;
        court_refused_block(court, ebb_pool_create(&options), EBB_E_ARGUMENT, "815 ns");
        options.wait_ns = 0;
        options.go_on = never_asked;
        court_refused_block(court, ebb_pool_create(&options), EBB_E_ARGUMENT, "go_on");
    }
    static const unsigned hosts[] = {EBB_KIND_HOST, EBB_KIND_HUGE, EBB_KIND_SHARED};
    for (unsigned i = 0; i < 3; i++) {
        struct ebb_pool_options options = {.size = sizeof options, .kind = hosts[i], .device = 3};
        court_refused_block(court, ebb_pool_create(&options), EBB_E_ARGUMENT, "device 3");
    }
    static const unsigned locked[] = {EBB_KIND_PINNED, EBB_KIND_DEVICE,
                                      EBB_KIND_SHARED | EBB_KIND_PINNED};
    for (unsigned i = 0; i < 3; i++) {
        struct ebb_pool_options options = {.size = sizeof options, .kind = locked[i], .device = -7};
        court_refused_block(court, ebb_pool_create(&options), EBB_E_ARGUMENT, "no device -7");
    }
}

static void pools_that_cannot_be_destroyed_say_why(void **state) {
    struct court *court = *state;
    court_refused(court, ebb_pool_destroy(court->pool), EBB_E_BUSY, "'court'", "3 open", NULL);
    court_refused(court, ebb_pool_destroy(NULL), EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_pool_destroy(ebb_pool_default()), EBB_E_ARGUMENT, "default", NULL);
    ebb_pool *pool = ebb_pool_create(NULL);
    assert_int_equal(ebb_pool_destroy(pool), 0);
    court_refused(court, ebb_pool_destroy(pool), EBB_E_ARGUMENT, "before", NULL);
}

static void calls_without_a_pool_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_pool_stats stats = {.size = sizeof stats};
    court_refused(court, ebb_pool_set_reserved_limit(NULL, 4711), EBB_E_ARGUMENT, "4711", NULL);
    court_refused(court, ebb_pool_read_stats(NULL, &stats), EBB_E_ARGUMENT, NULL);
    assert_int_equal(ebb_pool_trim(NULL, 0), 0);
    court_refused(court, ebb_last_error(), EBB_E_ARGUMENT, NULL);
}

static void stats_of_another_size_are_not_filled(void **state) {
    struct court *court = *state;
    struct ebb_pool_stats pool = {.size = sizeof pool - 8}, pool_before = pool;
    struct ebb_region_stats region = {.size = sizeof region + 8}, region_before = region;
    court_refused(court, ebb_pool_read_stats(court->pool, &pool), EBB_E_ARGUMENT, "size", NULL);
    court_refused(court, ebb_process_read_stats(&pool), EBB_E_ARGUMENT, "size", NULL);
    court_refused(court, ebb_region_read_stats(court->root, &region), EBB_E_ARGUMENT, "size", NULL);
    assert_memory_equal(&pool, &pool_before, sizeof pool);
    assert_memory_equal(&region, &region_before, sizeof region);
    court_refused(court, ebb_pool_read_stats(court->pool, NULL), EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_process_read_stats(NULL), EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_region_read_stats(court->root, NULL), EBB_E_ARGUMENT, NULL);
}

static void reports_without_reader_or_format_are_refused(void **state) {
    struct court *court = *state;
    enum ebb_report_format wrong = (enum ebb_report_format)7;
    court_refused(court, ebb_report_region(court->root, EBB_REPORT_TEXT, NULL, NULL),
                  EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_report_pool(court->pool, EBB_REPORT_TEXT, NULL, NULL),
                  EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_report_leaks(court->root, EBB_REPORT_TEXT, NULL, NULL),
                  EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_report_region(court->root, wrong, write_nowhere, NULL),
                  EBB_E_ARGUMENT, "7", NULL);
    court_refused(court, ebb_report_pool(court->pool, wrong, write_nowhere, NULL),
                  EBB_E_ARGUMENT, "7", NULL);
    court_refused(court, ebb_report_leaks(court->root, wrong, write_nowhere, NULL),
                  EBB_E_ARGUMENT, "7", NULL);
}

static int do_nothing(void *data) {
    (void)data;
    return 0;
}

static void cleanups_that_make_no_sense_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_cleanup node = {.run = do_nothing}, empty = {.data = court};
    court_refused(court, ebb_cleanup_add(court->closed, &node), EBB_E_STALE, NULL);
    court_refused(court, ebb_cleanup_add(court->child, NULL), EBB_E_ARGUMENT, "'child'", NULL);
    court_refused(court, ebb_cleanup_add(court->child, &empty), EBB_E_ARGUMENT, "'child'", NULL);
    assert_int_equal(ebb_cleanup_add(court->child, &node), 0);
    court_refused(court, ebb_cleanup_add(court->child, &node), EBB_E_DUPLICATE, NULL);
    court_refused(court, ebb_cleanup_add(court->root, &node), EBB_E_DUPLICATE, NULL);
    court_refused(court, ebb_cleanup_remove(NULL), EBB_E_ARGUMENT, NULL);
    court_refused(court, ebb_cleanup_run(NULL), EBB_E_ARGUMENT, NULL);
    assert_int_equal(ebb_cleanup_remove(&node), 0);
    assert_int_equal(ebb_cleanup_remove(&node), 0);
    assert_int_equal(ebb_cleanup_run(&node), 0);
}

/* What the cleanup of a region gets that asks for more than the end of it. */
static int ask_for_more(void *data) {
    const struct court *court = data;
    ebb_region child = court->child, root = court->root;
    assert_refused(ebb_region_close(child), EBB_E_BUSY);
    assert_refused(ebb_region_reset(child, 0), EBB_E_BUSY);
    assert_refused(ebb_close_keeping(child, root, NULL, 0, NULL, NULL), EBB_E_BUSY);
    assert_refused(ebb_objects_close_keeping(child, root, NULL, 0, NULL, NULL, NULL), EBB_E_BUSY);
    assert_text_names("'child'");
    assert_refused(ebb_region_close(root), EBB_E_BUSY); /* the end of what is below it goes on */
    assert_text_names("'root'");
    return 7;
}

static void a_cleanup_that_is_run_early_cannot_end_its_region_either(void **state) {
    struct court *court = *state;
    struct ebb_cleanup node = {.run = ask_for_more, .data = court};
    assert_int_equal(ebb_cleanup_add(court->child, &node), 0);
    assert_int_equal(ebb_cleanup_run(&node), 7);
    assert_int_equal(ebb_cleanup_run(&node), 0);
    assert_true(ebb_region_is_open(court->child));
    assert_int_equal(ebb_region_close(court->child), 0);
}

static void a_region_that_is_being_closed_is_not_closed_once_more(void **state) {
    struct court *court = *state;
    struct ebb_cleanup node = {.run = ask_for_more, .data = court};
    assert_int_equal(ebb_cleanup_add(court->child, &node), 0);
    assert_int_equal(ebb_region_close(court->child), EBB_E_CLEANUP);
    assert_false(ebb_region_is_open(court->child));
    assert_int_equal(ebb_check_pool(court->pool), 0);
}

static void what_is_no_block_is_not_released_from_afar(void **state) {
    struct court *court = *state;
    _Alignas(16) char here[16];
    court_refused(court, ebb_region_release_remote(court->closed, court->small), EBB_E_STALE, NULL);
    court_refused(court, ebb_region_release_remote(court->child, here), EBB_E_FOREIGN, "'child'",
                  NULL);
    court_refused(court, ebb_region_release_remote(court->child, court->small + 8), EBB_E_FOREIGN,
                  NULL);
    court_refused(court, ebb_region_release_remote(court->measuring, court->phantom),
                  EBB_E_MEASURING, NULL);
    assert_int_equal(ebb_region_release_remote(court->child, NULL), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TRIAL(a_closed_regions_handle_is_stale_everywhere),
        TRIAL(handles_that_never_were_one_are_stale),
        TRIAL(a_zero_handle_is_stale_for_every_call_but_the_inline_one),
        TRIAL(the_text_of_a_stale_handle_names_its_generation),
        TRIAL(rewinding_to_marks_that_are_not_valid_is_refused),
        TRIAL(options_that_make_no_sense_open_nothing),
        TRIAL(a_hint_above_a_limit_opens_nothing),
        TRIAL(pool_options_of_another_size_make_no_pool),
        TRIAL(options_that_a_kind_of_pool_has_no_use_for_are_refused),
        TRIAL(pools_that_cannot_be_destroyed_say_why),
        TRIAL(calls_without_a_pool_are_refused),
        TRIAL(stats_of_another_size_are_not_filled),
        TRIAL(reports_without_reader_or_format_are_refused),
        TRIAL(cleanups_that_make_no_sense_are_refused),
        TRIAL(a_cleanup_that_is_run_early_cannot_end_its_region_either),
        TRIAL(a_region_that_is_being_closed_is_not_closed_once_more),
        TRIAL(what_is_no_block_is_not_released_from_afar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
