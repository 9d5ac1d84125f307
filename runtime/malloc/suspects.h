// SPDX-License-Identifier: Apache-2.0
/*
 * suspects.h - trays with blocks that were alive when their scope ended: are these leaks?
 *
 * Much of what a scope leaves behind is freed a moment later: what its caller still has in
 * variables, an answer that is on its way. So it is noted as a leak (leaks.h) only if it is still
 * alive when the thread's next scope has ended.
 *
 * A suspect is known by its tray's seal: if the tray has another one it was given back meanwhile,
 * so nothing in it is left. Trays that were given back can be read; in the hardened library they
 * cannot, so there suspects are judged at once, before any tray is sealed.
 */
#ifndef EBB_MALLOC_SUSPECTS_H
#define EBB_MALLOC_SUSPECTS_H

#include "malloc/tray.h"

#define SUSPECTS_MOST 64u /* of more trays, a random choice */

struct suspect {
    const struct tray *tray;
    uint64_t seal;
};

/* A heap's; used by its thread alone. */
struct suspects {
    struct suspect list[SUSPECTS_MOST];
    unsigned seen;
};

/* Adds a tray that has just been sealed; it may be gone already. */
void suspects_add(struct suspects *suspects, const struct tray *tray, uint64_t seal);

/* Notes the keys of all that is still alive in them, once each, and drops them. */
void suspects_judge(struct suspects *suspects);

/* The same at once, for trays that are to be sealed, linked by next. */
void suspects_convict(const struct tray *trays);

#endif
