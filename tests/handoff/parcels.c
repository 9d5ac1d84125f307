// SPDX-License-Identifier: Apache-2.0
/* parcels.c - the contents of a region go to another process, or another thread, and come back. */
#include "base/os.h"
#include "handoff/duo.h"
#include "handoff/lease.h"
#include "kit/dlpack.h"
#include "pool/shared.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (16 * MIB)

/* ---- one process ---- */

static void what_is_sent_arrives(void **state) {
    ebb_pool *pool = shared_pool(4, SLOT_BYTES);
    for (unsigned round = 0; round < 20; round++) {
        struct ebb_parcel parcel = send_pattern(pool, 100000 + round * 5000, round);
        assert_states(pool, 0, 1, 0);
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        assert_non_null(lease);
        assert_states(pool, 0, 0, 1);
        assert_true(lease_holds(lease, 100000 + round * 5000, round));
        ebb_lease_drop(lease);
        assert_states(pool, 0, 0, 0);
    }
    pool_end(pool);
}

/* After the highest number of a generation comes 0; a parcel of any that was before is stale. */
static void generations_begin_again(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcels[5];
    uint32_t generation = WORD_GENERATIONS - 3;
    atomic_store(&shared_record(&pool->shared->slots[0])->word,
                 word_make(SLOT_FREE, generation, 0));
    for (unsigned round = 0; round < 5; round++) {
        parcels[round] = send_pattern(pool, 5000, round);
        generation = (generation + 1) % WORD_GENERATIONS;
        assert_int_equal(parcels[round].generation, generation);
        assert_states(pool, 0, 1, 0);
        for (unsigned old = 0; old < round; old++)
            assert_true(!ebb_parcel_open(pool, &parcels[old]) &&
                        ebb_last_error() == EBB_E_STALE);
        ebb_lease *lease = ebb_parcel_open(pool, &parcels[round]);
        assert_true(lease && lease_holds(lease, 5000, round));
        ebb_lease_drop(lease);
        assert_states(pool, 0, 0, 0);
    }
    assert_int_equal(generation, 2);
    pool_end(pool);
}

static void a_region_that_closes_frees_its_slot(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    for (unsigned round = 0; round < 10; round++) {
        ebb_region region = OPEN(.pool = pool);
        assert_true(ebb_region_is_open(region));
        block_of(region, 3 * MIB, 64);
        block_of(region, 30, 8);
        assert_states(pool, 1, 0, 0);
        assert_int_equal(ebb_region_close(region), 0);
        assert_states(pool, 0, 0, 0);
    }
    pool_end(pool);
}

static void children_and_small_blocks_come_along(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root);
    char *small = ebb_region_alloc(root, 40, 8), *below = block_of(child, 50000, 64);
    memcpy(small, "small", 6);
    size_t at = ebb_region_offset(root, small), there = ebb_region_offset(root, below);
    struct ebb_parcel parcel;
    assert_int_equal(ebb_region_send(root, below, &parcel), 0);
    assert_false(ebb_region_is_open(child));
    assert_int_equal(parcel.root, there);
    assert_int_equal(parcel.bytes, 50000);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_string_equal(ebb_lease_at(lease, at, 40), "small");
    assert_true(lease_holds(lease, 50000, 50000));
    ebb_lease_drop(lease);
    pool_end(pool);
}

/* A survivor that was relinked lies in pages of the region that it came from, which is open. */
static void a_survivor_is_the_root_of_its_parcel(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root);
    ebb_region below = OPEN(.parent = child);
    void *block = block_of(below, MIB, 64);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    pattern_fill(block, MIB, 7);
    assert_int_equal(ebb_promote(below, child, &survivor, 1, NULL), 0);
    assert_ptr_equal(survivor.block, block);
    assert_int_equal(ebb_promote(child, root, &survivor, 1, NULL), 0);
    size_t at = ebb_region_offset(root, block);
    struct ebb_parcel parcel;
    assert_int_not_equal(ebb_region_send(root, (char *)block + 64, &parcel), 0);
    assert_int_equal(ebb_region_send(root, block, &parcel), 0);
    assert_int_equal(parcel.root, at);
    assert_int_equal(parcel.bytes, MIB);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, MIB, 7));
    ebb_lease_drop(lease);
    pool_end(pool);
}

