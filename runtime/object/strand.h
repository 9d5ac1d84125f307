// SPDX-License-Identifier: Apache-2.0
/*
 * strand.h - sequences as their rows lie in memory, and how rows get from one form to another.
 *
 * A row is what a sequence has at one time: the elements of the dimensions behind batch and time.
 * In all forms but one the rows of a sequence lie apart by a fixed step, one *strand* each:
 *
 *     list     start of the tensor, step of its first dimension
 *     padded   base + sequence * batch_step (+ what a left side pads), time_step
 *     ragged   base + offset of the sequence * row, one row
 *
 * The one is packed: all first rows, then all second rows, longest sequence first. Its *rank* is
 * a sequence's place in that order.
 *
 *     rank 0   a0 a1 a2          a0 b0 c0 | a1 b1 | a2
 *     rank 1   b0 b1             batch_sizes: 3, 2, 1
 *     rank 2   c0
 *
 * Results are made by ebb and row-major; sources may have any strides. Sizes and offsets here are
 * bytes of memory that is there, so their sums do not overflow.
 */
#ifndef EBB_OBJECT_STRAND_H
#define EBB_OBJECT_STRAND_H

#include "base/hidden.h"
#include "object/number.h"
#include "object/object.h"

#include <ebb/sequence.h>

/* A row of a result. */
struct row {
    size_t bytes;
    size_t element_bytes;
    int ndim;
    const int64_t *shape; /* [ndim] */
};

/* The rows of one sequence. */
struct strand {
    char *start;
    int64_t step;
    int64_t length;         /* rows */
    const int64_t *strides; /* of a row's dimensions, in elements; NULL: row-major */
};

enum bundle_form { BUNDLE_LIST, BUNDLE_PADDED, BUNDLE_RAGGED };

/* Many sequences in one of the forms that have strands. */
struct bundle {
    enum bundle_form form;
    enum ebb_side side;            /* padded: where the padding is */
    int64_t count;                 /* of sequences */
    int64_t padded_length;         /* padded: rows of each; else of the longest */
    int64_t most;                  /* sources: longer sequences are cut to it; 0: none is */
    bool drop_first;               /* of those that are cut, the first rows go, not the last */
    char *base;                    /* padded and ragged */
    int64_t batch_step;            /* padded */
    int64_t time_step;             /* padded and ragged; of a list, the bytes of an element */
    const int64_t *lengths;        /* padded */
    const int64_t *offsets;        /* ragged */
    struct ebb_tensor *const *list;
    const int64_t *strides; /* padded and ragged: of a row, as in a strand */
};

/* Rows in packed order. */
struct ranks {
    char *base;
    int64_t step;
    int64_t steps; /* length of batch_sizes, and of the longest sequence */
    int64_t count; /* of sequences, empty ones included */
    const int64_t *batch_sizes;
    const int64_t *sorted;   /* rank to sequence, or NULL: the same */
    const int64_t *unsorted; /* sequence to rank, or NULL */
    const int64_t *strides; /* of a row, as in a strand */
};

/* What padding consists of: an element, or a part of it if all parts are the same. */
struct padding {
    unsigned char at[NUMBER_ELEMENT_BYTES];
    size_t bytes;
};

static inline const int64_t *integers_of(const struct ebb_tensor *tensor) {
    return tensor ? tensor->data : NULL;
}

/* ---- strand.c ---- */

/* The dimensions from `lead` on of a tensor are a row; of one without elements it has no bytes. */
struct row row_of(const struct ebb_tensor *tensor, int lead);

/* Bytes from one index of a dimension to the next; 0 if there is no next one. */
int64_t row_step(const struct ebb_tensor *tensor, int dimension);

/* Strides of the rows of a tensor, in the sense of a strand. */
const int64_t *row_strides(const struct ebb_tensor *tensor, int lead);

/* The length of a rank, from that of the one before; of rank 0 from `steps`. */
static inline int64_t ranks_length(const struct ranks *ranks, int64_t rank, int64_t before) {
    while (before > 0 && ranks->batch_sizes[before - 1] <= rank)
        before--;
    return before;
}

