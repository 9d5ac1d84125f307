// SPDX-License-Identifier: Apache-2.0
/*
 * sites.c - thousands of sites of scopes, for test_costs.py: each is made, has one scope, and ends,
 * the oldest first. Called `own`, each by a name of its own, or `one`, all by the same.
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

int main(int argc, char **argv) {
    unsigned count = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    const char *format = count && !strcmp(argv[1], "own_sites")  ? "site %u"
                         : count && !strcmp(argv[1], "one_site") ? "one"
                                                                 : NULL;
    ebb_site **sites = calloc(count, sizeof *sites);
    if (!format || !sites) {
        fputs("usage: sites own_sites|one_site COUNT\n", stderr);
        return 2;
    }
    scope_serve();
    counted_make(sites, format, count);
    counted_end(sites, count);
    free(sites);
    return 0;
}
