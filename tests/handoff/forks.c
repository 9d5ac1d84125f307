// SPDX-License-Identifier: Apache-2.0
/* forks.c - a forked child: what was its parent's stays its parent's. */
#include "base/os.h"
#include "handoff/duo.h"
#include "kit/dlpack.h"
#include "pool/shared.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (4 * MIB)

struct inherited {
    ebb_lease *lease;
    DLManagedTensor *tensor;
    ebb_region region;
    void *block;
};

/* Drops and closes all that it inherited, then works for itself. */
static int be_child(ebb_pool *pool, int out, const void *context) {
    const struct inherited *inherited = context;
    struct ebb_parcel parcel;
    EXPECT(lease_holds(inherited->lease, 70000, 3));
    EXPECT(ebb_region_send(inherited->region, NULL, &parcel) == EBB_E_STALE);
    EXPECT(ebb_pool_destroy(pool) == EBB_E_BUSY);
    EXPECT(ebb_region_close(inherited->region) == 0);
    EXPECT(ebb_pool_destroy(pool) == EBB_E_BUSY); /* leases that it could still read */
    give_back(inherited->tensor);
    for (unsigned i = 0; i < 5; i++) {
        EXPECT(try_send(pool, 100000 + i, i, &parcel));
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        EXPECT(lease && lease_holds(lease, 100000 + i, i));
        ebb_lease_drop(lease);
    }
    ebb_lease_drop(inherited->lease);
    EXPECT(try_send(pool, 5000, 9, &parcel) && write_all(out, &parcel, sizeof parcel));
    EXPECT(ebb_pool_reclaim(pool, true) == 0); /* its parent lives, and so does what it has */
    EXPECT(ebb_pool_destroy(pool) == 0);
    return 0;
}

typedef struct duo duo_start(ebb_pool *pool, duo_part *part, const void *context);

