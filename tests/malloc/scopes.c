// SPDX-License-Identifier: Apache-2.0
/*
 * scopes.c - blocks of scopes, through the functions that malloc() and free() are made of.
 *
 * This program keeps its own malloc(), so sanitizers and valgrind see every touch of a block, and
 * the names of the family are tested elsewhere, preloaded.
 */
#include "kit/maps.h"
#include "malloc/scoped.h"

#include "base/os.h"
#include "malloc/view.h"

#include <errno.h>
#include <unistd.h>

static void test_without_a_scope_the_general_heap_serves(void **state) {
    void *block = make(100, 1);
    assert_false(is_of_a_scope(block));
    end(block, 100, 1);
}

static void test_a_step_without_scope_leaves_malloc_alone(void **state) {
    ebb_site *plain = ebb_site_create(NULL);
    ebb_step step = begin(plain);
    assert_null(here.scope);
    assert_refused(ebb_scope_leave(step), EBB_E_ARGUMENT);
    finish(step);
    assert_int_equal(ebb_site_destroy(plain), 0);
}

static void test_blocks_are_of_the_scope_and_usable(void **state) {
    ebb_step step = begin(*state);
    void *blocks[SIZES];
    assert_true(ebb_scope_is_served());
    for (unsigned i = 0; i < SIZES; i++) {
        blocks[i] = make(sizes[i], i);
        assert_true(is_of_a_scope(blocks[i]));
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        assert_true(front_usable(blocks[i]) >= sizes[i]);
    }
    for (unsigned i = 0; i < SIZES; i++)
        end(blocks[i], sizes[i], i);
    finish(step);
}

static void test_survivors_stay_where_they_are(void **state) {
    void *blocks[8][SIZES];
    for (unsigned round = 0; round < 8; round++) { /* the later ones by plan */
        ebb_step step = begin(*state);
        for (unsigned i = 0; i < SIZES; i++) {
            blocks[round][i] = make(sizes[i], round * 100 + i);
            void *dies = make(sizes[i], 7);
            if (i % 2)
                end(dies, sizes[i], 7);
        }
        finish(step);
    }
    assert_true(tray_read_pinned().trays > 0);
    assert_true(tray_read_pinned().live > 0);
    for (unsigned round = 0; round < 8; round++)
        for (unsigned i = 0; i < SIZES; i++)
            end(blocks[round][i], sizes[i], round * 100 + i);
    /* those that were not freed in their scopes are pinned for ever, unless they were leaks */
    struct tray_pinned left = tray_read_pinned();
    assert_true(left.blocks < 8 * SIZES);
}

static void test_a_survivor_of_every_kind_goes_when_freed(void **state) {
    for (unsigned i = 0; i < SIZES; i++) {
        ebb_step step = begin(*state);
        void *block = make(sizes[i], i);
        finish(step);
        assert_true(pattern_holds(block, sizes[i], i));
        end(block, sizes[i], i);
        assert_int_equal(tray_read_pinned().trays, 0);
    }
}

static void test_places_are_used_again(void **state) {
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < SIZES - 2; i++) {
        void *first = make(sizes[i], 1);
        end(first, sizes[i], 1);
        void *second = make(sizes[i], 2);
        assert_ptr_equal(first, second);
        end(second, sizes[i], 2);
        void *kept = make(sizes[i], 3);
        void *behind = make(sizes[i], 4), *last = make(1, 5);
        front_free(behind);
        assert_ptr_equal(make(sizes[i], 6), behind);
        end(behind, sizes[i], 6);
        end(kept, sizes[i], 3);
        front_free(last);
    }
    finish(step);
    void *before = NULL;
    for (unsigned round = 0; round < 3; round++) {
        step = begin(*state);
        void *block = make(48, 3);
        if (before)
            assert_ptr_equal(block, before);
        before = block;
        end(block, 48, 3);
        finish(step);
    }
}

