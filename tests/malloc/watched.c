// SPDX-License-Identifier: Apache-2.0
/*
 * watched.c - in a program with clang's ThreadSanitizer the library is nothing but libebb: its
 * steps, and what it does about forks.
 *
 * Built with that, and linked with libebb-malloc.
 */
#include "malloc/searches.h"

/* The end of a site waits for the thread that searches, which did not come along. */
static void a_child_of_a_fork_waits_for_nobody_who_is_not_there(void) {
    ebb_site *searches = ebb_site_create(EBB_SITE_OPTIONS(.name = "searches", .scope = true,
                                                          .search_ns = 2000000000));
    EXPECT(searches);
    nlink_t before = count_threads();
    for (unsigned i = 0; i < 2; i++)
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
