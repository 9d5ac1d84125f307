// SPDX-License-Identifier: Apache-2.0
// A program with names that ebb's own files have, too: they are the program's.
#include <ebb/ebb.h>
#include <stdio.h>

int os = 3, range = 4, learnt = 5, kind_host = 6;

int pool_take(int);
int pool_take(int a) {
    return a + os;
}

void order_sort(void *);
void order_sort(void *a) {
    (void)a;
    puts("the program's");
}

/* Enough for ebb to plan, where it sorts. */
static int learn(void) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "learn"));
    for (int i = 0; i < 8; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (int k = 1; k < 50; k++)
            if (!ebb_region_alloc(step.region, (size_t)k * 1000, 64))
                return 1;
        if (ebb_step_end(step) != 0)
            return 1;
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    if (ebb_site_read_stats(site, &stats) != 0 || stats.planned_steps == 0)
        return 1;
    return ebb_site_destroy(site);
}

int main(void) {
    if (learn() != 0 || pool_take(range) != 7 || learnt + kind_host != 11)
        return 1;
    printf("ebb %s\n", ebb_version());
    return 0;
}
