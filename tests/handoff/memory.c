// SPDX-License-Identifier: Apache-2.0
/* memory.c - what shared pools cost the system: a steady loop nothing, a full system an error. */
#include "base/os.h"
#include "handoff/duo.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"
#include "pool/shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (64 * MIB)

/* ---- the system says no ---- */

static struct os_table real;
static size_t room; /* bytes of files that the system still has */

static int back_little(int fd, size_t offset, size_t bytes) {
    if (bytes > room)
        return ENOSPC;
    room -= bytes;
    return real.file_back(fd, offset, bytes);
}

static void a_full_system_is_an_error(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    real = os;
    room = 3 * MIB;
    os.file_back = back_little;
    ebb_region region = OPEN(.pool = pool);
    void *block = block_of(region, 2 * MIB, 64);
    struct ebb_region_stats before = stats_of(region);
    assert_no_block(ebb_region_alloc(region, 2 * MIB, 64), EBB_E_NO_SPACE);
    assert_text_names("error 28");
    struct ebb_region_stats after = stats_of(region);
    assert_memory_equal(&before, &after, sizeof before);
    ebb_region hinted = OPEN(.pool = pool, .hint_bytes = 5 * MIB);
    assert_false(ebb_region_is_open(hinted));
    assert_int_equal(ebb_last_error(), EBB_E_NO_SPACE);
    block_of(region, 200000, 64); /* what there is can be had */
    os.file_back = real.file_back;
    block_of(region, 20 * MIB, 64);
    assert_true(pattern_holds(block, 2 * MIB, (unsigned)(2 * MIB)));
    assert_int_equal(ebb_region_close(region), 0);
    room = 0;
    os.file_back = back_little;
    assert_no_block(POOL(.kind = EBB_KIND_SHARED), EBB_E_NO_SPACE);
    os = real;
    pool_end(pool);
}

