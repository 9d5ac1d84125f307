// SPDX-License-Identifier: Apache-2.0
/*
 * addresses.c - slots need addresses of each process: a pool is refused that could not have them;
 * who opens parcels can have all of them at once, whatever limits the process; what he opens lies
 * outside of the range, and is known as shared memory there too.
 */
#include "base/os.h"
#include "handoff/duo.h"
#include "pool/chunk.h"
#include "pool/shared.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { HAS_SHADOW = true }; /* terabytes of addresses, and pages for what is taken */
#else
enum { HAS_SHADOW = false };
#endif

#define SLOT_BYTES (64 * MIB)
#define GIB ((size_t)1 << 30)

/* ---- how many and how long ---- */

static void assert_sizes(ebb_pool *pool, unsigned slots, size_t slot_bytes) {
    assert_non_null(pool);
    assert_int_equal(pool->shared->slot_count, slots);
    assert_int_equal(pool->shared->slot_bytes, slot_bytes);
    pool_end(pool);
}

static void a_pool_has_no_more_slots_than_there_are_addresses_for(void **state) {
    assert_int_equal(range_prepare(), 0);
    size_t most = range.bytes / 2, part = range.bytes / 4, step = 2 * MIB;
    assert_sizes(POOL(.kind = EBB_KIND_SHARED), 256, size_smaller(GIB, part / 256));
    assert_sizes(POOL(.kind = EBB_KIND_SHARED, .slots = 1), 1, size_smaller(GIB, part));
    assert_sizes(POOL(.kind = EBB_KIND_SHARED, .slots = 4096), 4096, part / 4096);
    assert_sizes(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = most / 8), 8, most / 8);
    assert_sizes(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = most), 1, most);
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = most + 1), EBB_E_SIZE);
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slots = 9, .slot_bytes = most / 8), EBB_E_SIZE);
    assert_text_names("9 slots of");
    assert_sizes(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = most / 8 - step + 1), 8, most / 8);
    assert_sizes(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = most / 8 - step),
                 (unsigned)(most / (most / 8 - step)), most / 8 - step);
    size_t longest = size_align_down(most / 255, step);
    assert_sizes(POOL(.kind = EBB_KIND_SHARED, .slots = 255, .slot_bytes = longest), 255, longest);
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slots = 255, .slot_bytes = longest + 1),
                    EBB_E_SIZE);
    assert_text_names("255 slots of");
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = SIZE_MAX), EBB_E_SIZE);
}

/* ---- all slots at once ---- */

static int send_all(ebb_pool *pool, int out, const void *context) {
    unsigned count = *(const unsigned *)context;
    struct ebb_parcel parcel;
    for (unsigned i = 0; i < count; i++)
        if (!try_send(pool, 5000, i, &parcel) || !write_all(out, &parcel, sizeof parcel))
            return 1;
    return 0;
}

/* A child sends so many, this process, which has less room than that, holds them all. */
static int hold_all(ebb_pool *pool, unsigned count, bool (*narrow)(void)) {
    static ebb_lease *leases[256];
    struct ebb_parcel parcel;
    struct duo duo = pool ? duo_fork(pool, send_all, &count) : (struct duo){0};
    bool good = pool && narrow();
    for (unsigned i = 0; good && i < count; i++) {
        good = read_all(duo.in, &parcel, sizeof parcel) &&
               (leases[i] = ebb_parcel_open(pool, &parcel)) && lease_holds(leases[i], 5000, i);
        if (!good)
            print_message("parcel %u: %s\n", i, ebb_last_error_text());
    }
    if (!good)
        return 1;
    for (unsigned i = 0; i < count; i++)
        ebb_lease_drop(leases[i]);
    return duo_end(&duo) != 0 || ebb_pool_destroy(pool) != 0;
}

static bool limit_addresses_to(size_t bytes) {
    return setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) == 0;
}

static bool limit_addresses(void) {
    return limit_addresses_to(10 * GIB);
}

static bool limit_data(void) {
    return setrlimit(RLIMIT_DATA, &(struct rlimit){GIB, GIB}) == 0;
}

/* Others of the process have the range, as the slots of other loaders may. */
static bool fill_range(void) {
    while (chunk_take(range.bytes / 16))
        continue;
    return true;
}

static bool holds_three(ebb_pool *pool) {
    static const unsigned three = 3;
    struct ebb_parcel parcel;
    struct duo duo = pool ? duo_fork(pool, send_all, &three) : (struct duo){0};
    bool good = pool;
    for (unsigned i = 0; good && i < three; i++) {
        const ebb_lease *lease = read_all(duo.in, &parcel, sizeof parcel)
                                     ? ebb_parcel_open(pool, &parcel) : NULL;
        good = lease && lease_holds(lease, 5000, i);
    }
    return good && duo_end(&duo) == 0;
}

/* Many loaders hold more than the range has, all together; a bit more of it than is needed may have
 * been carved. */
static int leave_half_where_addresses_are_fewest(void) {
    if (!limit_addresses_to(4 * GIB) || range_prepare() != 0 || range.bytes != GIB)
        return 2;
    for (int i = 0; i < 24; i++)
        if (!holds_three(POOL(.kind = EBB_KIND_SHARED, .slots = 3, .slot_bytes = GIB / 64)))
            return 3;
    return chunk_bytes() <= range.bytes / 4 * 3 ? 0 : 1;
}

