// SPDX-License-Identifier: Apache-2.0
/* dtype.h - the data types that have a name in Python. */
#ifndef EBB_PYTHON_DTYPE_H
#define EBB_PYTHON_DTYPE_H

#include "module.h"

enum { DTYPE_ROWS = 15 };

struct dtype_row {
    const char *name;   /* as in torch and numpy */
    const char *format; /* of the struct module and numpy; NULL: there is none */
    struct ebb_dtype dtype;
};

/* Those that are seen most come first. */
extern const struct dtype_row dtype_table[DTYPE_ROWS];

#endif
