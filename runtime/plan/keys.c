// SPDX-License-Identifier: Apache-2.0
/*
 * keys.c - the portfolio of orders, and the step of the local search.
 *
 * Invariant: a key is 0 exactly for tiles without bytes. All others are at least that of 1.0 and
 * never wrap: the largest product is 2^63 cubed times 2^30 cubed, which a double holds.
 */
#include "plan/keys.h"

#include <stdbool.h>
#include <string.h>

enum { KEY_TWICE = 1 << 20 };

/* Each is the one that helps most where those before it do not, on steps of real programs. */
static const struct exponents {
    unsigned size, lifetime;
} portfolio[PACKING_ORDERS] = {{1, 1}, {0, 1}, {1, 3}, {1, 2}, {3, 2}, {2, 3}, {1, 0}};

static double power(double base, unsigned exponent) {
    double product = 1;
    for (; exponent > 0; exponent--)
        product *= base;
    return product;
}

static uint32_t upper_half(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint32_t)(bits >> 32);
}

void keys_fill(uint32_t *keys, const struct skyline *skyline, unsigned order) {
    const struct exponents *exponents = &portfolio[order];
    for (uint32_t i = 0; i < skyline->count; i++) {
        const struct tile *tile = &skyline->tiles[i];
        double size = (double)tile->bytes, lifetime = (double)(tile->end - tile->first);
        keys[i] = !tile->bytes ? 0 : upper_half(power(size, exponents->size) *
                                                power(lifetime, exponents->lifetime));
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
