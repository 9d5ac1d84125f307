// SPDX-License-Identifier: Apache-2.0
/* relinked.h - runs of relinked survivors: nothing but these is in them. */
#ifndef EBB_REGION_RELINKED_H
#define EBB_REGION_RELINKED_H

#include "region/region.h"

/* A run is one of survivors from now on, with none yet. With the pool's lock held: neighbours look
 * at what kind of run it is. */
void relinked_begin(struct ebb_piece *run);

/* A survivor is in the run; who calls links it with its neighbours. */
void relinked_count_in(struct ebb_piece *run, struct ebb_piece *block);

/* A survivor, or a hold, is in the run no longer. True: it was the last, and the run is gone. */
bool relinked_leave(struct region *region, struct ebb_piece *run);

/* A survivor was released, and is on no list: its pages go back once nobody else is in them. */
void relinked_release(struct region *region, struct ebb_piece *block);

/* Aborts if the survivor's place in its run is not as it must be. */
void relinked_check(const struct ebb_piece *run, const struct ebb_piece *block);

#endif
