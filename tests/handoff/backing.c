// SPDX-License-Identifier: Apache-2.0
/* backing.c - pages of the memory file behind a slot: all that fits can be had, whatever the slot
 * was left like, and no page comes or stays that nobody counts. */
#include "base/os.h"
#include "handoff/duo.h"
#include "pool/shared.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (4 * MIB)
#define SLOT_PAGES (SLOT_BYTES / PAGE)

static struct os_table real;

/* ---- what fits ---- */

/* A region with a block of so many pages, with a child or without. */
static void fill_pages(ebb_pool *pool, size_t pages, bool keeps) {
    ebb_region region = OPEN(.pool = pool);
    assert_true(ebb_region_is_open(region));
    if (keeps)
        assert_true(ebb_region_is_open(OPEN(.parent = region)));
    void *block = ebb_region_alloc(region, pages * PAGE, 64);
    if (!block)
        print_error("%zu pages: %s\n", pages, ebb_last_error_text());
    assert_non_null(block);
    assert_int_equal(ebb_region_close(region), 0);
}

/* The pages that are hot, and those that are cold behind them, need not be enough alone. */
static void an_empty_slot_has_room_for_all_that_it_can_hold(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    for (unsigned keeps = 0; keeps < 2; keeps++)
        for (size_t before = 1; before < SLOT_PAGES; before += 70)
            for (size_t pages = before + 1; pages < SLOT_PAGES - 40; pages += 90) {
                ebb_pool_trim(pool, 0);
                fill_pages(pool, before, false);
                fill_pages(pool, pages, keeps);
                ebb_check_pool(pool);
            }
    pool_end(pool);
}

/* The hot pages that are most may lie in the middle. */
static void the_end_of_a_slot_is_used_as_one(void **state) {
    static const size_t pages[] = {400, 100, 200};
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool), children[3];
    for (unsigned i = 0; i < 3; i++) {
        children[i] = OPEN(.parent = root, .hint_bytes = pages[i] * PAGE);
        assert_non_null(ebb_region_alloc(children[i], pages[i] * PAGE, 64));
    }
    assert_int_equal(ebb_region_close(children[0]), 0);
    assert_int_equal(ebb_region_close(children[2]), 0);
    assert_non_null(ebb_region_alloc(root, 450 * PAGE, 64));
    ebb_check_pool(pool);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* The steps of a site find their pages as they left them, if nobody needs them more. */
static void pages_that_are_kept_make_room(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "kept", .pool = pool));
    ebb_region root = OPEN(.pool = pool);
    for (unsigned i = 0; i < 12; i++) {
        ebb_step step = ebb_step_begin_under(site, root, 0);
        for (unsigned k = 0; k < 6; k++)
            block_of(step.region, 400000, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_non_null(ebb_region_alloc(root, 2500000, 64));
    ebb_check_pool(pool);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* ---- the system says no ---- */

static bool allow_no_slab(enum os_acquisition what) {
    return what != OS_SLAB && real.allow(what);
}

/* Addresses have tables beside them: it may be memory for these that is missing. */
static void addresses_are_not_said_to_be_missing(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    real = os;
    os.allow = allow_no_slab;
    assert_false(ebb_region_is_open(OPEN(.pool = pool)));
    os = real;
    assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
    assert_text_names("no addresses left");
    assert_text_names("or no memory to open them");
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_slot_has_room_for_all_that_it_can_hold),
        cmocka_unit_test(the_end_of_a_slot_is_used_as_one),
        cmocka_unit_test(pages_that_are_kept_make_room),
        cmocka_unit_test(addresses_are_not_said_to_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
