// SPDX-License-Identifier: Apache-2.0
/* backing.c - pages of the memory file behind a slot: all that fits can be had, whatever the slot
 * was left like, and no page comes or stays that nobody counts. */
#include "base/os.h"
#include "handoff/duo.h"
#include "pool/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (4 * MIB)
#define SLOT_PAGES (SLOT_BYTES / PAGE)

static struct os_table real;

static size_t file_bytes(ebb_pool *pool) {
    struct stat stat;
    assert_int_equal(fstat(ebb_pool_descriptor(pool), &stat), 0);
    return (size_t)stat.st_blocks * 512;
}

/* ---- what fits ---- */

/* A region with a block of so many pages, with a child or without. */
static void fill_pages(ebb_pool *pool, size_t pages, bool keeps) {
    ebb_region region = OPEN(.pool = pool);
    assert_true(ebb_region_is_open(region));
    if (keeps)
        assert_true(ebb_region_is_open(OPEN(.parent = region)));
    void *block = ebb_region_alloc(region, pages * PAGE, 64);
    if (!block)
        print_error("%zu pages: %s\n", pages, ebb_last_error_text());
    assert_non_null(block);
    assert_int_equal(ebb_region_close(region), 0);
}

/* The pages that are hot, and those that are cold behind them, need not be enough alone. */
static void an_empty_slot_has_room_for_all_that_it_can_hold(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    for (unsigned keeps = 0; keeps < 2; keeps++)
        for (size_t before = 1; before < SLOT_PAGES; before += 70)
            for (size_t pages = before + 1; pages < SLOT_PAGES - 40; pages += 90) {
                ebb_pool_trim(pool, 0);
                fill_pages(pool, before, false);
                fill_pages(pool, pages, keeps);
                ebb_check_pool(pool);
            }
    pool_end(pool);
}

/* The hot pages that are most may lie in the middle. */
static void the_end_of_a_slot_is_used_as_one(void **state) {
    static const size_t pages[] = {400, 100, 200};
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool), children[3];
    for (unsigned i = 0; i < 3; i++) {
        children[i] = OPEN(.parent = root, .hint_bytes = pages[i] * PAGE);
        assert_non_null(ebb_region_alloc(children[i], pages[i] * PAGE, 64));
    }
    assert_int_equal(ebb_region_close(children[0]), 0);
    assert_int_equal(ebb_region_close(children[2]), 0);
    assert_non_null(ebb_region_alloc(root, 450 * PAGE, 64));
    ebb_check_pool(pool);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* The steps of a site find their pages as they left them, if nobody needs them more: 2.4 MB. */
