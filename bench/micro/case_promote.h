// SPDX-License-Identifier: Apache-2.0
/*
 * case_promote.h - what promoting one block to the parent costs, by mode and size.
 *
 * The block is written in full, promoted by itself, and the call alone is timed. 64 B to 64 MiB
 * in steps of 4; `relink` is left out below the large lane, where ebb copies instead. The
 * floor's rows are a memcpy of the same size, timed in the same way. The pool keeps everything:
 * sizes that lie a million apart within one round are the very spike that a pool gives back after.
 */
#ifndef MICRO_CASE_PROMOTE_H
#define MICRO_CASE_PROMOTE_H

#include "round.h"

#define PROMOTE_BYTES_MOST ((size_t)64 << 20)
#define PROMOTE_REPETITIONS ((size_t)31) /* at most */

static inline size_t promote_repetitions(size_t bytes) {
    return bytes < 1 << 20 ? PROMOTE_REPETITIONS : 5;
}

void case_promote(struct round *round);

#endif