/* Its place in the process is named, in whichever region of the tree it is. */
static void an_object_is_no_root_of_a_parcel(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root, .name = "child");
    struct ebb_tensor *above = tensor_of_bytes(root, 100), *below = tensor_of_bytes(child, 100);
    struct ebb_parcel parcel;
    assert_refused(ebb_region_send(root, above, &parcel), EBB_E_FOREIGN);
    assert_text_names("is an object of region");
    assert_refused(ebb_region_send(root, below, &parcel), EBB_E_FOREIGN);
    assert_text_names("is an object of region 'child'");
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

static void a_region_of_many_slots_is_spread_by_growth(void **state) {
    ebb_pool *pool = shared_pool(8, SLOT_BYTES);
    struct ebb_parcel parcels[8];
    for (unsigned i = 0; i < 8; i++)
        parcels[i] = send_pattern(pool, 70000, i);
    ebb_region none = OPEN(.pool = pool);
    assert_false(ebb_region_is_open(none));
    assert_int_equal(ebb_last_error(), EBB_E_SLOTS);
    assert_text_names("8 sent");
    for (unsigned i = 8; i-- > 0;) {
        ebb_lease *lease = ebb_parcel_open(pool, &parcels[i]);
        assert_true(lease_holds(lease, 70000, i));
        ebb_lease_drop(lease);
    }
    pool_end(pool);
}

static void what_is_larger_than_a_slot_is_refused(void **state) {
    ebb_pool *pool = shared_pool(1, 4 * MIB);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 3 * MIB, 64);
    assert_no_block(ebb_region_alloc(region, 2 * MIB, 64), EBB_E_POOL_LIMIT);
    assert_text_names("4194304");
    block_of(region, 100000, 64); /* what fits still fits */
    assert_int_equal(ebb_region_close(region), 0);
    ebb_region hinted = OPEN(.pool = pool, .hint_bytes = 5 * MIB);
    assert_false(ebb_region_is_open(hinted));
    assert_int_equal(ebb_last_error(), EBB_E_POOL_LIMIT);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

/* ---- leases ---- */

static void a_lease_lives_as_long_as_anybody_holds_it(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 1 * MIB, 1);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    const int64_t shape[] = {16, 1024};
    DLManagedTensor *a = ebb_lease_export(lease, parcel.root, float32, 2, shape, NULL);
    DLManagedTensorVersioned *b =
        ebb_lease_export_versioned(lease, parcel.root, bytes8, 1, &(int64_t){1 << 20}, NULL);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->dl_tensor.strides[0], 1024);
    assert_int_equal(a->dl_tensor.strides[1], 1);
    ebb_lease_drop(lease);
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    assert_text_names("1 leases");
    assert_states(pool, 0, 0, 1);
    a->deleter(a);
    assert_true(pattern_holds(b->dl_tensor.data, 1 * MIB, 1));
    b->deleter(b);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void only_what_was_sent_is_exported(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 1 * MIB, 1);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    int64_t all = (int64_t)ebb_lease_bytes(lease);
    static const struct {
        struct ebb_dtype dtype;
        int ndim;
        int64_t shape[2], strides[2];
        size_t offset;
        int code;
    } wrong[] = {
        {{EBB_FLOAT, 32, 1}, 1, {1 << 30}, {1}, 0, EBB_E_PARCEL},
        {{EBB_FLOAT, 32, 1}, 1, {4}, {1}, SIZE_MAX - 3, EBB_E_PARCEL},
        {{EBB_FLOAT, 32, 1}, 1, {4}, {1}, 2, EBB_E_EXCHANGE},
        {{EBB_FLOAT, 32, 1}, 2, {4, 4}, {-1, 1}, 64, EBB_E_EXCHANGE},
        {{EBB_FLOAT, 32, 1}, 2, {0, 4}, {-1, 1}, 64, EBB_E_EXCHANGE},
        {{EBB_FLOAT, 32, 1}, 2, {2, 4}, {INT64_MAX, 1}, 0, EBB_E_SIZE},
        {{EBB_FLOAT, 32, 1}, 2, {INT64_MAX, 4}, {1, 1}, 0, EBB_E_SIZE},
        {{EBB_FLOAT, 32, 1}, 1, {-1}, {1}, 0, EBB_E_SHAPE},
        {{EBB_FLOAT, 32, 1}, 33, {1}, {1}, 0, EBB_E_SHAPE},
        {{EBB_FLOAT, 32, 1}, -1, {1}, {1}, 0, EBB_E_SHAPE},
        {{EBB_FLOAT, 32, 1}, 2, {2, 2}, {1 << 22, 1}, 0, EBB_E_PARCEL},
        {{EBB_FLOAT, 31, 1}, 1, {4}, {1}, 0, EBB_E_EXCHANGE},
        {{EBB_FLOAT, 0, 1}, 1, {4}, {1}, 0, EBB_E_DTYPE},
        {{EBB_UINT, 8, 2}, 1, {4}, {1}, 0, EBB_E_EXCHANGE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        DLManagedTensor *none =
            ebb_lease_export(lease, wrong[i].offset, wrong[i].dtype, wrong[i].ndim,
                             wrong[i].shape, wrong[i].strides);
        assert_null(none);
        if (ebb_last_error() != wrong[i].code)
            print_error("%zu: %s\n", i, ebb_last_error_text());
        assert_int_equal(ebb_last_error(), wrong[i].code);
    }
    const int64_t empty[] = {0, INT64_MAX, INT64_MAX};
    DLManagedTensor *nothing = ebb_lease_export(lease, 0, bytes8, 3, empty, NULL);
    assert_non_null(nothing);
    assert_memory_equal(nothing->dl_tensor.shape, empty, sizeof empty);
    give_back(nothing);
    DLManagedTensor *whole = ebb_lease_export(lease, 0, bytes8, 1, &all, NULL);
    assert_non_null(whole);
    give_back(whole);
    all++;
    assert_null(ebb_lease_export(lease, 0, bytes8, 1, &all, NULL));
    assert_null(ebb_lease_at(lease, 1, (size_t)all - 1));
    assert_non_null(ebb_lease_at(lease, 1, (size_t)all - 2));
    ebb_lease_drop(lease);
    pool_end(pool);
}

