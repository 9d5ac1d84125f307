// SPDX-License-Identifier: Apache-2.0
//
// small_lane.c - bump allocation in windows, and what may become of released blocks.
//
// All ways of reuse share the same bump: cursor and limit bound the current hole, which is a whole
// fresh window in the simplest case; they differ in where the next hole comes from. One invariant:
// no live block lies in [cursor, limit). Nothing is refused: callers give blocks that are alive,
// and sizes and alignments, powers of two, that small_lane_has_room() for.

#include "small_lane.h"

#include <stdlib.h>
#include <string.h>

#include "buffers.h"

enum { PACKED_ALIGN = 64 };

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

static bool reuses_holes(const struct small_lane *lane)
{
    return lane->options.reuse == REUSE_HOLES || lane->options.reuse == REUSE_HOLES_BACK;
}

static bool gives_back(const struct small_lane *lane)
{
    return (lane->options.reuse == REUSE_WINDOW_BACK || lane->options.reuse == REUSE_HOLES_BACK) &&
           lane->options.source != WINDOWS_SEPARATE;
}

void small_lane_reset(struct small_lane *lane, const struct small_options *options,
                      struct large_lane *host)
{
    lane->options = *options;
    lane->host = host;
    lane->separate_top = 0;
    lane->window_count = lane->spare_count = 0;
    lane->current = NO_WINDOW;
    lane->cursor = lane->limit = 0;
    lane->in_pass = false;
    for (size_t i = 0; i < sizeof lane->classes / sizeof lane->classes[0]; i++)
        lane->classes[i].count = 0;
}

void small_lane_free(struct small_lane *lane)
{
    for (size_t i = 0; i < lane->window_capacity; i++)
        free(lane->windows[i].in_use);
    for (size_t i = 0; i < sizeof lane->classes / sizeof lane->classes[0]; i++)
        free(lane->classes[i].blocks);
    free(lane->windows);
    free(lane->spare);
    *lane = (struct small_lane){0};
}

static uint64_t window_align(const struct small_options *options)
{
    return options->source == WINDOWS_PACKED ? PACKED_ALIGN : options->window_bytes;
}

bool small_lane_has_room(const struct small_options *options, uint64_t bytes, uint64_t align)
{
    uint64_t of_window = window_align(options), pad = align > of_window ? align - of_window : 0;

    bytes = align_up(bytes ? bytes : 1, SMALL_GRANULE);
    return bytes <= options->window_bytes && pad <= options->window_bytes - bytes;
}

// ---- windows

static void bump_in(struct small_lane *lane, int32_t window)
{
    lane->current = window;
    lane->cursor = lane->windows[window].base;
    lane->limit = lane->cursor + lane->options.window_bytes;
}

static void push_spare(struct small_lane *lane, int32_t window)
{
    lane->spare = buffer_reserve(lane->spare, &lane->spare_capacity, lane->spare_count,
                                 sizeof *lane->spare);
    lane->spare[lane->spare_count++] = window;
}

static int32_t add_window_record(struct small_lane *lane)
{
    size_t old = lane->window_capacity;

    lane->windows = buffer_reserve(lane->windows, &lane->window_capacity, lane->window_count,
                                   sizeof *lane->windows);
    memset(lane->windows + old, 0, (lane->window_capacity - old) * sizeof *lane->windows);
    return (int32_t)lane->window_count++;
}

static void clear_in_use(struct small_lane *lane, struct window *window)
{
    size_t granules = (size_t)(lane->options.window_bytes / SMALL_GRANULE);

    if (window->in_use_capacity < granules) {
        window->in_use = buffer_resize(window->in_use, granules, 1);
        window->in_use_capacity = granules;
    }
    memset(window->in_use, 0, granules);
}

static void place_window(struct small_lane *lane, struct window *window)
{
    uint64_t bytes = lane->options.window_bytes;

    window->block = NO_BLOCK;
    if (lane->options.source == WINDOWS_SEPARATE) {
        window->base = lane->separate_top;
        lane->separate_top += bytes;
        return;
    }
    window->block = large_lane_allocate(lane->host, bytes, window_align(&lane->options));
    window->base = large_lane_address(lane->host, window->block);
}

static void bump_in_fresh_window(struct small_lane *lane)
{
    int32_t number = gives_back(lane) && lane->spare_count ? lane->spare[--lane->spare_count]
                                                           : add_window_record(lane);
    struct window *window = &lane->windows[number];

    window->live_bytes = 0;
    window->is_given_back = false;
    if (reuses_holes(lane))
        clear_in_use(lane, window);
    place_window(lane, window);
    bump_in(lane, number);
}

// ---- holes

static void mark(struct small_lane *lane, const struct small_block *block, unsigned char in_use)
{
    struct window *window = &lane->windows[block->window];

    memset(window->in_use + (block->address - window->base) / SMALL_GRANULE, in_use,
           (size_t)(block->bytes / SMALL_GRANULE));
}