static void leave_the_parent_alone(duo_start *start) {
    ebb_pool *pool = shared_pool(4, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 70000, 3);
    struct inherited inherited = {.lease = ebb_parcel_open(pool, &parcel)};
    inherited.tensor = ebb_lease_export(inherited.lease, parcel.root, bytes8, 1,
                                        &(int64_t){70000}, NULL);
    inherited.region = OPEN(.pool = pool);
    inherited.block = block_of(inherited.region, 90000, 64);
    struct duo duo = start(pool, be_child, &inherited);
    struct ebb_parcel from_child;
    bool got = read_all(duo.in, &from_child, sizeof from_child);
    assert_int_equal(duo_end(&duo), 0);
    assert_true(got);
    assert_states(pool, 1, 1, 1);
    assert_true(lease_holds(inherited.lease, 70000, 3));
    assert_true(pattern_holds(inherited.block, 90000, 90000));
    give_back(inherited.tensor);
    assert_states(pool, 1, 1, 1);
    ebb_lease_drop(inherited.lease);
    ebb_lease *lease = ebb_parcel_open(pool, &from_child); /* its pool has gone */
    assert_true(lease_holds(lease, 5000, 9));
    ebb_lease_drop(lease);
    struct ebb_parcel own;
    assert_int_equal(ebb_region_send(inherited.region, inherited.block, &own), 0);
    lease = ebb_parcel_open(pool, &own);
    assert_true(lease_holds(lease, 90000, 90000));
    ebb_lease_drop(lease);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void a_child_leaves_its_parent_alone(void **state) {
    leave_the_parent_alone(duo_fork);
}

static void so_does_one_that_no_handler_of_forks_ran_in(void **state) {
    leave_the_parent_alone(duo_fork_raw);
}

/* A parent that dies is dead, though its child has all its descriptors. */
static int die_before_the_child(ebb_pool *pool, int out, const void *context) {
    struct ebb_parcel parcel;
    ebb_region region = OPEN(.pool = pool);
    pid_t grandchild;
    if (!try_send(pool, 5000, 1, &parcel) || !ebb_parcel_open(pool, &parcel) ||
        !ebb_region_is_open(region))
        return 1;
    grandchild = fork();
    if (grandchild < 0)
        return 1;
    if (grandchild == 0) {
        write_all(out, "g", 1);
        usleep(400000);
        _exit(0);
    }
    usleep(50000); /* the grandchild is up */
    return 0;
}

static void a_child_does_not_keep_its_parent_alive(void **state) {
    ebb_pool *pool = shared_pool(4, SLOT_BYTES);
    struct duo duo = duo_fork(pool, die_before_the_child, NULL);
    char byte;
    assert_true(read_all(duo.in, &byte, 1));
    int status;
    assert_int_equal(waitpid(duo.child, &status, 0), duo.child);
    assert_states(pool, 1, 0, 1);
    assert_int_equal(ebb_pool_reclaim(pool, false), 2);
    assert_states(pool, 0, 0, 0);
    close(duo.in);
    pool_end(pool);
}

/* Generations of children, each with a lease of its own in the same slot. */
static int be_generation(ebb_pool *pool, int out, const void *context) {
    const unsigned *left = context;
    struct ebb_parcel parcel;
    EXPECT(try_send(pool, 30000, *left, &parcel));
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    EXPECT(lease);
    if (*left) {
        unsigned less = *left - 1;
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            ebb_lease_drop(lease); /* the parent's: nothing */
            _exit(be_generation(pool, out, &less));
        }
        int status;
        waitpid(child, &status, 0);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    EXPECT(lease_holds(lease, 30000, *left));
    ebb_lease_drop(lease);
    return 0;
}

static void generations_of_children_work(void **state) {
    ebb_pool *pool = shared_pool(8, SLOT_BYTES);
    unsigned depth = 5;
    struct duo duo = duo_fork(pool, be_generation, &depth);
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static bool device_is_busy(void *context, ebb_lease *lease) {
    return *(bool *)context;
}

static int end_pool(ebb_pool *pool, int out, const void *context) {
    EXPECT(ebb_pool_destroy(pool) == 0);
    return 0;
}

/* What the child opens is asked for as its parent's leases are. */
static int wait_for_a_device(ebb_pool *pool, int out, const void *context) {
    struct ebb_parcel parcel;
    EXPECT(try_send(pool, 5000, 2, &parcel));
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    EXPECT(lease && lease_holds(lease, 5000, 2));
    ebb_lease_drop(lease);
    EXPECT(ebb_pool_destroy(pool) == EBB_E_BUSY);
    *(bool *)context = true;
    EXPECT(ebb_pool_destroy(pool) == 0);
    return 0;
}

/* A device copies for the parent, not for the child. */
static void wait_for_the_parents_device(duo_start *start) {
    bool done = false;
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    assert_int_equal(ebb_pool_set_release_check(pool, device_is_busy, &done), 0);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    ebb_lease_drop(ebb_parcel_open(pool, &parcel));
    struct duo duo = start(pool, end_pool, NULL);
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 0, 1);
    duo = start(pool, wait_for_a_device, &done);
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 0, 1);
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    done = true;
    pool_end(pool);
}

static void what_waits_for_a_device_is_the_parents(void **state) {
    wait_for_the_parents_device(duo_fork);
    wait_for_the_parents_device(duo_fork_raw);
}

struct forking_check {
    pid_t (*make)(void);
    bool answer; /* of the child */
    pid_t child;
};

static bool fork_in_a_check(void *context, ebb_lease *lease) {
    struct forking_check *check = context;
    if (check->child < 0)
        check->child = check->make();
    return check->child == 0 && check->answer;
}

static int has_no_slot(ebb_pool *pool) {
    EXPECT(!ebb_region_is_open(OPEN(.pool = pool))); /* its parent's device reads */
    EXPECT(ebb_pool_destroy(pool) == 0);
    return 0;
}