/* A device that is busy: the check says no so many times. */
static bool device_is_done(void *context, ebb_lease *lease) {
    int *busy = context;
    return ebb_lease_at(lease, 0, 1) && --*busy < 0;
}

static void a_device_that_copies_keeps_the_slot(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    int busy = 2;
    assert_int_equal(ebb_pool_set_release_check(pool, device_is_done, &busy), 0);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_refused(ebb_pool_set_release_check(pool, NULL, NULL), EBB_E_BUSY);
    ebb_lease_drop(lease);
    assert_states(pool, 0, 0, 1);
    assert_int_equal(ebb_pool_reclaim(pool, true), 0); /* asked, still busy */
    assert_states(pool, 0, 0, 1);
    ebb_region region = OPEN(.pool = pool); /* asked, done */
    assert_true(ebb_region_is_open(region));
    assert_int_equal(busy, -1);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

static void opening_asks_for_what_waits(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    int busy = 1;
    assert_int_equal(ebb_pool_set_release_check(pool, device_is_done, &busy), 0);
    struct ebb_parcel first = send_pattern(pool, 5000, 1), second = send_pattern(pool, 5000, 2);
    ebb_lease_drop(ebb_parcel_open(pool, &first));
    assert_states(pool, 0, 1, 1);
    ebb_lease *lease = ebb_parcel_open(pool, &second);
    assert_int_equal(busy, -1);
    assert_states(pool, 0, 0, 1);
    assert_true(lease_holds(lease, 5000, 2));
    ebb_lease_drop(lease);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

/* They are set, not taken: that would take long. */
static void a_lease_with_more_references_than_are_counted_never_ends(void **state) {
    ebb_pool *pool = shared_pool(3, SLOT_BYTES);
    int busy = 0;
    assert_int_equal(ebb_pool_set_release_check(pool, device_is_done, &busy), 0);
    struct ebb_parcel many = send_pattern(pool, 5000, 1), other;
    ebb_lease *lease = ebb_parcel_open(pool, &many);
    for (uint32_t before = LEASE_MOST - 1; before < LEASE_PENDING; before += LEASE_MOST) {
        busy = 1;
        other = send_pattern(pool, 5000, 2);
        ebb_lease_drop(ebb_parcel_open(pool, &other)); /* waits, so that who comes next asks */
        atomic_store(&lease->count, before);
        ebb_lease_hold(lease);
        other = send_pattern(pool, 5000, 3);
        ebb_lease_drop(ebb_parcel_open(pool, &other));
        assert_states(pool, 0, 0, 1);
        assert_ptr_equal(ebb_lease_of(ebb_lease_root(lease, NULL)), lease);
        for (unsigned i = 0; i < 4; i++)
            ebb_lease_drop(lease);
        assert_int_equal(lease->count, LEASE_MOST);
        assert_true(lease_holds(lease, 5000, 1));
    }
    atomic_store(&lease->count, 1);
    ebb_lease_drop(lease);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void a_message_that_is_thrown_away_frees_the_slot(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
    assert_states(pool, 0, 0, 0);
    assert_refused(ebb_parcel_discard(pool, &parcel), EBB_E_STALE);
    pool_end(pool);
}

/* ---- two processes ---- */

/* The worker's side: sends so many batches, over the pool that it was forked with. */
static int work(ebb_pool *pool, int out, const void *context) {
    unsigned batches = *(const unsigned *)context;
    for (unsigned i = 0; i < batches; i++) {
        struct ebb_parcel parcel;
        if (!try_send(pool, 200000 + i * 1000, i, &parcel) ||
            !write_all(out, &parcel, sizeof parcel))
            return 1;
    }
    return 0;
}

static void receive(ebb_pool *pool, int in, unsigned batches) {
    for (unsigned i = 0; i < batches; i++) {
        struct ebb_parcel parcel;
        assert_true(read_all(in, &parcel, sizeof parcel));
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        if (!lease)
            print_error("%s\n", ebb_last_error_text());
        assert_non_null(lease);
        assert_true(lease_holds(lease, 200000 + i * 1000, i));
        ebb_lease_drop(lease);
    }
}

static void a_forked_worker_sends(void **state) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_SHARED, .slots = 4,
                                                      .slot_bytes = SLOT_BYTES,
                                                      .wait_ns = 20000000000));
    unsigned batches = 300;
    struct duo duo = duo_fork(pool, work, &batches);
    receive(pool, duo.in, batches);
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void a_worker_that_was_executed_attaches(void **state) {
    ebb_pool *pool = shared_pool(16, SLOT_BYTES);
    struct duo duo = duo_execute(pool, "10");
    receive(pool, duo.in, 10);
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void what_a_dead_worker_had_is_reclaimed(void **state) {
    ebb_pool *pool = shared_pool(4, SLOT_BYTES);
    struct duo duo = duo_fork(pool, die_with_three, NULL);
    struct ebb_parcel parcel;
    assert_true(read_all(duo.in, &parcel, sizeof parcel));
    assert_int_equal(duo_end(&duo), 9);
    assert_states(pool, 1, 1, 1);
    assert_int_equal(ebb_pool_reclaim(pool, false), 2);
    assert_states(pool, 0, 1, 0);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel); /* its message came through */
    assert_true(lease_holds(lease, 5000, 7));
    ebb_lease_drop(lease);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void what_the_dead_sent_goes_last(void **state) {
    ebb_pool *pool = shared_pool(3, SLOT_BYTES);
    struct duo duo = duo_fork(pool, die_with_three, NULL);
    struct ebb_parcel parcel;
    assert_true(read_all(duo.in, &parcel, sizeof parcel));
    assert_int_equal(duo_end(&duo), 9);
    ebb_region first = OPEN(.pool = pool), second = OPEN(.pool = pool);
    assert_true(ebb_region_is_open(first) && ebb_region_is_open(second));
    assert_states(pool, 2, 1, 0);
    ebb_region third = OPEN(.pool = pool);
    assert_true(ebb_region_is_open(third));
    assert_states(pool, 3, 0, 0);
    assert_null(ebb_parcel_open(pool, &parcel));
    assert_int_equal(ebb_last_error(), EBB_E_STALE);
    ebb_region_close(first);
    ebb_region_close(second);
    ebb_region_close(third);
    assert_null(ebb_parcel_open(pool, &parcel));
    pool_end(pool);
}

/* A process that has opened its regions goes on with parcels only. */
static void what_was_exported_is_free_when_a_parcel_is_opened(void **state) {
    ebb_pool *pool = shared_pool(3, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    DLManagedTensor *tensor = share(tensor_of_bytes(region, 100000));
    struct ebb_parcel first = send_pattern(pool, 5000, 1), second = send_pattern(pool, 5000, 2);
    assert_int_equal(ebb_region_close(region), 0);
    ebb_lease_drop(ebb_parcel_open(pool, &first));
    assert_states(pool, 1, 1, 0);
    give_back(tensor);
    assert_states(pool, 1, 1, 0);
    ebb_lease *lease = ebb_parcel_open(pool, &second);
    assert_states(pool, 0, 0, 1);
    ebb_lease_drop(lease);
    pool_end(pool);
}

static int open_no_more(int fd, int *other) {
    (void)fd, (void)other;
    return EMFILE;
}

static int open_without_proc(int fd, int *other) {
    (void)fd, (void)other;
    return ENOENT;
}

static int next_descriptor(void) {
    int next = dup(STDERR_FILENO);
    close(next);
    return next;
}

static void who_makes_a_pool_has_its_place_from_then_on(void **state) {
    struct os_table real = os;
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    int next = next_descriptor();
    os.file_again = open_no_more;
    assert_no_block(POOL(.kind = EBB_KIND_SHARED), EBB_E_MEMORY);
    assert_text_names("error 24");
    assert_int_equal(next_descriptor(), next);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, 5000, 1));
    ebb_lease_drop(lease);
    os = real;
    pool_end(pool);
}

/* Once the first thread of its process has ended. */
static void *make_a_pool(void *unused) {
    char path[1];
    while (readlink("/proc/self/exe", path, sizeof path) >= 0)
        usleep(1000);
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED);
    if (!pool)
        print_error("%s\n", ebb_last_error_text());
    _exit(pool == NULL);
}

