// SPDX-License-Identifier: Apache-2.0
/*
 * gather.h - everything that objects consist of: heads, members, blocks of bytes, storages.
 *
 * Gathering marks and chains; nothing else changes, and gather_forget() takes it back. All that is
 * gathered lies in one region, the host. What is seen of storages further up is left there.
 */
#ifndef EBB_OBJECT_GATHER_H
#define EBB_OBJECT_GATHER_H

#include "object/object.h"

/* Objects are chained by `forward` in the order they were found, storages by theirs. */
struct gathering {
    struct region *host, *target;
    bool anywhere; /* the target is in no relation to the host */
    struct ebb_object *first, *last;
    struct ebb_storage *storages;
    size_t blocks;  /* that have to go: one for each object, field of bytes, lone storage */
    unsigned depth; /* of what is being added */
};

/* Adds an object that is not gathered yet, and everything below it. EBB_E_NOT_OWNED, EBB_E_BUSY,
 * EBB_E_DEPTH. */
int gather_add(struct gathering *gathering, struct ebb_object *object);

/* True if the object whose block has the storage is gathered with it. */
bool gather_has_base(const struct ebb_storage *storage);

/* Takes all marks back. */
void gather_forget(struct gathering *gathering);

#endif
