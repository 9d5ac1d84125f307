// SPDX-License-Identifier: Apache-2.0
/*
 * python.c - a region as an object of Python, which ends when the object does.
 *
 * An exception may come between any two steps of Python code, of a signal handler, or for want of
 * stack. Whatever unwinds the code that has the object drops it, and that ends the region: there is
 * no call that it could be kept from. sitecustomize.py asks for the object, with the interpreter's
 * lock held. It is an iterator, since what a loop is over needs no name, under which others would
 * find it; that has a capsule, whose end is the region's. Both are of functions that a process has
 * with its interpreter.
 *
 * Invariant: the object is made before its region begins and freed after it has ended, so that it
 * is no allocation of the region.
 */
#include <dlfcn.h>
#include <string.h>

#include "recorder.h"

EXPORT void *ebb_record_open(const char *kind, void *callable);

struct interpreter {
    void *(*make)(void *content, const char *name, void (*end)(void *capsule));
    void *(*content)(void *capsule, const char *name);
    void *(*iterate)(void *callable, void *sentinel);
    void (*drop)(void *object);
};

static void find(void *function, const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found);
}

/* NULL: there is none. */
static const struct interpreter *interpreter(void) {
    static struct interpreter functions;
    if (unlikely(!functions.make)) {
        find(&functions.content, "PyCapsule_GetPointer");
        find(&functions.iterate, "PyCallIter_New");
        find(&functions.drop, "Py_DecRef");
        find(&functions.make, "PyCapsule_New");
    }
    return functions.make && functions.content && functions.iterate && functions.drop ? &functions
                                                                                      : NULL;
}

static void close_region(void *capsule) {
    if (*recording)
        lane_note(SPOOL_END, 0, (uint64_t)(uintptr_t)interpreter()->content(capsule, NULL), 0, 0);
}

/* An iterator that gives what the callable returns, and has the capsule as what that never is. */
static void *iterator_with(const struct interpreter *python, void *capsule, void *callable) {
    void *iterator = python->iterate(callable, capsule);
    python->drop(capsule);
    return iterator;
}

/* What the capsule holds is the region's identity, by which it ends on any thread: no step has one
 * like it, and an end without a begin is none. NULL: there is no memory for the objects, as the
 * interpreter has been told. */
void *ebb_record_open(const char *kind, void *callable) {
    static _Atomic uint64_t opened;
    uint64_t identity = (atomic_fetch_add(&opened, 1) + 1) * 16;
    const struct interpreter *python = interpreter();
    void *capsule = python ? python->make((void *)(uintptr_t)identity, NULL, close_region) : NULL;
    void *region = capsule ? iterator_with(python, capsule, callable) : NULL;
    if (!region || !*recording)
        return region;
    step_note_closed();
    lane_note(SPOOL_BEGIN, spool_kind(kind), identity, 0, 0);
    return region;
}
