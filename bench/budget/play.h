// SPDX-License-Identifier: Apache-2.0
/* play.h - a script carried out with steps of ebb, once, contents left out. */
#ifndef EBB_BENCH_BUDGET_PLAY_H
#define EBB_BENCH_BUDGET_PLAY_H

#include <ebb/step.h>

#include "../churn/script.h"

/* Where a script is played. */
struct stage {
    ebb_site *const *sites; /* by kind */

    /* After each step of a kind, in the order in which they end: the bytes and the count of its own
     * allocations, as the script has them; what regions in it allocate is theirs. */
    void (*on_end)(void *context, uint32_t kind, const struct ebb_churn_budget *asked);
    void *context;
};

/*
 * Each region of the script is a step of the site of its kind, child of the one around it; what
 * belongs to none lies in a root. False if ebb or this program has no memory: ebb_last_error_text()
 * or errno tells.
 */
bool play(const struct script *script, const struct stage *stage);

#endif
