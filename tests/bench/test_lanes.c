// SPDX-License-Identifier: Apache-2.0
//
// test_lanes.c - the simulator of the two lanes against brute force and against hand counts.
//
// Random blocks are kept in a list of address ranges; after every operation no two may overlap, and
// a placement must have chosen the hole that a look at all holes says it should. Then small traces
// whose steps and footprints were worked out on paper. Random runs print nothing and always use the
// same seeds, so a failure repeats.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pages.h"
#include "simulate.h"
#include "steps.h"
#include "trace.h"
#include "variants.h"

enum { LIVE_MAX = 200, ROUNDS = 20000 };

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % bound;
}

// ---- blocks that are alive

struct live {
    uint64_t address, bytes;
    int32_t large;
    struct small_block small;
};

struct model {
    struct live live[LIVE_MAX];
    size_t count;
};

static void model_add(struct model *model, struct live live, uint64_t align)
{
    assert_int_equal(live.address & (align - 1), 0);
    for (size_t i = 0; i < model->count; i++)
        assert_true(live.address + live.bytes <= model->live[i].address ||
                    model->live[i].address + model->live[i].bytes <= live.address);
    model->live[model->count++] = live;
}

static struct live model_take(struct model *model)
{
    size_t i = (size_t)random_below(model->count);
    struct live live = model->live[i];

    model->live[i] = model->live[--model->count];
    return live;
}

static bool model_should_allocate(const struct model *model)
{
    return !model->count || (model->count < LIVE_MAX && random_below(2));
}

static uint64_t random_align(void)
{
    return random_below(8) ? 16 : UINT64_C(16) << random_below(5);
}

// ---- large lane

struct choice {
    uint64_t address, bytes;
    bool found;
};

static bool better(enum placement placement, const struct choice *best,
                   const struct large_block *hole)
{
    if (!best->found)
        return true;
    if (placement == PLACE_BEST && hole->bytes != best->bytes)
        return hole->bytes < best->bytes;
    return hole->address < best->address;
}

static bool hole_fits(const struct large_block *hole, uint64_t bytes, uint64_t align)
{
    uint64_t start = (hole->address + align - 1) & ~(align - 1);

    return start + bytes <= hole->address + hole->bytes;
}

// The hole that a look at all of them says is right.
static struct choice look_at_all(const struct large_lane *lane, uint64_t bytes, uint64_t align)
{
    struct choice best = {0};

    for (int32_t i = lane->last; i != NO_BLOCK; i = lane->blocks[i].before) {
        const struct large_block *hole = &lane->blocks[i];

        if (hole->is_hole && hole_fits(hole, bytes, align) && better(lane->placement, &best, hole))
            best = (struct choice){hole->address, hole->bytes, true};
    }
    return best;
}

static void allocate_large(struct large_lane *lane, struct model *model)
{
    uint64_t bytes = 1 + random_below(random_below(4) ? 1000 : 20000);
    uint64_t align = random_align() < 64 ? 64 : random_align();
    uint64_t rounded = (bytes + lane->granule - 1) & ~(lane->granule - 1);
    uint64_t used_align = align < lane->granule ? lane->granule : align;
    struct choice right = look_at_all(lane, rounded, used_align);
    uint64_t top = lane->top;
    struct live live = {.bytes = rounded};

    live.large = large_lane_allocate(lane, bytes, align);
    live.address = large_lane_address(lane, live.large);
    model_add(model, live, align);
    if (lane->placement == PLACE_BEST || lane->placement == PLACE_FIRST) {
        assert_int_equal(right.found, top == lane->top);
        if (right.found)
            assert_int_equal(live.address, (right.address + used_align - 1) & ~(used_align - 1));
    } else if (used_align == lane->granule) {
        assert_int_equal(right.found, top == lane->top);
    }
}

