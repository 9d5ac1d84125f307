// SPDX-License-Identifier: Apache-2.0
/*
 * convert.c - copies between dtypes, exact or not at all (see ebb/copy.h).
 *
 * The elements are gone through in row-major order, by rows of equal stride, in pieces that stay
 * in the cache in their wide form. Where a number may fail to fit, all are tried before anything
 * is allocated, since a failed call may not leave a trace. Those that lie on each other are tried
 * once: there may be far more of them than anything has room for.
 *
 * Invariant: the pass that writes cannot fail. Refuses every number that would change.
 */
#include "base/error.h"
#include "object/dtype.h"
#include "object/number.h"
#include "object/object.h"

#include <ebb/copy.h>

#include <stdio.h>
#include <string.h>

enum { PIECE = 256 }; /* elements */

struct conversion {
    const struct ebb_tensor *whole;  /* what is to be converted */
    const struct ebb_tensor *source; /* that, or of each dimension of stride 0 the first index */
    struct ebb_dtype dtype; /* that they shall have */
    struct number_type from, to;
    size_t to_bytes; /* of an element, all its parts */
};

/* One lane of up to PIECE elements; false if any of its numbers is not held exactly. */
static bool convert_lane(const struct conversion *conversion, int lane, char *to,
                         const char *from, int64_t stride, size_t count) {
    const struct number_type *source = &conversion->from, *target = &conversion->to;
    int64_t step = (int64_t)conversion->to_bytes;
    int read = lane * source->parts, write = lane * target->parts;
    union number numbers[PIECE];
    bool exact = true;
    for (int part = 0; part < source->parts; part++) {
        numbers_read(source, read + part, numbers, from, stride, count);
        if (part < target->parts)
            exact &= numbers_change(source->kind, target->kind, numbers, count) &&
                     numbers_write(target, write + part, numbers, to, step, count);
        else /* no place for an imaginary part: it must be 0 */
            for (size_t i = 0; i < count; i++)
                exact &= number_is_zero(numbers[i]);
    }
    for (size_t i = 0; i < count && source->parts < target->parts; i++)
        numbers[i].u = 0;
    if (source->parts < target->parts)
        numbers_write(target, write + 1, numbers, to, step, count);
    return exact;
}

/* All lanes of one piece. */
static bool convert_piece(const struct conversion *conversion, char *to, const char *from,
                          int64_t stride, size_t count) {
    bool exact = true;
    if (conversion->to.bits < 8)
        memset(to, 0, conversion->to_bytes * count);
    for (int lane = 0; lane < conversion->to.lanes; lane++)
        exact &= convert_lane(conversion, lane, to, from, stride, count);
    return exact;
}

/* The row-major place in the whole of what has this one in the source. */
static int64_t place_in_whole(const struct conversion *conversion, int64_t place) {
    const struct ebb_tensor *source = conversion->source;
    int64_t found = 0, step = 1;
    for (int i = source->ndim - 1; i >= 0; i--) {
        found += place % source->shape[i] * step;
        place /= source->shape[i];
        step *= conversion->whole->shape[i];
    }
    return found;
}

/* Says which element from here on is the first that is not held, and what it is. */
static void report_inexact(const struct conversion *conversion, const char *from, int64_t stride,
                           int64_t place) {
    const struct number_type *source = &conversion->from;
    char scratch[NUMBER_ELEMENT_BYTES], text[2][40] = {"", ""}, name[DTYPE_TEXT], which[24] = "";
    union number parts[2];
    int lane = 0;
    for (; convert_piece(conversion, scratch, from, stride, 1); from += stride)
        place++;
    while (convert_lane(conversion, lane, scratch, from, stride, 1))
        lane++;
    for (int part = 0; part < source->parts; part++)
        numbers_read(source, lane * source->parts + part, &parts[part], from, 0, 1);
    number_describe(source->kind, parts[0], text[0], sizeof text[0]);
    if (source->parts == 2)
        snprintf(text[1], sizeof text[1], "%+.17gi", parts[1].f);
    if (source->lanes > 1)
        snprintf(which, sizeof which, ", lane %d,", lane);
    dtype_describe(conversion->dtype, name);
    error_set(EBB_E_VALUE, "element %lld%s is %s%s, not held exactly by %s",
              (long long)place_in_whole(conversion, place), which, text[0], text[1], name);
}

