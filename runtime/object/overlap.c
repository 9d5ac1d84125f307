// SPDX-License-Identifier: Apache-2.0
/*
 * overlap.c - whether elements share memory.
 *
 * Two elements share memory if their distance in bytes is less than one of them is long. The
 * distances that strided elements can have are sums of multiples of the strides, each within
 * bounds. They are searched from the largest stride down: what the smaller ones can still add
 * leaves few multiples to try, one to three where strides nest, as those of all views do. Strides
 * of both tensors that are multiples of each other become one, and where no multiple of a common
 * divisor comes near enough nothing is tried.
 *
 * Invariant: an answer of "no" is certain. A search that takes too many steps, which only strides
 * made by hand can cause, is answered with "yes".
 */
#include "object/copy.h"

#include <string.h>

enum { SPANS_MAX = 2 * EBB_DIMENSIONS_MAX, STEPS_MAX = 4096 };

/* Multiples of a stride in bytes, from `low` to `high` times. */
struct span {
    int64_t stride, low, high;
};

struct search {
    int first, count, steps; /* spans from `first` to below `count` */
    int64_t least, most; /* distances of elements that share memory */
    struct span spans[SPANS_MAX];           /* the largest stride first */
    int64_t low[SPANS_MAX + 1], high[SPANS_MAX + 1]; /* that spans from here on can add */
};

/* From elements of `bytes` to elements of `other_bytes`. */
static void begin(struct search *search, size_t bytes, size_t other_bytes) {
    search->first = search->count = search->steps = 0;
    search->least = 1 - (int64_t)other_bytes;
    search->most = (int64_t)bytes - 1;
}

static bool is_empty(const struct ebb_tensor *tensor) {
    return ebb_tensor_count(tensor) == 0;
}

static void add_span(struct search *search, int64_t stride, int64_t low, int64_t high) {
    int at = search->count++;
    for (; at > 0 && search->spans[at - 1].stride < stride; at--)
        search->spans[at] = search->spans[at - 1];
    search->spans[at] = (struct span){stride, low, high};
}

/* Strides of 0 add nothing to a distance. */
static void add_tensor(struct search *search, const struct ebb_tensor *tensor, int64_t low,
                       int64_t high) {
    int64_t bytes = (int64_t)ebb_dtype_bytes(tensor->dtype);
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t more = tensor->shape[i] - 1;
        if (more && tensor->strides[i])
            add_span(search, tensor->strides[i] * bytes, low * more, high * more);
    }
}

static void sum_up(struct search *search) {
    search->low[search->count] = search->high[search->count] = 0;
    for (int i = search->count - 1; i >= search->first; i--) {
        const struct span *span = &search->spans[i];
        search->low[i] = search->low[i + 1] + span->low * span->stride;
        search->high[i] = search->high[i + 1] + span->high * span->stride;
    }
}

/* A stride that is a multiple of the next one becomes part of it, if those multiples have no gaps
 * then: equal strides always do. */
static void join_spans(struct search *search) {
    search->first = search->count ? search->count - 1 : 0;
    for (int i = search->first; i-- > 0;) {
        struct span span = search->spans[i], *next = &search->spans[search->first];
        int64_t times = span.stride / next->stride;
        if (span.stride % next->stride || next->high - next->low < times - 1) {
            search->spans[--search->first] = span;
            continue;
        }
        next->low += times * span.low;
        next->high += times * span.high;
    }
}

static int64_t divide_down(int64_t number, int64_t by) {
    return number / by - (number % by < 0);
}

static int64_t common_divisor(int64_t one, int64_t other) {
    while (other) {
        int64_t rest = one % other;
        one = other;
        other = rest;
    }
    return one;
}

/* False if no multiple of what the strides from `at` to another have in common comes so near that
 * the spans behind can do the rest. */
static bool may_reach(const struct search *search, int at, int64_t distance) {
    int64_t divisor = 0;
    for (int i = at; i < search->count; i++) {
        divisor = common_divisor(search->spans[i].stride, divisor);
        int64_t least = search->least - distance - search->high[i + 1];
        int64_t most = search->most - distance - search->low[i + 1];
        if (divide_down(most, divisor) * divisor < least)
            return false;
    }
    return true;
}

/* True if the spans from `at` on can bring the distance among those that share memory. */
static bool reaches(struct search *search, int at, int64_t distance) {
    if (search->steps++ == STEPS_MAX)
        return true;
    if (at == search->count)
        return distance >= search->least && distance <= search->most;
    if (!may_reach(search, at, distance))
        return false;
    const struct span *span = &search->spans[at];
    int64_t least = search->least - distance - search->high[at + 1];
    int64_t most = search->most - distance - search->low[at + 1];
    int64_t first = -divide_down(-least, span->stride), last = divide_down(most, span->stride);
    if (first < span->low)
        first = span->low;
    if (last > span->high)
        last = span->high;
    for (int64_t times = first; times <= last; times++)
        if (reaches(search, at + 1, distance + times * span->stride) ||
            search->steps > STEPS_MAX)
            return true;
    return false;
}

bool tensors_overlap(const struct ebb_tensor *one, const struct ebb_tensor *other) {
    struct search search;
    if (is_empty(one) || is_empty(other))
        return false;
    begin(&search, ebb_dtype_bytes(one->dtype), ebb_dtype_bytes(other->dtype));
    add_tensor(&search, one, -1, 0);
    add_tensor(&search, other, 0, 1);
    join_spans(&search);
    sum_up(&search);
    return reaches(&search, search.first, (int64_t)((intptr_t)other->data - (intptr_t)one->data));
}

/* Places that differ first, by the order of strides, in span number `at`. */
static bool overlaps_from(struct search *search, int at) {
    struct span *span = &search->spans[at];
    int64_t low = span->low;
    span->low = 1;
    search->steps = 0;
    bool found = reaches(search, at, 0);
    span->low = low;
    return found;
}

bool tensor_overlaps_itself(const struct ebb_tensor *tensor) {
    struct search search;
    if (is_empty(tensor) || ebb_tensor_is_contiguous(tensor))
        return false;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] > 1 && tensor->strides[i] == 0)
            return true;
    begin(&search, ebb_dtype_bytes(tensor->dtype), ebb_dtype_bytes(tensor->dtype));
    add_tensor(&search, tensor, -1, 1);
    sum_up(&search);
    for (int i = 0; i < search.count; i++)
        if (overlaps_from(&search, i))
            return true;
    return false;
}
