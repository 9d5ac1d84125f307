// SPDX-License-Identifier: Apache-2.0
/*
 * watched.c - in a program with clang's ThreadSanitizer the library is nothing but libebb: its
 * steps, and what it does about forks.
 *
 * Built with that, and linked with libebb-malloc.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <sys/stat.h>

/* Blocks for which a good plan is hard to find. */
static void churn_in_a_step(ebb_site *searches) {
    ebb_step step = ebb_step_begin(searches, 0);
    void *live[64] = {NULL};
    uint32_t chance = 3;
    for (unsigned k = 0; k < 400; k++) {
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        void **at = &live[chance >> 26];
        EXPECT(ebb_region_release(step.region, *at) == 0);
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        *at = ebb_region_alloc(step.region, 4096 + (chance >> 14), 64);
        EXPECT(*at);
    }
    EXPECT(ebb_step_end(step) == 0);
}

static nlink_t count_threads(void) {
    struct stat threads;
    EXPECT(stat("/proc/self/task", &threads) == 0);
    return threads.st_nlink - 2;
}

/* The end of a site waits for the thread that searches, which did not come along. */
static void a_child_of_a_fork_waits_for_nobody_who_is_not_there(void) {
    ebb_site *searches = ebb_site_create(EBB_SITE_OPTIONS(.name = "searches", .scope = true,
                                                          .search_ns = 2000000000));
    EXPECT(searches);
    nlink_t before = count_threads();
    for (unsigned i = 0; i < 3; i++)
        churn_in_a_step(searches);
    EXPECT(count_threads() > before);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(30);
        _exit(ebb_site_destroy(searches) != 0);
    }
    act_await(child);
    EXPECT(ebb_site_destroy(searches) == 0);
}

/* The general heap has more locks than a thread there may hold. */
static void forks_are_as_without_it(void) {
    for (unsigned i = 0; i < 8; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100));
            _exit(0);
        }
        act_await(child);
    }
}

int main(void) {
    static const struct act acts[] = {
        ACT(a_child_of_a_fork_waits_for_nobody_who_is_not_there),
        ACT(forks_are_as_without_it),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
