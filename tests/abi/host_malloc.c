// SPDX-License-Identifier: Apache-2.0
/*
 * host_malloc.c - a program that is linked with libebb keeps the malloc it has.
 *
 * ebb may have a jemalloc inside (-Dchunks=jemalloc). If one of its symbols leaked, every malloc of
 * the program would change under it. Looked at from outside: where the dynamic linker finds the
 * names.
 */
#include "kit/test.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>

static const char *file_of(const char *symbol) {
    void *addr = dlsym(RTLD_DEFAULT, symbol);
    Dl_info info;
    return addr && dladdr(addr, &info) ? info.dli_fname : "nowhere";
}

static void assert_from_libc(const char *symbol) {
    if (!strstr(file_of(symbol), "/libc.so.6"))
        fail_msg("%s comes from %s", symbol, file_of(symbol));
}

static void malloc_is_still_that_of_libc(void **state) {
    (void)state;
    const char *symbols[] = {"malloc", "free", "calloc", "realloc", "reallocarray",
                             "posix_memalign", "aligned_alloc", "memalign", "valloc",
                             "malloc_usable_size", "mallinfo2", "malloc_trim"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        assert_from_libc(symbols[i]);
}

static void jemalloc_cannot_be_looked_up(void **state) {
    (void)state;
    const char *symbols[] = {"mallocx", "dallocx", "rallocx", "mallctl", "malloc_stats_print",
                             "je_malloc", "je_mallctl", "je_arena_init"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        assert_string_equal(file_of(symbols[i]), "nowhere");
}

static int is_jemalloc(struct dl_phdr_info *info, size_t bytes, void *context) {
    (void)bytes, (void)context;
    return strstr(info->dlpi_name, "jemalloc") != NULL;
}

static void jemalloc_is_not_loaded_as_a_library(void **state) {
    (void)state;
    assert_int_equal(dl_iterate_phdr(is_jemalloc, NULL), 0);
}

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Regions do not draw on the program's heap, and its blocks are none of ebb's. */
static void regions_and_the_heap_do_not_meet(void **state) {
    struct stage *stage = *state;
    size_t before = in_use();
    char *mine = block_of(stage->root, 8 * MIB, 64);
    for (int i = 0; i < 1000; i++)
        block_of(stage->root, 100, 16);
    assert_int_equal(in_use(), before);
    void *block = malloc(100);
    assert_false(ebb_region_is_open(ebb_region_of(block)));
    assert_true(ebb_region_is_open(ebb_region_of(mine)));
    assert_refused(ebb_region_release(stage->root, block), EBB_E_FOREIGN);
    free(block);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malloc_is_still_that_of_libc),
        cmocka_unit_test(jemalloc_cannot_be_looked_up),
        cmocka_unit_test(jemalloc_is_not_loaded_as_a_library),
        STAGED(regions_and_the_heap_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
