// SPDX-License-Identifier: Apache-2.0
/*
 * exhausted.c - the report of an allocation that is about to fail for want of memory or by a
 * limit: called exactly then, with all numbers, and never for a caller's mistake; its handler is
 * left alone once another is set.
 */
#include "kit/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned calls;
static char seen[4096];

static void note(void *context, const char *text) {
    assert_ptr_equal(context, &calls);
    calls++;
    snprintf(seen, sizeof seen, "%s", text);
}

static int listen(void **state) {
    calls = 0;
    seen[0] = '\0';
    ebb_report_on_exhausted(note, &calls);
    return stage_open(state);
}

static int stop(void **state) {
    ebb_report_on_exhausted(NULL, NULL);
    return stage_close(state);
}

static void assert_seen(const char *part) {
    if (!strstr(seen, part))
        fail_msg("'%s' is not in '%s'", part, seen);
}

static void a_limit_is_reported_with_every_level_on_the_way_up(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.name = "limited", .parent = stage->root, .limit_bytes = 9984);
    ebb_region child = OPEN(.name = "child", .parent = limited);
    block_of(child, 4096, 64);
    assert_no_block(ebb_region_alloc(child, 6016, 128), EBB_E_REGION_LIMIT);
    assert_int_equal(calls, 1);
    static const char *const parts[] = {
        "EBB_E_REGION_LIMIT", "6016", "alignment 128", "large lane", "region 'child'",
        "region 'limited'", "limit 9984 with 4096 charged", "region 'root'", "pool 'stage'",
        "process:"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_seen(parts[i]);
    block_of(child, 16, 16);
    assert_int_equal(calls, 1);
}

static void pool_limits_and_exhausted_addresses_are_reported_too(void **state) {
    struct stage *stage = *state;
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 8192), 0);
    assert_no_block(ebb_region_alloc(stage->root, 10000, 64), EBB_E_POOL_LIMIT);
    assert_int_equal(calls, 1);
    assert_seen("EBB_E_POOL_LIMIT");
    assert_seen("limit 8192");
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
    assert_no_block(ebb_region_alloc(stage->root, (size_t)1 << 52, 64), EBB_E_MEMORY);
    assert_int_equal(calls, 2);
    assert_seen("EBB_E_MEMORY");
}

static void the_small_lane_is_named(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 15);
    assert_no_block(ebb_region_alloc(limited, 3, 4), EBB_E_REGION_LIMIT);
    assert_seen("3 bytes at alignment 4, small lane");
}

static void the_last_error_is_the_same_after_the_report(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 100);
    assert_no_block(ebb_region_alloc(limited, 200, 16), EBB_E_REGION_LIMIT);
    assert_seen(ebb_last_error_text());
}

/* What others have released is in the way of the budget no more; pages are. */
static void the_reason_is_the_one_that_there_is_in_the_end(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = MIB);
    ebb_region child = OPEN(.parent = limited), other = OPEN(.parent = limited);
    block_of(other, 600 * KIB, 64);
    void *released = block_of(other, 300 * KIB, 64);
    block_of(other, 50 * KIB, 64);
    assert_int_equal(ebb_region_release_remote(other, released), 0);
    assert_no_block(ebb_region_alloc(child, 800 * KIB, 64), EBB_E_REGION_LIMIT);
    assert_seen("has 665600 of 1048576 bytes in use");
    released = block_of(other, 300 * KIB, 64);
    assert_int_equal(ebb_region_release_remote(other, released), 0);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 1), 0);
    assert_no_block(ebb_region_alloc(child, 350 * KIB, 64), EBB_E_POOL_LIMIT);
    assert_seen("EBB_E_POOL_LIMIT");
    assert_int_equal(calls, 2);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
}

static void mistakes_of_the_caller_are_not_reported(void **state) {
    struct stage *stage = *state;
    assert_no_block(ebb_region_alloc(stage->root, 1, 3), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(stage->root, SIZE_MAX, 1), EBB_E_SIZE);
    assert_int_equal(ebb_region_seal(stage->root), 0);
    assert_no_block(ebb_region_alloc(stage->root, 1, 1), EBB_E_SEALED);
    assert_int_equal(ebb_region_close(stage->root), 0);
    assert_no_block(ebb_region_alloc(stage->root, 1, 1), EBB_E_STALE);
    assert_int_equal(calls, 0);
}