static ebb_site *make_kept(ebb_pool *pool, ebb_region root) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "kept", .pool = pool));
    for (unsigned i = 0; i < 12; i++) {
        ebb_step step = ebb_step_begin_under(site, root, 0);
        for (unsigned k = 0; k < 6; k++)
            block_of(step.region, 400000, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    return site;
}

static void pages_that_are_kept_make_room(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool);
    ebb_site *site = make_kept(pool, root);
    assert_non_null(ebb_region_alloc(root, 2500000, 64));
    ebb_check_pool(pool);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* No page of a slot can be given back: neither the few that are hot beside them. */
static void pages_that_are_kept_make_room_under_a_limit(void **state) {
    ebb_pool *pool = shared_pool(1, 4 * SLOT_BYTES);
    assert_int_equal(ebb_pool_set_reserved_limit(pool, 3 * MIB), 0);
    ebb_region root = OPEN(.pool = pool);
    ebb_site *site = make_kept(pool, root);
    ebb_region child = OPEN(.parent = root);
    block_of(child, 100000, 64);
    assert_int_equal(ebb_region_close(child), 0);
    assert_non_null(ebb_region_alloc(root, 2 * MIB, 64));
    ebb_check_pool(pool);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* ---- the system says no ---- */

static int back_half(int fd, size_t offset, size_t bytes) {
    int reason = real.file_back(fd, offset, bytes / 2 / PAGE * PAGE);
    return reason ? reason : ENOSPC;
}

static void what_cannot_be_had_whole_is_given_back(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    void *block = block_of(region, 100000, 64);
    size_t before = file_bytes(pool);
    real = os;
    os.file_back = back_half;
    assert_no_block(ebb_region_alloc(region, 2 * MIB, 64), EBB_E_NO_SPACE);
    os = real;
    assert_int_equal(file_bytes(pool), before);
    assert_true(pattern_holds(block, 100000, 100000));
    block_of(region, 2 * MIB, 64);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

static int enter_none(void *addr, size_t bytes) {
    (void)addr, (void)bytes;
    return ENOMEM;
}

static void what_cannot_be_entered_is_given_back(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 100000, 64);
    size_t before = file_bytes(pool);
    real = os;
    os.populate = enter_none;
    assert_no_block(ebb_region_alloc(region, 2 * MIB, 64), EBB_E_NO_SPACE);
    os = real;
    assert_int_equal(file_bytes(pool), before);
    block_of(region, 2 * MIB, 64);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

static int back_none(int fd, size_t offset, size_t bytes) {
    (void)fd, (void)offset, (void)bytes;
    return ENOSPC;
}

/* Neither what is hot nor what is cold is enough alone, but there is room. */
static void a_slot_with_room_is_not_said_to_be_full(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    fill_pages(pool, 400, false);
    ebb_region region = OPEN(.pool = pool);
    real = os;
    os.file_back = back_none;
    assert_no_block(ebb_region_alloc(region, 700 * PAGE, 64), EBB_E_NO_SPACE);
    os = real;
    assert_text_names("the system has none");
    ebb_check_pool(pool);
    assert_non_null(ebb_region_alloc(region, 700 * PAGE, 64));
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* As many pages as will do are there, though others have kept them. */
static void pages_that_are_kept_do_where_there_are_no_others(void **state) {
    ebb_pool *pool = shared_pool(1, 4 * SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool);
    ebb_site *site = make_kept(pool, root);
    real = os;
    os.file_back = back_none;
    assert_no_block(ebb_region_alloc(root, 2 * SLOT_BYTES, 64), EBB_E_NO_SPACE);
    assert_null(ebb_region_alloc(root, 1, 3));
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
    block_of(root, 2 * MIB, 64);
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT); /* still the last that failed */
    os = real;
    ebb_check_pool(pool);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

static bool allow_no_slab(enum os_acquisition what) {
    return what != OS_SLAB && real.allow(what);
}

/* Addresses have tables beside them: it may be memory for these that is missing. */
static void addresses_are_not_said_to_be_missing(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    real = os;
    os.allow = allow_no_slab;
    assert_false(ebb_region_is_open(OPEN(.pool = pool)));
    os = real;
    assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
    assert_text_names("no addresses left");
    assert_text_names("or no memory to open them");
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

/* ---- pages of a parent ---- */

struct inherited {
    ebb_region region;
    int grown[2]; /* tells the child that its parent has more pages than it knows of */
    bool is_full; /* the system is, for the child */
};

static int grow_what_is_the_parents(ebb_pool *pool, int out, const void *context) {
    const struct inherited *inherited = context;
    char byte;
    (void)pool, (void)out;
    if (!read_all(inherited->grown[0], &byte, 1))
        return 1;
    if (inherited->is_full)
        os.file_back = back_none;
    if (ebb_region_alloc(inherited->region, MIB, 64))
        return 2;
    return ebb_last_error() == EBB_E_STALE ? 0 : 3;
}

/* Neither the pages go, nor what is known of them. */
static void a_child_leaves_the_pages_of_its_parent(void **state) {
    for (unsigned is_full = 0; is_full < 2; is_full++) {
        ebb_pool *pool = shared_pool(1, SLOT_BYTES);
        struct inherited inherited = {.region = OPEN(.pool = pool), .is_full = is_full};
        block_of(inherited.region, 100000, 64);
        assert_int_equal(pipe(inherited.grown), 0);
        struct duo duo = duo_fork(pool, grow_what_is_the_parents, &inherited);
        void *block = block_of(inherited.region, 3 * MIB, 64);
        size_t bytes = file_bytes(pool);
        uint64_t reserved = pool_stats_of(pool).reserved.current;
        assert_true(write_all(inherited.grown[1], "g", 1));
        assert_int_equal(duo_end(&duo), 0);
        assert_int_equal(file_bytes(pool), bytes);
        assert_true(pattern_holds(block, 3 * MIB, 3 * MIB));
        assert_int_equal(ebb_region_close(inherited.region), 0);
        assert_int_equal(ebb_region_close(OPEN(.pool = pool)), 0);
        assert_int_equal(pool_stats_of(pool).reserved.current, reserved);
        close(inherited.grown[0]);
        close(inherited.grown[1]);
        pool_end(pool);
    }
}

/* ---- pages that nobody asked for ---- */

/* The flags of the mapping that an address lies in; "": the system does not tell. */
static void read_flags(const void *address, char flags[256]) {
    char line[256];
    bool inside = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    flags[0] = '\0';
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long from, to, at = (uintptr_t)address;
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
            inside = at >= from && at < to;
        if (inside && strncmp(line, "VmFlags:", 8) == 0)
            memcpy(flags, line, sizeof line);
    }
    if (maps)
        fclose(maps);
}

/* The system would read the holes of the file. */
static void slots_are_in_no_core_dump(void **state) {
    char flags[256];
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    read_flags(block_of(region, 5000, 64), flags);
    if (flags[0])
        assert_non_null(strstr(flags, " dd"));
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

static size_t most_resident(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * KIB;
}

/* 0, or what was wrong. */
static int use_locked(void) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 256 * MIB);
    size_t before = file_bytes(pool), resident = most_resident();
    if (mlockall(MCL_FUTURE) != 0)
        return 0;
    ebb_region region = OPEN(.pool = pool);
    if (!ebb_region_is_open(region))
        return ebb_last_error() != EBB_E_MEMORY; /* it may not lock as much */
    if (!ebb_region_alloc(region, 5000, 64) || file_bytes(pool) > before + MIB)
        return 1;
    if (ebb_region_close(region) != 0 || ebb_pool_destroy(pool) != 0)
        return 2;
    return most_resident() > resident + 128 * MIB ? 3 : 0;
}

static void pages_come_when_touched_where_all_are_locked(void **state) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_locked());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* What has gone wrong before is not its business. 0, or what was wrong. */
static int map_where_all_are_locked(void) {
    char path[40];
    int fd, to_read;
    char *place = os.reserve(PAGE);
    if (!place || os.file_make("locked", PAGE, &fd) != 0)
        return 1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    to_read = open(path, O_RDONLY);
    if (to_read < 0)
        return 2;
    if (mlockall(MCL_FUTURE) != 0)
        return 0;
    errno = EIO;
    if (os.file_map(fd, 0, place, PAGE) != 0)
        return 3;
    place[0] = 1;
    return os.file_map(to_read, 0, place, PAGE) == EACCES ? 0 : 4;
}

static void what_cannot_be_opened_where_all_are_locked_is_said(void **state) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(map_where_all_are_locked());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A file of /proc is one of those. */
static void a_file_that_tells_no_holes_has_none(void **state) {
    size_t at = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(lseek(fd, 0, SEEK_HOLE) < 0);
    assert_int_equal(os.file_hole(fd, 0, &at), 0);
    assert_true(at == SIZE_MAX);
    assert_int_equal(close(fd), 0);
    assert_int_equal(os.file_hole(fd, 0, &at), EBADF);
}

/* ---- others at the slot that is being opened ---- */

static int go_ahead[2], done[2]; /* to the child that throws the parcel away, and back */
static bool may_interfere;

static void let_the_other_try(void) {
    char byte = 0;
    if (!may_interfere)
        return;
    may_interfere = false;
    assert_true(write_all(go_ahead[1], &byte, 1));
    assert_true(read_all(done[0], &byte, 1));
}

static int be_late_to_ask(int fd, size_t offset, size_t *at) {
    let_the_other_try();
    return real.file_hole(fd, offset, at);
}

static int be_late_to_enter(void *addr, size_t bytes) {
    let_the_other_try();
    return real.populate(addr, bytes);
}

/* Sends, and discards what it sent when it is told. 0: that is refused, for somebody opens it. */
static int send_and_discard(ebb_pool *pool, int out, const void *context) {
    struct ebb_parcel parcel;
    char byte;
    (void)context;
    if (!try_send(pool, 3 * MIB, 1, &parcel) || !write_all(out, &parcel, sizeof parcel) ||
        !read_all(go_ahead[0], &byte, 1))
        return 1;
    int result = ebb_parcel_discard(pool, &parcel);
    ebb_pool_trim(pool, 0);
    return write_all(done[1], &byte, 1) && result == EBB_E_STALE ? 0 : 2;
}

static void open_late(unsigned what) {
    struct ebb_parcel parcel;
    assert_int_equal(pipe(go_ahead), 0);
    assert_int_equal(pipe(done), 0);
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    size_t before = file_bytes(pool);
    struct duo duo = duo_fork(pool, send_and_discard, NULL);
    assert_true(read_all(duo.in, &parcel, sizeof parcel));
    real = os;
    may_interfere = true;
    os.file_hole = what == 0 ? be_late_to_ask : real.file_hole;
    os.populate = what == 1 ? be_late_to_enter : real.populate;
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    os = real;
    assert_int_equal(duo_end(&duo), 0);
    assert_false(may_interfere);
    assert_true(lease_holds(lease, 3 * MIB, 1));
    ebb_lease_drop(lease);
    ebb_pool_trim(pool, 0);
    assert_int_equal(file_bytes(pool), before);
    pool_end(pool);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(close(go_ahead[i]), 0);
        assert_int_equal(close(done[i]), 0);
    }
}

static void a_slot_is_held_before_pages_are_looked_at(void **state) {
    open_late(0);
    open_late(1);
}

static int enter_nothing(void *addr, size_t bytes) {
    (void)addr, (void)bytes;
    return ENOMEM;
}

static int send_one(ebb_pool *pool, int out, const void *context) {
    struct ebb_parcel parcel;
    (void)context;
    return !try_send(pool, 3 * MIB, 1, &parcel) || !write_all(out, &parcel, sizeof parcel);
}

static void what_cannot_be_read_here_stays_sent(void **state) {
    struct ebb_parcel parcel;
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct duo duo = duo_fork(pool, send_one, NULL);
    assert_true(read_all(duo.in, &parcel, sizeof parcel));
    assert_int_equal(duo_end(&duo), 0);
    uint64_t word = atomic_load(&pool->shared->control->records[0].word);
    real = os;
    os.populate = enter_nothing;
    assert_null(ebb_parcel_open(pool, &parcel));
    assert_int_equal(ebb_last_error(), EBB_E_NO_SPACE);
    os = real;
    assert_true(atomic_load(&pool->shared->control->records[0].word) == word);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, 3 * MIB, 1));
    ebb_lease_drop(lease);
    pool_end(pool);
}

