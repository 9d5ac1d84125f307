// SPDX-License-Identifier: Apache-2.0
/*
 * peer_floor.c - the least that an allocation can cost: a bare bump of a pointer.
 *
 * The memory is mapped and written before anything is timed, there is no limit to compare with,
 * nothing is counted and nothing can be freed. The cursor lives in a register. No allocator can
 * be faster in the same loop; the ratio to this row is what an allocator adds.
 *
 * floor-in-memory keeps cursor and limit behind a pointer and compares them, as any arena must
 * that is handed from function to function: what is left once nothing is counted or recorded.
 *
 * In `promote` the floor is a memcpy between two blocks of the same size, both touched before. It
 * is timed as ebb's promotions are: the source is written, then one copy is timed by itself.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "case_promote.h"
#include "cases.h"

static char *floor_base;

/* What the largest step of a case needs. flat_bytes never touches its blocks, so its memory is
 * not touched here either. */
static size_t floor_bytes(enum micro_case which) {
    switch (which) {
    case CASE_FLAT_COUNT: return (size_t)512 << 20;
    case CASE_FLAT_BYTES: return (size_t)9 << 30;
    case CASE_LARGE: return (size_t)256 << 20;
    case CASE_CLOSE_N: return (size_t)64 << 20;
    case CASE_PLANNED:
    case CASE_PROMOTE: return (size_t)128 << 20;
    default: return (size_t)16 << 20;
    }
}

static void floor_set_up(enum micro_case which) {
    size_t bytes = floor_bytes(which);
    void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (place == MAP_FAILED)
        abort();
    if (which != CASE_FLAT_BYTES)
        memset(place, 1, bytes);
    floor_base = (char *)place;
}

MICRO_INLINE void floor_begin(struct step *step) {
    step->place = floor_base;
}

MICRO_INLINE void *floor_alloc(struct step *step, size_t bytes) {
    char *block = (char *)step->place;

    step->place = block + ((bytes + 15) & ~(size_t)15);
    return block;
}

MICRO_INLINE void floor_end(struct step *step, const struct held *held) {
    (void)step;
    (void)held;
}

static double copy_once_ns(size_t bytes) {
    uint64_t begun;

    memset(floor_base, 1, bytes);
    use_memory();
    begun = clock_wall_ns();
    memcpy(floor_base + bytes, floor_base, bytes);
    use_memory();
    return (double)(clock_wall_ns() - begun);
}

static void floor_promote(struct round *round) {
    for (size_t bytes = 64; bytes <= PROMOTE_BYTES_MOST; bytes *= 4) {
        double spans[PROMOTE_REPETITIONS];
        size_t repetitions = promote_repetitions(bytes);

        for (size_t i = 0; i < repetitions; i++)
            spans[i] = copy_once_ns(bytes);
        round_add_at(round, "ns_memcpy", 'b', bytes,
                     clock_calm_mean(spans, repetitions) - clock_wall_cost_ns());
    }
}

struct cursor {
    uint64_t next; /* of the type that the loop writes to the blocks: they may alias */
    uint64_t limit;
};

static struct cursor memory_cursor;

static void memory_set_up(enum micro_case which) {
    floor_set_up(which);
    memory_cursor.limit = (uint64_t)(uintptr_t)floor_base + floor_bytes(which);
}

MICRO_INLINE void memory_begin(struct step *step) {
    memory_cursor.next = (uint64_t)(uintptr_t)floor_base;
    step->place = &memory_cursor;
    use_memory();
}

MICRO_INLINE void *memory_alloc(struct step *step, size_t bytes) {
    struct cursor *cursor = (struct cursor *)step->place;
    uint64_t block = cursor->next;
    uint64_t after = block + ((bytes + 15) & ~(uint64_t)15);

    if (after > cursor->limit)
        abort();
    cursor->next = after;
    return (void *)(uintptr_t)block;
}

static const struct peer_ops memory_ops = {
    .begin = memory_begin,
    .end = floor_end,
    .alloc = memory_alloc,
    .forgets = true,
};

static void memory_run(enum micro_case which, struct round *round) {
    cases_run(&memory_ops, which, round);
}

const struct peer peer_floor_in_memory = {.set_up = memory_set_up, .run = memory_run};

static const struct peer_ops floor_ops = {
    .begin = floor_begin,
    .end = floor_end,
    .alloc = floor_alloc,
    .forgets = true,
};

static void floor_run(enum micro_case which, struct round *round) {
    if (which == CASE_PROMOTE)
        floor_promote(round);
    else
        cases_run(&floor_ops, which, round);
}

const struct peer peer_floor = {.set_up = floor_set_up, .run = floor_run};
