// SPDX-License-Identifier: Apache-2.0
/*
 * passed_over.c - a program that looks as if it was built with ThreadSanitizer: with libebb-malloc
 * preloaded nothing of that begins, and neither a handler of forks nor a lock is its own.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <pthread.h>
#include <sys/stat.h>

/* What the library looks for. */
__attribute__((visibility("default"))) void __tsan_init(void);
void __tsan_init(void) {
}

static void do_nothing(void) {
}

static void nothing_is_served(void) {
    EXPECT(getenv("LD_PRELOAD"));
    EXPECT(!ebb_scope_is_served());
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "plain", .scope = true));
    ebb_step step = ebb_step_begin(site, 0);
    free(malloc(100));
    EXPECT(ebb_step_end(step) == 0);
    EXPECT(ebb_site_destroy(site) == 0);
}

static void there_is_no_other_thread(void) {
    struct stat threads;
    EXPECT(getenv("EBB_MALLOC_STATS"));
    EXPECT(stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 2 + 1);
}

static void a_child_allocates(void) {
    EXPECT(pthread_atfork(do_nothing, do_nothing, do_nothing) == 0);
    pid_t child = fork();
    if (child == 0) {
        free(malloc(100000));
        _exit(0);
    }
    act_await(child);
}

int main(void) {
    static const struct act acts[] = {
        ACT(nothing_is_served),
        ACT(there_is_no_other_thread),
        ACT(a_child_allocates),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
