// SPDX-License-Identifier: Apache-2.0
/*
 * seat.h - which thread this is, and whether another one has ended.
 *
 * A thread takes a seat when it is first asked and leaves it when it ends. Where all seats are
 * taken, a thread stands: it has a number like any other, but nobody sees it end. Nor is one seen
 * to end that is asked for the first time, or again after it has left, in the last round of its
 * destructors (PTHREAD_DESTRUCTOR_ITERATIONS, four): nothing runs after these, and none of them can
 * tell which round it is. Its seat stays taken, and where a site has a ring, its lane its own.
 */
#ifndef EBB_STEP_SEAT_H
#define EBB_STEP_SEAT_H

#include <stdbool.h>
#include <stdint.h>

struct seat {
    uint64_t thread; /* number of the thread, from 1, never used again */
    uint32_t place;  /* SEAT_NONE: it stands */
};

#define SEAT_COUNT 65536u /* untouched ones cost nothing */
#define SEAT_NONE UINT32_MAX

/* What is noted when a thread sits down has a key, which is made then, or before. */
void seat_make_key(void);

/* That of the calling thread. Never fails. */
struct seat seat_own(void);

/* Its number, or 0: it was not asked yet. In a handler of forks, too. */
uint64_t seat_number(void);

/* True if that thread has ended; what it did happened before. */
bool seat_is_left(struct seat seat);

#endif
