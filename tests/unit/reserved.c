// SPDX-License-Identifier: Apache-2.0
/*
 * reserved.c - of the addresses that are reserved those can be touched that were used, and what
 * describes them: core dumps, leak checkers and mlockall() would look at all others page by page.
 * Pointers into what is closed are named errors, and a system that refuses to open loses nothing.
 */
#include "kit/maps.h"
#include "kit/test.h"

#include "base/os.h"
#include "base/reserved.h"
#include "pool/chunk.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP ((size_t)2 << 20)

/* In place of the C library's. */
static unsigned left_out_of_dumps;

int madvise(void *addr, size_t bytes, int advice) {
    left_out_of_dumps += advice == MADV_DONTDUMP;
    return (int)syscall(SYS_madvise, addr, bytes, advice);
}

static bool is_open(const void *at, size_t bytes) {
    uintptr_t from = (uintptr_t)at;
    return maps_open(from, from + bytes) == bytes;
}

static void blocks_and_what_describes_them_are_open(void **state) {
    const struct stage *stage = *state;
    for (size_t bytes = 16; bytes <= 64 * MIB; bytes *= 16) {
        void *block = block_of(stage->root, bytes, 16);
        uintptr_t addr = (uintptr_t)block, offset = addr - range.base;
        assert_true(is_open(block, bytes));
        assert_true(is_open(range_run_at(addr), sizeof(struct ebb_piece)));
        assert_true(is_open(range_block_at(addr), sizeof(struct ebb_piece)));
        assert_true(is_open(&range.block_at[offset / RANGE_SLOT], 4));
        assert_true(is_open(&range.run_at[offset / EBB_PAGE], 4));
        assert_true(is_open(&range.run_at_huge[offset / RANGE_HUGE], 4));
        assert_true(is_open(range_site(addr), 8));
        assert_true(is_open(range_note(addr), 4));
        assert_true(is_open(range_block_note(addr), 4));
    }
    assert_true(is_open(stage->root.lane, sizeof *stage->root.lane));
}

/* Tables behind the user addresses are three times as long as those. */
static void hardly_more_is_open(void **state) {
    const struct stage *stage = *state;
    block_of(stage->root, MIB, 16);
    struct ebb_pool *other = POOL(.name = "other");
    ebb_region region = OPEN(.pool = other);
    block_of(region, MIB, 16);
    assert_true(maps_open(range.base, range.base + range.bytes) <= (size_t)3 << 30); /* slabs */
    assert_true(maps_open(range.base, range.base + 3 * range.bytes) <= (size_t)6 << 30);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(other);
}

/* A slab that ends and is taken again, for whatever kind, can be touched again. */
static void what_is_taken_again_is_open(void **state) {
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        enum ebb_kind kind = i % 2 ? EBB_KIND_HUGE : EBB_KIND_HOST;
        struct ebb_pool *pool = POOL(.name = "again", .kind = kind);
        ebb_region region = OPEN(.pool = pool);
        assert_true(is_open(block_of(region, 5 * MIB, 16), 5 * MIB));
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
    }
}

static void pointers_into_what_is_closed_are_named_errors(void **state) {
    const struct stage *stage = *state;
    block_of(stage->root, MIB, 16);
    size_t open = atomic_load(&range.user.open);
    char *last = (char *)range.base + range.bytes - 64;
    char *first = (char *)range.base + open;
    assert_true(open < range.bytes);
    assert_false(is_open(last, 1)); /* first: jemalloc may have it for the next chunk */
    assert_true(range_holds((uintptr_t)first - 1) && is_open(first - 1, 1));
    char *wild[] = {first, first + 4096, last};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        assert_false(range_holds((uintptr_t)wild[i]));
        assert_true(range_reserves((uintptr_t)wild[i]));
        assert_int_equal(ebb_region_release(stage->root, wild[i]), EBB_E_FOREIGN);
        assert_int_equal(ebb_object_end(wild[i]), EBB_E_FOREIGN);
        assert_false(ebb_region_is_open(ebb_region_of(wild[i])));
    }
    struct ebb_lane *slot = (struct ebb_lane *)(void *)(range.regions.at + range.regions.bytes -
                                                        RANGE_REGION_BYTES);
    ebb_region handle = {slot, 1};
    assert_false(is_open(slot, 1));
    assert_false(ebb_region_is_open(handle));
    assert_int_equal(ebb_region_close(handle), EBB_E_STALE);
}

/* ---- the array ---- */

static unsigned refusals;
static struct os_table real;

static int refuse(void *addr, size_t bytes) {
    refusals++;
    return ENOMEM;
}

static unsigned nth;

static int refuse_nth(void *addr, size_t bytes) {
    return --nth == 0 ? ENOMEM : real.open(addr, bytes);
}

