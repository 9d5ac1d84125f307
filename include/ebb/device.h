// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/device.h - memory of a GPU, copies to it and from it, and when they are done.
 *
 *     ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_DEVICE, .device = 0));
 *     ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
 *     void *images = ebb_region_alloc(step, bytes, 256);
 *     ebb_copy_to_device(step, images, 0, batch, bytes, stream);
 *     kernel(ebb_device_address(step, images), ...);
 *
 * A region of such a pool is like any other: blocks of both lanes, children, limits, marks, resets,
 * counters, plans of steps (ebb/step.h). But a block is only a *name*: its pointer has no memory
 * behind it on the host, and touching it is a fault. ebb_device_address() says where it lies on the
 * device. What would have to read or write bytes on the host is refused with EBB_E_DEVICE: objects,
 * zeroed blocks, promotion of blocks, releases by other threads, a realloc that would have to move
 * the block.
 *
 * Memory of a device comes and goes in slabs (2 MiB at first, then as much as there is already, up
 * to 64 MiB). A trim gives back those that are wholly free, as ends of steps do that leave too much
 * cached, unless the pool was made with `keep_all`. The driver waits then for all work of the
 * device, and others that need memory of the pool, or fork, wait for that. So a function that a
 * stream calls on the host (cuLaunchHostFunc()) must not use such a pool.
 *
 * ebb needs no toolkit to be built. The CUDA driver (libcuda.so.1, or what the environment's
 * EBB_CUDA_LIBRARY names) is loaded at the first call that needs it; without one, or without a
 * device, that call fails with EBB_E_DEVICE and a text that says what is missing. It uses the
 * primary context of the device, as the CUDA runtime and torch do, so their streams are good here.
 *
 * `stream` is a CUstream or cudaStream_t; NULL is the default stream. Work is done when the stream
 * gets to it; the host's side of a copy must stay as it is until then. Any later call may report
 * errors of earlier work of the device, as with the driver itself.
 *
 * After a fork the driver serves only the parent, even if it was just starting. In the child every
 * call that needs it fails with EBB_E_DEVICE, and calls that give something back just forget it.
 */
#ifndef EBB_DEVICE_H
#define EBB_DEVICE_H

#include <ebb/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Devices that the CUDA driver has. EBB_E_DEVICE: there is no driver, or no device. Any thread. */
EBB_API int ebb_device_count(void);

/*
 * Where a live block of a device's region lies on the device. Valid as long as the block; offsets
 * in the block are the same on the device. 0 on failure: EBB_E_DEVICE (the region is on the
 * host), EBB_E_STALE, and as ebb_region_release(). One thread at a time.
 */
EBB_API uint64_t ebb_device_address(ebb_region region, const void *block);

/*
 * Asks the stream to copy `bytes` bytes from the host to `block`, from its byte `offset` on.
 * Page-locked host memory, of a pinned pool or locked otherwise, is read when the stream gets there
 * (see ebb_fence_record()); other host memory has been read when the call returns.
 * 0 bytes: nothing. One thread at a time.
 * Errors: EBB_E_SIZE (not all of it lies in the block: the text has the numbers), EBB_E_ARGUMENT
 * (NULL source), those of ebb_device_address(), EBB_E_DEVICE.
 */
EBB_API int ebb_copy_to_device(ebb_region region, void *block, size_t offset, const void *source,
                               size_t bytes, void *stream);

/*
 * The same from the device to the host. A page-locked `target` is written when the stream gets
 * there; other host memory has been written when the call returns.
 */
EBB_API int ebb_copy_from_device(ebb_region region, const void *block, size_t offset, void *target,
                                 size_t bytes, void *stream);

/* From a block to another one, which may be of another region of the same device. They must not
 * overlap (EBB_E_OVERLAP). Errors: also EBB_E_DEVICE, when the devices differ. */
EBB_API int ebb_copy_on_device(ebb_region to_region, void *to, size_t to_offset,
                               ebb_region from_region, const void *from, size_t from_offset,
                               size_t bytes, void *stream);

/* Asks the stream to set `bytes` bytes of the block to `value`. Errors as above. */
EBB_API int ebb_fill_device(ebb_region region, void *block, size_t offset, unsigned char value,
                            size_t bytes, void *stream);

/* Waits until the stream has done all that it was asked to. The region names the device. Errors:
 * EBB_E_DEVICE (also: the region is on the host), EBB_E_STALE. */
EBB_API int ebb_device_finish(ebb_region region, void *stream);

/*
 * A fence: the point that a stream had come to when it was recorded. Memory that the device still
 * reads must not be used again: record a fence behind the last copy, and reuse the memory when the
 * fence is done. All zero at first: nothing recorded, so done. One thread at a time; it belongs to
 * the process that recorded it. NULL is EBB_E_ARGUMENT to all three functions.
 */
struct ebb_fence {
    uint64_t words[4]; /* private */
};

/*
 * Records everything that the stream was asked to do so far. A fence that was recorded before
 * forgets that. It stays with its device until it is ended: another device is EBB_E_DEVICE, and so
 * is what the driver refuses. On failure the fence says what it said before, but may have got its
 * event.
 */
EBB_API int ebb_fence_record(struct ebb_fence *fence, int device, void *stream);

/*
 * 1: the device has done it all; 0: not yet; EBB_E_DEVICE: the device does not say (it failed, or
 * this is a forked child). Never waits.
 */
EBB_API int ebb_fence_is_done(struct ebb_fence *fence);

/* Gives the fence's event back, done or not; the fence is all zero then. On failure (EBB_E_DEVICE)
 * it is as before. */
EBB_API int ebb_fence_end(struct ebb_fence *fence);

/* How the pages of a pinned pool are kept in memory. */
enum ebb_pinning {
    EBB_PINNING_NONE = 0,      /* not at all: the pool is of another kind, or another process's */
    EBB_PINNING_LOCKED = 1,    /* locked, which is all that can be done without a CUDA driver */
    EBB_PINNING_REGISTERED = 2 /* registered with the driver: copies need no detour */
};

/*
 * How the pool's pages are pinned and, in *bytes (unless NULL), how many bytes are pinned now.
 * A pool of kind shared and pinned is pinned slot by slot, by the processes that open parcels:
 * before this process has tried to open one, nothing is. A slot that another process has trimmed
 * counts until a parcel of it is opened here, or until a trim here. After a fork the child has
 * nothing pinned of a registered pool, and of a locked one only what it got since. EBB_E_ARGUMENT:
 * the pool is NULL. Any thread.
 */
EBB_API int ebb_pool_pinning(ebb_pool *pool, size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