static void run_large(enum placement placement, uint64_t granule)
{
    struct large_lane *lane = calloc(1, sizeof *lane);
    static struct model model;

    model.count = 0;
    random_state = (uint64_t)placement * 1000 + granule;
    large_lane_reset(lane, placement, granule);
    for (int i = 0; i < ROUNDS; i++) {
        if (model_should_allocate(&model))
            allocate_large(lane, &model);
        else
            large_lane_release(lane, model_take(&model).large);
        assert_true(large_lane_check(lane));
    }
    while (model.count)
        large_lane_release(lane, model_take(&model).large);
    assert_true(large_lane_check(lane));
    assert_true(lane->blocks[lane->last].is_hole && lane->blocks[lane->last].before == NO_BLOCK);
    large_lane_free(lane);
    free(lane);
}

static void best_fit_takes_the_smallest_hole_and_the_lowest_of_equals(void **state)
{
    (void)state;
    run_large(PLACE_BEST, 64);
    run_large(PLACE_BEST, 16);
}

static void first_fit_takes_the_lowest_hole(void **state)
{
    (void)state;
    run_large(PLACE_FIRST, 64);
    run_large(PLACE_FIRST, 16);
}

static void tlsf_grows_only_where_no_hole_fits(void **state)
{
    (void)state;
    run_large(PLACE_TLSF16, 64);
    run_large(PLACE_TLSF32, 64);
}

// Holes of 33 and 40 units of 64 bytes, the smaller one lower; where does a request of 33 go?
static uint64_t place_33_units(enum placement placement)
{
    struct large_lane *lane = calloc(1, sizeof *lane);
    int32_t smaller, larger;
    uint64_t address;

    large_lane_reset(lane, placement, 64);
    smaller = large_lane_allocate(lane, 33 * 64, 16);
    large_lane_allocate(lane, 1, 16);
    larger = large_lane_allocate(lane, 40 * 64, 16);
    large_lane_allocate(lane, 1, 16);
    large_lane_release(lane, smaller);
    large_lane_release(lane, larger);
    address = large_lane_address(lane, large_lane_allocate(lane, 33 * 64, 16));
    large_lane_free(lane);
    free(lane);
    return address;
}

static void tlsf_prefers_the_next_bin_to_looking_through_its_own(void **state)
{
    (void)state;
    assert_int_equal(place_33_units(PLACE_TLSF16), 34 * 64); // bins {32, 33}, {34, 35}, ...
    assert_int_equal(place_33_units(PLACE_TLSF32), 0);       // bins {32}, {33}, ...
    assert_int_equal(place_33_units(PLACE_BEST), 0);
    assert_int_equal(place_33_units(PLACE_FIRST), 0);
}

static void hole_at_the_top_is_extended_by_what_is_missing(void **state)
{
    struct large_lane *lane = calloc(1, sizeof *lane);
    int32_t a, b;

    (void)state;
    large_lane_reset(lane, PLACE_BEST, 64);
    a = large_lane_allocate(lane, 100, 16);
    b = large_lane_allocate(lane, 100, 16);
    assert_int_equal(lane->top, 256);
    large_lane_release(lane, b);
    b = large_lane_allocate(lane, 1000, 16);
    assert_int_equal(large_lane_address(lane, a), 0);
    assert_int_equal(large_lane_address(lane, b), 128);
    assert_int_equal(lane->top, 128 + 1024);
    large_lane_free(lane);
    free(lane);
}

// ---- small lane

static void allocate_small(struct small_lane *lane, struct model *model)
{
    uint64_t bytes = random_below(random_below(4) ? 100 : 1025);
    uint64_t align = random_align();
    struct live live = {.large = NO_BLOCK};
    const struct window *window;

    live.small = small_lane_allocate(lane, bytes, align);
    live.address = live.small.address;
    live.bytes = live.small.bytes;
    assert_true(live.bytes >= bytes && live.bytes < bytes + 32);
    window = &lane->windows[live.small.window];
    assert_false(window->is_given_back);
    assert_true(live.address >= window->base);
    assert_true(live.address + live.bytes <= window->base + lane->options.window_bytes);
    model_add(model, live, align);
}

