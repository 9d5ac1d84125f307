// SPDX-License-Identifier: Apache-2.0
/*
 * turns.c - a library that makes any program live in scopes, preloaded after libebb-malloc.
 *
 * Each thread has a scope open. When it calls one of the functions below, which nearly all programs
 * call again and again, the scope ends and the next begins, whatever the program is in the middle
 * of: whether blocks outlive their scopes must make no difference to it. Now and then a scope is
 * begun inside another, left, or entered again.
 *
 * EBB_TURNS=FILE: how many scopes there were is written there at the end.
 */
#include <ebb/ebb.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TAKEN_OVER __attribute__((visibility("default")))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static ebb_site *site;
static atomic_uint turns;

static __thread struct own {
    ebb_step step, inner;
    unsigned turn;
    bool busy; /* what ebb calls itself is no turn */
} own __attribute__((tls_model("initial-exec")));

static void create(void) {
    site = ebb_site_create(EBB_SITE_OPTIONS(.name = "turn", .scope = true));
}

static void turn(void) {
    if (own.busy)
        return;
    int before = errno;
    own.busy = true;
    pthread_once(&once, create);
    switch (own.turn++ % 16) {
    case 3: (void)ebb_scope_leave(own.step); break;
    case 4: (void)ebb_scope_enter(own.step); break;
    case 7: own.inner = ebb_step_begin(site, 1); break;
    case 11: (void)ebb_step_end(own.inner); break;
    default:
        (void)ebb_step_end(own.step); /* refused where there is none yet, or no more */
        own.step = ebb_step_begin(site, 0);
        atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
    }
    own.busy = false;
    errno = before;
}

static void *find(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

/* Found at the first call, which may come before any constructor has run. */
#define THEIRS(result, name, ...)                                                                  \
    static result (*_Atomic(theirs))(__VA_ARGS__);                                                 \
    result (*call)(__VA_ARGS__) = atomic_load_explicit(&theirs, memory_order_relaxed);             \
    if (!call) {                                                                                   \
        *(void **)&call = find(#name);                                                             \
        atomic_store_explicit(&theirs, call, memory_order_relaxed);                                \
    }

TAKEN_OVER ssize_t read(int file, void *buffer, size_t bytes) {
    THEIRS(ssize_t, read, int, void *, size_t)
    turn();
    return call(file, buffer, bytes);
}

TAKEN_OVER ssize_t write(int file, const void *buffer, size_t bytes) {
    THEIRS(ssize_t, write, int, const void *, size_t)
    turn();
    return call(file, buffer, bytes);
}

TAKEN_OVER int close(int file) {
    THEIRS(int, close, int)
    turn();
    return call(file);
}

TAKEN_OVER size_t fread(void *buffer, size_t bytes, size_t count, FILE *file) {
    THEIRS(size_t, fread, void *, size_t, size_t, FILE *)
    turn();
    return call(buffer, bytes, count, file);
}

TAKEN_OVER size_t fwrite(const void *buffer, size_t bytes, size_t count, FILE *file) {
    THEIRS(size_t, fwrite, const void *, size_t, size_t, FILE *)
    turn();
    return call(buffer, bytes, count, file);
}

TAKEN_OVER int pthread_mutex_destroy(pthread_mutex_t *mutex) {
    THEIRS(int, pthread_mutex_destroy, pthread_mutex_t *)
    turn();
    return call(mutex);
}

static __attribute__((constructor)) void begin(void) {
    turn();
}

static __attribute__((destructor)) void say(void) {
    const char *name = getenv("EBB_TURNS");
    char text[40];
    int file = name ? open(name, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    int length = snprintf(text, sizeof text, "%u\n", atomic_load(&turns));
    if (file >= 0 && length > 0)
        (void)!write(file, text, (size_t)length);
}
