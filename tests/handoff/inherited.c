// SPDX-License-Identifier: Apache-2.0
/* inherited.c - leases that a forked child has of its parent, what is in their slots since, and
 * cleanups of regions. */
#include "handoff/duo.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"

#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (4 * MIB)

typedef struct duo duo_start(ebb_pool *pool, duo_part *part, const void *context);

/* ---- the slot of an inherited lease is the child's ---- */

struct inherited {
    ebb_lease *lease;
    int dropped[2]; /* the parent has dropped it */
};

static int find_nothing_of_the_parent(const void *address) {
    EXPECT(!ebb_lease_of(address));
    EXPECT(ebb_last_error() == EBB_E_FOREIGN);
    return 0;
}

static int a_child_finds_nothing(const void *address) {
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(find_nothing_of_the_parent(address) != 0);
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

/* A region, what is left of it under an export, and a parcel of its own. */
static int use_the_slot(ebb_pool *pool, int out, const void *context) {
    const struct inherited *inherited = context;
    struct ebb_parcel parcel;
    char byte;
    EXPECT(read_all(inherited->dropped[0], &byte, 1));
    ebb_region region = OPEN(.pool = pool);
    EXPECT(ebb_region_is_open(region));
    void *block = block_of(region, 70000, 64);
    EXPECT(find_nothing_of_the_parent(block) == 0);
    EXPECT(a_child_finds_nothing(block) == 0);
    EXPECT(ebb_region_send(region, block, &parcel) == 0);
    ebb_lease *own = ebb_parcel_open(pool, &parcel), *found = ebb_lease_of(block);
    EXPECT(own && found == own);
    ebb_lease_drop(found);
    ebb_lease_drop(own);
    region = OPEN(.pool = pool);
    DLManagedTensor *exported = share(tensor_of_bytes(region, 70000));
    EXPECT(ebb_region_close(region) == 0);
    EXPECT(find_nothing_of_the_parent(exported->dl_tensor.data) == 0);
    EXPECT(a_child_finds_nothing(exported->dl_tensor.data) == 0);
    give_back(exported);
    ebb_lease_drop(inherited->lease);
    EXPECT(ebb_pool_destroy(pool) == 0);
    return 0;
}

static void use_what_the_parent_has_dropped(duo_start *start) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 70000, 1);
    struct inherited inherited = {.lease = ebb_parcel_open(pool, &parcel)};
    assert_non_null(inherited.lease);
    assert_int_equal(pipe(inherited.dropped), 0);
    struct duo duo = start(pool, use_the_slot, &inherited);
    ebb_lease_drop(inherited.lease);
    assert_true(write_all(inherited.dropped[1], "d", 1));
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 0, 0);
    close(inherited.dropped[0]);
    close(inherited.dropped[1]);
    pool_end(pool);
}

static void what_a_child_has_in_a_slot_is_in_no_lease_of_its_parent(void **state) {
    use_what_the_parent_has_dropped(duo_fork);
    use_what_the_parent_has_dropped(duo_fork_raw);
}

/* ---- a region of the parent holds the lease ---- */

struct holder {
    ebb_region region;
    const struct ebb_tensor *made;
};

static int close_what_holds(ebb_pool *pool, int out, const void *context) {
    const struct holder *holder = context;
    EXPECT(pattern_holds(holder->made->data, 70000, 70000));
    EXPECT(ebb_pool_destroy(pool) == EBB_E_BUSY);
    ebb_mark mark = ebb_region_mark(holder->region);
    EXPECT(ebb_region_rewind(holder->region, mark) == 0);
    DLManagedTensor *copy = ebb_tensor_export(holder->made, EBB_EXCHANGE_COPY);
    EXPECT(!copy && ebb_last_error() != EBB_E_RELEASED); /* what is older is there still */
    EXPECT(ebb_region_close(holder->region) == 0);
    EXPECT(ebb_pool_destroy(pool) == 0);
    return 0;
}

/* In shared memory cleanups of the region are the parent's; the child's reference is its own. */
static void hold_a_lease_in_shared_memory(duo_start *start, bool versioned) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    ebb_region from = OPEN(.pool = pool);
    struct holder holder = {.region = OPEN(.pool = pool)};
    struct ebb_parcel parcel;
    struct ebb_tensor *sent = tensor_of_bytes(from, 70000);
    size_t offset = ebb_region_offset(from, sent->data);
    assert_int_equal(ebb_region_send_object(from, sent, &parcel), 0);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    const int64_t bytes = 70000;
    holder.made = versioned
                      ? ebb_tensor_import_versioned(
                            holder.region,
                            ebb_lease_export_versioned(lease, offset, bytes8, 1, &bytes, NULL),
                            EBB_EXCHANGE_SHARE)
                      : ebb_lease_object(lease, holder.region);
    assert_non_null(holder.made);
    ebb_lease_drop(lease);
    struct duo duo = start(pool, close_what_holds, &holder);
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 1, 0, 1);
    assert_true(pattern_holds(holder.made->data, 70000, 70000));
    assert_int_equal(ebb_region_close(holder.region), 0);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void a_child_lets_go_of_leases_with_regions_in_shared_memory(void **state) {
    for (int versioned = 0; versioned < 2; versioned++) {
        hold_a_lease_in_shared_memory(duo_fork, versioned);
        hold_a_lease_in_shared_memory(duo_fork_raw, versioned);
    }
}

