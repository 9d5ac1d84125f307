// SPDX-License-Identifier: Apache-2.0
/*
 * tender.c - the thread of tender.h.
 *
 * A process whose threads have all ended would go on with this one alone, deaf to signals. So this
 * one looks, and has it ended by another one, which has the program's files: what is buffered goes
 * there. With statistics that one must be there from the beginning. Where it cannot be had this one
 * ends the process at once, without what exit() does.
 *
 * Invariant: all signals are blocked in this thread, and in the other until it ends the process.
 * Where it cannot begin, memory is given back at the ends of scopes only; it is tried again as
 * scopes begin, after a second at the earliest.
 */
#include "malloc/tender.h"
#include "base/os.h"
#include "base/schedule.h"
#include "base/size.h"
#include "malloc/general.h"
#include "malloc/heap.h"
#include "malloc/options.h"
#include "malloc/swings.h"
#include "malloc/tell.h"
#include "malloc/trim.h"
#include "malloc/turn.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 250u
#define RETRY_NS UINT64_C(1000000000) /* before the thread is tried again that could not begin */
#define REST_MS 10000u /* between looks where nothing is left to do but what others may free */
#define STACK_BYTES ((size_t)256 << 10) /* beside the variables of each thread */
#define HEAP_BYTES ((size_t)8 << 20)    /* more than a thread has of the general heap at first */

_Atomic(bool) tender_sleeps, tender_is_there;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake, over;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_settled, is_over;
static uint64_t try_at_ns; /* not before that */
static sigset_t blocked;   /* in the thread that began it */
static size_t stack_bytes = STACK_BYTES;

/* Waits for a tick, or for a scope if there is nothing to do until then: but a free() of a thread
 * that has no scope wakes nobody, so it looks now and then. */
static void pause_for(bool sleeps) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(sleeps ? REST_MS : TICK_MS) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&tender_sleeps, sleeps, memory_order_relaxed);
    (void)pthread_cond_timedwait(&wake, &lock, &until);
    atomic_store_explicit(&tender_sleeps, false, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

/* A thread that the general heap has no memory for does not fail to allocate, but crashes. */
static bool has_room(size_t stack) {
    size_t bytes = size_align(stack + HEAP_BYTES, EBB_PAGE);
    void *room = os_pages(bytes);
    if (room)
        os.release(room, bytes);
    return room != NULL;
}

/* Whoever began the thread waits for this, and may then limit the process. */
static void settle(void) {
    pthread_mutex_lock(&lock);
    is_settled = true;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
}

/*
 * The first thread has ended, which leaves no program to be read, and so have all others but those
 * here: the folder of threads has two links beside one for each. Asked without opening a file.
 */
static bool is_alone(bool has_ender) {
    char path[1];
    struct stat threads;
    return readlink("/proc/self/exe", path, sizeof path) < 0 && errno == ENOENT &&
           stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 2u + 2u + has_ender;
}

/* As the C library does when a process's last thread ends; with a stack for what the program does
 * then, and with its files, in which there may be something to write. Signals reach it. */
static void *end_process(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!is_over)
        pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    exit(0);
}

static size_t usual_stack_bytes(void) {
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    (void)pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return bytes;
}

static bool begin_ender_on(size_t stack) {
    pthread_attr_t attributes;
    pthread_t ender;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool begun = pthread_attr_setstacksize(&attributes, stack) == 0 &&
                 pthread_create(&ender, &attributes, end_process, NULL) == 0;
    pthread_attr_destroy(&attributes);
    return begun;
}

/* The thread that will: it has the table of files that this one has now, and the stack that the
 * program's threads have, or a small one. While the program runs it leaves room for what that
 * allocates. */
static bool begin_ender(bool is_at_end) {
    size_t stacks[] = {usual_stack_bytes(), stack_bytes};
    for (unsigned i = 0; i < sizeof stacks / sizeof *stacks; i++)
        if ((is_at_end || has_room(stacks[i])) && begin_ender_on(stacks[i]))
            return true;
    return false;
}

static bool end_if_alone(bool has_ender, bool has_files) {
    if (!is_alone(has_ender))
        return false;
    /* among files of this thread's own what the program has buffered would go to one of these */
    if (!has_ender && (has_files || !begin_ender(true)))
        _exit(0);
    pthread_mutex_lock(&lock);
    is_over = true;
    pthread_cond_signal(&over);
    pthread_mutex_unlock(&lock);
    return true;
}

static bool has_heaps(void) {
    heap_lock(true);
    bool has = heap_newest();
    heap_lock(false);
    return has;
}

/* True: the thread ends, since what else it would be there for begins it again. A fall from now on
 * finds it gone, or is seen here. */
static bool leaves(uint64_t falls) {
    pthread_mutex_lock(&lock);
    bool is_needed = *options.stats || swings_is_high() || has_heaps();
    tender_is_there = is_needed;
    tender_is_there = is_needed || swings_count() != falls;
    is_settled = is_needed = tender_is_there;
    pthread_mutex_unlock(&lock);
    return !is_needed;
}

