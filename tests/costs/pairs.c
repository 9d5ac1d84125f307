// SPDX-License-Identifier: Apache-2.0
/*
 * pairs.c - pairs of malloc() and free() and the like, for test_costs.py, which preloads whose they
 * are: KIND COUNT.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTED static __attribute__((noinline))
/* Those of a library that is preloaded. */
extern __attribute__((weak)) void *_Znwm(size_t bytes);
extern __attribute__((weak)) void *_Znam(size_t bytes);
extern __attribute__((weak)) void _ZdlPv(void *block);
extern __attribute__((weak)) void _ZdaPv(void *block);
extern __attribute__((weak)) void _ZdlPvm(void *block, size_t bytes);

static void pair_malloc(void) {
    void *block = malloc(64);
    free(block);
}

static void pair_large(void) {
    void *block = malloc(8000);
    free(block);
}

static void pair_new(void) {
    void *block = _Znwm(64);
    _ZdlPv(block);
}

static void pair_many(void) {
    void *block = _Znam(64);
    _ZdaPv(block);
}

static void pair_sized(void) {
    void *block = _Znwm(64);
    _ZdlPvm(block, 64);
}

static void pair_calloc(void) {
    void *block = calloc(8, 8);
    free(block);
}

static void pair_realloc(void) {
    void *block = malloc(64);
    block = realloc(block, 200);
    free(block);
}

static void pair_usable(void) {
    void *block = malloc(64);
    (void)malloc_usable_size(block);
    free(block);
}

static void pair_aligned(void) {
    void *block;
    if (posix_memalign(&block, 64, 100) != 0)
        abort();
    free(block);
}

static void play(void (*pair)(void), size_t count) {
    for (size_t i = 0; i < count; i++)
        pair();
}

COUNTED void counted_pairs(void (*pair)(void), size_t count) {
    play(pair, count);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*pair)(void);
    } kinds[] = {{"malloc", pair_malloc}, {"large", pair_large},     {"new", pair_new},
                 {"many", pair_many},     {"sized", pair_sized},     {"calloc", pair_calloc},
                 {"usable", pair_usable}, {"realloc", pair_realloc}, {"aligned", pair_aligned}};
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name)) {
            size_t count = strtoul(argv[2], NULL, 10);
            play(kinds[i].pair, count); /* what comes once */
            counted_pairs(kinds[i].pair, count);
            return 0;
        }
    fprintf(stderr, "usage: pairs KIND COUNT\n");
    return 2;
}
