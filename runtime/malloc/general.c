// SPDX-License-Identifier: Apache-2.0
/*
 * general.c - what is set and asked of the general heap.
 *
 * Large blocks come from the arenas like all others: a heap of their own, jemalloc's default, gives
 * their pages back at every free, and that is what a training step does all day. Refuses nothing:
 * a name that the heap does not know reads as 0.
 */
#include "malloc/general.h"

#include "base/size.h"

#include <errno.h>
#include <stdio.h>

const char *je_malloc_conf = "oversize_threshold:0";

void general_begin(void) {
    size_t most = SIZE_MAX;
    if (general_read("opt.oversize_threshold") == 0)
        (void)je_mallctl("arena.0.oversize_threshold", NULL, NULL, &most, sizeof most);
}

#define MALLOC_ALIGN ((size_t)16) /* of what is no smaller */

void *general_alloc_aligned(size_t bytes, size_t align) {
    if (bytes > PTRDIFF_MAX || align > PTRDIFF_MAX)
        return NULL;
    size_t some = size_larger(bytes, 1), whole = size_align(some, align);
    bool lies_well = align <= MALLOC_ALIGN || (align <= EBB_PAGE && whole <= GENERAL_SLAB_MOST);
    int before = errno;
    void *block = lies_well ? je_malloc(whole) : je_aligned_alloc(align, some);
    errno = before;
    return block;
}

size_t general_read(const char *name) {
    size_t number = 0, length = sizeof number;
    return je_mallctl(name, &number, &length, NULL, 0) == 0 ? number : 0;
}

void general_refresh(void) {
    uint64_t epoch = 1;
    (void)je_mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
}

/* That of jemalloc's counters which each page goes through, whatever MALLOC_CONF says. */
uint64_t general_given_back(void) {
    char name[40];
    snprintf(name, sizeof name, "stats.arenas.%u.dirty_purged", MALLCTL_ARENAS_ALL);
    return (uint64_t)general_read(name) * general_read("arenas.page");
}

static void on_all_arenas(const char *what) {
    char name[32];
    snprintf(name, sizeof name, "arena.%u.%s", MALLCTL_ARENAS_ALL, what);
    (void)je_mallctl(name, NULL, NULL, NULL, 0);
}

void general_trim(void) {
    (void)je_mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    on_all_arenas("purge");
}

void general_decay(void) {
    on_all_arenas("decay");
}