static void an_array_is_opened_in_steps(void **state) {
    struct reserved array;
    (void)state;
    memset(&array, 0, sizeof array);
    assert_true(reserved_make(&array, 3 * STEP + 4096));
    uintptr_t at = (uintptr_t)array.at, end = at + array.bytes;
    const size_t asked[] = {0, 1, STEP, STEP + 1, 100, 3 * STEP + 1, 3 * STEP + 4096};
    const size_t open[] = {0, STEP, STEP, 2 * STEP, 2 * STEP, 3 * STEP + 4096, 3 * STEP + 4096};
    left_out_of_dumps = 0;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_true(reserved_open(&array, asked[i]));
        assert_int_equal(left_out_of_dumps, 0);
        assert_int_equal(atomic_load(&array.open), open[i]);
        assert_int_equal(maps_open(at, end), open[i]);
        assert_int_equal(maps_dumped(at, end), open[i]);
    }
    memset(array.at, 1, array.bytes);
    os.release(array.at, array.bytes);
}

static void refused_it_stays_as_it_is(void **state) {
    struct reserved array;
    (void)state;
    memset(&array, 0, sizeof array);
    assert_true(reserved_make(&array, 4 * STEP));
    assert_true(reserved_open(&array, 1));
    array.at[STEP - 1] = 7;
    real = os;
    os.open = refuse;
    assert_true(reserved_open(&array, STEP));
    assert_int_equal(refusals, 0);
    assert_false(reserved_open(&array, STEP + 1));
    os = real;
    assert_int_equal(atomic_load(&array.open), STEP);
    assert_true(reserved_open(&array, STEP + 1));
    assert_true(array.at[STEP - 1] == 7 && array.at[STEP] == 0);
    os.release(array.at, array.bytes);
}

static size_t larger_page;

static size_t larger_pages(void) {
    return larger_page;
}

/* Before anything else: nothing is reserved yet. Of larger pages the system would take more than it
 * is given back. */
static void a_system_with_larger_pages_is_refused(void **state) {
    (void)state;
    static const char *const said[] = {"pages of 16384 bytes", "pages of 65536 bytes"};
    real = os;
    for (unsigned i = 0; i < 2; i++) {
        larger_page = (size_t)16384 << 2 * i;
        os.page_bytes = larger_pages;
        assert_no_block(ebb_pool_create(NULL), EBB_E_MEMORY);
        assert_text_names(said[i]);
        assert_no_block(POOL(.kind = EBB_KIND_SHARED), EBB_E_MEMORY);
        assert_text_names(said[i]);
        os = real;
        assert_false(range_reserves((uintptr_t)range.user.at));
    }
}

/* Nor now. */
static void a_range_that_cannot_be_opened_is_not_kept(void **state) {
    (void)state;
    real = os;
    for (nth = 1; nth <= 2; nth++) {
        unsigned chosen = nth;
        os.open = refuse_nth;
        assert_int_equal(range_prepare(), EBB_E_MEMORY);
        os = real;
        assert_false(range_reserves((uintptr_t)range.user.at));
        nth = chosen;
    }
    assert_int_equal(range_prepare(), 0);
    assert_true(range_reserves((uintptr_t)range.user.at));
}

/* Chunks and regions that the system does not open are refused, and there later. */
static void what_cannot_be_opened_is_exhausted_memory(void **state) {
    const struct stage *stage = *state;
    size_t beyond = size_align(atomic_load(&range.user.open) + 1, CHUNK_ALIGN);
    size_t chunks = chunk_bytes();
    real = os;
    os.open = refuse;
    assert_null(ebb_region_alloc(stage->root, beyond, 16));
    os = real;
    assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
    assert_int_equal(chunk_bytes(), chunks);
    ebb_region regions[2000];
    size_t count = 0;
    os.open = refuse;
    while (count < 2000 && ebb_region_is_open(regions[count] = OPEN(.name = "many")))
        count++;
    os = real;
    assert_true(count > 0 && count < 2000);
    assert_true(ebb_region_is_open(regions[count++] = OPEN(.name = "one more")));
    while (count--)
        assert_int_equal(ebb_region_close(regions[count]), 0);
    uintptr_t chunk = chunk_take(beyond);
    assert_true(chunk);
    ((char *)chunk)[beyond - 1] = 1;
    chunk_give(chunk, beyond);
}

/* What Linux counts as data of this process, and its stack. */
static size_t data_bytes(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*s %*s %*s %*s %*s %zu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * 4096;
}

static bool can_map(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at != MAP_FAILED && munmap(at, bytes) == 0;
}