/* The child goes on in the midst of the drop. */
static void fork_while_a_device_is_asked_for(struct forking_check check) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    int status;
    assert_int_equal(ebb_pool_set_release_check(pool, fork_in_a_check, &check), 0);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    ebb_lease_drop(ebb_parcel_open(pool, &parcel));
    if (check.child == 0)
        _exit(has_no_slot(pool));
    assert_int_equal(waitpid(check.child, &status, 0), check.child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_states(pool, 0, 0, 1);
    check.child = 0; /* the answer is its own from now on */
    check.answer = true;
    assert_int_equal(ebb_pool_reclaim(pool, false), 0);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

static void a_child_of_a_check_has_nothing_of_the_lease(void **state) {
    for (int answer = 0; answer < 2; answer++) {
        fork_while_a_device_is_asked_for((struct forking_check){fork, answer, -1});
        fork_while_a_device_is_asked_for((struct forking_check){fork_raw, answer, -1});
    }
}

/* ---- what a child does to regions of its parent ---- */

static int count_run(void *context) {
    (*(unsigned *)context)++;
    return 0;
}

struct lost {
    ebb_region region, host;
    struct ebb_tensor *tensor;
};

/* Tries to send an object, closes, and has the place of the region for itself. */
static int take_the_place(ebb_pool *pool, int out, const void *context) {
    const struct lost *lost = context;
    struct ebb_parcel parcel;
    EXPECT(write_all(out, "c", 1)); /* its parent allocates in the meantime */
    struct ebb_tensor *large = tensor_of_bytes(lost->host, 200000);
    EXPECT(ebb_region_send_object(lost->region, large, &parcel) == EBB_E_STALE);
    EXPECT(ebb_region_send_object(lost->region, lost->tensor, &parcel) == EBB_E_STALE);
    EXPECT(ebb_region_close(lost->region) == 0);
    EXPECT(!ebb_region_is_open(OPEN(.pool = pool))); /* still its parent's */
    return 0;
}

/* What a cleanup counts lies in shared memory: who ran it for the parent would be seen there. */
static void a_child_does_not_write_into_its_parents_region(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct lost lost = {.region = OPEN(.pool = pool), .host = OPEN(.name = "host")};
    lost.tensor = tensor_of_bytes(lost.region, 5000);
    unsigned *runs = ebb_region_alloc_zeroed(lost.region, sizeof *runs, 16);
    struct ebb_cleanup cleanup = {.run = count_run, .data = runs};
    assert_int_equal(ebb_cleanup_add(lost.region, &cleanup), 0);
    char byte, *blocks[30];
    struct duo duo = duo_fork(pool, take_the_place, &lost);
    assert_true(read_all(duo.in, &byte, 1));
    for (unsigned i = 0; i < 30; i++)
        blocks[i] = block_of(lost.region, 10000, 64);
    assert_int_equal(duo_end(&duo), 0);
    for (unsigned i = 0; i < 30; i++)
        assert_true(pattern_holds(blocks[i], 10000, 10000));
    assert_int_equal(*runs, 0);
    assert_int_equal(ebb_cleanup_run(&cleanup), 0);
    assert_int_equal(*runs, 1);
    assert_int_equal(ebb_region_close(lost.region), 0);
    assert_int_equal(ebb_region_close(lost.host), 0);
    pool_end(pool);
}

/* ---- what was lent at the fork ---- */

struct lent {
    ebb_region shared, host, third;
    struct ebb_tensor *there, *here; /* of the shared region, lent to the other; and of that */
    struct ebb_tensor *lent_on[2];       /* the same, and then to the third */
    struct ebb_cleanup own;          /* of the shared region */
};

static int close_among_lent(ebb_pool *pool, int out, const void *context) {
    const struct lent *lent = context;
    unsigned runs = 0;
    struct ebb_cleanup cleanup = {.run = count_run, .data = &runs};
    EXPECT(ebb_region_close(lent->shared) == 0);
    EXPECT(!lent->own.list); /* removing it would be nothing */
    EXPECT(ebb_region_list_objects(lent->host, NULL, 0) == 1); /* back */
    EXPECT(ebb_region_list_objects(lent->third, NULL, 0) == 1);
    for (unsigned i = 0; i < 100; i++) { /* where the shared region had its heads */
        ebb_region other = OPEN(.name = "other");
        memset(block_of(other, 20000, 64), 0x55, 20000);
        EXPECT(i || ebb_cleanup_add(other, &cleanup) == 0);
    }
    EXPECT(ebb_check_pool(ebb_pool_default()) == 0);
    EXPECT(ebb_object_end(lent->here) == 0);
    EXPECT(ebb_region_close(lent->host) == 0);
    EXPECT(ebb_region_list_objects(lent->third, NULL, 0) == 0);
    EXPECT(ebb_region_close(lent->third) == 0);
    EXPECT(cleanup.list && runs == 0);
    return 0;
}

/* Neither side of what two regions share is left with what the other one had. */
static void a_child_closes_what_lends_and_borrows(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    unsigned runs = 0;
    struct lent lent = {.shared = OPEN(.pool = pool), .host = OPEN(.name = "host")};
    lent.own = (struct ebb_cleanup){.run = count_run, .data = &runs};
    assert_int_equal(ebb_cleanup_add(lent.shared, &lent.own), 0);
    lent.there = tensor_of_bytes(lent.shared, 5000);
    lent.here = tensor_of_bytes(lent.host, 5000);
    assert_int_equal(ebb_object_borrow(lent.there, lent.host), 0);
    assert_int_equal(ebb_object_borrow(lent.here, lent.shared), 0);
    lent.third = OPEN(.name = "third");
    lent.lent_on[0] = tensor_of_bytes(lent.shared, 5000);
    lent.lent_on[1] = tensor_of_bytes(lent.host, 5000);
    assert_int_equal(ebb_object_borrow(lent.lent_on[0], lent.host), 0);
    assert_int_equal(ebb_object_borrow(lent.lent_on[1], lent.shared), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ebb_object_borrow(lent.lent_on[i], lent.third), 0);
    struct duo duo = duo_fork(pool, close_among_lent, &lent);
    assert_int_equal(duo_end(&duo), 0);
    assert_int_equal(ebb_region_close(lent.shared), 0);
    assert_int_equal(runs, 1);
    assert_int_equal(ebb_region_close(lent.host), 0);
    assert_int_equal(ebb_region_close(lent.third), 0);
    pool_end(pool);
}

/* ---- a slot comes back ---- */

static int use_what_became_free(ebb_pool *pool, int out, const void *context) {
    const struct lost *lost = context;
    EXPECT(ebb_region_close(lost->region) == 0);
    for (;;) {
        ebb_region region = OPEN(.pool = pool);
        if (ebb_region_is_open(region)) {
            EXPECT(ebb_region_alloc(region, 500000, 64));
            EXPECT(ebb_region_close(region) == 0);
            return 0;
        }
        usleep(1000);
    }
}

/* A slot that the parent had at the fork serves the child, once both are done with it. */
static void a_slot_of_the_parent_serves_the_child(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct lost lost = {.region = OPEN(.pool = pool)};
    block_of(lost.region, 100000, 64);
    struct duo duo = duo_fork(pool, use_what_became_free, &lost);
    assert_int_equal(ebb_region_close(lost.region), 0);
    assert_int_equal(duo_end(&duo), 0);
    pool_end(pool);
}

static int fork_here(void *context) {
    pid_t child = fork();
    *(pid_t *)context = child;
    return child < 0;
}

/* The child of a cleanup goes on in the midst of the sending. */
static int use_what_was_being_sent(ebb_pool *pool, int sent) {
    ebb_region region = {0};
    EXPECT(sent == EBB_E_STALE);
    for (unsigned i = 0; i < 2000 && !ebb_region_is_open(region); i++) {
        usleep(1000);
        region = OPEN(.pool = pool);
    }
    EXPECT(ebb_region_is_open(region) && ebb_region_close(region) == 0);
    return 0;
}

static void a_child_that_was_forked_while_sending_has_the_slot(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    pid_t child = -1;
    struct ebb_cleanup cleanup = {.run = fork_here, .data = &child};
    struct ebb_parcel parcel;
    assert_int_equal(ebb_cleanup_add(region, &cleanup), 0);
    int sent = ebb_region_send(region, NULL, &parcel), status;
    if (child == 0)
        _exit(use_what_was_being_sent(pool, sent));
    assert_true(child > 0 && sent == 0);
    assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pool_end(pool);
}

/* ---- exports that were out at the fork ---- */

struct exported {
    ebb_region region;
    DLManagedTensor *tensor;
    bool close; /* the child has it open, and closes it first */
};

static int give_back_and_open(ebb_pool *pool, int out, const void *context) {
    const struct exported *exported = context;
    if (exported->close)
        EXPECT(ebb_region_close(exported->region) == 0);
    give_back(exported->tensor);
    for (unsigned left = 5000; left; left--) {
        ebb_region region = OPEN(.pool = pool);
        if (ebb_region_is_open(region)) {
            EXPECT(ebb_region_alloc(region, 500000, 64));
            EXPECT(ebb_region_close(region) == 0);
            EXPECT(ebb_pool_destroy(pool) == 0);
            return 0;
        }
        usleep(1000);
    }
    return 1;
}

/* What the child inherited under an export keeps its slot from the child until that is back. */
static void a_slot_that_was_exported_serves_the_child(void **state) {
    for (int close = 0; close < 2; close++) {
        ebb_pool *pool = shared_pool(1, SLOT_BYTES);
        struct exported exported = {.region = OPEN(.pool = pool), .close = close};
        exported.tensor = share(tensor_of_bytes(exported.region, 100000));
        if (!close)
            assert_int_equal(ebb_region_close(exported.region), 0);
        struct duo duo = duo_fork(pool, give_back_and_open, &exported);
        if (close)
            assert_int_equal(ebb_region_close(exported.region), 0);
        give_back(exported.tensor);
        assert_int_equal(ebb_pool_reclaim(pool, false), 0); /* sees what came back */
        assert_int_equal(duo_end(&duo), 0);
        assert_states(pool, 0, 0, 0);
        pool_end(pool);
    }
}

/* ---- what was sent from a region that the child has, too ---- */

struct sent_later {
    ebb_region region, step;
    void *block;
    DLManagedTensor *tensor;
    int parcels[2];
};

/* Ends all that it inherited of the slot while it reads what came from there. */
static int read_and_close(ebb_pool *pool, int out, const void *context) {
    const struct sent_later *later = context;
    struct ebb_parcel parcel;
    EXPECT(read_all(later->parcels[0], &parcel, sizeof parcel));
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    EXPECT(lease && lease_holds(lease, 90000, 3));
    EXPECT(ebb_region_release(later->region, later->block) == 0); /* where the sent one lies */
    EXPECT(lease_holds(lease, 90000, 3));
    EXPECT(ebb_region_close(later->step) == 0);
    EXPECT(lease_holds(lease, 90000, 3));
    EXPECT(ebb_region_close(later->region) == 0);
    EXPECT(lease_holds(lease, 90000, 3));
    give_back(later->tensor);
    EXPECT(ebb_pool_reclaim(pool, false) == 0);
    EXPECT(lease_holds(lease, 90000, 3));
    ebb_lease_drop(lease);
    EXPECT(ebb_pool_destroy(pool) == 0);
    return 0;
}

static void a_child_reads_what_was_sent_and_closes_what_it_inherited(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    struct sent_later later = {.region = OPEN(.pool = pool)};
    assert_int_equal(pipe(later.parcels), 0);
    later.tensor = share(tensor_of_bytes(later.region, 100000));
    void *block = ebb_region_alloc(later.region, 90000, 64);
    pattern_fill(block, 90000, 3);
    later.block = block;
    later.step = OPEN(.parent = later.region);
    block_of(later.step, 70000, 64);
    block_of(later.step, 70, 8);
    struct duo duo = duo_fork(pool, read_and_close, &later);
    struct ebb_parcel parcel;
    give_back(later.tensor);
    assert_int_equal(ebb_region_send(later.region, block, &parcel), 0);
    assert_true(write_all(later.parcels[1], &parcel, sizeof parcel));
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 0, 0);
    close(later.parcels[0]);
    close(later.parcels[1]);
    pool_end(pool);
}

