// SPDX-License-Identifier: Apache-2.0
/*
 * told.c - a program with as many sites as it is told, each with a scope behind it; it says so and
 * waits until its input ends. For test_view.py.
 */
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int sites = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < sites; i++) {
        char name[32];
        snprintf(name, sizeof name, "site-%d", i);
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = name, .scope = true));
        ebb_step step = ebb_step_begin(site, 0);
        free(malloc(100));
        if (ebb_step_end(step) != 0)
            return 1;
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    return 0;
}