static void test_freed_places_are_forgotten_with_their_scope(void **state) {
    for (unsigned round = 0; round < 6; round++) {
        ebb_step step = begin(*state);
        void *first = make(48, 1), *second = make(48, 2), *above = make(100, 3);
        if (round % 3 != 0)
            end(second, 48, 2); /* below the newest: it would serve the next of its size */
        if (round % 3 == 2)
            end(first, 48, 1);
        finish(step);
        step = begin(*state);
        void *blocks[4];
        for (unsigned i = 0; i < 4; i++)
            blocks[i] = make(48, 10 + i);
        for (unsigned i = 0; i < 4; i++)
            end(blocks[i], 48, 10 + i);
        finish(step);
        if (round % 3 == 0)
            end(second, 48, 2);
        if (round % 3 != 2)
            end(first, 48, 1);
        end(above, 100, 3);
    }
}

static void test_alignment(void **state) {
    ebb_step step = begin(*state);
    for (size_t align = 16; align <= 4 * MIB; align *= 2)
        for (unsigned i = 0; i < SIZES; i++) {
            void *block = front_alloc_aligned(sizes[i], align, NULL);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % align, 0);
            pattern_fill(block, sizes[i], i);
            void *other = make(33, 5);
            end(block, sizes[i], i);
            end(other, 33, 5);
        }
    finish(step);
}

static void test_zeroed(void **state) {
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < SIZES; i++) {
        end(make(sizes[i], 9), sizes[i], 9);
        unsigned char *block = front_alloc_zeroed(sizes[i], NULL);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(block[at], 0);
        front_free(block);
    }
    finish(step);
}

/* Every size to every other, in the scope, out of it, and across its end. */
static void test_resize(void **state) {
    for (unsigned where = 0; where < 4; where++)
        for (unsigned from = 0; from < SIZES; from++)
            for (unsigned to = 0; to < SIZES; to++) {
                bool begins = where & 1, ends = where & 2;
                ebb_step step = {0};
                if (begins)
                    step = begin(*state);
                void *block = make(sizes[from], 1), *beside = to % 2 ? make(40, 2) : NULL;
                if (begins && ends)
                    finish(step);
                block = front_resize(block, sizes[to], NULL);
                assert_non_null(block);
                size_t same = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
                assert_true(pattern_holds(block, same, 1));
                assert_true(front_usable(block) >= sizes[to]);
                pattern_fill(block, sizes[to], 3);
                end(block, sizes[to], 3);
                if (beside)
                    end(beside, 40, 2);
                if (begins && !ends)
                    finish(step);
            }
}

/* The pages that it does not need any more are not kept for it. */
static void test_a_survivor_that_shrinks_keeps_no_pages(void **state) {
    ebb_step step = begin(*state);
    void *block = make(8 * MIB, 1);
    finish(step);
    const struct region *keeper = (const struct region *)here.heap->keeper.lane;
    uint64_t kept = keeper->reserved.current;
    assert_ptr_equal(front_resize(block, 6 * MIB, NULL), block);
    assert_int_equal(keeper->reserved.current, kept);
    block = front_resize(block, 10000, NULL);
    assert_true(pattern_holds(block, 10000, 1));
    assert_int_equal(keeper->reserved.current, kept - 8 * MIB);
    front_free(block);
}

static void test_nested_scopes(void **state) {
    ebb_step outer = begin(*state);
    void *first = make(100, 1), *large = make(20000, 2);
    ebb_step inner = begin(*state);
    void *second = make(100, 3);
    front_free(first);
    void *kept = make(30000, 4);
    finish(inner);
    end(second, 100, 3);
    void *third = make(100, 5);
    end(large, 20000, 2);
    finish(outer);
    end(kept, 30000, 4);
    end(third, 100, 5);
}

static void test_scopes_end_in_any_order(void **state) {
    ebb_step first = begin(*state), second = begin(*state), third = begin(*state);
    void *block = make(64, 1);
    finish(second);
    finish(first);
    void *other = make(64, 2);
    finish(third);
    assert_null(here.scope);
    end(block, 64, 1);
    end(other, 64, 2);
}

