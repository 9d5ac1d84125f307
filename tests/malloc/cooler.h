// SPDX-License-Identifier: Apache-2.0
/* cooler.h - a thread that looks all the time for pages that may go, whatever others do. */
#ifndef MALLOC_COOLER_H
#define MALLOC_COOLER_H

#include "malloc/heap.h"

#include <stdatomic.h>
#include <unistd.h>

/* Until the atomic_bool `over` is set. */
static void *cool_all_the_time(void *over) {
    struct heap_cooling cooling = {.limit_ns = 100000};
    while (!atomic_load((atomic_bool *)over)) {
        (void)heap_cool(&cooling);
        usleep(20);
    }
    return NULL;
}

#endif
