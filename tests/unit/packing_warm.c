// SPDX-License-Identifier: Apache-2.0
/*
 * packing_warm.c - who follows whom in a plan's places, and that plans stay plans.
 */
#include "kit/test.h"

#include "kit/instances.h"
#include "plan/warm.h"

#include <stdlib.h>

enum { MOST = 400, LARGE = 16 << 10, NONE = -1 };

/* One buffer is born in each section; so tiles are buffers. */
struct row {
    uint32_t count;
    struct packing_buffer buffers[MOST];
    uint64_t offsets[MOST];
};

static void bear(struct row *row, uint64_t bytes, uint32_t align, uint32_t life) {
    uint32_t now = row->count++;
    row->buffers[now] = (struct packing_buffer){now, now + life, align, bytes};
}

static void warm(struct row *row) {
    static struct tile tiles[MOST];
    static struct ordered list[MOST], scratch[MOST];
    for (uint32_t i = 0; i < row->count; i++) {
        const struct packing_buffer *buffer = &row->buffers[i];
        uint32_t end = buffer->upper < row->count ? buffer->upper : row->count;
        tiles[i] = (struct tile){buffer->bytes, i, end, buffer->align, i};
    }
    warm_places(tiles, row->count, row->offsets, list, scratch);
}

static uint64_t height_of(const struct row *row) {
    uint64_t height = 0;
    for (uint32_t i = 0; i < row->count; i++)
        if (row->offsets[i] + row->buffers[i].bytes > height)
            height = row->offsets[i] + row->buffers[i].bytes;
    return height;
}

static uint64_t pack(struct row *row) {
    void *workspace = instance_workspace(row->count);
    struct packing_result result;
    const struct packing_effort once = {.keys = 1};
    assert_int_equal(packing_solve(row->buffers, row->count, &once, workspace, row->offsets,
                                   &result), 0);
    free(workspace);
    return result.height;
}

/* ---- who follows whom */

static void a_buffer_follows_the_one_that_left_last(void **state) {
    struct row row = {0};
    bear(&row, LARGE, 64, 3); /* leaves first */
    bear(&row, LARGE, 64, 3);
    bear(&row, 16, 16, 6);
    bear(&row, 16, 16, 6);
    bear(&row, LARGE, 64, 2);
    bear(&row, LARGE, 64, 2);
    uint64_t offsets[] = {0, LARGE, 2 * LARGE, 2 * LARGE + 16, 0, LARGE};
    memcpy(row.offsets, offsets, sizeof offsets);
    warm(&row);
    assert_true(row.offsets[4] == LARGE && row.offsets[5] == 0);
    assert_memory_equal(row.offsets, offsets, 4 * sizeof *offsets);
}

static void what_comes_later_moves_as_well(void **state) {
    struct row row = {0};
    bear(&row, LARGE, 64, 2);
    bear(&row, LARGE, 64, 1);
    bear(&row, LARGE, 64, 4);     /* is to follow 1, in whose place are ... */
    bear(&row, LARGE / 2, 64, 2); /* ... these */
    bear(&row, LARGE / 2, 64, 3);
    bear(&row, LARGE, 64, 1);
    uint64_t offsets[] = {0, LARGE, 0, LARGE, LARGE + LARGE / 2, 2 * LARGE};
    memcpy(row.offsets, offsets, sizeof offsets);
    warm(&row);
    uint64_t moved[] = {0, LARGE, LARGE, 0, LARGE / 2, 2 * LARGE};
    assert_memory_equal(row.offsets, moved, sizeof moved);
}

static void a_smaller_one_has_the_beginning_of_the_place(void **state) {
    struct row row = {0};
    bear(&row, 3 * LARGE, 64, 1);
    bear(&row, LARGE, 64, 1);
    uint64_t offsets[] = {0, 3 * LARGE};
    memcpy(row.offsets, offsets, sizeof offsets);
    warm(&row);
    assert_true(row.offsets[0] == 0 && row.offsets[1] == 0);
}

/* The place of a tile has become free, and another one would follow it if it could; `between`, if
 * there is one, was born at `at` meanwhile. */
