// SPDX-License-Identifier: Apache-2.0
/*
 * pages.c - the table of page stamps; see the drawing in pages.h.
 *
 * Its memory comes from mmap, never from the allocator that is measured. A block of no bytes lies
 * on no page. If a leaf cannot be mapped the process ends: a count that leaves pages out would be
 * too good.
 */
#include "pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LEAF_BITS = 18, ROOT_BITS = 18, PAGE_BITS = 12 };

static void *map_zeroed(uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

bool pages_make(struct pages *pages) {
    pages->leaf = map_zeroed((UINT64_C(1) << ROOT_BITS) * sizeof *pages->leaf);
    return pages->leaf != NULL;
}

static uint32_t *leaf_of(struct pages *pages, uint64_t page) {
    uint32_t **leaf = &pages->leaf[(page >> LEAF_BITS) & ((1u << ROOT_BITS) - 1)];
    if (*leaf)
        return *leaf;
    *leaf = map_zeroed((UINT64_C(1) << LEAF_BITS) * sizeof **leaf);
    if (*leaf)
        return *leaf;
    fputs("no memory for the table of pages\n", stderr);
    exit(3);
}

uint64_t pages_stamp(struct pages *pages, const void *block, uint64_t bytes, uint32_t stamp) {
    uint64_t fresh = 0, at = (uintptr_t)block;
    if (bytes == 0)
        return 0;
    for (uint64_t page = at >> PAGE_BITS; page <= (at + bytes - 1) >> PAGE_BITS; page++) {
        uint32_t *mark = &leaf_of(pages, page)[page & ((1u << LEAF_BITS) - 1)];
        fresh += *mark != stamp;
        *mark = stamp;
    }
    return fresh;
}
