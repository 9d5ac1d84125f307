// SPDX-License-Identifier: Apache-2.0
/*
 * seat.c - seats of threads (see seat.h).
 *
 * Invariant: a place holds the number of a thread that has not ended, or 0. The destructor of a
 * thread-specific value clears it, with release, so that who finds it left sees all that the
 * thread did.
 */
#include "step/seat.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint64_t places[SEAT_COUNT];
static _Atomic uint64_t threads; /* numbers given so far */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ending;
static bool has_key;
static _Thread_local struct seat own;

static void leave(void *place) {
    atomic_store_explicit((_Atomic uint64_t *)place, 0, memory_order_release);
    own = (struct seat){0, SEAT_NONE};
}

static void make_key(void) {
    has_key = pthread_key_create(&ending, leave) == 0;
}

void seat_make_key(void) {
    pthread_once(&once, make_key);
}

/* Sits down at a free place and arranges that it is left in the end. */
static uint32_t sit(uint64_t thread) {
    for (uint32_t place = 0; place < SEAT_COUNT; place++) {
        uint64_t empty = 0;
        /* acquire: who sees this thread leave sees all that those did who sat there before */
        if (atomic_load_explicit(&places[place], memory_order_relaxed) ||
            !atomic_compare_exchange_strong_explicit(&places[place], &empty, thread,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        if (pthread_setspecific(ending, &places[place]) == 0)
            return place;
        atomic_store_explicit(&places[place], 0, memory_order_release); /* as leave() does */
        break;
    }
    return SEAT_NONE;
}

struct seat seat_own(void) {
    struct seat *seat = &own;
    if (seat->thread)
        return *seat;
    seat_make_key();
    /* relaxed: only that no two are the same matters */
    seat->thread = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    seat->place = has_key ? sit(seat->thread) : SEAT_NONE;
    return *seat;
}

uint64_t seat_number(void) {
    return own.thread;
}

bool seat_is_left(struct seat seat) {
    return seat.place != SEAT_NONE &&
           /* acquire: pairs with leave() */
           atomic_load_explicit(&places[seat.place], memory_order_acquire) != seat.thread;
}
