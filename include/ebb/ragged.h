// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/ragged.h - sequences of different lengths one behind the other, with offsets.
 *
 *     data      a0 a1 a2 b0 b1 c0          [R, ...]
 *     offsets   0 3 5 6                    int64 [B + 1], also known as cu_seqlens
 *
 * Sequence n is rows offsets[n] to offsets[n + 1] - 1; one without rows is empty. Words, rules
 * and options are those of ebb/sequence.h: results land in the region that is named, each byte is
 * copied once, all or nothing. One thread at a time for the regions concerned.
 *
 * Source of the form: the variable-length interfaces of attention kernels.
 */
#ifndef EBB_RAGGED_H
#define EBB_RAGGED_H

#include <ebb/sequence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sequences in ragged form: one object with two members. */
struct ebb_ragged {
    struct ebb_object object;
    struct ebb_tensor *data;    /* [R, ...] */
    struct ebb_tensor *offsets; /* int64 [B + 1], from 0 to R */
    int64_t count;              /* B */
    int64_t padded_length;      /* at least the longest: what padding gives if not told */
};

/* Its type, and the number that its counters have. */
EBB_API extern struct ebb_type ebb_type_ragged;
#define EBB_OBJECT_RAGGED 4u

/* ---- to ragged ---- */

/* Puts the tensors of a list one behind the other. Errors: as ebb_sequences_pack(). */
EBB_API EBB_NODISCARD struct ebb_ragged *ebb_sequences_join(ebb_region region,
                                                            struct ebb_tensor *const *sequences,
                                                            size_t count);

/* Leaves the padding out. Errors: as ebb_padded_pack(). */
EBB_API EBB_NODISCARD struct ebb_ragged *
ebb_padded_join(ebb_region region, const struct ebb_tensor *padded, const int64_t *lengths,
                size_t count, const struct ebb_pack_options *options);

/* Sequences in their original order; the padded length goes along. */
EBB_API EBB_NODISCARD struct ebb_ragged *ebb_packed_join(ebb_region region,
                                                         const struct ebb_packed *packed);

/*
 * Makes tensors that the region owns a ragged sequence, which they become members of. Nothing is
 * copied. Errors: EBB_E_LENGTH_NEGATIVE (offsets decrease, or do not begin with 0),
 * EBB_E_LENGTH_COUNT (no offsets, or the last is not the number of rows), EBB_E_DTYPE and
 * EBB_E_SHAPE (offsets must be int64, one-dimensional, contiguous), and those of
 * ebb_object_compose() and ebb_object_new().
 */
EBB_API EBB_NODISCARD struct ebb_ragged *ebb_ragged_from(ebb_region region,
                                                         struct ebb_tensor *data,
                                                         struct ebb_tensor *offsets);

/* ---- from ragged ---- */

/* Packs; the padded length goes along. Of the options, batch_first and side mean nothing here.
 * Errors: as ebb_sequences_pack(). */
EBB_API EBB_NODISCARD struct ebb_packed *ebb_ragged_pack(ebb_region region,
                                                         const struct ebb_ragged *ragged,
                                                         const struct ebb_pack_options *options);

/* Pads. Errors: as ebb_packed_pad(). */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_ragged_pad(ebb_region region,
                                                        const struct ebb_ragged *ragged,
                                                        const struct ebb_pad_options *options);

/* A tensor for each sequence into `sequences` [count], all or none. Errors: EBB_E_LENGTH_COUNT,
 * and as above. */
EBB_API int ebb_ragged_split(ebb_region region, const struct ebb_ragged *ragged,
                             struct ebb_tensor **sequences, size_t count);

#ifdef __cplusplus
}
#endif

#endif