static void setting_a_handler_returns_the_one_before(void **state) {
    assert_ptr_equal(ebb_report_on_exhausted(NULL, NULL), note);
    assert_null(ebb_report_on_exhausted(note, &calls));
    assert_ptr_equal(ebb_report_on_exhausted(note, &calls), note);
}

static void without_a_handler_allocations_just_fail(void **state) {
    struct stage *stage = *state;
    ebb_report_on_exhausted(NULL, NULL);
    assert_no_block(ebb_region_alloc(stage->root, (size_t)1 << 52, 64), EBB_E_MEMORY);
    assert_int_equal(calls, 0);
}

static unsigned count_seen(const char *part) {
    unsigned count = 0;
    for (const char *at = seen; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void names_cannot_forge_lines_nor_act_on_a_terminal(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.name = "po\nol\x1b[31m", .limit_used_bytes = 1000);
    ebb_region region = OPEN(.pool = pool, .name = "a\n  region 'root': used 0");
    assert_no_block(ebb_region_alloc(region, 5000, 16), EBB_E_POOL_LIMIT);
    assert_seen("\n  pool 'po?ol?[31m': reserved ");
    assert_seen("\n  region 'a?  region 'root': used 0': used 0, ");
    assert_int_equal(count_seen("\n"), 4); /* what was asked, the pool, the process, the region */
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

static void assert_ends_with(const char *part) {
    size_t length = strlen(seen), end = strlen(part);
    if (length < end || strcmp(seen + length - end, part) != 0)
        fail_msg("'%s' is not the end of '%s'", part, seen);
}

/* Only the uppermost has a limit. */
static void a_deep_tree_is_reported_with_its_limit_and_the_nearest(void **state) {
    struct stage *stage = *state;
    ebb_region at = OPEN(.name = "limited", .parent = stage->root, .limit_bytes = 100);
    for (int i = 0; i < 200; i++)
        at = OPEN(.name = "a name of thirty one characters", .parent = at);
    assert_no_block(ebb_region_alloc(at, 200, 16), EBB_E_REGION_LIMIT);
    assert_int_equal(calls, 1);
    assert_int_equal(count_seen("region 'a name of"), 4);
    assert_seen("region 'limited': used 0, ");
    assert_seen("limit 100 with 0 charged\n");
    assert_seen("  pool 'stage': ");
    assert_seen("  process: ");
    assert_ends_with("\n  ... 197 more on the way up\n");
}

static void of_many_limits_as_many_are_reported_as_have_room(void **state) {
    struct stage *stage = *state;
    ebb_region at = stage->root;
    for (int i = 0; i < 100; i++)
        at = OPEN(.name = "a name of thirty one characters", .parent = at,
                  .limit_bytes = (size_t)1 << 40);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 1 * MIB), 0);
    assert_no_block(ebb_region_alloc(at, 2 * MIB, 64), EBB_E_POOL_LIMIT);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
    unsigned shown = count_seen("limit 1099511627776 with 0 charged\n");
    char last[64];
    snprintf(last, sizeof last, "charged\n  ... %u more on the way up\n", 101 - shown);
    assert_in_range(shown, 5, 50);
    assert_ends_with(last);
    assert_seen("limit 1048576");
    assert_seen("  process: ");
}

/* ---- a handler at work while another is set ---- */

struct slow {
    sem_t at_work;
    atomic_bool done;
    ebb_pool *pool;
};

static void be_slow(void *context, const char *text) {
    struct slow *slow = context;
    (void)text;
    sem_post(&slow->at_work);
    usleep(100000);
    atomic_store(&slow->done, true);
}

static void *exhaust(void *context) {
    struct slow *slow = context;
    ebb_region region = OPEN(.pool = slow->pool, .limit_bytes = 100);
    void *none = ebb_region_alloc(region, 200, 16);
    (void)ebb_region_close(region);
    return none;
}

/* Returns when the handler is at work on a thread. */
static pthread_t begin_in_handler(ebb_exhausted_fn *handler, struct slow *slow) {
    pthread_t thread;
    sem_init(&slow->at_work, 0, 0);
    atomic_init(&slow->done, false);
    ebb_report_on_exhausted(handler, slow);
    assert_int_equal(pthread_create(&thread, NULL, exhaust, slow), 0);
    sem_wait(&slow->at_work);
    return thread;
}

static pthread_t be_in_the_handler(struct slow *slow) {
    return begin_in_handler(be_slow, slow);
}

