// SPDX-License-Identifier: Apache-2.0
/*
 * guests.h - blocks of a step that lie in the parent for a while, where survivors are not yet.
 *
 *     arena     |  forward  ****** peak ******   backward        |
 *     parent    |  gradients of before |  guests  | gradients    |
 *
 * What a step leaves behind, such as gradients, is gone again in the midst of the next one, long
 * before that makes its own. In between the parent has room for nothing. Blocks that are there at
 * the step's peak and end before the room is needed lie in it as guests, so that the arena is lower
 * by what they have. They come and go as what is born in the parent does (region/record.c).
 */
#ifndef EBB_STEP_GUESTS_H
#define EBB_STEP_GUESTS_H

#include "step/draft.h"

/* More would not repay the slower way that they take. */
#define GUESTS_MOST 32u

/* Makes guests of what is placed, if that lowers the peak by as much as is worth it: at most
 * `bytes_most` in all. Without memory, none. The draft has none yet, and was recorded with `above`.
 */
void guests_choose(struct draft *draft, uint64_t bytes_most);

/* All of them are placed again. */
void guests_dismiss(struct draft *draft);

#endif
