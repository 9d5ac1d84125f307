// SPDX-License-Identifier: Apache-2.0
/*
 * family.c - the functions that libebb-malloc defines in place of the C library's.
 *
 * Rules of arguments are glibc's: malloc(0) gives a block of its own, realloc(p, 0) frees,
 * memalign() rounds its alignment up to a power of two, as aligned_alloc() did before glibc 2.38,
 * posix_memalign() returns its error and keeps errno. A size above PTRDIFF_MAX is ENOMEM.
 */
#include "malloc/door.h"
#include "malloc/gate.h"
#include "malloc/theirs.h"
#include "malloc/trim.h"
#include "malloc/used.h"

#include "base/size.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>

#define FAMILY __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

static __attribute__((cold, noinline)) void *no_memory(void) {
    errno = ENOMEM;
    return NULL;
}

/* What is above PTRDIFF_MAX jemalloc refuses. */
#ifdef GATE

FAMILY GATE void *malloc(GATE_ARGUMENT size_t bytes) {
    __asm__(GATE_SCOPE "jne gate_alloc_scoped\n" BODY_MALLOC(BODY_MALLOC_SLOW));
}

FAMILY GATE void free(GATE_ARGUMENT void *block) {
    __asm__(GATE_FREE);
}

#else

FAMILY FRONT_HOT void *malloc(size_t bytes) {
    return door_alloc(bytes, CALLER);
}

FAMILY FRONT_HOT void free(void *block) {
    door_free(block);
}

#endif

FAMILY FRONT_HOT void *calloc(size_t count, size_t bytes) {
    size_t all;
    if (!size_multiply(count, bytes, &all) || all > PTRDIFF_MAX)
        return no_memory();
    return door_alloc_zeroed(all, CALLER);
}

static __attribute__((noinline)) void *resize(void *block, size_t bytes, const void *caller) {
    if (bytes > PTRDIFF_MAX)
        return no_memory();
    if (!block || bytes)
        return door_resize(block, bytes, caller);
    door_free(block);
    return NULL;
}

FAMILY FRONT_HOT void *realloc(void *block, size_t bytes) {
    if (__builtin_expect(door_resizes_general(block, bytes), 1))
        return je_realloc(block, bytes);
    return resize(block, bytes, CALLER);
}

extern __typeof__(malloc) ours_malloc __attribute__((alias("malloc")));
extern __typeof__(free) ours_free __attribute__((alias("free")));
extern __typeof__(realloc) ours_realloc __attribute__((alias("realloc")));

/* By realloc(), which the program may have, as pvalloc() by valloc(): valgrind takes the place of
 * these only. */
FAMILY void *reallocarray(void *block, size_t count, size_t bytes) {
    size_t all;
    return size_multiply(count, bytes, &all) ? realloc(block, all) : no_memory();
}

/* ---- alignment ---- */

/* Keeps errno. */
static inline void *try_aligned(size_t align, size_t bytes, const void *caller) {
    bool can_be = align <= PTRDIFF_MAX && bytes <= PTRDIFF_MAX - align;
    return can_be ? door_alloc_aligned(bytes, align, caller) : NULL;
}

static void *aligned(size_t align, size_t bytes, const void *caller) {
    void *block = try_aligned(align, bytes, caller);
    return block ? block : no_memory();
}

/* As glibc: any alignment will do, it is rounded up to a power of two. */
static void *aligned_up(size_t align, size_t bytes, const void *caller) {
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    if (align > PTRDIFF_MAX)
        return no_memory();
    if (align & (align - 1))
        align = (size_t)1 << (64 - __builtin_clzll(align));
    return align > PTRDIFF_MAX ? no_memory() : aligned(size_larger(align, 1), bytes, caller);
}

FAMILY void *memalign(size_t align, size_t bytes) {
    return aligned_up(align, bytes, CALLER);
}

/* From 2.38 on EINVAL where the alignment is no power of two (C17 7.22.3.1). */
static bool library_is_strict(void) {
    char *dot;
    unsigned long major = strtoul(gnu_get_libc_version(), &dot, 10);
    return major > 2 || (major == 2 && *dot == '.' && strtoul(dot + 1, NULL, 10) >= 38);
}

FAMILY void *aligned_alloc(size_t align, size_t bytes) {
    if (!size_is_power_of_two(align) && library_is_strict()) {
        errno = EINVAL;
        return NULL;
    }
    return aligned_up(align, bytes, CALLER);
}

FAMILY FRONT_HOT int posix_memalign(void **place, size_t align, size_t bytes) {
    if (!size_is_power_of_two(align) || align % sizeof(void *) != 0)
        return EINVAL;
    void *block = try_aligned(align, bytes, CALLER);
    if (!block)
        return ENOMEM;
    *place = block;
    return 0;
}

FAMILY void *valloc(size_t bytes) {
    return aligned(EBB_PAGE, bytes, CALLER);
}

FAMILY void *pvalloc(size_t bytes) {
    size_t pages;
    return size_round_up(bytes, EBB_PAGE, &pages) ? valloc(pages) : no_memory();
}

/* ---- sizes ---- */

FAMILY size_t malloc_usable_size(void *block) {
    return door_usable(block);
}

FAMILY void free_sized(void *block, size_t bytes);
FAMILY void free_aligned_sized(void *block, size_t align, size_t bytes);
FAMILY void cfree(void *block);

/* These call free() in the C library, which has them since 2.43. */
FAMILY void free_sized(void *block, size_t bytes) {
    if (theirs_is_ours((theirs_any *)free, (theirs_any *)ours_free))
        door_free_sized(block, bytes);
    else
        free(block);
}

FAMILY void free_aligned_sized(void *block, size_t align, size_t bytes) {
    (void)align; /* where a block lies says all that is needed */
    free_sized(block, bytes);
}

/* Old programs free with it what calloc() gave. */
FAMILY void cfree(void *block) {
    free(block);
}

/* ---- the heap as a whole ---- */

FAMILY int malloc_trim(size_t keep) {
    (void)keep; /* as glibc, which keeps it at the top of its heap; here there is no such top */
    return trim_all();
}

FAMILY struct mallinfo2 mallinfo2(void) {
    struct used used = used_read();
    return (struct mallinfo2){
        .arena = used.resident,
        .uordblks = used.allocated,
        .fordblks = used.unused,
    };
}
