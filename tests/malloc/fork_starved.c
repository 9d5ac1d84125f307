// SPDX-License-Identifier: Apache-2.0
/*
 * fork_starved.c - as fork_locks.c, where sites find no memory, with their locks held.
 */
#include <stdbool.h>

#include "malloc/locks.h"

#include "base/os.h"
#include "malloc/front.h"
#include "malloc/heap.h"

#include <ebb/ebb.h>

#define STEPS 1000u
#define SITE(text) ebb_site_create(EBB_SITE_OPTIONS(.name = text, .scope = true, .ring = 64))

static bool allow_no_pieces(enum os_acquisition what) {
    return what != OS_PIECES && what != OS_RUN;
}

/* Steps begin until there is no memory for another lane. */
static void starve(ebb_site *site) {
    static ebb_step steps[STEPS];
    bool (*allow)(enum os_acquisition) = os.allow;
    unsigned count = 0;
    steps[count++] = ebb_step_begin(site, 0);
    EXPECT(steps[0].lane);
    front_free(front_alloc(100, NULL));
    front_free(front_alloc(70000, NULL));
    os.allow = allow_no_pieces;
    while (count < STEPS && (steps[count] = ebb_step_begin(site, 0)).lane)
        count++;
    os.allow = allow;
    EXPECT(count < STEPS && ebb_last_error() == EBB_E_MEMORY);
    while (count--)
        EXPECT(ebb_step_end(steps[count]) == 0);
}

int main(void) {
    scope_serve();
    ebb_site *known = SITE("known"), *site = SITE("new");
    EXPECT(ebb_step_end(ebb_step_begin(known, 0)) == 0);
    starve(known);
    notes = &at_work; /* what is made once is made */
    starve(site);
    return judge_fork();
}
