// SPDX-License-Identifier: Apache-2.0
/*
 * dumps.c - core dumps have what blocks are in, and little of the addresses that are only reserved:
 * the system looks at each page of the rest, which took two minutes for a crash.
 */
#include "kit/smaps.h"
#include "kit/test.h"

#include "pool/range.h"

/* The last of the tables. */
static uintptr_t end_of_range(void) {
    return (uintptr_t)range.pools + range.pool_count * RANGE_POOL_BYTES;
}

static bool is_dumped(const void *at, size_t bytes) {
    uintptr_t from = (uintptr_t)at;
    return smaps_dumped(from, from + bytes) == bytes;
}

static void a_dump_has_blocks_and_what_names_them(void **state) {
    const struct stage *stage = *state;
    if (smaps_dumped(0, 1) == SIZE_MAX)
        skip();
    for (size_t bytes = 16; bytes <= 64 * MIB; bytes *= 16) {
        void *block = block_of(stage->root, bytes, 16);
        assert_true(is_dumped(block, bytes));
        assert_true(is_dumped(range_run_at((uintptr_t)block), sizeof(struct ebb_piece)));
        assert_true(is_dumped(range_block_at((uintptr_t)block), sizeof(struct ebb_piece)));
        assert_true(is_dumped(&range.block_at[((uintptr_t)block - range.base) / RANGE_SLOT], 4));
        assert_true(is_dumped(&range.run_at[((uintptr_t)block - range.base) / EBB_PAGE], 4));
    }
    assert_true(is_dumped(stage->root.lane, sizeof *stage->root.lane));
}

static void a_dump_has_hardly_more(void **state) {
    const struct stage *stage = *state;
    if (smaps_dumped(0, 1) == SIZE_MAX)
        skip();
    block_of(stage->root, MIB, 16);
    struct ebb_pool *other = POOL(.name = "other");
    ebb_region region = OPEN(.pool = other);
    block_of(region, MIB, 16);
    assert_true(smaps_dumped(range.base, end_of_range()) <= (size_t)3 << 30); /* a slab each */
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(other);
}

/* A slab that ends and is taken again, for whatever kind, is part of them again. */
static void a_dump_has_what_is_taken_again(void **state) {
    (void)state;
    if (smaps_dumped(0, 1) == SIZE_MAX)
        skip();
    for (unsigned i = 0; i < 6; i++) {
        enum ebb_kind kind = i % 2 ? EBB_KIND_HUGE : EBB_KIND_HOST;
        struct ebb_pool *pool = POOL(.name = "again", .kind = kind);
        ebb_region region = OPEN(.pool = pool);
        assert_true(is_dumped(block_of(region, 5 * MIB, 16), 5 * MIB));
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_dump_has_blocks_and_what_names_them),
        STAGED(a_dump_has_hardly_more),
        STAGED(a_dump_has_what_is_taken_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
