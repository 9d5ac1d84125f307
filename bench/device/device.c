// SPDX-License-Identifier: Apache-2.0
/*
 * device.c - memory of a GPU by steps: ebb, the driver, its pool, and torch where it is linked.
 *
 * Blocks of 512 bytes to 4 MiB, of thirteen sizes a doubling apart and what lies between. `held`:
 * all live to the end of the step, as what a forward pass keeps; `window`: each is given back when
 * eight newer ones are there. Allocators take turns, step by step; a row is the median over the
 * steps, after some that do not count: device TAB case TAB allocator TAB ns_per_block TAB value. A
 * block costs what it takes to get it and to give it back. Exit codes: 0; 1 without a GPU, or if
 * the rows were lost.
 */
#include "peer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "said.h"

enum { BLOCKS = 500, WINDOW = 8, WARM = 20, STEPS = 201, MOST_PEERS = 5 };

static size_t sizes[BLOCKS];
static double spent[MOST_PEERS][STEPS];

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void choose_sizes(void) {
    uint64_t chance = 1;
    for (size_t i = 0; i < BLOCKS; i++) {
        chance = (chance * 1103515245 + 12345) % ((uint64_t)1 << 31);
        size_t most = (size_t)1024 << (chance >> 8) % 13;
        sizes[i] = most / 2 + (chance >> 3) % (most / 2);
    }
}

static double step_of(const struct peer *peer, size_t window) {
    void *blocks[BLOCKS];
    double began = now_ns();
    peer->begin_step();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = peer->take(sizes[i]);
        if (!blocks[i]) {
            fprintf(stderr, "ebb-device: %s has no block of %zu bytes\n", peer->name, sizes[i]);
            exit(1);
        }
        if (i >= window)
            peer->give_back(blocks[i - window]);
    }
    for (size_t i = BLOCKS > window ? BLOCKS - window : 0; i < BLOCKS && !peer->ends_all; i++)
        peer->give_back(blocks[i]);
    peer->end_step();
    return (now_ns() - began) / BLOCKS;
}

static int compare(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static void run(const struct peer *const *peers, size_t count, const char *name, size_t window) {
    for (int step = -WARM; step < STEPS; step++)
        for (size_t i = 0; i < count; i++) {
            double each = step_of(peers[i], window);
            if (step >= 0)
                spent[i][step] = each;
        }
    for (size_t i = 0; i < count; i++) {
        qsort(spent[i], STEPS, sizeof **spent, compare);
        printf("device\t%s\t%s\tns_per_block\t%.1f\n", name, peers[i]->name, spent[i][STEPS / 2]);
    }
}

int main(void) {
    const struct peer *const all[] = {
        &peer_ebb, &peer_planned, &peer_driver, &peer_driver_pool,
#ifdef HAS_TORCH
        &peer_torch,
#endif
    };
    const struct peer *peers[MOST_PEERS];
    size_t count = 0;
    said_begin();
    choose_sizes();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->start())
            peers[count++] = all[i];
    if (!count) {
        fprintf(stderr, "ebb-device: no GPU\n");
        return 1;
    }
    run(peers, count, "held", BLOCKS);
    run(peers, count, "window", WINDOW);
    return said_end(0, 1, "ebb-device");
}
