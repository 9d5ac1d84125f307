// SPDX-License-Identifier: Apache-2.0
/*
 * handoffs.c - see handoffs.h. Whatever fails, both slots are free again: the act that is granted
 * all opens a region in each.
 */
#include "failure/handoffs.h"

#include <string.h>

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

/* ---- objects of which the heads lie elsewhere ---- */

static struct ebb_region_stats stats_of(ebb_region region) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    DEMAND(ebb_region_read_stats(region, &stats) == 0);
    return stats;
}

static bool is_same(ebb_region region, const struct ebb_region_stats *before) {
    struct ebb_region_stats now = stats_of(region);
    return memcmp(&now.blocks, &before->blocks, sizeof now.blocks) == 0 &&
           memcmp(&now.requested, &before->requested, sizeof now.requested) == 0 &&
           memcmp(&now.used, &before->used, sizeof now.used) == 0;
}

static uint64_t live_in(ebb_region region) {
    struct ebb_object_counts counts;
    DEMAND(ebb_region_read_objects(region, EBB_OBJECT_ALL, &counts) == 0);
    return counts.live;
}

typedef bool attempt(ebb_region root, ebb_region child, void **thing);

static bool make(ebb_region root, ebb_region child, void **thing) {
    (void)root;
    *thing = ebb_tensor_new(child, (struct ebb_dtype){EBB_UINT, 8, 1}, 1, &(int64_t){5000});
    return *thing;
}

static bool enlist(ebb_region root, ebb_region child, void **thing) {
    (void)root;
    void *list = ebb_node_new_list(child, thing, 1);
    *thing = list ? list : *thing;
    return list;
}

static bool promote(ebb_region root, ebb_region child, void **thing) {
    return ebb_objects_promote(child, root, thing, 1, NULL, NULL) == 0;
}

static bool lend(ebb_region root, ebb_region child, void **thing) {
    (void)root;
    return ebb_object_borrow(*thing, child) == 0;
}

static bool sequence(ebb_region root, ebb_region child, void **thing) {
    struct ebb_tensor *part = ebb_node_at(*thing, 0);
    (void)root;
    return ebb_sequences_pack(child, &part, 1, NULL);
}

static int work(ebb_region root, ebb_region child) {
    static attempt *const attempts[] = {make, enlist, promote, lend, sequence};
    void *thing = NULL;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        struct ebb_region_stats above = stats_of(root), below = stats_of(child);
        uint64_t live = live_in(root) + live_in(child);
        if (attempts[i](root, child, &thing))
            continue;
        int code = ebb_last_error();
        DEMAND(code && is_same(root, &above) && is_same(child, &below));
        DEMAND(live_in(root) + live_in(child) == live);
        DEMAND(ebb_check_pool(shared) == 0);
        return code;
    }
    return 0;
}

int work_in_a_slot(struct scene *scene) {
    ebb_region root = ebb_region_open(EBB_REGION_OPTIONS(.pool = shared));
    (void)scene;
    if (!ebb_region_is_open(root))
        return ebb_last_error();
    ebb_region child = ebb_region_open(EBB_REGION_OPTIONS(.parent = root));
    int code = ebb_region_is_open(child) ? work(root, child) : ebb_last_error();
    DEMAND(ebb_region_close(root) == 0);
    return code;
}
