// SPDX-License-Identifier: Apache-2.0
/*
 * apart.c - tensors in shared memory.
 *
 *     safe of the region    | head | shape | strides | storage |
 *                                                         '--------.
 *     pages of the region   |   elements, a block of their own     |
 *
 * Elements are for other processes, in pages that these can write to; what leads to them is not
 * (region/safe.h). Elements that say where others are, such as the offsets of ragged sequences, lie
 * behind their heads: they are copied when they are sent.
 *
 * Invariant: a storage with STORAGE_APART has its bytes in a block of the same host, which begins
 * at `data`, is claimed for the objects that see it (block_claim()), and is released with the
 * storage.
 */
#include "region/block.h"
#include "object/copy.h"
#include "object/object.h"
#include "region/small.h"
#include "region/survivor.h"
#include "region/undo.h"

#include <string.h>

static size_t head_bytes(int ndim) {
    return size_align(tensor_head_bytes(ndim) + sizeof(struct ebb_storage), EBB_TENSOR_ALIGN);
}

static size_t data_align(size_t bytes) {
    return bytes > EBB_SMALL_MAX_BYTES ? EBB_STORAGE_ALIGN : EBB_TENSOR_ALIGN;
}

static void begin_storage(struct ebb_tensor *tensor, void *data, size_t bytes, uint32_t flags) {
    tensor->data = data;
    tensor->storage = tensor_own_storage(tensor);
    *tensor->storage = (struct ebb_storage){
        .data = data, .bytes = bytes, .tensors = 1, .block = tensor, .flags = flags};
}

/* All of it where no other process writes. Elements are aligned as others are: they may be exported
 * once the tensor has gone to a region that is not shared. */
static struct ebb_tensor *new_private(struct region *host, struct ebb_dtype dtype, int ndim,
                                      const int64_t *shape, const void *site) {
    size_t bytes = 0;
    if (!tensor_measure(dtype, ndim, shape, &bytes))
        return NULL;
    size_t align = data_align(bytes), head = size_align(head_bytes(ndim), align);
    struct ebb_tensor *tensor = block_allocate_private(host, head + bytes, align, site);
    if (!tensor)
        return NULL;
    tensor_begin(host, tensor, dtype, ndim);
    tensor_fill_row_major(tensor, shape);
    begin_storage(tensor, (char *)tensor + head, bytes, 0);
    return tensor;
}

struct ebb_tensor *tensor_new_private(ebb_region region, struct ebb_dtype dtype, int ndim,
                                      const int64_t *shape) {
    struct region *host = region_peek(region);
    if (!host || !host->shared)
        return ebb_tensor_new(region, dtype, ndim, shape);
    return new_private(host, dtype, ndim, shape, __builtin_return_address(0));
}

/* The same where both are a bump, which cannot fail. NULL, and nothing has changed: it is not. */
static void *bump_blocks(struct region *host, size_t head, size_t bytes, void **data) {
    struct region *safe = host->safe;
    bool is_simple = safe && !host->track && !host->sealed && !host->metered && !EBB_POISON;
    if (!is_simple || !bytes || bytes > EBB_SMALL_MAX_BYTES || head > EBB_SMALL_MAX_BYTES)
        return NULL;
    uintptr_t in_slot = size_align(host->lane.cursor, data_align(bytes));
    uintptr_t in_safe = size_align(safe->lane.cursor, EBB_TENSOR_ALIGN);
    /* the lane in the slot is shut only because heads must not get there */
    if (in_slot + bytes > host->limit || !small_fits(safe, in_safe, head))
        return NULL;
    small_bump(host, in_slot, bytes);
    small_bump(safe, in_safe, head);
    *data = (void *)in_slot;
    return (void *)in_safe;
}

/* Blocks for a head in the safe and for elements in the pages; NULL: an error, and no trace. */
static void *take_blocks(struct region *host, size_t head, size_t bytes, void **data,
                         const void *site) {
    struct undo undo;
    void *simple = bump_blocks(host, head, bytes, data);
    if (simple)
        return simple;
    undo_remember(host, &undo);
    *data = block_allocate_keyed(host, bytes, data_align(bytes), 0, site);
    if (!*data)
        return NULL;
    void *block = block_for_object(host, head, EBB_TENSOR_ALIGN, site);
    if (block) {
        block_claim(host, *data);
        return block;
    }
    undo_begin(host);
    ebb_region_release(region_handle(host), *data);
    undo_restore(host, &undo);
    return NULL;
}

struct ebb_tensor *tensor_new_apart(struct region *host, struct ebb_dtype dtype, int ndim,
                                    const int64_t *shape, const void *site) {
    size_t bytes = 0;
    void *data;
    (void)tensor_measure(dtype, ndim, shape, &bytes);
    if (!bytes)
        return new_private(host, dtype, ndim, shape, site);
    struct ebb_tensor *tensor = take_blocks(host, head_bytes(ndim), bytes, &data, site);
    if (!tensor)
        return NULL;
    tensor_begin(host, tensor, dtype, ndim);
    tensor_fill_row_major(tensor, shape);
    begin_storage(tensor, data, bytes, STORAGE_APART);
    return tensor;
}

struct ebb_tensor *tensor_compact_apart(struct region *region, const struct ebb_tensor *view,
                                        const void *site) {
    size_t bytes = ebb_tensor_bytes(view);
    void *data;
    struct ebb_tensor *fresh = take_blocks(region, head_bytes(view->ndim), bytes, &data, site);
    if (!fresh)
        return NULL;
    memcpy(fresh, view, sizeof *fresh);
    tensor_mend_view(fresh); /* the cleanup of a view is no longer than a storage */
    tensor_fill_row_major(fresh, view->shape);
    begin_storage(fresh, data, bytes, STORAGE_APART);
    copy_elements(data, NULL, view->data, view->strides, view->shape, view->ndim,
                  ebb_dtype_bytes(view->dtype));
    return fresh;
}
