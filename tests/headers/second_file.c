// SPDX-License-Identifier: Apache-2.0
/* second_file.c - a second user of the inline function in the same program (see real_symbol.c). */
#include "real_symbol.h"

alloc_fn *alloc_of_second_file(void) {
    return ebb_region_alloc;
}
