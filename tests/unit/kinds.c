// SPDX-License-Identifier: Apache-2.0
/* kinds.c - kinds of memory: which there are, and that each serves regions like any other. */
#include "base/os.h"
#include "kit/maps.h"
#include "kit/test.h"
#include "pool/chunk.h"

#include <errno.h>

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

static unsigned advised, closed;
static struct os_table real;

static void advise(void *addr, size_t bytes) {
    advised++;
    real.advise_huge(addr, bytes);
}

static int close_pages(void *addr, size_t bytes) {
    closed++;
    return real.close(addr, bytes);
}

/* Huge pages are a wish: what the pool gives is memory in any case, and goes back like any. */
static void a_huge_pool_serves_regions(void **state) {
    real = os;
    os.advise_huge = advise;
    os.close = close_pages;
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
    assert_int_equal(closed, 1);
}

static uintptr_t huge_page;
static bool went[2 * MIB / PAGE];

static int note_pages(void *addr, size_t bytes) {
    for (uintptr_t page = (uintptr_t)addr; page < (uintptr_t)addr + bytes; page += PAGE)
        if (page >= huge_page && page < huge_page + 2 * MIB)
            went[(page - huge_page) / PAGE] = true;
    return real.give_back(addr, bytes);
}

/* How many pages of one huge page a trim gives back. */
static size_t pages_that_go(ebb_pool *pool, uintptr_t at) {
    size_t count = 0;
    huge_page = at;
    memset(went, 0, sizeof went);
    real = os;
    os.give_back = note_pages;
    (void)ebb_pool_trim(pool, 0);
    os = real;
    for (size_t i = 0; i < sizeof went / sizeof *went; i++)
        count += went[i];
    return count;
}

/* Its cold pages became resident with the first that was touched. They go when all are cold. */
static void a_huge_page_goes_as_a_whole_with_the_last_that_is_used(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_HUGE);
    ebb_region regions[3]; /* one where the slab begins, the others at its end */
    void *blocks[3];
    for (int i = 0; i < 3; i++) {
        regions[i] = OPEN(.pool = pool, .hint_bytes = 4 * PAGE);
        blocks[i] = block_of(regions[i], 4 * PAGE, 64);
    }
    uintptr_t first = (uintptr_t)blocks[0], last = (uintptr_t)blocks[1] & ~(uintptr_t)(2 * MIB - 1);
    assert_in_range((uintptr_t)blocks[2], last, last + 2 * MIB);
    assert_int_equal(ebb_region_close(regions[1]), 0);
    assert_int_equal(pages_that_go(pool, last), 4);
    assert_true(pattern_holds(blocks[2], 4 * PAGE, 4 * PAGE));
    assert_int_equal(ebb_region_close(regions[2]), 0);
    assert_int_equal(pages_that_go(pool, last), 2 * MIB / PAGE);
    assert_true(pattern_holds(blocks[0], 4 * PAGE, 4 * PAGE));
    assert_int_equal(ebb_region_close(regions[0]), 0);
    assert_int_equal(pages_that_go(pool, first), 2 * MIB / PAGE);
    pool_end(pool);
}

static bool allow_no_slab(enum os_acquisition what) {
    return what != OS_SLAB && real.allow(what);
}

/* What there never was is not said to be used up, nor the other way round. */
static void addresses_that_are_used_up_and_those_that_never_were_are_told_apart(void **state) {
    static const unsigned kinds[] = {EBB_KIND_HOST, EBB_KIND_HUGE, EBB_KIND_PINNED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ebb_pool *pool = POOL(.kind = kinds[i]);
        ebb_region region = OPEN(.pool = pool);
        char all[64];
        snprintf(all, sizeof all, "there are %zu bytes of addresses in all", range.bytes);
        assert_null(ebb_region_alloc(region, range.bytes + 1, 64));
        assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
        assert_text_names(all);
        real = os;
        os.allow = allow_no_slab;
        assert_null(ebb_region_alloc(region, range.bytes / 2, 64));
        os = real;
        assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
        assert_text_names("no addresses left (");
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
    }
}

static int refuse(void *addr, size_t bytes) {
    return ENOMEM;
}

/* A slab that is not fresh is used again with its advice; one that is not open, by nobody. */
static void a_huge_slab_that_is_not_opened_again_is_given_to_nobody(void **state) {
    for (int round = 0; round < 2; round++) {
        ebb_pool *pool = POOL(.kind = EBB_KIND_HUGE);
        ebb_region region = OPEN(.pool = pool);
        uintptr_t block = (uintptr_t)block_of(region, 5 * MIB, 64);
        assert_int_equal(ebb_region_close(region), 0);
        real = os;
        *(round ? &os.open : &os.close) = refuse;
        pool_end(pool);
        os = real;
        uintptr_t chunk = chunk_take(CHUNK_ALIGN);
        assert_true(chunk);
        assert_int_equal(maps_open(chunk, chunk + CHUNK_ALIGN), CHUNK_ALIGN);
        assert_true(round == (block - chunk >= (size_t)1 << 30));
        chunk_give(chunk, CHUNK_ALIGN);
    }
}

static int refuse_half_way(void *addr, size_t bytes) {
    closed++;
    assert_int_equal(real.close(addr, bytes / 2), 0);
    return ENOMEM;
}

/* Closed as it was reserved, and so not counted; forbidden it would be. Refused, it is nobody's. */
static void addresses_without_memory_are_closed(void **state) {
    const size_t bytes = (size_t)4 << 30;
    real = os;
    closed = 0;
    os.close = refuse_half_way;
    ebb_region region = OPEN(.measure = true);
    assert_no_block(ebb_region_alloc(region, 5 * MIB, 64), EBB_E_MEMORY);
    assert_text_names("closed");
    os = real;
    assert_int_equal(closed, 1);
    uintptr_t chunk = chunk_take(bytes); /* the same */
    assert_true(chunk);
    assert_int_equal(maps_open(chunk, chunk + bytes), bytes);
    chunk_give(chunk, bytes);
    os.close = close_pages;
    void *block = ebb_region_alloc(region, 5 * MIB, 64);
    os = real;
    assert_non_null(block);
    assert_int_equal(closed, 2);
    assert_int_equal(maps_open((uintptr_t)block, (uintptr_t)block + 5 * MIB), 0);
    assert_int_equal(ebb_region_close(region), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_that_are_no_kind_are_refused),
        cmocka_unit_test(a_huge_pool_serves_regions),
        cmocka_unit_test(a_huge_page_goes_as_a_whole_with_the_last_that_is_used),
        cmocka_unit_test(a_huge_slab_that_is_not_opened_again_is_given_to_nobody),
        cmocka_unit_test(addresses_without_memory_are_closed),
        cmocka_unit_test(addresses_that_are_used_up_and_those_that_never_were_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
