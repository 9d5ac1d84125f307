// SPDX-License-Identifier: Apache-2.0
/*
 * keys.c - the portfolio of orders, and the step of the local search.
 *
 * Invariant: a key is 0 exactly for tiles without bytes. All others are at least that of 2^-192, an
 * eighth to the 64th, and never wrap: the largest product is 2^63 cubed times 2^30 cubed, which a
 * double holds.
 */
#include "plan/keys.h"

#include "plan/live.h"

#include <stdbool.h>
#include <string.h>

enum { KEY_TWICE = 1 << 20 };

/* Each is the one that helps most where those before it do not, on steps of real programs; but the
 * fourth is for random ones, and the last is the order of births. To the 64th power the crowd
 * decides, but among nearly equal ones; to the first, next to others, among buffers that are equal
 * else. The second and the third help as many steps: the second comes first since steps that need
 * it have ten times as many buffers. */
static const struct exponents {
    unsigned size, lifetime, crowd;
} portfolio[PACKING_ORDERS] = {{1, 1, 0}, {1, 3, 64}, {0, 0, 1}, {0, 1, 64},
                               {3, 2, 0}, {2, 3, 1}, {0, 0, 0}};

static double power(double base, unsigned exponent) {
    double product = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
        if (exponent & 1)
            product *= base;
    return product;
}

static uint32_t upper_half(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint32_t)(bits >> 32);
}

/* Below an eighth of max-live nobody is in another's way. */
static double crowd_of(uint64_t most, uint64_t max_live) {
    double crowd = (double)most / (double)max_live;
    return crowd > 0.125 ? crowd : 0.125;
}

void keys_fill(uint32_t *keys, const struct skyline *skyline, unsigned order) {
    const struct exponents *exponents = &portfolio[order];
    uint64_t *most = skyline->offsets, max_live = 0;
    if (exponents->crowd) {
        live_fill(most, skyline->tiles, skyline->count);
        max_live = most[skyline->peak];
        live_to_most(most, skyline->tiles, skyline->count, skyline->contour.heap);
    }
    for (uint32_t i = 0; i < skyline->count; i++) {
        const struct tile *tile = &skyline->tiles[i];
        double size = (double)tile->bytes, lifetime = (double)(tile->end - tile->first);
        double key = power(size, exponents->size) * power(lifetime, exponents->lifetime);
        if (exponents->crowd)
            key *= power(crowd_of(most[i], max_live), exponents->crowd);
        keys[i] = tile->bytes ? upper_half(key) : 0;
    }
}

/* Lehmer's generator: 1 to 2^31 - 2. */
static uint32_t draw(uint32_t *random) {
    return *random = (uint32_t)((uint64_t)*random * 48271 % 2147483647);
}

/*
 * Whom a shake hits: one in so many of the tiles that end too high, of those that are alive when
 * most bytes are, and of all others; 0: none.
 */
static const struct crowd {
    uint32_t high, peak, other;
} crowds[] = {{1, 0, 0}, {4, 4, 0}, {1, 16, 16}};

enum { CROWDS = sizeof crowds / sizeof *crowds, RANGES = 3 };

void keys_shake(uint32_t *shaken, const uint32_t *keys, const struct skyline *skyline,
                const uint64_t *offsets, uint64_t bound, uint32_t *random) {
    const struct crowd *crowd = &crowds[draw(random) % CROWDS];
    uint32_t range = (uint32_t)KEY_TWICE << draw(random) % RANGES;
    for (uint32_t i = 0; i < skyline->count; i++) {
        const struct tile *tile = &skyline->tiles[i];
        bool high = offsets[tile->index] + tile->bytes > bound;
        bool peak = tile->first <= skyline->peak && skyline->peak < tile->end;
        uint32_t one_in = high ? crowd->high : peak ? crowd->peak : crowd->other;
        uint32_t more = keys[i] && one_in && draw(random) % one_in == 0 ? draw(random) % range : 0;
        shaken[i] = keys[i] + (more < UINT32_MAX - keys[i] ? more : 0);
    }
}
