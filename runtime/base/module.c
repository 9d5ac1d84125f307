// SPDX-License-Identifier: Apache-2.0
/*
 * module.c - keeps shared objects loaded (see module.h).
 *
 * _DYNAMIC is the dynamic section of the program or library that this file is linked into. A static
 * program has none.
 *
 * dlopen() is looked up at run time: the linker warns of every static program that calls it, and
 * none could use it.
 */
#include "base/module.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#pragma weak _DYNAMIC

/* A program's section has an entry for debuggers; a library's may have the flag "nodelete". */
static bool stays_anyway(const ElfW(Dyn) *section) {
    if (!section)
        return true;
    for (const ElfW(Dyn) *at = section; at->d_tag != DT_NULL; at++)
        if (at->d_tag == DT_DEBUG ||
            (at->d_tag == DT_FLAGS_1 && (at->d_un.d_val & DF_1_NODELETE)))
            return true;
    return false;
}

typedef void *opens(const char *name, int how);

void *module_open(const char *name, int how) {
    opens *open = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "dlopen");
    memcpy(&open, &symbol, sizeof open);
    return open ? open(name, how) : NULL;
}

void module_keep(const void *address) {
    Dl_info info;
    struct link_map *module = NULL;
    if (dladdr1(address, &info, (void **)&module, RTLD_DL_LINKMAP) && module &&
        !stays_anyway(module->l_ld))
        (void)module_open(module->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

void module_keep_own(void) {
    if (!stays_anyway(_DYNAMIC))
        module_keep(_DYNAMIC);
}
