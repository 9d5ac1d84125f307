// SPDX-License-Identifier: Apache-2.0
/* mistakes.c - what a caller can do wrong has a name and changes nothing. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

static void need(bool holds) {
    if (!holds)
        exit(1);
}

int main(void) {
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "step"));
    ebb_region other = ebb_region_open(EBB_REGION_OPTIONS(.name = "other"));
    char *small = ebb_region_alloc(region, 100, 16), *next = ebb_region_alloc(region, 100, 16);
    char *large = ebb_region_alloc(region, 100000, 64);
    int local = 0;
    need(small && next && large);

    need(ebb_region_alloc(region, 100, 3) == NULL && ebb_last_error() == EBB_E_ALIGNMENT);
    need(ebb_region_alloc(region, SIZE_MAX, 64) == NULL && ebb_last_error() == EBB_E_SIZE);
    need(ebb_region_alloc_array(region, SIZE_MAX / 2, 3, 64) == NULL);
    need(ebb_region_release(other, large) == EBB_E_FOREIGN); /* of another region */
    need(ebb_region_release(region, &local) == EBB_E_FOREIGN);
    need(ebb_region_release(region, large + 64) == EBB_E_INTERIOR);
    need(ebb_region_release(region, small + 16) == EBB_E_INTERIOR);
    need(ebb_region_release(region, small) == 0);
    need(ebb_region_release(region, small) == EBB_E_RELEASED); /* twice */
    need(ebb_region_resize(region, next, 1 << 20) == EBB_E_NO_ROOM);
    need(strcmp(ebb_error_name(ebb_last_error()), "EBB_E_NO_ROOM") == 0);
    need(strstr(ebb_last_error_text(), "1048576") != NULL); /* one sentence, with numbers */

    /* Nothing of all that did anything: two blocks are alive, as before. */
    struct ebb_region_stats stats = {.size = sizeof stats};
    need(ebb_region_read_stats(region, &stats) == 0 && stats.blocks.current == 2);

    /* A handle knows that its region is closed, whatever was opened since. */
    need(ebb_region_close(region) == 0);
    ebb_region newer = ebb_region_open(NULL);
    need(ebb_region_alloc(region, 100, 16) == NULL && ebb_last_error() == EBB_E_STALE);
    need(ebb_region_close(region) == EBB_E_STALE && ebb_region_is_open(newer));
    return ebb_region_close(newer) || ebb_region_close(other);
}
