// SPDX-License-Identifier: Apache-2.0
/* gradients.h - what survives a training step, and goes early in the next one. */
#ifndef EBB_TESTS_KIT_GRADIENTS_H
#define EBB_TESTS_KIT_GRADIENTS_H

#include "kit/test.h"

enum { GRADIENTS = 10 };

#define GRADIENT_BYTES ((size_t)64 << 10)

/* Those of the step before; NULL: none. They hold the pattern of their number. */
static inline void gradients_release(ebb_region parent, void *gradient[GRADIENTS]) {
    for (unsigned i = 0; i < GRADIENTS; i++) {
        assert_true(!gradient[i] || pattern_holds(gradient[i], GRADIENT_BYTES, i));
        assert_int_equal(ebb_region_release(parent, gradient[i]), 0);
        gradient[i] = NULL;
    }
}

#endif