static void take_small_or_large(struct small_lane *lane, struct model *model)
{
    struct live live = model_take(model);

    if (live.large == NO_BLOCK)
        small_lane_release(lane, live.small);
    else
        large_lane_release(lane->host, live.large);
}

static void run_round(struct small_lane *lane, struct model *model)
{
    bool separate = lane->options.source == WINDOWS_SEPARATE;

    if (!model_should_allocate(model))
        take_small_or_large(lane, model);
    else if (!separate && !random_below(6))
        allocate_large(lane->host, model);
    else
        allocate_small(lane, model);
}

static void run_small(const struct variant *variant)
{
    struct large_lane *large = calloc(1, sizeof *large);
    struct small_lane *small = calloc(1, sizeof *small);
    static struct model model;

    model.count = 0;
    random_state = variant->small.window_bytes + variant->small.hole_bytes;
    large_lane_reset(large, variant->placement, variant->granule);
    small_lane_reset(small, &variant->small, large);
    for (int i = 0; i < ROUNDS / 10; i++)
        run_round(small, &model);
    assert_true(large_lane_check(large));
    small_lane_free(small);
    large_lane_free(large);
    free(small);
    free(large);
}

static void no_way_of_reuse_lets_blocks_overlap(void **state)
{
    struct variants variants = {0};
    size_t runs = 0;

    (void)state;
    variants_add_all(&variants);
    for (size_t i = 0; i < variants.count; i++)
        if (variants.variant[i].limit == 1024) {
            run_small(&variants.variant[i]);
            runs++;
        }
    assert_int_equal(runs, 4 * 3 * (8 + 8 + 6));
    variants_free(&variants);
}

static uint64_t simulate_afresh(const struct variant *variant, const struct step *step)
{
    struct simulator *simulator = calloc(1, sizeof *simulator);
    uint64_t bytes = simulate_step(simulator, variant, step);

    simulator_free(simulator);
    free(simulator);
    return bytes;
}

static void every_variant_can_be_simulated_from_one_set_of_buffers(void **state)
{
    struct step_event events[64];
    struct step step = {.events = events, .event_count = 64, .object_count = 32};
    struct simulator *simulator = calloc(1, sizeof *simulator);
    struct variants variants = {0};

    (void)state;
    for (uint32_t i = 0; i < 32; i++) {
        events[i] = (struct step_event){UINT64_C(1) << (i % 18), i, 4, false};
        events[32 + i] = (struct step_event){.object = i, .is_free = true};
    }
    variants_add_all(&variants);
    for (size_t i = 0; i < variants.count; i++)
        assert_int_equal(simulate_step(simulator, &variants.variant[i], &step),
                         simulate_afresh(&variants.variant[i], &step));
    simulator_free(simulator);
    free(simulator);
    variants_free(&variants);
}

// ---- steps

static struct ebb_trace *trace_of(const char *text)
{
    char path[] = "/tmp/test_lanes.XXXXXX";
    int fd = mkstemp(path);
    struct trace_error error;
    struct ebb_trace *trace;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    trace = trace_read(path, &error);
    unlink(path);
    if (!trace)
        print_error("%s\n", error.text);
    assert_non_null(trace);
    return trace;
}

static void collect(struct steps *steps, const char *text)
{
    struct ebb_trace *trace = trace_of(text);

    steps_collect(steps, trace);
    trace_free(trace);
}

static void check_step_event(const struct step *step, size_t i, uint32_t object, uint64_t bytes,
                             bool is_free)
{
    assert_true(i < step->event_count);
    assert_int_equal(step->events[i].object, object);
    assert_int_equal(step->events[i].bytes, bytes);
    assert_int_equal(step->events[i].is_free, is_free);
}