static void test_scopes_are_left_and_entered(void **state) {
    ebb_step one = begin(*state);
    void *first = make(64, 1);
    assert_int_equal(ebb_scope_leave(one), 0);
    assert_int_equal(ebb_scope_leave(one), 0);
    void *outside = make(64, 2);
    assert_false(is_of_a_scope(outside));
    ebb_step two = begin(*state);
    assert_int_equal(ebb_scope_leave(two), 0);
    assert_int_equal(ebb_scope_enter(one), 0);
    void *again = make(64, 3);
    assert_true(is_of_a_scope(again));
    assert_ptr_equal(tray_of((uintptr_t)again), tray_of((uintptr_t)first));
    finish(two);
    finish(one);
    assert_refused(ebb_scope_enter(one), EBB_E_STALE);
    end(first, 64, 1);
    end(outside, 64, 2);
    end(again, 64, 3);
}

static void test_ten_thousand_scopes_are_open_at_once(void **state) {
    enum { MANY = 10000, LEAST = 1000 }; /* LEAST: valgrind has few addresses for regions */
    static ebb_step steps[MANY];
    static void *blocks[MANY];
    unsigned open = 0;
    for (unsigned i = 0; i < MANY; i++, open++) {
        steps[i] = ebb_step_begin(*state, 0);
        if (!steps[i].lane && i >= LEAST)
            break;
        assert_true(ebb_region_is_open(steps[i].region));
        blocks[i] = make(100, i);
        assert_int_equal(ebb_scope_leave(steps[i]), 0);
    }
    for (unsigned i = 0; i < open; i++) {
        assert_int_equal(ebb_scope_enter(steps[i]), 0);
        end(blocks[i], 100, i);
        finish(steps[i]);
    }
}

/* In some steps only, so that both kinds of learning see both kinds of steps. */
static void test_the_program_may_place_blocks_in_the_step_as_well(void **state) {
    uint64_t placed = 0;
    for (unsigned round = 0; round < 120; round++) {
        ebb_step step = begin(*state);
        void *small = make(100, 1), *large = make(50000, 2), *own[4] = {NULL};
        for (unsigned i = 0; i < 4 && round % 5 > 1; i++, placed++) {
            own[i] = ebb_region_alloc(step.region, (size_t)3000 << i, 64);
            assert_non_null(own[i]);
            pattern_fill(own[i], (size_t)3000 << i, i);
        }
        ebb_step inner = begin(*state);
        void *deep = make(50000, 3);
        for (unsigned i = 0; i < 4 && own[i]; i++)
            assert_true(pattern_holds(own[i], (size_t)3000 << i, i));
        if (own[1])
            assert_int_equal(ebb_region_release(step.region, own[1]), 0);
        finish(round % 2 ? step : inner); /* the outer one first */
        end(small, 100, 1);
        end(deep, 50000, 3);
        finish(round % 2 ? inner : step);
        end(large, 50000, 2);
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(*state, &stats), 0);
    assert_int_equal(stats.allocations, placed);
    assert_int_equal(stats.steps, 240);
    assert_true(stats.planned_steps > 0);
}

static void test_a_region_that_closes_ends_its_scope(void **state) {
    ebb_region parent = OPEN(.name = "parent");
    ebb_step step = ebb_step_begin_under(*state, parent, 0);
    void *small = make(100, 1), *large = make(50000, 2);
    assert_int_equal(ebb_region_close(parent), 0);
    assert_null(here.scope);
    assert_refused(ebb_step_end(step), EBB_E_STALE);
    end(small, 100, 1);
    end(large, 50000, 2);
}

static void test_errno_is_kept(void **state) {
    ebb_step step = begin(*state);
    errno = 77;
    for (unsigned i = 0; i < SIZES; i++)
        front_free(make(sizes[i], i));
    void *small = make(10, 1), *large = make(100000, 1);
    finish(step);
    front_free(small);
    front_free(large);
    assert_int_equal(errno, 77);
}

