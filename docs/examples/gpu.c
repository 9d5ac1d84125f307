// SPDX-License-Identifier: Apache-2.0
/* gpu.c - batches in pinned memory go to regions on the GPU; without one, says what is missing. */
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>

#define BATCH ((size_t)1 << 20)

static void need(bool holds) {
    if (!holds)
        exit(1);
}

/* The batch's memory is used again when the device has read it, and not before. */
static void load(ebb_pool *pinned, ebb_region step, void *images, unsigned char value) {
    ebb_region batch = ebb_region_open(EBB_REGION_OPTIONS(.name = "batch", .pool = pinned));
    unsigned char *bytes = ebb_region_alloc(batch, BATCH, 64);
    struct ebb_fence fence = {{0}};
    need(bytes != NULL);
    for (size_t i = 0; i < BATCH; i++)
        bytes[i] = value;
    need(ebb_copy_to_device(step, images, 0, bytes, BATCH, NULL) == 0);
    need(ebb_fence_record(&fence, 0, NULL) == 0);
    /* ... other work; a kernel gets ebb_device_address(step, images) ... */
    while (ebb_fence_is_done(&fence) == 0)
        ;
    need(ebb_fence_end(&fence) == 0);
    need(ebb_region_close(batch) == 0);
}

int main(void) {
    ebb_pool *gpu = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_DEVICE, .device = 0));
    if (!gpu) { /* EBB_E_DEVICE: no driver, no device, or it is too old */
        printf("no GPU: %s\n", ebb_last_error_text());
        return 0;
    }
    ebb_pool *pinned = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_PINNED));
    need(pinned && ebb_pool_pinning(pinned, NULL) == EBB_PINNING_REGISTERED);
    for (unsigned char value = 1; value < 10; value++) {
        unsigned char back = 0;
        ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .pool = gpu));
        void *images = ebb_region_alloc(step, BATCH, 256);
        need(images != NULL);
        load(pinned, step, images, value);
        need(ebb_copy_from_device(step, images, BATCH - 1, &back, 1, NULL) == 0);
        need(ebb_device_finish(step, NULL) == 0 && back == value);
        need(ebb_region_close(step) == 0);
    }
    return ebb_pool_destroy(pinned) | ebb_pool_destroy(gpu);
}
