// SPDX-License-Identifier: Apache-2.0
/* cases.h - a program that plays one of its cases, so many times: CASE COUNT. */
#ifndef COSTS_CASES_H
#define COSTS_CASES_H

#include "kit/test.h"

#include <stdio.h>
#include <string.h>

struct costs_case {
    const char *name;
    void (*play)(size_t count);
};

/* What main() returns: 2 if there is no such case. */
static inline int play_case(const struct costs_case *cases, size_t count, int argc, char **argv) {
    for (size_t i = 0; argc == 3 && i < count; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].play(number_in("COUNT", argv[2]));
            return 0;
        }
    fprintf(stderr, "usage: %s CASE COUNT\n", argv[0]);
    return 2;
}

#endif
