// SPDX-License-Identifier: Apache-2.0
/* send.h - a region that may be sent (see send.c). */
#ifndef EBB_HANDOFF_SEND_H
#define EBB_HANDOFF_SEND_H

#include "region/region.h"

#include <ebb/handoff.h>

/* The root of a tree in a slot that ebb_region_send() would take, but for the block; NULL: its
 * error. What was exported and given back by then has ended. */
struct region *send_begin(ebb_region handle, const struct ebb_parcel *parcel);

#endif
