// SPDX-License-Identifier: Apache-2.0
/* weigh.h - which survivors move with their pages, where that is ebb's choice (see weigh.c). */
#ifndef EBB_REGION_WEIGH_H
#define EBB_REGION_WEIGH_H

#include "region/survivor.h"

/* Of a list in which blocks to be weighed have the flag, those keep it that are worth relinking and
 * pin at most `percent` of their bytes. `step`: it ends next; else NULL. */
void weigh_survivors(const struct ebb_survivor *list, size_t count, unsigned percent,
                     const struct region *step);

#endif
