// SPDX-License-Identifier: Apache-2.0
//
// simulate.c - plays a step through the two lanes and counts the pages that it touches.
//
// A block touches the pages of the bytes that were requested, at the time it is placed; padding and
// bookkeeping touch none. One invariant: a step starts with an empty space at address 0. Nothing is
// refused.

#include "simulate.h"

#include <stdlib.h>

#include "buffers.h"

static void place_small(struct simulator *simulator, const struct step_event *event,
                        struct placed *placed)
{
    bool separate = simulator->small.options.source == WINDOWS_SEPARATE;

    placed->is_small = true;
    placed->small = small_lane_allocate(&simulator->small, event->bytes,
                                        UINT64_C(1) << event->align_log2);
    pages_touch(separate ? &simulator->separate_pages : &simulator->pages,
                placed->small.address, event->bytes);
}

static void place_large(struct simulator *simulator, const struct step_event *event,
                        struct placed *placed)
{
    placed->is_small = false;
    placed->large = large_lane_allocate(&simulator->large, event->bytes,
                                        UINT64_C(1) << event->align_log2);
    pages_touch(&simulator->pages, large_lane_address(&simulator->large, placed->large),
                event->bytes);
}

static void release(struct simulator *simulator, const struct placed *placed)
{
    if (placed->is_small)
        small_lane_release(&simulator->small, placed->small);
    else
        large_lane_release(&simulator->large, placed->large);
}

static bool is_small(const struct variant *variant, const struct step_event *event)
{
    return variant->limit && event->bytes <= variant->limit &&
           small_lane_has_room(&variant->small, event->bytes, UINT64_C(1) << event->align_log2);
}

static void play(struct simulator *simulator, const struct variant *variant,
                 const struct step_event *event)
{
    struct placed *placed = &simulator->placed[event->object];

    if (event->is_free)
        release(simulator, placed);
    else if (is_small(variant, event))
        place_small(simulator, event, placed);
    else
        place_large(simulator, event, placed);
}

static void reserve_placed(struct simulator *simulator, size_t objects)
{
    if (objects <= simulator->placed_capacity)
        return;
    simulator->placed = buffer_resize(simulator->placed, objects, sizeof *simulator->placed);
    simulator->placed_capacity = objects;
}

uint64_t simulate_step(struct simulator *simulator, const struct variant *variant,
                       const struct step *step)
{
    large_lane_reset(&simulator->large, variant->placement, variant->granule);
    small_lane_reset(&simulator->small, &variant->small, &simulator->large);
    pages_reset(&simulator->pages);
    pages_reset(&simulator->separate_pages);
    reserve_placed(simulator, step->object_count);
    for (size_t i = 0; i < step->event_count; i++)
        play(simulator, variant, &step->events[i]);
    return pages_bytes(&simulator->pages) + pages_bytes(&simulator->separate_pages);
}

void simulator_free(struct simulator *simulator)
{
    large_lane_free(&simulator->large);
    small_lane_free(&simulator->small);
    pages_free(&simulator->pages);
    pages_free(&simulator->separate_pages);
    free(simulator->placed);
    *simulator = (struct simulator){0};
}