/* ---- a fork while a lease ends ---- */

static void (*real_pass)(const char *step);
static ebb_pool *ending;
static int ended; /* exit status of the child */

static void fork_before_the_slot_is_free(const char *step) {
    if (strcmp(step, "drop: last") != 0)
        return;
    pid_t child = fork();
    if (child < 0)
        return; /* `ended` says so */
    if (child == 0)
        _exit(ebb_pool_destroy(ending) == 0 ? 0 : 1);
    waitpid(child, &ended, 0);
}

/* As if another thread had forked: nobody in the child has the lease. */
static void a_lease_that_ends_at_a_fork_has_ended(void **state) {
    ending = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(ending, 5000, 1);
    ebb_lease *lease = ebb_parcel_open(ending, &parcel);
    assert_non_null(lease);
    ended = -1;
    real_pass = os.pass;
    os.pass = fork_before_the_slot_is_free;
    ebb_lease_drop(lease);
    os.pass = real_pass;
    assert_int_equal(ended, 0);
    assert_states(ending, 0, 0, 0);
    pool_end(ending);
}

/* ---- a fork while a pool ends ---- */

static int (*real_cover)(void *addr, size_t bytes);
static pid_t forked;

static int fork_and_cover(void *addr, size_t bytes) {
    forked = forked ? forked : fork();
    assert_true(forked >= 0);
    if (!forked) {
        alarm(20);
        for (;;)
            pause();
    }
    return real_cover(addr, bytes);
}

