// SPDX-License-Identifier: Apache-2.0
/* descriptors.c - the program closes the descriptors of a shared pool, as daemons do, and opens
 * files of its own in their place: no byte of those changes, and the pool says what it lacks. */
#include "base/os.h"
#include "handoff/duo.h"
#include "pool/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

#define SLOT_BYTES (4 * MIB)
#define OWN_BYTES (16 * MIB) /* as long as the whole file of a pool of two slots */

/* What the system says to files that may be executed, and to those that never may; 0: it decides
 * itself. */
static int refuses_executable, refuses_sealed;

/* In place of the C library's. */
int memfd_create(const char *name, unsigned flags) {
    int refusal = flags & MFD_NOEXEC_SEAL ? refuses_sealed : refuses_executable;
    if (refusal) {
        errno = refusal;
        return -1;
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}

/* A file of the program's, in place of both descriptors of a pool. */
struct own {
    int numbers[2];
    unsigned char *bytes;
    blkcnt_t blocks;
};

static blkcnt_t blocks_of(int fd) {
    struct stat stat;
    assert_int_equal(fstat(fd, &stat), 0);
    return stat.st_blocks;
}

static struct own put_own(const ebb_pool *pool) {
    struct own own = {.numbers = {pool->shared->fd, pool->shared->life}};
    int fd = -1;
    assert_int_equal(os.file_make("own", OWN_BYTES, &fd), 0);
    own.bytes = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(own.bytes != MAP_FAILED);
    memset(own.bytes, 'D', OWN_BYTES / 2); /* what follows has no pages, and gets none */
    own.blocks = blocks_of(fd);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(dup2(fd, own.numbers[i]), own.numbers[i]);
    close(fd);
    return own;
}

/* Nothing came or went, and the descriptors are still the program's. */
static void expect_untouched(const struct own *own) {
    size_t others = 0;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(fcntl(own->numbers[i], F_GETFD) >= 0);
        assert_int_equal(blocks_of(own->numbers[i]), own->blocks);
    }
    for (size_t i = 0; i < OWN_BYTES / 2; i++)
        others += own->bytes[i] != 'D';
    assert_int_equal(others, 0);
}

static void expect_nothing_to_trim(ebb_pool *pool) {
    size_t left = 1;
    assert_int_equal(ebb_pool_trim_within(pool, 0, 1000000, &left), 0);
    assert_int_equal(left, 0);
}

static void drop_own(struct own *own) {
    munmap(own->bytes, OWN_BYTES);
    close(own->numbers[0]);
    close(own->numbers[1]);
}

static void the_programs_file_in_place_of_the_pools_stays_as_it_is(void **state) {
    (void)state;
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    void *block = block_of(region, 100000, 64);
    struct own own = put_own(pool);
    assert_no_block(ebb_region_alloc(region, 2 * MIB, 64), EBB_E_SHARED);
    assert_text_names("no longer");
    ebb_region other = OPEN(.pool = pool); /* in a slot that was never mapped */
    assert_false(ebb_region_is_open(other));
    assert_int_equal(ebb_last_error(), EBB_E_SHARED);
    assert_int_equal(ebb_pool_descriptor(pool), -1);
    assert_int_equal(ebb_last_error(), EBB_E_SHARED);
    assert_true(pattern_holds(block, 100000, 100000));
    assert_int_equal(ebb_region_close(region), 0);
    expect_nothing_to_trim(pool);
    expect_untouched(&own);
    pool_end(pool);
    expect_untouched(&own);
    drop_own(&own);
}

/* What is mapped and has its pages needs no descriptor. */
static void a_slot_that_is_mapped_serves_without_descriptors(void **state) {
    (void)state;
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 100000, 1);
    assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
    close(pool->shared->fd);
    close(pool->shared->life);
    parcel = send_pattern(pool, 100000, 2);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, 100000, 2));
    ebb_lease_drop(lease);
    expect_nothing_to_trim(pool);
    pool_end(pool);
}

static int open_with_own(ebb_pool *pool, int out, const void *context) {
    (void)out, (void)context;
    const struct shared *shared = pool->shared; /* its parent's place is closed since the fork */
    int own = -1;
    if (os.file_make("own", OWN_BYTES, &own) != 0 || dup2(own, shared->fd) < 0)
        return 1;
    if (ebb_region_is_open(OPEN(.pool = pool)) || ebb_last_error() != EBB_E_SHARED)
        return 2;
    return blocks_of(own) != 0;
}

static void a_child_that_closed_it_shares_nothing(void **state) {
    (void)state;
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    struct duo duo = duo_fork(pool, open_with_own, NULL);
    assert_int_equal(duo_end(&duo), 0);
    pool_end(pool);
}

static int hold_until_told(ebb_pool *pool, int out, const void *context) {
    const int *tell = context;
    char word = 'x';
    close(tell[1]); /* should its parent end before, it hears of that */
    ebb_region region = OPEN(.pool = pool);
    if (!ebb_region_alloc(region, 1000, 64) || !write_all(out, &word, 1))
        return 1;
    return !read_all(tell[0], &word, 1);
}

/* No lock is found on a file of the program's. */
static void the_living_are_not_taken_for_dead_without_it(void **state) {
    (void)state;
    int tell[2];
    char word;
    assert_int_equal(pipe(tell), 0);
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    struct duo duo = duo_fork(pool, hold_until_told, tell);
    assert_true(read_all(duo.in, &word, 1));
    struct own own = put_own(pool);
    assert_int_equal(ebb_pool_reclaim(pool, true), 0);
    assert_states(pool, 1, 0, 0);
    assert_true(write_all(tell[1], &word, 1));
    assert_int_equal(duo_end(&duo), 0);
    expect_untouched(&own);
    pool_end(pool);
    drop_own(&own);
    close(tell[0]);
    close(tell[1]);
}

