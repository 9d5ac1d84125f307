// SPDX-License-Identifier: Apache-2.0
/* budget.h - what a step cost, beside the budget of its site. */
#ifndef EBB_STEP_BUDGET_H
#define EBB_STEP_BUDGET_H

#include <ebb/step.h>

/* A step that passed its budget; `told.site` is NULL where it did not. Not copied: it has text. */
struct excess {
    struct ebb_churn_excess told;
    void (*on_excess)(void *context, const struct ebb_churn_excess *excess);
    void *context;
    char text[320];
    char site[32];
};

/* There is a bound. */
bool budget_is_set(const struct ebb_churn_budget *budget);

/* Compares; true if a bound was passed. */
bool excess_find(struct excess *excess, const struct ebb_site_options *options, uint64_t step,
                 const struct ebb_churn_budget *spent);

/* Tells the program, if it wants to hear. No lock held. */
void excess_tell(const struct excess *excess);

#endif
