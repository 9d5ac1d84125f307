// SPDX-License-Identifier: Apache-2.0
/*
 * fork_threads.c - a child of fork() gives back what was exported before it, and takes steps of the
 * sites that it had, whatever other threads were doing: it finds no lock taken, and nobody to wait
 * for.
 */
#include "base/os.h"
#include "kit/dlpack.h"
#include "kit/hard.h"
#include "pool/pool.h"
#include "step/site.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

/* False if one fails. */
static bool take_steps(ebb_site *site, uint64_t tag, unsigned count) {
    bool right = true;
    for (unsigned i = 0; i < count; i++) {
        ebb_step step = ebb_step_begin(site, tag);
        right = hard_blocks(step) && right;
        right = right && ebb_step_end(step) == 0;
    }
    return right;
}

static pid_t fork_raw(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* A child does it, in time. */
static void expect_in_child_of(pid_t (*make)(void), bool (*act)(void *context), void *context) {
    pid_t child = make();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(100); /* if a lock were held, for ever */
        _exit(act(context) ? 0 : 1);
    }
    int status;
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void expect_in_child(bool (*act)(void *context), void *context) {
    expect_in_child_of(fork, act, context);
}

static bool steps_are_taken(void *site) {
    return take_steps(site, 1, 4);
}

static bool site_ends(void *site) {
    return take_steps(site, 1, 4) && ebb_site_destroy(site) == 0;
}

/* A thread is at work: holds a lock, again and again for a while. */
struct worker {
    pthread_mutex_t *lock;
    _Atomic bool works, ends;
};

static void *hold_lock(void *context) {
    struct worker *worker = context;
    while (!atomic_load(&worker->ends)) {
        pthread_mutex_lock(worker->lock);
        atomic_store(&worker->works, true);
        usleep(20000);
        pthread_mutex_unlock(worker->lock);
        usleep(1000);
        atomic_store(&worker->works, false);
    }
    return NULL;
}

static void fork_while_held(pthread_mutex_t *lock, bool (*act)(void *context), void *context) {
    struct worker worker = {.lock = lock};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold_lock, &worker), 0);
    for (unsigned i = 0; i < 3; i++) {
        while (!atomic_load(&worker.works))
            usleep(100);
        expect_in_child(act, context);
    }
    atomic_store(&worker.ends, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

struct late {
    DLManagedTensor *export;
    ebb_pool *pool;
};

static bool late_is_given_back(void *context) {
    struct late *late = context;
    give_back(late->export);
    return ebb_pool_trim(late->pool, 0) != SIZE_MAX;
}

static void a_fork_waits_until_nobody_is_at_work_in_a_pool(void **state) {
    const struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct late late = {share(tensor_of_bytes(step, 70000)), stage->pool};
    assert_int_equal(ebb_region_close(step), 0);
    fork_while_held(&stage->pool->lock, late_is_given_back, &late);
    assert_true(export_holds(late.export));
    give_back(late.export);
    ebb_check_pool(stage->pool);
    assert_int_equal(pool_stats_of(stage->pool).held, 0);
}

static bool region_measures(void *context) {
    ebb_region region = OPEN(.measure = true);
    return ebb_region_alloc(region, 70000, 64) && ebb_region_measured(region) >= 70000 &&
           ebb_region_close(region) == 0 && !context;
}

static void a_fork_waits_until_nobody_grows_while_measuring(void **state) {
    (void)state;
    assert_true(region_measures(NULL));
    fork_while_held(&pool_for_measuring()->lock, region_measures, NULL);
    assert_true(region_measures(NULL));
}

static void a_fork_waits_until_nobody_is_at_work_in_a_site(void **state) {
    const struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    fork_while_held(&site->lock, steps_are_taken, site);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Threads that take steps of one site, and of their own, which come and go. */
struct crowd {
    ebb_site *site;
    _Atomic bool ends;
};

static void *come_and_go(void *context) {
    struct crowd *crowd = context;
    bool right = true;
    while (!atomic_load(&crowd->ends)) {
        ebb_site *own = SITE(.name = "own", .pool = crowd->site->options.pool);
        right = right && own && take_steps(crowd->site, 1, 1) && take_steps(own, 1, 3) &&
                ebb_site_destroy(own) == 0;
    }
    return right ? context : NULL;
}

/* Steps that other threads had open stay open in the child, so that the site cannot end there. */
static void children_take_steps_while_sites_come_and_go(void **state) {
    const struct stage *stage = *state;
    struct crowd crowd = {.site = SITE(.pool = stage->pool)};
    pthread_t threads[3];
    void *result;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &crowd), 0);
    for (unsigned i = 0; i < 40; i++)
        expect_in_child(steps_are_taken, crowd.site);
    atomic_store(&crowd.ends, true);
    for (unsigned i = 0; i < 3; i++)
        assert_true(pthread_join(threads[i], &result) == 0 && result);
    assert_int_equal(ebb_site_destroy(crowd.site), 0);
}