/* A region of megabytes would grow by hundreds of KiB. */
static void the_last_pages_of_the_system_can_be_had(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    for (int i = 0; i < 100; i++)
        block_of(region, 64 * KIB, 64);
    real = os;
    room = 64 * KIB;
    os.file_back = back_little;
    while (ebb_region_alloc(region, PAGE, 64))
        assert_true(room % PAGE == 0);
    assert_int_equal(ebb_last_error(), EBB_E_NO_SPACE);
    assert_int_equal(room, 0);
    os = real;
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

static int populate_nothing(void *addr, size_t bytes) {
    return ENOMEM;
}

/* Pages that somebody said are there are not: who opens learns it before he touches them. */
static void pages_that_are_missing_are_an_error(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    ebb_pool *again = ebb_pool_attach(ebb_pool_descriptor(pool), NULL);
    assert_non_null(again);
    real = os;
    os.populate = populate_nothing;
    assert_null(ebb_parcel_open(again, &parcel));
    assert_int_equal(ebb_last_error(), EBB_E_NO_SPACE);
    os = real;
    ebb_lease *lease = ebb_parcel_open(again, &parcel); /* as good as it was */
    assert_true(lease_holds(lease, 5000, 1));
    ebb_lease_drop(lease);
    assert_int_equal(ebb_pool_destroy(again), 0);
    pool_end(pool);
}

/* ---- a steady loop ---- */

static unsigned calls;

static int count_back(int fd, size_t offset, size_t bytes) {
    calls++;
    return real.file_back(fd, offset, bytes);
}

static int count_map(int fd, size_t offset, void *addr, size_t bytes) {
    calls++;
    return real.file_map(fd, offset, addr, bytes);
}

static int count_populate(void *addr, size_t bytes) {
    calls++;
    return real.populate(addr, bytes);
}

static int count_lock(int fd, size_t byte, bool *locked) {
    calls++;
    return real.file_is_locked(fd, byte, locked);
}

static void count_wake(const void *word) {
    calls++;
    real.wake(word);
}

static void count_calls(void) {
    real = os;
    calls = 0;
    os.file_back = count_back;
    os.file_map = count_map;
    os.populate = count_populate;
    os.file_is_locked = count_lock;
    os.wake = count_wake;
}

static unsigned count_descriptors(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void loop(ebb_pool *pool, unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        ebb_region region = OPEN(.pool = pool);
        size_t bytes = 10 * MIB - (i % 7) * 100000;
        char *block = ebb_region_alloc(region, bytes, 256);
        memset(block, (int)i, bytes);
        struct ebb_parcel parcel;
        assert_int_equal(ebb_region_send(region, block, &parcel), 0);
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        DLManagedTensor *tensor =
            ebb_lease_export(lease, parcel.root, bytes8, 1, &(int64_t){(int64_t)bytes}, NULL);
        ebb_lease_drop(lease);
        assert_int_equal(((char *)tensor->dl_tensor.data)[bytes - 1], (char)i);
        give_back(tensor);
    }
}

static void a_steady_loop_asks_nothing_of_the_system(void **state) {
    ebb_pool *pool = shared_pool(8, SLOT_BYTES);
    loop(pool, 20);
    unsigned descriptors = count_descriptors();
    long before = faults();
    count_calls();
    loop(pool, 100);
    os = real;
    assert_int_equal(calls, 0);
    assert_in_range(faults() - before, 0, 1000); /* a batch has 2500 pages; sanitizers have some */
    assert_int_equal(count_descriptors(), descriptors);
    pool_end(pool);
}

/* ---- pages go back ---- */

static size_t file_bytes(ebb_pool *pool) {
    struct stat stat;
    assert_int_equal(fstat(ebb_pool_descriptor(pool), &stat), 0);
    return (size_t)stat.st_blocks * 512;
}

static void a_trim_gives_pages_back(void **state) {
    ebb_pool *pool = shared_pool(4, SLOT_BYTES);
    struct ebb_parcel parcels[3];
    for (unsigned i = 0; i < 3; i++)
        parcels[i] = send_pattern(pool, 10 * MIB, i);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ebb_parcel_discard(pool, &parcels[i]), 0);
    size_t before = file_bytes(pool), remaining;
    assert_true(before >= 30 * MIB);
    assert_in_range(ebb_pool_trim(pool, 15 * MIB), 10 * MIB, 12 * MIB);
    assert_in_range(before - file_bytes(pool), 10 * MIB, 12 * MIB);
    assert_in_range(ebb_pool_trim_within(pool, 0, 1000000000, &remaining), 10 * MIB, 12 * MIB);
    assert_int_equal(remaining, 0);
    assert_in_range(file_bytes(pool), 10 * MIB, 12 * MIB); /* that was sent, and is untouched */
    assert_int_equal(ebb_pool_trim(pool, 0), 0);
    struct ebb_pool_stats stats = pool_stats_of(pool);
    assert_in_range(stats.cached, 10 * MIB, 12 * MIB); /* sent, but as cached here as ever */
    assert_int_equal(stats.reserved.current, stats.cached);
    assert_in_range(stats.given_back, 20 * MIB, 24 * MIB);
    ebb_check_pool(pool);
    ebb_lease *lease = ebb_parcel_open(pool, &parcels[2]);
    assert_true(lease_holds(lease, 10 * MIB, 2));
    ebb_lease_drop(lease);
    for (unsigned i = 0; i < 4; i++)
        parcels[i % 3] = send_pattern(pool, 9 * MIB, i); /* trimmed slots serve again */
    pool_end(pool);
}

/* What one process trimmed another one finds gone, and allocates again. */
static void trims_of_others_are_noticed(void **state) {
    ebb_pool *here = shared_pool(1, SLOT_BYTES);
    ebb_pool *there = ebb_pool_attach(ebb_pool_descriptor(here), NULL);
    for (unsigned round = 0; round < 5; round++) {
        struct ebb_parcel parcel = send_pattern(here, 5 * MIB, round);
        ebb_lease *lease = ebb_parcel_open(there, &parcel);
        assert_true(lease_holds(lease, 5 * MIB, round));
        assert_int_equal(ebb_pool_trim(here, 0), 0); /* held */
        ebb_lease_drop(lease);
        assert_in_range(ebb_pool_trim(there, 0), 5 * MIB, 6 * MIB);
        assert_in_range(file_bytes(here), 0, 32 * 1024);
    }
    assert_int_equal(ebb_pool_destroy(there), 0);
    pool_end(here);
}

