// SPDX-License-Identifier: Apache-2.0
//
// late.c - threads that allocate at once when nobody looks at them any more: in the last round of
// destructors. test_record.c records it. Exit code: 0, or 1 where a thread cannot be made.

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "client.h"

static pthread_key_t key;
static pthread_barrier_t barrier;
static void *volatile sink[CLIENT_LATE]; // kept from the compiler

static uintptr_t rounds[CLIENT_LATE];

static void clean_up(void *argument)
{
    uintptr_t *left = argument;
    void *volatile *own = &sink[left - rounds];

    if (--*left > 0) {
        pthread_setspecific(key, left);
        return;
    }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < CLIENT_LATE_BLOCKS; i++) {
        *own = malloc(CLIENT_MALLOC);
        *own = realloc(*own, CLIENT_GROWN);
        free(*own);
    }
}

static void *leave(void *argument)
{
    free(malloc(CLIENT_MALLOC)); // the recorder's destructor is there before the last round
    pthread_setspecific(key, argument);
    return NULL;
}

int main(void)
{
    pthread_t thread[CLIENT_LATE];

    if (pthread_key_create(&key, clean_up) || pthread_barrier_init(&barrier, NULL, CLIENT_LATE))
        return 1;
    for (int i = 0; i < CLIENT_LATE; i++) {
        rounds[i] = PTHREAD_DESTRUCTOR_ITERATIONS;
        if (pthread_create(&thread[i], NULL, leave, &rounds[i]))
            return 1;
    }
    for (int i = 0; i < CLIENT_LATE; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
