// SPDX-License-Identifier: Apache-2.0
/*
 * scope_many.c - thousands of sites: to make one and to end one costs as much however many there
 * are, whatever they are called.
 */
#include "malloc/scoped.h"

#include <stdio.h>
#include <time.h>

enum { SITES = 6000, PART = 500 };

static ebb_site *sites[SITES];

static double thread_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void make_site(const char *format, int i) {
    char name[32];
    snprintf(name, sizeof name, format, i);
    sites[i] = SITE(.name = name);
    finish(begin(sites[i]));
}

static void end_site(const char *unused, int i) {
    (void)unused;
    assert_int_equal(ebb_site_destroy(sites[i]), 0);
}

static double time_some(void (*act)(const char *format, int i), const char *format, int from,
                        int to) {
    double began = thread_seconds();
    for (int i = from; i < to; i++)
        act(format, i);
    return thread_seconds() - began;
}

/* The oldest end first. */
static void check_cost(const char *format) {
    double made_among_few = time_some(make_site, format, 0, PART);
    (void)time_some(make_site, format, PART, SITES - PART);
    double made_among_many = time_some(make_site, format, SITES - PART, SITES);
    double ended_among_many = time_some(end_site, format, 0, PART);
    (void)time_some(end_site, format, PART, SITES - PART);
    double ended_among_few = time_some(end_site, format, SITES - PART, SITES);
    print_message("made %.3f s, %.3f s; ended %.3f s, %.3f s\n", made_among_few, made_among_many,
                  ended_among_few, ended_among_many);
    assert_true(made_among_many < 4 * made_among_few);
    assert_true(ended_among_many < 4 * ended_among_few);
}

static void test_sites_of_names_of_their_own(void **state) {
    (void)state;
    check_cost("site %d");
}

static void test_sites_of_one_name(void **state) {
    (void)state;
    check_cost("one");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_sites_of_names_of_their_own),
        SERVED(test_sites_of_one_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