/* Every byte of a block has its page in the file before anybody touches it. */
/* What another process has backed is an increase by no more than that. */
static void pages_that_others_added_are_counted_once(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_pool *other = ebb_pool_attach(ebb_pool_descriptor(pool), NULL);
    struct ebb_meter seen = {0};
    for (size_t bytes = 1 * MIB; bytes <= 16 * MIB; bytes *= 2) {
        ebb_region theirs = OPEN(.pool = other);
        block_of(theirs, bytes, 64);
        assert_int_equal(ebb_region_close(theirs), 0);
        ebb_region ours = OPEN(.pool = pool);
        struct ebb_meter now = pool_stats_of(pool).reserved;
        assert_in_range(now.current, seen.current + 1, SLOT_BYTES);
        assert_int_equal(now.total - seen.total, now.current - seen.current);
        assert_int_equal(ebb_region_close(ours), 0);
        seen = now;
    }
    pool_end(other);
    pool_end(pool);
}

static void what_is_allocated_is_backed(void **state) {
    ebb_pool *pool = shared_pool(3, SLOT_BYTES);
    for (unsigned round = 0; round < 6; round++) {
        ebb_region region = OPEN(.pool = pool), child = OPEN(.parent = region);
        size_t backed = 0;
        for (unsigned i = 0; i < 60; i++) {
            size_t bytes = 1 + (i * 7919 + round * 104729) % 300000;
            ebb_region host = i % 3 ? region : child;
            void *block = ebb_region_alloc(host, bytes, 64);
            assert_non_null(block);
            backed = backed > ebb_region_offset(host, block) + bytes
                         ? backed
                         : ebb_region_offset(host, block) + bytes;
            assert_in_range(file_bytes(pool), pool->shared->control_bytes + backed, SIZE_MAX);
            if (i % 4 == 1)
                assert_int_equal(ebb_region_release(host, block), 0);
        }
        if (round % 2)
            assert_int_equal(ebb_region_close(child), 0);
        assert_int_equal(ebb_region_close(region), 0);
        if (round == 3)
            ebb_pool_trim(pool, 0);
    }
    pool_end(pool);
    for (size_t pages = 1; pages < 40; pages++) { /* to the last byte of what was reserved */
        pool = shared_pool(1, SLOT_BYTES);
        ebb_region region = OPEN(.pool = pool, .hint_bytes = pages * PAGE);
        assert_non_null(ebb_region_alloc(region, pages * PAGE, 64));
        assert_int_equal(file_bytes(pool), pool->shared->control_bytes + pages * PAGE);
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
    }
}

/* A slot that cannot be made ready does not stand in the way of one that can. */
static void a_slot_that_cannot_serve_is_not_preferred(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES), *others[1024];
    ebb_region region = OPEN(.pool = pool);
    unsigned count = 0;
    while (count < 1024 && (others[count] = POOL(.name = "other")))
        count++;
    for (unsigned round = 0; round < 3; round++) {
        assert_false(ebb_region_is_open(OPEN(.pool = pool)));
        assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
        assert_states(pool, 1, 0, 0);
        assert_int_equal(ebb_region_close(region), 0);
        region = OPEN(.pool = pool);
        assert_true(ebb_region_is_open(region));
    }
    while (count)
        assert_int_equal(ebb_pool_destroy(others[--count]), 0);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

static int want_large_file(void) {
    const struct rlimit small = {MIB, MIB};
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel;
    return setrlimit(RLIMIT_FSIZE, &small) != 0 || POOL(.kind = EBB_KIND_SHARED) ||
           ebb_last_error() != EBB_E_MEMORY ||
           !strstr(ebb_last_error_text(), "RLIMIT_FSIZE (ulimit -f) allows 1048576;") ||
           !try_send(pool, 10 * MIB, 1, &parcel) ||
           !ebb_pool_attach(ebb_pool_descriptor(pool), NULL);
}

