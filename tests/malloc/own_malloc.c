// SPDX-License-Identifier: Apache-2.0
/*
 * own_malloc.c - a program with a malloc() of its own, as glibc's manual describes it: what it does
 * not define calls what it does. With WRAPS it is one that counts, and has the C library's behind
 * it by the names that are the library's alone.
 *
 * Run preloaded with libebb-malloc, plain and hardened, and once without it.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <dlpack/dlpack.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>

/* The compiler thinks that allocating changes no variable of the program. */
static volatile unsigned mallocs, frees, reallocs;
static volatile size_t wild = SIZE_MAX / 8;

/* Of C23: not every C library has them. */
void free_sized(void *block, size_t bytes) __attribute__((weak));
void free_aligned_sized(void *block, size_t align, size_t bytes) __attribute__((weak));

#ifdef WRAPS
void *__libc_malloc(size_t bytes);
void __libc_free(void *block);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

enum { LARGE = 10 << 20, TURNS = 100, MOST = 200 << 20 };

void *malloc(size_t bytes) {
    mallocs++;
    return __libc_malloc(bytes);
}

void free(void *block) {
    frees++;
    __libc_free(block);
}

void *realloc(void *block, size_t bytes) {
    reallocs++;
    return __libc_realloc(block, bytes);
}

void *calloc(size_t count, size_t bytes) {
    return __libc_calloc(count, bytes);
}

void *memalign(size_t align, size_t bytes) {
    return __libc_memalign(align, bytes);
}
#else
enum { HEAD = 16 };

static _Alignas(HEAD) char zone[64 << 20]; /* which nothing is given back to */
static size_t used;

static size_t *head_of(void *block) {
    return (size_t *)((char *)block - HEAD);
}

static void *take(size_t bytes) {
    size_t all = (bytes + 2 * HEAD - 1) / HEAD * HEAD, end = SIZE_MAX;
    if (bytes <= sizeof zone)
        end = __atomic_add_fetch(&used, all, __ATOMIC_RELAXED);
    if (end > sizeof zone) {
        errno = ENOMEM;
        return NULL;
    }
    char *block = zone + end - all + HEAD;
    *head_of(block) = bytes;
    return block;
}

void *malloc(size_t bytes) {
    mallocs++;
    return take(bytes);
}

void free(void *block) {
    uintptr_t at = (uintptr_t)block;
    frees++;
    if (block && (at < (uintptr_t)zone || at >= (uintptr_t)zone + sizeof zone))
        abort();
}

void *calloc(size_t count, size_t bytes) {
    return take(count * bytes); /* it was never used before */
}

void *realloc(void *block, size_t bytes) {
    void *moved = take(bytes);
    reallocs++;
    if (moved && block)
        memcpy(moved, block, *head_of(block) < bytes ? *head_of(block) : bytes);
    return moved;
}

void *memalign(size_t align, size_t bytes) {
    char *block = take(bytes + align);
    return block ? (void *)(((uintptr_t)block + align - 1) & ~(uintptr_t)(align - 1)) : NULL;
}

void *aligned_alloc(size_t align, size_t bytes) {
    return memalign(align, bytes);
}

int posix_memalign(void **place, size_t align, size_t bytes) {
    *place = memalign(align, bytes);
    return *place ? 0 : ENOMEM;
}
#endif

static void resize_arrays(void) {
    unsigned before = reallocs;
    char *volatile block = malloc(100); /* the compiler is not to see whose it is */
    EXPECT(block);
    strcpy(block, "contents");
    char *grown = reallocarray(block, 30, 10);
    EXPECT(grown && strcmp(grown, "contents") == 0);
    char *large = reallocarray(grown, 1000, 300);
    EXPECT(large && strcmp(large, "contents") == 0);
    char *other = reallocarray(NULL, 30, 10);
    EXPECT(other && reallocs == before + 3);
    EXPECT(!reallocarray(other, wild, 16) && errno == ENOMEM);
    free(large);
    free(other);
}

/* Nothing else calls malloc() or free() meanwhile. */
static void free_by_sizes(void) {
    if (!free_sized || !free_aligned_sized)
        return;
    void *one = malloc(100), *two = malloc(9000);
    unsigned before = frees;
    EXPECT(one && two);
    free_sized(one, 100);
    free_aligned_sized(two, 16, 9000);
    free_sized(NULL, 0);
    EXPECT(frees == before + 3);
}

#ifdef WRAPS
/* More than it may have in memory at once. */
static void what_is_freed_by_its_free_goes(void) {
    size_t before = act_resident();
    for (unsigned i = 0; i < TURNS; i++) {
        char *volatile block = malloc(LARGE);
        EXPECT(block);
        for (size_t at = 0; at < LARGE; at += 4096)
            block[at] = 1;
        free(block);
    }
    EXPECT(act_resident() < before + MOST);
}
#endif

static void in_scopes(void (*run)(void)) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "own", .scope = true));
    for (unsigned i = 0; i < 20; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        EXPECT(ebb_region_is_open(step.region));
        run();
        EXPECT(ebb_step_end(step) == 0);
    }
    EXPECT(ebb_site_destroy(site) == 0);
}

static void arrays_are_resized_by_its_realloc(void) {
    resize_arrays();
    in_scopes(resize_arrays);
}

static void sizes_are_freed_by_its_free(void) {
    free_by_sizes();
    in_scopes(free_by_sizes);
}

static void it_is_called(void) {
    unsigned before = mallocs;
    char *volatile block = malloc(10);
    char *copy = strdup("copied by the C library");
    EXPECT(block && copy && mallocs == before + 2);
    free(copy);
    free(block);
}

/* By the C library's names, or not. */
static void the_rest_of_the_family_works(void) {
    char *volatile zeroed = calloc(10, 10), *volatile aligned = memalign(4096, 100);
    EXPECT(zeroed && !zeroed[99] && aligned && (uintptr_t)aligned % 4096 == 0);
    free(zeroed);
    free(aligned);
}

/* What libebb mallocs of an export it frees as well. */
static void what_is_handed_out_goes(void) {
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "own"));
    struct ebb_dtype dtype = {EBB_FLOAT, 32, 1};
    struct ebb_tensor *tensor = ebb_tensor_new(region, dtype, 1, (int64_t[]){1000});
    EXPECT(tensor);
    struct DLManagedTensor *exported = ebb_tensor_export(tensor, EBB_EXCHANGE_SHARE);
    EXPECT(exported);
    EXPECT(ebb_region_close(region) == 0);
    exported->deleter(exported);
}

int main(void) {
    static const struct act acts[] = {
        ACT(it_is_called),
        ACT(the_rest_of_the_family_works),
        ACT(arrays_are_resized_by_its_realloc),
        ACT(sizes_are_freed_by_its_free),
#ifdef WRAPS
        ACT(what_is_freed_by_its_free_goes),
#endif
        ACT(what_is_handed_out_goes),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
