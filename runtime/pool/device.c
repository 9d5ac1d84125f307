// SPDX-License-Identifier: Apache-2.0
/*
 * device.c - the kind of memory that a device has (see kind.h, whole.c).
 *
 *     range     | closed addresses of a slab |      what blocks are named by
 *     device    | cuMemAlloc                 |      as long as the slab, aligned
 *
 * Drivers are known to align large allocations to 2 MiB, but do not promise more than 256 bytes.
 * One that does not is asked for so much more that the slab is aligned on the device as well: so
 * blocks have the alignment that was asked for there, too.
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

/* What is not aligned goes, or stays with the slab until it can. */
static void give_misfit(const struct cuda_hold *hold, struct ebb_piece *slab) {
    error_mute();
    (void)free_memory(hold, &slab->slab.misfit);
    error_unmute();
}

/* Memory that has room for the slab at a multiple of its alignment. */
static int allocate(const struct cuda_hold *hold, struct ebb_piece *slab, size_t bytes) {
    uint64_t memory;
    int result = cuda_alloc(hold, bytes, &memory);
    if (result == 0 && memory % CHUNK_ALIGN != 0) {
        slab->slab.misfit = memory;
        give_misfit(hold, slab);
        result = cuda_alloc(hold, bytes + CHUNK_ALIGN, &memory);
    }
    slab->slab.memory = result == 0 ? memory : 0;
    return result;
}

static int warm(struct pages *pages, uintptr_t addr, size_t bytes) {
    struct ebb_piece *slab = pages_slab_at(pages, addr);
    int result = allocate(&pages->cuda, slab, bytes);
    if (result)
        give_misfit(&pages->cuda, slab); /* the last time: the slab goes */
    return result;
}

static bool cool(struct pages *pages, uintptr_t addr, size_t bytes, size_t *given) {
    struct ebb_piece *slab = pages_slab_at(pages, addr);
    if (!free_memory(&pages->cuda, &slab->slab.misfit) ||
        !free_memory(&pages->cuda, &slab->slab.memory))
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
                                 .give = kind_give_closed};
