// SPDX-License-Identifier: Apache-2.0
/*
 * last_thread.c - a process ends with the last thread of its own, whatever threads the library has.
 *
 * Run preloaded with libebb-malloc, and once without it.
 */
#include "malloc/searches.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static void take_step(ebb_site *site) {
    EXPECT(site);
    EXPECT(ebb_step_end(ebb_step_begin(site, 0)) == 0);
}

static void end_with_a_mark(void) {
    _exit(7);
}

/* Signals reach the process meanwhile. */
static void end_with_a_mark_if_it_hears(void) {
    sigset_t blocked;
    bool is_read = pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0;
    _exit(is_read && !sigismember(&blocked, SIGTERM) ? 7 : 8);
}

static void *end_later(void *unused) {
    usleep(300000);
    return unused;
}

/* It ends by itself. */
static int await_end(pid_t child) {
    int status = 0;
    pid_t ended = 0;
    for (unsigned i = 0; i < 10000 && (ended = waitpid(child, &status, WNOHANG)) == 0; i++)
        usleep(10000);
    if (!ended)
        (void)kill(child, SIGKILL); /* it hears no other signal */
    EXPECT(ended == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* And what was left to atexit() is done. */
static void await_mark(pid_t child) {
    EXPECT(await_end(child) == 7);
}

/* Though the library may have a thread of its own. */
static void the_last_thread_ends_the_process(void) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        pthread_t thread;
        take_step(ebb_site_create(EBB_SITE_OPTIONS(.name = "scopes", .scope = true)));
        EXPECT(atexit(end_with_a_mark_if_it_hears) == 0);
        EXPECT(pthread_create(&thread, NULL, end_later, NULL) == 0);
        pthread_exit(NULL);
    }
    await_mark(child);
}

static void *end_now(void *unused) {
    (void)unused;
    pthread_exit(NULL);
}

/* What pthread_exit() needs is loaded now, and no stack is left behind to be used again. */
static void learn_to_end(void) {
    static _Alignas(64) char stack[256 << 10];
    pthread_attr_t attributes;
    pthread_t thread;
    EXPECT(pthread_attr_init(&attributes) == 0);
    EXPECT(pthread_attr_setstack(&attributes, stack, sizeof stack) == 0);
    EXPECT(pthread_create(&thread, &attributes, end_now, NULL) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(pthread_attr_destroy(&attributes) == 0);
}

static pid_t end_with_room_for(size_t bytes) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        take_step(ebb_site_create(EBB_SITE_OPTIONS(.name = "scopes", .scope = true)));
        EXPECT(atexit(end_with_a_mark_if_it_hears) == 0);
        learn_to_end();
        struct rlimit limit = {act_statm(0) + bytes, RLIM_INFINITY};
        EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
        pthread_exit(NULL);
    }
    return child;
}

/* Less than the stack that threads have. */
static void so_it_does_where_there_is_little_room(void) {
    await_mark(end_with_room_for(1 << 20));
}

/* What was left to atexit() may be lost then. */
static void it_ends_where_there_is_no_room(void) {
    int code = await_end(end_with_room_for(0));
    EXPECT(code == 7 || code == 0);
}

/* A plan is searched for in a thread of the site's own, which comes to an end. */
static void what_searches_for_plans_keeps_no_process(void) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        ebb_site *searches = ebb_site_create(EBB_SITE_OPTIONS(.name = "searches", .scope = true,
                                                              .search_ns = 1000000000));
        EXPECT(atexit(end_with_a_mark) == 0);
        churn_in_a_step(searches);
        nlink_t before = count_threads();
        churn_in_a_step(searches);
        EXPECT(count_threads() > before);
        pthread_exit(NULL);
    }
    await_mark(child);
}

int main(void) {
    static const struct act acts[] = {
        ACT(the_last_thread_ends_the_process),
        ACT(so_it_does_where_there_is_little_room),
        ACT(it_ends_where_there_is_no_room),
        ACT(what_searches_for_plans_keeps_no_process),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
