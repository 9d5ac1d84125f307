// SPDX-License-Identifier: Apache-2.0
/*
 * trim.h - a draft of longer loops as one of shorter ones.
 *
 *     alive    |      .......
 *     most     |- - -/- - - -\- - -     slots that are there in between are left out, of each key
 *              |  /            \       in the same proportion
 *
 * Loops that turn less often have less alive. Where their blocks have keys they find the slots of
 * other trips by these, so they do not miss those that are left out.
 */
#ifndef EBB_STEP_TRIM_H
#define EBB_STEP_TRIM_H

#include "step/draft.h"

/* Leaves out slots with a place, until no more than `most` bytes of those are alive at once. The
 * draft has no guests; `by_key` has its slots by their keys. False, and nothing has changed: there
 * is no memory, or no slot need be left out, or the first ones of all keys are too much. */
bool draft_trim(struct draft *draft, const uint32_t *by_key, uint64_t most);

#endif
