// SPDX-License-Identifier: Apache-2.0
/* raw_forks.c - children that the C library is not asked for, so that no handler of forks runs: see
 * forks.c for what they do as others do. */
#include "base/os.h"
#include "handoff/duo.h"
#include "kit/dlpack.h"
#include "pool/shared.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (4 * MIB)

static int refuse_to_wipe(void *addr, size_t bytes) {
    return -1;
}

static int agree_and_do_nothing(void *addr, size_t bytes) {
    return 0;
}

static int is_child_of(const ebb_region *region, unsigned before) {
    struct ebb_parcel parcel;
    EXPECT(ebb_forks() == before + 1);
    EXPECT(ebb_region_send(*region, NULL, &parcel) == EBB_E_STALE);
    return 0;
}

static int expect_counted(pid_t (*make)(void)) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 2, .slot_bytes = SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    EXPECT(ebb_region_is_open(region));
    unsigned before = ebb_forks();
    pid_t child = make();
    EXPECT(child >= 0);
    if (child == 0)
        _exit(is_child_of(&region, before));
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    return 0;
}

typedef int wipe(void *addr, size_t bytes);

static int fork_where_no_page_is_wiped(ebb_pool *none, int out, const void *context) {
    os.wipe_in_children = *(wipe *const *)context;
    return expect_counted(fork);
}

/* These tests are the first of all: later there is a page. */
static void forks_are_counted_where_no_page_is_wiped(void **state) {
    wipe *const ways[] = {refuse_to_wipe, agree_and_do_nothing};
    for (unsigned i = 0; i < 2; i++) {
        struct duo duo = duo_fork(NULL, fork_where_no_page_is_wiped, &ways[i]);
        assert_int_equal(duo_end(&duo), 0);
    }
}

static int have_a_page_later(ebb_pool *none, int out, const void *context) {
    wipe *real = os.wipe_in_children;
    os.wipe_in_children = refuse_to_wipe;
    EXPECT(POOL(.kind = EBB_KIND_SHARED, .slots = 2, .slot_bytes = SLOT_BYTES));
    os.wipe_in_children = real;
    return expect_counted(fork_raw);
}

static void a_page_that_was_not_to_be_had_is_asked_for_again(void **state) {
    struct duo duo = duo_fork(NULL, have_a_page_later, NULL);
    assert_int_equal(duo_end(&duo), 0);
}

/* The same call of both: their regions do not meet in one slot. */
static int write_beside(ebb_pool *pool, int out, const void *context) {
    ebb_region region = OPEN(.pool = pool);
    EXPECT(ebb_region_is_open(region));
    pattern_fill(ebb_region_alloc(region, 100000, 64), 100000, 2);
    EXPECT(write_all(out, "w", 1));
    const int *ends = context;
    char byte;
    close(ends[1]);
    EXPECT(!read_all(ends[0], &byte, 1)); /* until the parent has looked */
    return 0;
}

static void a_child_that_no_handler_ran_in_has_slots_of_its_own(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    int ends[2];
    char byte;
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1); /* this process has a place */
    assert_int_equal(pipe(ends), 0);
    unsigned before = ebb_forks();
    struct duo duo = duo_fork_raw(pool, write_beside, ends);
    assert_int_equal(ebb_forks(), before);
    close(ends[0]);
    assert_true(read_all(duo.in, &byte, 1));
    assert_states(pool, 1, 1, 0);
    ebb_region none = OPEN(.pool = pool);
    bool took = ebb_region_is_open(none);
    close(ends[1]);
    assert_int_equal(duo_end(&duo), 0);
    assert_false(took);
    assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
    assert_int_equal(ebb_pool_reclaim(pool, false), 1);
    pool_end(pool);
}

static int settle(ebb_pool *pool, pid_t (*make)(void), int life) {
    unsigned before = ebb_forks();
    pid_t child = make();
    EXPECT(child >= 0);
    if (child == 0)
        _exit(ebb_forks() != before + 1 ||
              (fcntl(life, F_GETFD) >= 0 && !os.shares_files(getppid())));
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    return 0;
}

static pid_t fork_with_the_same_files(void) {
    return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
}

static int reclaim_nothing(ebb_pool *pool, int out, const void *context) {
    EXPECT(ebb_pool_reclaim(pool, true) == 0);
    return 0;
}

/* It closes the sign of life of its parent if that is a copy of its own, and else not. */
static void a_child_leaves_descriptors_that_it_shares(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    int life = pool->shared->life;
    assert_int_equal(settle(pool, fork_raw, life), 0);
    assert_int_equal(settle(pool, fork_with_the_same_files, life), 0);
    assert_true(fcntl(life, F_GETFD) >= 0);
    struct duo duo = duo_fork(pool, reclaim_nothing, NULL);
    assert_int_equal(duo_end(&duo), 0);
    assert_true(lease_holds(lease, 5000, 1));
    ebb_lease_drop(lease);
    pool_end(pool);
}

