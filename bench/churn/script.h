// SPDX-License-Identifier: Apache-2.0
/*
 * script.h - a trace made ready for replay: what to do, with every question answered in advance.
 *
 * The harness compiles each trace once into one block of memory (a memfd) and hands it to every
 * replaying process, which maps it read-only. So all allocators work from the same bytes, and no
 * process that is measured ever parses anything or calls malloc for itself.
 *
 *     offset 0     struct script                 counts and the offsets of the tables below
 *     events_at    struct script_event[]         preexisting objects first, then the total order
 *     survivors_at struct script_survivor[]      in runs, one run per region that closes
 *     closings_at  struct script_closing[]       one per region that closes
 *     steps_at     struct script_step[]          outermost regions, in the order of their begin
 *
 * Objects live in slots: an object that ends frees its slot for the next, so that the table of
 * pointers stays small and hot. Open regions have numbers too; 0 is the root, which is always
 * open. Which region owns an object when it is freed is known here: ownership moves up to the
 * parent whenever a region closes.
 *
 * Invariant: every slot, region and index in a script is in range, because the trace it was made
 * from was checked. The replayer does no checks of its own.
 */
#ifndef EBB_BENCH_SCRIPT_H
#define EBB_BENCH_SCRIPT_H

#include <stdint.h>

enum {
    SCRIPT_MAGIC = 0x31626265, /* "ebb1" */
    SCRIPT_REGIONS_MAX = 65535, /* open at once */
    SCRIPT_KINDS_MAX = 256,
    SCRIPT_WORD_MAX = 64,
    SCRIPT_ALIGN_LOG2 = 4, /* what an allocation that asks for nothing gets: 16 */
};

#define SCRIPT_BYTES_MAX (UINT64_C(1) << 47) /* largest block */

enum script_op {
    SCRIPT_ALLOC,   /* new object in `slot` */
    SCRIPT_CALLOC,  /* the same, zeroed */
    SCRIPT_REALLOC, /* the object in `slot` gets `bytes`; it belongs to the present region */
    SCRIPT_MOVE,    /* the same, but `owner` owns it until now and `region` does afterwards */
    SCRIPT_FREE,    /* the object in `slot` ends; `owner` owns it */
    SCRIPT_OPEN,    /* region `region` opens under `owner`; slot: its step + 1, or 0 if nested;
                       bytes: its kind */
    SCRIPT_CLOSE,   /* region `region` closes; slot: number of its closing */
};

struct script_event {
    uint64_t bytes : 48;
    uint64_t region : 16;
    uint32_t slot;
    uint16_t owner;
    uint8_t op;
    uint8_t align_log2;
};

/* An object that is alive when its region closes, and passes to the parent. */
struct script_survivor {
    uint32_t slot;
    uint32_t align;
};

struct script_closing {
    uint32_t first, count; /* its survivors */
    uint32_t step;         /* number of the step that ends here + 1; 0: a nested region */
    uint32_t reserved;
};

struct script_step {
    uint32_t kind;
    uint32_t warmup;      /* 1: among the first of its kind, not steady in the first pass */
    uint32_t begin, end;  /* events that open and close it */
    uint32_t quiet;       /* 1: no region is open after `end`: a pass may stop here */
    uint32_t reserved;
    uint64_t born_bytes;  /* allocated in it, nested regions included */
};

struct script {
    uint32_t magic;
    uint32_t event_count, survivor_count, closing_count, step_count, kind_count;
    uint32_t slot_count;
    uint32_t region_count;   /* root included: numbers are below this */
    uint32_t survivors_max;  /* of one closing */
    uint32_t main_kind;      /* kind of step that allocates most bytes, warm-up left out */
    uint64_t total_bytes;    /* of the whole block */
    uint64_t events_at, survivors_at, closings_at, steps_at;
    char kind[SCRIPT_KINDS_MAX][SCRIPT_WORD_MAX];
};

_Static_assert(sizeof(struct script_event) == 16, "an event is 16 bytes");
_Static_assert(sizeof(struct script_survivor) == 8, "a survivor is 8 bytes");
_Static_assert(sizeof(struct script) % 16 == 0, "tables start aligned");

static inline const void *script_at(const struct script *script, uint64_t offset) {
    return (const char *)script + offset;
}

static inline const struct script_event *script_events(const struct script *script) {
    return script_at(script, script->events_at);
}

static inline const struct script_survivor *script_survivors(const struct script *script) {
    return script_at(script, script->survivors_at);
}

static inline const struct script_closing *script_closings(const struct script *script) {
    return script_at(script, script->closings_at);
}

static inline const struct script_step *script_steps(const struct script *script) {
    return script_at(script, script->steps_at);
}

#endif
