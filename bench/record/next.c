// SPDX-License-Identifier: Apache-2.0
/*
 * next.c - the allocator below the recorder, whichever it is.
 *
 * dlsym() may allocate before the functions are known: a small static arena serves it. Blocks of
 * the arena are told by their address and stay where they are when they are freed. What the next
 * library lacks (only the newest have free_sized) stays NULL and is made of what all have.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

enum { BOOTSTRAP_BYTES = 64 << 10, BOOTSTRAP_UNIT = 16 };

struct next next;

static _Alignas(64) char arena[BOOTSTRAP_BYTES];
static atomic_size_t arena_used;
static atomic_bool resolving;

_Noreturn static void give_up(const char *text) {
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
    _exit(127);
}

void *bootstrap_alloc(size_t bytes, size_t align) {
    if (align < BOOTSTRAP_UNIT)
        align = BOOTSTRAP_UNIT;
    if (bytes > BOOTSTRAP_BYTES || align > BOOTSTRAP_BYTES / 4)
        return NULL;
    size_t whole = BOOTSTRAP_UNIT + (align - BOOTSTRAP_UNIT) +
                   (bytes + BOOTSTRAP_UNIT - 1) / BOOTSTRAP_UNIT * BOOTSTRAP_UNIT;
    size_t at = atomic_fetch_add(&arena_used, whole);
    if (at + whole > BOOTSTRAP_BYTES)
        give_up("libebb-record: the dynamic linker wants more than 65536 bytes\n");
    uintptr_t block = ((uintptr_t)arena + at + BOOTSTRAP_UNIT + align - 1) & ~(align - 1);
    memcpy((char *)block - sizeof bytes, &bytes, sizeof bytes);
    return (void *)block;
}

bool bootstrap_owns(const void *block) {
    return (uintptr_t)block - (uintptr_t)arena < BOOTSTRAP_BYTES;
}

size_t bootstrap_size(const void *block) {
    size_t bytes;
    memcpy(&bytes, (const char *)block - sizeof bytes, sizeof bytes);
    return bytes;
}

static void find(void *function, const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

static void find_all(void) {
    find(&next.calloc, "calloc");
    find(&next.realloc, "realloc");
    find(&next.free, "free");
    find(&next.aligned_alloc, "aligned_alloc");
    find(&next.posix_memalign, "posix_memalign");
    find(&next.memalign, "memalign");
    find(&next.valloc, "valloc");
    find(&next.pvalloc, "pvalloc");
    find(&next.malloc_usable_size, "malloc_usable_size");
    find(&next.free_sized, "free_sized");
    find(&next.free_aligned_sized, "free_aligned_sized");
    find(&next.malloc, "malloc"); /* last: it says that all are known */
}

bool next_resolve(void) {
    if (next.malloc)
        return true;
    if (atomic_exchange(&resolving, true))
        return false;
    find_all();
    if (!next.malloc || !next.free || !next.realloc || !next.calloc)
        give_up("libebb-record: no allocator behind this one\n");
    spool_open();
    return true;
}
