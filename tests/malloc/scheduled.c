// SPDX-License-Identifier: Apache-2.0
/*
 * scheduled.c - threads of the library are scheduled as the process's first thread, whoever begins
 * them.
 *
 * Run preloaded with libebb-malloc, and once without it.
 */
#include "malloc/searches.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

struct scheduling {
    int policy, nice;
    cpu_set_t processors;
};

static struct scheduling scheduling_of(pid_t thread) {
    struct scheduling is = {.policy = sched_getscheduler(thread)};
    is.nice = getpriority(PRIO_PROCESS, (id_t)thread);
    (void)sched_getaffinity(thread, sizeof is.processors, &is.processors);
    return is;
}

static bool is_as_the_first(pid_t thread) {
    struct scheduling is = scheduling_of(thread), first = scheduling_of(getpid());
    return is.policy == first.policy && is.nice == first.nice &&
           CPU_EQUAL(&is.processors, &first.processors);
}

/* Only who may get more than it has can undo all of it. */
static void need_more(void) {
    int nice = getpriority(PRIO_PROCESS, 0);
    if (setpriority(PRIO_PROCESS, 0, nice - 1) != 0)
        act_skips("priorities cannot be raised");
    EXPECT(setpriority(PRIO_PROCESS, 0, nice) == 0);
}

static void keep_to_one_processor(void) {
    cpu_set_t one;
    unsigned processor = 0;
    EXPECT(sched_getaffinity(0, sizeof one, &one) == 0);
    while (!CPU_ISSET(processor, &one))
        processor++;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
}

static void be_scheduled(int policy, int priority) {
    struct sched_param param = {.sched_priority = priority};
    if (sched_setscheduler(0, policy, &param) != 0)
        act_skips("this policy cannot be had");
}

static _Atomic(pid_t) behind; /* 0: none so far */

static void stay_behind(void) {
    behind = (pid_t)syscall(SYS_gettid);
    keep_to_one_processor();
    be_scheduled(SCHED_IDLE, 0);
    EXPECT(setpriority(PRIO_PROCESS, 0, 10) == 0);
}

/* A thread beside the first and the one behind it; 0: there is none. */
static pid_t find_another(void) {
    DIR *folder = opendir("/proc/self/task");
    pid_t found = 0;
    EXPECT(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        if (thread && thread != behind && thread != getpid())
            found = thread;
    }
    closedir(folder);
    return found;
}

static void *begins_a_scope(void *served) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "scopes", .scope = true));
    stay_behind();
    EXPECT(site && !find_another());
    EXPECT(ebb_step_end(ebb_step_begin(site, 0)) == 0);
    pid_t other = find_another();
    EXPECT(!served == !other);
    if (other)
        EXPECT(is_as_the_first(other));
    return NULL;
}

static void *asks_for_plans(void *unused) {
    ebb_site *site = ebb_site_create(
        EBB_SITE_OPTIONS(.name = "searches", .search_ns = UINT64_C(60000000000)));
    EXPECT(site);
    churn_in_a_step(site);
    stay_behind(); /* who is behind may get a thousandth of a processor */
    EXPECT(!find_another());
    churn_in_a_step(site);
    return unused;
}

static pthread_t begin_behind(void *(*body)(void *), void *context) {
    pthread_t thread;
    need_more();
    EXPECT(pthread_create(&thread, NULL, body, context) == 0);
    return thread;
}

static void what_tends_memory_is_as_the_first_thread(void) {
    static char is_served;
    pthread_t thread = begin_behind(begins_a_scope, ebb_scope_is_served() ? &is_served : NULL);
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* The first thread looks, as the one behind may get nowhere while the search goes on. */
static void what_searches_for_plans_is_as_the_first_thread(void) {
    pid_t other = 0;
    (void)begin_behind(asks_for_plans, NULL);
    for (unsigned i = 0; i < 20000 && !(other && is_as_the_first(other)); i++) {
        usleep(10000);
        other = behind ? find_another() : 0;
    }
    EXPECT(other && is_as_the_first(other));
}

static void take_step(void) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "scopes", .scope = true));
    EXPECT(site);
    EXPECT(ebb_step_end(ebb_step_begin(site, 0)) == 0);
}

/* What it does not hand on to those that it begins. */
static void a_first_thread_that_hands_nothing_on_has_a_policy(void) {
    be_scheduled(SCHED_BATCH | SCHED_RESET_ON_FORK, 0);
    take_step();
    pid_t other = find_another();
    EXPECT(!other || sched_getscheduler(other) == SCHED_BATCH);
}

static void *takes_a_step(void *processors) {
    cpu_set_t its;
    behind = (pid_t)syscall(SYS_gettid);
    be_scheduled(SCHED_OTHER, 0);
    EXPECT(sched_setaffinity(0, sizeof its, processors) == 0);
    take_step();
    pid_t other = find_another();
    if (!other)
        return NULL;
    EXPECT(sched_getscheduler(other) == SCHED_OTHER);
    EXPECT(sched_getaffinity(other, sizeof its, &its) == 0 && CPU_EQUAL(&its, processors));
    return NULL;
}

/* There it might never run. */
static void nothing_is_sent_where_the_first_thread_is_in_real_time(void) {
    pthread_t thread;
    cpu_set_t all;
    EXPECT(sched_getaffinity(0, sizeof all, &all) == 0);
    be_scheduled(SCHED_FIFO, 1);
    keep_to_one_processor();
    EXPECT(pthread_create(&thread, NULL, takes_a_step, &all) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

int main(void) {
    static const struct act acts[] = {
        ACT(what_tends_memory_is_as_the_first_thread),
        ACT(what_searches_for_plans_is_as_the_first_thread),
        ACT(a_first_thread_that_hands_nothing_on_has_a_policy),
        ACT(nothing_is_sent_where_the_first_thread_is_in_real_time),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