/* Not a signal; what is there can be used. */
static void a_limit_of_files_is_an_error(void **state) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(want_large_file());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int use_without_standard_files(void) {
    struct ebb_parcel parcel;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 2, .slot_bytes = SLOT_BYTES);
    if (!pool || !try_send(pool, 5000, 1, &parcel))
        return 1;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 2;
    return ebb_pool_destroy(pool) != 0;
}

/* A program prints to them, whatever they are. */
static void standard_files_are_none_of_a_pool(void **state) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_without_standard_files());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- exports and slots ---- */

static void an_export_keeps_the_slot_of_its_region(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    DLManagedTensor *managed = share(tensor_of_bytes(region, 100000));
    struct ebb_parcel parcel;
    assert_refused(ebb_region_send(region, NULL, &parcel), EBB_E_BUSY);
    assert_text_names("1 exports");
    assert_true(ebb_region_is_open(region));
    assert_int_equal(ebb_region_close(region), 0);
    assert_states(pool, 1, 0, 0);
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    ebb_region none = OPEN(.pool = pool);
    assert_false(ebb_region_is_open(none));
    assert_true(export_holds(managed));
    give_back(managed);
    none = OPEN(.pool = pool);
    assert_true(ebb_region_is_open(none));
    assert_int_equal(ebb_region_close(none), 0);
    pool_end(pool);
}

/* The elements of a tensor that came from elsewhere lie where its head does, whether they are a
 * block of their own, as they are where it was sent from, or not: no slot keeps them. */
static void what_lies_in_no_slot_is_exported_by_copy(void **state) {
    for (int apart = 0; apart < 2; apart++) {
        ebb_pool *pool = shared_pool(1, SLOT_BYTES);
        ebb_region region = OPEN(.pool = pool), host = OPEN(.name = "host");
        struct ebb_tensor *tensor = tensor_of_bytes(apart ? region : host, 100000);
        tensor = ebb_object_move(ebb_object_move(tensor, host), region);
        assert_non_null(tensor);
        assert_null(ebb_tensor_export(tensor, EBB_EXCHANGE_SHARE));
        assert_refused(ebb_last_error(), EBB_E_EXCHANGE);
        assert_text_names("no slot");
        DLManagedTensor *managed = ebb_tensor_export(tensor, EBB_EXCHANGE_IF_NEEDED);
        assert_non_null(managed);
        assert_ptr_not_equal(managed->dl_tensor.data, tensor->data);
        assert_int_equal(ebb_check_pool(pool), 0);
        assert_int_equal(ebb_region_close(region), 0);
        assert_states(pool, 1, 0, 0);
        assert_true(export_holds(managed));
        give_back(managed);
        assert_int_equal(ebb_region_close(host), 0);
        assert_int_equal(ebb_pool_reclaim(pool, false), 0); /* settles what lingered */
        assert_states(pool, 0, 0, 0);
        pool_end(pool);
    }
}

struct late {
    struct ebb_cleanup cleanup;
    struct ebb_tensor *tensor;
    DLManagedTensor *managed;
};

static int export_late(void *data) {
    struct late *late = data;
    late->managed = ebb_tensor_export(late->tensor, EBB_EXCHANGE_SHARE);
    return late->managed ? 0 : -1;
}

