// SPDX-License-Identifier: Apache-2.0
/*
 * device.c - the kind of memory that a device has (see kind.h, whole.c).
 *
 *     range     | closed addresses of a slab |      what blocks are named by
 *     device    | cuMemAlloc                 |      as long as the slab, aligned
 *
 * Drivers are known to align large allocations to 2 MiB, but do not promise more than 256 bytes.
 * One that does not is asked for so much more that the slab is aligned on the device as well: so
 * blocks have the alignment that was asked for there, too. What was not aligned is given back
 * first; a driver that refuses that is asked again before it is asked for more, and the pool does
 * not end before it has it.
 *
 * Invariant: the addresses of a slab cannot be touched as long as it is one. They are given back
 * as they were; where the system refuses that, nobody gets them any more.
 */
#include "base/error.h"
#include "base/os.h"
#include "pool/chunk.h"
#include "pool/pages.h"

#include <ebb/pool.h>

static int begin(struct pages *pages, const struct ebb_pool_options *options) {
    return cuda_take(&pages->cuda, options->device);
}

static uintptr_t take(struct pages *pages, size_t least, size_t *bytes) {
    (void)pages;
    return kind_take_closed(0, least, bytes);
}

/* False: the driver refused, error set. */
static bool free_memory(const struct cuda_hold *hold, uint64_t *memory) {
    if (*memory && cuda_free(hold, *memory) != 0)
        return false;
    *memory = 0;
    return true;
}

static bool clear(struct pages *pages) {
    return free_memory(&pages->cuda, &pages->misfit);
}

/* What is not aligned goes, now or when something else comes or goes. */
static void give_misfit(struct pages *pages, uint64_t memory) {
    pages->misfit = memory;
    error_mute();
    (void)clear(pages);
    error_unmute();
}

/* Memory that has room for the slab at a multiple of its alignment. */
static int warm(struct pages *pages, uintptr_t addr, size_t bytes) {
    struct ebb_piece *slab = pages_slab_at(pages, addr);
    uint64_t memory;
    slab->slab.memory = 0;
    if (!clear(pages))
        return error_latest();
    int result = cuda_alloc(&pages->cuda, bytes, &memory);
    if (result == 0 && memory % CHUNK_ALIGN != 0) {
        give_misfit(pages, memory);
        result = cuda_alloc(&pages->cuda, bytes + CHUNK_ALIGN, &memory);
    }
    if (!result)
        slab->slab.memory = memory;
    return result;
}

static bool cool(struct pages *pages, uintptr_t addr, size_t bytes, size_t *given) {
    if (!free_memory(&pages->cuda, &pages_slab_at(pages, addr)->slab.memory))
        return false;
    *given += bytes;
    return true;
}

const struct kind kind_device = {.name = "device",
                                 .phantom = true,
                                 .whole = true,
                                 .begin = begin,
                                 .take = take,
                                 .warm = warm,
                                 .cool = cool,
                                 .clear = clear,
                                 .give = kind_give_closed};
