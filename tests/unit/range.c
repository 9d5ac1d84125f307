// SPDX-License-Identifier: Apache-2.0
/*
 * range.c - the one range of addresses and its tables: the edges are exact, records are
 * apart, and every record's name leads back to it.
 */
#include "kit/test.h"

#include "pool/chunk.h"

static int prepare(void **state) {
    (void)state;
    return range_prepare();
}

static void preparing_again_keeps_the_range(void **state) {
    uintptr_t base = range.base;
    assert_int_equal(range_prepare(), 0);
    assert_true(range.base == base);
    assert_true(range.bytes >= (size_t)1 << 30);
    assert_int_equal(range.base % ((size_t)2 << 20), 0);
}

static void the_edges_of_the_range_are_exact(void **state) {
    assert_true(range_open(CHUNK_ALIGN));
    size_t open = atomic_load(&range.user.open);
    assert_true(range_holds(range.base) && range_reserves(range.base));
    assert_true(range_holds(range.base + open - 1));
    assert_false(range_holds(range.base + open));
    assert_true(range_reserves(range.base + range.bytes - 1));
    const uintptr_t outside[] = {range.base - 1, range.base + range.bytes, 0, UINTPTR_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_false(range_holds(outside[i]) || range_reserves(outside[i]));
}

static void the_name_of_a_piece_leads_back_to_it(void **state) {
    for (int batch = 0; batch < 100; batch++) {
        struct ebb_piece *pieces = range_carve_pieces();
        assert_non_null(pieces);
        for (unsigned i = 0; i < PIECES_PER_BATCH; i++) {
            assert_int_not_equal(range_piece_name(pieces + i), 0);
            assert_ptr_equal(range_piece(range_piece_name(pieces + i)), pieces + i);
        }
    }
}

static void an_address_never_named_is_of_the_piece_that_is_none(void **state) {
    uintptr_t addr = chunk_take(CHUNK_ALIGN);
    assert_ptr_equal(range_block_at(addr), range_piece(0));
    assert_null(range_run_at(addr));
    assert_int_equal(range_piece(0)->state, PIECE_UNUSED);
}

static void naming_covers_every_page_and_slot_and_no_neighbour(void **state) {
    struct ebb_piece *piece = range_carve_pieces() + 1;
    uintptr_t addr = chunk_take(CHUNK_ALIGN) + 4 * PAGE;
    *piece = (struct ebb_piece){.addr = addr, .bytes = 2 * PAGE, .state = PIECE_RUN};
    range_name_pages(piece, addr, 2 * PAGE);
    range_name_window(piece);
    for (uintptr_t at = addr; at < addr + 2 * PAGE; at += 16) {
        assert_ptr_equal(range_run_at(at), piece);
        assert_ptr_equal(range_block_at(at), piece);
    }
    assert_null(range_run_at(addr - 1));
    assert_null(range_run_at(addr + 2 * PAGE));
    assert_ptr_equal(range_block_at(addr - 1), range_piece(0));
    assert_ptr_equal(range_block_at(addr + 2 * PAGE), range_piece(0));
}

static void sites_have_one_entry_a_granule(void **state) {
    uintptr_t addr = chunk_take(CHUNK_ALIGN);
    assert_ptr_equal(range_site(addr), range_site(addr + 15));
    assert_ptr_equal(range_site(addr) + 1, range_site(addr + 16));
}

static void region_slots_and_pools_are_apart_until_used_up(void **state) {
    char *slot = range_carve_region(), *next = range_carve_region();
    assert_true(next - slot == (ptrdiff_t)RANGE_REGION_BYTES);
    size_t pools = 0;
    for (char *last = NULL, *pool; (pool = range_carve_pool()); last = pool, pools++)
        assert_true(!last || pool - last == (ptrdiff_t)RANGE_POOL_BYTES);
    assert_int_equal(pools, range.pool_count);
    assert_null(range_carve_pool());
    assert_null(ebb_pool_create(NULL));
    assert_text_names("no place for another pool: 1024 exist, shared slots");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(preparing_again_keeps_the_range),
        cmocka_unit_test(the_edges_of_the_range_are_exact),
        cmocka_unit_test(the_name_of_a_piece_leads_back_to_it),
        cmocka_unit_test(an_address_never_named_is_of_the_piece_that_is_none),
        cmocka_unit_test(naming_covers_every_page_and_slot_and_no_neighbour),
        cmocka_unit_test(sites_have_one_entry_a_granule),
        cmocka_unit_test(region_slots_and_pools_are_apart_until_used_up),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
