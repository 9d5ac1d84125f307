// SPDX-License-Identifier: Apache-2.0
/*
 * large.h - large blocks of scopes: their records.
 *
 * A large block lies in the region of its scope's step, where its place is planned and reused. The
 * record says whose it is, for any thread that frees it, and stays when the scope ends and the
 * block is relinked:
 *
 *     large_at[page of the block]  -> number of the record -> heap, block, bytes
 *
 * Blocks of a page or more never begin in the same page, so the page names the record. A record
 * belongs to its heap, except `state`: whoever frees the block changes that atomically, so only one
 * thread can, and hands the record in if the heap is another thread's. While it waits in that list
 * its pages may be given back: whoever takes the list for a moment has the last three fields.
 */
#ifndef EBB_MALLOC_LARGE_H
#define EBB_MALLOC_LARGE_H

#include "pool/range.h"

#include <stdatomic.h>
#include <stdbool.h>

struct heap;
struct holding;
struct scope;

/* Blocks that wait for a thread, newest first. Any thread may push one, or take them all. */
typedef _Atomic(struct large *) large_list;

enum large_state { LARGE_NONE, LARGE_LIVE, LARGE_HANDED_IN };

struct large {
    _Atomic(uint32_t) state; /* enum large_state */
    uint32_t name;           /* its own number */
    uintptr_t block;
    size_t bytes;            /* usable */
    struct heap *heap;
    struct scope *scope;     /* NULL: outlived it, in the heap's keeper */
    bool is_tenured;         /* placed in the keeper: expected to outlive its scope, or a guest */
    struct holding *holding; /* of its site, if it outlived its scope */
    struct large *next, *prev; /* of the scope, or kept; next: of unused records, too */
    struct large *handed_next; /* handed in */
    uint64_t seen_ms;          /* when cooling first saw it there; 0: not yet */
    size_t gone;               /* bytes, from its first page on, that cooling has given back */
};

/* A record of a new block, LARGE_LIVE, in no list, from those in `unused`; NULL: no memory. */
struct large *large_add(struct large **unused, void *block, size_t bytes);

/* The record of the block that begins at `addr`, which is in the range; NULL: none does. */
struct large *large_find(uintptr_t addr);

/* Makes the record of a block that is gone unused. */
void large_remove(struct large **unused, struct large *large);

void large_link(struct large **list, struct large *large);
void large_unlink(struct large **list, struct large *large);

bool large_none(const large_list *list);
struct large *large_take_all(large_list *list);
void large_push(large_list *list, struct large *large);

#endif
