// SPDX-License-Identifier: Apache-2.0
/*
 * merge.h - one draft for steps of two drafts, whose blocks have keys.
 *
 *     one       A B C       X X
 *     other     A   C D D   X
 *     merged    A B C D D   X X
 *
 * A slot of both is as large, and is there as long, as in either of them. What one has and the
 * other has not lies where it came; if they have nothing in common, one follows the other, in the
 * same places. So a step of either kind goes along the merged draft, and leaves out what is not its
 * own. The lives in it are a guess: where a step differs from both, what is not free is not served.
 */
#ifndef EBB_STEP_MERGE_H
#define EBB_STEP_MERGE_H

#include "step/draft.h"

/* A draft of its own, of two without guests. NULL: there is no memory, or neither has a key that
 * the other lacks, or what only `other` has is not worth it, or only one is coarse, or it would
 * have more slots than `count_most`, or more than `bytes_most` alive at once. */
struct draft *draft_merge(const struct draft *one, const struct draft *other,
                          uint64_t count_most, uint64_t bytes_most);

#endif
