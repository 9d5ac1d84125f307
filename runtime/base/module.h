// SPDX-License-Identifier: Apache-2.0
/*
 * module.h - keeps shared objects loaded whose code is called back, or whose data is read, after a
 * dlclose(). The program itself and libebb.so, which is linked with nodelete, stay loaded anyway;
 * libebb.a may be part of a plugin. Any thread, with no lock held: the dynamic linker's lock may be
 * held by a constructor that waits for this thread. A failure is harmless.
 */
#ifndef EBB_BASE_MODULE_H
#define EBB_BASE_MODULE_H

/* dlopen(), without linking to it; in a static program it fails and dlerror() says why. */
void *module_open(const char *name, int how);

/* Keeps the object that contains ebb's code. Asks the dynamic linker only if needed. */
void module_keep_own(void);

/* Keeps the object that contains `address`, if there is one. */
void module_keep(const void *address);

#endif
