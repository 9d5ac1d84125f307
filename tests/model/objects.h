// SPDX-License-Identifier: Apache-2.0
/*
 * objects.h - random operations on objects in trees of regions, beside a shadow that knows who
 * has what, since when, and what every element is.
 *
 *     objects.c         games: seeds, chances, failing acquisitions
 *     objects_shadow.c  the shadow: what an operation means
 *     objects_check.c   everything that can be asked is compared with it
 *     objects_make.c    operations on one object: making, composing, ending, taking
 *     objects_move.c    operations that give objects to others
 *     objects_export.c  exports, which see storages and outlive them
 *     objects_region.c  operations on regions: opening, closing, marks, cleanups
 *     objects_step.c    some regions are those of steps, which follow plans or stay in rings
 *
 * Age is counted as ebb does: `serial` is the number of marks that the region had set when it got
 * something. Everything follows from the seed.
 */
#ifndef MODEL_OBJECTS_H
#define MODEL_OBJECTS_H

#include <ebb/ebb.h>

enum {
    SCENE_REGIONS = 12,
    SCENE_THINGS = 120,
    SCENE_STORES = 120,
    SCENE_RECORDS = 6, /* owners of one thing that are not its host */
    SCENE_PARTS = 4,
    SCENE_MARKS = 4,
    SCENE_KINDS = 3,
    SCENE_GHOSTS = 32,
    SCENE_CLEANUPS = 8,
    SCENE_EXPORTS = 6,
    SCENE_NDIM = 3,
    SCENE_SITES = 4,
    SCENE_REHEARSED = 12,
    NOBODY = -1
};

/* The user's composite, with a field of every kind and a pointer into itself behind it. */
struct node {
    struct ebb_object object;
    struct ebb_object *left, *right;
    struct ebb_object **parts;
    size_t part_count;
    unsigned char *name;
    size_t name_bytes;
    unsigned char *tail; /* [tail_bytes] behind the struct */
    size_t tail_bytes;
};

extern struct ebb_type node_types[2]; /* the same struct, counted as two kinds */

struct record {
    int region;
    bool lent;
    uint64_t owner_serial, host_serial;
};

struct thing {
    bool live, mark; /* mark: part of what is looked at now */
    void *addr;
    int kind, host, whole;
    uint64_t serial;
    struct record records[SCENE_RECORDS];
    int record_count;
    int store, ndim; /* of a tensor */
    int64_t shape[SCENE_NDIM], strides[SCENE_NDIM], offset;
    int fields[2 + SCENE_PARTS]; /* of a node: left, right, parts */
    int part_count;
    size_t name_bytes, tail_bytes;
    unsigned seed;
};

struct store {
    int host, tensors; /* and exports; 0: none */
    uint64_t serial;
    struct ebb_storage *storage;
    int64_t count;
    int32_t *elements;
};

struct scene_mark {
    ebb_mark mark;
    uint64_t serial;
};

struct scene_region {
    bool open, sealed;
    ebb_region handle;
    int parent, pool;
    int site;      /* NOBODY: an ordinary region */
    ebb_step step; /* lane NULL: ended, and in a ring */
    void *rehearsed[SCENE_REHEARSED]; /* where the first things of the step are */
    int rehearsed_count;
    unsigned depth;
    uint64_t born; /* children end newest first */
    uint64_t mark_serial;
    struct scene_mark marks[SCENE_MARKS];
    int mark_count;
    struct ebb_object_counts counts[SCENE_KINDS];
};

struct scene_cleanup {
    struct ebb_cleanup node;
    int region; /* NOBODY: not registered */
    uint64_t serial;
    unsigned runs, expected;
};

/* What a consumer has. */
struct scene_export {
    struct DLManagedTensor *managed; /* NULL: none */
    int store, region;               /* NOBODY: a copy; its region has ended, or it has no bytes */
    int64_t offset, count;
    int32_t *elements; /* of a copy, and of what the region left */
    uint64_t serial;
};

struct scene {
    uint64_t seed, state, op, born;
    ebb_pool *pools[2];
    ebb_site *sites[SCENE_SITES];
    int only;      /* one more than the region that everything happens in; 0: any */
    uint64_t hits, tenured, tenured_wrong; /* of sites that are gone */
    bool limited, faulty, planned, trace;
    struct scene_region regions[SCENE_REGIONS];
    struct thing things[SCENE_THINGS];
    struct store stores[SCENE_STORES];
    struct scene_cleanup cleanups[SCENE_CLEANUPS];
    struct scene_export exports[SCENE_EXPORTS];
    void *ghosts[SCENE_GHOSTS];
    unsigned ghost_count;
    unsigned refused, done; /* operations that failed for want of something; that did not */
    struct ebb_object_counts process[SCENE_KINDS], before[SCENE_KINDS];
};

