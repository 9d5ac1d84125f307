// SPDX-License-Identifier: Apache-2.0
/*
 * shared.c - shared memory that its consumer pins, over the fake driver: each slot once, again when
 * it grew or was trimmed; a slot that a device still reads is not used again; workers never call
 * the driver, nor lock what they open; each call that fails leaves the parcel as good as it was.
 */
#include "driver_api.h"
#include "scene.h"

#include "base/os.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In place of the C library's: a loop that goes round asks for nothing. */
static unsigned pids_asked;

pid_t getpid(void) {
    pids_asked++;
    return (pid_t)syscall(SYS_getpid);
}

static ebb_pool *shared_pool(unsigned slots) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED | EBB_KIND_PINNED, .name = "loader",
                          .slots = slots, .slot_bytes = 64 * MIB);
    assert_non_null(pool);
    return pool;
}

static size_t pinned_bytes(ebb_pool *pool) {
    size_t bytes;
    assert_int_equal(ebb_pool_pinning(pool, &bytes), EBB_PINNING_REGISTERED);
    assert_int_equal(bytes, driver_state().registered_bytes);
    return bytes;
}

static void the_consumer_pins_each_slot_once(void **state) {
    ebb_pool *pool = shared_pool(2);
    ebb_lease *leases[2];
    struct ebb_parcel parcel = batch(pool, 3 * MIB, 1);
    assert_int_equal(ebb_pool_pinning(pool, NULL), EBB_PINNING_NONE);
    assert_int_equal(driver_state().registered, 0); /* who sends pins nothing */
    assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
    for (int i = 0; i < 2; i++)
        leases[i] = opened(pool, 3 * MIB, i);
    assert_true(pinned_bytes(pool) >= 6 * MIB && pinned_bytes(pool) <= 9 * MIB);
    for (int i = 0; i < 2; i++)
        ebb_lease_drop(leases[i]);
    fake_cuda_fail(0, false);
    for (int round = 0; round < 50; round++)
        ebb_lease_drop(opened(pool, 3 * MIB - (size_t)round * 1000, round));
    assert_int_equal(fake_cuda_fail(0, false), 0); /* calls */
    assert_int_equal(driver_state().registered, 2);
    struct ebb_parcel last = batch(pool, 1000, 1);
    pids_asked = 0;
    ebb_lease *lease = ebb_parcel_open(pool, &last);
    assert_int_equal(pids_asked, 0);
    ebb_lease_drop(lease);
    pool_end(pool);
    assert_driver_is_empty();
}

static void a_slot_that_grew_is_pinned_anew(void **state) {
    ebb_pool *pool = shared_pool(1);
    size_t before = driver_state().registrations;
    ebb_lease_drop(opened(pool, 1 * MIB, 1));
    ebb_lease_drop(opened(pool, 9 * MIB, 2));
    assert_true(pinned_bytes(pool) >= 9 * MIB);
    assert_int_equal(driver_state().registered, 1);
    assert_int_equal(driver_state().registrations, before + 2);
    pool_end(pool);
    assert_driver_is_empty();
}

static ebb_pool *inherited;

static int trim_in_the_child(void) {
    return ebb_pool_trim(inherited, 0) >= 1 * MIB ? 0 : 1;
}

/* A device would go on reading the pages that the file had before. */
static void a_slot_that_was_trimmed_is_pinned_anew(void **state) {
    ebb_pool *pool = inherited = shared_pool(1);
    size_t before = driver_state().registrations;
    ebb_lease_drop(opened(pool, 2 * MIB, 1));
    assert_int_equal(in_a_child(trim_in_the_child), 0); /* by another process */
    ebb_lease_drop(opened(pool, 1 * MIB, 2));
    assert_int_equal(driver_state().registrations, before + 2);
    assert_true(ebb_pool_trim(pool, 0) >= 1 * MIB); /* by this one */
    assert_int_equal(pinned_bytes(pool), 0);
    ebb_lease_drop(opened(pool, 1 * MIB, 3));
    assert_int_equal(driver_state().registrations, before + 3);
    pool_end(pool);
    assert_driver_is_empty();
}

