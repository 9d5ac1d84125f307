// SPDX-License-Identifier: Apache-2.0
/*
 * real_symbol.c - ebb_region_alloc() is inline in the header, and a function of the library too.
 *
 * Bindings of other languages cannot see the header's body: they look the name up. It must be
 * there, be the same function in every file of a program, and do what the inline one does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <string.h>

#include "real_symbol.h"

static alloc_fn *looked_up(void) {
    void *symbol = dlsym(RTLD_DEFAULT, "ebb_region_alloc");
    alloc_fn *alloc;
    memcpy(&alloc, &symbol, sizeof alloc);
    return alloc;
}

static void inline_function_can_be_looked_up(void **state) {
    (void)state;
    assert_non_null(looked_up());
}

static void symbol_lies_in_the_library(void **state) {
    (void)state;
    Dl_info info;
    assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "ebb_region_alloc"), &info), 0);
    assert_non_null(strstr(info.dli_fname, "libebb.so"));
}

static void symbol_allocates_as_the_inline_function_does(void **state) {
    (void)state;
    alloc_fn *alloc = looked_up();
    assert_non_null(alloc);
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "binding"));
    char *first = alloc(region, 40, 16);
    char *second = ebb_region_alloc(region, 40, 16);
    assert_non_null(first);
    assert_non_null(second);
    memset(first, 1, 40);
    memset(second, 2, 40);
    assert_int_equal(ebb_region_block_bytes(region, first), 40);
    assert_int_equal(ebb_region_block_bytes(region, second), 40);
    assert_null(alloc(region, 40, 3));
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
    assert_int_equal(ebb_region_close(region), 0);
}

static void all_files_of_a_program_share_one_function(void **state) {
    (void)state;
    alloc_fn *mine = ebb_region_alloc;
    assert_ptr_equal(mine, alloc_of_second_file());
    assert_ptr_equal(mine, looked_up());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inline_function_can_be_looked_up),
        cmocka_unit_test(symbol_lies_in_the_library),
        cmocka_unit_test(symbol_allocates_as_the_inline_function_does),
        cmocka_unit_test(all_files_of_a_program_share_one_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
