// SPDX-License-Identifier: Apache-2.0
/*
 * chunk.c - chunks of addresses, from whichever source was built: apart, aligned, inside the range,
 * reused, refused without a trace.
 */
#include "kit/test.h"

#include "base/os.h"
#include "pool/chunk.h"
#include "region/plan.h"

#define MANY 200

static int prepare(void **state) {
    (void)state;
    return range_prepare();
}

static void assert_apart(const uintptr_t *addrs, const size_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(addrs[i] >= addrs[k] + bytes[k] || addrs[k] >= addrs[i] + bytes[i]);
}

static void chunks_are_aligned_apart_and_in_the_range(void **state) {
    uintptr_t addrs[MANY];
    size_t bytes[MANY];
    for (size_t i = 0; i < MANY; i++) {
        bytes[i] = CHUNK_ALIGN * (1 + i * 7 % 70);
        addrs[i] = chunk_take(bytes[i]);
        assert_true(addrs[i] && addrs[i] % CHUNK_ALIGN == 0);
        assert_true(range_holds(addrs[i]) && range_holds(addrs[i] + bytes[i] - 1));
    }
    assert_apart(addrs, bytes, MANY);
    for (size_t i = 0; i < MANY; i++)
        chunk_give(addrs[i], bytes[i]);
}

/* Every other one is given back and taken again, in other sizes: the rest stay as they were. */
static void what_came_back_is_used_again(void **state) {
    uintptr_t addrs[MANY];
    size_t bytes[MANY], before;
    for (size_t i = 0; i < MANY; i++)
        addrs[i] = chunk_take(bytes[i] = CHUNK_ALIGN * 2);
    before = chunk_bytes();
    for (size_t i = 0; i < MANY; i += 2)
        chunk_give(addrs[i], bytes[i]);
    for (size_t i = 0; i < MANY; i += 2)
        addrs[i] = chunk_take(bytes[i] = CHUNK_ALIGN * (1 + i / 2 % 2));
    assert_apart(addrs, bytes, MANY);
    assert_true(chunk_bytes() <= before);
    for (size_t i = 0; i < MANY; i++)
        chunk_give(addrs[i], bytes[i]);
}

static void pages_of_a_chunk_that_came_back_are_gone(void **state) {
    size_t bytes = 4 * CHUNK_ALIGN;
    uintptr_t addr = chunk_take(bytes);
    memset((void *)addr, 1, bytes);
    assert_true(os.resident((void *)addr, bytes) >= bytes);
    chunk_give(addr, bytes);
    assert_int_equal(os.resident((void *)addr, bytes), 0);
}

static void more_than_the_range_is_refused(void **state) {
    size_t before = chunk_bytes();
    assert_int_equal(chunk_take(range.bytes + CHUNK_ALIGN), 0);
    uintptr_t addr = chunk_take(CHUNK_ALIGN);
    assert_int_equal(chunk_take(range.bytes), 0);
    chunk_give(addr, CHUNK_ALIGN);
    assert_true(chunk_bytes() <= before + CHUNK_ALIGN);
}

static bool refuse_slabs(enum os_acquisition what) {
    return what != OS_SLAB;
}

static void a_refused_chunk_takes_nothing(void **state) {
    bool (*allow)(enum os_acquisition what) = os.allow;
    size_t before = chunk_bytes();
    os.allow = refuse_slabs;
    assert_int_equal(chunk_take(CHUNK_ALIGN), 0);
    os.allow = allow;
    assert_int_equal(chunk_bytes(), before);
}

/* Sites come and go, each with a longer plan than the one before, and longer than a slab. */
static void what_is_learnt_last_lies_where_the_one_before_did(void **state) {
    const size_t least = (size_t)65 << 20;
    ebb_region memory;
    size_t taken = 0;
    (void)state;
    for (size_t i = 0; i < 50; i++) {
        assert_non_null(plan_pool_take("long", least + i * CHUNK_ALIGN, &memory));
        assert_int_equal(ebb_region_close(memory), 0);
        taken = i ? taken : chunk_bytes();
    }
    assert_int_equal(chunk_bytes(), taken);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_aligned_apart_and_in_the_range),
        cmocka_unit_test(what_came_back_is_used_again),
        cmocka_unit_test(pages_of_a_chunk_that_came_back_are_gone),
        cmocka_unit_test(more_than_the_range_is_refused),
        cmocka_unit_test(a_refused_chunk_takes_nothing),
        cmocka_unit_test(what_is_learnt_last_lies_where_the_one_before_did),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
