// SPDX-License-Identifier: Apache-2.0
/*
 * check.h - ebb's own invariants. A check that fails is a bug in ebb or a wild write: it ends
 * the process with a message. Callers' mistakes never come here.
 *
 * Levels (option -Dcheck=): 0 off, 1 cheap (constant time, the default), 2 full (walkers at the
 * doors, windows shut, released memory overwritten).
 */
#ifndef EBB_BASE_CHECK_H
#define EBB_BASE_CHECK_H

#include <stdbool.h>

#ifndef EBB_CHECK_LEVEL
#define EBB_CHECK_LEVEL 1
#endif

#define EBB_CHECK_FULL (EBB_CHECK_LEVEL >= 2)

void check_failed(const char *claim, const char *file, int line)
    __attribute__((cold, noreturn));

static inline void check_claim(bool holds, const char *claim, const char *file, int line) {
    if (__builtin_expect(!holds, 0))
        check_failed(claim, file, line);
}

#define CHECK(claim) \
    check_claim(EBB_CHECK_LEVEL < 1 || (claim), #claim, __FILE__, __LINE__)

/* At every level: in walkers, and where a broken plan would let live blocks overlap. */
#define CHECK_ALWAYS(claim) check_claim((claim), #claim, __FILE__, __LINE__)

#endif
