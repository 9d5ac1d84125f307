// SPDX-License-Identifier: Apache-2.0
/* play.h - a script carried out with steps of ebb, once, contents left out. */
#ifndef EBB_BENCH_BUDGET_PLAY_H
#define EBB_BENCH_BUDGET_PLAY_H

#include <ebb/step.h>

#include "../churn/script.h"

/*
 * Each region of the script is a step of the site of its kind (`sites`, by kind), child of the one
 * around it; what belongs to none lies in a root. False if ebb or this program has no memory:
 * ebb_last_error_text() or errno tells.
 */
bool play(const struct script *script, ebb_site *const *sites);

#endif
