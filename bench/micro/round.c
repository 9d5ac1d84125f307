// SPDX-License-Identifier: Apache-2.0
/* round.c - see round.h. A round that overflows is a mistake in a case and ends the process. */
#include "round.h"

#include <stdio.h>
#include <stdlib.h>

void round_add(struct round *round, const char *name, double value) {
    struct figure *figure = &round->figures[round->count];

    if (round->count == ROUND_FIGURES_MAX)
        abort();
    snprintf(figure->name, sizeof figure->name, "%s", name);
    figure->value = value;
    round->count++;
}

void round_add_at(struct round *round, const char *prefix, char tag, uint64_t number,
                  double value) {
    char name[ROUND_NAME_MAX];

    snprintf(name, sizeof name, "%s.%c%llu", prefix, tag, (unsigned long long)number);
    round_add(round, name, value);
}