/* Nothing is cached by then. What is read stays as it is. */
static void what_others_have_trimmed_is_pinned_until_a_trim_here(void **state) {
    ebb_pool *pool = inherited = shared_pool(3);
    ebb_lease *leases[3];
    for (int i = 0; i < 3; i++)
        leases[i] = opened(pool, 2 * MIB, i);
    for (int i = 0; i < 2; i++)
        ebb_lease_drop(leases[i]);
    assert_int_equal(in_a_child(trim_in_the_child), 0);
    assert_true(pinned_bytes(pool) >= 6 * MIB);
    driver_fail(1, false);
    assert_int_equal(ebb_pool_trim(pool, 0), 0);
    assert_int_equal(driver_relent(), 1);
    assert_int_equal(driver_state().registered, 2); /* the one that it refused */
    assert_int_equal(ebb_pool_trim_within(pool, 0, 1, NULL), 0);
    assert_int_equal(driver_state().registered, 1); /* what is read */
    assert_in_range(pinned_bytes(pool), 2 * MIB, 4 * MIB);
    ebb_lease_drop(leases[2]);
    pool_end(pool);
    assert_driver_is_empty();
}

static int channel[2];

static int send_one(void) {
    struct ebb_parcel parcel = batch(inherited, 5000, 7);
    return write(channel[1], &parcel, sizeof parcel) != sizeof parcel;
}

static ebb_lease *open_from_a_child(ebb_pool *pool) {
    struct ebb_parcel parcel;
    inherited = pool;
    assert_int_equal(pipe(channel), 0);
    assert_int_equal(in_a_child(send_one), 0);
    assert_int_equal(read(channel[0], &parcel, sizeof parcel), sizeof parcel);
    close(channel[0]);
    close(channel[1]);
    return ebb_parcel_open(pool, &parcel);
}

/* It is mapped once more to be written, and pinned there when a parcel of it is opened. */
static void who_read_a_slot_may_write_it_whatever_the_driver_says(void **state) {
    ebb_pool *pool = shared_pool(1);
    ebb_lease *lease = open_from_a_child(pool);
    assert_non_null(lease);
    ebb_lease_drop(lease);
    driver_fail(1, true);
    ebb_region region = OPEN(.pool = pool);
    assert_true(ebb_region_is_open(region));
    assert_int_equal(ebb_region_close(region), 0);
    driver_relent();
    assert_int_equal(driver_state().registered, 1);
    ebb_lease_drop(opened(pool, 5000, 2));
    assert_int_equal(driver_state().registered, 1);
    assert_true(pinned_bytes(pool) >= 5000);
    pool_end(pool);
    assert_driver_is_empty();
}

/* A batch goes to the device and is dropped at once; the next one comes. */
static bool arrives_whole(bool guarded) {
    enum { BYTES = 100000 };
    ebb_pool *pool = shared_pool(2), *gpu = POOL(.kind = EBB_KIND_DEVICE, .device = 1);
    ebb_region step = OPEN(.pool = gpu);
    void *images = ebb_region_alloc(step, BYTES, 256);
    unsigned char *back = malloc(BYTES);
    bool whole = true;
    assert_true(images && back);
    fake_cuda_stall(true);
    for (int round = 1; round < 20; round++) {
        ebb_lease *lease = opened(pool, BYTES, round);
        assert_int_equal(
            ebb_copy_to_device(step, images, 0, ebb_lease_root(lease, NULL), BYTES, NULL), 0);
        if (guarded)
            assert_int_equal(ebb_lease_guard(lease, 1, NULL), 0);
        ebb_lease_drop(lease);
        struct ebb_parcel next = batch(pool, BYTES, 100 + round); /* in the other slot */
        assert_int_equal(ebb_device_finish(step, NULL), 0);
        assert_int_equal(ebb_copy_from_device(step, images, 0, back, BYTES, NULL), 0);
        whole &= back[0] == round && memcmp(back, back + 1, BYTES - 1) == 0;
        assert_int_equal(ebb_parcel_discard(pool, &next), 0);
    }
    fake_cuda_stall(false);
    free(back);
    assert_int_equal(ebb_region_close(step), 0);
    pool_end(pool);
    pool_end(gpu);
    assert_driver_is_empty();
    return whole;
}

static void a_slot_that_a_device_reads_is_not_used_again(void **state) {
    assert_true(arrives_whole(true));
    assert_false(arrives_whole(false)); /* or the test would show nothing */
}

static void a_guarded_slot_is_free_when_the_device_is_done(void **state) {
    ebb_pool *pool = shared_pool(1);
    ebb_lease *lease = opened(pool, 1000, 1);
    fake_cuda_stall(true);
    assert_int_equal(ebb_lease_guard(lease, 0, NULL), 0);
    assert_int_equal(ebb_lease_guard(lease, 1, NULL), 0);
    assert_int_equal(ebb_lease_guard(lease, 0, NULL), 0); /* the same stream again */
    ebb_lease_drop(lease);
    assert_false(ebb_region_is_open(OPEN(.pool = pool)));
    assert_refused(ebb_last_error(), EBB_E_SLOTS);
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    assert_int_equal(driver_state().events, 2);
    fake_cuda_run();
    for (int round = 0; round < 5; round++) {
        lease = opened(pool, 1000, round);
        assert_int_equal(ebb_lease_guard(lease, round & 1, NULL), 0);
        fake_cuda_run();
        ebb_lease_drop(lease);
    }
    assert_int_equal(driver_state().events, 2); /* used again */
    fake_cuda_stall(false);
    pool_end(pool);
    assert_driver_is_empty();
}

