// SPDX-License-Identifier: Apache-2.0
/*
 * dlpack.h - DLPack's structs: those of the system's header, and what that one may be too old for.
 *
 * Debian 12 has version 0.6, from before the versioned struct. Its layout is pinned in
 * tests/abi/exchange.c, against the header's own if that has it.
 */
#ifndef EBB_OBJECT_DLPACK_H
#define EBB_OBJECT_DLPACK_H

#include <dlpack/dlpack.h>

#ifndef DLPACK_MAJOR_VERSION

typedef struct {
    uint32_t major; /* another one: another layout behind `flags` */
    uint32_t minor; /* another one: other values of fields */
} DLPackVersion;

/* Everything up to flags stays where it is in all major versions. */
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx; /* the producer's */
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif

/* What ebb writes, and the newest that it knows all of. */
enum { DLPACK_MAJOR = 1, DLPACK_MINOR_WRITTEN = 0, DLPACK_MINOR_KNOWN = 1 };

/* Bits of `flags`. */
enum {
    DLPACK_READ_ONLY = 1 << 0,
    DLPACK_COPIED = 1 << 1,
    DLPACK_PADDED = 1 << 2, /* elements below a byte take one byte each; since 1.1 */
    DLPACK_FLAGS_FIRST = DLPACK_READ_ONLY | DLPACK_COPIED, /* of 1.0 */
    DLPACK_FLAGS_KNOWN = DLPACK_FLAGS_FIRST | DLPACK_PADDED
};

#endif
