// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/exchange.h - tensors come from and go to other libraries by DLPack.
 *
 * The structs are those of dlpack/dlpack.h, which this header does not include: what is exported
 * is handed on, what is imported comes from others, and whoever looks inside includes the
 * dlpack/dlpack.h that he has (Debian 12's has the old struct alone). Both of DLPack's structs are
 * spoken: the old one (DLManagedTensor) and the versioned one (DLManagedTensorVersioned, DLPack 1).
 *
 * An export shares the tensor's bytes. It counts among those who see the storage, and its bytes
 * outlive everything: when the region ends first, the pages under them leave it and are held by
 * the pool until the export is given back (ebb_pool_stats.held), or by the region that owns a
 * relinked block in them (until it has noticed: docs/lifetimes.md, "Pools and pages").
 *
 *     region open     | ebb_tensor | ... | elements |  <- export   the block keeps them
 *     region closed   pool ...     | pages around them | pool      the pool holds them
 *     given back      pool ...
 *
 * Giving back is calling the struct's deleter once. It is C without locks of an interpreter,
 * any thread may call it, at any time, also after the region closed or at the end of the
 * process (and after a dlclose(): libebb stays loaded). A second call does nothing as long as the
 * struct exists (while the region is open it does, until the region's thread has noticed; but that
 * of a tensor without elements, which keeps nothing, is gone with the first call).
 *
 * Only what every consumer reads rightly leaves: elements on multiples of EBB_STORAGE_ALIGN bytes
 * in ebb's large blocks, no byte offset, strides that are there and not negative, data types of
 * one lane and whole bytes. Everything else is refused, or copied if the caller says so.
 * Some consumers read a byte offset as 0, crash on negative strides or many dimensions.
 *
 * An import makes a tensor of somebody else's bytes. All fields are read once and checked. The
 * producer's deleter is called once, when the last tensor that sees the bytes ends or the region
 * closes. No thread is cancelled in it. It may call ebb. But as long as a call on objects
 * (ebb_object_end() of a composite, ebb_object_replace(), ebb_objects_end_but()) has others to end,
 * or ebb_tensor_import() a copy to return, it may neither end those, give them to another region,
 * compose or collate them, nor close, reset or rewind a region that has, had or hosts one of them
 * (EBB_E_BUSY). While a region ends, is reset or rewound, that region and those above it may not;
 * whoever has others of its objects may, and these may end before it.
 *
 * Promotion takes imported bytes along without touching them, if all tensors that see them go (else
 * EBB_E_BUSY). When the region closes, cleanups that are older than the import run when the
 * producer has its bytes back: then whatever would read, write or hand on elements of a tensor of
 * them says EBB_E_RELEASED, also of one in a packed or ragged sequence, a sample or a batch, and
 * the program must not read them either.
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
 * Hands a tensor on. The struct is the caller's, who passes it on or calls its deleter. Valid
 * until its deleter was called. A copy is contiguous and lies in the tensor's region, where its
 * block ends after it was given back; a tensor without elements has no data to share and holds
 * nothing. While an export is out: its block is neither released nor resized, and a rewind to a
 * mark that is older than the export fails, each with EBB_E_BUSY; promotion copies the block, also
 * where it is asked to relink.
 * One thread at a time for the region. NULL on failure: EBB_E_EXCHANGE (data type that some
 * consumers do not know; and, unless copied: elements not on multiples of EBB_STORAGE_ALIGN, in a
 * small block, imported, or not in shared memory although their region is), EBB_E_ARGUMENT (no such
 * mode), EBB_E_BUSY (its region, or that of its elements, is being rewound), EBB_E_MEMORY, what
 * ebb_object_as() says of the tensor, and for a copy the errors of ebb_region_alloc().
 */
EBB_API EBB_NODISCARD struct DLManagedTensor *ebb_tensor_export(const struct ebb_tensor *tensor,
                                                                enum ebb_exchange_mode mode);

/* The same as a versioned struct (DLPack 1.0), which says whether it is a copy. */
EBB_API EBB_NODISCARD struct DLManagedTensorVersioned *
ebb_tensor_export_versioned(const struct ebb_tensor *tensor, enum ebb_exchange_mode mode);

/*
 * A tensor of a producer's bytes, in `region`. On success the struct is ebb's, which calls its
 * deleter (NULL: there is none); with EBB_EXCHANGE_COPY, or where the bytes cannot be used as they
 * are (IF_NEEDED: negative strides, elements that are not aligned, packed elements of less than a
 * byte, which get one each), it is called before this returns. On failure the struct is still the
 * caller's, and nothing has changed.
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
 * The same for a versioned struct. Also EBB_E_EXCHANGE: a major version other than 1 (nothing but
 * the version was read then), flags that its version does not have.
 */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_import_versioned(ebb_region region, struct DLManagedTensorVersioned *managed,
                            enum ebb_exchange_mode mode);

/*
 * True if the elements were imported and their producer forbids to write to them. Functions that
 * write elements refuse them then, also through views (EBB_E_EXCHANGE). Any thread that may use it.
 */
EBB_API bool ebb_tensor_is_read_only(const struct ebb_tensor *tensor);

/*
 * How many exports are out: those that share bytes of storages in the region, wherever the tensor
 * is, and copies of tensors in the region. Those that were given back are ended first: what they
 * alone kept is free afterwards. That also happens by itself: when the last tensor that sees the
 * bytes ends, when tensors or blocks are promoted or kept, when the region is rewound or reset,
 * when a release or a resize would be refused for one, when counters of the region are read or
 * leaks reported, and when more were exported since the last look than were out then. Until then
 * the bytes count, towards limits as well. 0 with EBB_E_STALE if the region is closed. Time is
 * linear in them.
 */
EBB_API size_t ebb_region_count_exports(ebb_region region);

#ifdef __cplusplus
}
#endif

#endif