/* ---- two streams of one name ---- */

enum { SIDE_BYTES = 100000 };

/* A device reads one batch by two streams. */
struct sides {
    ebb_pool *pool, *gpu;
    ebb_region steps[2];
    void *images[2];
    ebb_lease *lease;
};

static void open_sides(struct sides *sides) {
    sides->pool = shared_pool(1);
    sides->gpu = device_pool(0);
    for (int i = 0; i < 2; i++) {
        sides->steps[i] = OPEN(.pool = sides->gpu);
        sides->images[i] = ebb_region_alloc(sides->steps[i], SIDE_BYTES, 256);
        assert_non_null(sides->images[i]);
    }
    sides->lease = opened(sides->pool, SIDE_BYTES, 1);
    fake_cuda_stall(true);
}

static int copy_and_guard(const struct sides *sides, int side, void *stream) {
    int result = ebb_copy_to_device(sides->steps[side], sides->images[side], 0,
                                    ebb_lease_root(sides->lease, NULL), SIDE_BYTES, stream);
    return result ? result : ebb_lease_guard(sides->lease, 0, stream);
}

/* The second of them has done all, the first one may have done nothing so far. The slot is another
 * batch's, if it can be had. */
static void write_over(struct sides *sides) {
    ebb_lease_drop(sides->lease);
    ebb_region next = OPEN(.pool = sides->pool);
    void *block = ebb_region_is_open(next) ? ebb_region_alloc(next, SIDE_BYTES, 64) : NULL;
    if (block)
        memset(block, 2, SIDE_BYTES);
    fake_cuda_stall(false);
    fake_cuda_run();
    if (block)
        assert_int_equal(ebb_region_close(next), 0);
}

static void assert_sides_are_whole(struct sides *sides) {
    static unsigned char back[SIDE_BYTES];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ebb_copy_from_device(sides->steps[i], sides->images[i], 0, back,
                                              SIDE_BYTES, NULL), 0);
        assert_true(back[0] == 1 && memcmp(back, back + 1, SIDE_BYTES - 1) == 0);
        assert_int_equal(ebb_region_close(sides->steps[i]), 0);
    }
    pool_end(sides->pool);
    pool_end(sides->gpu);
    assert_driver_is_empty();
}

static void *read_by_the_stream_of_the_thread(void *context) {
    struct sides *sides = context;
    int result = copy_and_guard(sides, 1, FAKE_CUDA_PER_THREAD);
    if (!result)
        result = ebb_device_finish(sides->steps[1], FAKE_CUDA_PER_THREAD);
    return result ? context : NULL;
}

static void each_thread_has_a_stream_of_that_name(void **state) {
    struct sides sides;
    pthread_t thread;
    void *result;
    open_sides(&sides);
    assert_int_equal(copy_and_guard(&sides, 0, FAKE_CUDA_PER_THREAD), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_by_the_stream_of_the_thread, &sides), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_int_equal(driver_state().events, 2);
    write_over(&sides);
    assert_sides_are_whole(&sides);
}

static void a_stream_may_have_the_name_of_one_that_was_destroyed(void **state) {
    struct sides sides;
    void *streams[2];
    open_sides(&sides);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cuStreamCreate(&streams[i], 0), 0);
        assert_int_equal(copy_and_guard(&sides, i, streams[i]), 0);
        if (i == 1)
            assert_int_equal(ebb_device_finish(sides.steps[1], streams[1]), 0);
        assert_int_equal(cuStreamDestroy_v2(streams[i]), 0);
    }
    assert_ptr_equal(streams[0], streams[1]); /* or the test would show nothing */
    assert_int_equal(driver_state().events, 1);
    write_over(&sides);
    assert_sides_are_whole(&sides);
}

/* ---- what it refuses ---- */

static ebb_lease *parents_lease;

static int use_the_lease_of_the_parent(void) {
    int bad = ebb_lease_guard(parents_lease, 0, NULL) != EBB_E_STALE;
    ebb_lease_drop(parents_lease);
    return bad;
}