/* ---- the killed ---- */

static void die_when_refused(const char *step) {
    if (strcmp(step, "open: put back") == 0)
        raise(SIGKILL);
}

static int die_refusing(ebb_pool *pool, int out, const void *parcel) {
    (void)out;
    real = os;
    os.pass = die_when_refused;
    os.populate = enter_nothing;
    return ebb_parcel_open(pool, parcel) == NULL;
}

static void a_slot_of_one_killed_as_he_refused_it_is_free(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 3 * MIB, 1);
    ebb_pool *fresh = ebb_pool_attach(ebb_pool_descriptor(pool), NULL); /* nothing is entered */
    assert_non_null(fresh);
    struct duo duo = duo_fork(fresh, die_refusing, &parcel);
    assert_int_equal(duo_end(&duo), SIGKILL);
    assert_states(pool, 0, 0, 1);
    assert_int_equal(ebb_pool_reclaim(pool, false), 1);
    assert_states(pool, 0, 0, 0);
    pool_end(fresh);
    pool_end(pool);
}

static void die_when_backed(const char *step) {
    if (strcmp(step, "back: note") == 0)
        raise(SIGKILL);
}

static int punch_half(int fd, size_t offset, size_t bytes) {
    (void)real.file_punch(fd, offset, MIB);
    (void)bytes;
    raise(SIGKILL);
    return EINTR;
}

