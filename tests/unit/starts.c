// SPDX-License-Identifier: Apache-2.0
/*
 * starts.c - stores of start maps: what was given back is used again, what a store need not keep
 * goes to others, and to the system when it is trimmed.
 */
#include "kit/slow.h"
#include "kit/test.h"

#include "base/os.h"
#include "pool/starts.h"

enum { CLASSES = STARTS_CLASSES, ROUNDS = 1000, KEPT = 2, MANY = 1000 };

#define BATCH_BYTES ((size_t)64 << 10)

static void maps_that_come_and_go_need_no_more_memory(void **state) {
    struct starts_store store = {0};
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t maps[CLASSES];
        for (unsigned class = 0; class < CLASSES; class ++) {
            maps[class] = starts_take(&store, STARTS_WINDOW << class);
            assert_int_not_equal(maps[class], 0);
        }
        for (unsigned class = 0; class < CLASSES; class ++)
            starts_give(&store, maps[class], STARTS_WINDOW << class);
    }
    assert_int_equal(store.batches, 1);
    starts_give_up(&store);
}

static void take_many(struct starts_store *store) {
    for (unsigned i = 0; i < MANY; i++)
        assert_int_not_equal(starts_take(store, STARTS_WINDOW), 0);
    assert_in_range(store->batches, MANY / 128, MANY / 128 + 1);
}

static void a_store_that_forgets_keeps_few(void **state) {
    struct starts_store store = {0}, other = {0};
    take_many(&store);
    uint32_t first = store.first;
    starts_forget_all(&store);
    assert_int_equal(store.batches, KEPT);
    take_many(&other); /* of what the first left */
    take_many(&store);
    assert_int_equal(store.first, first);
    starts_give_up(&store);
    starts_give_up(&other);
    assert_int_equal(store.batches + store.first + store.last, 0);
}

/* Two at the most go, then none, then all. */
static void no_more_is_trimmed_than_was_asked_for(void **state) {
    struct starts_store store = {0};
    take_many(&store);
    starts_give_up(&store);
    size_t most = 2 * BATCH_BYTES + BATCH_BYTES / 2;
    assert_false(starts_trim(0, &most));
    assert_int_equal(most, BATCH_BYTES / 2);
    assert_false(starts_trim(0, &most));
    assert_int_equal(most, BATCH_BYTES / 2);
    most = SIZE_MAX;
    assert_true(starts_trim(0, &most));
}

static void *take_one(void *unused) {
    struct starts_store store = {0};
    assert_int_not_equal(starts_take(&store, STARTS_WINDOW), 0);
    starts_give_up(&store);
    return unused;
}

static void nobody_waits_while_the_system_takes_pages(void **state) {
    struct starts_store store = {0};
    size_t most = 2 * BATCH_BYTES;
    take_many(&store);
    starts_give_up(&store);
    slow_begin(take_one);
    assert_false(starts_trim(0, &most));
    assert_int_equal(slow_end(), 0);
    assert_int_equal(most, 0);
}

/* What it does not take serves again. */
static int give_nothing_back(void *addr, size_t bytes) {
    (void)addr, (void)bytes;
    return -1;
}

static void what_the_system_refuses_stays(void **state) {
    struct starts_store store = {0};
    size_t most = SIZE_MAX;
    take_many(&store);
    uint32_t first = store.first;
    starts_give_up(&store);
    const struct os_table real_os = os;
    os.give_back = give_nothing_back;
    assert_false(starts_trim(0, &most));
    os.give_back = real_os.give_back;
    assert_true(most == SIZE_MAX);
    take_many(&store);
    assert_int_equal(store.first, first);
    starts_give_up(&store);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(maps_that_come_and_go_need_no_more_memory),
        STAGED(a_store_that_forgets_keeps_few),
        STAGED(no_more_is_trimmed_than_was_asked_for),
        STAGED(nobody_waits_while_the_system_takes_pages),
        STAGED(what_the_system_refuses_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
