// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/collate.h - many samples become one batch, in the region that it is for.
 *
 * Samples are trees that are built alike (ebb/batch.h). The batch is a tree of the same structure:
 *
 *     tensors            one tensor with a new first dimension, or what a rule says
 *     images and so on   the same, and they stay what they are; metadata must be equal
 *     boxes, points      one ragged sample: rows, where each image's begin, a canvas for each
 *     bool, integer, real        a tensor [N] of bool, int64, float64
 *     string, bytes      a list of them
 *     none               none
 *     dict, list, tuple, named tuple     the same, with the order of the first sample
 *
 * Everything is looked at first: a batch that cannot be is refused before a byte of it exists.
 * Then each tensor is made at its full size, and each byte of the samples is copied once, straight
 * to where it stays.
 *
 * Source of the semantics: torch's default_collate(). Where that drops the kind of a sample, turns
 * tuples into lists or ignores keys that only some samples have, there is a batch that keeps them,
 * or an error, here.
 */
#ifndef EBB_COLLATE_H
#define EBB_COLLATE_H

#include <ebb/batch.h>
#include <ebb/ragged.h>
#include <ebb/sample.h>
#include <ebb/value.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ebb_collate_how {
    EBB_COLLATE_DEFAULT = 0, /* ragged for boxes and points, else stack */
    EBB_COLLATE_STACK = 1,   /* [N, ...]; all shapes are equal */
    EBB_COLLATE_PAD = 2,     /* [N, ...]; each dimension as large as the largest */
    EBB_COLLATE_RAGGED = 3,  /* a ragged sample, or struct ebb_ragged; the first may differ */
    EBB_COLLATE_PACK = 4     /* struct ebb_packed; the first may differ. Tensors only */
};

/* How to collate the leaf that `path` (see ebb_node_get()) leads to, and all leaves below it. */
struct ebb_collate_rule {
    const char *path; /* "": all */
    enum ebb_collate_how how;
    bool left;              /* padding goes in front of the elements; else behind them */
    struct ebb_value value; /* what padding consists of; 0 */
};

/* Zero is the default. */
struct ebb_collate_options {
    size_t size;                          /* sizeof(struct ebb_collate_options) */
    const struct ebb_collate_rule *rules; /* the last one that covers a leaf counts */
    size_t rule_count;
};

/* What collating did; added to whatever the struct held before. */
struct ebb_collated {
    uint64_t tensors;      /* tensors of the samples, each copied once */
    uint64_t copied_bytes; /* their bytes */
    uint64_t padded_bytes; /* written besides, as padding */
};

/*
 * Collates `count` samples, which may lie in any regions, into a tree in `region`. `options` and
 * `done` may be NULL. Valid until: ebb_object_end(), the end of its owner. One thread at a time for
 * the regions concerned. NULL on failure, without effect; the text names the path, the number of
 * the sample, and what both it and the first are:
 *
 *   EBB_E_EMPTY        no samples
 *   EBB_E_STRUCTURE    another kind, count of members, name, key than in the first sample
 *   EBB_E_SHAPE        shapes do not agree, or have too many dimensions
 *   EBB_E_DTYPE        data types differ, or no numbers are padded with -0.0 or what is not 0
 *   EBB_E_METADATA     metadata of samples differs, or they have none that the rule could keep
 *   EBB_E_VALUE        the data type cannot hold the padding
 *   EBB_E_TYPE         a leaf of a type that collate does not know, or a node that is damaged
 *   EBB_E_NOT_OWNED    what is in a field of a sample was not composed
 *   EBB_E_RELEASED     a member of a sample was ended
 *   EBB_E_DEPTH        the batch would be too deep, or samples are
 *   EBB_E_ARGUMENT     options: size, a rule that covers nothing, an unknown `how`
 *
 * and those of ebb_object_new() and ebb_tensor_new().
 */
EBB_API EBB_NODISCARD void *ebb_batch_collate(ebb_region region, void *const *samples,
                                              size_t count,
                                              const struct ebb_collate_options *options,
                                              struct ebb_collated *done);

#ifdef __cplusplus
}
#endif

#endif
