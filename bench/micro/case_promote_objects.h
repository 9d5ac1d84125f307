// SPDX-License-Identifier: Apache-2.0
/*
 * case_promote_objects.h - what it costs to keep some tensors of a step, by mode, size and share.
 *
 * A step has 64 tensors of one size, 4 KiB to 4 MiB. Some of them, evenly spread, are written and
 * survive: 1, 8, 32 or all. One call promotes them to the parent and closes the step, and is
 * timed. The modes take turns, so that they meet the same machine. `auto_over_best` is the time of
 * mode auto over that of the faster one of copy and relink.
 *
 * `pinned_bytes` are bytes of the parent's pages that then hold no survivor; for auto they are also
 * given over the bytes that it relinked. Beside the sweep, one tensor of 64 MiB is relinked by
 * itself, without the close: as it is, and after it was written, which empties the caches.
 */
#ifndef MICRO_CASE_PROMOTE_OBJECTS_H
#define MICRO_CASE_PROMOTE_OBJECTS_H

#include "round.h"

void case_promote_objects(struct round *round);

#endif
