// SPDX-License-Identifier: Apache-2.0
/* boxes.c - see boxes.h. */
#include "kit/boxes.h"

static const struct ebb_field box_fields[] = {
    EBB_FIELD(struct box, EBB_FIELD_OBJECT, left),
    EBB_FIELD(struct box, EBB_FIELD_OBJECT, right),
    EBB_FIELD_COUNTED(struct box, EBB_FIELD_OBJECTS, parts, part_count),
    EBB_FIELD_COUNTED(struct box, EBB_FIELD_BYTES, bytes, byte_count),
};
struct ebb_type box_type = {
    .name = "box", .bytes = sizeof(struct box), .fields = box_fields, .field_count = 4};

int boxes_prepare(void **state) {
    (void)state;
    return ebb_type_register(&box_type);
}

struct box *box_in(ebb_region region) {
    struct box *box = ebb_object_new(region, &box_type, 0);
    assert_non_null(box);
    return box;
}

struct ebb_tensor *floats_in(ebb_region region, int64_t count) {
    struct ebb_tensor *tensor =
        ebb_tensor_new(region, (struct ebb_dtype){EBB_FLOAT, 32, 1}, 1, &count);
    assert_non_null(tensor);
    pattern_fill(tensor->data, (size_t)count * 4, (unsigned)count);
    return tensor;
}

bool floats_hold(const struct ebb_tensor *tensor, int64_t count) {
    return ebb_tensor_count(tensor) == count &&
           pattern_holds(tensor->data, (size_t)count * 4, (unsigned)count);
}

struct ebb_tensor *floats_of(ebb_region region, const struct ebb_tensor *base, int64_t from,
                             int64_t count) {
    int64_t stride = 1;
    struct ebb_tensor *view = ebb_tensor_view(region, base, 1, &count, &stride, from);
    assert_non_null(view);
    return view;
}

uint64_t live_in(ebb_region region) {
    struct ebb_object_counts counts;
    assert_int_equal(ebb_region_read_objects(region, EBB_OBJECT_ALL, &counts), 0);
    return counts.live;
}

bool is_object(const void *address) {
    return ebb_region_is_open(ebb_object_owner(address));
}
