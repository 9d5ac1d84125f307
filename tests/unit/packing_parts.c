// SPDX-License-Identifier: Apache-2.0
/*
 * packing_parts.c - what plans are made with, each against the slow way: sorting, the set of
 * ranks, the contour, the tree of candidates, what is alive.
 */
#include "kit/test.h"

#include "kit/instances.h"
#include "plan/candidates.h"
#include "plan/contour.h"
#include "plan/live.h"
#include "plan/order.h"
#include "plan/ranks.h"

#include <stdlib.h>

enum { MOST = 5000 };

/* ---- order */

static void sorted_lists_keep_equal_keys_as_they_stood(void **state) {
    static struct ordered list[MOST], scratch[MOST];
    static const uint64_t masks[] = {0, 1, 0xff, 0xff00ff00, 0x7fffffff, UINT64_MAX};
    uint64_t seed = 1;
    for (unsigned round = 0; round < 60; round++) {
        uint32_t count = (uint32_t)(instance_draw(&seed) % MOST);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t number = instance_draw(&seed) << 33 ^ instance_draw(&seed);
            list[i] = (struct ordered){number & masks[round % 6], i};
        }
        order_sort(list, scratch, count);
        uint64_t seen = 0;
        for (uint32_t i = 1; i < count; i++) {
            assert_true(list[i - 1].key < list[i].key ||
                        (list[i - 1].key == list[i].key && list[i - 1].index < list[i].index));
            seen += list[i].index;
        }
        if (count > 0)
            assert_true(seen + list[0].index == (uint64_t)count * (count - 1) / 2);
    }
}

/* ---- ranks */

static uint32_t below(const bool *in, uint32_t rank) {
    while (rank-- > 0)
        if (in[rank])
            return rank;
    return RANK_NONE;
}

static uint32_t above(const bool *in, uint32_t rank, uint32_t count) {
    while (++rank < count)
        if (in[rank])
            return rank;
    return RANK_NONE;
}

static void a_set_of_ranks_knows_its_neighbours(void **state) {
    static const uint32_t counts[] = {1, 2, 63, 64, 65, 4095, 4096, 4097, MOST};
    static uint64_t words[MOST];
    uint64_t seed = 2;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        bool in[MOST] = {false};
        uint32_t count = counts[i];
        struct rank_set ranks;
        memset(words, 0xa5, sizeof words);
        ranks_clear(&ranks, words, count);
        assert_true(words[ranks_words(count)] == 0xa5a5a5a5a5a5a5a5); /* no further */
        for (unsigned step = 0; step < 4000; step++) {
            uint32_t rank = (uint32_t)(instance_draw(&seed) % count);
            bool add = instance_draw(&seed) % (step % 500 < 250 ? 4 : 2) == 0;
            (add ? ranks_add : ranks_drop)(&ranks, rank);
            in[rank] = add;
            rank = (uint32_t)(instance_draw(&seed) % count);
            assert_int_equal(ranks_below(&ranks, rank), below(in, rank));
            assert_int_equal(ranks_above(&ranks, rank), above(in, rank, count));
        }
    }
}

static void far_neighbours_are_found_across_all_levels(void **state) {
    uint32_t count = 1u << 25;
    uint64_t *words = malloc(ranks_words(count) * sizeof *words);
    assert_non_null(words);
    struct rank_set ranks;
    ranks_clear(&ranks, words, count);
    ranks_add(&ranks, 0);
    ranks_add(&ranks, count - 1);
    for (uint32_t rank = 1; rank < count - 1; rank = rank * 3 + 1) {
        assert_int_equal(ranks_below(&ranks, rank), 0);
        assert_int_equal(ranks_above(&ranks, rank), count - 1);
    }
    ranks_drop(&ranks, 0);
    assert_int_equal(ranks_below(&ranks, count - 1), RANK_NONE);
    assert_int_equal(ranks_above(&ranks, count - 1), RANK_NONE);
    free(words);
}

/* ---- contour */

enum { WIDTH = 200 };

static void contour_equals(const struct contour *contour, const uint64_t *heights) {
    const struct segment *segments = contour->segments;
    uint32_t count = 0;
    uint64_t lowest = UINT64_MAX;
    for (uint32_t start = 0; start < WIDTH; start = segments[start].next, count++) {
        const struct segment *segment = &segments[start];
        assert_int_equal(segments[segment->next].prev, start);
        assert_int_equal(contour->heap[segment->place].start, start);
        assert_true(contour->heap[segment->place].height == segment->height);
        assert_true(segment->height != segments[segment->next].height);
        for (uint32_t at = start; at < segment->next; at++)
            assert_true(heights[at] == segment->height);
        lowest = segment->height < lowest ? segment->height : lowest;
    }
    assert_int_equal(count, contour->heap_count);
    assert_true(segments[contour_lowest(contour)].height == lowest);
}

