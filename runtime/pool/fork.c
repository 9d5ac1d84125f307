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
 *         > the range > what is open of anything > CUDA's loader
 *
 * Invariant: whoever takes two of them takes them in this order. Regions have no locks: in the
 * child, those that other threads were at work in are to be left alone.
 */
#include "pool/fork.h"
#include "base/reserved.h"
#include "pool/chunk.h"
#include "pool/cuda.h"
#include "pool/pinned.h"
#include "pool/pool.h"
#include "pool/range.h"
#include "pool/shared.h"
#include "pool/starts.h"

static void before(void) {
    shared_fork(true, false);
    pool_fork(true);
    piece_fork(true);
    starts_fork(true);
    chunk_fork(true);
    range_fork(true);
    reserved_fork(true);
    cuda_fork(true);
}

static void after(void) {
    cuda_fork(false);
    reserved_fork(false);
    range_fork(false);
    chunk_fork(false);
    starts_fork(false);
    piece_fork(false);
    pool_fork(false);
}

static void after_in_parent(void) {
    after();
    shared_fork(false, false);
}

static void after_in_child(void) {
    pin_fork_child();
    after();
    shared_fork(false, true);
}

static void watch(void) {
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before, after_in_parent, after_in_child);
}

void fork_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch);
}
