// SPDX-License-Identifier: Apache-2.0
/*
 * locks.h - which locks a thread takes at work, in which order, and whether a fork takes them so.
 *
 * A fork must take all locks that threads may hold, or the child of one that comes at a bad moment
 * waits for ever; and before each those that others are held around it, or the fork and a thread at
 * work wait for each other. No luck is needed to see either. To be included by one source of a
 * program, in whose place of pthread_mutex_lock() it puts its own.
 */
#ifndef MALLOC_LOCKS_H
#define MALLOC_LOCKS_H

#include "malloc/acts.h"

#include <dlfcn.h>
#include <pthread.h>

#define LOCKS_MOST 4096u
#define HELD_MOST 64u

/* Which locks were taken, each once. jemalloc's are not seen: uncontended ones it only tries. */
struct locks {
    pthread_mutex_t *taken[LOCKS_MOST];
    unsigned count;
};

/* One was taken while the other was held. */
struct order {
    pthread_mutex_t *outer, *inner;
};

static struct locks at_work, at_fork, at_first_fork;
static struct order orders[LOCKS_MOST];
static unsigned order_count;
static __thread struct locks *notes;
static __thread pthread_mutex_t *held[HELD_MOST];
static __thread unsigned held_count;

/* Its number in the order in which they were first taken; the count: it was not. */
static unsigned find_taken(const struct locks *locks, const pthread_mutex_t *lock) {
    unsigned i = 0;
    while (i < locks->count && locks->taken[i] != lock)
        i++;
    return i;
}

static void note_order(pthread_mutex_t *outer, pthread_mutex_t *inner) {
    for (unsigned i = 0; i < order_count; i++)
        if (orders[i].outer == outer && orders[i].inner == inner)
            return;
    EXPECT(order_count < LOCKS_MOST);
    orders[order_count++] = (struct order){outer, inner};
}

static void note(pthread_mutex_t *lock) {
    if (find_taken(notes, lock) == notes->count) {
        EXPECT(notes->count < LOCKS_MOST);
        notes->taken[notes->count++] = lock;
    }
    for (unsigned i = 0; i < held_count && notes == &at_work; i++)
        note_order(held[i], lock);
    EXPECT(held_count < HELD_MOST);
    held[held_count++] = lock;
}

static void forget(const pthread_mutex_t *lock) {
    for (unsigned i = held_count; i--;)
        if (held[i] == lock) {
            held[i] = held[--held_count];
            return;
        }
}

static int (*real(const char *name))(pthread_mutex_t *) {
    int (*function)(pthread_mutex_t *);
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(&function, &found, sizeof function);
    return function;
}

/* In place of the C library's, for all libraries of this program. */
int pthread_mutex_lock(pthread_mutex_t *lock) {
    static int (*call)(pthread_mutex_t *);
    if (!call)
        call = real("pthread_mutex_lock");
    if (notes)
        note(lock);
    return call(lock);
}

int pthread_mutex_unlock(pthread_mutex_t *lock) {
    static int (*call)(pthread_mutex_t *);
    if (!call)
        call = real("pthread_mutex_unlock");
    if (notes)
        forget(lock);
    return call(lock);
}

static const char *library_of(const pthread_mutex_t *lock) {
    Dl_info where = {0};
    bool known = dladdr(lock, &where) && where.dli_fname;
    return known ? where.dli_fname : "no library";
}

static unsigned count_missed(void) {
    unsigned missed = 0;
    for (unsigned i = 0; i < at_work.count; i++)
        if (find_taken(&at_fork, at_work.taken[i]) == at_fork.count) {
            missed++;
            printf("# the lock at %p (%s) is not taken\n", (void *)at_work.taken[i],
                   library_of(at_work.taken[i]));
        }
    return missed;
}

static unsigned count_crossed(void) {
    unsigned crossed = 0;
    for (unsigned i = 0; i < order_count; i++)
        if (find_taken(&at_fork, orders[i].outer) > find_taken(&at_fork, orders[i].inner)) {
            crossed++;
            printf("# the lock at %p (%s) is taken after that at %p (%s)\n",
                   (void *)orders[i].outer, library_of(orders[i].outer), (void *)orders[i].inner,
                   library_of(orders[i].inner));
        }
    return crossed;
}

static void note_fork(struct locks *locks) {
    notes = locks;
    pid_t child = fork();
    notes = NULL;
    if (child == 0)
        _exit(0);
    act_await(child);
}

/* Before anything is at work. Locks that are not part of a library need not be there yet. */
static inline void note_first_fork(void) {
    note_fork(&at_first_fork);
}

static unsigned count_late(void) {
    unsigned late = 0;
    for (unsigned i = 0; i < at_work.count && at_first_fork.count; i++) {
        Dl_info where = {0};
        if (dladdr(at_work.taken[i], &where) &&
            find_taken(&at_first_fork, at_work.taken[i]) == at_first_fork.count) {
            late++;
            printf("# the lock at %p (%s) is not taken by the first fork\n",
                   (void *)at_work.taken[i], where.dli_fname);
        }
    }
    return late;
}

/* Forks, and tells in TAP; how many tests failed. What was noted till now was noted at work. */
static int judge_fork(void) {
    note_fork(&at_fork);
    EXPECT(at_work.count > 5 && order_count > 0);
    unsigned missed = count_missed(), crossed = count_crossed(), late = count_late();
    printf("1..3\n%sok 1 - a_fork_takes_all_%u_locks\n", missed ? "not " : "", at_work.count);
    printf("%sok 2 - in_the_order_of_%u_pairs\n", crossed ? "not " : "", order_count);
    printf("%sok 3 - the_first_takes_those_of_libraries\n", late ? "not " : "");
    return (missed != 0) + (crossed != 0) + (late != 0);
}

#endif
