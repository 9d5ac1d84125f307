// SPDX-License-Identifier: Apache-2.0
/*
 * locked.c - pinned memory where there is no driver: pages are locked, and the kernel says so; a
 * limit that is too low is named with its numbers; memory of a device is refused.
 *
 * Sanitizers make mlock() do nothing: what the kernel says is left out then.
 */
#include "kit/test.h"

#include "base/os.h"
#include "pool/shared.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t kernel_locked(void) {
    char line[128];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmLck: %zu kB", &kib) == 1)
            break;
    fclose(file);
    return kib * KIB;
}

static size_t locked_bytes(ebb_pool *pool) {
    size_t bytes;
    assert_int_equal(ebb_pool_pinning(pool, &bytes), EBB_PINNING_LOCKED);
    assert_int_equal(ebb_check_pool(pool), 0);
    return bytes;
}

/* Sanitizers, or a limit of this machine. */
static bool kernel_locks(void) {
    size_t before = kernel_locked();
    void *pages = os_pages(1 * MIB);
    assert_non_null(pages);
    bool locks = os.lock(pages, 1 * MIB) == 0 && kernel_locked() == before + 1 * MIB;
    os.unlock(pages, 1 * MIB);
    os.release(pages, 1 * MIB);
    return locks;
}

static void pages_are_locked_as_long_as_the_pool_has_them(void **state) {
    bool kernel = kernel_locks();
    size_t before = kernel_locked();
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED);
    assert_non_null(pool);
    assert_int_equal(locked_bytes(pool), 0);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 1 * MIB, 64);
    block_of(region, 100, 16);
    assert_int_equal(locked_bytes(pool), 2 * MIB);
    assert_true(!kernel || kernel_locked() == before + 2 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(ebb_pool_trim(pool, 0), 2 * MIB);
    assert_int_equal(locked_bytes(pool), 0);
    assert_int_equal(kernel_locked(), before);
    region = OPEN(.pool = pool);
    block_of(region, 1 * MIB, 64);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
    assert_int_equal(kernel_locked(), before);
}

static void assert_child_passes(int (*body)(void)) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body());
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A child without rights, which may lock so much. */
static bool limit_locks(size_t bytes) {
    struct rlimit limit = {bytes, bytes};
    return setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && (getuid() != 0 || setuid(65534) == 0);
}

static int run_into_the_limit(void) {
    if (!limit_locks(3 * MIB))
        return 2;
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_PINNED));
    ebb_region region = OPEN(.pool = pool);
    void *fits = ebb_region_alloc(region, 100, 16);
    if (!fits)
        return 3;
    struct ebb_region_stats before = {.size = sizeof before}, after = before;
    int bad = ebb_region_read_stats(region, &before);
    bad |= ebb_region_alloc(region, 9 * MIB, 64) != NULL || ebb_last_error() != EBB_E_MEMORY;
    const char *text = ebb_last_error_text();
    bad |= !strstr(text, "10485760 bytes of pages cannot be locked");
    bad |= !strstr(text, "RLIMIT_MEMLOCK is 3145728 bytes");
    bad |= !strstr(text, "have locked 2097152");
    bad |= ebb_region_read_stats(region, &after);
    bad |= memcmp(&before, &after, sizeof before) != 0 || ebb_check_pool(pool) != 0;
    if (bad)
        fprintf(stderr, "%s\n", text);
    return bad | (ebb_region_close(region) != 0) | (ebb_pool_destroy(pool) != 0);
}

static void a_limit_that_is_too_low_is_named(void **state) {
    if (!kernel_locks())
        return; /* said above */
    assert_child_passes(run_into_the_limit);
}

/* Of 8 MiB 2 are in use and 2 are cached: neither these nor the others are enough alone. */
static int need_what_is_cached(void) {
    if (!limit_locks(8 * MIB))
        return 2;
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .keep_all = true);
    ebb_region first = OPEN(.pool = pool), cached = OPEN(.pool = pool), region = OPEN(.pool = pool);
    if (!ebb_region_alloc(first, 1 * MIB, 64) || !ebb_region_alloc(cached, 1900 * KIB, 64))
        return 3;
    int bad = ebb_region_close(cached) != 0 || locked_bytes(pool) != 4 * MIB;
    bad |= ebb_region_alloc(region, 7 * MIB, 64) != NULL || locked_bytes(pool) != 4 * MIB;
    return bad | (!ebb_region_alloc(region, 5 * MIB, 64) || locked_bytes(pool) != 8 * MIB);
}

static void cached_slabs_make_room_for_others_to_be_locked(void **state) {
    if (kernel_locks())
        assert_child_passes(need_what_is_cached);
}

/* 2 MiB are cached; the pool's limit leaves 4 without them, that on locked pages 3. */
static int keep_what_is_cached(void) {
    if (!limit_locks(3 * MIB))
        return 2;
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .limit_reserved_bytes = 4 * MIB);
    ebb_region cached = OPEN(.pool = pool), region = OPEN(.pool = pool);
    if (!ebb_region_alloc(cached, 1 * MIB, 64) || ebb_region_close(cached) != 0)
        return 3;
    int bad = ebb_region_alloc(region, 3 * MIB, 64) != NULL;
    bad |= !strstr(ebb_last_error_text(), "4194304 bytes of pages cannot be locked");
    return bad | (locked_bytes(pool) != 2 * MIB || pool_stats_of(pool).given_back != 0);
}

