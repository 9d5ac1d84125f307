// SPDX-License-Identifier: Apache-2.0
//
// pages.h - which 4 KiB pages of an address space were ever touched.

#ifndef EBB_BENCH_LANES_PAGES_H
#define EBB_BENCH_LANES_PAGES_H

#include <stddef.h>
#include <stdint.h>

enum { PAGE_LOG2 = 12 };

struct pages {
    unsigned char *touched; // one byte per page, all zero from `end` on
    size_t end;             // pages below it may be touched
    size_t capacity;
};

void pages_touch(struct pages *pages, uint64_t address, uint64_t bytes); // 0 bytes: as if 1
uint64_t pages_bytes(const struct pages *pages);                         // touched pages, in bytes
void pages_reset(struct pages *pages);
void pages_free(struct pages *pages);

#endif
