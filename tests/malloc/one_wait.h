// SPDX-License-Identifier: Apache-2.0
/* one_wait.h - what a program of turns waits for, from one place, and what tells of its turns. */
#ifndef EBB_TESTS_MALLOC_ONE_WAIT_H
#define EBB_TESTS_MALLOC_ONE_WAIT_H

#include "malloc/blocks.h"

#include <ebb/ebb.h>

#include <poll.h>
#include <stdbool.h>

static bool has_turns;
static int always[2]; /* a pipe with a byte in it, which nobody takes */

static uint64_t opened_regions(void) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    EXPECT(ebb_process_read_stats(&stats) == 0);
    return stats.opened_regions;
}

static __attribute__((noinline)) int wait_once(int timeout) {
    struct pollfd one = {.fd = always[0], .events = POLLIN};
    return poll(&one, 1, timeout);
}

#endif
