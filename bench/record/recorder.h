// SPDX-License-Identifier: Apache-2.0
/*
 * recorder.h - inside libebb-record.so: from a call of the program to a record in the spool.
 *
 *     family.c cxx.c step.c python.c function.c    what the program calls
 *     lane.c                                       a thread's place in the spool
 *     sites.c                                      return addresses become numbers
 *     spool_open.c                                 the file, from the environment
 *     next.c                                       the allocator below
 *
 * Nothing here allocates, and nothing but the slow path of a lane (once in some thousand calls),
 * the first call from a library and one from inside of the allocator makes a system call. errno is
 * kept.
 */
#ifndef EBB_BENCH_RECORD_RECORDER_H
#define EBB_BENCH_RECORD_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include "spool.h"

#define EXPORT __attribute__((visibility("default")))
#define THREAD_OWN static __thread __attribute__((tls_model("initial-exec")))
#define CALLER ((uint64_t)(uintptr_t)__builtin_return_address(0))

/* Part of the function that calls it: its frame is that one's. */
#define IN_PLACE static inline __attribute__((always_inline))

static inline bool unlikely(bool value) {
    return __builtin_expect(value, 0);
}

/* ---- the allocator below (next.c) */

struct next {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
    void (*free_sized)(void *, size_t);                 /* NULL: free() serves */
    void (*free_aligned_sized)(void *, size_t, size_t); /* the same */
};

extern struct next next;

/* Finds the functions of the next library; the recorder starts. Called by the first of all calls.
 * False while another call, further up on this thread, is at it: bootstrap_ serves. */
bool next_resolve(void);

/* Memory for what the dynamic linker allocates meanwhile; never given back, never noted. */
void *bootstrap_alloc(size_t bytes, size_t align);
bool bootstrap_owns(const void *block);
size_t bootstrap_size(const void *block);

/* A call that the allocator serves. It lies in that call's frame; `itself` is wiped as it ends. */
struct work {
    const struct work *volatile itself;
    const struct work *around; /* NULL: the program called */
};

/* The last one on this thread: what is called meanwhile is not noted (family.c). NULL: none. */
extern __thread const struct work *allocator_at_work __attribute__((tls_model("initial-exec")));

/* Bytes of stack between a call and one that it makes. */
enum { DEEPEST = 64 << 10 };

/* Whether a call with this frame is the allocator's own. If not, nothing is at work, whatever the
 * thread has left by a jump. */
bool work_goes_on(const void *frame);

IN_PLACE bool is_allocators_own(void) {
    return unlikely(allocator_at_work != NULL) && work_goes_on(__builtin_frame_address(0));
}

/* ---- the spool (spool_open.c) */

extern struct spool_head *spool; /* NULL: nothing is recorded */
extern const bool *recording;    /* wiped by fork: a child notes nothing */

/* Opens the spool that the environment asks for, if it does. */
void spool_open(void);

/* The descriptor, checked to be still the spool's; -1 if it is lost. */
int spool_descriptor(void);

/* Makes sure of disk space for this part of the file, and for a trace of what it has then. */
bool spool_make_room(int file, uint64_t at, uint64_t bytes);

/* Nothing is noted from now on. */
void spool_stop(enum spool_stop why);

/* Number of a kind of regions, added where it is new. */
uint32_t spool_kind(const char *name);

/* ---- lanes (lane.c) */

/* Writes a record. `wide` other than 0: the word of a SPOOL_WIDE record before it. */
void lane_note(enum spool_op op, uint32_t site, uint64_t address, uint64_t size, uint64_t wide);

/* ---- sites (sites.c) */

uint32_t site_of(uint64_t caller);

/* ---- operators of C++ (cxx.c) */

/* An operator that the program called. What malloc() is asked for there was asked for by `caller`,
 * and was `size` before the operator rounded it up by less than `slack`. */
struct operator_call {
    uintptr_t frame; /* where the call's is: to be compared, the stack may be gone; 0: no call */
    uint64_t caller; /* 0: of delete */
    size_t size, slack;
    const void *born;   /* what was noted last, by malloc() */
    size_t born_bytes;  /* that it was asked for */
    const void *ending; /* its end has been noted */
};

/* How many of this thread's are to be looked at. */
extern __thread int operators_known __attribute__((tls_model("initial-exec")));

/* The operator that a call with this frame is in. NULL: none, whatever the thread has left. */
struct operator_call *operator_around(const void *frame);

IN_PLACE struct operator_call *own_operator(void) {
    return unlikely(operators_known > 0) ? operator_around(__builtin_frame_address(0)) : NULL;
}

/* ---- what was called */

/* A block was born; NULL notes nothing. */
IN_PLACE void note_birth(enum spool_op op, void *block, size_t size, size_t align,
                         uint64_t caller) {
    uint64_t wide = align ? (uint64_t)__builtin_ctzll(align) << 32 : 0;
    if (unlikely(!block) || is_allocators_own() || !*recording)
        return;
    struct operator_call *call = own_operator();
    if (call && call->caller) {
        caller = call->caller;
        call->born_bytes = size;
        if (size - call->size < call->slack)
            size = call->size;
        call->born = block;
    }
    wide |= (uint64_t)size >> 32;
    lane_note(op, site_of(caller), (uint64_t)(uintptr_t)block, size, wide);
}

IN_PLACE void note_end(enum spool_op op, const void *block) {
    if (is_allocators_own())
        return;
    struct operator_call *call = own_operator();
    if (*recording && !(call && call->ending == block))
        lane_note(op, 0, (uint64_t)(uintptr_t)block, 0, 0);
    if (call && call->born == block)
        call->born = NULL; /* its address may come again */
}

/* ---- steps (step.c) */

/* A mark is about to begin: steps that were closed with their parents end before it. */
void step_note_closed(void);

/* ---- a named function (function.c) */

/* Every call of it begins a region from now on. */
void function_watch(const char *name);

/* Looks at libraries that were loaded since; cheap where there are none. */
void function_look_again(void);

#endif
