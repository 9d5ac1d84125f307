// SPDX-License-Identifier: Apache-2.0
//
// variants.h - the designs of the two lanes that are compared.

#ifndef EBB_BENCH_LANES_VARIANTS_H
#define EBB_BENCH_LANES_VARIANTS_H

#include <stddef.h>

#include "simulate.h"

struct variants {
    struct variant *variant;
    size_t count, capacity;
};

void variants_add_all(struct variants *variants);      // every combination that makes sense
void variants_add_selected(struct variants *variants); // those of the table in docs/decisions.md
void variants_free(struct variants *variants);

// Short names; static storage.
const char *variant_reuse_name(const struct variant *variant);
const char *variant_placement_name(const struct variant *variant);
const char *variant_source_name(const struct variant *variant);

#endif
