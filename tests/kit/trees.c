// SPDX-License-Identifier: Apache-2.0
/* trees.c - see trees.h. */
#include "kit/trees.h"

#include <stdio.h>

struct own {
    struct ebb_object object;
    void *blob;
    size_t blob_bytes;
    void *inner; /* a tensor */
};

static const struct ebb_field own_fields[] = {
    EBB_FIELD_COUNTED(struct own, EBB_FIELD_BYTES, blob, blob_bytes),
    EBB_FIELD(struct own, EBB_FIELD_OBJECT, inner),
};

static struct ebb_type own_type = {
    .name = "own", .bytes = sizeof(struct own), .fields = own_fields, .field_count = 2};

struct ebb_type *tree_own_type(void) {
    assert_int_equal(ebb_type_register(&own_type), 0);
    return &own_type;
}

uint64_t dice_roll(struct dice *dice, uint64_t sides) {
    dice->state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = dice->state;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (mixed ^ (mixed >> 31)) % sides;
}

struct grower {
    ebb_region region;
    struct dice structure, values;
    enum tree_style style;
};

static void *grow(struct grower *grower, int depth);

/* ---- leaves ---- */

static struct ebb_dtype roll_dtype(struct dice *dice) {
    static const struct ebb_dtype dtypes[] = {{EBB_UINT, 8, 1},  {EBB_INT, 16, 1},
                                              {EBB_FLOAT, 32, 1}, {EBB_INT, 64, 1},
                                              {EBB_COMPLEX, 128, 1}, {EBB_BOOL, 8, 1}};
    return dtypes[dice_roll(dice, 6)];
}

static void fill(struct grower *grower, struct ebb_tensor *tensor) {
    unsigned char *byte = tensor->data;
    for (size_t i = 0; i < ebb_tensor_bytes(tensor); i++)
        byte[i] = (unsigned char)dice_roll(&grower->values, 256);
}

/* Sometimes seen with the last two dimensions exchanged. */
static struct ebb_tensor *turned(struct grower *grower, struct ebb_tensor *tensor) {
    int64_t shape[4], strides[4];
    int n = tensor->ndim;
    if (n < 2 || dice_roll(&grower->values, 3))
        return tensor;
    memcpy(shape, tensor->shape, sizeof *shape * (size_t)n);
    shape[n - 2] = tensor->shape[n - 1];
    shape[n - 1] = tensor->shape[n - 2];
    struct ebb_tensor *base = ebb_tensor_new(grower->region, tensor->dtype, n, shape);
    if (!base)
        return NULL;
    fill(grower, base);
    memcpy(strides, base->strides, sizeof *strides * (size_t)n);
    strides[n - 2] = base->strides[n - 1];
    strides[n - 1] = base->strides[n - 2];
    struct ebb_tensor *view =
        ebb_tensor_view(grower->region, base, n, tensor->shape, strides, 0);
    assert_int_equal(ebb_object_end(base), 0);
    assert_int_equal(ebb_object_end(tensor), 0);
    return view;
}

static struct ebb_tensor *grow_tensor(struct grower *grower, int ndim_least) {
    struct ebb_dtype dtype = roll_dtype(&grower->structure);
    int ndim = ndim_least + (int)dice_roll(&grower->structure, 3);
    int64_t shape[6];
    for (int i = 0; i < ndim; i++)
        shape[i] = (int64_t)dice_roll(&grower->structure, 12) - 1;
    for (int i = 0; i < ndim; i++)
        shape[i] = shape[i] < 0 ? (ndim > 2 ? 1 : 0) : shape[i] + 1;
    struct ebb_tensor *tensor = ebb_tensor_new(grower->region, dtype, ndim, shape);
    if (!tensor)
        return NULL;
    fill(grower, tensor);
    return turned(grower, tensor);
}

