// SPDX-License-Identifier: Apache-2.0
/* sample.h - what making, comparing and collating samples have in common. */
#ifndef EBB_OBJECT_SAMPLE_H
#define EBB_OBJECT_SAMPLE_H

#include "object/object.h"

#include <ebb/sample.h>

bool sample_kind_is_known(int kind);

/* Bytes of metadata lie behind the struct: they move with it, and nothing points at them. */
static inline void *sample_bytes(const struct ebb_sample *sample) {
    return (void *)(sample + 1);
}

/* 0, or EBB_E_METADATA: there is no room for as many bytes as the sample says. */
int sample_check_bytes(const struct ebb_sample *sample);

/* True if the tensor is a member of the sample, and live. */
bool sample_has(const struct ebb_sample *sample, const struct ebb_tensor *tensor);

struct ebb_sample_info sample_info(const struct ebb_sample *sample);

/* A sample, in the region of its members, which are new and of no composite. NULL: no memory. */
struct ebb_sample *sample_make(struct region *region, const struct ebb_sample_info *info,
                               struct ebb_tensor *data, struct ebb_tensor *offsets,
                               struct ebb_tensor *canvases);

#endif
