// SPDX-License-Identifier: Apache-2.0
/*
 * watch_footprint.c - pages against bytes alive; account.c does the work.
 *
 * Blocks are not touched: where a heap places them does not depend on their contents.
 */
#include "watch.h"

static bool make(struct run *run) {
    run->replay.account = &run->account;
    return account_make(&run->account, run->script, run->passes, run->until);
}

static void on_step(struct replay *replay, uint32_t step) {
    (void)replay;
    (void)step;
}

static void report(struct run *run) {
    account_report(&run->account, run->limit_percent);
}

const struct watch watch_footprint = {"footprint", REPLAY_ACCOUNT, make, on_step, on_step, report};
