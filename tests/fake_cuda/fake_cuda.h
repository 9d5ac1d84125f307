// SPDX-License-Identifier: Apache-2.0
/*
 * fake_cuda.h - a CUDA driver in host memory, for machines that have none.
 *
 * The library has the functions of the driver API that ebb uses, under their names. What it has and
 * the real one has not is below. It is stricter than the real one where a mistake would stay
 * unseen:
 *
 *   - memory of a device is at an address that nobody may touch (a host that does dies at once);
 *     what it has is elsewhere;
 *   - a copy from or to registered pages happens when its stream runs, not when it is asked for:
 *     who uses the pages again too early reads or writes the wrong bytes. Copies of other host
 *     memory are done at once, as the real driver does them;
 *   - what the real driver leaves undefined is counted as misuse: calls in a forked child, memory
 *     that is freed or unregistered while work for it waits, without a current context, twice.
 *
 * Environment, read at cuInit(): FAKE_CUDA_DEVICES (2), FAKE_CUDA_MEMORY in bytes (256 MiB, of
 * each), FAKE_CUDA_FAIL=n: the n-th call fails; FAKE_CUDA_FORK=1: it forks a helper first (see
 * fake_cuda_before_fork());
 * FAKE_CUDA_ASKED=1: a forked child may call it, and is refused.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#define FAKE_CUDA_LEGACY ((void *)1)     /* CU_STREAM_LEGACY: the default stream */
#define FAKE_CUDA_PER_THREAD ((void *)2) /* CU_STREAM_PER_THREAD: one for each thread */
#define FAKE_CUDA_FAILURE 999 /* CUDA_ERROR_UNKNOWN: what a call that was made to fail returns */

/* What is not given back, and what went wrong so far. */
struct fake_cuda_state {
    size_t allocations, allocated_bytes;
    size_t registered, registered_bytes;
    size_t registrations;    /* ever made */
    size_t events, contexts; /* contexts: retained and not released */
    size_t stuck;            /* contexts that it was made to refuse to release */
    size_t waiting;          /* operations that no stream has run yet */
    size_t copies;           /* operations that were run */
    const char *failed;      /* the first call that was made to fail; NULL: none was */
    size_t misuses;          /* also those of forked children */
    char misuse[128];        /* the first one */
};

void fake_cuda_look(struct fake_cuda_state *state);

/* The n-th call from now on fails, `all`: and all later ones. 0: none. Returns how many calls there
 * were since the last time. */
unsigned fake_cuda_fail(unsigned nth, bool all);

/* While set, streams run only when they are synchronized: querying an event does not help. */
void fake_cuda_stall(bool stall);

/* While set, memory of a device is aligned to 256 bytes, else to 2 MiB. */
void fake_cuda_misalign(bool misalign);

/* Called before a helper is forked; NULL: nothing is. */
void fake_cuda_before_fork(void (*call)(void));

/* Called by each call of the driver with its name, without the fake's lock: a driver allocates.
 * NULL: nothing. */
void fake_cuda_in_calls(void (*call)(const char *name));

/* Lets all streams run. */
void fake_cuda_run(void);

#endif
