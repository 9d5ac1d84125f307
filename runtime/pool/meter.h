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
 * The same for quantities that change with every block. The peak must be noted after anything has
 * come and before anything leaves: for the inline tally that is done when it is folded.
 */
struct flow {
    uint64_t in;   /* everything that ever came */
    int64_t below; /* how much may come before the peak is passed; negative: it was passed */
    uint64_t peak;
};

static inline uint64_t flow_now(const struct flow *flow) {
    return (uint64_t)((int64_t)flow->peak - flow->below);
}

/* Everything that left. */
static inline uint64_t flow_out(const struct flow *flow) {
    return flow->in - flow_now(flow);
}

/* Notes the peak; returns how much may come before it is passed. */
static inline uint64_t flow_note_peak(struct flow *flow) {
    int64_t passed = flow->below < 0 ? flow->below : 0; /* no branch: it could not be predicted */
    flow->peak = (uint64_t)((int64_t)flow->peak - passed);
    flow->below -= passed;
    return (uint64_t)flow->below;
}

/* Something comes; the peak is to be noted later. */
static inline void flow_bring(struct flow *flow, uint64_t amount) {
    flow->in += amount;
    flow->below -= (int64_t)amount;
}

static inline void flow_enter(struct flow *flow, uint64_t amount) {
    flow_bring(flow, amount);
    if (__builtin_expect(flow->below < 0, 0))
        flow_note_peak(flow);
}

static inline void flow_leave(struct flow *flow, uint64_t amount) {
    flow->below += (int64_t)amount;
}

/* For a moment there was `most` more than now. */
static inline void flow_raise(struct flow *flow, uint64_t most) {
    flow->below -= (int64_t)most;
    flow_note_peak(flow);
    flow->below += (int64_t)most;
}

/* Something came and left again without a new peak. */
static inline void flow_pass(struct flow *flow, uint64_t amount) {
    flow->in += amount;
}

/* One part of the whole changes its size: only an increase counts as having come. */
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