static int die_growing(ebb_pool *pool, int out, const void *context) {
    (void)out, (void)context;
    os.pass = die_when_backed;
    return ebb_region_alloc(OPEN(.pool = pool), 2 * MIB, 64) != NULL;
}

static int die_trimming(ebb_pool *pool, int out, const void *context) {
    struct ebb_parcel parcel;
    (void)out, (void)context;
    real = os;
    os.file_punch = punch_half;
    if (!try_send(pool, 3 * MIB, 1, &parcel) || ebb_parcel_discard(pool, &parcel) != 0)
        return 1;
    return ebb_pool_trim(pool, 0) == 0;
}

/* Whether somebody asks for the slot, or needs it. */
static void pages_of_the_killed_are_found(void **state) {
    duo_part *const parts[] = {die_growing, die_trimming};
    for (unsigned i = 0; i < 4; i++) {
        ebb_pool *pool = shared_pool(1, SLOT_BYTES);
        size_t before = file_bytes(pool);
        struct duo duo = duo_fork(pool, parts[i % 2], NULL);
        assert_int_equal(duo_end(&duo), SIGKILL);
        assert_true(file_bytes(pool) >= before + MIB);
        if (i < 2)
            assert_int_equal(ebb_pool_reclaim(pool, false), 1);
        else
            assert_int_equal(ebb_region_close(OPEN(.pool = pool)), 0);
        ebb_pool_trim(pool, 0);
        assert_int_equal(file_bytes(pool), before);
        assert_states(pool, 0, 0, 0);
        pool_end(pool);
    }
}