/* ---- cleanups are the parent's ---- */

static int runs;

static int count_run(void *context) {
    runs++;
    return 0;
}

static int fork_here(void *context) {
    pid_t child = fork();
    *(pid_t *)context = child;
    return child < 0;
}

static int end_in_a_way(unsigned way, ebb_region region, ebb_mark mark) {
    struct ebb_parcel parcel;
    switch (way) {
    case 0:
        return ebb_region_close(region);
    case 1:
        return ebb_region_send(region, NULL, &parcel);
    case 2:
        return ebb_region_reset(region, 0);
    default:
        return ebb_region_rewind(region, mark);
    }
}

static void a_child_of_a_cleanup_runs_no_other(void **state) {
    for (unsigned way = 0; way < 4; way++) {
        ebb_pool *pool = shared_pool(1, SLOT_BYTES);
        ebb_region region = OPEN(.pool = pool);
        ebb_mark mark = ebb_region_mark(region);
        pid_t child = -1;
        int status;
        struct ebb_cleanup other = {.run = count_run};
        struct ebb_cleanup forking = {.run = fork_here, .data = &child};
        runs = 0;
        assert_int_equal(ebb_cleanup_add(region, &other), 0);
        assert_int_equal(ebb_cleanup_add(region, &forking), 0);
        int result = end_in_a_way(way, region, mark);
        if (child == 0)
            _exit(runs);
        assert_int_equal(result, 0);
        assert_int_equal(runs, 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        if (ebb_region_is_open(region))
            assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
    }
}

struct importer {
    ebb_region region;
    ebb_mark mark;
    struct ebb_tensor *tensor; /* that is ended by itself; NULL: the region is rewound */
};

static void count_return(DLManagedTensor *managed) {
    runs++;
}

static struct ebb_tensor *import_bytes(ebb_region region, DLManagedTensor *managed) {
    static char bytes[64];
    static int64_t count = sizeof bytes;
    *managed = (DLManagedTensor){.dl_tensor = {.data = bytes,
                                               .device = {kDLCPU, 0},
                                               .ndim = 1,
                                               .dtype = {kDLUInt, 8, 1},
                                               .shape = &count},
                                 .deleter = count_return};
    struct ebb_tensor *tensor = ebb_tensor_import(region, managed, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    return tensor;
}

static int end_what_imports(const struct importer *importer) {
    return importer->tensor ? ebb_object_end(importer->tensor)
                            : ebb_region_rewind(importer->region, importer->mark);
}

static int end_as_a_child(ebb_pool *pool, int out, const void *context) {
    const struct importer *importer = context;
    EXPECT(end_what_imports(importer) == 0);
    EXPECT(ebb_region_close(importer->region) == 0);
    EXPECT(runs == 0);
    return 0;
}

/* In the child, and then here. */
static void expect_one_return(ebb_pool *pool, const struct importer *importer) {
    runs = 0;
    struct duo duo = duo_fork(pool, end_as_a_child, importer);
    assert_int_equal(duo_end(&duo), 0);
    assert_int_equal(end_what_imports(importer), 0);
    assert_int_equal(runs, 1);
}

static void a_child_that_rewinds_calls_no_producer(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct importer importer = {.region = OPEN(.pool = pool)};
    DLManagedTensor managed;
    importer.mark = ebb_region_mark(importer.region);
    import_bytes(importer.region, &managed);
    expect_one_return(pool, &importer);
    assert_int_equal(ebb_region_close(importer.region), 0);
    pool_end(pool);
}

/* The import is older, and of the region above: nothing of it but its elements is seen any more. */
static void nor_does_one_that_rewinds_the_last_view(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool);
    struct importer importer = {.region = OPEN(.parent = root)};
    DLManagedTensor managed;
    struct ebb_tensor *base = import_bytes(root, &managed);
    importer.mark = ebb_region_mark(importer.region);
    assert_non_null(ebb_tensor_view(importer.region, base, 1, SIZES(64), SIZES(1), 0));
    assert_int_equal(ebb_object_end(base), 0);
    expect_one_return(pool, &importer);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

static void nor_does_one_that_ends_a_tensor(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct importer importer = {.region = OPEN(.pool = pool)};
    DLManagedTensor managed;
    importer.tensor = import_bytes(importer.region, &managed);
    expect_one_return(pool, &importer);
    assert_int_equal(ebb_region_close(importer.region), 0);
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_child_has_in_a_slot_is_in_no_lease_of_its_parent),
        cmocka_unit_test(a_child_lets_go_of_leases_with_regions_in_shared_memory),
        cmocka_unit_test(a_child_of_a_cleanup_runs_no_other),
        cmocka_unit_test(a_child_that_rewinds_calls_no_producer),
        cmocka_unit_test(nor_does_one_that_rewinds_the_last_view),
        cmocka_unit_test(nor_does_one_that_ends_a_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
