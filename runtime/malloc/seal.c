// SPDX-License-Identifier: Apache-2.0
/* seal.c - the secret of all seals (see seal.h). It is drawn once, and never changes. */
#include "malloc/seal.h"

#include "base/os.h"

_Atomic(uint64_t) seal_secret;

uint64_t seal_draw_secret(void) {
    uint64_t none = 0, drawn = os.draw() | 1;
    return atomic_compare_exchange_strong(&seal_secret, &none, drawn) ? drawn : none;
}
