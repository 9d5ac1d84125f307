// SPDX-License-Identifier: Apache-2.0
#include <ebb/ebb.h>
#include <stdio.h>

int main(void) {
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step"));
    char *text = ebb_region_alloc(step, 64, 16);
    if (!text)
        return 1;
    snprintf(text, 64, "ebb %s", ebb_version());
    puts(text);
    return ebb_region_close(step);
}
