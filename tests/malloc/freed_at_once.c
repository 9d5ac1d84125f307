// SPDX-License-Identifier: Apache-2.0
/*
 * freed_at_once.c - two threads free one block at the same moment, and one of them is told.
 *
 * Whoever is told leaves the library by a jump from its handler of SIGABRT, so that many blocks are
 * freed so in one process. Of each one of the two frees is to be seen; where the scope's own thread
 * is one of them, the scope's end may tell of what was not. Run preloaded, plain and, with
 * --hardened, hardened, where blocks of no scope are looked at, too.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

enum { BLOCKS = 8000, SPINS = 300, SOON_NS = 1500, STEP_NS = 10 };

struct crowd {
    char *blocks[BLOCKS], *neighbours[BLOCKS]; /* these stay: no tray goes meanwhile */
    size_t bytes;
    _Atomic(uint64_t) arrived[BLOCKS]; /* the second thread at the block */
    _Atomic(uint64_t) begin_ns[BLOCKS]; /* when it is freed */
    unsigned told[2];
};

static struct crowd crowd;
static _Thread_local sigjmp_buf back;

static void leave(int signal_number) {
    (void)signal_number;
    siglongjmp(back, 1);
}

static void expect_lines(void) {
    int nowhere = open("/dev/null", O_WRONLY);
    EXPECT(nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0);
    struct sigaction action = {.sa_handler = leave};
    EXPECT(sigaction(SIGABRT, &action, NULL) == 0);
}

static void allocate(size_t bytes) {
    crowd.bytes = bytes;
    for (unsigned i = 0; i < BLOCKS; i++) {
        crowd.blocks[i] = malloc(bytes);
        crowd.neighbours[i] = malloc(bytes);
        EXPECT(crowd.blocks[i] && crowd.neighbours[i]);
        memset(crowd.neighbours[i], (int)(i % 251), bytes);
    }
}

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void await(const _Atomic(uint64_t) *word) {
    for (unsigned spins = 0; !atomic_load(word); spins++)
        if (spins % SPINS == SPINS - 1)
            sched_yield();
}

/* Both go on at the same time by the clock, or the second a moment later. */
static void meet(unsigned who, unsigned at) {
    if (who == 1) {
        atomic_store(&crowd.arrived[at], 1);
        await(&crowd.begin_ns[at]);
    } else {
        await(&crowd.arrived[at]);
        atomic_store(&crowd.begin_ns[at], now_ns() + SOON_NS);
    }
    uint64_t begin_ns = atomic_load(&crowd.begin_ns[at]) + who * (at % 8) * STEP_NS;
    while (now_ns() < begin_ns)
        ;
}

static void free_all(unsigned who) {
    for (volatile unsigned i = 0; i < BLOCKS; i++) {
        meet(who, i);
        if (sigsetjmp(back, 1) == 0)
            free(crowd.blocks[i]);
        else
            crowd.told[who]++;
    }
}

static void *free_first(void *context) {
    free_all(0);
    return context;
}

static void *free_second(void *context) {
    free_all(1);
    return context;
}

static void free_by_two_others(void) {
    pthread_t first, second;
    EXPECT(pthread_create(&first, NULL, free_first, NULL) == 0);
    EXPECT(pthread_create(&second, NULL, free_second, NULL) == 0);
    EXPECT(pthread_join(first, NULL) == 0 && pthread_join(second, NULL) == 0);
}

static void free_by_this_and_another(void) {
    pthread_t first;
    EXPECT(pthread_create(&first, NULL, free_first, NULL) == 0);
    free_all(1);
    EXPECT(pthread_join(first, NULL) == 0);
}

static void neighbours_are_whole(void) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        for (size_t at = 0; at < crowd.bytes; at++)
            EXPECT((unsigned char)crowd.neighbours[i][at] == i % 251);
        free(crowd.neighbours[i]);
    }
}

static unsigned told(void) {
    return crowd.told[0] + crowd.told[1];
}

static ebb_step begin(void) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "crowd", .scope = true));
    EXPECT(site);
    return ebb_step_begin(site, 0);
}

static void by_two_others(size_t bytes, bool is_over) {
    expect_lines();
    ebb_step step = begin();
    allocate(bytes);
    if (is_over)
        EXPECT(ebb_step_end(step) == 0);
    free_by_two_others();
    EXPECT(told() == BLOCKS);
    neighbours_are_whole();
    if (!is_over)
        EXPECT(ebb_step_end(step) == 0);
}

static void small_ones_of_a_scope(void) {
    by_two_others(64, false);
}

static void small_ones_that_outlived_it(void) {
    by_two_others(64, true);
}

static void large_ones_of_a_scope(void) {
    by_two_others(9000, false);
}

static void large_ones_that_outlived_it(void) {
    by_two_others(9000, true);
}

static void small_ones_by_the_scopes_own_thread_too(void) {
    expect_lines();
    ebb_step step = begin();
    allocate(64);
    free_by_this_and_another();
    EXPECT(told() <= BLOCKS);
    if (sigsetjmp(back, 1) == 0) {
        EXPECT(ebb_step_end(step) == 0);
        EXPECT(told() == BLOCKS);
        neighbours_are_whole();
    } else {
        EXPECT(told() < BLOCKS);
        _exit(0); /* the scope is in the midst of its end */
    }
}

static void large_ones_by_the_scopes_own_thread_too(void) {
    expect_lines();
    ebb_step step = begin();
    allocate(9000);
    free_by_this_and_another();
    EXPECT(told() == BLOCKS);
    neighbours_are_whole();
    EXPECT(ebb_step_end(step) == 0);
}

static void ones_of_no_scope(void) {
    expect_lines();
    allocate(64);
    free_by_two_others();
    EXPECT(told() == BLOCKS);
    neighbours_are_whole();
}

int main(int count, char **words) {
    static const struct act acts[] = {
        ACT(small_ones_of_a_scope),
        ACT(small_ones_that_outlived_it),
        ACT(large_ones_of_a_scope),
        ACT(large_ones_that_outlived_it),
        ACT(small_ones_by_the_scopes_own_thread_too),
        ACT(large_ones_by_the_scopes_own_thread_too),
        ACT(ones_of_no_scope),
    };
    bool hardened = count > 1 && strcmp(words[1], "--hardened") == 0;
    return act_all(acts, sizeof acts / sizeof *acts - !hardened) != 0;
}
