// SPDX-License-Identifier: Apache-2.0
/*
 * lane.c - the place in the spool that a thread writes to.
 *
 * A lane has one chunk of the file mapped and hands out its records one by one. A slot is taken
 * with one instruction, so that a signal handler that allocates gets the next one. When a chunk is
 * full the next one is mapped: into the other half of the lane's range of addresses, so that what a
 * handler interrupted may still write where it was about to. That lasts for the rest of its chunk
 * and a whole one: a handler that notes more may spoil the record that it interrupted, and one of
 * its own. A thread that ends leaves its lane, with the rest of its chunk, to a later one; what
 * others, and the C library, clean up after it has left goes to a lane that it has for that one
 * record, or for both of a realloc().
 *
 * Invariant: room in the file exists before it is mapped, so no store meets a full
 * disk. Where there is none, or the limit is reached, recording stops for good.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct lane {
    uintptr_t cursor;
    volatile uintptr_t end; /* of the chunk; a handler may change it between two looks */
    char *range;            /* two chunks of addresses; NULL: not yet */
    uint32_t number;
    bool upper;             /* the half that is in use */
    struct lane *free;      /* next in the list */
};

static struct lane lanes[SPOOL_LANES];
static uint32_t lane_count;
static struct lane *free_lanes;
static atomic_flag lock = ATOMIC_FLAG_INIT; /* for the three above */
static pthread_key_t key;
static bool has_key;
THREAD_OWN struct lane *mine;
THREAD_OWN bool left; /* nobody tells any more when this thread ends */

static void take_lock(void) {
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        continue;
}

static void give_lock(void) {
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

static void block_signals(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static void give_lane(void) {
    sigset_t before;
    block_signals(&before);
    struct lane *lane = mine;
    mine = NULL;
    take_lock();
    if (lane) { /* else a signal handler was here first */
        lane->free = free_lanes;
        free_lanes = lane;
    }
    give_lock();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void leave(void *lane) {
    (void)lane;
    left = true;
    if (*recording)
        lane_note(SPOOL_THREAD_END, 0, 0, 0, 0);
}

/* A lane for this thread. NULL: there is none any more. Signals are blocked. */
static struct lane *enter(void) {
    take_lock();
    if (!has_key)
        has_key = pthread_key_create(&key, leave) == 0;
    struct lane *lane = free_lanes;
    if (lane)
        free_lanes = lane->free;
    else if (lane_count < SPOOL_LANES) {
        lane = &lanes[lane_count];
        lane->number = lane_count++;
    }
    give_lock();
    if (!lane) {
        spool_stop(SPOOL_STOP_THREADS);
        return NULL;
    }
    mine = lane;
    if (has_key && !left)
        pthread_setspecific(key, lane);
    return lane;
}

static enum spool_stop map_chunk(struct lane *lane) {
    /* By who records, or by another thread; a later look will do, so no order is asked for. */
    uint32_t stopped = atomic_load_explicit(&spool->stopped, memory_order_relaxed);
    if (stopped != SPOOL_GOES_ON)
        return (enum spool_stop)stopped;
    int file = spool_descriptor();
    if (file < 0)
        return SPOOL_STOP_FILE;
    uint64_t at = SPOOL_HEAD + (uint64_t)atomic_fetch_add(&spool->chunks, 1) * SPOOL_CHUNK;
    if (at + SPOOL_CHUNK > spool->limit)
        return SPOOL_STOP_LIMIT;
    if (!spool_make_room(file, at, SPOOL_CHUNK))
        return SPOOL_STOP_DISK;
    char *half = lane->range + (lane->upper ? 0 : SPOOL_CHUNK);
    void *chunk = mmap(half, SPOOL_CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                       (off_t)at);
    if (chunk == MAP_FAILED)
        return SPOOL_STOP_MEMORY;
    madvise(chunk, SPOOL_CHUNK, MADV_POPULATE_WRITE); /* one call, not a fault for each page */
    struct spool_record *first = chunk;
    atomic_store_explicit(&first->when, lane->number, memory_order_relaxed);
    atomic_store_explicit(&first->what, SPOOL_CHUNK_HEAD, memory_order_release);
    lane->upper = !lane->upper;
    lane->end = (uintptr_t)chunk + SPOOL_CHUNK;
    lane->cursor = (uintptr_t)(first + 1);
    return SPOOL_GOES_ON;
}

static bool next_chunk(struct lane *lane) {
    if (!lane->range) {
        void *range = mmap(NULL, 2 * SPOOL_CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (range == MAP_FAILED) {
            spool_stop(SPOOL_STOP_MEMORY);
            return false;
        }
        lane->range = range;
    }
    enum spool_stop why = map_chunk(lane);
    if (why)
        spool_stop(why);
    return why == SPOOL_GOES_ON;
}

/* Adds `bytes` to the cursor and returns what it was: one instruction, which no signal divides. */
static uintptr_t advance(struct lane *lane, uintptr_t bytes) {
#if defined __x86_64__
    __asm__ volatile("xaddq %0, %1" : "+r"(bytes), "+m"(lane->cursor) : : "memory", "cc");
    return bytes;
#else
    return __atomic_fetch_add(&lane->cursor, bytes, __ATOMIC_RELAXED);
#endif
}

/* What lies behind one half may lie in the other, which a handler can have mapped meanwhile. */
static struct spool_record *take(struct lane *lane, uintptr_t bytes) {
    uintptr_t end = lane->end, at = advance(lane, bytes);
    return at + bytes <= end && end == lane->end ? (struct spool_record *)at : NULL;
}

/* The same where there is no lane yet, or its chunk is full. A thread that was cancelled must not
 * end here, where files may be opened and closed: to the program this is malloc() or free(). */
static __attribute__((noinline)) struct spool_record *take_slowly(uintptr_t bytes) {
    sigset_t before;
    int kept = errno, cancels;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    block_signals(&before);
    struct lane *lane = mine ? mine : enter();
    struct spool_record *slot = NULL;
    while (lane && *recording && !(slot = take(lane, bytes)))
        if (!next_chunk(lane))
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    function_look_again();
    pthread_setcancelstate(cancels, NULL);
    errno = kept;
    return slot;
}

void lane_note(enum spool_op op, uint32_t site, uint64_t address, uint64_t size, uint64_t wide) {
    uintptr_t bytes = sizeof(struct spool_record) << (wide != 0);
    struct spool_record *slot = mine ? take(mine, bytes) : NULL;
    if (unlikely(!slot) && !(slot = take_slowly(bytes)))
        return;
    if (wide) {
        atomic_store_explicit(&slot->when, wide, memory_order_relaxed);
        atomic_store_explicit(&slot->what, SPOOL_WIDE, memory_order_release);
        slot++;
    }
    uint64_t number = atomic_fetch_add_explicit(&spool->sequence, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->when, spool_when(number, size), memory_order_relaxed);
    atomic_store_explicit(&slot->what, spool_what(op, site, address),
                          memory_order_release);
    if (unlikely(left) && op == SPOOL_THREAD_END)
        give_lane();
    else if (unlikely(left) && op != SPOOL_REALLOC_FROM) /* whose other half is to lie beside it */
        lane_note(SPOOL_THREAD_END, 0, 0, 0, 0);
}
