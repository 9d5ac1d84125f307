// SPDX-License-Identifier: Apache-2.0
/*
 * pages.h - counts the distinct pages that blocks of a step lie on.
 *
 * A stamp per page of the address space, in a table of two levels:
 *
 *     address bit  47 ........ 30 | 29 ........ 12 | 11 .. 0
 *                  leaf (262,144) | stamp in leaf  | in page
 *
 * A page that carries the step's number has been counted. Leaves are mapped when first needed.
 */
#ifndef EBB_BENCH_PAGES_H
#define EBB_BENCH_PAGES_H

#include <stdbool.h>
#include <stdint.h>

enum { PAGES_BYTES = 4096 };

struct pages {
    uint32_t **leaf;
};

/* False: no memory. The table lives until the process ends. */
bool pages_make(struct pages *pages);

/* Stamps the pages of a block; returns how many did not carry `stamp` yet. */
uint64_t pages_stamp(struct pages *pages, const void *block, uint64_t bytes, uint32_t stamp);

#endif
