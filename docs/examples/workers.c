// SPDX-License-Identifier: Apache-2.0
/* workers.c - a worker process fills batches in shared memory; the trainer uses them in place. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCHES = 50 };

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static void work(ebb_pool *pool, int queue) {
    for (int64_t i = 0; i < BATCHES; i++) {
        ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "batch", .pool = pool));
        struct ebb_tensor *images = ebb_tensor_new(region, (struct ebb_dtype){EBB_FLOAT, 32, 1}, 4,
                                                   (int64_t[]){16, 3, 224, 224});
        struct ebb_node *number = ebb_node_new_integer(region, i);
        need(images && number && ebb_tensor_fill(images, ebb_value_int(i)) == 0);
        struct ebb_node *batch = ebb_node_new_dict(region, (const char *[]){"images", "number"},
                                                   (void *[]){images, number}, 2);
        struct ebb_parcel parcel;
        need(batch && ebb_region_send_object(region, batch, &parcel) == 0);
        need(write(queue, &parcel, sizeof parcel) == sizeof parcel); /* 32 bytes cross */
    }
}

static void train(ebb_pool *pool, int queue) {
    struct ebb_parcel parcel;
    for (int64_t i = 0, number; read(queue, &parcel, sizeof parcel) == sizeof parcel; i++) {
        ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step"));
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        struct ebb_node *batch = lease ? ebb_lease_object(lease, step) : NULL;
        ebb_lease_drop(lease); /* the batch holds it from here on */
        need(batch && ebb_node_read_integer(ebb_node_find(batch, "number"), &number) == 0);
        const struct ebb_tensor *images = ebb_node_find(batch, "images");
        need(number == i && ((float *)images->data)[16 * 3 * 224 * 224 - 1] == (float)i);
        need(ebb_region_close(step) == 0); /* and with it the batch: the slot is free again */
    }
}

int main(void) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "loader", .kind = EBB_KIND_SHARED));
    int queue[2], status;
    need(pool != NULL && pipe(queue) == 0);
    pid_t worker = fork();
    if (worker == 0)
        work(pool, queue[1]);
    if (worker == 0)
        return 0;
    close(queue[1]);
    train(pool, queue[0]);
    need(waitpid(worker, &status, 0) == worker && status == 0);
    return ebb_pool_destroy(pool) == 0 ? 0 : 1;
}
