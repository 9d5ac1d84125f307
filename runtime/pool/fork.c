// SPDX-License-Identifier: Apache-2.0
/*
 * fork.c - a fork waits until nobody is at work in a pool.
 *
 * A child has one thread, and copies of all locks as they were: one that another thread held would
 * be held for ever, and what it guards half done. So a fork takes all locks that the deleters of
 * exports and everything below regions need, from the outside inwards, and gives them back in both
 * processes:
 *
 *     shared pools > registry of pools > each pool > batches of pieces and of start maps > chunks
 *         > the range > what is open of anything
 *
 * For CUDA's loader it does not wait: who has that may fork, too (see cuda_before_fork()).
 *
 * Invariant: whoever takes two of them takes them in this order. Regions have no locks: in the
 * child, those that other threads were at work in are to be left alone.
 *
 * A child that the C library is not asked for (_Fork(), clone()) has not waited, and runs no
 * handler. It is told by a word that the system clears in each child: whoever looks at what belongs
 * to this process alone looks there first, and a child that finds 0 does what the handler would
 * have done. It takes no lock for that, for the one that looks may have any. What another thread
 * was at work in when it was made stays locked there for ever. It may share the descriptors of its
 * parent (CLONE_FILES): those it closes only if it is known that it does not.
 */
#include "pool/fork.h"
#include "base/module.h"
#include "base/os.h"
#include "base/reserved.h"
#include "pool/chunk.h"
#include "pool/cuda.h"
#include "pool/pinned.h"
#include "pool/pool.h"
#include "pool/range.h"
#include "pool/shared.h"
#include "pool/starts.h"

#include <ebb/pool.h>
#include <sched.h>
#include <unistd.h>

#define CLEARED 0u  /* by the system: this is a child */
#define SETTLING 1u /* by one of its threads */

/* ---- which process this is ---- */

/* Where there is no page that the system clears: the handler of forks alone does. */
static atomic_uint kept = FORK_SETTLED;
static atomic_uint forks;

/* Of the process that forks, by the C library; under the locks that a fork waits for. */
static unsigned forked_from;
static _Thread_local unsigned forking; /* this thread, until both processes go on (fork.h) */

static atomic_int process; /* the last that made a page or settled: a child's parent */

atomic_uint *_Atomic fork_state = &kept;

/* Once more if a child is made meanwhile: there the word is cleared again. */
void fork_be_child(void) {
    atomic_uint *state = atomic_load(&fork_state);
    unsigned cleared = CLEARED;
    if (atomic_compare_exchange_strong(state, &cleared, SETTLING)) {
        bool shares_files = !forking && os.shares_files(atomic_load(&process));
        atomic_store(&process, getpid());
        atomic_fetch_add(&forks, 1);
        pin_fork_child();
        shared_be_child(shares_files);
        /* release: pairs with fork_settle() */
        atomic_store_explicit(state, FORK_SETTLED, memory_order_release);
    }
    while (atomic_load_explicit(state, memory_order_acquire) != FORK_SETTLED)
        sched_yield();
}

unsigned fork_count(void) {
    fork_settle();
    return atomic_load_explicit(&forks, memory_order_relaxed); /* see fork_settle() */
}

/* If another thread has not been faster. */
static bool become_state(atomic_uint *page) {
    atomic_uint *none = &kept;
    atomic_store(page, FORK_SETTLED);
    return os.wipe_in_children(page, EBB_PAGE) == 0 &&
           atomic_compare_exchange_strong(&fork_state, &none, page);
}

/* Without a page forks of the C library are counted all the same. There may have been no memory for
 * one just then: who comes next tries again. */
void fork_prepare_raw(void) {
    if (atomic_load(&fork_state) != &kept)
        return;
    atomic_store(&process, getpid());
    atomic_uint *page = os_pages(EBB_PAGE);
    if (page && !become_state(page))
        os.release(page, EBB_PAGE);
}

unsigned ebb_forks(void) {
    static atomic_bool are_counted; /* relaxed: to prepare twice does no harm */
    if (!atomic_load_explicit(&are_counted, memory_order_relaxed)) {
        module_keep_own(); /* forks call back */
        fork_prepare();
        atomic_store_explicit(&are_counted, true, memory_order_relaxed);
    }
    return fork_count();
}

/* ---- forks that wait ---- */

static void before(void) {
    if (!fork_is_first(&forking))
        return;
    shared_fork(true);
    pool_fork(true);
    piece_fork(true);
    starts_fork(true);
    chunk_fork(true);
    range_fork(true);
    reserved_fork(true);
    cuda_before_fork();
    forked_from = fork_count();
}

static void after(bool in_child) {
    cuda_after_fork(in_child);
    reserved_fork(false);
    range_fork(false);
    chunk_fork(false);
    starts_fork(false);
    piece_fork(false);
    pool_fork(false);
    shared_fork(false);
}

static void after_in_parent(void) {
    if (fork_is_last(&forking))
        after(false);
}

/* There are systems that agree to clear a page, and do not. A handler that ran before this one may
 * have asked already, and the child have settled. */
static void after_in_child(void) {
    if (forking > 1) {
        forking--;
        return;
    }
    if (atomic_load(&forks) == forked_from)
        atomic_store(atomic_load(&fork_state), CLEARED);
    fork_settle();
    forking = 0;
    after(true);
}

static void watch(void) {
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before, after_in_parent, after_in_child);
}

void fork_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch);
}