static void a_lease_is_found_by_its_addresses(void **state) {
    ebb_pool *pool = shared_pool(2), *other = shared_pool(1);
    ebb_lease *leases[] = {opened(pool, 1000, 1), opened(pool, 50000, 2), opened(other, 9, 3)};
    char *roots[3];
    for (int i = 0; i < 3; i++) {
        roots[i] = ebb_lease_root(leases[i], NULL);
        assert_ptr_equal(ebb_lease_of(roots[i]), leases[i]);
        assert_ptr_equal(ebb_lease_of(roots[i] + 8), leases[i]);
        ebb_lease_drop(leases[i]);
        ebb_lease_drop(leases[i]);
    }
    int local = 0;
    assert_null(ebb_lease_of(&local));
    assert_refused(ebb_last_error(), EBB_E_FOREIGN);
    assert_null(ebb_lease_of(NULL));
    fake_cuda_stall(true);
    assert_int_equal(ebb_lease_guard(leases[0], 0, NULL), 0);
    for (int i = 0; i < 3; i++) {
        ebb_lease_drop(leases[i]);
        assert_null(ebb_lease_of(roots[i])); /* dropped, or waiting for a device */
    }
    fake_cuda_stall(false);
    fake_cuda_run();
    pool_end(pool);
    pool_end(other);
    assert_driver_is_empty();
}

static void guards_are_refused_where_they_make_no_sense(void **state) {
    ebb_pool *pool = shared_pool(1);
    parents_lease = opened(pool, 1000, 1);
    assert_refused(ebb_lease_guard(NULL, 0, NULL), EBB_E_ARGUMENT);
    assert_refused(ebb_lease_guard(parents_lease, 7, NULL), EBB_E_DEVICE);
    assert_int_equal(ebb_lease_guard(parents_lease, 0, NULL), 0);
    assert_int_equal(in_a_child(use_the_lease_of_the_parent), 0);
    ebb_lease_drop(parents_lease);
    fake_cuda_run();
    pool_end(pool);
    assert_driver_is_empty();
}

static int work(void) {
    for (int i = 1; i <= 30; i++) {
        struct ebb_parcel parcel;
        ebb_region region = OPEN(.pool = inherited);
        void *block = ebb_region_alloc(region, 50000, 64);
        if (!block)
            return 1;
        memset(block, i, 50000);
        if (ebb_region_send(region, block, &parcel) != 0 ||
            write(channel[1], &parcel, sizeof parcel) != sizeof parcel)
            return 2;
    }
    return ebb_pool_pinning(inherited, NULL) != EBB_PINNING_NONE;
}

static void workers_never_call_the_driver(void **state) {
    inherited = shared_pool(64);
    ebb_lease_drop(opened(inherited, 1000, 1)); /* the driver runs before they start */
    assert_int_equal(pipe(channel), 0);
    assert_int_equal(in_a_child(work), 0);
    for (int i = 1; i <= 30; i++) {
        struct ebb_parcel parcel;
        assert_int_equal(read(channel[0], &parcel, sizeof parcel), sizeof parcel);
        ebb_lease *lease = ebb_parcel_open(inherited, &parcel);
        assert_non_null(lease);
        unsigned char *bytes = ebb_lease_root(lease, NULL);
        assert_true(bytes[0] == i && memcmp(bytes, bytes + 1, 49999) == 0);
        ebb_lease_drop(lease);
    }
    assert_true(pinned_bytes(inherited) > 0);
    close(channel[0]);
    close(channel[1]);
    pool_end(inherited);
    assert_driver_is_empty();
}

static int refuse_lock(void *addr, size_t bytes) {
    return ENOMEM;
}

static int open_what_it_sent(void) {
    os.lock = refuse_lock;
    struct ebb_parcel parcel = batch(inherited, 50000, 3);
    ebb_lease *lease = ebb_parcel_open(inherited, &parcel);
    if (!lease || *(unsigned char *)ebb_lease_root(lease, NULL) != 3)
        return 1;
    ebb_lease_drop(lease);
    return ebb_pool_pinning(inherited, NULL) != EBB_PINNING_NONE;
}

static int guard_in_vain(void) {
    ebb_lease *lease = opened(inherited, 1000, 1);
    assert_refused(ebb_lease_guard(lease, 0, NULL), EBB_E_DEVICE);
    assert_text_names("fork of a process where the CUDA driver runs");
    assert_refused(ebb_lease_guard(lease, 0, NULL), EBB_E_DEVICE);
    ebb_lease_drop(lease);
    return 0;
}

