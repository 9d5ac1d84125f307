// SPDX-License-Identifier: Apache-2.0
/*
 * guard.h - guards around the blocks of the hardened library.
 *
 *     | lead ... | bytes, seal | the program's bytes | tail |
 *                              ^ a multiple of the alignment
 *
 * The seal is a hash of the block's address, its size and a secret of the process; the tail is 16
 * bytes that follow from the same. A free looks at both: a block that is none, was freed before or
 * was written beyond ends the process. What was freed is filled, forbidden as far as it has whole
 * pages, and held back in a quarantine; a write to it is seen when it leaves. When a scope ends,
 * its blocks leave at once where nothing else is alive in their tray, which is forbidden instead
 * (closed.h); beside survivors they are held back as before.
 *
 * Functions as those of front.h.
 */
#ifndef EBB_MALLOC_GUARD_H
#define EBB_MALLOC_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#ifndef GUARDED
#define GUARDED 0
#endif

#define GUARD_ALIGN ((size_t)16)

void *guard_alloc(size_t bytes, size_t align, const void *caller);
void *guard_alloc_zeroed(size_t bytes, const void *caller);
void *guard_resize(void *block, size_t bytes, const void *caller);
void guard_free(void *block);
void guard_free_sized(void *block, size_t bytes);
size_t guard_usable(const void *block);

/* A scope has ended and its trays are sealed: blocks leave the quarantine, of these and of those of
 * any scope before, where nothing else is alive in the tray. */
void guard_release_sealed(void);

/* What is forbidden, though the general heap counts it. */
struct guard_closed {
    size_t blocks; /* bytes of blocks that are held back, and of trays */
    size_t pages;  /* of these, that are in no memory: not where blocks begin and end */
};

struct guard_closed guard_read_closed(void);

/* The locks of the quarantine and of closed trays before a fork, and after. */
void guard_fork(bool before);

#endif
