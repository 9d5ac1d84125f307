// SPDX-License-Identifier: Apache-2.0
/*
 * capsule.h - DLPack's structs: those of the system's header, and what it may be too old for.
 *
 * Debian 12 has version 0.6, from before the versioned struct.
 */
#ifndef EBB_PYTHON_CAPSULE_H
#define EBB_PYTHON_CAPSULE_H

#include "module.h"

#include <dlpack/dlpack.h>

#ifndef DLPACK_MAJOR_VERSION

typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif

enum { DLPACK_MAJOR = 1, DLPACK_READ_ONLY = 1, DLPACK_COPIED = 2 };

#endif
