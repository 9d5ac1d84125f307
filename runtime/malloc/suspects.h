// SPDX-License-Identifier: Apache-2.0
/*
 * suspects.h - trays with blocks that were alive when their scope ended: are these leaks?
 *
 * Much of what a scope leaves behind goes a moment later: what its caller still has in variables,
 * an answer that is on its way. So who allocates it is noted as a leak (leaks.h) only if it is
 * still alive when the thread's next scope has ended.
 *
 * A suspect is told by its tray's seal. A tray with another one has been given back meanwhile, and
 * all that it had is gone. Trays that were given back can be read; hardened ones cannot, so there
 * judgement is not put off, and is passed before any tray is sealed.
 */
#ifndef EBB_MALLOC_SUSPECTS_H
#define EBB_MALLOC_SUSPECTS_H

#include "malloc/tray.h"

#define SUSPECTS_MOST 64u /* of more trays some, each as likely as any other */

struct suspect {
    const struct tray *tray;
    uint64_t seal;
};

/* Of a heap, and its thread's alone. */
struct suspects {
    struct suspect list[SUSPECTS_MOST];
    unsigned seen;
};

/* A tray that has just been sealed. It may be gone already. */
void suspects_add(struct suspects *suspects, const struct tray *tray, uint64_t seal);

/* Notes the keys of all that is still alive in them, once each, and drops them. */
void suspects_judge(struct suspects *suspects);

/* The same at once, for trays that are to be sealed, linked by next. */
void suspects_convict(const struct tray *trays);

#endif
