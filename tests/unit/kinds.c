// SPDX-License-Identifier: Apache-2.0
/* kinds.c - kinds of memory: which there are, and that each serves regions like any other. */
#include "base/os.h"
#include "kit/test.h"

#include <stdio.h>

static void flags_that_are_no_kind_are_refused(void **state) {
    static const unsigned none[] = {EBB_KIND_DEVICE | EBB_KIND_HUGE,
                                    EBB_KIND_DEVICE | EBB_KIND_SHARED,
                                    EBB_KIND_HUGE | EBB_KIND_SHARED, 16, 1u << 31};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char number[16];
        assert_no_block(POOL(.kind = none[i]), EBB_E_KIND);
        snprintf(number, sizeof number, "%#x", none[i]);
        assert_text_names(number);
    }
}

static unsigned advised, covered;
static struct os_table real;

static void advise(void *addr, size_t bytes) {
    advised++;
    real.advise_huge(addr, bytes);
}

static int cover(void *addr, size_t bytes) {
    covered++;
    return real.cover(addr, bytes);
}

/* Huge pages are a wish: what the pool gives is memory in any case, and goes back like any. */
static void a_huge_pool_serves_regions(void **state) {
    real = os;
    os.advise_huge = advise;
    os.cover = cover;
    ebb_pool *pool = POOL(.kind = EBB_KIND_HUGE);
    assert_non_null(pool);
    for (int step = 0; step < 3; step++) {
        ebb_region region = OPEN(.pool = pool);
        void *block = block_of(region, 5 * MIB, 64);
        assert_true(pattern_holds(block, 5 * MIB, (unsigned)(5 * MIB)));
        assert_int_equal(ebb_region_close(region), 0);
    }
    assert_true(ebb_pool_trim(pool, 0) >= 5 * MIB);
    pool_end(pool);
    os = real;
    assert_int_equal(advised, 1);
    assert_int_equal(covered, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_that_are_no_kind_are_refused),
        cmocka_unit_test(a_huge_pool_serves_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