/* One row; with `to` NULL it is only tried. `place` is that of its first element. */
static bool convert_row(const struct conversion *conversion, char *to, const char *from,
                        int64_t stride, int64_t count, int64_t place) {
    char scratch[PIECE * 16];
    const int64_t fits = (int64_t)(sizeof scratch / conversion->to_bytes);
    const int64_t most = fits < PIECE ? fits : PIECE;
    for (int64_t done = 0; done < count; done += most) {
        size_t piece = (size_t)(count - done < most ? count - done : most);
        char *target = to ? to + (size_t)done * conversion->to_bytes : scratch;
        if (!convert_piece(conversion, target, from + done * stride, stride, piece)) {
            report_inexact(conversion, from + done * stride, stride, place + done);
            return false;
        }
    }
    return true;
}

/* All elements; `to` may be NULL. */
static bool convert(const struct conversion *conversion, char *to) {
    const struct ebb_tensor *source = conversion->source;
    int64_t bytes = (int64_t)ebb_dtype_bytes(source->dtype), at[EBB_DIMENSIONS_MAX] = {0};
    int64_t count = ebb_tensor_count(source), row = count, stride = bytes;
    int last = source->ndim - 1;
    const char *from = source->data;
    if (!ebb_tensor_is_contiguous(source)) {
        row = source->shape[last];
        stride = row > 1 ? source->strides[last] * bytes : 0; /* or it may be any number */
    }
    for (int64_t place = 0; place < count; place += row) {
        char *target = to ? to + (size_t)place * conversion->to_bytes : NULL;
        int i = last - 1;
        if (!convert_row(conversion, target, from, stride, row, place))
            return false;
        for (; i >= 0 && ++at[i] == source->shape[i]; i--) {
            from -= (at[i] - 1) * source->strides[i] * bytes;
            at[i] = 0;
        }
        if (i >= 0)
            from += source->strides[i] * bytes;
    }
    return true;
}

/* Each number that is anywhere in the tensor; nothing is written. */
static bool try_all(const struct conversion *conversion) {
    int64_t shape[EBB_DIMENSIONS_MAX];
    struct ebb_tensor once = *conversion->whole;
    struct conversion trial = *conversion;
    for (int i = 0; i < once.ndim; i++)
        shape[i] = once.strides[i] || !once.shape[i] ? once.shape[i] : 1;
    once.shape = shape;
    trial.source = &once;
    return convert(&trial, NULL);
}

/* True if no number can fail to fit, whatever the elements are. */
static bool always_fits(const struct conversion *conversion) {
    return conversion->from.parts <= conversion->to.parts &&
           number_always_fits(&conversion->from, &conversion->to);
}

/* The numbers of both dtypes are known, and as many to an element. */
static bool find_types(struct conversion *conversion) {
    struct ebb_dtype from = conversion->source->dtype, to = conversion->dtype;
    char names[2][DTYPE_TEXT];
    if (!number_type_of(from, &conversion->from) || !number_type_of(to, &conversion->to))
        return false;
    if (from.lanes == to.lanes)
        return true;
    dtype_describe(from, names[0]);
    dtype_describe(to, names[1]);
    error_set(EBB_E_DTYPE, "a conversion of %s to %s: %d lanes and %d", names[0], names[1],
              from.lanes, to.lanes);
    return false;
}

struct ebb_tensor *ebb_tensor_convert(ebb_region region, const struct ebb_tensor *tensor,
                                      struct ebb_dtype dtype) {
    struct conversion conversion = {.whole = tensor, .source = tensor, .dtype = dtype};
    struct object_place place;
    conversion.to_bytes = ebb_dtype_bytes(dtype);
    if (!conversion.to_bytes || !tensor_find_readable(tensor, &place))
        return NULL;
    if (ebb_dtype_equal(tensor->dtype, dtype))
        return ebb_tensor_contiguous(region, tensor);
    if (!find_types(&conversion) || !object_host_for(region) ||
        (!always_fits(&conversion) && !try_all(&conversion)))
        return NULL;
    struct ebb_tensor *converted = ebb_tensor_new(region, dtype, tensor->ndim, tensor->shape);
    if (converted)
        convert(&conversion, converted->data);
    return converted;
}