/* The child knows nothing of the pool, and has nothing that says that its parent is at it. */
static void a_pool_that_ends_at_a_fork_has_ended(void **state) {
    ebb_pool *here = shared_pool(2, SLOT_BYTES);
    ebb_pool *there = ebb_pool_attach(ebb_pool_descriptor(here), NULL);
    (void)send_pattern(there, 5000, 1);
    assert_int_equal(ebb_pool_reclaim(here, true), 0);
    real_cover = os.cover;
    os.cover = fork_and_cover;
    int result = ebb_pool_destroy(there);
    os.cover = real_cover;
    assert_true(forked > 0);
    size_t reclaimed = ebb_pool_reclaim(here, true);
    kill(forked, SIGKILL);
    waitpid(forked, NULL, 0);
    assert_int_equal(result, 0);
    assert_int_equal(reclaimed, 1);
    pool_end(here);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_leaves_its_parent_alone),
        cmocka_unit_test(so_does_one_that_no_handler_of_forks_ran_in),
        cmocka_unit_test(a_child_does_not_keep_its_parent_alive),
        cmocka_unit_test(generations_of_children_work),
        cmocka_unit_test(what_waits_for_a_device_is_the_parents),
        cmocka_unit_test(a_child_of_a_check_has_nothing_of_the_lease),
        cmocka_unit_test(a_child_does_not_write_into_its_parents_region),
        cmocka_unit_test(a_child_closes_what_lends_and_borrows),
        cmocka_unit_test(a_slot_of_the_parent_serves_the_child),
        cmocka_unit_test(a_child_that_was_forked_while_sending_has_the_slot),
        cmocka_unit_test(a_slot_that_was_exported_serves_the_child),
        cmocka_unit_test(a_child_reads_what_was_sent_and_closes_what_it_inherited),
        cmocka_unit_test(a_lease_that_ends_at_a_fork_has_ended),
        cmocka_unit_test(a_pool_that_ends_at_a_fork_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
