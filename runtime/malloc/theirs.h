// SPDX-License-Identifier: Apache-2.0
/*
 * theirs.h - what a program may have of its own, and what of the family calls that then.
 *
 * In the C and C++ libraries some functions call others by their public names: reallocarray() calls
 * realloc(), operator delete with a size that without one. A program that replaces those others
 * counts on it. So here they are called by these names, too (theirs.list), and a function that has
 * a shorter way of its own takes it where the other is ours, which is a comparison.
 *
 * Invariant: what is in the list is called or compared by its public name only to reach what the
 * program has. Where ours is meant, as behind names that only the C library has, it is ours_name.
 *
 * A program without position-independent code that takes the address of such a function has an
 * entry of its own for it, which leads here. It is taken for the program's, and called: no more
 * than a detour.
 */
#ifndef EBB_MALLOC_THEIRS_H
#define EBB_MALLOC_THEIRS_H

#include <stdbool.h>
#include <stdlib.h>

#define THEIRS_OURS __attribute__((visibility("hidden"))) /* a second name, for this library */

extern THEIRS_OURS __typeof__(malloc) ours_malloc;
extern THEIRS_OURS __typeof__(free) ours_free;
extern THEIRS_OURS __typeof__(realloc) ours_realloc;

typedef void theirs_any(void);

/* Whether the name leads to ours. The compiler is not to know what it compares: two names that it
 * knows are always the same for some compilers, and never for others. */
static inline bool theirs_is_ours(theirs_any *called, theirs_any *ours) {
    __asm__("" : "+r"(ours));
    return __builtin_expect(called == ours, 1);
}

#endif
