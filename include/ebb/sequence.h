// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/sequence.h - sequences of different lengths: padded, as a list, packed.
 *
 * Four forms of the same sequences a = 1 2 3, b = 4 5, c = 6:
 *
 *     list     tensors [3], [2], [1]
 *     padded   [T, B] or [B, T], here with 0:   1 4 6      1 2 3
 *                                               2 5 0  or  4 5 0
 *                                               3 0 0      6 0 0
 *     packed   1 4 6 | 2 5 | 3   and batch_sizes 3 2 1: all first steps, all second steps, ...
 *     ragged   1 2 3 | 4 5 | 6   and offsets 0 3 5 6 (ebb/ragged.h)
 *
 * Each step of each sequence is a row of any number of further dimensions, which all forms keep
 * at the end. Every function here makes its result in the region that the caller names, whoever
 * owns the input, copies each byte of the payload once, and takes inputs of any strides. Inputs
 * may be views. All or nothing: on failure the region is as it was. A list that is NULL is refused
 * as one of the wrong count: EBB_E_EMPTY where it is of sequences to read, EBB_E_LENGTH_COUNT where
 * it is of lengths, or for results.
 *
 * The packed form is that of torch.nn.utils.rnn.PackedSequence. Where torch cuts, wraps or leaves
 * things undefined, ebb does not:
 *
 *   - a sequence may be empty; packed, it has no rows, padded, it is all padding
 *   - sequences of one length keep their order
 *   - a packed sequence remembers the length that its input was padded to, so padding is the
 *     exact inverse of packing; shorter is an error unless asked for
 *   - a length beyond the padded length, and a padding value that the data type cannot hold, are
 *     errors
 *   - padding may be on the left, also of what is packed or cut into a list
 *
 * One thread at a time for the regions concerned.
 */
#ifndef EBB_SEQUENCE_H
#define EBB_SEQUENCE_H

#include <ebb/tensor.h>
#include <ebb/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Sequences in packed form, one object with up to four members. With B sequences of which the
 * longest has L steps, and R rows in all:
 */
struct ebb_packed {
    struct ebb_object object;
    struct ebb_tensor *data;             /* [R, ...] */
    struct ebb_tensor *batch_sizes;      /* int64 [L]: sequences longer than 0, 1, ..., L - 1 */
    struct ebb_tensor *sorted_indices;   /* int64 [B]: rank to sequence; NULL: the same */
    struct ebb_tensor *unsorted_indices; /* int64 [B]: sequence to rank; NULL as the other is */
    bool has_indices;
    int64_t count;                       /* B; batch_sizes[0] of them are not empty */
    int64_t padded_length;               /* at least L: what padding gives if not told */
};

/* Its type, and the number that its counters have. */
EBB_API extern struct ebb_type ebb_type_packed;
#define EBB_OBJECT_PACKED 3u

/* Where padding is. */
enum ebb_side {
    EBB_SIDE_RIGHT = 0, /* behind the last step */
    EBB_SIDE_LEFT = 1   /* before the first step */
};

/* How to read a padded tensor and how to pack. Zero is the default. */
struct ebb_pack_options {
    size_t size;         /* sizeof(struct ebb_pack_options) */
    bool batch_first;    /* the padded tensor is [B, T, ...]; else [T, B, ...] */
    enum ebb_side side;  /* of the padding in it */
    bool enforce_sorted; /* lengths must not increase; there are no indices then. Else any order,
                          * and always indices. torch's default is true */
    bool refuse_empty;   /* a length of 0 is an error, as it is in torch */
    int64_t max_length;  /* no sequence may be longer; 0: any length */
    bool allow_truncation; /* longer ones are cut to it; else they are an error */
    enum ebb_side cut;     /* where steps go: the last ones (right) or the first ones (left) */
};

/* How to pad. Zero is the default. */
struct ebb_pad_options {
    size_t size;              /* sizeof(struct ebb_pad_options) */
    bool batch_first;         /* the result is [B, T, ...]; else [T, B, ...] */
    enum ebb_side side;       /* where the padding goes */
    struct ebb_value padding; /* what it consists of; 0, which all dtypes hold, -0.0 not all */
    bool has_total_length;    /* T is `total_length`; else the padded length that is remembered, or
                               * the longest length of a list */
    int64_t total_length;
    bool allow_truncation;    /* T, or the next, may be less than the longest, which is cut to it */
    int64_t max_length;       /* no sequence may be longer; 0: any length. Nor is T unless told */
    enum ebb_side cut;        /* where steps go: the last ones (right) or the first ones (left),
                               * the latter not from what is packed */
};

/* ---- to packed ---- */

/*
 * Packs `lengths[B]` steps of each sequence of a padded tensor of two or more dimensions. `count`
 * says how many lengths there are; `options` may be NULL. The result remembers T, or the longest
 * that may be if that is less. Valid until: ebb_object_end(), the end of its owner. NULL on
 * failure: EBB_E_EMPTY (no sequences), EBB_E_LENGTH_COUNT, EBB_E_LENGTH_NEGATIVE (also 0, if
 * refused), EBB_E_LENGTH_EXCEEDS (T, or the longest that may be), EBB_E_UNSORTED, EBB_E_SHAPE,
 * EBB_E_ARGUMENT, EBB_E_SIZE, EBB_E_TYPE, EBB_E_FOREIGN, EBB_E_RELEASED (no live tensor), and the
 * errors of ebb_region_alloc().
 * Source: torch.nn.utils.rnn.pack_padded_sequence().
 */
