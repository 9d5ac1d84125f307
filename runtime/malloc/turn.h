// SPDX-License-Identifier: Apache-2.0
/*
 * turn.h - scopes that nobody opens: the turns of a loop that waits for something to do.
 *
 *     wait()        something came: the turn is awaited
 *     malloc()      its first block begins the scope
 *     ...
 *     wait()        the scope ends, before the thread sleeps
 *
 * Which waits are those of a loop can only be guessed, and each guess is safe, since a scope may
 * end at any moment. The rule:
 *
 *   - A loop is a wait that comes again: from the same place of the program and the same frame of
 *     the stack as the thread's wait before. When it returns with something to do a turn begins,
 *     unless the thread is in a scope of the program's own.
 *   - The next wait ends it. Not the next, but a part of the turn, is one that does not wait, with
 *     a timeout of 0; and one deeper in the stack than the loop's: somebody whom the loop called
 *     waits for an answer, or a handler of a signal. After TURN_PARTS of them the turn is over all
 *     the same: the loop may be, too, and its place is taken by one that comes again.
 *
 * A turn that allocates nothing costs next to nothing. Errno, ebb's errors and cancellation are as
 * if there were no turns; signals are blocked while a scope ends, so that a handler may jump out of
 * a wait at any moment.
 */
#ifndef EBB_MALLOC_TURN_H
#define EBB_MALLOC_TURN_H

#include "malloc/heap.h"

#define TURN_PARTS 16u

struct turn_wait {
    const void *place; /* where the program calls */
    const void *frame; /* of that call, on the stack */
    bool peeks;        /* it will not wait, its timeout is 0 */
    bool comes_again;  /* it is a loop's; turn_before() knows */
};

/* This library is loaded, and there are to be turns. False: there must be none. */
bool turn_prepare(void);

/* The thread is about to wait. */
void turn_before(struct turn_wait *wait);

/* It has waited for so many events, or bytes; below 0: it failed. */
void turn_after(const struct turn_wait *wait, ptrdiff_t result);

/* A block is asked for in scope_awaited. The scope that begins with it, or NULL: none does. */
struct scope *turn_begin(void);

/* The turn ends, if there is one. */
void turn_end(void);

/* This thread has no turns. */
void turn_never(void);

#endif
