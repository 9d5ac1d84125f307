// SPDX-License-Identifier: Apache-2.0
/* real_symbol.h - what the two files of this program share. */
#ifndef HEADERS_REAL_SYMBOL_H
#define HEADERS_REAL_SYMBOL_H

#include <ebb/ebb.h>

typedef void *alloc_fn(ebb_region region, size_t bytes, size_t align);

/* Where the second file thinks ebb_region_alloc() is. */
alloc_fn *alloc_of_second_file(void);

#endif
