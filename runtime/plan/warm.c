// SPDX-License-Identifier: Apache-2.0
/*
 * warm.c - exchanges of places, from the birth of a tile on (see warm.h).
 *
 * Two stretches of offsets, equally long, can be exchanged from one moment to another if all that
 * is born meanwhile, and reaches into one of them, lies within one of them and has died at the
 * end; and if nothing lies there at the beginning. The tile that is to be moved is the first one,
 * so its stretch is free before; the other was left by a tile that died, and nothing that was born
 * since then and is alive may reach into it.
 *
 * Invariant: before and after each exchange the offsets are a plan. Tiles are looked at in the
 * order of their births, so none is moved that has been looked at.
 */
#include "plan/warm.h"

#include <stdbool.h>

enum {
    WARM_BYTES = 16 << 10, /* half of a first cache */
    WARM_DEATHS = 16,  /* that a tile may follow */
    WARM_BIRTHS = 256, /* that are looked at for one place */
    WARM_LOOKS = 32,   /* for each tile; those before it leave what they did not need */
};

struct warm {
    const struct tile *tiles; /* by birth */
    uint64_t *offsets;        /* of buffers */
    struct ordered *deaths;   /* of tiles that are large enough, by time */
    uint64_t looks;           /* that are left */
};

struct stretch {
    uint64_t from, to;
};

static uint64_t *offset_of(const struct warm *warm, uint32_t tile) {
    return &warm->offsets[warm->tiles[tile].index];
}

static struct stretch stretch_of(const struct warm *warm, uint32_t tile) {
    uint64_t offset = *offset_of(warm, tile);
    return (struct stretch){offset, offset + warm->tiles[tile].bytes};
}

static bool is_within(struct stretch inner, struct stretch outer) {
    return outer.from <= inner.from && inner.to <= outer.to;
}

/* In bytes. */
static uint64_t overlap_of(struct stretch a, struct stretch b) {
    uint64_t from = a.from > b.from ? a.from : b.from, to = a.to < b.to ? a.to : b.to;
    return from < to ? to - from : 0;
}

static bool may_look(struct warm *warm) {
    return warm->looks > 0 && warm->looks-- > 0;
}

/* Is what `before` has left free when `tile` is born? */
static bool is_left(struct warm *warm, uint32_t before, uint32_t tile, struct stretch place) {
    uint32_t since = warm->tiles[before].end;
    if (tile - since > WARM_BIRTHS)
        return false;
    for (uint32_t i = since; i < tile; i++)
        if (!may_look(warm) ||
            (warm->tiles[i].end > tile && overlap_of(stretch_of(warm, i), place) > 0))
            return false;
    return true;
}

/* When the places of `tile` can be exchanged until; 0: they cannot. */
static uint32_t end_of_exchange(struct warm *warm, uint32_t tile, struct stretch own,
                                struct stretch other) {
    uint64_t apart = own.from < other.from ? other.from - own.from : own.from - other.from;
    uint32_t until = warm->tiles[tile].end;
    for (uint32_t i = tile; i < until; i++) {
        struct stretch its = stretch_of(warm, i);
        if (i - tile > WARM_BIRTHS || !may_look(warm))
            return 0;
        if (overlap_of(its, own) == 0 && overlap_of(its, other) == 0)
            continue;
        bool is_whole = is_within(its, own) || is_within(its, other);
        if (!is_whole || (apart & (warm->tiles[i].align - 1)) != 0)
            return 0;
        until = warm->tiles[i].end > until ? warm->tiles[i].end : until;
    }
    return until;
}

/* The first of them that does not concern it is `until`. */
static void exchange(const struct warm *warm, uint32_t tile, uint32_t until, struct stretch own,
                     struct stretch other) {
    for (uint32_t i = tile; i < until; i++) {
        struct stretch its = stretch_of(warm, i);
        if (warm->tiles[i].bytes == 0)
            continue;
        if (is_within(its, own))
            *offset_of(warm, i) = other.from + (its.from - own.from);
        else if (is_within(its, other))
            *offset_of(warm, i) = own.from + (its.from - other.from);
    }
}

/* True if there is nothing left to do for the tile: it follows the one that has died, or there is
 * no time for it. */
static bool follow(struct warm *warm, uint32_t tile, uint32_t before) {
    if (!may_look(warm))
        return true;
    struct stretch own = stretch_of(warm, tile), other = stretch_of(warm, before);
    uint64_t bytes = own.to - own.from;
    if (overlap_of(own, other) > bytes / 2)
        return true;
    if (other.to - other.from < bytes)
        return false;
    other.to = other.from + bytes;
    if (overlap_of(own, other) > 0 || !is_left(warm, before, tile, other))
        return false;
    uint32_t until = end_of_exchange(warm, tile, own, other);
    if (until > 0)
        exchange(warm, tile, until, own, other);
    return until > 0;
}

static uint32_t list_deaths(struct warm *warm, uint32_t count, struct ordered *scratch) {
    uint32_t large = 0;
    for (uint32_t i = 0; i < count; i++)
        if (warm->tiles[i].bytes >= WARM_BYTES)
            warm->deaths[large++] = (struct ordered){warm->tiles[i].end, i};
    order_sort(warm->deaths, scratch, large);
    return large;
}

void warm_places(const struct tile *tiles, uint32_t count, uint64_t *offsets,
                 struct ordered *list, struct ordered *scratch) {
    struct warm warm = {.tiles = tiles, .offsets = offsets, .deaths = list};
    uint32_t large = list_deaths(&warm, count, scratch), dead = 0;
    for (uint32_t i = 0; i < count && large > 0; i++) {
        while (dead < large && list[dead].key <= i)
            dead++;
        bool follows = tiles[i].bytes < WARM_BYTES;
        warm.looks += WARM_LOOKS;
        for (uint32_t k = 1; k <= WARM_DEATHS && k <= dead && !follows; k++)
            follows = follow(&warm, i, list[dead - k].index);
    }
}
