// SPDX-License-Identifier: Apache-2.0
/*
 * guard.h - guards around the blocks of the hardened library.
 *
 * Each block has a seal in front and a tail behind it (seal.h). A free checks both: a pointer that
 * is no block, a double free and an overrun end the process. A freed block is held back for a while
 * (quarantine.h).
 *
 * The functions are like those of front.h.
 */
#ifndef EBB_MALLOC_GUARD_H
#define EBB_MALLOC_GUARD_H

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

#endif
