// SPDX-License-Identifier: Apache-2.0
/*
 * module.h - shared objects that stay: what is called back, or looked at, lies in one that a
 * dlclose() would take away. The program itself stays anyway, and so does libebb.so, which is
 * linked to; libebb.a may be in a plugin. Any thread, with nothing locked: a constructor that waits
 * for this thread may hold the lock of the dynamic linker. Cannot fail so that it matters.
 */
#ifndef EBB_BASE_MODULE_H
#define EBB_BASE_MODULE_H

/* dlopen(); a wholly static program has none, so that it fails, and dlerror() says so. */
void *module_open(const char *name, int how);

/* The one that ebb's code is in. Asks the dynamic linker only if that is needed. */
void module_keep_own(void);

/* The one that holds this address; none if none does, as on the heap. */
void module_keep(const void *address);

#endif
