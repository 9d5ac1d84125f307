// SPDX-License-Identifier: Apache-2.0
/* allocator.h - the allocators that can be compared, and where this machine has them. */
#ifndef EBB_BENCH_ALLOCATOR_H
#define EBB_BENCH_ALLOCATOR_H

#include <stdbool.h>

enum { ALLOCATOR_PATH_MAX = 512, ALLOCATOR_VERSION_MAX = 64 };

struct allocator {
    const char *name;
    const char *library;  /* what is preloaded; NULL: nothing, the C library serves */
    const char *package;  /* Debian package of the library; NULL: part of ebb */
    const char *variable; /* environment variable with its settings, and their value; or NULL */
    const char *value;
};

/* The table, ebb first. */
extern const struct allocator allocators[];
extern const int allocator_count;

/* True for ebb and ebb-unplanned: no peers of ebb. */
static inline bool allocator_is_ebb(int number) {
    return allocators[number].library && !allocators[number].package;
}

/* Number of the allocator of this name, or -1. `length` bytes of `name` count. */
int allocator_find(const char *name, int length);

/* Full path of its library; "" for the C library's own. False if this machine does not have it. */
bool allocator_path(const struct allocator *allocator, char path[ALLOCATOR_PATH_MAX]);

/* Version of its package, or of ebb; "unknown" where the package manager does not know. */
void allocator_version(const struct allocator *allocator, char version[ALLOCATOR_VERSION_MAX]);

/* Folder of the running program, without a slash at the end. */
bool allocator_own_folder(char path[ALLOCATOR_PATH_MAX]);

#endif