static size_t last_offset;
static int refused_punches;

static int punch_all_but_the_last(int fd, size_t offset, size_t bytes) {
    if (offset < last_offset)
        return real.file_punch(fd, offset, bytes);
    refused_punches++;
    return EPERM;
}

/* However short the time is: what is refused is no reason to try no other. */
static void what_the_system_keeps_is_not_left_to_trim(void **state) {
    (void)state;
    real = os;
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    struct ebb_parcel parcels[2];
    size_t left = 1, given;
    assert_true(try_send(pool, MIB, 1, &parcels[0]) && try_send(pool, 2 * MIB, 2, &parcels[1]));
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ebb_parcel_discard(pool, &parcels[i]), 0);
    last_offset = shared_offset(&pool->shared->slots[1]);
    os.file_punch = punch_all_but_the_last;
    given = ebb_pool_trim_within(pool, 0, 1, &left);
    os.file_punch = real.file_punch;
    assert_int_equal(refused_punches, 1);
    assert_in_range(given, MIB, 2 * MIB - PAGE);
    assert_int_equal(left, 0);
    assert_in_range(ebb_pool_trim_within(pool, 0, 0, &left), 2 * MIB, 3 * MIB);
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_slot_has_room_for_all_that_it_can_hold),
        cmocka_unit_test(the_end_of_a_slot_is_used_as_one),
        cmocka_unit_test(pages_that_are_kept_make_room),
        cmocka_unit_test(pages_that_are_kept_make_room_under_a_limit),
        cmocka_unit_test(what_cannot_be_had_whole_is_given_back),
        cmocka_unit_test(what_cannot_be_entered_is_given_back),
        cmocka_unit_test(a_slot_with_room_is_not_said_to_be_full),
        cmocka_unit_test(pages_that_are_kept_do_where_there_are_no_others),
        cmocka_unit_test(addresses_are_not_said_to_be_missing),
        cmocka_unit_test(a_child_leaves_the_pages_of_its_parent),
        cmocka_unit_test(slots_are_in_no_core_dump),
        cmocka_unit_test(pages_come_when_touched_where_all_are_locked),
        cmocka_unit_test(what_cannot_be_opened_where_all_are_locked_is_said),
        cmocka_unit_test(a_file_that_tells_no_holes_has_none),
        cmocka_unit_test(a_slot_is_held_before_pages_are_looked_at),
        cmocka_unit_test(what_cannot_be_read_here_stays_sent),
        cmocka_unit_test(a_slot_of_one_killed_as_he_refused_it_is_free),
        cmocka_unit_test(pages_of_the_killed_are_found),
        cmocka_unit_test(what_the_system_keeps_is_not_left_to_trim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