static void warm_up_nested_and_empty_regions_are_left_out(void **state)
{
    struct steps steps;

    (void)state;
    collect(&steps, "#ebb-trace 1\n#warmup 1\n"
                    "B outer 0 0\na 1 T\nE outer 0\n" // warm-up
                    "B outer 1 0\na 2 T\nB inner 0 0\na 3 T\nE inner 0\nE outer 0\n"
                    "B outer 2 0\nE outer 0\n" // empty
                    "a 4 T\n"                  // outside
                    "B inner 1 0\na 5 T\nE inner 0\n" // the nested one was its kind's warm-up
                    "B log 0 0\na 7 T\nE log 0\n"     // warm-up of its kind, too
                    "B inner 2 0\na 6 T\nE inner 0\n");
    assert_int_equal(steps.count, 3);
    assert_int_equal(steps.step[0].event_count, 2);
    check_step_event(&steps.step[0], 0, 0, 2, false);
    check_step_event(&steps.step[0], 1, 1, 3, false);
    assert_int_equal(steps.step[1].event_count, 1);
    check_step_event(&steps.step[1], 0, 0, 5, false);
    assert_int_equal(steps.step[2].event_count, 1);
    check_step_event(&steps.step[2], 0, 0, 6, false);
    steps_free(&steps);
}

static void objects_belong_to_the_thread_that_allocates_them(void **state)
{
    struct steps steps;

    (void)state;
    collect(&steps, "#ebb-trace 1\np 9 0 T\n"
                    "B k 0 0\na 10 T\nf 2\n"         // the free of an older object: not counted
                    "t 1\na 20 T\nf 2\nt 0\na 30 T\n" // thread 1: no region; frees object 1
                    "E k 0\nf 1\n");                 // after the end: not counted
    assert_int_equal(steps.count, 1);
    assert_int_equal(steps.step[0].event_count, 3);
    check_step_event(&steps.step[0], 0, 0, 10, false);
    check_step_event(&steps.step[0], 1, 0, 0, true);
    check_step_event(&steps.step[0], 2, 1, 30, false);
    assert_int_equal(steps.step[0].max_live_bytes, 30);
    steps_free(&steps);
}

static void realloc_places_the_new_block_before_the_old_one_goes(void **state)
{
    struct steps steps;

    (void)state;
    collect(&steps, "#ebb-trace 1\nB k 0 0\na 100 T\nr 1 150 T\nf 1\nE k 0\n");
    assert_int_equal(steps.count, 1);
    check_step_event(&steps.step[0], 0, 0, 100, false);
    check_step_event(&steps.step[0], 1, 1, 150, false);
    check_step_event(&steps.step[0], 2, 0, 0, true);
    check_step_event(&steps.step[0], 3, 1, 0, true);
    assert_int_equal(steps.step[0].max_live_bytes, 150);
    steps_free(&steps);
}

// ---- footprints worked out on paper

static uint64_t footprint(const char *text, uint64_t limit, enum reuse reuse,
                          enum window_source source)
{
    struct variant variant = {.limit = limit,
                              .placement = PLACE_BEST,
                              .granule = 64,
                              .small = {reuse, source, 4096, 256}};
    struct simulator *simulator = calloc(1, sizeof *simulator);
    struct steps steps;
    uint64_t bytes;

    collect(&steps, text);
    assert_int_equal(steps.count, 1);
    bytes = simulate_step(simulator, &variant, &steps.step[0]);
    steps_free(&steps);
    simulator_free(simulator);
    free(simulator);
    return bytes;
}

