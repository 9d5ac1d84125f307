// SPDX-License-Identifier: Apache-2.0
//
// variants.c - the designs of the two lanes that are compared.
//
// All of them: limits 256 to 16384, windows of 4 to 64 KiB, ways of reuse, placements and sources
// of windows; and no small lane at all. One invariant: every variant can be simulated, so a limit
// is at most the window, a separate space gives no window back, and the bins of TLSF have the
// granule of 64 that they count in.

#include "variants.h"

#include <stdlib.h>

#include "buffers.h"

struct reuse_choice {
    const char *name;
    enum reuse reuse;
    uint64_t hole_bytes;
};

static const struct reuse_choice reuse_choices[] = {
    {"none", REUSE_NONE, 0},          {"window", REUSE_WINDOW, 0},
    {"window-back", REUSE_WINDOW_BACK, 0}, {"holes128", REUSE_HOLES, 128},
    {"holes256", REUSE_HOLES, 256},   {"holes512", REUSE_HOLES, 512},
    {"holes256-back", REUSE_HOLES_BACK, 256}, {"classes", REUSE_CLASSES, 0},
};

static const uint64_t limits[] = {256, 512, 1024, 2048, 4096, 16384};
static const uint64_t window_sizes[] = {4096, 16384, 65536};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { LARGE_GRANULE = 64 };

static void add(struct variants *variants, struct variant variant)
{
    variants->variant = buffer_reserve(variants->variant, &variants->capacity, variants->count,
                                       sizeof *variants->variant);
    variants->variant[variants->count++] = variant;
}

static bool makes_sense(const struct variant *variant)
{
    bool back = variant->small.reuse == REUSE_WINDOW_BACK ||
                variant->small.reuse == REUSE_HOLES_BACK;

    return variant->limit <= variant->small.window_bytes &&
           !(back && variant->small.source == WINDOWS_SEPARATE);
}

static void add_two_lanes(struct variants *variants, struct variant variant,
                          const struct reuse_choice *choice)
{
    variant.granule = LARGE_GRANULE;
    variant.small.reuse = choice->reuse;
    variant.small.hole_bytes = choice->hole_bytes;
    if (makes_sense(&variant))
        add(variants, variant);
}

static void add_sources(struct variants *variants, struct variant variant)
{
    for (int source = WINDOWS_PACKED; source <= WINDOWS_SEPARATE; source++)
        for (size_t i = 0; i < COUNT(reuse_choices); i++) {
            variant.small.source = (enum window_source)source;
            add_two_lanes(variants, variant, &reuse_choices[i]);
        }
}

static void add_windows(struct variants *variants, enum placement placement)
{
    struct variant variant = {.placement = placement};

    for (size_t limit = 0; limit < COUNT(limits); limit++)
        for (size_t window = 0; window < COUNT(window_sizes); window++) {
            variant.limit = limits[limit];
            variant.small.window_bytes = window_sizes[window];
            add_sources(variants, variant);
        }
}

static void add_one_lane(struct variants *variants, enum placement placement)
{
    add(variants, (struct variant){.placement = placement, .granule = LARGE_GRANULE});
    if (placement == PLACE_BEST || placement == PLACE_FIRST)
        add(variants, (struct variant){.placement = placement, .granule = SMALL_GRANULE});
}

void variants_add_all(struct variants *variants)
{
    for (int placement = PLACE_BEST; placement <= PLACE_TLSF32; placement++) {
        add_one_lane(variants, (enum placement)placement);
        add_windows(variants, (enum placement)placement);
    }
}

static bool same(const struct variant *a, const struct variant *b)
{
    return a->limit == b->limit && a->placement == b->placement && a->granule == b->granule &&
           a->small.reuse == b->small.reuse && a->small.source == b->small.source &&
           a->small.window_bytes == b->small.window_bytes &&
           a->small.hole_bytes == b->small.hole_bytes;
}

// Adds a variant that is not there yet.
static void add_once(struct variants *variants, struct variant variant)
{
    for (size_t i = 0; i < variants->count; i++)
        if (same(&variants->variant[i], &variant))
            return;
    add(variants, variant);
}

// The chosen design, to be varied in one respect at a time.
static struct variant chosen(void)
{
    return (struct variant){.limit = 1024,
                            .placement = PLACE_BEST,
                            .granule = LARGE_GRANULE,
                            .small = {.reuse = REUSE_CLASSES, .window_bytes = 16384}};
}

static void add_selected_reuse(struct variants *variants)
{
    for (size_t i = 0; i < COUNT(reuse_choices); i++)
        for (size_t window = 0; window < 2; window++) {
            struct variant variant = chosen();

            variant.small.window_bytes = window_sizes[window];
            add_two_lanes(variants, variant, &reuse_choices[i]);
        }
}

static void add_selected_sizes(struct variants *variants)
{
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct variant variant = chosen();

        variant.limit = limits[i];
        add_once(variants, variant);
    }
    for (size_t i = 0; i < COUNT(window_sizes); i++) {
        struct variant variant = chosen();

        variant.small.window_bytes = window_sizes[i];
        add_once(variants, variant);
    }
}

static void add_selected_places(struct variants *variants)
{
    for (int placement = PLACE_BEST; placement <= PLACE_TLSF32; placement++) {
        struct variant variant = chosen();

        variant.placement = (enum placement)placement;
        add_once(variants, variant);
    }
    for (int source = WINDOWS_PACKED; source <= WINDOWS_SEPARATE; source++) {
        struct variant variant = chosen();

        variant.small.source = (enum window_source)source;
        add_once(variants, variant);
    }
}

void variants_add_selected(struct variants *variants)
{
    for (int placement = PLACE_BEST; placement <= PLACE_TLSF32; placement++)
        add_one_lane(variants, (enum placement)placement);
    add_selected_reuse(variants);
    add_selected_sizes(variants);
    add_selected_places(variants);
}

void variants_free(struct variants *variants)
{
    free(variants->variant);
    *variants = (struct variants){0};
}

const char *variant_reuse_name(const struct variant *variant)
{
    for (size_t i = 0; i < COUNT(reuse_choices); i++)
        if (variant->limit && reuse_choices[i].reuse == variant->small.reuse &&
            reuse_choices[i].hole_bytes == variant->small.hole_bytes)
            return reuse_choices[i].name;
    return "-";
}

const char *variant_placement_name(const struct variant *variant)
{
    static const char *const names[] = {
        [PLACE_BEST] = "best",
        [PLACE_FIRST] = "first",
        [PLACE_TLSF16] = "tlsf16",
        [PLACE_TLSF32] = "tlsf32",
    };

    return names[variant->placement];
}

const char *variant_source_name(const struct variant *variant)
{
    static const char *const names[] = {
        [WINDOWS_PACKED] = "packed",
        [WINDOWS_ALIGNED] = "aligned",
        [WINDOWS_SEPARATE] = "separate",
    };

    return variant->limit ? names[variant->small.source] : "-";
}
