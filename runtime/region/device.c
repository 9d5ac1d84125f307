// SPDX-License-Identifier: Apache-2.0
/*
 * device.c - blocks of a device's memory: where they lie there, and copies to and from them.
 *
 * Invariant: nothing here touches a block. A copy is asked for only if all of it lies in what was
 * requested for a live block.
 */
#include "base/error.h"
#include "pool/chunk.h"
#include "region/lookup.h"

#include <ebb/device.h>

int region_refuse_hollow(const struct region *region, const char *why) {
    if (region->measuring)
        return error_set(EBB_E_MEASURING, "region '%s' measures, it has no memory: %s",
                         region->name, why);
    return error_set(EBB_E_DEVICE, "region '%s' is memory of device %d: %s", region->name,
                     region->pool->pages.cuda.ordinal, why);
}

/* A stretch of a live block, on its device. */
struct stretch {
    const struct cuda_hold *hold;
    uint64_t address;
};

static struct region *find_region(ebb_region handle) {
    struct region *region = region_find(handle);
    if (!region || region_is_on_device(region))
        return region;
    error_set(EBB_E_DEVICE, "region '%s' of pool '%s' is not memory of a device", region->name,
              region->pool->name);
    return NULL;
}

/* Slabs come and go when other regions of the pool grow and end. */
static uint64_t address_of(struct ebb_pool *pool, uintptr_t addr) {
    pthread_mutex_lock(&pool->lock);
    const struct ebb_piece *slab = pages_slab_at(&pool->pages, addr);
    uint64_t address = size_align(slab->slab.memory, CHUNK_ALIGN) + (addr - slab->addr);
    pthread_mutex_unlock(&pool->lock);
    return address;
}

static int find_stretch(ebb_region handle, const void *block, size_t offset, size_t bytes,
                        struct stretch *stretch) {
    struct region *region = find_region(handle);
    struct block_place place;
    if (!region)
        return error_latest();
    int result = block_find(region, block, &place);
    if (result)
        return result;
    if (offset > place.requested || bytes > place.requested - offset)
        return error_set(EBB_E_SIZE, "%zu bytes at %zu do not lie in block %p of region '%s', "
                         "which has %zu", bytes, offset, block, region->name, place.requested);
    stretch->hold = &region->pool->pages.cuda;
    stretch->address = address_of(region->pool, (uintptr_t)block) + offset;
    return 0;
}

uint64_t ebb_device_address(ebb_region handle, const void *block) {
    struct stretch stretch = {0};
    return find_stretch(handle, block, 0, 0, &stretch) == 0 ? stretch.address : 0;
}

static int report_null(size_t bytes) {
    return error_set(EBB_E_ARGUMENT, "%zu bytes of the host at NULL", bytes);
}

int ebb_copy_to_device(ebb_region handle, void *block, size_t offset, const void *source,
                       size_t bytes, void *stream) {
    struct stretch to = {0};
    int result = find_stretch(handle, block, offset, bytes, &to);
    if (result || !bytes)
        return result;
    return source ? cuda_copy_in(to.hold, to.address, source, bytes, stream) : report_null(bytes);
}

int ebb_copy_from_device(ebb_region handle, const void *block, size_t offset, void *target,
                         size_t bytes, void *stream) {
    struct stretch from = {0};
    int result = find_stretch(handle, block, offset, bytes, &from);
    if (result || !bytes)
        return result;
    return target ? cuda_copy_out(from.hold, target, from.address, bytes, stream)
                  : report_null(bytes);
}

int ebb_copy_on_device(ebb_region to_handle, void *to_block, size_t to_offset,
                       ebb_region from_handle, const void *from_block, size_t from_offset,
                       size_t bytes, void *stream) {
    struct stretch to = {0}, from = {0};
    int result = find_stretch(to_handle, to_block, to_offset, bytes, &to);
    if (!result)
        result = find_stretch(from_handle, from_block, from_offset, bytes, &from);
    if (result || !bytes)
        return result;
    if (to.hold->ordinal != from.hold->ordinal)
        return error_set(EBB_E_DEVICE, "%zu bytes from device %d to device %d: not by this call",
                         bytes, from.hold->ordinal, to.hold->ordinal);
    if (to.address < from.address + bytes && from.address < to.address + bytes)
        return error_set(EBB_E_OVERLAP, "%zu bytes on device %d from %#llx to %#llx overlap", bytes,
                         to.hold->ordinal, (unsigned long long)from.address,
                         (unsigned long long)to.address);
    return cuda_copy_on(to.hold, to.address, from.address, bytes, stream);
}

int ebb_fill_device(ebb_region handle, void *block, size_t offset, unsigned char value,
                    size_t bytes, void *stream) {
    struct stretch to = {0};
    int result = find_stretch(handle, block, offset, bytes, &to);
    return result || !bytes ? result : cuda_fill(to.hold, to.address, value, bytes, stream);
}

int ebb_device_finish(ebb_region handle, void *stream) {
    struct region *region = find_region(handle);
    return region ? cuda_finish(&region->pool->pages.cuda, stream) : error_latest();
}