// The next run of free granules in `window` from *offset on; *offset moves behind it. An empty run
// at the window's end means that there is none.
static uint64_t next_run(const struct small_lane *lane, const struct window *window,
                         uint64_t *offset)
{
    uint64_t end = lane->options.window_bytes / SMALL_GRANULE;
    uint64_t i = *offset / SMALL_GRANULE, start;

    while (i < end && window->in_use[i])
        i++;
    start = i;
    while (i < end && !window->in_use[i])
        i++;
    *offset = i * SMALL_GRANULE;
    return start * SMALL_GRANULE;
}

static bool bump_in_hole_of(struct small_lane *lane, size_t number, uint64_t bytes, uint64_t align)
{
    struct window *window = &lane->windows[number];
    uint64_t least = bytes > lane->options.hole_bytes ? bytes : lane->options.hole_bytes;

    if (window->is_given_back || lane->options.window_bytes - window->live_bytes < least)
        return false;
    while (lane->pass_offset < lane->options.window_bytes) {
        uint64_t start = next_run(lane, window, &lane->pass_offset);
        uint64_t first = align_up(window->base + start, align);

        if (lane->pass_offset - start < least || first + bytes > window->base + lane->pass_offset)
            continue;
        lane->current = (int32_t)number;
        lane->cursor = window->base + start;
        lane->limit = window->base + lane->pass_offset;
        return true;
    }
    return false;
}

// Goes on with the pass over all windows; where it has ended, one fresh window is due before the
// next pass begins.
static bool bump_in_next_hole(struct small_lane *lane, uint64_t bytes, uint64_t align)
{
    if (!lane->in_pass) {
        lane->in_pass = true;
        lane->pass_window = 0;
        lane->pass_offset = 0;
    }
    for (; lane->pass_window < lane->window_count; lane->pass_window++, lane->pass_offset = 0)
        if (bump_in_hole_of(lane, lane->pass_window, bytes, align))
            return true;
    lane->in_pass = false;
    return false;
}

// ---- size classes

// The newest block of the class, where its address suits `align`.
static bool pop_class(struct small_lane *lane, uint64_t bytes, uint64_t align,
                      struct small_block *block)
{
    struct size_class *class = &lane->classes[bytes / SMALL_GRANULE];

    if (!class->count || class->blocks[class->count - 1].address & (align - 1))
        return false;
    *block = class->blocks[--class->count];
    return true;
}

static void push_class(struct small_lane *lane, struct small_block block)
{
    struct size_class *class = &lane->classes[block.bytes / SMALL_GRANULE];

    class->blocks =
        buffer_reserve(class->blocks, &class->capacity, class->count, sizeof *class->blocks);
    class->blocks[class->count++] = block;
}

// ---- either

static bool bump(struct small_lane *lane, uint64_t bytes, uint64_t align,
                 struct small_block *block)
{
    uint64_t address = align_up(lane->cursor, align);

    if (lane->current == NO_WINDOW || address + bytes > lane->limit)
        return false;
    *block = (struct small_block){address, bytes, lane->current};
    lane->cursor = address + bytes;
    return true;
}

static void bump_elsewhere(struct small_lane *lane, uint64_t bytes, uint64_t align)
{
    if (reuses_holes(lane) && bump_in_next_hole(lane, bytes, align))
        return;
    if (lane->options.reuse == REUSE_WINDOW && lane->spare_count)
        bump_in(lane, lane->spare[--lane->spare_count]);
    else
        bump_in_fresh_window(lane);
}

struct small_block small_lane_allocate(struct small_lane *lane, uint64_t bytes, uint64_t align)
{
    struct small_block block;

    bytes = align_up(bytes ? bytes : 1, SMALL_GRANULE);
    if (lane->options.reuse != REUSE_CLASSES || !pop_class(lane, bytes, align, &block))
        while (!bump(lane, bytes, align, &block))
            bump_elsewhere(lane, bytes, align);
    lane->windows[block.window].live_bytes += bytes;
    if (reuses_holes(lane))
        mark(lane, &block, 1);
    return block;
}

// All blocks of `number` are released.
static void empty_window(struct small_lane *lane, int32_t number)
{
    struct window *window = &lane->windows[number];

    if (number == lane->current && (lane->options.reuse == REUSE_WINDOW || gives_back(lane))) {
        bump_in(lane, number);
    } else if (lane->options.reuse == REUSE_WINDOW) {
        push_spare(lane, number);
    } else if (gives_back(lane)) {
        large_lane_release(lane->host, window->block);
        window->is_given_back = true;
        push_spare(lane, number);
    }
}

void small_lane_release(struct small_lane *lane, struct small_block block)
{
    struct window *window = &lane->windows[block.window];

    window->live_bytes -= block.bytes;
    if (reuses_holes(lane))
        mark(lane, &block, 0);
    if (lane->options.reuse == REUSE_CLASSES)
        push_class(lane, block);
    else if (!window->live_bytes)
        empty_window(lane, block.window);
}
