// SPDX-License-Identifier: Apache-2.0
/* start.c - what happens when libebb-malloc is loaded. */
#include "malloc/heap.h"
#include "malloc/options.h"
#include "malloc/tender.h"
#include "malloc/waits.h"

static __attribute__((constructor)) void start(void) {
    options_read();
    waits_find();
    heap_watch_forks();
    scope_serve();
    if (*options.stats)
        tender_begin();
}