/* A cleanup lets something out while the region is on its way: it is not sent. */
static void a_late_export_keeps_the_slot(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    struct late late = {.cleanup = {.run = export_late, .data = &late},
                        .tensor = tensor_of_bytes(region, 100000)};
    struct ebb_parcel parcel;
    assert_int_equal(ebb_cleanup_add(region, &late.cleanup), 0);
    assert_refused(ebb_region_send(region, NULL, &parcel), EBB_E_BUSY);
    assert_false(ebb_region_is_open(region));
    assert_states(pool, 1, 0, 0);
    assert_true(export_holds(late.managed));
    give_back(late.managed);
    assert_int_equal(ebb_pool_reclaim(pool, false), 0); /* settles what lingered */
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void misuse_is_refused(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root), host = OPEN(.name = "host");
    void *block = block_of(host, 5000, 64), *mine = block_of(root, 5000, 64);
    struct ebb_parcel parcel;
    assert_refused(ebb_region_send(host, NULL, &parcel), EBB_E_KIND);
    assert_refused(ebb_region_send(child, NULL, &parcel), EBB_E_ARGUMENT);
    assert_refused(ebb_region_send(root, NULL, NULL), EBB_E_ARGUMENT);
    assert_refused(ebb_region_send(root, block, &parcel), EBB_E_FOREIGN);
    assert_refused(ebb_region_send(root, (char *)mine + 64, &parcel), EBB_E_INTERIOR);
    assert_int_equal(ebb_region_offset(root, block), SIZE_MAX);
    assert_int_equal(ebb_last_error(), EBB_E_FOREIGN);
    assert_int_equal(ebb_region_offset(host, block), SIZE_MAX);
    assert_int_equal(ebb_last_error(), EBB_E_KIND);
    assert_int_equal(ebb_region_release(root, mine), 0);
    assert_int_not_equal(ebb_region_send(root, mine, &parcel), 0);
    assert_true(ebb_region_is_open(root) && ebb_region_is_open(child));
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    assert_int_equal(ebb_region_send(root, NULL, &parcel), 0);
    assert_refused(ebb_region_send(root, NULL, &parcel), EBB_E_STALE);
    assert_int_equal(ebb_region_offset(root, mine), SIZE_MAX);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_null(ebb_lease_root(lease, NULL));
    ebb_lease_drop(lease);
    ebb_lease_drop(NULL);
    ebb_lease_hold(NULL);
    size_t root_bytes = 1;
    assert_null(ebb_lease_root(NULL, &root_bytes));
    assert_true(ebb_last_error() == EBB_E_ARGUMENT && root_bytes == 0);
    assert_null(ebb_lease_at(NULL, 0, 1));
    assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT);
    assert_int_equal(ebb_lease_bytes(NULL), 0);
    assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT);
    assert_null(ebb_lease_object(NULL, host));
    assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT);
    assert_null(ebb_lease_export(NULL, 0, bytes8, 0, NULL, NULL));
    assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT);
    ebb_region_close(host);
    pool_end(pool);
}

/* Options of a shared pool hold for each of its regions. */
static void limits_hold_for_each_region(void **state) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_SHARED, .slots = 2,
                                                      .slot_bytes = SLOT_BYTES,
                                                      .limit_reserved_bytes = 4 * MIB));
    ebb_region a = OPEN(.pool = pool), b = OPEN(.pool = pool);
    block_of(a, 3 * MIB, 64);
    block_of(b, 3 * MIB, 64);
    assert_no_block(ebb_region_alloc(a, 3 * MIB, 64), EBB_E_POOL_LIMIT);
    struct ebb_pool_stats stats = pool_stats_of(pool);
    assert_int_equal(stats.open_regions, 2);
    assert_true(stats.used.current >= 6 * MIB);
    ebb_region_close(a);
    ebb_region_close(b);
    pool_end(pool);
}

/* Nor are pages free of charge that another process has put into the slot. */
static void limits_hold_whoever_was_there_before(void **state) {
    ebb_pool *large = shared_pool(1, SLOT_BYTES);
    ebb_pool *small = ebb_pool_attach(ebb_pool_descriptor(large),
                                      EBB_POOL_OPTIONS(.limit_reserved_bytes = 4 * MIB));
    for (unsigned round = 0; round < 3; round++) {
        struct ebb_parcel parcel = send_pattern(large, 20 * MIB, round);
        assert_int_equal(ebb_parcel_discard(large, &parcel), 0);
        ebb_region region = OPEN(.pool = small);
        assert_no_block(ebb_region_alloc(region, 5 * MIB, 64), EBB_E_POOL_LIMIT);
        block_of(region, 3 * MIB, 64);
        assert_no_block(ebb_region_alloc(region, 2 * MIB, 64), EBB_E_POOL_LIMIT);
        assert_in_range(pool_stats_of(small).reserved.current, 3 * MIB, 4 * MIB);
        ebb_check_pool(small);
        assert_int_equal(ebb_region_close(region), 0);
    }
    assert_int_equal(ebb_pool_destroy(small), 0);
    pool_end(large);
}

