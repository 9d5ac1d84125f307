// SPDX-License-Identifier: Apache-2.0
//
// pages.c - which 4 KiB pages of an address space were ever touched.
//
// One invariant: touched[i] is 1 for a touched page, 0 for all others up to capacity. A simulated
// space starts at 0 and is as long as what it holds, so a byte for each page is cheap.

#include "pages.h"

#include <stdlib.h>
#include <string.h>

#include "buffers.h"

static void grow(struct pages *pages, size_t end)
{
    size_t capacity = 2 * end;

    if (end <= pages->capacity)
        return;
    pages->touched = buffer_resize(pages->touched, capacity, 1);
    memset(pages->touched + pages->capacity, 0, capacity - pages->capacity);
    pages->capacity = capacity;
}

void pages_touch(struct pages *pages, uint64_t address, uint64_t bytes)
{
    size_t first = (size_t)(address >> PAGE_LOG2);
    size_t end = (size_t)((address + (bytes ? bytes : 1) - 1) >> PAGE_LOG2) + 1;

    grow(pages, end);
    memset(pages->touched + first, 1, end - first);
    if (end > pages->end)
        pages->end = end;
}

uint64_t pages_bytes(const struct pages *pages)
{
    uint64_t count = 0;

    for (size_t i = 0; i < pages->end; i++)
        count += pages->touched[i];
    return count << PAGE_LOG2;
}

void pages_reset(struct pages *pages)
{
    if (pages->end)
        memset(pages->touched, 0, pages->end);
    pages->end = 0;
}

void pages_free(struct pages *pages)
{
    free(pages->touched);
    *pages = (struct pages){0};
}
