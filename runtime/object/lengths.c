// SPDX-License-Identifier: Apache-2.0
/*
 * lengths.c - lengths, and the integers that follow from them: batch sizes, permutations.
 *
 * Sorting is counting: the batch sizes, which are needed anyway, say where sequences of a length
 * begin in the order of ranks, so it takes no memory and keeps the order of ties. Refuses counts,
 * lengths and indices that do not fit, each with the numbers.
 */
#include "object/bundle.h"
#include "base/error.h"

#include <string.h>

/* ---- tensors of integers ---- */

static const struct ebb_dtype int64_dtype = {EBB_INT, 64, 1};

struct ebb_tensor *integers_new(ebb_region region, int64_t count) {
    return tensor_new_private(region, int64_dtype, 1, &count);
}

int integers_check(const struct ebb_tensor *tensor, const char *name) {
    if (!ebb_dtype_equal(tensor->dtype, int64_dtype))
        return error_set(EBB_E_DTYPE, "%s: dtype %d with %d bits and %d lanes, int64 is needed",
                         name, tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
    if (tensor->ndim != 1 || !ebb_tensor_is_contiguous(tensor))
        return error_set(EBB_E_SHAPE, "%s: %d dimensions, one without gaps is needed", name,
                         tensor->ndim);
    return 0;
}

/* ---- lengths ---- */

int lengths_check(const int64_t *lengths, size_t count, int64_t sequences,
                  int64_t padded_length) {
    if (!lengths || count != (size_t)sequences)
        return error_set(EBB_E_LENGTH_COUNT, "%zu lengths at %p for %lld sequences", count,
                         (const void *)lengths, (long long)sequences);
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] < 0)
            return error_set(EBB_E_LENGTH_NEGATIVE, "the length of sequence %zu is %lld", i,
                             (long long)lengths[i]);
        if (lengths[i] > padded_length)
            return error_set(EBB_E_LENGTH_EXCEEDS,
                             "the length of sequence %zu is %lld, padded it has %lld", i,
                             (long long)lengths[i], (long long)padded_length);
    }
    return 0;
}

int lengths_check_options(const struct bundle *bundle, const struct ebb_pack_options *options) {
    int64_t before = INT64_MAX;
    for (int64_t at = 0; at < bundle->count; at++) {
        int64_t length = bundle_length(bundle, at);
        if (options->refuse_empty && length == 0)
            return error_set(EBB_E_LENGTH_NEGATIVE,
                             "the length of sequence %lld is 0, which is refused",
                             (long long)at);
        if (options->enforce_sorted && length > before)
            return error_set(EBB_E_UNSORTED, "the length of sequence %lld is %lld, after %lld",
                             (long long)at, (long long)length, (long long)before);
        before = length;
    }
    return 0;
}

/* ---- batch sizes and ranks ---- */

/* batch_sizes[l - 1] = count of sequences of length l. Notes the lengths where there is room. */
static void count_lengths(const struct bundle *bundle, int64_t longest, int64_t *batch_sizes,
                          int64_t *noted) {
    memset(batch_sizes, 0, sizeof *batch_sizes * (size_t)longest);
    for (int64_t at = 0; at < bundle->count; at++) {
        int64_t length = bundle_length(bundle, at);
        if (noted)
            noted[at] = length;
        if (length > 0)
            batch_sizes[length - 1]++;
    }
}

/*
 * Entry l - 1 becomes the count of sequences longer than l: there their ranks begin. Returns that
 * of sequences longer than 0. Counting the ranks up there makes it the count of those of length l
 * or more, which is the batch size of that step.
 */
static int64_t first_ranks(int64_t longest, int64_t *batch_sizes) {
    int64_t longer = 0;
    for (int64_t step = longest; step-- > 0;) {
        int64_t count = batch_sizes[step];
        batch_sizes[step] = longer;
        longer += count;
    }
    return longer;
}

/* Where the rank of a sequence is to be, there is its length. */
static void rank_all(int64_t count, int64_t longest, int64_t *batch_sizes, int64_t *sorted,
                     int64_t *unsorted) {
    int64_t empty = first_ranks(longest, batch_sizes);
    for (int64_t at = 0; at < count; at++) {
        int64_t *next = unsorted[at] ? &batch_sizes[unsorted[at] - 1] : &empty;
        int64_t rank = (*next)++;
        sorted[rank] = at;
        unsorted[at] = rank;
    }
}

void lengths_arrange(const struct bundle *bundle, int64_t longest, int64_t *batch_sizes,
                     int64_t *sorted, int64_t *unsorted) {
    int64_t longer = 0;
    count_lengths(bundle, longest, batch_sizes, unsorted);
    if (sorted)
        rank_all(bundle->count, longest, batch_sizes, sorted, unsorted);
    else
        for (int64_t step = longest; step-- > 0;)
            batch_sizes[step] = longer += batch_sizes[step];
}

/* ---- permutations ---- */

static bool is_index(int64_t index, int64_t count) {
    return index >= 0 && index < count;
}

int permutations_check(const int64_t *sorted, const int64_t *unsorted, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!is_index(sorted[i], count))
            return error_set(EBB_E_PERMUTATION, "sorted index %lld is %lld, of %lld",
                             (long long)i, (long long)sorted[i], (long long)count);
        if (unsorted[sorted[i]] != i)
            return error_set(EBB_E_PERMUTATION,
                             "sorted index %lld is %lld, but unsorted index %lld is %lld",
                             (long long)i, (long long)sorted[i], (long long)sorted[i],
                             (long long)unsorted[sorted[i]]);
    }
    return 0;
}

/* Fills the inverse of a permutation; EBB_E_PERMUTATION. */
static int invert(const int64_t *permutation, int64_t *inverse, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        inverse[i] = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!is_index(permutation[i], count))
            return error_set(EBB_E_PERMUTATION, "index %lld is %lld, of %lld", (long long)i,
                             (long long)permutation[i], (long long)count);
        if (inverse[permutation[i]] >= 0)
            return error_set(EBB_E_PERMUTATION, "indices %lld and %lld are both %lld",
                             (long long)inverse[permutation[i]], (long long)i,
                             (long long)permutation[i]);
        inverse[permutation[i]] = i;
    }
    return 0;
}

struct ebb_tensor *ebb_permutation_invert(ebb_region region,
                                          const struct ebb_tensor *permutation) {
    struct attempt attempt;
    struct object_place place;
    if (!permutation || !tensor_find_readable(permutation, &place) ||
        integers_check(permutation, "permutation") != 0 || !attempt_begin(&attempt, region))
        return NULL;
    int64_t count = permutation->shape[0];
    struct ebb_tensor *inverse = integers_new(region, count);
    if (inverse && invert(permutation->data, inverse->data, count) != 0) {
        attempt_abandon(&attempt);
        return NULL;
    }
    return inverse;
}
