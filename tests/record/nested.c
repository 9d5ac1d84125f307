// SPDX-License-Identifier: Apache-2.0
//
// nested.c - an allocator that calls its own functions by the names that it exports, as some that
// guard blocks do. The recorder, which comes first, has those names, too.

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *block);

void *memalign(size_t align, size_t size)
{
    return __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

int posix_memalign(void **block, size_t align, size_t size)
{
    if (align % sizeof(void *) || (align & (align - 1)))
        return EINVAL;
    *block = memalign(align, size);
    return *block ? 0 : ENOMEM;
}

void *malloc(size_t size)
{
    return memalign(16, size);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *block = __builtin_mul_overflow(count, size, &bytes) ? NULL : malloc(bytes);

    return block ? memset(block, 0, bytes) : NULL;
}

void free(void *block)
{
    __libc_free(block);
}

void *realloc(void *block, size_t size)
{
    size_t held = malloc_usable_size(block);
    void *moved = malloc(size);

    if (moved && block)
        memcpy(moved, block, held < size ? held : size);
    if (moved)
        free(block);
    return moved;
}