static void cached_slabs_stay_where_too_few_can_be_locked_without_them(void **state) {
    if (kernel_locks())
        assert_child_passes(keep_what_is_cached);
}

/* Pages that are closed cannot be touched, and so not be locked. */
static void what_cannot_be_locked_is_not_said_to_be(void **state) {
    bool kernel = kernel_locks();
    size_t before = kernel_locked();
    void *closed = os.reserve(1 * MIB);
    assert_non_null(closed);
    assert_true(!kernel || os.lock(closed, 1 * MIB) != 0);
    assert_int_equal(kernel_locked(), before);
    os.release(closed, 1 * MIB);
}

static struct os_table real;
static unsigned asked, refuse_nth;
static size_t locked;

static int lock(void *addr, size_t bytes) {
    if (++asked == refuse_nth)
        return EAGAIN;
    locked += bytes;
    return real.lock(addr, bytes);
}

static void unlock(void *addr, size_t bytes) {
    locked -= bytes;
    real.unlock(addr, bytes);
}

static void each_lock_that_fails_leaves_what_there_was(void **state) {
    real = os;
    os.lock = lock;
    os.unlock = unlock;
    for (refuse_nth = 1; asked = 0, refuse_nth < 5; refuse_nth++) {
        ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED);
        ebb_region region = OPEN(.pool = pool);
        for (int i = 0; i < 6; i++) {
            void *block = ebb_region_alloc(region, 400 * KIB, 64);
            if (!block) {
                assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
                assert_int_equal(locked_bytes(pool), locked);
                block = ebb_region_alloc(region, 400 * KIB, 64);
            }
            memset(block, 1, 400 * KIB);
        }
        assert_int_equal(locked_bytes(pool), locked);
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
        assert_int_equal(locked, 0);
    }
    os = real;
}

static int lock_all(void *addr, size_t bytes) {
    return 0;
}

/* As root may: then they make room under the pool's limit all the same. */
static int lock_more_than_the_limit_says(void) {
    struct rlimit limit = {3 * MIB, 3 * MIB};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return 2;
    os.lock = lock_all;
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED, .limit_reserved_bytes = 4 * MIB);
    ebb_region cached = OPEN(.pool = pool), region = OPEN(.pool = pool);
    if (!ebb_region_alloc(cached, 1 * MIB, 64) || ebb_region_close(cached) != 0)
        return 3;
    int bad = !ebb_region_alloc(region, 3 * MIB, 64) || locked_bytes(pool) != 4 * MIB;
    return bad | (pool_stats_of(pool).reserved.peak != 4 * MIB);
}

static void who_may_lock_more_is_not_refused(void **state) {
    assert_child_passes(lock_more_than_the_limit_says);
}

static void what_a_consumer_opens_is_locked(void **state) {
    bool kernel = kernel_locks();
    size_t before = kernel_locked();
    struct ebb_parcel parcel;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED | EBB_KIND_PINNED, .slots = 1);
    assert_non_null(pool);
    ebb_region region = OPEN(.pool = pool);
    void *block = block_of(region, 100000, 64);
    assert_int_equal(ebb_region_send(region, block, &parcel), 0);
    assert_int_equal(kernel_locked(), before);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_non_null(lease);
    size_t bytes = locked_bytes(pool);
    assert_true(bytes >= 100000);
    assert_true(!kernel || kernel_locked() == before + bytes);
    assert_refused(ebb_lease_guard(lease, 0, NULL), EBB_E_DEVICE);
    ebb_lease_drop(lease);
    pool_end(pool);
    assert_int_equal(kernel_locked(), before);
}

static int lock_nothing(void *addr, size_t bytes) {
    return EAGAIN;
}

/* What a child is told of a lock that fails. */
static int find_nothing_locked(void) {
    os.lock = lock_nothing;
    ebb_region region = OPEN(.pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_PINNED)));
    bool failed = !ebb_region_alloc(region, 100, 16) && ebb_last_error() == EBB_E_MEMORY;
    bool said = strstr(ebb_last_error_text(), "of this process have locked 0 (") != NULL;
    if (!said)
        fprintf(stderr, "%s\n", ebb_last_error_text());
    return !failed || !said;
}

static void what_a_consumer_locked_its_child_did_not(void **state) {
    struct ebb_parcel parcel;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED | EBB_KIND_PINNED, .slots = 1);
    ebb_region region = OPEN(.pool = pool);
    assert_int_equal(ebb_region_send(region, block_of(region, 100000, 64), &parcel), 0);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_non_null(lease);
    assert_child_passes(find_nothing_locked);
    ebb_lease_drop(lease);
    pool_end(pool);
}

static ebb_pool *inherited;
static ebb_region inherited_region;