/* The exit status of a process with a GiB for more data, which half a GiB and one more is not. */
static int use_some_data(void) {
    const size_t gib = (size_t)1 << 30, most = data_bytes() + gib;
    const struct rlimit limit = {most, most};
    struct reserved array;
    memset(&array, 0, sizeof array);
    if (!reserved_make(&array, 2 * gib) || setrlimit(RLIMIT_DATA, &limit) != 0)
        return 1;
    if (can_map(most))
        return 0; /* valgrind keeps that limit to itself */
    if (!reserved_open(&array, gib / 2) || reserved_open(&array, gib / 2 + gib))
        return 2;
    return can_map(gib / 4) ? 0 : 3;
}

/* The same of one with half a GiB for more data: what is opened is of two kinds to Linux, and the
 * first would be granted. */
static int open_half_way(void) {
    const size_t gib = (size_t)1 << 30, most = data_bytes() + gib / 2;
    const struct rlimit limit = {most, most};
    char *at = os.reserve(gib);
    uintptr_t from = (uintptr_t)at;
    if (!at || madvise(at + gib / 4, gib - gib / 4, MADV_DONTFORK) != 0 ||
        setrlimit(RLIMIT_DATA, &limit) != 0)
        return 1;
    if (can_map(most))
        return 0; /* valgrind, as above */
    if (os.open(at, gib) != ENOMEM)
        return 2;
    return maps_open(from, from + gib) ? 3 : 0;
}

