// SPDX-License-Identifier: Apache-2.0
/* post.h - an object is sent and opened again, for tests of what arrives. */
#ifndef HANDOFF_POST_H
#define HANDOFF_POST_H

#include "kit/test.h"

#define POST_SLOT_BYTES (16 * MIB)

/* Pools and regions of a test: what is sent, and where it is made again. */
struct post {
    ebb_pool *pool;
    ebb_region from, to;
    ebb_lease *lease;
};

struct post open_post(void);

/* Demands that nothing of what arrived holds the lease any more, once its region is closed. */
void close_post(struct post *post);

/* What is made of the object where it arrives; fails the test if it does not. */
void *deliver(struct post *post, void *object);

#endif