static void a_pool_is_made_though_the_first_thread_has_ended(void **state) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pthread_t thread;
        alarm(60);
        if (pthread_create(&thread, NULL, make_a_pool, NULL) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_pool_that_finds_no_proc_says_so(void **state) {
    struct os_table real = os;
    os.file_again = open_without_proc;
    assert_no_block(POOL(.kind = EBB_KIND_SHARED), EBB_E_MEMORY);
    assert_text_names("takes /proc, which is not mounted");
    os.file_again = open_no_more;
    assert_no_block(POOL(.kind = EBB_KIND_SHARED), EBB_E_MEMORY);
    assert_null(strstr(ebb_last_error_text(), "/proc"));
    os = real;
}

int main(int count, char **arguments) {
    if (count == 4 && strcmp(arguments[1], "--worker") == 0)
        return duo_executed(arguments[2], arguments[3], work);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_arrives),
        cmocka_unit_test(generations_begin_again),
        cmocka_unit_test(a_region_that_closes_frees_its_slot),
        cmocka_unit_test(children_and_small_blocks_come_along),
        cmocka_unit_test(a_survivor_is_the_root_of_its_parcel),
        cmocka_unit_test(an_object_is_no_root_of_a_parcel),
        cmocka_unit_test(a_region_of_many_slots_is_spread_by_growth),
        cmocka_unit_test(what_is_larger_than_a_slot_is_refused),
        cmocka_unit_test(a_lease_lives_as_long_as_anybody_holds_it),
        cmocka_unit_test(only_what_was_sent_is_exported),
        cmocka_unit_test(a_device_that_copies_keeps_the_slot),
        cmocka_unit_test(opening_asks_for_what_waits),
        cmocka_unit_test(what_was_exported_is_free_when_a_parcel_is_opened),
        cmocka_unit_test(a_lease_with_more_references_than_are_counted_never_ends),
        cmocka_unit_test(a_message_that_is_thrown_away_frees_the_slot),
        cmocka_unit_test(a_forked_worker_sends),
        cmocka_unit_test(a_worker_that_was_executed_attaches),
        cmocka_unit_test(what_a_dead_worker_had_is_reclaimed),
        cmocka_unit_test(what_the_dead_sent_goes_last),
        cmocka_unit_test(who_makes_a_pool_has_its_place_from_then_on),
        cmocka_unit_test(a_pool_is_made_though_the_first_thread_has_ended),
        cmocka_unit_test(a_pool_that_finds_no_proc_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
