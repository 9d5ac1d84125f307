// SPDX-License-Identifier: Apache-2.0
/*
 * passed_on.c - what one thread's scopes leave behind is freed by another one when they end, while
 * a third begins and ends scopes, which may want the same memory.
 *
 * Run preloaded with libebb-malloc, plain and hardened, and once without it.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <pthread.h>
#include <stdatomic.h>

enum { PLACES = 1024, BLOCKS = 600, ROUNDS = 600 };

static _Atomic(void *) places[PLACES];
static atomic_bool over;

static size_t bytes_of(unsigned number) {
    return 3000 + number * 64 % 3000;
}

static ebb_step begin(ebb_site *site) {
    ebb_step step = ebb_step_begin(site, 0);
    EXPECT(ebb_region_is_open(step.region));
    return step;
}

static void *free_all(void *context) {
    unsigned taken = 0;
    for (bool is_last = false; !is_last;) {
        is_last = atomic_load(&over);
        for (unsigned i = 0; i < PLACES; i++) {
            unsigned char *block = atomic_exchange(&places[i], NULL);
            EXPECT(!block || (block[0] == i % 251 && block[2999] == i % 251));
            free(block);
            taken += block != NULL;
        }
    }
    *(unsigned *)context = taken;
    return NULL;
}

static void *take_turns(void *context) {
    while (!atomic_load(&over)) {
        ebb_step step = begin(context);
        void *block = malloc(32);
        EXPECT(block);
        free(block);
        EXPECT(ebb_step_end(step) == 0);
    }
    return NULL;
}

static void what_scopes_leave_goes_as_they_end(void) {
    static unsigned taken, given;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "passed on", .scope = true));
    pthread_t threads[2];
    EXPECT(pthread_create(&threads[0], NULL, free_all, &taken) == 0);
    EXPECT(pthread_create(&threads[1], NULL, take_turns, site) == 0);
    for (unsigned round = 0; act_goes_on(round, ROUNDS); round++) {
        ebb_step step = begin(site);
        for (unsigned i = 0; i < BLOCKS; i++, given++) {
            unsigned place = given % PLACES;
            void *none = NULL, *block = malloc(bytes_of(i));
            EXPECT(block);
            memset(block, (int)(place % 251), 3000);
            while (!atomic_compare_exchange_weak(&places[place], &none, block))
                none = NULL;
        }
        EXPECT(ebb_step_end(step) == 0);
    }
    atomic_store(&over, true);
    EXPECT(pthread_join(threads[0], NULL) == 0);
    EXPECT(pthread_join(threads[1], NULL) == 0);
    EXPECT(taken == given);
    EXPECT(ebb_site_destroy(site) == 0);
}

int main(void) {
    static const struct act acts[] = {
        ACT(what_scopes_leave_goes_as_they_end),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