/* Images and masks are alike in shape; boxes and points differ in number and canvas. */
static void *grow_sample(struct grower *grower) {
    struct ebb_sample_info info = {.kind = (int32_t)dice_roll(&grower->structure, 4) + 1};
    struct ebb_tensor *tensor;
    if (info.kind <= EBB_SAMPLE_MASK) {
        info.kind = info.kind == EBB_SAMPLE_VIDEO ? EBB_SAMPLE_MASK : info.kind;
        tensor = grow_tensor(grower, 2);
    } else {
        bool boxes = dice_roll(&grower->structure, 2);
        info.kind = boxes ? EBB_SAMPLE_BOXES : EBB_SAMPLE_POINTS;
        info.format = boxes ? EBB_BOX_CXCYWHR : 0;
        info.canvas[0] = 1 + (int64_t)dice_roll(&grower->values, 1000);
        info.canvas[1] = 1 + (int64_t)dice_roll(&grower->values, 1000);
        tensor = ebb_tensor_new(
            grower->region, (struct ebb_dtype){EBB_FLOAT, 32, 1}, 2,
            (const int64_t[]){(int64_t)dice_roll(&grower->values, 7), boxes ? 5 : 2});
        if (tensor)
            fill(grower, tensor);
    }
    return tensor ? ebb_sample_new(grower->region, tensor, &info) : NULL;
}

static void *grow_own(struct grower *grower) {
    struct own *own = ebb_object_new(grower->region, tree_own_type(), 0);
    if (!own)
        return NULL;
    own->blob_bytes = dice_roll(&grower->structure, 3000);
    own->blob = ebb_region_alloc(grower->region, own->blob_bytes, 16);
    if (!own->blob)
        return NULL;
    pattern_fill(own->blob, own->blob_bytes, (unsigned)dice_roll(&grower->values, 100));
    own->inner = grow_tensor(grower, 0);
    return own->inner && ebb_object_compose(own) == 0 ? own : NULL;
}

static void *grow_leaf(struct grower *grower) {
    char text[40];
    switch (dice_roll(&grower->structure, grower->style == TREE_COLLATABLE ? 12 : 13)) {
    case 0:
        return ebb_node_new_none(grower->region);
    case 1:
        return ebb_node_new_bool(grower->region, dice_roll(&grower->values, 2));
    case 2:
        return ebb_node_new_integer(grower->region, (int64_t)dice_roll(&grower->values, 1 << 30));
    case 3:
        return ebb_node_new_real(grower->region, (double)dice_roll(&grower->values, 1000) / 7);
    case 4:
        snprintf(text, sizeof text, "text %u", (unsigned)dice_roll(&grower->values, 1u << 31));
        return ebb_node_new_string(grower->region, text);
    case 5:
        return ebb_node_new_bytes(grower->region, text, 0);
    case 6:
    case 7:
    case 8:
        return grow_tensor(grower, 0);
    case 12:
        return grow_own(grower);
    default:
        return grow_sample(grower);
    }
}

/* ---- inner nodes ---- */

enum { MEMBERS_MOST = 6 };

static void *grow_inner(struct grower *grower, int depth) {
    static const char *const keys[MEMBERS_MOST] = {"image", "a/b", "", "0", "größe", "k5"};
    int kind = EBB_NODE_LIST + (int)dice_roll(&grower->structure, 4);
    size_t count = dice_roll(&grower->structure, MEMBERS_MOST + 1);
    void *members[MEMBERS_MOST];
    for (size_t i = 0; i < count; i++)
        if (!(members[i] = grow(grower, depth - 1)))
            return NULL;
    switch (kind) {
    case EBB_NODE_LIST:
        return ebb_node_new_list(grower->region, members, count);
    case EBB_NODE_TUPLE:
        return ebb_node_new_tuple(grower->region, members, count);
    case EBB_NODE_DICT:
        return ebb_node_new_dict(grower->region, keys, members, count);
    default:
        return ebb_node_new_named_tuple(grower->region, "Row", keys, members, count);
    }
}

static void *grow(struct grower *grower, int depth) {
    if (depth == 0 || dice_roll(&grower->structure, 4) == 0)
        return grow_leaf(grower);
    return grow_inner(grower, depth);
}

void *tree_make(ebb_region region, uint64_t structure, uint64_t values, enum tree_style style) {
    struct grower grower = {region, {structure}, {values}, style};
    return grow_inner(&grower, 1 + (int)dice_roll(&grower.structure, 4));
}
