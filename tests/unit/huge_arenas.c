// SPDX-License-Identifier: Apache-2.0
/*
 * huge_arenas.c - the system is told that huge pages are welcome in arenas of plans that are long
 * enough, and no more of any page that was given back: a touch of one would make many resident.
 */
#include "base/os.h"
#include "kit/test.h"
#include "region/region.h"

#include <fcntl.h>
#include <unistd.h>

enum { HUGE = 2 * MIB, PAGES_MOST = 1 << 15 };

/* Of which pages the system was told last that huge ones are welcome, from the first such on. */
static struct os_table real;
static uintptr_t slab;
static unsigned char welcome[PAGES_MOST];
static unsigned calls, small_calls, strange;

static void mark(const void *addr, size_t bytes, unsigned char is_welcome) {
    uintptr_t from = (uintptr_t)addr, to = from + bytes;
    for (size_t i = 0; i < PAGES_MOST; i++)
        if (slab + i * EBB_PAGE >= from && slab + i * EBB_PAGE < to)
            welcome[i] = is_welcome;
}

static void advise_huge(void *addr, size_t bytes) {
    calls++;
    if (!slab)
        slab = (uintptr_t)addr / (64 * MIB) * (64 * MIB);
    strange += !bytes || bytes % HUGE || (uintptr_t)addr % HUGE || (uintptr_t)addr < slab;
    mark(addr, bytes, 1);
    real.advise_huge(addr, bytes);
}

static void advise_small(void *addr, size_t bytes) {
    small_calls++;
    mark(addr, bytes, 0);
    real.advise_small(addr, bytes);
}

static int close_pages(void *addr, size_t bytes) {
    mark(addr, bytes, 0);
    return real.close(addr, bytes);
}

struct scene {
    ebb_pool *pool;
    ebb_site *site;
};

static struct scene begin(unsigned kind) {
    if (!real.advise_huge) /* a test that failed has not put it back */
        real = os;
    os.advise_huge = advise_huge;
    os.advise_small = advise_small;
    os.close = close_pages;
    memset(welcome, 0, sizeof welcome);
    slab = 0;
    calls = small_calls = strange = 0;
    ebb_pool *pool = POOL(.kind = kind);
    return (struct scene){pool, ebb_site_create(EBB_SITE_OPTIONS(.pool = pool))};
}

static size_t welcome_bytes(void) {
    size_t pages = 0;
    for (size_t i = 0; i < PAGES_MOST; i++)
        pages += welcome[i];
    return pages * EBB_PAGE;
}

