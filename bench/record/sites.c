// SPDX-License-Identifier: Apache-2.0
/*
 * sites.c - numbers for the places that allocate.
 *
 * The table lies in the spool itself: a place's number is its slot, found by hashing the return
 * address. Invariant: a slot is claimed once, by compare and swap on its key, and never changes in
 * the spool; the module is filled in afterwards by who claimed it. Where SPOOL_SITE_PROBES slots in
 * a row are taken by others the place is unknown: number 0, which is no slot of any place.
 *
 * Where a library was unloaded another may come, whose places have the same addresses. Before the
 * linker maps a library it allocates what it keeps of it. So at each allocation of the linker's the
 * modules that have gone are looked for, and the keys of their places are changed, which are found
 * again only where the same file comes back; all other allocations pay nothing for that. Nothing
 * here takes a lock.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

/* Of a slot: 0, it is free; or the address of the place, with a mark where the fast path is not to
 * find it. */
static _Atomic uint64_t key[SPOOL_SITES];
static const uint64_t of_linker = UINT64_C(1) << 63, of_gone = UINT64_C(1) << 62;

/* By number of a module: a place in it, by which it is asked for. 0: not yet, or it has gone. */
static _Atomic uint64_t within[SPOOL_MODULES];

/* ---- names */

/* A path of /proc/self/maps: it stands last in a line. */
static void take_path(struct spool_module *module, const char *line, uint64_t address) {
    char *end;
    uint64_t begin = strtoull(line, &end, 16);
    if (*end != '-' || address < begin || address >= strtoull(end + 1, NULL, 16))
        return;
    const char *path = strchr(line, '/');
    if (path)
        strncpy(module->path, path, SPOOL_MODULE_PATH - 1);
}

/* As the system knows the file that is mapped there. Files are opened and closed, where a thread
 * that was cancelled must not end. Without /proc it has no name. */
static void name_by_map(struct spool_module *module, uint64_t address) {
    char block[1024], line[SPOOL_MODULE_PATH + 100];
    size_t length = 0;
    int cancels;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t got;
    while (file >= 0 && !module->path[0] && (got = read(file, block, sizeof block)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            bool ends = block[i] == '\n';
            if (ends || length < sizeof line - 1)
                line[length++] = ends ? '\0' : block[i];
            if (ends) {
                take_path(module, line, address);
                length = 0;
            }
        }
    if (file >= 0)
        close(file);
    pthread_setcancelstate(cancels, NULL);
}

/* The linker keeps names as they were asked for: one that is not absolute is of the folder that the
 * program was in then. */
static void name_module(struct spool_module *module, const struct link_map *map,
                        uint64_t address) {
    int kept = errno;
    if (map->l_name && map->l_name[0] == '/') {
        strncpy(module->path, map->l_name, SPOOL_MODULE_PATH - 1);
    } else if (map->l_name && map->l_name[0]) {
        name_by_map(module, address);
    } else {
        ssize_t length = readlink("/proc/self/exe", module->path, SPOOL_MODULE_PATH - 1);
        (void)length; /* without it, as in a root of its own, the program has no name */
    }
    errno = kept;
}

/* ---- modules */

static const struct link_map *map_of(uint64_t address) {
    struct dl_find_object found;
    return _dl_find_object((void *)(uintptr_t)address, &found) == 0 ? found.dlfo_link_map : NULL;
}

/* One that is there, or one that has gone and had this name. 0: there is none. */
static uint32_t find_module(uint64_t base, const char *gone) {
    uint32_t count = atomic_load(&spool->module_count);
    for (uint32_t i = 1; i < count && i < SPOOL_MODULES; i++)
        if (atomic_load(&spool->module[i].base) == base &&
            (gone ? !within[i] && strcmp(spool->module[i].path, gone) == 0 : within[i] != 0))
            return i;
    return 0;
}

static uint32_t add_module(uint64_t base, const struct link_map *map, uint64_t address) {
    struct spool_module module = {.path = ""};
    name_module(&module, map, address);
    uint32_t number = find_module(base, module.path);
    if (!number) {
        number = atomic_fetch_add(&spool->module_count, 1);
        if (number >= SPOOL_MODULES)
            return 0;
        strcpy(spool->module[number].path, module.path);
    }
    within[number] = address;
    atomic_store(&spool->module[number].base, base);
    return number;
}

/* The module of an address. Two threads that meet a new one at once may enter it twice. */
static uint32_t module_of(uint64_t address) {
    const struct link_map *map = map_of(address);
    uint64_t base = map ? (uint64_t)map->l_addr + 1 : 0; /* 0: not filled in */
    uint32_t number = map ? find_module(base, NULL) : 0;
    return number || !map ? number : add_module(base, map, address);
}

static void forget_places(uint32_t module) {
    for (uint32_t slot = 1; slot < SPOOL_SITES; slot++)
        if (atomic_load(&spool->site[slot].module) == module)
            key[slot] |= of_gone;
}

static void forget_modules_gone(void) {
    uint32_t count = atomic_load(&spool->module_count);
    for (uint32_t i = 1; i < count && i < SPOOL_MODULES; i++)
        if (within[i] && !map_of(within[i])) {
            within[i] = 0;
            forget_places(i);
        }
}

static bool is_linkers(uint64_t address) {
    const struct link_map *linker = map_of(_r_debug.r_ldbase);
    return linker && map_of(address) == linker;
}

/* ---- places */

static uint32_t slot_of(uint64_t caller, uint32_t probe) {
    uint32_t at = (uint32_t)((caller * UINT64_C(0x9e3779b97f4a7c15)) >> 49);
    return (at + probe) & (SPOOL_SITES - 1);
}

/* In a slot that is free, or had this place before it was gone. */
static bool claim(uint32_t slot, uint64_t own, uint64_t caller) {
    uint64_t there = key[slot];
    if (there == 0 && atomic_compare_exchange_strong(&key[slot], &there, own)) {
        atomic_store(&spool->site[slot].caller, caller);
        atomic_store(&spool->site[slot].module, module_of(caller));
    } else if (there == (own | of_gone) && spool->site[slot].module == module_of(caller)) {
        key[slot] = there = own; /* it is back */
    }
    return there == 0 || there == own;
}

static __attribute__((noinline)) uint32_t enter_site(uint64_t caller) {
    bool linkers = is_linkers(caller);
    if (linkers)
        forget_modules_gone();
    for (uint32_t probe = 0; probe < SPOOL_SITE_PROBES; probe++) {
        uint32_t slot = slot_of(caller, probe);
        if (slot && claim(slot, caller | (linkers ? of_linker : 0), caller))
            return slot;
    }
    return 0;
}

uint32_t site_of(uint64_t caller) {
    for (uint32_t probe = 0; probe < SPOOL_SITE_PROBES; probe++) {
        uint32_t slot = slot_of(caller, probe);
        uint64_t there = atomic_load_explicit(&key[slot], memory_order_relaxed);
        if (there == caller)
            return slot;
        if (there == 0 && slot)
            break;
    }
    return enter_site(caller);
}
