// SPDX-License-Identifier: Apache-2.0
/*
 * suspects.h - small blocks that were alive when their scope ended: are they leaks?
 *
 * Much of what a scope leaves behind goes a moment later: what its caller still has in variables,
 * an answer that is on its way. So who allocates it is noted as a leak (leaks.h) only if it is
 * still alive when the thread's next scope has ended.
 *
 * A suspect is told by its tray's seal, which has another number each time. Its tray may be gone,
 * and be another one by then: such memory can be read, and what stands there is believed to be
 * nobody's. Hardened trays cannot, so there judgement is not put off.
 */
#ifndef EBB_MALLOC_SUSPECTS_H
#define EBB_MALLOC_SUSPECTS_H

#include "malloc/tray.h"

#define SUSPECTS_MOST 64u
#define SUSPECTS_OF_A_KEY 4u /* some may go and others stay */

struct suspect {
    const struct tray_head *head;
    uint64_t seal;
    uint16_t key;
};

/* Of a heap, and its thread's alone. */
struct suspects {
    struct suspect list[SUSPECTS_MOST];
    unsigned count;
};

/* What is alive in a tray that is about to be sealed, as far as there is room. */
void suspects_add(struct suspects *suspects, struct tray *tray);

/* Notes the keys of those that are still alive, once each, and drops all. */
void suspects_judge(struct suspects *suspects);

#endif
