// SPDX-License-Identifier: Apache-2.0
/*
 * used.c - how much the general heap has (see used.h). Nothing is stopped meanwhile, so numbers of
 * one moment may differ by what was going on; none is below zero.
 */
#include "malloc/used.h"
#include "malloc/general.h"
#include "malloc/guard.h"
#include "malloc/quarantine.h"

#include "base/size.h"

/* None, if there is not so much: what is subtracted was read at another time. */
static size_t less(size_t from, size_t bytes) {
    return from - size_smaller(from, bytes);
}

struct used used_read(void) {
    general_refresh();
    struct quarantine_closed closed = {0, 0};
    if (GUARDED)
        closed = quarantine_read_closed();
    size_t allocated = less(general_read("stats.allocated"), closed.blocks);
    size_t active = less(general_read("stats.active"), closed.pages);
    return (struct used){
        .allocated = allocated,
        .unused = less(active, allocated),
        .resident = less(general_read("stats.resident"), closed.pages),
    };
}
