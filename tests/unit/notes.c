// SPDX-License-Identifier: Apache-2.0
/*
 * notes.c - the tables that say which block of a step's record an address is: they have pages where
 * they are written, which go when the step ends, and are not read where they have none.
 */
#include "kit/test.h"

#include "base/os.h"
#include "step/site.h"

#include <ebb/step.h>

#include <sys/mman.h>

enum { BLOCKS = 3000 };

static bool region_is(ebb_region a, ebb_region b) {
    return a.lane == b.lane && a.generation == b.generation;
}

/* Blocks of one size; the last of them. */
static void *fill(ebb_step step, size_t bytes) {
    void *block = NULL;
    for (int i = 0; i < BLOCKS; i++)
        assert_non_null(block = ebb_region_alloc(step.region, bytes, 16));
    return block;
}

static bool is_resident(const void *at) {
    unsigned char resident = 0;
    void *page = (void *)size_align_down((uintptr_t)at, EBB_PAGE);
    assert_int_equal(mincore(page, EBB_PAGE, &resident), 0);
    return resident & 1;
}

static void notes_go_when_a_recorded_step_ends(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "notes"));
    ebb_step step = ebb_step_begin(site, 0);
    uintptr_t small = (uintptr_t)fill(step, 64);
    assert_true(is_resident(range_note(small)));
    uintptr_t large = (uintptr_t)ebb_region_alloc(step.region, 1 << 20, 64);
    assert_true(is_resident(range_block_note(large)));
    assert_int_equal(ebb_step_end(step), 0);
    assert_false(is_resident(range_note(small)));
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* They do if a block of the step was promoted where it is: its own note lies elsewhere. */
static void notes_go_when_something_of_the_step_lives_on(void **state) {
    ebb_region root = ebb_region_open(EBB_REGION_OPTIONS(.name = "root"));
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "notes"));
    ebb_step step = ebb_step_begin_under(site, root, 0);
    struct ebb_survivor large = {.block = ebb_region_alloc(step.region, 1 << 20, 4096),
                                 .mode = EBB_PROMOTE_RELINK};
    uintptr_t small = (uintptr_t)fill(step, 64) - 64 * KIB;
    assert_true(is_resident(range_note(small)));
    assert_int_equal(ebb_step_end_keeping(step, root, &large, 1, NULL, NULL), 0);
    assert_false(is_resident(range_note(small)));
    assert_int_equal(ebb_region_close(root), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Of a step that is served one block was born in the parent and the other is in no plan. Who looks
 * where that was born does not ask the notes of its address, which would have to have a page. */
static void notes_are_not_asked_where_none_are_made(void **state) {
    enum { ALIGN = 64 << 10 };
    ebb_region root = ebb_region_open(EBB_REGION_OPTIONS(.name = "root"));
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "notes"));
    for (int i = 0; i < 8; i++) {
        ebb_step step = ebb_step_begin_under(site, root, 0);
        assert_non_null(ebb_region_alloc(step.region, 3000, 16));
        struct ebb_survivor kept[2] = {{.block = ebb_region_alloc(step.region, 100, 16)}};
        kept[1].block = i == 7 ? ebb_region_alloc(step.region, 100 * KIB, ALIGN) : NULL;
        const void *other = kept[1].block;
        size_t count = other ? 2 : 1;
        assert_int_equal(ebb_step_end_keeping(step, root, kept, count, NULL, NULL), 0);
        assert_false(other && is_resident(range_note((uintptr_t)other)));
    }
    assert_true(site_stats(site).tenured_right > 0 && site_stats(site).missed == 1);
    assert_int_equal(ebb_region_close(root), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A root's own large block goes while others are born there: notes of large blocks are asked. */
static void notes_of_small_blocks_are_not_asked_for_a_large_one(void **state) {
    ebb_region root = ebb_region_open(EBB_REGION_OPTIONS(.name = "root"));
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "notes"));
    for (int i = 0; i < 8; i++) {
        void *large = ebb_region_alloc(root, 1 * MIB, 64 * KIB);
        ebb_step step = ebb_step_begin_under(site, root, 0);
        assert_non_null(ebb_region_alloc(step.region, 3000, 16));
        struct ebb_survivor kept = {.block = ebb_region_alloc(step.region, 100, 16)};
        assert_int_equal(ebb_region_release(root, large), 0);
        assert_false(is_resident(range_note((uintptr_t)large)));
        assert_int_equal(ebb_step_end_keeping(step, root, &kept, 1, NULL, NULL), 0);
    }
    assert_true(site_stats(site).tenured_right > 0);
    assert_int_equal(ebb_region_close(root), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static struct os_table real;
static unsigned notes_given;
static uintptr_t noted; /* a block */

static int give_back_counting(void *addr, size_t bytes) {
    notes_given += (uintptr_t)range_note(noted) - (uintptr_t)addr < bytes;
    return real.give_back(addr, bytes);
}

static unsigned notes_given_after(ebb_site *site, size_t bytes) {
    ebb_step step = ebb_step_begin(site, 0);
    noted = (uintptr_t)fill(step, bytes) - 64 * KIB; /* not in the last page, which stays */
    notes_given = 0;
    real = os;
    os.give_back = give_back_counting;
    assert_int_equal(ebb_step_end(step), 0);
    os = real;
    return notes_given;
}

/* Which have theirs elsewhere. */
static void of_large_blocks_alone_no_notes_are_to_go(void **state) {
    ebb_pool *pool = POOL(.keep_all = true); /* no page goes, which would take its notes along */
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "notes", .pool = pool));
    assert_int_equal(notes_given_after(site, 2048), 0);
    assert_true(notes_given_after(site, 64) > 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* All blocks of a step below `parent`, each of which survives. */
static void keep_all(ebb_site *site, ebb_region parent) {
    static struct ebb_survivor kept[BLOCKS];
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    for (int i = 0; i < BLOCKS; i++)
        kept[i] = (struct ebb_survivor){.block = ebb_region_alloc(step.region, 64, 16)};
    assert_int_equal(ebb_step_end_keeping(step, parent, kept, BLOCKS, NULL, NULL), 0);
}

/* A recorded step ends, and its region stays for the ring; blocks were born in it for a step below,
 * and are noted at its addresses. */
static void notes_of_steps_below_stay(void **state) {
    static void *born[BLOCKS];
    ebb_region root = ebb_region_open(EBB_REGION_OPTIONS(.name = "root"));
    ebb_site *outer = ebb_site_create(EBB_SITE_OPTIONS(.name = "outer", .ring = 1));
    ebb_site *inner = ebb_site_create(EBB_SITE_OPTIONS(.name = "inner"));
    for (int i = 0; i < 4; i++)
        keep_all(inner, root);
    ebb_step above = ebb_step_begin_under(outer, root, 0);
    ebb_step below = ebb_step_begin_under(inner, above.region, 0);
    for (int i = 0; i < BLOCKS; i++)
        assert_non_null(born[i] = ebb_region_alloc(below.region, 64, 16));
    assert_true(region_is(ebb_region_of(born[0]), above.region));
    assert_int_equal(ebb_step_end(above), 0);
    for (int i = 0; i < BLOCKS; i++)
        assert_int_equal(ebb_region_release(below.region, born[i]), 0);
    assert_int_equal(ebb_step_end(below), 0);
    assert_int_equal(ebb_region_close(root), 0);
    assert_int_equal(ebb_site_destroy(inner), 0);
    assert_int_equal(ebb_site_destroy(outer), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_go_when_a_recorded_step_ends),
        cmocka_unit_test(notes_go_when_something_of_the_step_lives_on),
        cmocka_unit_test(notes_are_not_asked_where_none_are_made),
        cmocka_unit_test(notes_of_small_blocks_are_not_asked_for_a_large_one),
        cmocka_unit_test(of_large_blocks_alone_no_notes_are_to_go),
        cmocka_unit_test(notes_of_steps_below_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
