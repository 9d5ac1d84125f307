// SPDX-License-Identifier: Apache-2.0
/*
 * early.c - a library that programs are linked with, and that registers handlers of forks as it
 * begins: before the library that is preloaded does. They call what the program says, if it does.
 */
#include <pthread.h>
#include <stddef.h>

__attribute__((visibility("default"))) void (*early_handler)(void);

static void handle(void) {
    if (early_handler)
        early_handler();
}

static __attribute__((constructor)) void start(void) {
    (void)pthread_atfork(handle, handle, handle);
}
