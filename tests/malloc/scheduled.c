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
static bool may_have_more(void) {
    EXPECT(setpriority(PRIO_PROCESS, 0, 10) == 0);
    return setpriority(PRIO_PROCESS, 0, 0) == 0;
}

static void stay_behind(void) {
    struct sched_param none = {.sched_priority = 0};
    cpu_set_t one;
    unsigned processor = 0;
    EXPECT(sched_getaffinity(0, sizeof one, &one) == 0);
    while (!CPU_ISSET(processor, &one))
        processor++;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
    EXPECT(sched_setscheduler(0, SCHED_IDLE, &none) == 0);
    EXPECT(setpriority(PRIO_PROCESS, 0, 10) == 0);
}

/* A thread beside the first and this one; 0: there is none. */
static pid_t find_another(void) {
    DIR *folder = opendir("/proc/self/task");
    pid_t own = (pid_t)syscall(SYS_gettid), found = 0;
    EXPECT(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        if (thread && thread != own && thread != getpid())
            found = thread;
    }
    closedir(folder);
    return found;
}

/* Soon. */
static void expect_as_the_first(pid_t thread) {
    for (unsigned i = 0; i < 500 && !is_as_the_first(thread); i++)
        usleep(10000);
    EXPECT(is_as_the_first(thread));
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
        EBB_SITE_OPTIONS(.name = "searches", .search_ns = UINT64_C(3000000000)));
    pid_t other = 0;
    stay_behind();
    EXPECT(site && !find_another());
    for (unsigned i = 0; i < 5 && !other; i++) {
        churn_in_a_step(site);
        other = find_another();
    }
    EXPECT(other);
    expect_as_the_first(other);
    return unused;
}

static void run_behind(void *(*body)(void *), void *context) {
    pthread_t thread;
    if (!may_have_more()) {
        printf("# skipped: priorities cannot be raised\n");
        return;
    }
    EXPECT(pthread_create(&thread, NULL, body, context) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

static void what_tends_memory_is_as_the_first_thread(void) {
    static char is_served;
    run_behind(begins_a_scope, ebb_scope_is_served() ? &is_served : NULL);
}

static void what_searches_for_plans_is_as_the_first_thread(void) {
    run_behind(asks_for_plans, NULL);
}

int main(void) {
    static const struct act acts[] = {
        ACT(what_tends_memory_is_as_the_first_thread),
        ACT(what_searches_for_plans_is_as_the_first_thread),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
