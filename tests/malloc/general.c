// SPDX-License-Identifier: Apache-2.0
/* general.c - the general heap: blocks of malloc() that are asked to be clear, or to lie well. */
#include "kit/test.h"

#include "base/size.h"
#include "malloc/general.h"

#include <errno.h>

#define MOST ((size_t)16 << 10)

static void check_aligned(size_t bytes, size_t align) {
    void *blocks[3]; /* neighbours, not the first ones of slabs alone */
    for (unsigned i = 0; i < 3; i++) {
        blocks[i] = general_alloc_aligned(bytes, align);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % align, 0);
        assert_true(je_malloc_usable_size(blocks[i]) >= bytes);
    }
    for (unsigned i = 0; i < 3; i++)
        je_free(blocks[i]);
}

static void test_blocks_of_all_sizes_lie_as_they_are_to(void **state) {
    (void)state;
    for (size_t align = 1; align <= 4 * EBB_PAGE; align *= 2) {
        for (size_t bytes = 0; bytes <= MOST; bytes += 1 + bytes / 64)
            check_aligned(bytes, align);
        check_aligned(GENERAL_SLAB_MOST - 1, align);
        check_aligned(GENERAL_SLAB_MOST, align);
        check_aligned(GENERAL_SLAB_MOST + 1, align);
        check_aligned(300000, align);
    }
}

/* The rest of what an alignment spans is for others. */
static void test_blocks_that_lie_far_apart_are_no_larger_for_it(void **state) {
    (void)state;
    for (size_t align = 256 * EBB_PAGE; align <= 1024 * EBB_PAGE; align *= 2) {
        void *block = general_alloc_aligned(100, align);
        assert_non_null(block);
        assert_true(je_malloc_usable_size(block) < align);
        je_free(block);
    }
}

static void test_aligned_blocks_leave_errno_alone(void **state) {
    (void)state;
    errno = 77;
    check_aligned(100, 64);
    assert_null(general_alloc_aligned((size_t)PTRDIFF_MAX + 1, 64));
    assert_null(general_alloc_aligned((size_t)PTRDIFF_MAX - 100, 8));
    assert_null(general_alloc_aligned((size_t)PTRDIFF_MAX - 100, 64));
    assert_null(general_alloc_aligned(100, (size_t)PTRDIFF_MAX + 1));
    assert_int_equal(errno, 77);
}

static void check_zeroed(size_t bytes) {
    unsigned char *dirty = je_malloc(bytes);
    assert_non_null(dirty);
    memset(dirty, 0xA5, bytes);
    je_free(dirty);
    unsigned char *block = general_alloc_zeroed(bytes);
    assert_non_null(block);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(block[i], 0);
    je_free(block);
}

static void test_zeroed_blocks_are_clear_where_others_were(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes <= MOST; bytes += 1 + bytes / 16)
        check_zeroed(bytes);
    check_zeroed(GENERAL_SLAB_MOST - 1);
    check_zeroed(GENERAL_SLAB_MOST);
    check_zeroed(GENERAL_SLAB_MOST + 1);
    check_zeroed(300000);
}

static void test_zeroed_blocks_that_are_too_large_are_refused(void **state) {
    (void)state;
    errno = 0;
    assert_null(general_alloc_zeroed((size_t)PTRDIFF_MAX));
    assert_int_equal(errno, ENOMEM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_of_all_sizes_lie_as_they_are_to),
        cmocka_unit_test(test_blocks_that_lie_far_apart_are_no_larger_for_it),
        cmocka_unit_test(test_aligned_blocks_leave_errno_alone),
        cmocka_unit_test(test_zeroed_blocks_are_clear_where_others_were),
        cmocka_unit_test(test_zeroed_blocks_that_are_too_large_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
