// SPDX-License-Identifier: Apache-2.0
/*
 * counted.h - the counters of the cases: V(CO,DO,CI,DI,AT,DE|live), counted from a beginning.
 *
 * A root region plays the part of "outside of any scope". Counters only ever grow, so a case
 * notes them when it begins and looks at the difference.
 */
#ifndef CONFORMANCE_COUNTED_H
#define CONFORMANCE_COUNTED_H

#include "kit/test.h"

#include <stdio.h>

#define F32 ((struct ebb_dtype){EBB_FLOAT, 32, 1})

struct counted {
    ebb_pool *pool;
    ebb_region outside;
    struct ebb_object_counts before[EBB_OBJECT_KINDS_MAX + 1]; /* the last: of all kinds */
};

static struct ebb_object_counts counts_now(uint32_t kind) {
    struct ebb_object_counts counts;
    assert_int_equal(ebb_process_read_objects(kind, &counts), 0);
    return counts;
}

static inline int counted_open(void **state) {
    static struct counted counted;
    counted.pool = ebb_pool_create(NULL);
    counted.outside = OPEN(.name = "outside", .pool = counted.pool);
    for (uint32_t kind = 0; kind < EBB_OBJECT_KINDS_MAX; kind++)
        counted.before[kind] = counts_now(kind);
    counted.before[EBB_OBJECT_KINDS_MAX] = counts_now(EBB_OBJECT_ALL);
    *state = &counted;
    return ebb_region_is_open(counted.outside) ? 0 : -1;
}

/* Whatever a case leaves outside ends here; nothing may be alive then. */
static inline int counted_close(void **state) {
    struct counted *counted = *state;
    ebb_check_pool(counted->pool);
    assert_int_equal(ebb_region_close(counted->outside), 0);
    assert_int_equal(counts_now(EBB_OBJECT_ALL).live, counted->before[EBB_OBJECT_KINDS_MAX].live);
    pool_end(counted->pool);
    return 0;
}

#define COUNTED(test) cmocka_unit_test_setup_teardown(test, counted_open, counted_close)

struct v {
    uint64_t created_outside, ended_outside, created_inside, ended_inside, attached, detached, live;
};

static inline struct v v_since(const struct counted *counted, uint32_t kind) {
    struct ebb_object_counts now = counts_now(kind);
    const struct ebb_object_counts *then =
        &counted->before[kind == EBB_OBJECT_ALL ? EBB_OBJECT_KINDS_MAX : kind];
    return (struct v){now.created_outside - then->created_outside,
                      now.ended_outside - then->ended_outside,
                      now.created_inside - then->created_inside,
                      now.ended_inside - then->ended_inside,
                      now.attached - then->attached,
                      now.detached - then->detached,
                      now.live - then->live};
}

static inline uint64_t moved_since(const struct counted *counted, uint32_t kind) {
    return counts_now(kind).moved - counted->before[kind].moved;
}

static inline void assert_v(const struct counted *counted, uint32_t kind, struct v expected) {
    struct v found = v_since(counted, kind);
    const uint64_t *a = (const uint64_t *)&found, *b = (const uint64_t *)&expected;
    for (size_t i = 0; i < sizeof found / sizeof *a; i++)
        if (a[i] != b[i])
            fail_msg("number %zu is %llu, expected %llu", i, (unsigned long long)a[i],
                     (unsigned long long)b[i]);
}

#define V(...) ((struct v){__VA_ARGS__})

/* A scope as the cases mean it: a region below `parent`. */
static inline ebb_region scope_in(ebb_region parent) {
    return OPEN(.name = "scope", .parent = parent);
}

/* A tensor of `count` floats: 0, 1, 2, ... */
static inline struct ebb_tensor *floats(ebb_region region, int64_t count) {
    struct ebb_tensor *tensor = ebb_tensor_new(region, F32, 1, &count);
    assert_non_null(tensor);
    for (int64_t i = 0; i < count; i++)
        ((float *)tensor->data)[i] = (float)i;
    return tensor;
}

static inline void assert_floats(const struct ebb_tensor *tensor, int64_t count) {
    assert_int_equal(ebb_tensor_count(tensor), count);
    for (int64_t i = 0; i < count; i++)
        assert_true(((const float *)tensor->data)[i] == (float)i);
}

static inline bool is_live(const void *object) {
    return ebb_region_is_open(ebb_object_owner(object));
}

#endif
