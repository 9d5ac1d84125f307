// SPDX-License-Identifier: Apache-2.0
/*
 * bundle.h - sequences as callers give them, checked, and what is made of them.
 *
 *     strand.c    where rows lie                     bundle.c    lists and padded tensors as input
 *     weave.c     rows from form to form             lengths.c   checking and sorting lengths
 *     attempt.c   all or nothing
 *     packed.c    ragged.c    pad.c    unpack.c      the four forms as results
 */
#ifndef EBB_OBJECT_BUNDLE_H
#define EBB_OBJECT_BUNDLE_H

#include "object/attempt.h"
#include "object/strand.h"

#include <ebb/ragged.h>

/* What sequences are made of: the data type, and the dimensions of a row. */
struct fabric {
    struct ebb_dtype dtype;
    int ndim;
    const int64_t *shape; /* [ndim] */
};

/* Many sequences that were checked, either in a form that has strands or packed. */
struct input {
    struct fabric fabric;
    struct bundle bundle;
    struct ranks ranks;
    bool packed;
    int64_t count;         /* of sequences */
    int64_t rows;          /* of all of them */
    int64_t longest;
    int64_t padded_length; /* that the result remembers, or has */
};

/* ---- bundle.c; 0 or the error ---- */

int input_list(struct input *input, struct ebb_tensor *const *sequences, size_t count);
int input_padded(struct input *input, const struct ebb_tensor *padded, const int64_t *lengths,
                 size_t count, const struct ebb_pack_options *options);

/* Cuts sequences that are longer than `most` (0: none), if that is allowed, on the side `cut`.
 * EBB_E_LENGTH_EXCEEDS, EBB_E_ARGUMENT. */
int input_cut(struct input *input, int64_t most, bool allowed, enum ebb_side cut);

/* A list of one or more tensors that are known to be alike, as what is read or written. */
struct bundle bundle_in_list(struct ebb_tensor *const *list, int64_t count);

/* Sums up the lengths of a bundle that was checked. */
int input_measure(struct input *input);

/* What the rows of a tensor are made of. */
struct fabric fabric_of(const struct ebb_tensor *tensor, int lead);

/* A tensor of `lead` dimensions of these sizes and then those of a row. */
struct ebb_tensor *fabric_tensor(ebb_region region, const struct fabric *fabric, int lead,
                                 const int64_t *sizes);

/* Field `name` of a sequence that is packed or ragged has a tensor whose elements can be read: 0,
 * EBB_E_RELEASED or EBB_E_TYPE. */
int member_check(const struct ebb_tensor *member, const char *form, const char *name);

/* ---- lengths.c ---- */

struct ebb_tensor *integers_new(ebb_region region, int64_t count);

/* One-dimensional, contiguous, int64: 0 or EBB_E_DTYPE, EBB_E_SHAPE. */
int integers_check(const struct ebb_tensor *tensor, const char *name);

/* Each length fits into the padded length, and there are as many as sequences. */
int lengths_check(const int64_t *lengths, size_t count, int64_t sequences, int64_t padded_length);

/* The order and the lengths of 0 are as the options ask. */
int lengths_check_options(const struct bundle *bundle, const struct ebb_pack_options *options);

/* Fills batch sizes and, unless NULL, the indices of a stable sort, longest sequence first. */
void lengths_arrange(const struct bundle *bundle, int64_t longest, int64_t *batch_sizes,
                     int64_t *sorted, int64_t *unsorted);

/* Two permutations of `count` are inverse to each other: 0 or EBB_E_PERMUTATION. */
int permutations_check(const int64_t *sorted, const int64_t *unsorted, int64_t count);

/* ---- packed.c, ragged.c: live objects of these types, checked; 0 or the error ---- */

int input_packed(struct input *input, const struct ebb_packed *packed);
int input_ragged(struct input *input, const struct ebb_ragged *ragged);

#endif