static void *tend(void *unused) {
    struct trim_idle idle = {0};
    bool sleeps = false;
    (void)unused;
    turn_never();
    schedule_as_first(); /* others wait for locks that it has */
    je_free(je_malloc(1)); /* what the general heap keeps for it is had now, while there is room */
    bool has_ender = *options.stats && begin_ender(false);
    bool tells = *options.stats && tell_begin();
    settle();
    for (unsigned tick = 0; !end_if_alone(has_ender, tells); tick++) {
        if (tells)
            tell(tick);
        bool done = !options.idle_ms || trim_when_idle(&idle, TICK_MS, options.idle_ms);
        if (done)
            swings_settle(idle.falls);
        /* once more after all is done, since a scope may have begun before this was to be seen */
        if (sleeps && done && leaves(idle.falls))
            return NULL;
        pause_for(sleeps && done && !tells);
        sleeps = done;
    }
    return NULL;
}

static void prepare(void) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &clock);
    pthread_condattr_destroy(&clock);
    pthread_cond_init(&over, NULL);
}

static int add_variables(struct dl_phdr_info *info, size_t bytes, void *sum) {
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

/* The C library puts the variables that each thread has at the end of its stack; for those of what
 * is loaded later it has set little aside. The walk has a lock that in a child nobody may give
 * back, as its thread did not come along: the thread of a child begins without a walk. */
void tender_prepare(void) {
    size_t bytes = STACK_BYTES;
    (void)dl_iterate_phdr(add_variables, &bytes);
    stack_bytes = bytes;
    pthread_once(&once, prepare);
}

/* 0, or an errno code. */
static int create_thread(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (!has_room(stack_bytes) || pthread_attr_init(&attributes) != 0)
        return ENOMEM;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    int error = pthread_create(&thread, &attributes, tend, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* The same outside of the thread's scope, which may be at work just now, and is to keep nothing of
 * it. No handler of a signal sees that: it may end a turn whose scope it is. */
static int begin_thread(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &blocked);
    struct scope *scope = here.scope;
    here.scope = NULL;
    int error = create_thread();
    here.scope = scope;
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    return error;
}

/* True: it is missing, and the caller's to begin. In memory that is the parent's, too, it would be
 * gone with this process, and missed there. */
static bool take_turn(bool waits) {
    uint64_t now_ns = os.now_ns();
    if (waits)
        pthread_mutex_lock(&lock);
    else if (pthread_mutex_trylock(&lock) != 0)
        return false;
    bool is_due = !tender_is_there && now_ns >= try_at_ns && swings_knows_process();
    if (is_due) {
        tender_is_there = true;
        try_at_ns = now_ns + RETRY_NS;
    }
    pthread_mutex_unlock(&lock);
    return is_due;
}

static bool has_work(void) {
    return options.idle_ms || *options.stats;
}

void tender_begin(void) {
    if (!has_work())
        return;
    pthread_once(&once, prepare);
    if (!take_turn(true))
        return;
    int cancel; /* a thread that is cancelled in the wait would keep the lock */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int error = begin_thread();
    if (error && *options.stats)
        tell_complain("no thread, it is tried again as scopes begin", strerror(error));
    pthread_mutex_lock(&lock);
    if (error) { /* so that the next scope asks for it */
        tender_is_there = false;
        atomic_store_explicit(&tender_sleeps, true, memory_order_relaxed);
    }
    while (!error && !is_settled)
        pthread_cond_wait(&wake, &lock);
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
}

/* With the lock held. */
static void rouse(void) {
    if (!tender_is_there)
        return;
    atomic_store_explicit(&tender_sleeps, false, memory_order_relaxed);
    pthread_cond_signal(&wake);
}

void tender_rouse(void) {
    pthread_mutex_lock(&lock);
    rouse();
    pthread_mutex_unlock(&lock);
}

/* Nobody waits for it: what frees may have locks that a new thread needs. */
static bool begin_at_once(void) {
    bool begun = take_turn(false);
    if (begun && begin_thread() != 0) {
        pthread_mutex_lock(&lock);
        tender_is_there = begun = false;
        pthread_mutex_unlock(&lock);
    }
    return begun;
}

bool tender_expect(bool may_begin) {
    if (!tender_is_there) /* after the fall was counted: see leaves() */
        return may_begin && begin_at_once();
    if (!atomic_load_explicit(&tender_sleeps, memory_order_relaxed))
        return true;
    if (pthread_mutex_trylock(&lock) != 0)
        return false;
    rouse();
    pthread_mutex_unlock(&lock);
    return true;
}

void tender_wake(void) {
    tender_begin();
    tender_rouse();
}

void tender_fork(bool before, bool in_child) {
    if (before) {
        pthread_mutex_lock(&lock);
        return;
    }
    if (in_child) {
        tender_is_there = is_settled = is_over = false;
        try_at_ns = 0;
        options_for_child();
        swings_fork_in_child();
        atomic_store_explicit(&tender_sleeps, has_work(), memory_order_relaxed); /* until a scope */
        tell_forget();
        prepare(); /* the condition that nobody waits for any more */
    }
    pthread_mutex_unlock(&lock);
}
