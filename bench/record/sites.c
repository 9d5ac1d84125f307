// SPDX-License-Identifier: Apache-2.0
/*
 * sites.c - numbers for the places that allocate.
 *
 * The table lies in the spool itself: a place's number is its slot, found by hashing the return
 * address. Invariant: a slot is claimed once, by compare and swap, and never changes; the module is
 * filled in afterwards by who claimed it. Where SPOOL_SITE_PROBES slots in a row are taken by
 * others the place is unknown: number 0, which is no slot of any place.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

static void name_module(struct spool_module *module, const struct link_map *map) {
    if (map->l_name && map->l_name[0]) {
        strncpy(module->path, map->l_name, SPOOL_MODULE_PATH - 1);
    } else {
        int kept = errno;
        ssize_t length = readlink("/proc/self/exe", module->path, SPOOL_MODULE_PATH - 1);
        (void)length; /* without it, as in a root of its own, the program has no name */
        errno = kept;
    }
}

/* The module of an address. Two threads that meet a new one at once may enter it twice. */
static uint32_t module_of(uint64_t address) {
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)address, &found) != 0)
        return 0;
    uint64_t base = (uint64_t)found.dlfo_link_map->l_addr + 1; /* 0: not filled in */
    uint32_t count = atomic_load(&spool->module_count);
    for (uint32_t i = 1; i < count && i < SPOOL_MODULES; i++)
        if (atomic_load(&spool->module[i].base) == base)
            return i;
    uint32_t number = atomic_fetch_add(&spool->module_count, 1);
    if (number >= SPOOL_MODULES)
        return 0;
    name_module(&spool->module[number], found.dlfo_link_map);
    atomic_store(&spool->module[number].base, base);
    return number;
}

static bool claim(struct spool_site *site, uint64_t caller) {
    uint64_t taken = 0;
    if (!atomic_compare_exchange_strong(&site->caller, &taken, caller))
        return taken == caller;
    atomic_store(&site->module, module_of(caller));
    return true;
}

uint32_t site_of(uint64_t caller) {
    uint32_t at = (uint32_t)((caller * UINT64_C(0x9e3779b97f4a7c15)) >> 49);
    for (uint32_t probe = 0; probe < SPOOL_SITE_PROBES; probe++) {
        uint32_t slot = (at + probe) & (SPOOL_SITES - 1);
        struct spool_site *site = &spool->site[slot];
        uint64_t there = atomic_load_explicit(&site->caller, memory_order_relaxed);
        if (slot == 0)
            continue;
        if (there == caller || (there == 0 && claim(site, caller)))
            return slot;
    }
    return 0;
}
