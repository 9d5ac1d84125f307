// SPDX-License-Identifier: Apache-2.0
/* fault.c - see fault.h. One thread. */
#include "failure/fault.h"
#include "base/os.h"

#include <errno.h>

static struct os_table real;
static unsigned first, asked, refused;
static bool for_ever;
static unsigned *counts_of_kinds;

static bool refuses(unsigned kind) {
    bool refuse = ++asked == first || (for_ever && asked > first);
    refused += refuse;
    if (refuse && counts_of_kinds)
        counts_of_kinds[kind]++;
    return refuse;
}

static bool allow(enum os_acquisition what) {
    return !refuses(what) && real.allow(what);
}

static void *reserve(size_t bytes) {
    return refuses(FAULT_RESERVE) ? NULL : real.reserve(bytes);
}

static int open_pages(void *addr, size_t bytes) {
    return refuses(FAULT_OPEN) ? ENOMEM : real.open(addr, bytes);
}

static int give_back(void *addr, size_t bytes) {
    return refuses(FAULT_GIVE_BACK) ? -1 : real.give_back(addr, bytes);
}

static int close_pages(void *addr, size_t bytes) {
    return refuses(FAULT_CLOSE) ? ENOMEM : real.close(addr, bytes);
}

void fault_arm(unsigned nth, bool forever) {
    if (!real.allow)
        real = os;
    first = nth;
    for_ever = forever;
    asked = refused = 0;
    os.allow = allow;
    os.reserve = reserve;
    os.open = open_pages;
    os.give_back = give_back;
    os.close = close_pages;
}

unsigned fault_disarm(void) {
    os = real;
    return refused;
}

void fault_count_into(unsigned *counts) {
    counts_of_kinds = counts;
}
