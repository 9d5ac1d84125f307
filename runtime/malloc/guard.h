// SPDX-License-Identifier: Apache-2.0
/*
 * guard.h - guards around the blocks of the hardened library.
 *
 *     | lead ... | bytes, seal | the program's bytes | tail |
 *                              ^ a multiple of the alignment
 *
 * The seal is a hash of the block's address, its size and a secret of the process; the tail is 16
 * bytes derived from the same. A free checks both: a pointer that is no block, a double free and an
 * overrun end the process. A freed block is filled, its whole pages are closed, and it is held back
 * in a quarantine; a write to it is noticed when it leaves. When a scope ends, its blocks leave at
 * once if nothing else is alive in their tray, which is closed instead (closed.h); beside survivors
 * they stay in quarantine.
 *
 * The functions are like those of front.h.
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

/* A scope has ended and its trays are sealed: releases blocks in these, and in trays sealed before,
 * from the quarantine wherever nothing else is alive in the tray. */
void guard_release_sealed(void);

/* Bytes that are closed but that the general heap counts. */
struct guard_closed {
    size_t blocks; /* of blocks that are held back, and of trays */
    size_t pages;  /* of these: without memory, which is all but the ends of blocks */
};

struct guard_closed guard_read_closed(void);

/* The locks of the quarantine and of closed trays before a fork, and after. */
void guard_fork(bool before);

#endif