static void who_sets_another_handler_waits_for_calls_of_the_one_before(void **state) {
    struct stage *stage = *state;
    struct slow slow = {.pool = stage->pool};
    pthread_t thread = be_in_the_handler(&slow);
    assert_ptr_equal(ebb_report_on_exhausted(NULL, NULL), be_slow);
    assert_true(atomic_load(&slow.done));
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void set_itself_and_be_slow(void *context, const char *text) {
    ebb_report_on_exhausted(be_slow, context);
    be_slow(context, text);
}

static void it_waits_for_those_that_have_set_another_themselves(void **state) {
    struct stage *stage = *state;
    struct slow slow = {.pool = stage->pool};
    pthread_t thread = begin_in_handler(set_itself_and_be_slow, &slow);
    assert_ptr_equal(ebb_report_on_exhausted(NULL, NULL), be_slow);
    assert_true(atomic_load(&slow.done));
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void set_none(void *context, const char *text) {
    (void)text;
    calls += ebb_report_on_exhausted(NULL, NULL) == set_none && context == &calls;
}

static void a_handler_may_set_another_itself(void **state) {
    struct stage *stage = *state;
    ebb_report_on_exhausted(set_none, &calls);
    for (int i = 0; i < 2; i++)
        assert_no_block(ebb_region_alloc(stage->root, (size_t)1 << 52, 64), EBB_E_MEMORY);
    assert_int_equal(calls, 1);
}

/* Which has not the thread that is at work. */
static void set_another_in_a_child(struct stage *stage, pid_t (*make)(void)) {
    struct slow slow = {.pool = stage->pool};
    int status = 1;
    pthread_t thread = be_in_the_handler(&slow);
    pid_t child = make();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        _exit(ebb_report_on_exhausted(NULL, NULL) != be_slow);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_forked_child_does_not_wait(void **state) {
    set_another_in_a_child(*state, fork);
}

/* No handler of forks runs there. */
static pid_t fork_raw(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void nor_does_one_that_the_c_library_has_not_made(void **state) {
    set_another_in_a_child(*state, fork_raw);
}

#define EXHAUSTED_TEST(test) cmocka_unit_test_setup_teardown(test, listen, stop)

/* What is to be born in the parent finds no room there, and is placed in the step. */
static void a_step_that_has_another_place_for_a_block_reports_nothing(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "step"));
    for (int i = 0; i < 3; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 0);
        block_of(step.region, 4 * MIB, 64);
        void *larger = block_of(step.region, i < 2 ? 2000 : 100000, 64); /* than the plan says */
        assert_int_equal(ebb_region_release(step.region, larger), 0);
        assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, i < 2 ? 0 : 1), 0);
        while (i == 2 && ebb_region_alloc(stage->root, 50000, 64))
            continue;
        struct ebb_survivor kept = survivor_of(block_of(step.region, 50000, 64), 0);
        assert_ptr_equal(ebb_region_of(kept.block).lane, step.region.lane);
        assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
        assert_int_equal(ebb_step_end_keeping(step, stage->root, &kept, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(stage->root, kept.block), 0);
    }
    assert_int_equal(calls, 1); /* of the root's */
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        EXHAUSTED_TEST(a_limit_is_reported_with_every_level_on_the_way_up),
        EXHAUSTED_TEST(pool_limits_and_exhausted_addresses_are_reported_too),
        EXHAUSTED_TEST(the_small_lane_is_named),
        EXHAUSTED_TEST(the_last_error_is_the_same_after_the_report),
        EXHAUSTED_TEST(the_reason_is_the_one_that_there_is_in_the_end),
        EXHAUSTED_TEST(mistakes_of_the_caller_are_not_reported),
        EXHAUSTED_TEST(setting_a_handler_returns_the_one_before),
        EXHAUSTED_TEST(without_a_handler_allocations_just_fail),
        EXHAUSTED_TEST(names_cannot_forge_lines_nor_act_on_a_terminal),
        EXHAUSTED_TEST(a_deep_tree_is_reported_with_its_limit_and_the_nearest),
        EXHAUSTED_TEST(of_many_limits_as_many_are_reported_as_have_room),
        EXHAUSTED_TEST(who_sets_another_handler_waits_for_calls_of_the_one_before),
        EXHAUSTED_TEST(it_waits_for_those_that_have_set_another_themselves),
        EXHAUSTED_TEST(a_handler_may_set_another_itself),
        EXHAUSTED_TEST(a_forked_child_does_not_wait),
        EXHAUSTED_TEST(nor_does_one_that_the_c_library_has_not_made),
        EXHAUSTED_TEST(a_step_that_has_another_place_for_a_block_reports_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
