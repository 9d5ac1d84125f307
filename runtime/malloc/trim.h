// SPDX-License-Identifier: Apache-2.0
/* trim.h - giving memory back to the system. */
#ifndef EBB_MALLOC_TRIM_H
#define EBB_MALLOC_TRIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap;

/* Everything that no block needs, at once. 1 if any memory went, 0 if there was none to give. Any
 * thread. */
int trim_all(void);

/*
 * A scope with large blocks has ended; they were those of a step, or else the general heap's. After
 * one without a step what steps have left in the pool goes as if there had been one, until nothing
 * is left to go. The bytes. Any thread.
 */
size_t trim_after(bool had_step);

/* What is remembered between two looks. */
struct trim_idle {
    uint64_t changes, falls;          /* scopes that had ended, and falls; of these, falls */
    uint64_t large_scopes;            /* that had ended; with a step */
    uint64_t idle_ms, large_idle_ms;  /* since then */
    uint64_t now_ms;                  /* of all looks */
    uint64_t since_decay_ms;          /* since pages of the general heap were looked at */
    struct heap *turn_of;             /* see heap_cool() */
    unsigned exhausted;               /* the same */
    size_t thinned;                   /* bytes of pinned trays, in this round */
};

/*
 * One look, every `tick_ms`: free pages of the general heap go as they age, if no scope has ended
 * and little was freed since the last look, or else every ten seconds; so do those of large blocks
 * that others freed `least_ms` ago and whose own thread rests; and, while too much is pinned by
 * survivors, pages of their trays in which nothing is alive. If no scope with a step for large
 * blocks has ended for so long, a part of what the pool keeps for them goes, for a millisecond.
 * True: nothing is left to do until there is another scope, or much is freed. One thread.
 */
bool trim_when_idle(struct trim_idle *idle, unsigned tick_ms, unsigned least_ms);

#endif
