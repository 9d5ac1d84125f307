// SPDX-License-Identifier: Apache-2.0
/* promote.c - blocks move to an ancestor while their region stays open: copy, relink, auto. */
#include <ebb/ebb.h>

#include <stdlib.h>

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static struct ebb_survivor promote(ebb_region from, ebb_region to, size_t bytes, int mode) {
    struct ebb_survivor one = {.block = ebb_region_alloc(from, bytes, 64), .mode = mode};
    need(one.block != NULL);
    *(char *)one.block = 7;
    need(ebb_promote(from, to, &one, 1, NULL) == 0 && *(char *)one.block == 7);
    return one;
}

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = run));

    /* Auto copies what is small and relinks what is large. */
    struct ebb_survivor small = promote(step, run, 100, EBB_PROMOTE_AUTO);
    struct ebb_survivor large = promote(step, run, (size_t)1 << 20, EBB_PROMOTE_AUTO);
    need(small.mode == EBB_PROMOTE_COPY && large.mode == EBB_PROMOTE_RELINK);

    /* A copy leaves the original valid; a relinked block belongs to the target at once. */
    void *original = ebb_region_alloc(step, 5000, 64);
    struct ebb_survivor copy = {.block = original, .mode = EBB_PROMOTE_COPY};
    need(original && ebb_promote(step, run, &copy, 1, NULL) == 0 && copy.block != original);
    need(ebb_region_release(step, original) == 0);
    need(ebb_region_release(run, copy.block) == 0);

    /* What is promoted already stays where it is. */
    struct ebb_survivor again = {.block = large.block};
    struct ebb_promoted cost = {0};
    need(ebb_promote(step, run, &again, 1, &cost) == 0 && again.block == large.block);
    need(cost.copied_blocks == 0 && cost.relinked_blocks == 0);

    /* A list is promoted as a whole or not at all. */
    struct ebb_survivor twice[] = {{.block = ebb_region_alloc(step, 100, 16)},
                                   {.block = &cost}}; /* no block of ebb's */
    need(ebb_promote(step, run, twice, 2, &cost) == EBB_E_FOREIGN && cost.copied_blocks == 0);

    need(ebb_region_close(step) == 0);
    need(*(char *)small.block == 7 && *(char *)large.block == 7); /* they live in `run` */
    return ebb_region_close(run);
}