static void is_not_moved(uint64_t bytes, uint32_t align, const struct packing_buffer *between,
                         uint64_t at) {
    struct row row = {0};
    bear(&row, 2 * LARGE, 64, 1);
    if (between)
        bear(&row, between->bytes, between->align, between->upper);
    bear(&row, bytes, align, 3);
    bear(&row, 16, 16, 1);
    uint64_t offsets[] = {64, at, 4 * LARGE, 8 * LARGE};
    if (!between) {
        offsets[1] = 4 * LARGE;
        offsets[2] = 8 * LARGE;
    }
    memcpy(row.offsets, offsets, sizeof offsets);
    warm(&row);
    assert_memory_equal(row.offsets, offsets, row.count * sizeof *offsets);
}

static void none_moves_where_it_cannot_be(void **state) {
    is_not_moved(2 * LARGE + 64, 64, NULL, 0);   /* it is larger */
    is_not_moved(2 * LARGE, 128, NULL, 0);       /* it is aligned otherwise */
    is_not_moved(LARGE - 64, 64, NULL, 0);       /* it is too small to matter */
    struct packing_buffer between = {.bytes = 64, .align = 64, .upper = 9};
    is_not_moved(2 * LARGE, 64, &between, 64);   /* another one is there by now */
    is_not_moved(2 * LARGE, 64, &between, 2 * LARGE);
}

/* 300 small ones are born `before` the one that is to follow, or during its life. */
static bool follows_among_many(bool before) {
    static struct row row;
    row.count = 0;
    bear(&row, LARGE, 64, 1);
    for (unsigned i = 0; i < 300 && before; i++)
        bear(&row, 16, 16, 1);
    uint32_t last = row.count;
    bear(&row, LARGE, 64, 301);
    for (unsigned i = 0; i < 300 && !before; i++)
        bear(&row, 16, 16, 1);
    for (uint32_t i = 0; i < row.count; i++)
        row.offsets[i] = 2 * LARGE;
    row.offsets[0] = 0;
    row.offsets[last] = LARGE;
    warm(&row);
    return row.offsets[last] == 0;
}

static void nobody_looks_at_more_than_some_hundred(void **state) {
    assert_false(follows_among_many(true));
    assert_false(follows_among_many(false));
}

static void a_place_that_others_had_meanwhile_is_warm(void **state) {
    struct row row = {0};
    bear(&row, LARGE, 64, 1);
    bear(&row, 64, 64, 1);
    bear(&row, LARGE, 64, 1);
    uint64_t offsets[] = {0, 0, LARGE};
    memcpy(row.offsets, offsets, sizeof offsets);
    warm(&row);
    assert_true(row.offsets[1] == 0 && row.offsets[2] == 0);
}

static void what_has_no_bytes_stays_at_0(void **state) {
    struct row row = {0};
    bear(&row, LARGE, 64, 1);
    bear(&row, LARGE, 64, 3);
    bear(&row, 0, 64, 1);
    uint64_t offsets[] = {LARGE, 0, 0};
    memcpy(row.offsets, offsets, sizeof offsets);
    warm(&row);
    assert_true(row.offsets[1] == LARGE && row.offsets[2] == 0);
}

/* The last tile that left a place which nobody took since, when tile `now` is born; or NONE. */
static int left_last(const struct row *row, uint32_t now) {
    int last = NONE;
    for (uint32_t i = 0; i < now; i++) {
        bool is_left = row->buffers[i].upper <= now;
        for (uint32_t later = i + 1; later < now && is_left; later++)
            is_left = row->offsets[later] != row->offsets[i];
        if (is_left && (last == NONE || row->buffers[i].upper >= row->buffers[last].upper))
            last = (int)i;
    }
    return last;
}

/* So many have died since then. */
static unsigned deaths_since(const struct row *row, uint32_t tile, uint32_t now) {
    unsigned deaths = 0;
    for (uint32_t i = 0; i < now; i++)
        deaths += row->buffers[i].upper <= now &&
                  row->buffers[i].upper >= row->buffers[tile].upper;
    return deaths;
}

