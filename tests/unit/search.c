// SPDX-License-Identifier: Apache-2.0
/*
 * search.c - the thread that looks for better plans: it begins while nobody has the site's lock,
 * since the C library allocates for it, and a site that cannot have one does without.
 *
 * This program's pthread_create() takes the place of the library's. Not where a sanitizer has one.
 */
#include "kit/hard.h"

#include "base/os.h"
#include "step/site.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_THREADS_OF_ITS_OWN 0
#else
#define HAS_THREADS_OF_ITS_OWN 1
#endif

static struct ebb_site *watched;
static unsigned asked, refusals, found_locked;
static unsigned heard; /* signals that a thread would take which begins */
static size_t leaves; /* so many bytes to what is learnt, once there is a thread; 0: all */

static unsigned count_heard(void) {
    sigset_t blocked;
    unsigned count = 0;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number <= SIGSYS; number++)
        count += number != SIGKILL && number != SIGSTOP && !sigismember(&blocked, number);
    return count;
}

#if HAS_THREADS_OF_ITS_OWN
static void limit_what_is_learnt(void) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    if (leaves && ebb_pool_read_stats(plan_pool(), &stats) == 0)
        ebb_pool_set_reserved_limit(plan_pool(), stats.owned + leaves);
}

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *),
                   void *context) {
    asked++;
    heard += count_heard(); /* the thread begins with what is blocked here */
    if (watched && pthread_mutex_trylock(&watched->lock) == 0)
        pthread_mutex_unlock(&watched->lock);
    else
        found_locked++;
    if (refusals) {
        refusals--;
        return EAGAIN;
    }
    limit_what_is_learnt();
    create_fn *create;
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&create, &found, sizeof create);
    return create(thread, attributes, begin, context);
}
#endif

static void hard_step(ebb_site *site, uint64_t tag) {
    ebb_step step = ebb_step_begin(site, tag);
    assert_true(hard_blocks(step));
    assert_int_equal(ebb_step_end(step), 0);
}

static ebb_site *watch_site(const struct stage *stage) {
    watched = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .search_ns = 1000000));
    assert_non_null(watched);
    asked = refusals = found_locked = heard = 0;
    return watched;
}

