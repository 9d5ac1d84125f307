// SPDX-License-Identifier: Apache-2.0
/*
 * python.c - a region as an object of Python, which ends when the object does.
 *
 * An exception may come between any two steps of Python code, of a signal handler, or for want of
 * stack. Whatever unwinds the code that has the object drops it, and that ends the region: there is
 * no call that it could be kept from. sitecustomize.py asks for the object, with the interpreter's
 * lock held. It is a capsule, of functions that a process has with its interpreter.
 *
 * Invariant: the object is made before its region begins and freed after it has ended, so that it
 * is no allocation of the region.
 */
#include <dlfcn.h>
#include <string.h>

#include "recorder.h"

EXPORT void *ebb_record_open(const char *kind);

struct capsules {
    void *(*make)(void *content, const char *name, void (*end)(void *capsule));
    void *(*content)(void *capsule, const char *name);
};

static void find(void *function, const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found);
}

/* NULL: there is no interpreter. */
static const struct capsules *capsules(void) {
    static struct capsules functions;
    if (unlikely(!functions.make)) {
        find(&functions.content, "PyCapsule_GetPointer");
        find(&functions.make, "PyCapsule_New");
    }
    return functions.make && functions.content ? &functions : NULL;
}

static void close_region(void *capsule) {
    if (*recording)
        lane_note(SPOOL_END, 0, (uint64_t)(uintptr_t)capsules()->content(capsule, NULL), 0, 0);
}

/* What the capsule holds is the region's identity, by which it ends on any thread: no step has one
 * like it. NULL: there is no memory for the capsule, as the interpreter has been told. */
void *ebb_record_open(const char *kind) {
    static _Atomic uint64_t opened;
    uint64_t identity = (atomic_fetch_add(&opened, 1) + 1) * 16;
    const struct capsules *python = capsules();
    void *capsule = python ? python->make((void *)(uintptr_t)identity, NULL, close_region) : NULL;
    if (capsule && *recording)
        lane_note(SPOOL_BEGIN, spool_kind(kind), identity, 0, 0);
    return capsule;
}
