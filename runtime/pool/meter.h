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

/*
 * The same for what changes with every block. Whoever lets something in notes the highest
 * before anything can leave: the inline tally does so when it is folded.
 */
struct flow {
    uint64_t in;  /* everything that ever came */
    uint64_t out; /* everything that left */
    uint64_t peak;
};

static inline uint64_t flow_now(const struct flow *flow) {
    return flow->in - flow->out;
}

static inline void flow_enter(struct flow *flow, uint64_t amount) {
    flow->in += amount;
    if (flow->in - flow->out > flow->peak)
        flow->peak = flow->in - flow->out;
}

/* Notes the highest so far; returns how much may come before it is passed. */
static inline uint64_t flow_note_peak(struct flow *flow) {
    uint64_t now = flow->in - flow->out;
    uint64_t peak = now > flow->peak ? now : flow->peak; /* no branch: nobody could foretell it */
    flow->peak = peak;
    return peak - now;
}

static inline void flow_leave(struct flow *flow, uint64_t amount) {
    flow->out += amount;
}

/* What came and left, and was never more than there was before. */
static inline void flow_pass(struct flow *flow, uint64_t amount) {
    flow->in += amount;
    flow->out += amount;
}

/* One part of the whole becomes larger or smaller: only an increase adds to what ever came. */
static inline void flow_change(struct flow *flow, uint64_t from, uint64_t to) {
    if (to > from)
        flow_enter(flow, to - from);
    else
        flow_leave(flow, from - to);
}

static inline struct ebb_meter flow_read(const struct flow *flow) {
    return (struct ebb_meter){flow_now(flow), flow->peak, flow->in};
}

/* Adds what a closed or open part has seen to a whole: peaks add up to an upper bound. */
static inline void meter_include(struct ebb_meter *whole, const struct ebb_meter *part) {
    whole->current += part->current;
    whole->peak += part->peak;
    whole->total += part->total;
}

#endif