static void it_begins_while_nobody_has_the_lock(void **state) {
    if (!HAS_THREADS_OF_ITS_OWN)
        skip();
    ebb_site *site = watch_site(*state);
    for (unsigned i = 0; i < 5; i++)
        hard_step(site, 1);
    assert_int_equal(asked, 1);
    assert_int_equal(found_locked, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

/* A signal of the program would find a thread in it that nobody expects. */
static void it_hears_no_signal_of_the_program(void **state) {
    if (!HAS_THREADS_OF_ITS_OWN)
        skip();
    ebb_site *site = watch_site(*state);
    unsigned before = count_heard();
    hard_step(site, 1);
    hard_step(site, 1);
    assert_int_equal(asked, 1);
    assert_int_equal(heard, 0);
    assert_true(before > 0 && count_heard() == before); /* the program's own thread does */
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

static void a_site_without_it_goes_on_and_asks_again(void **state) {
    if (!HAS_THREADS_OF_ITS_OWN)
        skip();
    ebb_site *site = watch_site(*state);
    refusals = 1;
    for (unsigned i = 0; i < 5; i++)
        hard_step(site, 1);
    assert_true(asked == 1 && refusals == 0 && !site->searcher);
    for (unsigned i = 0; i < 5; i++)
        hard_step(site, 2); /* a plan of another tag's */
    assert_true(asked == 2 && found_locked == 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

/* A plan that waits for it, and serves a kind of step when a row of these is found. */
static void what_waits_for_it_waits_as_that_of_a_kind(void **state) {
    if (!HAS_THREADS_OF_ITS_OWN)
        skip();
    ebb_site *site = watch_site(*state);
    unsigned waiting = 0;
    refusals = 100;
    for (unsigned i = 0; i < 40 && !site_stats(site).row_steps; i++)
        if (i % 4 < 3) {
            hard_step(site, 1);
        } else {
            ebb_step step = ebb_step_begin(site, 1);
            for (unsigned k = 0; k < 50; k++)
                block_of(step.region, 100000, 64);
            assert_int_equal(ebb_step_end(step), 0);
        }
    assert_int_equal(site_stats(site).row_steps, 4);
    for (unsigned i = 0; i < site->course_count; i++)
        waiting += site->courses[i].kind.count && site->courses[i].searched_for;
    assert_in_range(waiting, 1, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

static void a_site_ends_that_never_had_it(void **state) {
    if (!HAS_THREADS_OF_ITS_OWN)
        skip();
    ebb_site *site = watch_site(*state);
    refusals = 100;
    for (unsigned tag = 1; tag < 4; tag++)
        for (unsigned i = 0; i < 5; i++)
            hard_step(site, tag);
    assert_true(asked >= 2 && !site->searcher);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

/* For the first course, or it will. */
static bool is_searching(struct ebb_site *site) {
    pthread_mutex_lock(&site->lock);
    bool searching = site->courses[0].searched_for || search_is_for(site, site->courses);
    pthread_mutex_unlock(&site->lock);
    return searching;
}

/* No time to find a better one. */
static void a_search_in_vain_leaves_the_plan_as_it_is(void **state) {
    ebb_site *site = watch_site(*state);
    site->options.search_ns = 1;
    hard_step(site, 1);
    hard_step(site, 1);
    assert_non_null(site->searcher);
    while (is_searching(site))
        sched_yield();
    assert_int_equal(site->stats.plans, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

static void count_reports(void *context, const char *text) {
    (void)text;
    atomic_fetch_add((atomic_uint *)context, 1);
}

/* There is room for what is to be packed, but not to pack it: the plan stays, and that is no
 * failure of the program's. */
static void a_search_without_memory_is_not_reported(void **state) {
    if (!HAS_THREADS_OF_ITS_OWN)
        skip();
    static atomic_uint reports;
    ebb_site *site = watch_site(*state);
    leaves = 32 * KIB;
    ebb_report_on_exhausted(count_reports, &reports);
    hard_step(site, 1);
    hard_step(site, 1);
    while (is_searching(site))
        sched_yield();
    ebb_report_on_exhausted(NULL, NULL);
    assert_int_equal(ebb_pool_set_reserved_limit(plan_pool(), 0), 0);
    leaves = 0;
    assert_int_equal(site->stats.plans, 1);
    assert_int_equal(reports, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

/* A thread is there while there is a plan to be searched for. */
static bool is_there(void) {
    size_t threads = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    while (readdir(folder))
        threads++;
    closedir(folder);
    return threads > 2 + 1; /* its own name, the one above, and this thread */
}

static void await_end(void) {
    for (unsigned i = 0; i < 5000 && is_there(); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_false(is_there());
}

/* One that slept would keep a process whose other threads have ended. */
static void it_ends_when_there_is_nothing_to_search(void **state) {
    if (!HAS_THREADS_OF_ITS_OWN)
        skip();
    ebb_site *site = watch_site(*state);
    for (uint64_t tag = 1; tag < 4; tag++) {
        hard_step(site, tag);
        hard_step(site, tag);
        assert_int_equal(asked, tag);
        await_end();
        assert_false(is_searching(site));
    }
    assert_int_equal(found_locked, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

/* As a hard step, with large blocks, so that a better plan is soon a page lower. */
static void large_step(ebb_site *site, uint64_t tag) {
    ebb_step step = ebb_step_begin(site, tag);
    void *live[64] = {NULL};
    uint32_t chance = 3;
    for (unsigned k = 0; k < 400; k++) {
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        void **at = &live[chance >> 26];
        assert_int_equal(ebb_region_release(step.region, *at), 0);
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        *at = block_of(step.region, 4096 + (chance >> 14), 64);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

static bool has_plans(struct ebb_site *site, uint64_t plans, uint64_t within_ns) {
    struct timespec pause = {.tv_nsec = 1000000};
    for (uint64_t began = os.now_ns();
         site_stats(site).plans < plans && os.now_ns() - began < within_ns;)
        nanosleep(&pause, NULL);
    return site_stats(site).plans == plans;
}

/* A search that had no processor finds nothing, and is not made again: another site has four times
 * as long. */
static void expect_found(bool (*finds)(const struct stage *stage, uint64_t search_ns),
                         const struct stage *stage) {
    bool found = false;
    for (uint64_t budget = HARD_SEARCH_NS; !found && budget < 100 * HARD_SEARCH_NS; budget *= 4)
        found = finds(stage, budget);
    assert_true(found);
}

/* Long enough for a better plan to be found, while others are at work. */
#define FOUND_NS 200000000L

/* It may get a processor late. */
static void await_begin(struct ebb_site *site) {
    for (bool begun = false; !begun; sched_yield()) {
        pthread_mutex_lock(&site->lock);
        begun = search_is_for(site, site->courses);
        pthread_mutex_unlock(&site->lock);
    }
}

/* As if another thread were making the plan anew, which has no use for the search. */
static void interrupt(struct ebb_site *site, struct course *course) {
    pthread_mutex_lock(&site->lock);
    course->planning = true;
    search_stop(site, course);
    pthread_mutex_unlock(&site->lock);
}

/* Another plan takes the place of the course's, and is searched for in vain. */
static void replace(struct ebb_site *site) {
    pthread_mutex_lock(&site->lock);
    site->options.search_ns = 1;
    pthread_mutex_unlock(&site->lock);
    large_step(site, 1);
}

/* It has an hour, and enough of that to have found a better plan; then the first course's plan is
 * not the one any more that is to be beaten, or it is just being made anew. */
static void what_was_found_too_late_is_dropped(void **state) {
    size_t owned = pool_stats_of(plan_pool()).owned;
    for (unsigned making = 0; making < 2; making++) {
        ebb_site *site = watch_site(*state);
        struct course *course = &site->courses[0];
        site->options.search_ns = UINT64_C(3600) * 1000000000;
        hard_step(site, 1);
        hard_step(site, 1);
        assert_true(site_stats(site).plans == 1 && is_searching(site));
        await_begin(site);
        nanosleep(&(struct timespec){.tv_nsec = FOUND_NS}, NULL);
        assert_true(is_searching(site));
        if (making)
            interrupt(site, course);
        else
            replace(site);
        while (is_searching(site))
            sched_yield();
        assert_int_equal(site_stats(site).plans, making ? 1 : 2);
        assert_true(site_stats(site).planning_ns >= FOUND_NS / 2); /* the thread's is a part */
        course->planning = false;
        assert_int_equal(ebb_site_destroy(site), 0);
        watched = NULL;
    }
    assert_int_equal(pool_stats_of(plan_pool()).owned, owned);
}

/* It has an hour for each plan, and then much less. */
static bool finds_for_what_replaced(const struct stage *stage, uint64_t search_ns) {
    ebb_site *site = watch_site(stage);
    site->options.search_ns = UINT64_C(3600) * 1000000000;
    hard_step(site, 1);
    hard_step(site, 1);
    assert_true(site_stats(site).plans == 1 && is_searching(site));
    await_begin(site);
    pthread_mutex_lock(&site->lock);
    site->options.search_ns = search_ns;
    pthread_mutex_unlock(&site->lock);
    large_step(site, 1);
    bool found = has_plans(site, 3, 4 * search_ns); /* the larger one, and a better one */
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
    return found;
}

static void what_is_replaced_is_not_searched_for_any_more(void **state) {
    expect_found(finds_for_what_replaced, *state);
}

/* That of another tag is made while it is busy. */
static bool finds_for_each_plan(const struct stage *stage, uint64_t search_ns) {
    ebb_site *site = watch_site(stage);
    site->options.search_ns = search_ns;
    for (uint64_t tag = 1; tag < 3; tag++) {
        large_step(site, tag);
        large_step(site, tag);
    }
    bool found = has_plans(site, 4, 4 * search_ns);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
    return found;
}

static void each_plan_has_its_turn(void **state) {
    expect_found(finds_for_each_plan, *state);
}

/* As a large step, of many more blocks. */
static void long_step(ebb_site *site, uint64_t tag) {
    enum { BLOCKS = 5000, LIVE = 512 };
    ebb_step step = ebb_step_begin(site, tag);
    void *live[LIVE] = {NULL};
    uint32_t chance = 3;
    for (unsigned k = 0; k < BLOCKS; k++) {
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        void **at = &live[chance >> 23];
        assert_int_equal(ebb_region_release(step.region, *at), 0);
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        *at = block_of(step.region, 4096 + (chance >> 18), 64);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

/* The thread is the last that needs much, for the plans of all tags. */
static void what_it_needed_goes_back_to_the_system(void **state) {
    if (!HAS_THREADS_OF_ITS_OWN)
        skip();
    ebb_site *site = watch_site(*state);
    for (uint64_t tag = 1; tag < 3; tag++) {
        long_step(site, tag);
        long_step(site, tag);
    }
    assert_non_null(site->searcher);
    await_end();
    assert_true(pool_stats_of(plan_pool()).cached <= 64 * KIB);
    assert_int_equal(ebb_site_destroy(site), 0);
    watched = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(it_begins_while_nobody_has_the_lock),
        STAGED(it_hears_no_signal_of_the_program),
        STAGED(a_site_without_it_goes_on_and_asks_again),
        STAGED(what_waits_for_it_waits_as_that_of_a_kind),
        STAGED(a_site_ends_that_never_had_it),
        STAGED(it_ends_when_there_is_nothing_to_search),
        STAGED(a_search_in_vain_leaves_the_plan_as_it_is),
        STAGED(a_search_without_memory_is_not_reported),
        STAGED(what_was_found_too_late_is_dropped),
        STAGED(what_is_replaced_is_not_searched_for_any_more),
        STAGED(each_plan_has_its_turn),
        STAGED(what_it_needed_goes_back_to_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