/* Locks more, and ends all: what the parent has locked is none of what it unlocks. */
static int lock_in_the_child(void) {
    size_t bytes;
    real = os;
    os.lock = lock;
    os.unlock = unlock;
    asked = refuse_nth = 0;
    locked = 0;
    int bad = ebb_pool_pinning(inherited, &bytes) != EBB_PINNING_LOCKED || bytes != 0;
    ebb_region own = OPEN(.pool = inherited);
    bad |= !ebb_region_alloc(own, 3 * MIB, 64) || locked != 4 * MIB;
    bad |= ebb_pool_pinning(inherited, &bytes) != EBB_PINNING_LOCKED || bytes != locked;
    bad |= ebb_region_close(own) != 0 || ebb_region_close(inherited_region) != 0;
    bad |= ebb_pool_trim(inherited, 0) == 0 || locked != 0;
    bad |= ebb_pool_destroy(inherited) != 0;
    os = real;
    return bad | find_nothing_locked();
}

static void what_a_pool_locked_its_child_did_not(void **state) {
    bool kernel = kernel_locks();
    size_t before = kernel_locked();
    inherited = POOL(.kind = EBB_KIND_PINNED);
    inherited_region = OPEN(.pool = inherited);
    block_of(inherited_region, 1 * MIB, 64);
    assert_child_passes(lock_in_the_child);
    assert_int_equal(locked_bytes(inherited), 2 * MIB);
    assert_true(!kernel || kernel_locked() == before + 2 * MIB);
    assert_int_equal(ebb_region_close(inherited_region), 0);
    pool_end(inherited);
    assert_int_equal(kernel_locked(), before);
}

static int lock_little(void *addr, size_t bytes) {
    return bytes > 200000 ? ENOMEM : real.lock(addr, bytes);
}

/* A small parcel in a slot with many pages: all of them are too many, its own are not. */
static void what_was_sent_is_locked_at_least(void **state) {
    struct ebb_parcel parcel;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED | EBB_KIND_PINNED, .slots = 1);
    real = os;
    os.lock = lock_little;
    for (size_t bytes = 4 * MIB; bytes > 1000; bytes /= 8) {
        ebb_region region = OPEN(.pool = pool);
        void *block = block_of(region, bytes, 64);
        assert_int_equal(ebb_region_send(region, block, &parcel), 0);
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        if (bytes > 200000) {
            assert_null(lease);
            assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
            assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
            continue;
        }
        assert_non_null(lease);
        assert_in_range(locked_bytes(pool), bytes, 200000);
        ebb_lease_drop(lease);
    }
    os = real;
    pool_end(pool);
}

/* A number in the file that is damaged. */
static void what_the_file_does_not_have_is_not_locked(void **state) {
    struct ebb_parcel parcel;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED | EBB_KIND_PINNED, .slots = 1);
    ebb_region region = OPEN(.pool = pool);
    assert_int_equal(ebb_region_send(region, block_of(region, 100000, 64), &parcel), 0);
    size_t backed = atomic_load(&pool->shared->control->records[0].backed);
    atomic_store(&pool->shared->control->records[0].backed, pool->shared->slot_bytes);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_non_null(lease);
    assert_int_equal(locked_bytes(pool), backed);
    ebb_lease_drop(lease);
    pool_end(pool);
}

static void memory_of_a_device_needs_a_driver(void **state) {
    assert_null(POOL(.kind = EBB_KIND_DEVICE));
    assert_refused(ebb_last_error(), EBB_E_DEVICE);
    assert_text_names("no CUDA driver");
    assert_text_names(getenv("EBB_CUDA_LIBRARY"));
}

/* It has no memory either. */
static void a_measuring_region_takes_no_releases_of_others(void **state) {
    ebb_region region = OPEN(.measure = true);
    void *block = ebb_region_alloc(region, 100, 16);
    assert_non_null(block);
    assert_refused(ebb_region_release_remote(region, block), EBB_E_MEASURING);
    assert_int_equal(ebb_region_release(region, block), 0);
    assert_int_equal(ebb_region_close(region), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_locked_as_long_as_the_pool_has_them),
        cmocka_unit_test(a_limit_that_is_too_low_is_named),
        cmocka_unit_test(cached_slabs_make_room_for_others_to_be_locked),
        cmocka_unit_test(cached_slabs_stay_where_too_few_can_be_locked_without_them),
        cmocka_unit_test(who_may_lock_more_is_not_refused),
        cmocka_unit_test(what_cannot_be_locked_is_not_said_to_be),
        cmocka_unit_test(each_lock_that_fails_leaves_what_there_was),
        cmocka_unit_test(what_a_consumer_opens_is_locked),
        cmocka_unit_test(what_a_consumer_locked_its_child_did_not),
        cmocka_unit_test(what_a_pool_locked_its_child_did_not),
        cmocka_unit_test(what_was_sent_is_locked_at_least),
        cmocka_unit_test(what_the_file_does_not_have_is_not_locked),
        cmocka_unit_test(memory_of_a_device_needs_a_driver),
        cmocka_unit_test(a_measuring_region_takes_no_releases_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
