// SPDX-License-Identifier: Apache-2.0
/*
 * used.h - how much the general heap has, for who asks how much the program uses.
 *
 * What is closed (quarantine.h) is left out: the program has freed it, and it is in no memory.
 */
#ifndef EBB_MALLOC_USED_H
#define EBB_MALLOC_USED_H

#include <stddef.h>

struct used {
    size_t allocated; /* bytes of blocks */
    size_t unused;    /* beside them on their pages */
    size_t resident;  /* pages that may be in memory, bookkeeping's too, most of
                         * whose are never touched */
};

/* As it is now. */
struct used used_read(void);

#endif