static uint64_t count_plans(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    return ebb_site_read_stats(site, &stats) == 0 ? stats.plans : 0;
}

static bool finds(ebb_site *site, uint64_t tag, uint64_t search_ns) {
    uint64_t before = count_plans(site), began = os.now_ns();
    pthread_mutex_lock(&site->lock);
    site->options.search_ns = search_ns;
    pthread_mutex_unlock(&site->lock);
    bool right = take_steps(site, tag, 4);
    while (right && count_plans(site) < before + 2 && os.now_ns() - began < 2 * search_ns) {
        sched_yield();
        right = take_steps(site, tag, 1);
    }
    return right && count_plans(site) >= before + 2;
}

/* A plan of another tag's, and one that is better: found by a thread of the child's. One that had
 * no processor finds nothing, and is not asked again: the next tag's has four times as long. */
static bool site_searches(void *context) {
    ebb_site *site = context;
    uint64_t tag = 2;
    bool found = false;
    for (uint64_t budget = HARD_SEARCH_NS; !found && budget < 100 * HARD_SEARCH_NS; budget *= 4)
        found = finds(site, tag++, budget);
    return found && ebb_site_destroy(site) == 0;
}

static bool steps_are_planned(void *context) {
    ebb_site *site = context;
    return take_steps(site, 1, 4) && count_plans(site) == 1;
}

/* It needs no draft that others may have been at work with. */
static bool plans_are_made_anew(void *context) {
    ebb_site *site = context;
    return !site->courses[0].noted && steps_are_planned(site);
}

static void a_child_makes_the_plans_that_others_were_making(void **state) {
    const struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool);
    assert_true(take_steps(site, 1, 1));
    site->courses[0].planning = true; /* as while a thread is at work with them */
    assert_true(take_steps(site, 1, 4) && count_plans(site) == 0);
    assert_non_null(site->courses[0].noted);
    expect_in_child(plans_are_made_anew, site);
    site->courses[0].planning = false;
    assert_true(steps_are_planned(site));
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- steps that others have open ---- */

struct opener {
    ebb_site *site;
    ebb_step step; /* once it is open */
    sem_t open, ends;
    bool right;
};

/* The second one is bare where the first was, too. */
static void *keep_open(void *context) {
    struct opener *opener = context;
    opener->right = ebb_step_end(ebb_step_begin(opener->site, 1)) == 0;
    opener->step = ebb_step_begin(opener->site, 1);
    sem_post(&opener->open);
    sem_wait(&opener->ends);
    opener->right = opener->right && ebb_step_end(opener->step) == 0;
    return NULL;
}

/* Steps are alone; the site can end once the other step has. */
static bool nobody_is_met(void *context) {
    const struct opener *opener = context;
    ebb_site *site = opener->site;
    uint64_t crowded = site->crowded;
    bool right = take_steps(site, 1, 200) && site->crowded == crowded && site->open_most == 0;
    right = right && ebb_site_destroy(site) == EBB_E_BUSY;
    right = right && (site->options.scope || ebb_step_end(opener->step) == 0) &&
            take_steps(site, 1, 1) && site->crowded == crowded;
    return right && (site->options.scope || ebb_site_destroy(site) == 0);
}

static bool child_meets_nobody(void *context) {
    pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (child == 0)
        _exit(!nobody_is_met(context));
    return waitpid(child, &status, 0) == child && status == 0 && nobody_is_met(context);
}

static void a_child_meets_no_step_that_others_had_open(void **state) {
    const struct stage *stage = *state;
    for (int scope = 0; scope < 2; scope++) {
        struct opener opener = {.site = SITE(.pool = stage->pool, .scope = scope != 0)};
        pthread_t thread;
        sem_init(&opener.open, 0, 0);
        sem_init(&opener.ends, 0, 0);
        assert_int_equal(pthread_create(&thread, NULL, keep_open, &opener), 0);
        sem_wait(&opener.open);
        expect_in_child(child_meets_nobody, &opener);
        sem_post(&opener.ends);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(opener.right);
        assert_int_equal(ebb_site_destroy(opener.site), 0);
    }
}

