// SPDX-License-Identifier: Apache-2.0
/*
 * waiting.pml - waiting for a slot of a shared pool, for Spin.
 *
 * Processes take turns at one slot: who finds it taken announces that he waits, and falls asleep if
 * no slot has become free since before he looked. A step is one access to a word, or one call of
 * the kernel. ring() is that of runtime/pool/shared_state.c, find_or_wait() of shared_region.c.
 * Nobody is killed, and no wait ends by itself: those look again after a while, whatever happens.
 *
 * Shown, for every order of steps: nobody sleeps for ever. tests/handoff/verify runs it. With -DLATE
 * (an announcement is taken back after the slot was counted) somebody does.
 */
#ifndef ROUNDS
#define ROUNDS 2 /* of each process */
#endif
#ifndef ACTORS
#define ACTORS 3
#endif

bool is_free = true;
byte frees;
bool waiting;
bool asleep[ACTORS];

inline find_or_wait() {
    do
    :: seen = frees;
       if
       :: atomic { is_free -> is_free = false }; break
       :: else ->
          waiting = true;
          asleep[me] = (frees == seen);
          !asleep[me]
       fi
    od
}

inline take_back() {
    waits = waiting;
    if
    :: waits -> atomic { waits = waiting; waiting = false }
    :: else
    fi
}

inline wake() {
    atomic {
        other = 0;
        do
        :: other < ACTORS -> asleep[other] = false; other++
        :: else -> break
        od
    }
}

inline ring() {
#ifdef LATE
    frees++;
    take_back();
#else
    take_back();
    frees++;
    waits = waits || waiting;
#endif
    if
    :: waits -> wake()
    :: else
    fi
}

active [ACTORS] proctype actor() {
    byte me = _pid, seen, other, left = ROUNDS;
    bool waits;
    do
    :: left == 0 -> break
    :: else ->
       find_or_wait();
       is_free = true;
       ring();
       left--
    od
}