/* What its parent has given back since is free, but not for a child that has a region there. */
static int trim_until_nothing_is_left(ebb_pool *pool, int out, const void *context) {
    const int *tell = context;
    char word;
    size_t left = 1;
    close(tell[1]);
    EXPECT(read_all(tell[0], &word, 1));
    EXPECT(ebb_pool_trim_within(pool, 0, 1000000, &left) == 0);
    EXPECT(left == 0);
    return 0;
}

static void a_child_is_not_told_to_trim_what_it_has(void **state) {
    duo_part *part = trim_until_nothing_is_left;
    for (int raw = 0; raw < 2; raw++) {
        ebb_pool *pool = shared_pool(2, SLOT_BYTES);
        ebb_region region = OPEN(.pool = pool);
        size_t left = 1;
        int tell[2];
        block_of(region, 500000, 64);
        assert_int_equal(pipe(tell), 0);
        struct duo duo = raw ? duo_fork_raw(pool, part, tell) : duo_fork(pool, part, tell);
        assert_int_equal(ebb_region_close(region), 0);
        assert_true(write_all(tell[1], "w", 1));
        assert_int_equal(duo_end(&duo), 0);
        assert_in_range(ebb_pool_trim_within(pool, 0, 0, &left), 500000, SLOT_BYTES);
        assert_int_equal(left, 0);
        pool_end(pool);
        close(tell[0]);
        close(tell[1]);
    }
}

/* ---- what a child lets go of ---- */

enum { KINDS = 2 }; /* large and small blocks */

struct let_go {
    ebb_region region;
    DLManagedTensor *exported;
    int tell[2];
};

/* Gives back what was exported, and finds what another thread has released. */
static int let_go(ebb_pool *pool, int out, const void *context) {
    const struct let_go *had = context;
    char word;
    close(had->tell[1]);
    EXPECT(read_all(had->tell[0], &word, 1));
    give_back(had->exported);
    EXPECT(stats_of(had->region).blocks.current == 1);
    EXPECT(ebb_region_close(had->region) == 0);
    return 0;
}

/* Also in checked builds, which write over what is released. */
static void what_a_child_lets_go_of_is_its_parents(void **state) {
    static const size_t bytes[KINDS] = {100000, 300};
    for (int raw = 0; raw < 2; raw++) {
        ebb_pool *pool = shared_pool(1, SLOT_BYTES);
        struct let_go had = {.region = OPEN(.pool = pool)};
        void *released[KINDS], *placed[KINDS];
        block_of(had.region, 300, 16); /* stays, so that its neighbours are had again */
        struct ebb_tensor *tensor = tensor_of_bytes(had.region, 70000);
        had.exported = share(tensor);
        assert_int_equal(ebb_object_end(tensor), 0);
        for (unsigned i = 0; i < KINDS; i++) {
            released[i] = block_of(had.region, bytes[i], 16);
            assert_int_equal(ebb_region_release_remote(had.region, released[i]), 0);
        }
        assert_int_equal(pipe(had.tell), 0);
        struct duo duo = raw ? duo_fork_raw(pool, let_go, &had) : duo_fork(pool, let_go, &had);
        assert_int_equal(stats_of(had.region).blocks.current, 2); /* under the export, too */
        for (unsigned i = 0; i < KINDS; i++) {
            placed[i] = block_of(had.region, bytes[i], 16);
            assert_ptr_equal(placed[i], released[i]); /* or the test would show nothing */
        }
        assert_true(write_all(had.tell[1], "w", 1));
        assert_int_equal(duo_end(&duo), 0);
        assert_true(export_holds(had.exported));
        for (unsigned i = 0; i < KINDS; i++)
            assert_true(pattern_holds(placed[i], bytes[i], (unsigned)bytes[i]));
        give_back(had.exported);
        assert_int_equal(ebb_region_close(had.region), 0);
        pool_end(pool);
        close(had.tell[0]);
        close(had.tell[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_are_counted_where_no_page_is_wiped),
        cmocka_unit_test(a_page_that_was_not_to_be_had_is_asked_for_again),
        cmocka_unit_test(a_child_that_no_handler_ran_in_has_slots_of_its_own),
        cmocka_unit_test(a_child_leaves_descriptors_that_it_shares),
        cmocka_unit_test(a_child_is_not_told_to_trim_what_it_has),
        cmocka_unit_test(what_a_child_lets_go_of_is_its_parents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
