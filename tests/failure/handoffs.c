// SPDX-License-Identifier: Apache-2.0
/*
 * handoffs.c - see handoffs.h. Whatever fails, both slots are free again: the act that is granted
 * all opens a region in each.
 */
#include "failure/handoffs.h"

#define SLOTS 2

static ebb_pool *shared;

static ebb_pool *make_pool(void) {
    return ebb_pool_create(EBB_POOL_OPTIONS(.name = "shared", .kind = EBB_KIND_SHARED,
                                            .slots = SLOTS, .slot_bytes = 4 << 20));
}

void handoff_prepare(struct scene *scene) {
    (void)scene;
    shared = make_pool();
    DEMAND(shared);
}

static int end(ebb_pool *pool) {
    if (!pool)
        return ebb_last_error();
    DEMAND(ebb_pool_destroy(pool) == 0);
    return 0;
}

int create_shared(struct scene *scene) {
    (void)scene;
    return end(make_pool());
}

int attach_shared(struct scene *scene) {
    (void)scene;
    return end(ebb_pool_attach(ebb_pool_descriptor(shared), NULL));
}

static int receive(struct scene *scene, const struct ebb_parcel *parcel) {
    ebb_lease *lease = ebb_parcel_open(shared, parcel);
    if (!lease) {
        int code = ebb_last_error();
        DEMAND(ebb_parcel_discard(shared, parcel) == 0); /* nothing is lost by the failure */
        return code;
    }
    struct ebb_tensor *tensor = ebb_lease_object(lease, scene->leaf);
    int code = tensor ? 0 : ebb_last_error();
    ebb_lease_drop(lease);
    if (tensor) {
        DEMAND(((char *)tensor->data)[99999] == 'x');
        DEMAND(ebb_object_end(tensor) == 0);
    }
    return code;
}

static int send(struct ebb_parcel *parcel) {
    const struct ebb_dtype bytes = {EBB_UINT, 8, 1};
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.pool = shared));
    if (!ebb_region_is_open(region))
        return ebb_last_error();
    struct ebb_tensor *tensor = ebb_tensor_new(region, bytes, 1, &(int64_t){100000});
    int code = tensor ? 0 : ebb_last_error();
    if (tensor) {
        ((char *)tensor->data)[99999] = 'x';
        code = ebb_region_send_object(region, tensor, parcel);
    }
    if (code)
        DEMAND(ebb_region_close(region) == 0);
    return code;
}

static void check_slots(void) {
    ebb_region regions[SLOTS];
    for (int i = 0; i < SLOTS; i++) {
        regions[i] = ebb_region_open(EBB_REGION_OPTIONS(.pool = shared));
        DEMAND(ebb_region_is_open(regions[i]));
    }
    for (int i = 0; i < SLOTS; i++)
        DEMAND(ebb_region_close(regions[i]) == 0);
    DEMAND(ebb_pool_destroy(shared) == 0);
    shared = make_pool();
    DEMAND(shared);
}

int cross(struct scene *scene) {
    struct ebb_parcel parcel;
    static bool failed;
    int code = send(&parcel);
    if (!code)
        code = receive(scene, &parcel);
    if (failed && !code)
        check_slots();
    failed |= code != 0;
    return code;
}
