// SPDX-License-Identifier: Apache-2.0
/*
 * slow.h - a system that takes its time to take pages back: until a thread that works meanwhile has
 * ended, or for seconds. To be included by one source of a program.
 */
#ifndef EBB_TESTS_KIT_SLOW_H
#define EBB_TESTS_KIT_SLOW_H

#include "kit/test.h"

#include "base/os.h"

#include <pthread.h>
#include <time.h>

static struct slow {
    struct os_table real; /* what was there before */
    void *(*work)(void *);
    unsigned waited; /* threads that did not end while the system worked */
} slow;

static int slow_give_back(void *addr, size_t bytes) {
    static pthread_t thread;
    static bool is_there;
    struct timespec until;
    if (!is_there)
        assert_int_equal(pthread_create(&thread, NULL, slow.work, NULL), 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    is_there = pthread_timedjoin_np(thread, NULL, &until) != 0;
    slow.waited += is_there;
    return slow.waited ? -1 : slow.real.give_back(addr, bytes);
}

/* From now on, beside that work. */
static void slow_begin(void *(*work)(void *)) {
    slow = (struct slow){.real = os, .work = work};
    os.give_back = slow_give_back;
}

/* The system is as it was; how many threads have waited for it. */
static unsigned slow_end(void) {
    os.give_back = slow.real.give_back;
    return slow.waited;
}

#endif
