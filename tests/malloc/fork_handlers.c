// SPDX-License-Identifier: Apache-2.0
/*
 * fork_handlers.c - handlers of forks allocate and free, with scopes open and what outlived others;
 * and a child has scopes, though a lock of the C library's that it would not give back is held.
 *
 * Run preloaded with libebb-malloc, and once without it.
 */
#include <stdbool.h>

#include "malloc/blocks.h"

#include <ebb/ebb.h>

#include <link.h>
#include <semaphore.h>

extern void (*early_handler)(void); /* of the library that is initialized first, early.c */

static ebb_site *site;

static ebb_step begin(void) {
    if (!site)
        site = ebb_site_create(EBB_SITE_OPTIONS(.name = "handlers", .scope = true));
    ebb_step step = ebb_step_begin(site, 0);
    EXPECT(ebb_region_is_open(step.region));
    return step;
}

static void finish(ebb_step step) {
    EXPECT(ebb_step_end(step) == 0);
}

static void allocate(void) {
    for (unsigned kind = 0; kind < SIZES; kind++)
        end(make(kind), kind);
}

static void fork_inside(void) {
    ebb_step step = begin();
    void *block = make(3);
    pid_t child = fork();
    allocate();
    end(block, 3);
    finish(step);
    allocate();
    if (child == 0)
        exit(0);
    act_await(child);
}

static void handlers_allocate(void) {
    EXPECT(pthread_atfork(allocate, allocate, allocate) == 0);
    fork_inside();
}

enum { KEPT = 4 };
static void *kept[2][KEPT];
static unsigned handled;

static void *free_kept(void *unused) {
    for (unsigned i = 0; i < KEPT; i++)
        end(kept[handled][i], i % 2 ? 6 : 1);
    return unused;
}

static void allocate_and_free(void) {
    allocate();
    free_kept(NULL);
    handled++;
}

static void allocate_and_wait(void) {
    allocate();
    on_thread(free_kept, NULL);
    handled++;
}

/* Some of an open scope, some of one that has ended: the last block of a tray is the tray's end. */
static void fork_with_early(void (*handler)(void)) {
    ebb_step open = begin(), ended = begin();
    for (unsigned i = 0; i < 2 * KEPT; i++) {
        if (i % KEPT == KEPT / 2 && ebb_scope_is_served())
            EXPECT(ebb_scope_leave(ended) == 0);
        if (i % KEPT == 0 && ebb_scope_is_served())
            EXPECT(ebb_scope_enter(ended) == 0);
        kept[i / KEPT][i % KEPT] = make(i % 2 ? 6 : 1);
    }
    finish(ended);
    early_handler = handler;
    fork_inside();
    early_handler = NULL;
    EXPECT(handled == 2); /* before, and in each process after */
    finish(open);
}

static void early_handlers_free(void) {
    fork_with_early(allocate_and_free);
}

static void early_handlers_wait_for_threads(void) {
    fork_with_early(allocate_and_wait);
}

static sem_t walks, may_go_on;

static int stop_walking(struct dl_phdr_info *info, size_t bytes, void *unused) {
    (void)info, (void)bytes, (void)unused;
    sem_post(&walks);
    while (sem_wait(&may_go_on) != 0)
        continue;
    return 1;
}

static void *walk(void *unused) {
    (void)dl_iterate_phdr(stop_walking, NULL);
    return unused;
}

/* As for an exception: in the child the walk never ends. */
static void others_walk_through_the_libraries(void) {
    pthread_t thread;
    finish(begin());
    EXPECT(sem_init(&walks, 0, 0) == 0 && sem_init(&may_go_on, 0, 0) == 0);
    EXPECT(pthread_create(&thread, NULL, walk, NULL) == 0);
    while (sem_wait(&walks) != 0)
        continue;
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        ebb_step step = begin();
        allocate();
        finish(step);
        _exit(0);
    }
    act_await(child);
    sem_post(&may_go_on);
    EXPECT(pthread_join(thread, NULL) == 0);
}

int main(void) {
    static const struct act acts[] = {
        ACT(handlers_allocate),
        ACT(early_handlers_free),
        ACT(early_handlers_wait_for_threads),
        ACT(others_walk_through_the_libraries),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
