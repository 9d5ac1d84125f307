// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/exchange.h - hands tensors to other libraries, and takes theirs, by DLPack.
 *
 * Both of DLPack's structs are supported: DLManagedTensor, and DLManagedTensorVersioned of DLPack
 * 1. This header only declares them. A program that looks inside includes dlpack/dlpack.h itself
 * (Debian 12's has the older struct alone).
 *
 * An export shares the tensor's bytes and counts as one more tensor that sees the storage. It may
 * outlive the region: if that ends first, the pages under the bytes leave it and are held by the
 * pool (ebb_pool_stats.held) until the export is given back; or, if a relinked block lies in them,
 * by the region that owns the block until it has noticed (docs/lifetimes.md, "Pools and pages").
 *
 *     region open     | ebb_tensor | ... | elements |  <- export   the block keeps them
 *     region closed   pool ...     | pages around them | pool      the pool holds them
 *     given back      pool ...
 *
 * An export is given back by calling its deleter once. The deleter is plain C and takes no lock of
 * an interpreter. Any thread may call it at any time: after the region closed, at the end of the
 * process, after a dlclose() (libebb stays loaded). A second call does nothing while the struct
 * exists: while the region is open, until its thread has noticed the first call. If the region is
 * closed, or the tensor has no elements (it keeps nothing then), the first call is the last.
 *
 * Only tensors that every consumer reads correctly are exported as they are: elements on multiples
 * of EBB_STORAGE_ALIGN bytes in ebb's large blocks, no byte offset, explicit strides that are not
 * negative, data types of one lane and whole bytes. Others are refused, or copied if the caller
 * says so: some consumers ignore byte offsets, or crash on negative strides or many dimensions.
 *
 * An import makes a tensor of a producer's bytes. Each field of the struct is read once and
 * checked. The producer's deleter is called once: when the last tensor that sees the bytes ends, or
 * the region closes. Threads are not cancelled in it, and it may call ebb, within limits:
 *   - called by a call that has further objects to end (ebb_object_end() of a composite,
 *     ebb_object_replace(), ebb_objects_end_but()) or a copy to return (ebb_tensor_import()), it
 *     may not end, give away, compose or collate those, nor close, reset or rewind a region that
 *     owns, owned or hosts one of them (EBB_E_BUSY);
 *   - called while a region is closed, reset or rewound, it may not close, reset or rewind that
 *     region or one above it. It may do so to others, even if they own objects that lie in that
 *     region: these may end before it.
 *
 * Promotion takes imported bytes along without touching them, provided that all tensors that see
 * them go (else EBB_E_BUSY). When a region closes, cleanups older than an import run after the
 * producer got its bytes back. From then on every call that would read, write or hand on elements
 * of such a tensor, alone or in a sequence, a sample or a batch, says EBB_E_RELEASED, and the
 * program must not read them either.
 *
 * Source of the semantics: the DLPack specification; where it leaves a choice, what NumPy and
 * PyTorch read.
 */
#ifndef EBB_EXCHANGE_H
#define EBB_EXCHANGE_H

#include <ebb/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Whether elements may be copied. The meaning of `copy` in Python's __dlpack__(). */
enum ebb_exchange_mode {
    EBB_EXCHANGE_SHARE = 0,   /* False: shared, or an error */
    EBB_EXCHANGE_IF_NEEDED = 1, /* None: shared where that can be, else copied */
    EBB_EXCHANGE_COPY = 2     /* True: copied */
};

/*
 * Exports a tensor. The struct belongs to the caller, who passes it on or calls its deleter, and is
 * valid until then. A copy is contiguous and lies in the tensor's region; its block ends after it
 * was given back. A tensor without elements has no data to share and holds nothing. While an export
 * is out, to release or resize its block, or to rewind to a mark older than the export, fails with
 * EBB_E_BUSY; promotion copies the block, even where it is asked to relink.
 * One thread at a time for the region. NULL on failure: EBB_E_EXCHANGE (data type that some
 * consumers do not know; and, unless copied: elements not on multiples of EBB_STORAGE_ALIGN, in a
 * small block, imported, or not in shared memory although their region is), EBB_E_ARGUMENT (no such
 * mode), EBB_E_BUSY (its region, or that of its elements, is being rewound), EBB_E_MEMORY, the
 * errors of ebb_object_as(), and for a copy those of ebb_region_alloc().
 */
EBB_API EBB_NODISCARD struct DLManagedTensor *ebb_tensor_export(const struct ebb_tensor *tensor,
                                                                enum ebb_exchange_mode mode);

/* The same as a versioned struct (DLPack 1.0), which says whether it is a copy. */
EBB_API EBB_NODISCARD struct DLManagedTensorVersioned *
ebb_tensor_export_versioned(const struct ebb_tensor *tensor, enum ebb_exchange_mode mode);

/*
 * A tensor of a producer's bytes, in `region`. On success the struct belongs to ebb, which calls
 * its deleter (NULL: there is none). If the bytes are copied, it is called before this returns.
 * EBB_EXCHANGE_IF_NEEDED copies negative strides, elements that are not aligned, and packed
 * elements of less than a byte, which get one each. On failure the struct is still the caller's,
 * and nothing has changed.
 * Valid until: ebb_object_end(), the end of its owner. NULL on failure: EBB_E_EXCHANGE (NULL,
 * another device than the host's memory, no data, not aligned, negative strides, packed elements
 * that are to be shared or not row-major, with the numbers), EBB_E_DTYPE, EBB_E_SHAPE (dimensions,
 * negative sizes), EBB_E_SIZE (sizes, strides or offset overflow), EBB_E_ARGUMENT, EBB_E_STALE,
 * EBB_E_MEASURING, and the errors of ebb_region_alloc().
 */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_tensor_import(ebb_region region,
                                                           struct DLManagedTensor *managed,
                                                           enum ebb_exchange_mode mode);

/*
 * The same for a versioned struct. Also EBB_E_EXCHANGE: a major version other than 1 (then nothing
 * but the version is read), or flags that its version does not have.
 */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_import_versioned(ebb_region region, struct DLManagedTensorVersioned *managed,
                            enum ebb_exchange_mode mode);

/*
 * True if the elements were imported and their producer forbids writing. Functions that write
 * elements then refuse with EBB_E_EXCHANGE, through views, too. Any thread that may use the tensor.
 */
EBB_API bool ebb_tensor_is_read_only(const struct ebb_tensor *tensor);

/*
 * How many exports are out: those that share bytes of storages in the region, wherever the tensor
 * is, and copies of tensors in the region. First ends those that were given back, which frees what
 * they alone kept. Until they are ended their bytes count, towards limits as well. This also
 * happens by itself: when the last tensor that sees the bytes ends, when tensors or blocks are
 * promoted or kept, when the region is rewound or reset, before a release or a resize is refused
 * for one, when counters of the region are read or leaks reported, and when more were exported
 * since the last look than were out then. 0 with EBB_E_STALE if the region is closed. Time is
 * linear in the exports.
 */
EBB_API size_t ebb_region_count_exports(ebb_region region);

#ifdef __cplusplus
}
#endif

#endif
