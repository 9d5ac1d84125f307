// SPDX-License-Identifier: Apache-2.0
/* start.c - what happens when libebb-malloc is loaded, or before, where other libraries begin. */
#include "malloc/general.h"
#include "malloc/guard.h"
#include "malloc/heap.h"
#include "malloc/options.h"
#include "malloc/swings.h"
#include "malloc/tender.h"
#include "malloc/turn.h"
#include "malloc/waits.h"

#include "base/os.h"
#include "base/poison.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define TAKEN_OVER __attribute__((visibility("default")))

static _Thread_local bool drops_handlers;

/* ThreadSanitizer keeps its own malloc(), and puts functions in place of the C library's that must
 * not be called before it is ready, nor in a fork with as many locks as jemalloc has: the library
 * is nothing but libebb then, handlers of forks included. jemalloc's are told by when they come: it
 * is begun here, before it would begin by itself. */
static __attribute__((constructor(101))) void drop_handlers_of_jemalloc(void) {
    if (!poison_watches_threads())
        return;
    drops_handlers = true;
    je_free(je_malloc(1));
    drops_handlers = false;
}

static __attribute__((constructor)) void start(void) {
    if (poison_watches_threads())
        return;
    general_begin();
    options_read();
    waits_find();
    if (options.turns != TURNS_NONE && !turn_prepare()) {
        options_complain("EBB_MALLOC: there are no turns, as others have made too many keys");
        options.turns = TURNS_NONE;
    }
    heap_watch_forks();
    scope_serve();
    tender_prepare();
    if (GUARDED)
        os_learn_overcommit();
    swings_begin();
    if (*options.stats)
        tender_begin();
}

typedef void handler(void);
typedef int registers(handler *before, handler *in_parent, handler *in_child, void *library);

extern char __dso_handle __attribute__((visibility("hidden"))); /* this library */

registers __register_atfork;

/*
 * What pthread_atfork() calls, in front of the C library's. Handlers allocate, free and wait for
 * threads that do: they must run before the first lock of this library is taken, and after the last
 * is given back, so all of its own are registered before them. Libraries that this one knows
 * nothing of may be initialized earlier, and register theirs then. With ThreadSanitizer they get
 * nothing from here, and handlers come in the order in which they are registered.
 */
TAKEN_OVER int __register_atfork(handler *before, handler *in_parent, handler *in_child,
                                 void *library) {
    registers *theirs;
    bool is_own = library == &__dso_handle, stands_aside = poison_watches_threads();
    void *symbol = dlsym(RTLD_NEXT, "__register_atfork");
    memcpy(&theirs, &symbol, sizeof theirs);
    if (drops_handlers)
        return 0;
    if (!is_own && !stands_aside)
        heap_watch_forks();
    return theirs ? theirs(before, in_parent, in_child, library) : ENOMEM;
}