EBB_API EBB_NODISCARD struct ebb_packed *
ebb_padded_pack(ebb_region region, const struct ebb_tensor *padded, const int64_t *lengths,
                size_t count, const struct ebb_pack_options *options);

/*
 * Packs a list of tensors [length, ...] of one data type and the same further dimensions. The
 * result remembers the longest length. Of the options, batch_first and side mean nothing here.
 * Errors: as above, and EBB_E_DTYPE, EBB_E_SHAPE (that of sequence n, and of the first).
 * Source: torch.nn.utils.rnn.pack_sequence().
 */
EBB_API EBB_NODISCARD struct ebb_packed *
ebb_sequences_pack(ebb_region region, struct ebb_tensor *const *sequences, size_t count,
                   const struct ebb_pack_options *options);

/*
 * Makes tensors that the region owns a packed sequence, which they become members of. Of the
 * indices one may be NULL, which is then computed, or both. Nothing is copied. `count` of the
 * result is the length of the indices, or batch_sizes[0]. Errors: EBB_E_BATCH_SIZES (they grow,
 * are below 1, more than there are indices, or do not sum to the rows), EBB_E_PERMUTATION (not each
 * index once, not inverse of each other, not as many), EBB_E_DTYPE and EBB_E_SHAPE (members but
 * data must be int64, one-dimensional, contiguous), and those of ebb_object_compose() and
 * ebb_object_new().
 * Source: torch.nn.utils.rnn.PackedSequence, which checks none of this.
 */
EBB_API EBB_NODISCARD struct ebb_packed *
ebb_packed_from(ebb_region region, struct ebb_tensor *data, struct ebb_tensor *batch_sizes,
                struct ebb_tensor *sorted_indices, struct ebb_tensor *unsorted_indices);

/* ---- from packed ---- */

/*
 * Pads: [T, B, ...] or [B, T, ...], sequences in their original order. `options` may be NULL.
 * Valid until: as any tensor. Errors: EBB_E_TOTAL_LENGTH (negative, or less than the longest and
 * truncation is not allowed), EBB_E_VALUE, EBB_E_DTYPE (no type of numbers, and padding is not 0),
 * EBB_E_ARGUMENT, EBB_E_SHAPE (too many dimensions), EBB_E_NOT_OWNED (a field of `packed` refers to
 * what is no member of it), and as above.
 * Source: torch.nn.utils.rnn.pad_packed_sequence().
 */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_packed_pad(ebb_region region,
                                                        const struct ebb_packed *packed,
                                                        const struct ebb_pad_options *options);

/*
 * A tensor [length, ...] for each sequence, in the original order, into `sequences` [count], all
 * or none. Errors: EBB_E_LENGTH_COUNT (count is not that of the sequences), and as above.
 * Source: torch.nn.utils.rnn.unpack_sequence().
 */
EBB_API int ebb_packed_unpack(ebb_region region, const struct ebb_packed *packed,
                              struct ebb_tensor **sequences, size_t count);

/* Writes the length of each sequence, in the original order; where there is none `lengths` may be
 * NULL. Errors: EBB_E_LENGTH_COUNT, and as above for `packed`. */
EBB_API int ebb_packed_read_lengths(const struct ebb_packed *packed, int64_t *lengths,
                                    size_t count);

/* ---- padded and lists ---- */

/* Pads a list of tensors as for ebb_sequences_pack(). Errors: as there and ebb_packed_pad().
 * Source: torch.nn.utils.rnn.pad_sequence(). */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_sequences_pad(ebb_region region,
                                                           struct ebb_tensor *const *sequences,
                                                           size_t count,
                                                           const struct ebb_pad_options *options);

/*
 * Cuts each sequence of a padded tensor to its length: `count` tensors into `sequences`, all or
 * none. Order and options as for ebb_padded_pack(), so a left side is cut on the left. Errors: as
 * there. Source: torch.nn.utils.rnn.unpad_sequence().
 */
EBB_API int ebb_padded_unpad(ebb_region region, const struct ebb_tensor *padded,
                             const int64_t *lengths, size_t count,
                             const struct ebb_pack_options *options,
                             struct ebb_tensor **sequences);

/*
 * The inverse of a permutation: an int64 tensor [n] with result[permutation[i]] = i. NULL gives
 * NULL and no error. Errors: EBB_E_PERMUTATION (out of range, or twice the same), EBB_E_DTYPE,
 * EBB_E_SHAPE, and as ebb_tensor_new(). Source: torch.nn.utils.rnn.invert_permutation().
 */
EBB_API struct ebb_tensor *ebb_permutation_invert(ebb_region region,
                                                  const struct ebb_tensor *permutation);

#ifdef __cplusplus
}
#endif

#endif
