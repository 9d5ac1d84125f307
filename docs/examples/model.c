// SPDX-License-Identifier: Apache-2.0
/* model.c - a user's own type: a layer of two tensors, trained, replaced and promoted as one. */
#include <ebb/ebb.h>

#include <stdlib.h>

static void need(bool holds) {
    if (!holds)
        exit(1);
}

struct layer {
    struct ebb_object object; /* first */
    struct ebb_object *weight, *bias;
};

static const struct ebb_field layer_fields[] = {
    EBB_FIELD(struct layer, EBB_FIELD_OBJECT, weight),
    EBB_FIELD(struct layer, EBB_FIELD_OBJECT, bias),
};
static struct ebb_type layer_type = {
    .name = "layer", .bytes = sizeof(struct layer), .fields = layer_fields, .field_count = 2};

static const struct ebb_dtype f32 = {EBB_FLOAT, 32, 1};

static struct ebb_object *floats(ebb_region region, int64_t rows, int64_t columns) {
    struct ebb_tensor *tensor =
        ebb_tensor_new_zeroed(region, f32, 2, (int64_t[]){rows, columns});
    need(tensor != NULL);
    return &tensor->object;
}

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    ebb_region setup = ebb_region_open(EBB_REGION_OPTIONS(.name = "setup", .parent = run));
    need(ebb_type_register(&layer_type) == 0);

    /* Made below the run, with whatever else it takes; then handed up as a unit. */
    struct layer *layer = ebb_object_new(setup, &layer_type, 0);
    need(layer != NULL);
    layer->weight = floats(setup, 512, 512);
    layer->bias = floats(setup, 1, 512);
    need(ebb_object_compose(layer) == 0);
    layer = ebb_object_move_outer(setup, layer);
    need(layer && ebb_region_close(setup) == 0);

    for (int i = 0; i < 10; i++) {
        ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = run));
        /* The new weight goes where the old one was: field 0. The old one ends. */
        need(ebb_object_replace(layer, 0, floats(step, 512, 512)) == 0);
        need(ebb_region_close(step) == 0);
    }
    struct ebb_object_counts counts;
    need(ebb_region_read_objects(run, EBB_OBJECT_TENSOR, &counts) == 0 && counts.live == 2);
    return ebb_object_end(layer) == 0 ? ebb_region_close_strict(run) : 1;
}
