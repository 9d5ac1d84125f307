// SPDX-License-Identifier: Apache-2.0
//
// overlaps.c - preloaded into churn-replay, a heap that gives some bytes twice: all blocks of 1,000
// bytes lie in one place, and those of 60 lie 48 apart.

#include <stddef.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t bytes); // glibc's own
extern void __libc_free(void *block);

static _Alignas(64) char same[1000], close_by[48 * 1000 + 60];
static size_t alive;

void *malloc(size_t bytes)
{
    if (bytes == sizeof same)
        return same;
    return bytes == 60 ? close_by + 48 * alive++ : __libc_malloc(bytes);
}

void free(void *block)
{
    const char *at = block;

    if (at >= close_by && at < close_by + sizeof close_by)
        alive--;
    else if (at != same)
        __libc_free(block);
}