/* A site may have its steps in a shared pool: each in a slot, planned like any. */
static void steps_work_in_slots(void **state) {
    ebb_pool *pool = shared_pool(4, SLOT_BYTES);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "loader", .pool = pool));
    assert_non_null(site);
    for (unsigned i = 0; i < 40; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        assert_true(ebb_region_is_open(step.region));
        assert_int_equal(ebb_region_offset(step.region, NULL), SIZE_MAX);
        void *blocks[20];
        for (unsigned k = 0; k < 20; k++) {
            blocks[k] = block_of(step.region, 3000 + k * 5000, 64);
            assert_true(ebb_region_offset(step.region, blocks[k]) < SLOT_BYTES);
            if (k % 3 == 2)
                assert_int_equal(ebb_region_release(step.region, blocks[k - 1]), 0);
        }
        assert_true(pattern_holds(blocks[19], 98000, 98000));
        assert_int_equal(ebb_step_end(step), 0);
        ebb_check_pool(pool);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void assert_nothing_sent(ebb_region region, void *object, struct ebb_parcel *parcel,
                                int code) {
    struct ebb_region_stats before = stats_of(region);
    assert_refused(ebb_region_send_object(region, object, parcel), code);
    struct ebb_region_stats after = stats_of(region);
    assert_memory_equal(&before, &after, sizeof before);
}

static void what_was_not_sent_leaves_no_trace(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool, .limit_bytes = 3 * MIB), host = OPEN(.name = "host");
    ebb_region_release(region, block_of(region, 3 * MIB, 64)); /* its pages stay */
    struct ebb_tensor *tensor = tensor_of_bytes(region, 5000);
    DLManagedTensor *out = share(tensor);
    struct ebb_region_stats stats = stats_of(region);
    size_t left = (size_t)(stats.limit - stats.subtree_used) / 64 * 64;
    struct ebb_tensor *far = tensor_of_bytes(host, left); /* and no room for a description */
    struct ebb_parcel parcel;
    assert_nothing_sent(region, far, &parcel, EBB_E_BUSY);
    give_back(out);
    assert_int_equal(ebb_region_count_exports(region), 0);
    assert_nothing_sent(region, tensor, NULL, EBB_E_ARGUMENT);
    assert_nothing_sent(region, far, &parcel, EBB_E_REGION_LIMIT);
    assert_int_equal(ebb_region_send_object(region, tensor, &parcel), 0);
    assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
    assert_int_equal(ebb_region_close(host), 0);
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_system_is_an_error),
        cmocka_unit_test(the_last_pages_of_the_system_can_be_had),
        cmocka_unit_test(pages_that_are_missing_are_an_error),
        cmocka_unit_test(a_steady_loop_asks_nothing_of_the_system),
        cmocka_unit_test(a_trim_gives_pages_back),
        cmocka_unit_test(trims_of_others_are_noticed),
        cmocka_unit_test(pages_that_others_added_are_counted_once),
        cmocka_unit_test(what_is_allocated_is_backed),
        cmocka_unit_test(a_slot_that_cannot_serve_is_not_preferred),
        cmocka_unit_test(a_limit_of_files_is_an_error),
        cmocka_unit_test(standard_files_are_none_of_a_pool),
        cmocka_unit_test(an_export_keeps_the_slot_of_its_region),
        cmocka_unit_test(what_lies_in_no_slot_is_exported_by_copy),
        cmocka_unit_test(a_late_export_keeps_the_slot),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(limits_hold_for_each_region),
        cmocka_unit_test(limits_hold_whoever_was_there_before),
        cmocka_unit_test(steps_work_in_slots),
        cmocka_unit_test(what_was_not_sent_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
