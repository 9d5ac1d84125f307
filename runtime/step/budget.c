// SPDX-License-Identifier: Apache-2.0
/*
 * budget.c - compares what a step cost with the budget of its site, and says so in one sentence.
 *
 * Invariant: the sentence names each bound that was passed, with both numbers, and no other. What
 * is told was copied: the site may be gone when the program hears of it.
 */
#include "step/budget.h"

#include "base/name.h"

#include <stdio.h>

struct bound {
    const char *what;
    uint64_t spent, budget;
};

static bool is_passed(const struct bound *bound) {
    return bound->budget && bound->spent > bound->budget;
}

bool budget_is_set(const struct ebb_churn_budget *budget) {
    return budget->bytes || budget->allocations || budget->promoted_bytes ||
           budget->reserved_bytes;
}

/* The sentence's beginning, which is only written where there is something to say; its length. A
 * line can show it, whatever the site is called. */
static size_t begin(struct excess *excess, const char *name, uint64_t step) {
    char plain[sizeof excess->site];
    snprintf(excess->site, sizeof excess->site, "%s", name);
    snprintf(plain, sizeof plain, "%s", excess->site);
    name_make_plain(plain);
    return (size_t)snprintf(excess->text, sizeof excess->text, "step %llu of '%s': ",
                            (unsigned long long)step, plain);
}

/* Appends to the sentence; what is too long is cut. */
static size_t add_clause(struct excess *excess, size_t length, const struct bound *bound,
                         const char *before) {
    size_t left = sizeof excess->text - length;
    int more = snprintf(excess->text + length, left, "%s%llu %s over %llu", before,
                        (unsigned long long)bound->spent, bound->what,
                        (unsigned long long)bound->budget);
    return more < 0 || (size_t)more >= left ? sizeof excess->text - 1 : length + (size_t)more;
}

bool excess_find(struct excess *excess, const struct ebb_site_options *options, uint64_t step,
                 const struct ebb_churn_budget *spent) {
    const struct ebb_churn_budget *budget = &options->budget;
    excess->told.site = NULL;
    if (!budget_is_set(budget))
        return false;
    const struct bound bounds[] = {
        {"bytes", spent->bytes, budget->bytes},
        {"allocations", spent->allocations, budget->allocations},
        {"promoted bytes", spent->promoted_bytes, budget->promoted_bytes},
        {"reserved bytes", spent->reserved_bytes, budget->reserved_bytes},
    };
    unsigned passed = 0;
    size_t length = 0;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (!is_passed(&bounds[i]))
            continue;
        if (!passed)
            length = begin(excess, options->name, step);
        length = add_clause(excess, length, &bounds[i], passed++ ? ", " : "");
    }
    if (!passed)
        return false;
    excess->told =
        (struct ebb_churn_excess){excess->site, step, *spent, *budget, excess->text};
    excess->on_excess = options->on_excess;
    excess->context = options->context;
    return true;
}

void excess_tell(const struct excess *excess) {
    if (excess->told.site && excess->on_excess)
        excess->on_excess(excess->context, &excess->told);
}