static void equal_buffers_are_a_stack(void **state) {
    static struct row row;
    uint64_t seed = 11;
    unsigned followed = 0;
    for (unsigned round = 0; round < 60; round++) {
        row.count = 0;
        uint32_t count = 2 + (uint32_t)(instance_draw(&seed) % 120);
        uint32_t life = 1 + (uint32_t)(instance_draw(&seed) % 14);
        for (uint32_t i = 0; i < count; i++)
            bear(&row, LARGE, 64, 1 + (uint32_t)(instance_draw(&seed) % life));
        pack(&row);
        for (uint32_t i = 0; i < count; i++) {
            int last = left_last(&row, i);
            if (last == NONE || deaths_since(&row, (uint32_t)last, i) > 16)
                continue; /* nobody looks back further */
            assert_true(row.offsets[i] == row.offsets[last]);
            followed++;
        }
    }
    assert_true(followed > 2000);
}

/* ---- plans stay plans */

static void draw_row(struct row *row, unsigned kind, uint64_t *seed) {
    static const uint64_t sizes[] = {LARGE, 4 * LARGE, LARGE, 3 * LARGE};
    row->count = 0;
    uint32_t count = 1 + (uint32_t)(instance_draw(seed) % (kind == 0 ? MOST : 60));
    uint32_t life = 1 + (uint32_t)(instance_draw(seed) % 40);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = instance_draw(seed) % 3 ? sizes[instance_draw(seed) % 4]
                                                 : instance_draw(seed) % (2 * LARGE);
        uint32_t align = 1u << instance_draw(seed) % (kind == 1 ? 16 : 7);
        bear(row, bytes, align, 1 + (uint32_t)(instance_draw(seed) % life));
    }
}

static bool is_free(const struct row *row, uint32_t tile, uint64_t place) {
    const struct packing_buffer *buffers = row->buffers;
    for (uint32_t i = 0; i < tile; i++)
        if (buffers[i].upper > tile && row->offsets[i] < place + buffers[tile].bytes &&
            place < row->offsets[i] + buffers[i].bytes)
            return false;
    return true;
}

/* As an allocator would that takes any free place. */
static void place_anywhere(struct row *row, uint64_t *seed) {
    uint64_t grain = instance_draw(seed) % 2 ? LARGE : 512;
    for (uint32_t i = 0; i < row->count; i++) {
        uint64_t align = row->buffers[i].align > grain ? row->buffers[i].align : grain;
        uint64_t places = 8 * LARGE / align + 1, place;
        do {
            place = instance_draw(seed) % places * align;
            places += places / 8 + 1;
        } while (!is_free(row, i, place));
        row->offsets[i] = place;
    }
}

static void random_plans_stay_plans_and_get_no_higher(void **state) {
    static struct row row, before;
    uint64_t seed = 12;
    unsigned moved = 0;
    for (unsigned round = 0; round < 3000; round++) {
        draw_row(&row, round % 3, &seed);
        place_anywhere(&row, &seed);
        assert_true(instance_holds(row.buffers, row.offsets, row.count, height_of(&row)));
        before = row;
        warm(&row);
        moved += memcmp(before.offsets, row.offsets, row.count * sizeof *row.offsets) != 0;
        assert_true(instance_holds(row.buffers, row.offsets, row.count, height_of(&before)));
    }
    assert_true(moved > 1000);
}

static void a_packing_says_how_high_it_is_now(void **state) {
    static struct row row;
    uint64_t seed = 13;
    for (unsigned round = 0; round < 600; round++) {
        draw_row(&row, round % 3, &seed);
        assert_true(pack(&row) == height_of(&row));
        assert_true(instance_holds(row.buffers, row.offsets, row.count, height_of(&row)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_follows_the_one_that_left_last),
        cmocka_unit_test(what_comes_later_moves_as_well),
        cmocka_unit_test(a_smaller_one_has_the_beginning_of_the_place),
        cmocka_unit_test(none_moves_where_it_cannot_be),
        cmocka_unit_test(nobody_looks_at_more_than_some_hundred),
        cmocka_unit_test(a_place_that_others_had_meanwhile_is_warm),
        cmocka_unit_test(what_has_no_bytes_stays_at_0),
        cmocka_unit_test(equal_buffers_are_a_stack),
        cmocka_unit_test(random_plans_stay_plans_and_get_no_higher),
        cmocka_unit_test(a_packing_says_how_high_it_is_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