/* In the child there is no thread that searches, nor is one waited for. */
static void a_child_ends_a_site_that_is_searching(void **state) {
    const struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .search_ns = UINT64_C(3600) * 1000000000);
    assert_true(take_steps(site, 1, 5));
    assert_non_null(site->searcher);
    expect_in_child(site_ends, site);
    expect_in_child(site_searches, site);
    assert_true(take_steps(site, 1, 5));
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The thread that searches is left the time to take what it needs: no handler of forks waits. */
static void so_does_one_that_no_handler_of_forks_ran_in(void **state) {
    const struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .search_ns = UINT64_C(3600) * 1000000000);
    assert_true(take_steps(site, 1, 5));
    assert_non_null(site->searcher);
    usleep(300000);
    expect_in_child_of(fork_raw, site_ends, site);
    expect_in_child_of(fork_raw, site_searches, site);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- what is registered ---- */

static const struct ebb_field no_fields[1];
static struct ebb_type a_type = {.name = "a type", .bytes = sizeof(struct ebb_object),
                                 .fields = no_fields};

static bool is_registered(void *context) {
    (void)context;
    return ebb_type_register(&a_type) == 0 && ebb_sample_register("a kind") >= EBB_SAMPLE_USER;
}

static void *register_on_and_on(void *context) {
    bool right = true;
    while (!atomic_load((_Atomic bool *)context))
        right = right && is_registered(NULL);
    return right ? context : NULL;
}

static void a_fork_waits_until_nobody_registers(void **state) {
    (void)state;
    _Atomic bool ends = false;
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, register_on_and_on, &ends), 0);
    for (unsigned i = 0; i < 100; i++)
        expect_in_child(is_registered, NULL);
    atomic_store(&ends, true);
    assert_true(pthread_join(thread, &result) == 0 && result);
}

/* Whichever place they had among all. */
static void sites_that_have_ended_are_not_waited_for(void **state) {
    const struct stage *stage = *state;
    ebb_site *sites[4];
    for (unsigned first = 0; first < 4; first++)
        for (unsigned second = 0; second < 4; second++) {
            if (first == second)
                continue;
            for (unsigned i = 0; i < 4; i++)
                sites[i] = SITE(.pool = stage->pool);
            assert_int_equal(ebb_site_destroy(sites[first]), 0);
            assert_int_equal(ebb_site_destroy(sites[second]), 0);
            for (unsigned i = 0; i < 4; i++)
                if (i != first && i != second) {
                    expect_in_child(site_ends, sites[i]);
                    assert_int_equal(ebb_site_destroy(sites[i]), 0);
                }
        }
}

static bool allow_nothing(enum os_acquisition what) {
    (void)what;
    return false;
}

static bool nothing(void *context) {
    return context == NULL;
}

static void fork_in_handler(void *context, const char *text) {
    unsigned *calls = context;
    (void)text;
    ++*calls;
    expect_in_child(nothing, NULL);
}

/* Nobody hears of it but who begins the step: the handler, which may fork, would be called with the
 * lock of the site. */
static void a_step_that_gets_no_lane_calls_no_handler(void **state) {
    bool (*allow)(enum os_acquisition what) = os.allow;
    unsigned calls = 0;
    (void)state;
    ebb_site *site = SITE(.name = "wide", .ring = 64); /* wider than what the site begins with */
    assert_non_null(site);
    ebb_report_on_exhausted(fork_in_handler, &calls);
    alarm(20); /* if it hung, for ever */
    os.allow = allow_nothing;
    ebb_step step = ebb_step_begin(site, 0);
    os.allow = allow;
    alarm(0);
    ebb_report_on_exhausted(NULL, NULL);
    assert_false(ebb_region_is_open(step.region));
    assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
    assert_int_equal(calls, 0);
    assert_true(take_steps(site, 0, 4));
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_fork_waits_until_nobody_is_at_work_in_a_pool),
        STAGED(a_fork_waits_until_nobody_grows_while_measuring),
        STAGED(a_fork_waits_until_nobody_is_at_work_in_a_site),
        STAGED(children_take_steps_while_sites_come_and_go),
        STAGED(a_child_makes_the_plans_that_others_were_making),
        STAGED(a_child_meets_no_step_that_others_had_open),
        STAGED(a_child_ends_a_site_that_is_searching),
        STAGED(so_does_one_that_no_handler_of_forks_ran_in),
        STAGED(a_fork_waits_until_nobody_registers),
        STAGED(sites_that_have_ended_are_not_waited_for),
        cmocka_unit_test(a_step_that_gets_no_lane_calls_no_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
