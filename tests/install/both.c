// SPDX-License-Identifier: Apache-2.0
// A program with libebb.a inside, and a library (shared.c) that has libebb.so: each keeps its own.
#include <ebb/ebb.h>
#include <stdio.h>

int library_uses_ebb(void);

int main(void) {
    ebb_region region = ebb_region_open(NULL);
    if (!ebb_region_alloc(region, 100000, 64) || library_uses_ebb() != 0)
        return 1;
    printf("ebb %s\n", ebb_version());
    return ebb_region_close(region);
}