/* All blocks live to the end: an arena of as many bytes as they have. */
static void take_steps(ebb_site *site, unsigned count, size_t bytes) {
    for (unsigned i = 0; i < count; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (size_t have = 0; have < bytes; have += bytes / 8) {
            void *block = ebb_region_alloc(step.region, bytes / 8, 64);
            assert_non_null(block);
            memset(block, 1, bytes / 8);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
}

static uint64_t planned_steps(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    return stats.planned_steps;
}

static void end(const struct scene *scene) {
    assert_int_equal(ebb_site_destroy(scene->site), 0);
    pool_end(scene->pool);
    os = real;
}

static void a_long_arena_is_told_of_once(void **state) {
    struct scene scene = begin(EBB_KIND_HOST);
    take_steps(scene.site, 3, 9 * MIB);
    assert_int_equal(planned_steps(scene.site), 1);
    assert_int_equal(calls, 1);
    assert_in_range(welcome_bytes(), 7 * MIB, 9 * MIB);
    take_steps(scene.site, 20, 9 * MIB);
    assert_int_equal(planned_steps(scene.site), 21);
    assert_int_equal(calls, 1);
    end(&scene);
    assert_int_equal(strange, 0);
    assert_int_equal(welcome_bytes(), 0);
}

static void nobody_is_told_of_short_arenas_nor_of_other_runs(void **state) {
    struct scene scene = begin(EBB_KIND_HOST);
    ebb_site *plain = ebb_site_create(EBB_SITE_OPTIONS(.pool = scene.pool, .unplanned = true));
    take_steps(scene.site, 10, 4 * MIB - 8 * EBB_PAGE);
    take_steps(plain, 10, 16 * MIB);
    assert_int_equal(planned_steps(scene.site), 8);
    assert_int_equal(calls, 0);
    assert_int_equal(ebb_site_destroy(plain), 0);
    end(&scene);
}

/* A pool that is huge by itself is told of as a whole, when it gets its slab. */
static void a_huge_pool_is_told_of_as_ever(void **state) {
    struct scene scene = begin(EBB_KIND_HUGE);
    take_steps(scene.site, 10, 9 * MIB);
    assert_int_equal(planned_steps(scene.site), 8);
    assert_int_equal(calls, 1);
    end(&scene);
}

/* What was given back is small again, whoever takes it next; what was not stays as it is. */
static void pages_that_were_given_back_are_small(void **state) {
    struct scene scene = begin(EBB_KIND_HOST);
    take_steps(scene.site, 3, 9 * MIB);
    size_t before = welcome_bytes();
    assert_true(before >= 7 * MIB);
    assert_true(ebb_pool_trim(scene.pool, 3 * MIB) >= 6 * MIB);
    assert_in_range(welcome_bytes(), 1, 3 * MIB);
    assert_true(ebb_pool_trim(scene.pool, 0) > 0);
    assert_int_equal(welcome_bytes(), 0);
    take_steps(scene.site, 1, 9 * MIB); /* elsewhere or not: it is told of anew */
    assert_int_equal(calls, 2);
    end(&scene);
    assert_int_equal(strange, 0);
    assert_int_equal(welcome_bytes(), 0);
}

/* The same pages, each time that an arena came to lie there anew. */
static void pages_that_go_again_are_small_again(void **state) {
    struct scene scene = begin(EBB_KIND_HOST);
    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        take_steps(scene.site, 3, 8 * MIB);
        assert_int_equal(calls, i);
        size_t before = welcome_bytes();
        assert_true(ebb_pool_trim(scene.pool, 7 * MIB) > 0);
        assert_int_equal(small_calls, i);
        assert_true(welcome_bytes() < before);
    }
    end(&scene);
}

/* As the system lists them; it refuses more than 65,530, whoever asks. */
static unsigned count_mappings(void) {
    char text[4096];
    unsigned lines = 0;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    for (ssize_t got; (got = read(file, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            lines += text[i] == '\n';
    close(file);
    return lines;
}

/* Each second one of many goes, between others that stay. */
static void pages_that_go_alone_are_no_mappings_of_their_own(void **state) {
    enum { REGIONS = 2000 };
    static ebb_region regions[REGIONS];
    (void)state;
    struct scene scene = begin(EBB_KIND_HOST);
    take_steps(scene.site, 3, 9 * MIB);
    assert_true(ebb_pool_trim(scene.pool, 0) > 0);
    for (unsigned i = 0; i < REGIONS; i++) {
        regions[i] = OPEN(.pool = scene.pool, .hint_bytes = EBB_PAGE);
        block_of(regions[i], EBB_PAGE / 2, 64);
    }
    unsigned before = count_mappings();
    small_calls = 0;
    for (unsigned i = 0; i < REGIONS; i += 2)
        assert_int_equal(ebb_region_close(regions[i]), 0);
    (void)ebb_pool_trim(scene.pool, 0); /* what has not gone by itself */
    assert_int_equal(pool_stats_of(scene.pool).reserved.current, REGIONS / 2 * EBB_PAGE);
    assert_in_range(small_calls, 1, 2 + REGIONS * EBB_PAGE / HUGE);
    assert_true(count_mappings() <= before + 4);
    for (unsigned i = 1; i < REGIONS; i += 2)
        assert_int_equal(ebb_region_close(regions[i]), 0);
    end(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_arena_is_told_of_once),
        cmocka_unit_test(nobody_is_told_of_short_arenas_nor_of_other_runs),
        cmocka_unit_test(a_huge_pool_is_told_of_as_ever),
        cmocka_unit_test(pages_that_were_given_back_are_small),
        cmocka_unit_test(pages_that_go_again_are_small_again),
        cmocka_unit_test(pages_that_go_alone_are_no_mappings_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
