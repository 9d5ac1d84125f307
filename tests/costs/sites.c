// SPDX-License-Identifier: Apache-2.0
/*
 * sites.c - thousands of sites of scopes, for test_costs.py: each is made, has one scope, and ends,
 * the oldest first. Called `own`, each by a name of its own, or `one`, all by the same. `turns`: so
 * they are, and one in the midst of them ends and another begins, as often as there are.
 */
#include "malloc/scoped.h"

#include <stdio.h>

#define COUNTED static __attribute__((noinline))

COUNTED void counted_make(ebb_site **sites, const char *format, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, format, i);
        sites[i] = SITE(.name = name);
        assert_non_null(sites[i]);
        finish(begin(sites[i]));
    }
}

COUNTED void counted_end(ebb_site *const *sites, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(ebb_site_destroy(sites[i]), 0);
}

/* One after the other, wherever it is among them. */
COUNTED void counted_turns(ebb_site **sites, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        ebb_site **site = &sites[(i * 7919 + count / 2) % count];
        assert_int_equal(ebb_site_destroy(*site), 0);
        *site = SITE(.name = "one");
        finish(begin(*site));
    }
}

int main(int argc, char **argv) {
    unsigned count = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    const char *format = count && !strcmp(argv[1], "own_sites")  ? "site %u"
                         : count && !strcmp(argv[1], "one_site") ? "one"
                         : count && !strcmp(argv[1], "turns")    ? "one"
                                                                 : NULL;
    ebb_site **sites = calloc(count, sizeof *sites);
    if (!format || !sites) {
        fputs("usage: sites own_sites|one_site|turns COUNT\n", stderr);
        return 2;
    }
    scope_serve();
    counted_make(sites, format, count);
    if (!strcmp(argv[1], "turns"))
        counted_turns(sites, count);
    counted_end(sites, count);
    free(sites);
    return 0;
}
