// SPDX-License-Identifier: Apache-2.0
/* many_keys.c - a library that begins before libebb-malloc, and makes more keys than the C library
 * keeps values of in a thread itself. Preloaded by loops.c. */
#include <pthread.h>

enum { KEYS = 40 };

static __attribute__((constructor)) void make_keys(void) {
    pthread_key_t key;
    for (unsigned i = 0; i < KEYS; i++)
        (void)pthread_key_create(&key, NULL);
}
