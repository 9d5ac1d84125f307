// SPDX-License-Identifier: Apache-2.0
/* blocks.h - for acts: blocks of all sizes that are looked at when they end, and threads. */
#ifndef MALLOC_BLOCKS_H
#define MALLOC_BLOCKS_H

#include "malloc/acts.h"

#include <pthread.h>

static const size_t sizes[] = {1, 24, 100, 1000, 8000, 9000, 70000, 300000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static inline unsigned char *make(unsigned kind) {
    size_t bytes = sizes[kind % SIZES];
    unsigned char *block = malloc(bytes);
    EXPECT(block);
    return memset(block, (int)(kind % 251), bytes);
}

static inline void end(void *block, unsigned kind) {
    const unsigned char *bytes = block;
    size_t last = sizes[kind % SIZES] - 1;
    EXPECT(bytes[0] == kind % 251 && bytes[last] == kind % 251 && bytes[last / 2] == kind % 251);
    free(block);
}

static inline void on_thread(void *(*body)(void *), void *context) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, body, context) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

#endif