static void test_counters(void **state) {
    ebb_site *site = SITE(.name = "counted");
    ebb_step step = begin(site);
    void *large = make(20000, 1);
    for (unsigned i = 0; i < 10; i++)
        front_free(make(100, i));
    finish(step);
    const struct served *served = served_of(site);
    assert_int_equal(served_sum(served, SERVED_SCOPES), 1);
    assert_int_equal(served_sum(served, SERVED_BLOCKS), 11);
    assert_int_equal(served_sum(served, SERVED_BYTES), 10 * 112 + 20032);
    assert_int_equal(served_sum(served, SERVED_SURVIVED_BLOCKS), 1);
    assert_int_equal(served_sum(served, SERVED_SURVIVED_TRAYS), 0);
    end(large, 20000, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* What a large block gains where it is was allocated as well; what it loses was there. */
static void test_growth_in_place_is_counted(void **state) {
    ebb_site *site = SITE(.name = "grows");
    ebb_step step = begin(site);
    void *block = make(20000, 1);
    size_t allocated = front_usable(block);
    for (unsigned i = 0; i < 10; i++) {
        size_t before = front_usable(block), bytes = i % 3 == 2 ? before - 500 : before + 1000;
        void *resized = front_resize(block, bytes, NULL);
        size_t now = front_usable(resized);
        allocated += resized != block ? now : now > before ? now - before : 0;
        block = resized;
    }
    finish(step);
    assert_int_equal(served_sum(served_of(site), SERVED_BYTES), allocated);
    end(block, 20000, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* So it pins nothing beside itself, wherever it came from. */
static void test_what_grows_to_whole_pages_begins_one(void **state) {
    ebb_step step = begin(*state);
    void *first = make(10000, 1), *grown = make(10000, 2);
    assert_true(is_of_a_scope(grown));
    for (size_t bytes = 20000; bytes < 200000; bytes += 4000) {
        grown = front_resize(grown, bytes, NULL);
        assert_true(pattern_holds(grown, 10000, 2));
        assert_true(bytes < 32 * KIB || (uintptr_t)grown % EBB_PAGE == 0);
    }
    finish(step);
    end(first, 10000, 1);
    end(grown, 10000, 2);
}

static void test_names_of_sites_are_quoted(void **state) {
    static char text[64 << 10];
    ebb_site *odd = SITE(.name = "a\"b\\c\nd");
    finish(begin(odd));
    assert_true(view_write(text, sizeof text, true) < sizeof text - 1);
    assert_non_null(strstr(text, "ebb_scopes_total{site=\"a\\\"b\\\\c?d\"} 1\n"));
    assert_int_equal(ebb_site_destroy(odd), 0);
}

static void test_sites_of_one_name_are_told_apart(void **state) {
    static char text[64 << 10];
    ebb_site *sites[3];
    for (unsigned i = 0; i < 3; i++) {
        sites[i] = SITE(.name = "twin");
        for (unsigned k = 0; k <= i; k++)
            finish(begin(sites[i]));
    }
    assert_true(view_write(text, sizeof text, true) < sizeof text - 1);
    assert_non_null(strstr(text, "ebb_scopes_total{site=\"twin\"} 1\n"));
    assert_non_null(strstr(text, "ebb_scopes_total{site=\"twin#2\"} 2\n"));
    assert_non_null(strstr(text, "ebb_scopes_total{site=\"twin#3\"} 3\n"));
    assert_int_equal(ebb_site_destroy(sites[1]), 0);
    sites[1] = SITE(.name = "twin");
    finish(begin(sites[1]));
    assert_true(view_write(text, sizeof text, false) < sizeof text - 1);
    assert_non_null(strstr(text, "site twin#2\n"));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ebb_site_destroy(sites[i]), 0);
}

static void destroy_all(ebb_site **sites, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(ebb_site_destroy(sites[i]), 0);
}

static const char *told_of(const ebb_site *site) {
    return ((const struct served *)site->served)->name;
}

/* A site for each connection: the oldest ends, another begins. */
static void test_numbers_of_sites_that_ended_are_given_again(void **state) {
    enum { COUNT = 200 };
    static ebb_site *sites[COUNT];
    (void)state;
    char told[SERVED_NAME_BYTES];
    for (unsigned i = 0; i < 3 * COUNT; i++) {
        ebb_site *ended = sites[i % COUNT];
        snprintf(told, sizeof told, i == 0 ? "call" : "call#%u", i + 1);
        if (ended)
            snprintf(told, sizeof told, "%s", told_of(ended));
        assert_int_equal(ebb_site_destroy(ended), 0);
        sites[i % COUNT] = SITE(.name = "call");
        finish(begin(sites[i % COUNT]));
        assert_string_equal(told_of(sites[i % COUNT]), told);
    }
    destroy_all(sites, COUNT);
}

/* Names that look like it are a program's own. */
static void test_names_with_numbers_are_told_apart(void **state) {
    static const char *const names[][2] = {
        {"call", "call"}, {"call#02", "call#02"}, {"call#3", "call#3"}, {"call", "call#2"},
        {"call#2", "call#2#2"}, {"call#18446744073709551618", "call#18446744073709551618"},
        {"call", "call#4"}, {"call#", "call#"}, {"call", "call#5"}, {"call#02", "call#02#2"}};
    enum { COUNT = sizeof names / sizeof *names };
    ebb_site *sites[COUNT];
    (void)state;
    for (unsigned i = 0; i < COUNT; i++) {
        sites[i] = SITE(.name = names[i][0]);
        finish(begin(sites[i]));
        assert_string_equal(told_of(sites[i]), names[i][1]);
        ebb_site *far = SITE(.name = "call#77"); /* far from what was given so far */
        finish(begin(far));
        assert_int_equal(ebb_site_destroy(far), 0);
    }
    for (unsigned i = 3; i >= 2; i--) { /* whoever had it, the number is free */
        assert_int_equal(ebb_site_destroy(sites[i]), 0);
        sites[i] = SITE(.name = "call");
        finish(begin(sites[i]));
        assert_string_equal(told_of(sites[i]), names[i][1]);
    }
    destroy_all(sites, COUNT);
}

/* Half a number is another number, and half a line no Prometheus reads. */
static void test_what_is_told_is_cut_behind_a_line(void **state) {
    static char text[64 << 10], part[64 << 10];
    for (unsigned form = 0; form < 2; form++) {
        size_t whole = view_write(text, sizeof text, form);
        for (size_t room = 1; room < whole; room += 7) {
            memset(part, 'x', room + 1);
            size_t length = view_write(part, room, form);
            assert_true(length < room && part[length] == 0 && part[room] == 'x');
            assert_true(length == 0 || part[length - 1] == '\n');
            assert_true(length != 0 || room <= 200);
        }
    }
}

/* While a text is written nobody makes or ends a site. Who reads the oldest waits for ever here. */
static void test_what_is_not_told_is_not_read(void **state) {
    enum { COUNT = 100 };
    static char text[8192]; /* for Prometheus: all sites' first number, and some of the second */
    ebb_site *sites[COUNT];
    (void)state;
    for (unsigned i = 0; i < COUNT; i++)
        finish(begin(sites[i] = SITE(.name = i ? "newer" : "oldest")));
    ebb_site *oldest = served_of(sites[0])->hidden;
    pthread_mutex_lock(&oldest->lock);
    alarm(20);
    for (unsigned form = 0; form < 2; form++)
        assert_true(view_write(text, sizeof text, form) > sizeof text - 100);
    assert_non_null(strstr(text, "{site=\"oldest\"} 1\n"));
    alarm(0);
    pthread_mutex_unlock(&oldest->lock);
    destroy_all(sites, COUNT);
}

/* The zone of trays is reserved: what was never a tray nobody can touch, or look at for minutes. */
static void test_trays_are_open_and_not_their_zone(void **state) {
    ebb_step step = begin(*state);
    void *block = make(100, 1);
    uintptr_t at = (uintptr_t)block, end_of_zone = tray_zone.base + tray_zone.bytes;
    assert_true(is_of_a_scope(block) && at >= tray_zone.base && at < end_of_zone);
    assert_int_equal(maps_open(at, at + 100), 100);
    size_t carved = atomic_load(&tray_zone.carved);
    assert_true(carved < tray_zone.bytes); /* under valgrind most of a small zone is in use */
    assert_int_equal(maps_open(tray_zone.base, end_of_zone), carved);
    assert_false(tray_holds(tray_zone.base + carved));
    assert_true(tray_reserves(tray_zone.base + carved));
    /* what jemalloc skips for an alignment, a free may come upon */
    bool zero = false, commit = false;
    for (size_t align = EBB_PAGE; align <= 2 * MIB; align *= 512)
        assert_non_null(tray_zone.hooks.alloc(&tray_zone.hooks, NULL, EBB_PAGE, align, &zero,
                                              &commit, tray_zone.arena));
    carved = atomic_load(&tray_zone.carved);
    assert_int_equal(maps_open(tray_zone.base, end_of_zone), carved);
    end(block, 100, 1);
    finish(step);
}

/* Trays take hardly more addresses than they have: among them there are no gaps for pages that
 * nobody uses, be they new, or used again after their pages have gone. */
static void test_trays_lie_beside_each_other(void **state) {
    enum { MANY = 200, BLOCKS = MANY * (TRAY_BYTES / TRAY_MOST) };
    static void *blocks[BLOCKS];
    for (unsigned round = 0; round < 3; round++) {
        uintptr_t lowest = UINTPTR_MAX, highest = 0;
        ebb_step step = begin(*state);
        for (unsigned i = 0; i < BLOCKS; i++) {
            blocks[i] = make(TRAY_MOST - 100, i);
            uintptr_t tray = (uintptr_t)tray_of((uintptr_t)blocks[i]);
            lowest = size_smaller(lowest, tray);
            highest = size_larger(highest, tray);
        }
        assert_true(here.scope->trays >= MANY);
        /* a few are with others, or with jemalloc */
        assert_true(highest - lowest <= TRAY_BYTES * here.scope->trays * 5 / 4);
        for (unsigned i = 0; i < BLOCKS; i++)
            end(blocks[i], TRAY_MOST - 100, i);
        finish(step);
        trim_all();
    }
}

/* A tray is found by its alignment; what is reserved begins at any page. */
static void test_a_zone_at_any_page_keeps_alignments(void **state) {
    static struct zone odd; /* jemalloc keeps its arena */
    bool zero = false, commit = false;
    (void)state;
    uintptr_t reserved = (uintptr_t)os.reserve(32 * MIB);
    assert_true(reserved != 0);
    odd.base = size_align(reserved, MIB) + EBB_PAGE;
    odd.bytes = 16 * MIB;
    assert_true(zone_open(&odd));
    for (size_t align = EBB_PAGE; align <= 2 * MIB; align *= 2) {
        void *at = odd.hooks.alloc(&odd.hooks, NULL, EBB_PAGE, align, &zero, &commit, odd.arena);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % align, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_without_a_scope_the_general_heap_serves),
        SERVED(test_a_step_without_scope_leaves_malloc_alone),
        SERVED(test_blocks_are_of_the_scope_and_usable),
        SERVED(test_a_survivor_of_every_kind_goes_when_freed),
        SERVED(test_places_are_used_again),
        SERVED(test_freed_places_are_forgotten_with_their_scope),
        SERVED(test_alignment),
        SERVED(test_zeroed),
        SERVED(test_resize),
        SERVED(test_a_survivor_that_shrinks_keeps_no_pages),
        SERVED(test_nested_scopes),
        SERVED(test_scopes_end_in_any_order),
        SERVED(test_scopes_are_left_and_entered),
        SERVED(test_ten_thousand_scopes_are_open_at_once),
        SERVED(test_the_program_may_place_blocks_in_the_step_as_well),
        SERVED(test_a_region_that_closes_ends_its_scope),
        SERVED(test_errno_is_kept),
        SERVED(test_counters),
        SERVED(test_growth_in_place_is_counted),
        SERVED(test_what_grows_to_whole_pages_begins_one),
        SERVED(test_names_of_sites_are_quoted),
        SERVED(test_sites_of_one_name_are_told_apart),
        SERVED(test_numbers_of_sites_that_ended_are_given_again),
        SERVED(test_names_with_numbers_are_told_apart),
        SERVED(test_what_is_told_is_cut_behind_a_line),
        SERVED(test_what_is_not_told_is_not_read),
        SERVED(test_trays_are_open_and_not_their_zone),
        SERVED(test_trays_lie_beside_each_other),
        SERVED(test_a_zone_at_any_page_keeps_alignments),
        cmocka_unit_test_setup(test_survivors_stay_where_they_are, serve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