/* The smallest range has no quarter for as many slots as others, however short these are. */
static int have_a_quarter_where_addresses_are_fewest(void) {
    if (!limit_addresses_to(4 * GIB) || range_prepare() != 0 || range.bytes != GIB)
        return 2;
    assert_sizes(POOL(.kind = EBB_KIND_SHARED), 128, 2 * MIB);
    assert_sizes(POOL(.kind = EBB_KIND_SHARED, .slots = 256), 256, 2 * MIB);
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slots = 257, .slot_bytes = 1), EBB_E_SIZE);
    return 0;
}

static int hold_all_where_addresses_are_few(void) {
    if (!limit_addresses() || range_prepare() != 0 || range.bytes > 4 * GIB)
        return 2;
    return hold_all(POOL(.kind = EBB_KIND_SHARED), 256, limit_addresses);
}

static int hold_all_where_memory_is_counted(void) {
    return hold_all(POOL(.kind = EBB_KIND_SHARED), 200, limit_data);
}

static int hold_all_where_the_range_is_full(void) {
    return hold_all(POOL(.kind = EBB_KIND_SHARED), 200, fill_range);
}

static int in_a_child(int (*call)(void)) {
    int status;
    if (HAS_SHADOW)
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(call());
    assert_true(waitpid(child, &status, 0) == child);
    return status;
}

/* The child is the first to reserve the range. */
static void few_addresses_do_for_all_slots(void **state) {
    assert_int_equal(in_a_child(hold_all_where_addresses_are_few), 0);
}

static void all_slots_are_a_quarter_of_few_addresses(void **state) {
    assert_int_equal(in_a_child(have_a_quarter_where_addresses_are_fewest), 0);
}

static void who_reads_leaves_half_of_few_addresses_to_regions(void **state) {
    assert_int_equal(in_a_child(leave_half_where_addresses_are_fewest), 0);
}

static void who_reads_needs_no_tables(void **state) {
    assert_int_equal(in_a_child(hold_all_where_memory_is_counted), 0);
}

static void who_reads_needs_no_range(void **state) {
    assert_int_equal(in_a_child(hold_all_where_the_range_is_full), 0);
}

/* ---- outside of the range ---- */

static bool takes_no_chunk(enum os_acquisition what) {
    return what != OS_SLAB;
}

static int do_nothing(void *data) {
    return 0;
}

/* What another process sent, opened where no chunk is to be had. */
static ebb_lease *open_outside(ebb_pool *pool, struct duo *duo) {
    static const unsigned one = 1;
    struct os_table real = os;
    struct ebb_parcel parcel;
    *duo = duo_fork(pool, send_all, &one);
    assert_true(read_all(duo->in, &parcel, sizeof parcel));
    os.allow = takes_no_chunk;
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    os = real;
    assert_non_null(lease);
    assert_true(lease_holds(lease, 5000, 0));
    return lease;
}

static void what_lies_outside_is_known_as_shared(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct duo duo;
    ebb_lease *lease = open_outside(pool, &duo);
    char *root = ebb_lease_root(lease, NULL);
    assert_false(range_reserves((uintptr_t)root));
    assert_ptr_equal(ebb_lease_of(root + 4999), lease);
    ebb_lease_drop(lease);
    ebb_region region = OPEN(.name = "own");
    struct ebb_cleanup *node = (struct ebb_cleanup *)(void *)(root + 64);
    *node = (struct ebb_cleanup){.run = do_nothing};
    assert_refused(ebb_cleanup_add(region, node), EBB_E_KIND);
    assert_int_equal(ebb_region_close(region), 0);
    ebb_lease_drop(lease);
    assert_true(shared_may_view(root));
    assert_int_equal(duo_end(&duo), 0);
    pool_end(pool);
    assert_false(shared_may_view(root)); /* there is no other pool */
}

/* A loader without workers uses the pool of one with workers. */
static void who_read_a_slot_may_write_it(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct duo duo;
    ebb_lease_drop(open_outside(pool, &duo));
    assert_int_equal(duo_end(&duo), 0);
    for (unsigned round = 1; round < 4; round++) {
        struct ebb_parcel parcel = send_pattern(pool, 3 * MIB * round, round);
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        assert_true(lease_holds(lease, 3 * MIB * round, round));
        assert_true(range_holds((uintptr_t)ebb_lease_root(lease, NULL)));
        ebb_lease_drop(lease);
        assert_true(round > 1 || ebb_pool_trim(pool, 0) > 0);
    }
    pool_end(pool);
}

/* It reads on what it inherited as long as its parent holds it. */
static int read_on(ebb_pool *pool, int out, const void *context) {
    const ebb_lease *lease = context;
    return lease_holds(lease, 5000, 0) ? 0 : 1;
}

static void a_forked_child_reads_what_lies_outside(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct duo duo;
    ebb_lease *lease = open_outside(pool, &duo);
    struct duo child = duo_fork(pool, read_on, lease);
    assert_int_equal(duo_end(&child), 0);
    ebb_lease_drop(lease);
    assert_int_equal(duo_end(&duo), 0);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_addresses_do_for_all_slots), /* before there is a range */
        cmocka_unit_test(all_slots_are_a_quarter_of_few_addresses),
        cmocka_unit_test(who_reads_leaves_half_of_few_addresses_to_regions),
        cmocka_unit_test(who_reads_needs_no_tables),
        cmocka_unit_test(a_pool_has_no_more_slots_than_there_are_addresses_for),
        cmocka_unit_test(who_reads_needs_no_range),
        cmocka_unit_test(what_lies_outside_is_known_as_shared),
        cmocka_unit_test(who_read_a_slot_may_write_it),
        cmocka_unit_test(a_forked_child_reads_what_lies_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