static void footprint_counts_pages_that_were_ever_touched(void **state)
{
    (void)state;
    // two blocks of 4096: two pages; the third lies where the first was
    assert_int_equal(footprint("#ebb-trace 1\nB k 0 0\na 4096 T\na 4096 T\nf 2\na 4096 T\nE k 0\n",
                               0, REUSE_NONE, WINDOWS_PACKED),
                     8192);
    // 4097 bytes and 1 byte: rounded to 4160 and 64, in two pages
    assert_int_equal(footprint("#ebb-trace 1\nB k 0 0\na 4097 T\na 1 T\nE k 0\n", 0, REUSE_NONE,
                               WINDOWS_PACKED),
                     8192);
    // a window of which one byte is used, and a large block behind it
    assert_int_equal(footprint("#ebb-trace 1\nB k 0 0\na 1 T\na 4096 T\nE k 0\n", 1024, REUSE_NONE,
                               WINDOWS_PACKED),
                     8192);
    assert_int_equal(footprint("#ebb-trace 1\nB k 0 0\na 0 T\na 8192 T\nE k 0\n", 1024, REUSE_NONE,
                               WINDOWS_SEPARATE),
                     12288);
}

// Twelve times 1000 bytes, each freed before the next.
static const char one_by_one[] = "#ebb-trace 1\nB k 0 0\n"
                                 "a 1000 T\nf 1\na 1000 T\nf 1\na 1000 T\nf 1\na 1000 T\nf 1\n"
                                 "a 1000 T\nf 1\na 1000 T\nf 1\na 1000 T\nf 1\na 1000 T\nf 1\n"
                                 "a 1000 T\nf 1\na 1000 T\nf 1\na 1000 T\nf 1\na 1000 T\nf 1\n"
                                 "E k 0\n";

static void blocks_freed_one_by_one_take_three_pages_without_reuse(void **state)
{
    (void)state;
    assert_int_equal(footprint(one_by_one, 1024, REUSE_NONE, WINDOWS_PACKED), 3 * 4096);
    assert_int_equal(footprint(one_by_one, 1024, REUSE_WINDOW, WINDOWS_PACKED), 4096);
    assert_int_equal(footprint(one_by_one, 1024, REUSE_WINDOW_BACK, WINDOWS_PACKED), 4096);
    // four blocks a window; one pass over it, then a fresh window is due
    assert_int_equal(footprint(one_by_one, 1024, REUSE_HOLES, WINDOWS_PACKED), 2 * 4096);
    assert_int_equal(footprint(one_by_one, 1024, REUSE_HOLES_BACK, WINDOWS_ALIGNED), 4096);
    assert_int_equal(footprint(one_by_one, 1024, REUSE_CLASSES, WINDOWS_SEPARATE), 4096);
}

// Four blocks fill a window; then a hole of 1008 bytes for 496, or one of 240 for 200.
static void holes_below_the_least_size_are_passed_over(void **state)
{
    const char *wide = "#ebb-trace 1\nB k 0 0\na 1000 T\na 1000 T\na 1000 T\na 1000 T\n"
                       "f 3\na 496 T\nE k 0\n";
    const char *narrow = "#ebb-trace 1\nB k 0 0\na 1024 T\na 1024 T\na 1024 T\na 784 T\na 240 T\n"
                         "f 1\na 200 T\nE k 0\n";

    (void)state;
    assert_int_equal(footprint(wide, 1024, REUSE_HOLES, WINDOWS_PACKED), 4096);
    assert_int_equal(footprint(narrow, 1024, REUSE_HOLES, WINDOWS_PACKED), 8192);
    assert_int_equal(footprint(narrow, 1024, REUSE_CLASSES, WINDOWS_PACKED), 8192); // 208, not 240
}

static void aligned_windows_start_at_a_multiple_of_their_size(void **state)
{
    const char *text = "#ebb-trace 1\nB k 0 0\na 2048 T\na 1024 T\na 1024 T\nE k 0\n";

    (void)state;
    assert_int_equal(footprint(text, 1024, REUSE_NONE, WINDOWS_PACKED), 4096);
    assert_int_equal(footprint(text, 1024, REUSE_NONE, WINDOWS_ALIGNED), 8192);
}