/* Takes a place when told to, and writes until told again. */
static int write_in_between(ebb_pool *pool, int out, const void *context) {
    const int *tell = context;
    struct ebb_parcel parcel;
    char word = 'x';
    close(tell[1]);
    if (!read_all(tell[0], &word, 1))
        return 1;
    ebb_region region = OPEN(.pool = pool);
    void *block = ebb_region_alloc(region, 100000, 64);
    if (!block)
        return 2;
    pattern_fill(block, 100000, 3);
    if (!write_all(out, &word, 1) || !read_all(tell[0], &word, 1))
        return 3;
    return !pattern_holds(block, 100000, 3) || ebb_region_send(region, block, &parcel) != 0;
}

/* Who has the index since then is no dead incarnation of this process. */
static void a_lost_place_is_its_next_holders(void **state) {
    (void)state;
    int tell[2];
    char word = 'x';
    assert_int_equal(pipe(tell), 0);
    ebb_pool *pool = shared_pool(4, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool); /* so that a slot is mapped */
    assert_int_equal(ebb_region_close(region), 0);
    struct duo duo = duo_fork(pool, write_in_between, tell);
    close(pool->shared->fd);
    close(pool->shared->life);
    assert_true(write_all(tell[1], &word, 1) && read_all(duo.in, &word, 1));
    struct shared_living living = {{0}};
    assert_true(shared_is_alive(pool->shared, pool->shared->me + 1, &living)); /* the child */
    region = OPEN(.pool = pool);
    assert_false(ebb_region_is_open(region));
    assert_int_equal(ebb_last_error(), EBB_E_SHARED);
    assert_text_names("no place");
    assert_int_equal(ebb_pool_reclaim(pool, true), 0);
    assert_states(pool, 1, 0, 0);
    assert_true(write_all(tell[1], &word, 1));
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 1, 0);
    pool_end(pool);
    close(tell[0]);
    close(tell[1]);
}

static int tell_nothing(int fd, struct os_file_identity *identity) {
    (void)fd, (void)identity;
    return EACCES;
}

static int next_descriptor(void) {
    int next = dup(STDERR_FILENO);
    close(next);
    return next;
}

static void a_file_that_tells_nothing_makes_no_pool(void **state) {
    (void)state;
    struct os_table real = os;
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    int fd = ebb_pool_descriptor(pool), next = next_descriptor();
    os.file_identify = tell_nothing;
    assert_no_block(POOL(.kind = EBB_KIND_SHARED), EBB_E_MEMORY);
    assert_no_block(ebb_pool_attach(fd, NULL), EBB_E_MEMORY);
    os = real;
    assert_int_equal(next_descriptor(), next);
    pool_end(pool);
}

/* Those that the system gives to a file that is made so; -1: it makes none. */
static int seals_by(unsigned flags) {
    int fd = memfd_create("probe", MFD_CLOEXEC | flags);
    int seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : -1;
    if (fd >= 0)
        close(fd);
    return seals;
}

/* Linux with vm.memfd_noexec=2 makes no others. */
static void no_file_of_a_pool_can_be_executed(void **state) {
    (void)state;
    if (seals_by(MFD_NOEXEC_SEAL) < 0)
        skip();
    refuses_executable = EACCES;
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    refuses_executable = 0;
    assert_true(fcntl(ebb_pool_descriptor(pool), F_GET_SEALS) & F_SEAL_EXEC);
    ebb_pool *other = ebb_pool_attach(ebb_pool_descriptor(pool), NULL);
    assert_non_null(other);
    struct ebb_parcel parcel = send_pattern(pool, 100000, 1);
    ebb_lease *lease = ebb_parcel_open(other, &parcel);
    assert_true(lease_holds(lease, 100000, 1));
    ebb_lease_drop(lease);
    pool_end(other);
    pool_end(pool);
}

/* Linux before 6.3. What else it says is passed on. With vm.memfd_noexec=1 a later one makes no
 * others, whoever asks. */
static void a_system_that_knows_no_such_files_makes_others(void **state) {
    (void)state;
    int plain = seals_by(MFD_ALLOW_SEALING);
    if (plain < 0 || plain & F_SEAL_EXEC)
        skip();
    refuses_sealed = EINVAL;
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    refuses_sealed = EMFILE;
    assert_no_block(POOL(.kind = EBB_KIND_SHARED), EBB_E_MEMORY);
    refuses_sealed = 0;
    assert_false(fcntl(ebb_pool_descriptor(pool), F_GET_SEALS) & F_SEAL_EXEC);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_programs_file_in_place_of_the_pools_stays_as_it_is),
        cmocka_unit_test(a_slot_that_is_mapped_serves_without_descriptors),
        cmocka_unit_test(a_child_that_closed_it_shares_nothing),
        cmocka_unit_test(the_living_are_not_taken_for_dead_without_it),
        cmocka_unit_test(a_lost_place_is_its_next_holders),
        cmocka_unit_test(a_file_that_tells_nothing_makes_no_pool),
        cmocka_unit_test(no_file_of_a_pool_can_be_executed),
        cmocka_unit_test(a_system_that_knows_no_such_files_makes_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
