// SPDX-License-Identifier: Apache-2.0
/* figures.h - plans the instances of one argument and prints what came out. */
#ifndef EBB_BENCH_PLAN_FIGURES_H
#define EBB_BENCH_PLAN_FIGURES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "instance.h"
#include "options.h"

/* Of one instance, or of the one with most buffers where there are several. */
struct figures {
    uint32_t steps;             /* instances */
    uint32_t buffers;
    struct packing_result result;
    double plan_us, sweep_us;   /* processor time, the best of a few runs */
    double median, worst;       /* of all: height over max-live */
    uint64_t highest, room;     /* the highest plan; its capacity, 0 if there is none */
};

/*
 * Plans each instance and proves the plan. False, with a message, where the planner refuses or its
 * plan is none.
 */
bool figures_measure(struct figures *figures, const struct instances *instances,
                     const struct options *options, const char *name);

void figures_print_head(void);
void figures_print(const struct figures *figures, const char *name);
void figures_write_rows(FILE *out, const struct figures *figures, const char *name);

#endif
