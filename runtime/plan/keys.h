// SPDX-License-Identifier: Apache-2.0
/*
 * keys.h - in which order buffers are tried: the one with the larger key goes first.
 *
 * A key is the upper half of a double, size^p * lifetime^q * crowd^r. A lifetime is counted in
 * births, which is better than sections; the crowd is how much of max-live is alive at most while
 * the buffer is. Such numbers sort as the doubles do, to 20 bits; adding 2^20 to one doubles it.
 */
#ifndef EBB_PLAN_KEYS_H
#define EBB_PLAN_KEYS_H

#include "plan/skyline.h"

#include <stdint.h>

/* Fills in the keys of the tiles for order number `order`, the best guesses first. Between tries:
 * it uses what is their work space. */
void keys_fill(uint32_t *keys, const struct skyline *skyline, unsigned order);

/*
 * Copies the keys, and multiplies some, by chance, by up to 16: of tiles that end above `bound`,
 * of those that are alive at the peak, of others.
 */
void keys_shake(uint32_t *shaken, const uint32_t *keys, const struct skyline *skyline,
                const uint64_t *offsets, uint64_t bound, uint32_t *random);

#endif
