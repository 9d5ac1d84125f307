// SPDX-License-Identifier: Apache-2.0
/* journey.h - objects move to another region, all or nothing (see journey.c). */
#ifndef EBB_OBJECT_JOURNEY_H
#define EBB_OBJECT_JOURNEY_H

#include "object/gather.h"

struct journey {
    struct gathering gathering;
    struct region *owner; /* that has all of them: the host, or one that they are attached to */
    void **objects;   /* what the caller named, [count]; after the journey, where it is now */
    size_t count;
    int mode;         /* enum ebb_promotion_mode */
    uint16_t pin_percent; /* what auto may pin */
    bool closes;      /* the host closes next: what is left behind ends with it */
    bool compact;     /* of storages that are copied, what a view sees that goes alone */
    const void *site; /* who asked: the site of copies */
    struct ebb_promoted cost;
};

/* Those of the list that are hosted at the target or above it only change owners; so they do if
 * others of it travel. Nothing here can fail. */
void journey_adopt(struct journey *journey);

/* Moves what was gathered. On failure nothing has changed and everything is gathered still. */
int journey_make(struct journey *journey);

#endif
