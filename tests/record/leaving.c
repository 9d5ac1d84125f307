// SPDX-License-Identifier: Apache-2.0
//
// leaving.c - a library with an operator delete, as allocators have one, that a handler of a signal
// could jump out of before it calls free(): here it is told to.

#include "leaving.h"

#include <stdlib.h>

void (*leaving)(void);

void _ZdlPv(void *block);

void _ZdlPv(void *block)
{
    if (leaving)
        leaving();
    free(block);
}
