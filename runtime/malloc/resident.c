// SPDX-License-Identifier: Apache-2.0
/*
 * resident.c - see resident.h.
 *
 * The pool counts pages that it hands out; which of them were ever touched only the system knows. A
 * step takes all that its plan may need at once, and gives it back as if it had used it.
 *
 * The pool's lock is held for a moment for each slab, and not while the system looks. Invariant: a
 * slab of this pool never goes. Two threads that ask at once both find out.
 */
#include "malloc/resident.h"
#include "malloc/heap.h"

#include "base/os.h"
#include "base/size.h"
#include "pool/pool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASKED_SHARE 100u /* of the time, at most one part */
#define KNOWN_NS 60000000000u /* for so long at most: a process may be stopped while it asks */

struct slab {
    const struct ebb_piece *piece;
    uintptr_t addr;
    size_t bytes;
};

/* The one behind it, at first any. False: there are no more. */
static bool next_slab(struct ebb_pool *pool, struct slab *slab) {
    pthread_mutex_lock(&pool->lock);
    slab->piece = slab->piece ? slab->piece->next : pool->pages.slabs;
    if (slab->piece) {
        slab->addr = slab->piece->addr;
        slab->bytes = slab->piece->bytes;
    }
    pthread_mutex_unlock(&pool->lock);
    return slab->piece != NULL;
}

static size_t ask(struct ebb_pool *pool) {
    struct slab slab = {.piece = NULL};
    size_t bytes = 0;
    while (next_slab(pool, &slab))
        bytes += os.resident((void *)slab.addr, slab.bytes);
    return bytes;
}

size_t resident_large(void) {
    static _Atomic(uint64_t) known_bytes, next_ns; /* relaxed: each is a number of its own */
    struct ebb_pool *pool = heap_pool();
    uint64_t began = os.now_ns();
    if (!pool)
        return 0;
    if (began < atomic_load_explicit(&next_ns, memory_order_relaxed))
        return atomic_load_explicit(&known_bytes, memory_order_relaxed);
    size_t bytes = ask(pool);
    uint64_t ended = os.now_ns();
    uint64_t rest = size_smaller(ended - began, KNOWN_NS / ASKED_SHARE) * ASKED_SHARE;
    atomic_store_explicit(&known_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&next_ns, ended + rest, memory_order_relaxed);
    return bytes;
}

/* The second number of the file, which is of pages. That of the process has none once its first
 * thread has ended. */
size_t resident_process(void) {
    char text[128];
    int file = open("/proc/thread-self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = 0;
    const char *second = strchr(text, ' ');
    return second ? strtoul(second, NULL, 10) * os.page_bytes() : 0;
}
