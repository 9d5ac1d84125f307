// SPDX-License-Identifier: Apache-2.0
/*
 * model.h - random operations on a tree of regions, beside a shadow that knows what must be true.
 *
 * The shadow is an array of blocks (address, size, alignment, seed of the contents, owner, when
 * the owner got it) and an array of regions with their counters. After every operation the
 * counters of the regions it touched are compared; every so often everything is: contents,
 * overlap, alignment, counters of all regions, budgets, and the library's own walkers.
 *
 * Everything follows from the seed. A model belongs to one thread; several may share a pool.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <ebb/ebb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MODEL_DEPTH = 5,      /* regions above each other */
    MODEL_REGIONS = 20,   /* open at once */
    MODEL_BLOCKS = 700,   /* alive at once */
    MODEL_MARKS = 10,     /* per region */
    MODEL_GHOSTS = 64,    /* ended blocks and closed handles that are remembered */
    MODEL_LISTED = 24,    /* of one promotion */
    MODEL_NONE = -1
};

#define MODEL_MOST_BYTES ((size_t)48 << 20) /* requested and alive at once */

struct shadow_block {
    char *addr;
    size_t bytes, align;
    unsigned seed;
    int owner;    /* index of a region */
    uint64_t got; /* when the owner got it */
};

struct shadow_meter {
    uint64_t current, peak, total;
};

struct shadow_mark {
    ebb_mark mark;
    uint64_t when;
};

struct shadow_region {
    ebb_region handle;
    bool open, sealed;
    uint64_t opened; /* when */
    int parent;
    unsigned depth;
    size_t limit;
    struct shadow_meter blocks, requested;
    struct shadow_mark marks[MODEL_MARKS];
    unsigned mark_count;
};

struct model {
    uint64_t seed, state; /* of the random numbers */
    uint64_t op, now;     /* operations so far; time of the shadow */
    ebb_pool *pool;
    bool shared;    /* other threads use the pool */
    bool phantom;   /* a tree of measuring regions: blocks have no memory */
    bool limited;   /* the pool has limits that may refuse */
    bool faulty;    /* acquisitions fail at random */
    bool trace;     /* say what is done */
    struct shadow_region regions[MODEL_REGIONS];
    struct shadow_block blocks[MODEL_BLOCKS];
    unsigned block_count;
    size_t bytes;
    void *ghosts[MODEL_GHOSTS];
    ebb_region closed[MODEL_GHOSTS];
    unsigned ghost_count, closed_count;
};

/* Ends the process with seed and operation, if `holds` is false. */
#define MODEL_DEMAND(model, holds) model_demand(model, (holds), #holds, __FILE__, __LINE__)
void model_demand(const struct model *model, bool holds, const char *claim, const char *file,
                  int line);

void model_say(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Random numbers: below n, one in n, a size, an alignment. */
uint64_t model_random(struct model *model);
size_t model_below(struct model *model, size_t n);
bool model_chance(struct model *model, size_t one_in);
size_t model_size(struct model *model);
size_t model_align(struct model *model);

/* ---- shadow.c ---- */

int shadow_some_region(struct model *model); /* an open one, or MODEL_NONE */
int shadow_some_block(struct model *model);
int shadow_some_block_of(struct model *model, int region);
bool shadow_is_above(const struct model *model, int ancestor, int region);

int shadow_open(struct model *model, ebb_region handle, int parent, size_t limit, bool sealed);
void shadow_close(struct model *model, int region);

/* A block came into being; its contents are written. */
void shadow_add(struct model *model, int region, void *block, size_t bytes, size_t align);
/* The same, with the contents that another block had. */
void shadow_add_copy(struct model *model, int region, void *block, const struct shadow_block *of);
void shadow_remove(struct model *model, int block);
void shadow_resize(struct model *model, int block, size_t bytes);
void shadow_rewind(struct model *model, int region, uint64_t when);
void shadow_clear(struct model *model, int region);
void shadow_move(struct model *model, int block, int region);

void shadow_write(const struct model *model, struct shadow_block *block);
void shadow_read(const struct model *model, const struct shadow_block *block, size_t bytes);

/* The counters of one region are as they must be. */
void shadow_check_region(const struct model *model, int region);
void shadow_check_all(struct model *model);

/* True if a limit on the way up may, or must, refuse `used` more bytes. */
bool shadow_may_refuse(const struct model *model, int region, size_t used);
bool shadow_must_refuse(const struct model *model, int region, size_t used);

/* ---- the operations: blocks.c and trees.c ---- */

void op_alloc(struct model *model);
void op_release(struct model *model);
void op_resize(struct model *model);
void op_realloc(struct model *model);
void op_release_ghost(struct model *model);

void op_open(struct model *model);
void op_close(struct model *model);
void op_reset(struct model *model);
void op_seal(struct model *model);
void op_mark(struct model *model);
void op_rewind(struct model *model);
void op_promote(struct model *model);
void op_close_keeping(struct model *model);
void op_trim(struct model *model);
void op_limit(struct model *model);
void op_use_closed(struct model *model);

/* ---- promotions: trees.c ---- */

struct listing {
    int source, target;
    struct ebb_survivor list[MODEL_LISTED];
    struct shadow_block before[MODEL_LISTED]; /* what was listed, to compare and to copy */
    size_t count, owned;                      /* owned: by the source */
    uint64_t alive;                           /* blocks, in the source and below it */
};

/* Some blocks of some region, to go to an ancestor or itself; false if there is none now. */
bool listing_make(struct model *model, struct listing *listing);
/* It was promoted: the shadow follows. Or it failed: nothing changed, and there was a reason. */
void listing_follow(struct model *model, const struct listing *listing);
void listing_check_failure(const struct model *model, const struct listing *listing, int result);
/* Now that the source was closed, keeping it: what that says fits. */
void listing_check_end(const struct model *model, const struct listing *listing,
                       const struct ebb_promoted *cost, uint64_t lost);

/* ---- play.c ---- */

struct act {
    void (*act)(struct model *model);
    unsigned weight;
};

/* One of them, by their weights. */
void model_act(struct model *model, const struct act *acts, size_t count);

enum model_flags { MODEL_SHARED = 1, MODEL_LIMITED = 2, MODEL_FAULTY = 4 };

/* A model with nothing in it; whatever ends the process from now on says its seed. */
struct model *model_begin(uint64_t seed, ebb_pool *pool, unsigned flags);
void model_end(struct model *model);

/* `ops` operations from this seed on the pool (NULL: measuring). Closes all it opened. */
void model_play(uint64_t seed, uint64_t ops, ebb_pool *pool, unsigned flags);

#endif
