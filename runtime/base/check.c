// SPDX-License-Identifier: Apache-2.0
/* check.c - the end of the process when one of ebb's own invariants is broken. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *claim, const char *file, int line) {
    fprintf(stderr, "ebb: broken invariant: %s (%s:%d)\n", claim, file, line);
    abort();
}