/* Ends the process with seed and operation, if `holds` is false. */
#define SCENE_DEMAND(scene, holds) scene_demand(scene, (holds), #holds, __FILE__, __LINE__)
void scene_demand(const struct scene *scene, bool holds, const char *claim, const char *file,
                  int line);
void scene_say(const struct scene *scene, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

size_t below(struct scene *scene, size_t n);
bool chance(struct scene *scene, size_t one_in);

/*
 * Before a call that may fail for want of something: perhaps something will. After it: true if it
 * did what it had to do, false if it failed as it had to (`expected`) or for want of something.
 */
void scene_dare(struct scene *scene);
bool scene_went(struct scene *scene, int result, int expected);

/* ---- objects_shadow.c ---- */

int some_region(struct scene *scene);
int some_thing(struct scene *scene); /* a live one, or NOBODY */
int some_tensor(struct scene *scene);
int some_node(struct scene *scene);
int new_thing(struct scene *scene, int host, int kind, void *addr); /* owned and counted */
bool has_room(const struct scene *scene, int things);
int new_store(struct scene *scene, int host, struct ebb_storage *storage, int64_t count);

void leave_store(struct scene *scene, int store, int tensors);

bool is_above(const struct scene *scene, int ancestor, int region); /* or the same */
int root_of(const struct scene *scene, int region);
int owner_of(const struct scene *scene, int thing);
bool is_lent(const struct scene *scene, int thing);
bool contains(const struct scene *scene, int whole, int thing); /* or is it */
int depth_under(const struct scene *scene, int thing);

/* Counts one more of a field of struct ebb_object_counts, by its offset. */
void bump(struct scene *scene, int region, int kind, size_t field);
#define BUMP(scene, region, kind, field) \
    bump(scene, region, kind, offsetof(struct ebb_object_counts, field))

/* A top object goes from one region to another: attached, detached or moved. */
void count_passed(struct scene *scene, int thing, int from, int to);

void push_record(struct scene *scene, int thing, int region, bool lent);
void pop_record(struct scene *scene, int thing);
void adopt_thing(struct scene *scene, int thing, int region);
/* What the thing is made of became newer, and so does it. */
void renew_thing(struct scene *scene, int thing);

void end_thing(struct scene *scene, int thing);
void close_region(struct scene *scene, int region);
void reset_region(struct scene *scene, int region);
void rewind_region(struct scene *scene, int region, uint64_t serial);

/* Marks the thing and all below it; returns how many. */
int mark_tree(struct scene *scene, int thing);
void unmark_all(struct scene *scene);

/* ---- objects_check.c ---- */

void check_scene(struct scene *scene, bool contents);
int32_t *element_of(struct scene *scene, const struct thing *tensor, int64_t place);
int64_t element_count(const struct thing *tensor);
unsigned char byte_of(unsigned seed, size_t at);

/* ---- objects_export.c ---- */

void check_export(const struct scene *scene, const struct scene_export *export);
void keep_exports(struct scene *scene, int region);
bool may_rewind(const struct scene *scene, int region, uint64_t serial);
void drop_export(struct scene *scene, struct scene_export *export);

/* ---- objects_step.c ---- */

void make_sites(struct scene *scene);
/* Instead of an ordinary region. Not open: as ebb_region_open(); `expected`: why that is right. */
ebb_region open_step(struct scene *scene, ebb_region parent, struct scene_region *into,
                     int *expected);
/* The same things come first in each step of a site: so its plans fit, for a while. */
void rehearse(struct scene *scene, int region);
void end_step(struct scene *scene, int region);
/* Regions that closed with their place in a ring. */
void notice_closed(struct scene *scene);
void end_sites(struct scene *scene);

/* ---- operations ---- */

void op_export(struct scene *scene);

void op_tensor(struct scene *scene);
void op_view(struct scene *scene);
void op_write(struct scene *scene);
void op_node(struct scene *scene);
void op_compose(struct scene *scene);
void op_end(struct scene *scene);
void op_take(struct scene *scene);
void op_ghost(struct scene *scene);

void op_promote(struct scene *scene);
/* Things of one step, each alone. */
void promote_to_parent(struct scene *scene, const int *things, int count);
void op_move(struct scene *scene);
void op_attach(struct scene *scene);
void op_lend(struct scene *scene);
void op_return(struct scene *scene);
void op_replace(struct scene *scene);
void op_end_but(struct scene *scene);

void op_open(struct scene *scene);
void op_close(struct scene *scene);
void op_reset(struct scene *scene);
void op_mark(struct scene *scene);
void op_rewind(struct scene *scene);
void op_seal(struct scene *scene);
void op_cleanup(struct scene *scene);
void op_site(struct scene *scene);

#endif
