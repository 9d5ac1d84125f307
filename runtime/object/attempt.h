// SPDX-License-Identifier: Apache-2.0
/*
 * attempt.h - several new objects in one region, or none and no trace of them.
 *
 *     if (!attempt_begin(&attempt, region)) fail
 *     ... make objects; where one cannot be made: attempt_abandon(&attempt), and fail
 */
#ifndef EBB_OBJECT_ATTEMPT_H
#define EBB_OBJECT_ATTEMPT_H

#include "object/object.h"
#include "region/undo.h"

struct attempt {
    struct region *region;
    struct ebb_object *newest; /* the region's newest object when the attempt began */
    uint32_t kinds;
    struct kind_counts counts[POOL_KINDS]; /* of these kinds */
    struct undo undo;
    struct region *parent; /* of a step that follows a plan: blocks may be born there; or NULL */
    struct undo above;     /* of the parent */
};

/* Notes what the region has now. False with an error if no objects can be made in it. */
bool attempt_begin(struct attempt *attempt, ebb_region region);

/*
 * What was made since becomes a composite and its members: those are all but `whole`, and its
 * fields name them. As ebb_object_compose(), without a look at what cannot be otherwise.
 */
void attempt_compose(struct attempt *attempt, struct ebb_object *whole);

/*
 * Ends what was made since, newest first, and takes all counters back. Every block that was taken
 * since is an object or in a field of one. Older objects that fields name, but that were not
 * composed, stay what they were.
 */
void attempt_abandon(struct attempt *attempt);

#endif