/* As a loader inside of its dataset does. No device reads that. */
static void a_worker_pins_nothing_of_what_it_opens(void **state) {
    inherited = shared_pool(4);
    ebb_lease_drop(opened(inherited, 1000, 1));
    assert_int_equal(in_a_child(open_what_it_sent), 0);
    pool_end(inherited);
    assert_driver_is_empty();
}

/* Nobody knows that it runs here but who started it. */
static int work_where_another_library_started_the_driver(void) {
    setenv("FAKE_CUDA_ASKED", "1", 1);
    inherited = shared_pool(4);
    return cuInit(0) != 0 || in_a_child(open_what_it_sent) != 0 || in_a_child(guard_in_vain) != 0 ||
           driver_state().registered != 0;
}

static void a_worker_pins_nothing_whoever_started_the_driver(void **state) {
    assert_int_equal(in_a_child(work_where_another_library_started_the_driver), 0);
}

/* Batches of growing size are opened, guarded, dropped; what fails is done again. */
static unsigned live(unsigned nth) {
    unsigned refusals = 0;
    ebb_pool *pool = shared_pool(2);
    driver_fail(nth, nth % 2 == 0);
    for (size_t i = 1; i < 8; i++) {
        struct ebb_parcel parcel = batch(pool, i * 300 * KIB, (int)i);
        ebb_lease *lease;
        while (!(lease = ebb_parcel_open(pool, &parcel))) {
            assert_int_equal(ebb_last_error(), EBB_E_DEVICE);
            refusals += driver_relent();
        }
        const unsigned char *bytes = ebb_lease_root(lease, NULL);
        assert_true(bytes[0] == i && memcmp(bytes, bytes + 1, i * 300 * KIB - 1) == 0);
        for (int again = 0; again < 2; again++)
            while (ebb_lease_guard(lease, (int)i & 1, NULL) != 0)
                refusals += driver_relent();
        fake_cuda_run();
        ebb_lease_drop(lease); /* a query that fails keeps the slot until it is asked again */
    }
    while (ebb_pool_destroy(pool) != 0)
        refusals += driver_relent();
    return refusals + driver_relent();
}

static void each_call_that_fails_leaves_the_parcel_good(void **state) {
    unsigned nth = 1;
    for (; live(nth) != 0; nth++)
        assert_driver_is_empty();
    assert_true(nth > 60);
    assert_driver_is_empty();
}

static int open_while_the_driver_starts(void) {
    alarm(100);
    ebb_pool *pool = shared_pool(1);
    ebb_lease_drop(opened(pool, 1000, 1));
    return ebb_pool_pinning(pool, NULL) != EBB_PINNING_REGISTERED || ebb_pool_destroy(pool) != 0;
}

static int guard_while_the_driver_starts(void) {
    alarm(100);
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 64 * MIB);
    ebb_lease *lease = opened(pool, 1000, 1);
    int result = ebb_lease_guard(lease, 0, NULL);
    ebb_lease_drop(lease);
    return result != 0 || ebb_pool_destroy(pool) != 0;
}

/* Forks wait for all locks: none may be held then. */
static void a_driver_may_fork_while_it_starts(void **state) {
    setenv("FAKE_CUDA_FORK", "1", 1);
    int opening = in_a_child(open_while_the_driver_starts);
    int guarding = in_a_child(guard_while_the_driver_starts);
    unsetenv("FAKE_CUDA_FORK");
    assert_int_equal(opening, 0);
    assert_int_equal(guarding, 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_may_fork_while_it_starts), /* before it started here */
        cmocka_unit_test(a_worker_pins_nothing_whoever_started_the_driver), /* likewise */
        cmocka_unit_test(the_consumer_pins_each_slot_once),
        cmocka_unit_test(a_slot_that_grew_is_pinned_anew),
        cmocka_unit_test(a_slot_that_was_trimmed_is_pinned_anew),
        cmocka_unit_test(what_others_have_trimmed_is_pinned_until_a_trim_here),
        cmocka_unit_test(who_read_a_slot_may_write_it_whatever_the_driver_says),
        cmocka_unit_test(a_slot_that_a_device_reads_is_not_used_again),
        cmocka_unit_test(a_guarded_slot_is_free_when_the_device_is_done),
        cmocka_unit_test(a_lease_is_found_by_its_addresses),
        cmocka_unit_test(guards_are_refused_where_they_make_no_sense),
        cmocka_unit_test(each_thread_has_a_stream_of_that_name),
        cmocka_unit_test(a_stream_may_have_the_name_of_one_that_was_destroyed),
        cmocka_unit_test(workers_never_call_the_driver),
        cmocka_unit_test(a_worker_pins_nothing_of_what_it_opens),
        cmocka_unit_test(each_call_that_fails_leaves_the_parcel_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