static void a_contour_is_as_high_as_what_was_put_on_it(void **state) {
    static struct segment segments[WIDTH + 1];
    static struct low heap[WIDTH];
    struct contour contour = {.segments = segments, .heap = heap, .width = WIDTH};
    uint64_t heights[WIDTH] = {0}, seed = 3;
    memset(segments, 0xa5, sizeof segments);
    contour_clear(&contour);
    for (unsigned step = 0; step < 5000; step++) {
        uint32_t start = contour_lowest(&contour), end = segments[start].next;
        uint64_t height = segments[start].height;
        if (end - start < WIDTH && instance_draw(&seed) % 3 == 0) {
            contour_raise(&contour);
            uint64_t left = start > 0 ? heights[start - 1] : UINT64_MAX;
            uint64_t right = end < WIDTH ? heights[end] : UINT64_MAX;
            height = left < right ? left : right;
        } else {
            uint32_t from = start + (uint32_t)(instance_draw(&seed) % (end - start));
            end = from + 1 + (uint32_t)(instance_draw(&seed) % (end - from));
            start = from;
            height += 1 + instance_draw(&seed) % 4;
            contour_put(&contour, start, end, height);
        }
        for (uint32_t at = start; at < end; at++)
            heights[at] = height;
        contour_equals(&contour, heights);
    }
}

/* ---- candidates */

static void fill_leaves(struct candidates *candidates, uint64_t *seed, uint32_t keys) {
    for (uint32_t i = 0; i < candidates->count; i++)
        candidates->nodes[candidates->count + i] = (struct candidate){
            1 + (uint32_t)(instance_draw(seed) % keys),
            i + 1 + (uint32_t)(instance_draw(seed) % candidates->count)};
    candidates_build(candidates);
}

static uint32_t largest_key(const struct candidate *leaves, uint32_t first, uint32_t end) {
    uint32_t key = 0;
    for (uint32_t i = first; i < end; i++)
        if (leaves[i].end <= end && leaves[i].key > key)
            key = leaves[i].key;
    return key;
}

/* With so few buffers the look ends before its bound. */
static void the_largest_key_that_fits_is_found(void **state) {
    static struct candidate nodes[2 * 90];
    uint64_t seed = 6;
    for (uint32_t count = 1; count <= 90; count++) {
        struct candidates candidates = {.nodes = nodes, .count = count};
        const struct candidate *leaves = nodes + count;
        fill_leaves(&candidates, &seed, count % 2 ? 5 : UINT32_MAX - 1);
        for (uint32_t left = count; left > 0;) {
            uint32_t first = (uint32_t)(instance_draw(&seed) % count);
            uint32_t end = first + 1 + (uint32_t)(instance_draw(&seed) % (count - first));
            if (instance_draw(&seed) % 4 == 0)
                first = 0, end = 2 * count; /* nothing is too long for that */
            uint32_t last = end < count ? end : count;
            uint32_t found = candidates_find(&candidates, first, last);
            uint32_t key = largest_key(leaves, first, last);
            if (key == 0) {
                assert_int_equal(found, CANDIDATE_NONE);
                candidates_remove(&candidates, count - left); /* so that it ends */
                left--;
                continue;
            }
            assert_in_range(found, first, last - 1);
            assert_true(leaves[found].end <= last && leaves[found].key == key);
            candidates_remove(&candidates, found);
        }
    }
}

static void a_bounded_look_still_finds_one_if_there_is_one(void **state) {
    static struct candidate nodes[2 * MOST];
    struct candidates candidates = {.nodes = nodes, .count = MOST};
    uint64_t seed = 7;
    fill_leaves(&candidates, &seed, UINT32_MAX - 1);
    for (unsigned round = 0; round < MOST; round++) {
        uint32_t first = (uint32_t)(instance_draw(&seed) % MOST);
        uint32_t end = first + 1 + (uint32_t)(instance_draw(&seed) % (MOST - first));
        uint32_t found = candidates_find(&candidates, first, end);
        bool there = largest_key(nodes + MOST, first, end) > 0;
        assert_int_equal(found != CANDIDATE_NONE, there);
        if (!there)
            continue;
        assert_in_range(found, first, end - 1);
        assert_true(nodes[MOST + found].key > 0 && nodes[MOST + found].end <= end);
        candidates_remove(&candidates, found);
    }
}

