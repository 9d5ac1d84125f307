// SPDX-License-Identifier: Apache-2.0
/* meter.h - one quantity over time: now, at its highest, and summed over all increases. */
#ifndef EBB_POOL_METER_H
#define EBB_POOL_METER_H

#include <ebb/pool.h>

static inline void meter_add(struct ebb_meter *meter, uint64_t amount) {
    meter->current += amount;
    meter->total += amount;
    if (meter->current > meter->peak)
        meter->peak = meter->current;
}

static inline void meter_subtract(struct ebb_meter *meter, uint64_t amount) {
    meter->current -= amount;
}

/* Adds what a closed or open part has seen to a whole: peaks add up to an upper bound. */
static inline void meter_include(struct ebb_meter *whole, const struct ebb_meter *part) {
    whole->current += part->current;
    whole->peak += part->peak;
    whole->total += part->total;
}

#endif
