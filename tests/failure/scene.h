// SPDX-License-Identifier: Apache-2.0
/*
 * scene.h - the stage on which acquisitions fail: a pool, three regions above each other with
 * blocks of both lanes, and everything that can be seen of them.
 *
 * A scene lives in a forked child, so that no earlier attempt has left anything behind. A child
 * does not assert, it ends with a message and exit code 1 (cmocka belongs to the parent).
 */
#ifndef FAILURE_SCENE_H
#define FAILURE_SCENE_H

#include <ebb/ebb.h>
#include <stdio.h>
#include <unistd.h>

#define DEMAND(claim) \
    scene_demand((claim), #claim, __FILE__, __LINE__)

void scene_demand(bool holds, const char *claim, const char *file, int line);

#define SCENE_BLOCKS 6

struct scene {
    ebb_pool *pool;
    ebb_region root, child, leaf; /* each the parent of the next */
    void *blocks[SCENE_BLOCKS];   /* two of each region, small and large */
    void *made;                   /* what the act made, if it makes one thing */
    ebb_region opened;            /* the region that it opened */
    struct ebb_survivor list[128];
    size_t count;
};

/* Everything that a failed call must have left as it was. */
struct sight {
    struct ebb_region_stats regions[3];
    struct ebb_pool_stats pool, process;
};

/* Makes pool, regions and blocks. */
void scene_make(struct scene *scene);

void scene_look(const struct scene *scene, struct sight *sight);

/* True if nothing changed; says on standard error what did. */
bool scene_is_same(const struct sight *before, const struct sight *after);

/* Forgets how many pages are held and by whom; what is in them still counts. */
void scene_forget_pages(struct sight *sight);

/* All blocks hold what was written into them, and all laws hold. */
void scene_check(const struct scene *scene);

/* Closes everything; nothing is owned any more and the pool can go. */
void scene_end(struct scene *scene);

/* One thing that acquires. */
struct scenario {
    const char *name;
    void (*prepare)(struct scene *scene); /* before the acquisitions fail; may be NULL */
    int (*act)(struct scene *scene);      /* 0 or the error code; repeated until it is 0 */
    unsigned loose;                       /* SCENE_ flags: what may change in spite of a failure */
    bool bare;                            /* begins without a pool */
};

/* A call that cannot fail does its work with less: counters of pages may differ. */
#define SCENE_MAY_SUCCEED 1u
/* A target that grew for the first copies of a list keeps the pages when a later one fails. */
#define SCENE_MAY_KEEP_PAGES 2u

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

#endif
