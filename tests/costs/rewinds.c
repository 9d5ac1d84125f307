// SPDX-License-Identifier: Apache-2.0
/*
 * rewinds.c - rewinds that must not cost more for each object where there are more of them, and
 * closes for each region, for test_costs.py, which counts the instructions of counted_...(), or of
 * a function of ebb's.
 *
 *   rewinds CASE COUNT
 */
#include "costs/cases.h"
#include "kit/boxes.h"

#include <stdlib.h>

#ifdef __clang__
#define COUNTED static __attribute__((noinline))
#else
#define COUNTED static __attribute__((noinline, noclone))
#endif

COUNTED void counted_rewind(ebb_region region, ebb_mark mark) {
    assert_int_equal(ebb_region_rewind(region, mark), 0);
}

/* ---- a region that has others below it, each in the one before */

static void rewind_above_a_chain(size_t count) {
    ebb_pool *pool = POOL(.name = "chain");
    ebb_region root = OPEN(.pool = pool), below = root;
    struct ebb_tensor *older = floats_in(root, 3);
    ebb_mark mark = ebb_region_mark(root);
    struct ebb_tensor *newer = floats_in(root, 3);
    for (size_t i = 0; i < count; i++) {
        below = OPEN(.parent = below);
        floats_of(below, older, 0, 2);
    }
    floats_of(below, newer, 0, 2);
    counted_rewind(root, mark);
    assert_int_equal(live_in(below), 1);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* ---- a region that has objects of others in front of its own, which alone go */

static void rewind_behind_the_attached(size_t count) {
    struct ebb_tensor **attached = calloc(count, sizeof *attached);
    assert_non_null(attached);
    ebb_pool *pool = POOL(.name = "attached");
    ebb_region root = OPEN(.pool = pool), below = OPEN(.parent = root);
    for (size_t i = 0; i < count; i++) {
        attached[i] = floats_in(root, 1);
        assert_int_equal(ebb_object_attach(attached[i], below), 0);
    }
    ebb_mark mark = ebb_region_mark(below);
    for (size_t i = 0; i < count; i++)
        floats_in(below, 2);
    for (size_t i = 0; i < count; i++) /* who takes the place of one is in front */
        assert_non_null(ebb_tensor_take(attached[i]));
    counted_rewind(below, mark);
    assert_int_equal(live_in(below), count);
    assert_int_equal(stats_of(below).blocks.current, 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    free(attached);
}

/* ---- a region with one below it whose views of what goes are attached further down, and behind as
 * many of what stays */

static void rewind_above_attached_views(size_t count) {
    ebb_pool *pool = POOL(.name = "views");
    ebb_region root = OPEN(.pool = pool);
    struct ebb_tensor *older = floats_in(root, 3);
    ebb_mark mark = ebb_region_mark(root);
    struct ebb_tensor *newer = floats_in(root, 3);
    ebb_region below = OPEN(.parent = root), lowest = OPEN(.parent = below);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ebb_object_attach(floats_of(below, newer, 0, 2), lowest), 0);
    for (size_t i = 0; i < count; i++)
        floats_of(below, older, 0, 2);
    counted_rewind(root, mark);
    assert_int_equal(live_in(lowest), 0);
    assert_int_equal(live_in(below), count);
    assert_int_equal(older->storage->tensors, count + 1);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* ---- past a small block, of a region that has many: its windows are long */

static void rewind_a_little(size_t count) {
    ebb_pool *pool = POOL(.name = "little");
    ebb_region region = OPEN(.pool = pool);
    for (size_t i = 0; i < 4 * count; i++) {
        assert_non_null(ebb_region_alloc(region, 48, 16));
        if (i < 3 * count)
            continue;
        ebb_mark mark = ebb_region_mark(region);
        assert_non_null(ebb_region_alloc(region, 48, 16));
        assert_int_equal(ebb_region_rewind(region, mark), 0); /* calls small_rewind() */
    }
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* ---- regions that end, each in the one before, have cleanups */

static int count_one(void *data) {
    ++*(size_t *)data;
    return 0;
}

COUNTED void counted_close(ebb_region region) {
    assert_int_equal(ebb_region_close(region), 0);
}

static void close_a_chain(size_t count) {
    ebb_pool *pool = POOL(.name = "chain");
    struct ebb_cleanup *cleanups = calloc(count, sizeof *cleanups);
    assert_non_null(cleanups);
    size_t ran = 0;
    ebb_region root = OPEN(.pool = pool), below = root;
    for (size_t i = 0; i < count; i++) {
        below = OPEN(.parent = below);
        cleanups[i] = (struct ebb_cleanup){.run = count_one, .data = &ran};
        assert_int_equal(ebb_cleanup_add(below, &cleanups[i]), 0);
    }
    counted_close(root);
    assert_int_equal(ran, count);
    free(cleanups);
    pool_end(pool);
}

int main(int argc, char **argv) {
    static const struct costs_case cases[] = {
        {"rewind_above_a_chain", rewind_above_a_chain},
        {"rewind_behind_the_attached", rewind_behind_the_attached},
        {"rewind_above_attached_views", rewind_above_attached_views},
        {"rewind_a_little", rewind_a_little},
        {"close_a_chain", close_a_chain},
    };
    return play_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