/* The same where what is open is counted, as by strict overcommit, in spite of os.reserve(). */
static int close_what_is_counted(void) {
    const size_t most = data_bytes() + ((size_t)1 << 30);
    const struct rlimit limit = {most, most};
    struct reserved array;
    memset(&array, 0, sizeof array);
    array.bytes = 4 * STEP;
    array.at = mmap(NULL, array.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t from = (uintptr_t)array.at, to = from + array.bytes;
    if (array.at == MAP_FAILED || setrlimit(RLIMIT_DATA, &limit) != 0 ||
        !reserved_open(&array, array.bytes))
        return 1;
    memset(array.at, 1, array.bytes);
    if (maps_counted(from, to) == 0)
        return 0; /* no such tale in /proc */
    reserved_close(&array, STEP);
    if (maps_open(from, to) != STEP || maps_counted(from, to) != STEP ||
        maps_dumped(from, to) != STEP)
        return 2;
    if (!reserved_open(&array, array.bytes) || maps_dumped(from, to) != array.bytes)
        return 3;
    return array.at[STEP - 1] == 1 && array.at[STEP] == 0 ? 0 : 4;
}

static char *map_closed(void *wish, size_t bytes) {
    return mmap(wish, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Not so with some tools in the system's place. */
static bool wishes_are_granted(void) {
    const size_t bytes = 64 * MIB;
    char *wish = map_closed(NULL, 2 * bytes);
    if (wish == MAP_FAILED || munmap(wish, 2 * bytes) != 0)
        return false;
    char *granted = map_closed(wish, bytes);
    (void)munmap(granted, bytes);
    return granted == wish;
}

/* Side by side, so that who has an address needs one comparison. */
static void reservations_lie_below_what_the_system_places(void **state) {
    const size_t bytes = 64 * MIB;
    (void)state;
    if (!wishes_are_granted())
        skip();
    char *first = os.reserve(bytes), *second = os.reserve(bytes), *placed = map_closed(NULL, bytes);
    assert_true(first && second && placed != MAP_FAILED);
    assert_ptr_equal(second, first + bytes);
    assert_true(second < placed);
    (void)munmap(placed, bytes);
    os.release(second, bytes);
    os.release(first, bytes);
}

/* Whether the system keeps the page that is touched. */
static bool is_locked(const char *page) {
    return madvise((void *)(uintptr_t)page, 4096, MADV_DONTNEED) != 0;
}

/* Not under valgrind, which would itself end by what is locked, nor before Linux 4.4. */
static bool can_lock_when_touched(void) {
    void *page = os.reserve(4096);
    return page && mlock2(page, 4096, MLOCK_ONFAULT) == 0;
}

/* Of a process that locks its pages, before it reserves them or after, or within a limit on data,
 * where pages are opened in another way. */
static int lock_pages(bool early, bool limited) {
    struct rlimit data;
    struct reserved array;
    memset(&array, 0, sizeof array);
    if (!can_lock_when_touched())
        return 0;
    if (!early && !reserved_make(&array, 64 * STEP))
        return 1;
    char *probe = mlockall(MCL_FUTURE) == 0 ? os.reserve(64 * STEP) : NULL;
    if (!probe)
        return 0; /* it may not lock as much */
    bool locks = is_locked(probe); /* not with sanitizers */
    if ((early && !reserved_make(&array, 64 * STEP)) || getrlimit(RLIMIT_DATA, &data) != 0)
        return 1;
    data.rlim_cur = limited ? data_bytes() + ((size_t)1 << 30) : data.rlim_cur;
    if (setrlimit(RLIMIT_DATA, &data) != 0 || !reserved_open(&array, array.bytes))
        return 2;
    if (os.resident(array.at, array.bytes) != 0)
        return 3;
    array.at[5 * STEP] = 1;
    if (os.resident(array.at, array.bytes) > 2 * STEP) /* a huge page may come */
        return 4;
    return is_locked(array.at + 5 * STEP) == locks ? 0 : 5;
}

/* That are open, and were never touched: with the flag that README.md asks for. */
static int lock_open_pages(void) {
    struct reserved array;
    memset(&array, 0, sizeof array);
    if (!can_lock_when_touched())
        return 0;
    if (!reserved_make(&array, 64 * STEP) || !reserved_open(&array, array.bytes))
        return 1;
    if (mlockall(MCL_CURRENT | MCL_ONFAULT) != 0)
        return 0; /* it may not lock as much */
    return os.resident(array.at, array.bytes) == 0 ? 0 : 2;
}

static int lock_pages_early(void) {
    return lock_pages(true, false);
}

static int lock_pages_early_within_a_limit(void) {
    return lock_pages(true, true);
}

static int lock_pages_late(void) {
    return lock_pages(false, false);
}

static int lock_pages_late_within_a_limit(void) {
    return lock_pages(false, true);
}

/* Its array is longer than what it may lock. */
static int lock_pages_without_the_right(void) {
    struct rlimit most;
    struct reserved array;
    memset(&array, 0, sizeof array);
    if (!can_lock_when_touched() || getrlimit(RLIMIT_MEMLOCK, &most) != 0)
        return 0;
    most.rlim_max = most.rlim_max < MIB ? most.rlim_max : MIB;
    most.rlim_cur = most.rlim_max;
    if (!reserved_make(&array, 4 * STEP) || setrlimit(RLIMIT_MEMLOCK, &most) != 0)
        return 1;
    if ((getuid() == 0 && setuid(65534) != 0) || mlockall(MCL_FUTURE) != 0)
        return 0; /* there is no other user, or nothing may be locked */
    if (!reserved_open(&array, array.bytes))
        return 2;
    array.at[STEP] = 1;
    return 0;
}

static void assert_child_passes(int (*body)(void)) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_limit_on_data_is_kept(void **state) {
    assert_child_passes(use_some_data);
}

static void refused_half_way_nothing_is_open(void **state) {
    assert_child_passes(open_half_way);
}

static void what_is_closed_is_not_counted(void **state) {
    assert_child_passes(close_what_is_counted);
}

static void locked_pages_come_when_they_are_touched(void **state) {
    assert_child_passes(lock_pages_early);
    assert_child_passes(lock_pages_early_within_a_limit);
    assert_child_passes(lock_pages_late);
    assert_child_passes(lock_pages_late_within_a_limit);
    assert_child_passes(lock_open_pages);
}

static void what_may_not_be_locked_is_open_all_the_same(void **state) {
    assert_child_passes(lock_pages_without_the_right);
}

/* All tables or none. */
static void refused_the_range_opens_nothing(void **state) {
    (void)state;
    uintptr_t behind = range.base + 3 * range.bytes;
    size_t end = size_align(atomic_load(&range.user.open) + 1, (size_t)1 << 30);
    unsigned refused = 0;
    bool opened = false;
    real = os;
    while (!opened) {
        size_t open = maps_open(range.base, behind);
        nth = refused + 1;
        os.open = refuse_nth;
        opened = range_open(end);
        os = real;
        refused += !opened;
        assert_true(opened == range_holds(range.base + end - 1));
        assert_true(opened || maps_open(range.base, behind) == open);
    }
    assert_true(refused >= 4); /* a step of entries of pages may have been enough already */
    assert_true(is_open(range_site(range.base + end - 1), sizeof(uintptr_t)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_system_with_larger_pages_is_refused),
        cmocka_unit_test(a_range_that_cannot_be_opened_is_not_kept),
        STAGED(blocks_and_what_describes_them_are_open),
        STAGED(hardly_more_is_open),
        STAGED(what_is_taken_again_is_open),
        STAGED(pointers_into_what_is_closed_are_named_errors),
        cmocka_unit_test(reservations_lie_below_what_the_system_places),
        cmocka_unit_test(an_array_is_opened_in_steps),
        cmocka_unit_test(refused_it_stays_as_it_is),
        STAGED(what_cannot_be_opened_is_exhausted_memory),
        cmocka_unit_test(a_limit_on_data_is_kept),
        cmocka_unit_test(refused_half_way_nothing_is_open),
        cmocka_unit_test(what_is_closed_is_not_counted),
        cmocka_unit_test(locked_pages_come_when_they_are_touched),
        cmocka_unit_test(what_may_not_be_locked_is_open_all_the_same),
        STAGED(refused_the_range_opens_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