static void limit_itself_is_small_and_one_byte_more_is_large(void **state)
{
    const char *at = "#ebb-trace 1\nB k 0 0\na 1024 T\na 4000 T\nE k 0\n";
    const char *above = "#ebb-trace 1\nB k 0 0\na 1025 T\na 3008 T\nE k 0\n";

    (void)state;
    assert_int_equal(footprint(at, 1024, REUSE_NONE, WINDOWS_PACKED), 8192);    // 4096 + 4000
    assert_int_equal(footprint(above, 1024, REUSE_NONE, WINDOWS_PACKED), 4096); // 1088 + 3008
}

static bool has_room(enum window_source source, uint64_t bytes, uint64_t align)
{
    const struct small_options options = {REUSE_NONE, source, 4096, 256};

    return small_lane_has_room(&options, bytes, align);
}

static void small_blocks_are_those_that_any_window_has_room_for(void **state)
{
    (void)state;
    assert_true(has_room(WINDOWS_PACKED, 4096, 64));
    assert_false(has_room(WINDOWS_PACKED, 4096, 128));
    assert_false(has_room(WINDOWS_PACKED, 4097, 16));
    assert_true(has_room(WINDOWS_PACKED, 64, 4096));
    assert_false(has_room(WINDOWS_PACKED, 65, 4096));
    assert_false(has_room(WINDOWS_PACKED, 0, 8192));
    for (int source = WINDOWS_ALIGNED; source <= WINDOWS_SEPARATE; source++) {
        assert_true(has_room((enum window_source)source, 4096, 4096));
        assert_false(has_room((enum window_source)source, 0, 8192));
    }
}

// All windows begin 64 bytes behind a page, and end 64 bytes behind the next.
static void aligned_block_that_fits_no_window_is_large(void **state)
{
    const char *text = "#ebb-trace 1\nB k 0 0\na 4160 T\nm 1000 4096 T\nE k 0\n";

    (void)state;
    assert_int_equal(footprint(text, 1024, REUSE_NONE, WINDOWS_PACKED), 3 * 4096);
}

static void pages_are_counted_once(void **state)
{
    struct pages pages = {0};

    (void)state;
    pages_touch(&pages, 0, 1);
    pages_touch(&pages, 4095, 1);
    assert_int_equal(pages_bytes(&pages), 4096);
    pages_touch(&pages, 4095, 2);
    pages_touch(&pages, 1 << 20, 0);
    assert_int_equal(pages_bytes(&pages), 3 * 4096);
    pages_reset(&pages);
    assert_int_equal(pages_bytes(&pages), 0);
    pages_free(&pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_fit_takes_the_smallest_hole_and_the_lowest_of_equals),
        cmocka_unit_test(first_fit_takes_the_lowest_hole),
        cmocka_unit_test(tlsf_grows_only_where_no_hole_fits),
        cmocka_unit_test(tlsf_prefers_the_next_bin_to_looking_through_its_own),
        cmocka_unit_test(hole_at_the_top_is_extended_by_what_is_missing),
        cmocka_unit_test(no_way_of_reuse_lets_blocks_overlap),
        cmocka_unit_test(every_variant_can_be_simulated_from_one_set_of_buffers),
        cmocka_unit_test(warm_up_nested_and_empty_regions_are_left_out),
        cmocka_unit_test(objects_belong_to_the_thread_that_allocates_them),
        cmocka_unit_test(realloc_places_the_new_block_before_the_old_one_goes),
        cmocka_unit_test(footprint_counts_pages_that_were_ever_touched),
        cmocka_unit_test(blocks_freed_one_by_one_take_three_pages_without_reuse),
        cmocka_unit_test(holes_below_the_least_size_are_passed_over),
        cmocka_unit_test(aligned_windows_start_at_a_multiple_of_their_size),
        cmocka_unit_test(limit_itself_is_small_and_one_byte_more_is_large),
        cmocka_unit_test(small_blocks_are_those_that_any_window_has_room_for),
        cmocka_unit_test(aligned_block_that_fits_no_window_is_large),
        cmocka_unit_test(pages_are_counted_once),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
