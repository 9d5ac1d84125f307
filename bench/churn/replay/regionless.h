// SPDX-License-Identifier: Apache-2.0
/* regionless.h - what opening, closing and starting are for a heap that knows no regions. */
#ifndef EBB_BENCH_REGIONLESS_H
#define EBB_BENCH_REGIONLESS_H

#include "loop.h"

static inline bool open_nothing(uint16_t region, uint16_t parent, uint32_t kind) {
    (void)kind;
    (void)region;
    (void)parent;
    return true;
}

/* Survivors simply live on. */
static inline bool close_nothing(uint16_t region, uint16_t parent, struct slot *slots,
                                 const struct script_survivor *survivors, uint32_t count) {
    (void)region;
    (void)parent;
    (void)slots;
    (void)survivors;
    (void)count;
    return true;
}

static inline bool start_nothing(const struct script *script) {
    (void)script;
    return true;
}

#endif
