// SPDX-License-Identifier: Apache-2.0
/* schedule.c - a thread inherits its scheduling from its creator (see schedule.h). */
#include "base/schedule.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

static void take_policy(int policy) {
    struct sched_param none = {.sched_priority = 0};
    if (sched_getscheduler(0) != policy)
        (void)sched_setscheduler(0, policy, &none);
}

/* Every value is a valid one, -1 too: errno tells. */
static bool read_nice(pid_t thread, int *nice) {
    errno = 0;
    *nice = getpriority(PRIO_PROCESS, (id_t)thread);
    return errno == 0;
}

static void take_nice(pid_t first) {
    int own, other;
    if (read_nice(0, &own) && read_nice(first, &other) && own != other)
        (void)setpriority(PRIO_PROCESS, 0, other);
}

static void take_processors(pid_t first) {
    cpu_set_t own, other;
    if (sched_getaffinity(0, sizeof own, &own) == 0 &&
        sched_getaffinity(first, sizeof other, &other) == 0 && !CPU_EQUAL(&own, &other))
        (void)sched_setaffinity(0, sizeof other, &other);
}

void schedule_as_first(void) {
    pid_t first = getpid();
    int policy = sched_getscheduler(first) & ~SCHED_RESET_ON_FORK;
    bool is_usual = policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
    take_policy(is_usual ? policy : SCHED_OTHER);
    take_nice(first);
    if (is_usual)
        take_processors(first);
}