/* The length of any rank. */
static inline int64_t ranks_length_of(const struct ranks *ranks, int64_t rank) {
    int64_t low = 0, high = ranks->steps;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        bool longer = ranks->batch_sizes[middle] > rank;
        low = longer ? middle + 1 : low;
        high = longer ? high : middle;
    }
    return low;
}

/* Writes the lengths of all sequences, in their original order. */
void ranks_read_lengths(const struct ranks *ranks, int64_t *lengths);

/* The length of a sequence before it is cut. */
static inline int64_t bundle_whole(const struct bundle *bundle, int64_t sequence) {
    switch (bundle->form) {
    case BUNDLE_LIST:
        return bundle->list[sequence]->shape[0];
    case BUNDLE_PADDED:
        return bundle->lengths[sequence];
    default:
        return bundle->offsets[sequence + 1] - bundle->offsets[sequence];
    }
}

static inline int64_t bundle_length(const struct bundle *bundle, int64_t sequence) {
    int64_t whole = bundle_whole(bundle, sequence);
    return bundle->most && whole > bundle->most ? bundle->most : whole;
}

/* A sequence that is cut begins behind the rows that go; padded on the left, where it began. */
static inline void strand_cut(struct strand *strand, const struct bundle *bundle, int64_t sequence,
                              int64_t step) {
    int64_t rows = bundle_whole(bundle, sequence) - strand->length;
    bool at_end = bundle->form == BUNDLE_PADDED && bundle->side == EBB_SIDE_LEFT;
    strand->start += ((bundle->drop_first ? rows : 0) - (at_end ? rows : 0)) * step;
}

/* The strand of a sequence, of which the first `length` rows are meant. Rows have bytes. */
static inline void bundle_strand(struct strand *strand, const struct bundle *bundle,
                                 int64_t sequence, int64_t length) {
    const struct ebb_tensor *tensor;
    int64_t step = bundle->time_step;
    strand->length = length;
    strand->step = step;
    strand->strides = bundle->strides;
    switch (bundle->form) {
    case BUNDLE_LIST:
        tensor = bundle->list[sequence];
        step *= tensor->shape[0] > 1 ? tensor->strides[0] : 0;
        strand->start = tensor->data;
        strand->step = length > 1 ? step : 0;
        strand->strides = tensor->ndim == 1 ? NULL : row_strides(tensor, 1);
        break;
    case BUNDLE_PADDED:
        strand->start = bundle->base + sequence * bundle->batch_step;
        if (bundle->side == EBB_SIDE_LEFT)
            strand->start += (bundle->padded_length - length) * bundle->time_step;
        break;
    default:
        strand->start = bundle->base + bundle->offsets[sequence] * bundle->time_step;
    }
    if (bundle->most)
        strand_cut(strand, bundle, sequence, step);
}

/* What elements of that type are padded with; 0 or the error of value_write(). A 0 of any kind, but
 * not -0.0, is all bytes zero, whatever the type. */
int padding_encode(struct ebb_value value, struct ebb_dtype dtype, struct padding *padding);

/* Writes `bytes` bytes of padding, whole elements. */
void padding_write(const struct padding *padding, void *to, size_t bytes);

/* ---- weave.c ---- */

/* Bytes of payload that this thread has copied here so far. */
extern HIDDEN _Thread_local uint64_t weave_copied_bytes;

/* Strands become packed rows, `rows` in all. */
void weave_pack(const struct ranks *to, const struct bundle *from, const struct row *row,
                int64_t rows);

/* Packed rows become strands; of longer sequences only the first `most` rows. */
void weave_unpack(const struct bundle *to, const struct ranks *from, const struct row *row,
                  int64_t most, const struct padding *padding);

/* Strands become strands of another form, at most `most` rows of each. Where these are padded,
 * `padding` fills the rest; else it may be NULL. The same holds above. */
void weave_strands(const struct bundle *to, const struct bundle *from, const struct row *row,
                   int64_t most, const struct padding *padding);

#endif
