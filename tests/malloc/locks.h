// SPDX-License-Identifier: Apache-2.0
/*
 * locks.h - which locks a thread takes at work, in which order, and whether a fork takes them so.
 *
 * A fork must take all locks that threads may hold, or the child of one that comes at a bad moment
 * waits for ever, but for those that are only taken with others held that it takes; and before each
 * those that others are held around it, or the fork and a thread at work wait for each other. No
 * luck is needed to see either. Who only tries a lock waits for none that he has, but others may be
 * held around it, and the fork is to take it. To be included by one source of a program, in whose
 * place of pthread_mutex_lock() it puts its own.
 */
#ifndef MALLOC_LOCKS_H
#define MALLOC_LOCKS_H

#include "malloc/acts.h"

#include <dlfcn.h>
#include <pthread.h>

#define LOCKS_MOST 4096u
#define HELD_MOST LOCKS_MOST /* jemalloc has hundreds, and a fork takes all */

/* Which locks were taken, each once. */
struct locks {
    pthread_mutex_t *taken[LOCKS_MOST];
    bool is_outer[LOCKS_MOST]; /* it was taken with no other held */
    unsigned count;
};

/* One was taken while the other was held. */
struct order {
    pthread_mutex_t *outer, *inner;
};

static struct locks at_work, at_fork, at_first_fork;
static struct orders {
    struct order pairs[LOCKS_MOST];
    unsigned count;
} waits, nests; /* of those that were waited for; of all */
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

static void note_order(struct orders *orders, pthread_mutex_t *inner) {
    for (unsigned i = 0; i < held_count && notes == &at_work; i++) {
        unsigned j = 0;
        while (j < orders->count &&
               !(orders->pairs[j].outer == held[i] && orders->pairs[j].inner == inner))
            j++;
        EXPECT(j < LOCKS_MOST);
        orders->pairs[j] = (struct order){held[i], inner};
        orders->count += j == orders->count;
    }
}

static void note(pthread_mutex_t *lock) {
    unsigned i = find_taken(notes, lock);
    EXPECT(i < LOCKS_MOST && held_count < HELD_MOST);
    notes->count += i == notes->count;
    notes->taken[i] = lock;
    notes->is_outer[i] |= held_count == 0;
    note_order(&nests, lock);
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
    if (notes) {
        note_order(&waits, lock);
        note(lock);
    }
    return call(lock);
}

int pthread_mutex_trylock(pthread_mutex_t *lock) {
    static int (*call)(pthread_mutex_t *);
    if (!call)
        call = real("pthread_mutex_trylock");
    int result = call(lock);
    if (notes && result == 0)
        note(lock);
    return result;
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

static bool is_taken(const pthread_mutex_t *lock) {
    return find_taken(&at_fork, lock) < at_fork.count;
}

/* Whoever has it has others, all of which the fork takes. */
static bool is_covered(unsigned which) {
    bool is = !at_work.is_outer[which];
    for (unsigned i = 0; i < nests.count; i++)
        is &= nests.pairs[i].inner != at_work.taken[which] || is_taken(nests.pairs[i].outer);
    return is;
}

static unsigned count_missed(void) {
    unsigned missed = 0;
    for (unsigned i = 0; i < at_work.count; i++)
        if (!is_taken(at_work.taken[i]) && !is_covered(i)) {
            missed++;
            printf("# the lock at %p (%s) is not taken\n", (void *)at_work.taken[i],
                   library_of(at_work.taken[i]));
        }
    return missed;
}

static unsigned count_crossed(void) {
    unsigned crossed = 0;
    for (unsigned i = 0; i < waits.count; i++) {
        struct order pair = waits.pairs[i];
        if (find_taken(&at_fork, pair.outer) > find_taken(&at_fork, pair.inner)) {
            crossed++;
            printf("# the lock at %p (%s) is taken after that at %p (%s)\n", (void *)pair.outer,
                   library_of(pair.outer), (void *)pair.inner, library_of(pair.inner));
        }
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
        if (dladdr(at_work.taken[i], &where) && !is_covered(i) &&
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
    EXPECT(at_work.count > 5 && waits.count > 0);
    unsigned missed = count_missed(), crossed = count_crossed(), late = count_late();
    printf("1..3\n%sok 1 - a_fork_takes_all_%u_locks\n", missed ? "not " : "", at_work.count);
    printf("%sok 2 - in_the_order_of_%u_pairs\n", crossed ? "not " : "", waits.count);
    printf("%sok 3 - the_first_takes_those_of_libraries\n", late ? "not " : "");
    return (missed != 0) + (crossed != 0) + (late != 0);
}

#endif
