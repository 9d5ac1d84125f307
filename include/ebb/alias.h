// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/alias.h - a result in the memory of a tensor that is there already.
 *
 * What a step computes often replaces something of the same size: the next hidden state, the next
 * batch, an output that the caller keeps a buffer for. An alias is a tensor for such a result whose
 * elements lie where those of an existing tensor do; writing it overwrites them. Nothing is
 * allocated but its head.
 *
 *     struct ebb_alias alias = {.size = sizeof alias, .fall_back = true};
 *     output = ebb_tensor_alias(region, state, dtype, ndim, shape, &alias);
 *     // alias.reason: 0, or why `output` has memory of its own
 *
 * Source of the semantics: IREE's hal.tensor.alias and iree.abi.output, where the caller vouches
 * that nobody else uses the storage; here it is checked, unless the caller vouches.
 */
#ifndef EBB_ALIAS_H
#define EBB_ALIAS_H

#include <ebb/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How, and what became of it. Zero is the default. */
struct ebb_alias {
    size_t size;    /* in: sizeof(struct ebb_alias) */
    bool shared;    /* in: other tensors or exports may see the storage; the caller vouches that
                     * none is used from now on as if nothing had changed */
    bool fall_back; /* in: where the result cannot be an alias, make a fresh tensor */
    int reason;     /* out: 0 if the result is an alias, else the error that kept it from being
                     * one; unchanged if the call fails */
};

/*
 * A row-major tensor of the dtype and shape [ndim] in `region`, whose elements begin where those
 * of `existing` do. Contents: what was there. `existing` stays a tensor of the storage; either may
 * be ended first. `alias` may be NULL. Valid until: ebb_object_end(), the end of its owner or of
 * the storage's region. One thread at a time for the regions concerned.
 *
 * NULL on failure. Reasons that `fall_back` turns into a fresh tensor: EBB_E_NO_ROOM (more bytes
 * than `existing` has, with both counts), EBB_E_VIEW (`existing` is not contiguous, or begins at
 * no multiple of the largest power of two, up to 16, that divides the bytes of an element, of a
 * complex one those of a part), EBB_E_OVERLAP (others see the storage), EBB_E_EXCHANGE (it was
 * imported read-only), EBB_E_NOT_ANCESTOR (the storage's region is neither `region` nor above it).
 * Always errors: EBB_E_ARGUMENT (size of the struct), and those of ebb_tensor_new() and of an
 * `existing` that is no tensor, or whose bytes a producer has back (ebb/exchange.h).
 */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_alias(ebb_region region, const struct ebb_tensor *existing, struct ebb_dtype dtype,
                 int ndim, const int64_t *shape, struct ebb_alias *alias);

#ifdef __cplusplus
}
#endif

#endif
