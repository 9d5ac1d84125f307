// SPDX-License-Identifier: Apache-2.0
/*
 * swings.c - see swings.h.
 *
 * Who frees may have locks of the C library: pthread_join() frees what the variables of a thread
 * had with the one locked that pthread_create() takes. So a fall begins a thread only where no
 * other was ever begun. Where some were, one more is no harm, and it is begun as memory is
 * allocated, once there is so much that it could fall.
 *
 * A child of a fork has what its parent had freed and not given back yet, and sees no fall of that.
 * So it owes it from the beginning, and a fall is counted once it is a second old.
 *
 * A process that has shut itself in since it began may not be allowed to begin one, and none is.
 * Nor does a process begin one that no handler of forks knows of, made by vfork(), say: it may have
 * the memory of its parent, which would count on a thread that is soon gone. It leaves the fall to
 * that one.
 *
 * Invariant: in_use is what all threads had when jemalloc last told it of each. What a thread has
 * done since, less than 64 KiB each way and as much more in all, is lost when it ends; so a process
 * with very many threads that allocate and others that free may see falls where none are, and look
 * in vain.
 */
#include "malloc/swings.h"
#include "base/hidden.h"
#include "base/os.h"
#include "malloc/general.h"
#include "malloc/options.h"
#include "malloc/tender.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#define OWED_NS UINT64_C(1000000000)
#define LITTLE ((int64_t)65536)

/* relaxed: each stands for itself */
static _Atomic(int64_t) in_use, most; /* most: since the last fall */
static _Atomic(uint64_t) falls;      /* in order with tender_is_there: see leaves() */
static _Atomic(bool) counts;
static _Atomic(uint64_t) settled;  /* of the falls */
static _Atomic(uint64_t) owed_at_ns; /* not before that; 0: nothing is owed */
static int filters; /* what mode of seccomp there was from the beginning */
static _Atomic(pid_t) process;

/* Of each thread: jemalloc's counters of it, and what of them is in `in_use`. */
static __thread struct {
    const uint64_t *allocated, *freed;
    int64_t told;
} own __attribute__((tls_model("initial-exec")));

#ifndef CHUNKS_OF_JEMALLOC
#define CHUNKS_OF_JEMALLOC 0 /* else pools take theirs from there, too, with locks that they have */
#endif

/* With all that the C library passes on: valgrind says what it was not given. */
static int filter_mode(void) {
    return prctl(PR_GET_SECCOMP, 0ul, 0ul, 0ul, 0ul);
}

void swings_begin(void) {
    bool decays = options.idle_ms && (ptrdiff_t)general_read("opt.dirty_decay_ms") >= 0;
    decays &= !CHUNKS_OF_JEMALLOC;
    if (decays) /* else a filter need not allow it */
        filters = filter_mode();
    process = getpid();
    counts = decays;
}

uint64_t swings_count(void) {
    return atomic_load(&falls);
}

void swings_settle(uint64_t count) {
    atomic_store_explicit(&settled, count, memory_order_relaxed);
}

/* One that ends soon leaves what it shares with its parent to that one. */
void swings_fork_in_child(void) {
    bool owes = swings_count() != atomic_load_explicit(&settled, memory_order_relaxed);
    atomic_store_explicit(&process, getpid(), memory_order_relaxed);
    atomic_store_explicit(&owed_at_ns, owes ? os.now_ns() + OWED_NS : 0, memory_order_relaxed);
}

bool swings_is_high(void) {
    return atomic_load_explicit(&in_use, memory_order_relaxed) >= (int64_t)SWING;
}

static bool find_own(void) {
    size_t length = sizeof own.freed;
    return je_mallctl("thread.deallocatedp", &own.freed, &length, NULL, 0) == 0 &&
           je_mallctl("thread.allocatedp", &own.allocated, &length, NULL, 0) == 0;
}

/* What the thread has in use more than what was told of it. */
static int64_t untold(void) {
    return (int64_t)*own.allocated - (int64_t)*own.freed - own.told;
}

static int64_t add_own(void) {
    int64_t more = untold();
    own.told += more;
    return atomic_fetch_add_explicit(&in_use, more, memory_order_relaxed) + more;
}

/* Who allocates and frees by turns has nothing to tell, unless something else is to be begun. */
static inline __attribute__((always_inline)) bool is_quiet(void) {
    int64_t more = untold();
    return more < LITTLE && more > -LITTLE && (!swings_is_high() || tender_is_there) &&
           !atomic_load_explicit(&owed_at_ns, memory_order_relaxed);
}

bool swings_knows_process(void) {
    return getpid() == atomic_load_explicit(&process, memory_order_relaxed);
}

/* False: the process has changed what it may do, which lasts, and counts no more; or it is another
 * one, which has no say in that. */
static bool may_begin(void) {
    if (!swings_knows_process())
        return false;
    if (filter_mode() != filters)
        atomic_store_explicit(&counts, false, memory_order_relaxed);
    return atomic_load_explicit(&counts, memory_order_relaxed);
}

/* Until the tender is there, each time anew. */
static __attribute__((cold, noinline)) void fall(int64_t now, bool is_safe) {
    int before = errno;
    atomic_fetch_add(&falls, 1);
    if (tender_expect(is_safe && (tender_is_there || may_begin()))) {
        atomic_store_explicit(&most, now, memory_order_relaxed);
        atomic_store_explicit(&owed_at_ns, 0, memory_order_relaxed);
    }
    errno = before;
}

static __attribute__((cold, noinline)) void rise(void) {
    int before = errno;
    if (may_begin())
        (void)tender_expect(true);
    errno = before;
}

static bool owes(void) {
    uint64_t at_ns = atomic_load_explicit(&owed_at_ns, memory_order_relaxed);
    return __builtin_expect(at_ns != 0, 0) && os.now_ns() >= at_ns;
}

/* Apart, so that who is quiet saves no registers. */
static __attribute__((noinline)) void tell(bool has_allocated) {
    if (!atomic_load_explicit(&counts, memory_order_relaxed) || (!own.allocated && !find_own()))
        return;
    int64_t now = add_own(), high = atomic_load_explicit(&most, memory_order_relaxed);
    if (now > high)
        atomic_store_explicit(&most, now, memory_order_relaxed);
    if (high - now >= (int64_t)SWING || owes())
        fall(now, has_allocated || __libc_single_threaded);
    else if (has_allocated && now >= (int64_t)SWING && !__libc_single_threaded &&
             !tender_is_there)
        rise();
}

static inline void note(bool has_allocated) {
    if (!own.allocated || !is_quiet())
        tell(has_allocated);
}

/* What jemalloc calls, in place of functions that keep a maximum which nobody here asks for
 * (jemalloc.sh). It has no lock then. */
HIDDEN void ebb_jemalloc_has_allocated(void *thread, uint64_t bytes);
HIDDEN void ebb_jemalloc_has_freed(void *thread, uint64_t bytes);

void ebb_jemalloc_has_allocated(void *thread, uint64_t bytes) {
    (void)thread, (void)bytes;
    note(true);
}

void ebb_jemalloc_has_freed(void *thread, uint64_t bytes) {
    (void)thread, (void)bytes;
    note(false);
}