static uint64_t looks_most(uint32_t removed) {
    return 65536 + (uint64_t)32 * removed;
}

/* Keys and ends of which neither says anything about the other: a look seldom ends by itself. */
static struct candidates look_for_all(bool timed) {
    static struct candidate nodes[2 * MOST];
    struct candidates candidates = {.nodes = nodes, .count = MOST, .timed = timed};
    uint64_t seed = 8, most = 0;
    for (uint32_t i = 0; i < MOST; i++)
        nodes[MOST + i] = (struct candidate){1 + (uint32_t)(instance_draw(&seed) % UINT32_MAX),
                                             i + 1 + (uint32_t)(instance_draw(&seed) % (MOST - i))};
    candidates_build(&candidates);
    while (candidates.removed < MOST) {
        uint64_t before = candidates.looked;
        uint32_t end = MOST / 2 + (uint32_t)(instance_draw(&seed) % (MOST / 2));
        uint32_t found = candidates_find(&candidates, 0, end);
        if (found == CANDIDATE_NONE)
            found = candidates_find(&candidates, 0, MOST);
        assert_int_not_equal(found, CANDIDATE_NONE);
        assert_in_range(candidates.looked - before, 0, 400);
        candidates_remove(&candidates, found);
        most = candidates.looked - before > most ? candidates.looked - before : most;
        assert_true(timed || candidates.looked <= looks_most(candidates.removed));
    }
    assert_true(most >= 200); /* while there are few, all that one wants */
    return candidates;
}

static void looks_have_a_bound_for_all_buffers_together(void **state) {
    look_for_all(false);
}

static void looks_that_time_bounds_have_no_other_bound_together(void **state) {
    struct candidates candidates = look_for_all(true);
    assert_true(candidates.looked > 2 * looks_most(MOST));
}

/* ---- what is alive */

/* Tiles that are born up to so many at once, each of which dies at some birth or at the end. */
static void fill_tiles(struct tile *tiles, uint32_t count, uint32_t at_once, uint64_t *seed) {
    uint32_t ends[91], sections = 0; /* how many are born up to the end of each section */
    for (uint32_t born = 0; born < count; sections++) {
        born += 1 + (uint32_t)(instance_draw(seed) % at_once);
        ends[sections] = born = born < count ? born : count;
    }
    for (uint32_t i = 0, section = 0; i < count; i++) {
        section += i == ends[section];
        uint32_t last = section + (uint32_t)(instance_draw(seed) % (sections - section));
        tiles[i] = (struct tile){.bytes = instance_draw(seed) % 9, .end = ends[last],
                                 .first = section > 0 ? ends[section - 1] : 0};
    }
}

static uint64_t live_at(const struct tile *tiles, uint32_t birth) {
    uint64_t live = 0;
    for (uint32_t i = 0; i <= birth; i++)
        live += tiles[i].end > birth ? tiles[i].bytes : 0;
    return live;
}

static uint64_t most_in(const struct tile *tiles, uint32_t first, uint32_t end) {
    uint64_t most = 0;
    for (uint32_t i = first; i < end; i++)
        most = live_at(tiles, i) > most ? live_at(tiles, i) : most;
    return most;
}

static void what_is_alive_at_most_during_a_life_is_known(void **state) {
    struct tile tiles[90];
    struct low stack[90];
    uint64_t live[90], seed = 9;
    for (uint32_t count = 1; count <= 90; count++) {
        fill_tiles(tiles, count, 1 + count % 5, &seed);
        assert_true(live_fill(live, tiles, count));
        for (uint32_t i = 0; i < count; i++)
            assert_true(live[i] == live_at(tiles, i));
        live_to_most(live, tiles, count, stack);
        for (uint32_t i = 0; i < count; i++)
            assert_true(live[i] == most_in(tiles, tiles[i].first, tiles[i].end));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorted_lists_keep_equal_keys_as_they_stood),
        cmocka_unit_test(a_set_of_ranks_knows_its_neighbours),
        cmocka_unit_test(far_neighbours_are_found_across_all_levels),
        cmocka_unit_test(a_contour_is_as_high_as_what_was_put_on_it),
        cmocka_unit_test(the_largest_key_that_fits_is_found),
        cmocka_unit_test(a_bounded_look_still_finds_one_if_there_is_one),
        cmocka_unit_test(looks_have_a_bound_for_all_buffers_together),
        cmocka_unit_test(looks_that_time_bounds_have_no_other_bound_together),
        cmocka_unit_test(what_is_alive_at_most_during_a_life_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
