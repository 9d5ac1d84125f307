// SPDX-License-Identifier: Apache-2.0
/*
 * scope_late.c - scopes that outlive their steps, and hold their sites: their thread ends them when
 * it next begins or ends another one; once it has ended, who destroys the site.
 */
#include "malloc/options.h"
#include "malloc/scoped.h"

#include <pthread.h>
#include <semaphore.h>

static int on_another_thread(void *(*body)(void *), void *context) {
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, body, context), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return (int)(intptr_t)result;
}

static void *close_region(void *region) {
    return (void *)(intptr_t)ebb_region_close(*(ebb_region *)region);
}

static void *destroy(void *site) {
    return (void *)(intptr_t)ebb_site_destroy(site);
}

static void expect_over(ebb_site *site) {
    assert_int_equal(on_another_thread(destroy, site), 0);
}

static void expect_open(ebb_site *site) {
    assert_int_equal(on_another_thread(destroy, site), EBB_E_BUSY);
}

static void begin_below(ebb_region parent, ebb_site *site) {
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    assert_true(ebb_region_is_open(step.region));
}

static void test_a_scope_that_another_thread_closed_ends_when_one_ends(void **state) {
    ebb_region run = OPEN(.name = "run");
    ebb_site *brief = SITE(.name = "brief");
    begin_below(run, brief);
    void *block = make(100, 1), *large = make(30000, 2);
    ebb_step inner = begin(*state);
    assert_int_equal(on_another_thread(close_region, &run), 0);
    expect_open(brief);
    finish(inner);
    assert_null(here.scope);
    expect_over(brief);
    end(block, 100, 1);
    end(large, 30000, 2);
}

/* The one that ends is the older one. */
static void test_it_ends_though_it_is_the_inner_one(void **state) {
    ebb_region run = OPEN(.name = "run");
    ebb_site *brief = SITE(.name = "brief");
    ebb_step outer = begin(*state);
    begin_below(run, brief);
    void *block = make(100, 1);
    assert_int_equal(on_another_thread(close_region, &run), 0);
    finish(outer);
    assert_null(here.scope);
    expect_over(brief);
    end(block, 100, 1);
}

enum { LARGE = 8000, LARGER = 2 * LARGE };

static void *large[LARGER];
static unsigned many = LARGE;

static ebb_step begin_with_many(ebb_site *site) {
    ebb_step step = begin(site);
    for (unsigned i = 0; i < many; i++)
        large[i] = make(10000, i);
    return step;
}

static void end_many(void) {
    for (unsigned i = 0; i < many; i++)
        end(large[i], 10000, i);
}

static void test_a_scope_whose_end_wanted_memory_ends_when_one_begins(void **state) {
    ebb_site *brief = SITE(.name = "brief");
    finish_without_memory(begin_with_many(brief));
    expect_open(brief);
    ebb_step step = begin(*state);
    expect_over(brief);
    finish(step);
    end_many();
}

/* From here on there is none for anybody. */
static void *finish_and_end_without_memory(void *site) {
    ebb_step step = begin_with_many(site);
    os.allow = allow_nothing;
    return (void *)(intptr_t)ebb_step_end(step);
}

struct rester {
    ebb_site *site;
    sem_t rests, wakes;
};

static void *begin_and_rest(void *context) {
    struct rester *rester = context;
    ebb_step step = ebb_step_begin(rester->site, 0);
    sem_post(&rester->rests);
    while (sem_wait(&rester->wakes) != 0)
        continue;
    return (void *)(intptr_t)ebb_step_end(step);
}

/* Enough for a step to begin, but not to keep anything. */
static bool allow_a_slot(enum os_acquisition what) {
    return what == OS_SLOT;
}

/* Nor does a thread take it over that begins meanwhile, and rests. */
static void test_it_ends_though_its_thread_has_ended(void **state) {
    struct rester rester = {.site = *state};
    ebb_site *brief = SITE(.name = "brief");
    bool (*allow)(enum os_acquisition) = os.allow;
    pthread_t thread;
    sem_init(&rester.rests, 0, 0);
    sem_init(&rester.wakes, 0, 0);
    finish(begin(*state)); /* so that another step needs no more than a slot */
    int result = on_another_thread(finish_and_end_without_memory, brief);
    os.allow = allow_a_slot;
    assert_int_equal(pthread_create(&thread, NULL, begin_and_rest, &rester), 0);
    while (sem_wait(&rester.rests) != 0)
        continue;
    os.allow = allow;
    assert_int_equal(result, 0);
    assert_int_equal(served_sum(served_of(*state), SERVED_OPEN), 1);
    assert_int_equal(served_sum(served_of(brief), SERVED_OPEN), 1);
    expect_over(brief);
    sem_post(&rester.wakes);
    void *ended;
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_null(ended);
    end_many();
}

static void *begin_and_finish(void *site) {
    return (void *)(intptr_t)ebb_step_end(ebb_step_begin(site, 0));
}

/* Though it has a heap of its own then. What the test before has kept leaves room for as many. */
static void test_who_begins_when_there_is_memory_again_ends_it(void **state) {
    ebb_site *brief = SITE(.name = "brief");
    many = LARGER;
    bool (*allow)(enum os_acquisition) = os.allow;
    int result = on_another_thread(finish_and_end_without_memory, brief);
    os.allow = allow;
    assert_int_equal(result, 0);
    assert_int_equal(served_sum(served_of(brief), SERVED_OPEN), 1);
    assert_int_equal(on_another_thread(begin_and_finish, *state), 0);
    assert_int_equal(served_sum(served_of(brief), SERVED_OPEN), 0);
    expect_over(brief);
    end_many();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_a_scope_that_another_thread_closed_ends_when_one_ends),
        SERVED(test_it_ends_though_it_is_the_inner_one),
        SERVED(test_a_scope_whose_end_wanted_memory_ends_when_one_begins),
        SERVED(test_it_ends_though_its_thread_has_ended),
        SERVED(test_who_begins_when_there_is_memory_again_ends_it),
    };
    options.idle_ms = 0; /* nobody looks at what is left but who is asked to here */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
