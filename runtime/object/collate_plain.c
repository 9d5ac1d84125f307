// SPDX-License-Identifier: Apache-2.0
/*
 * collate_plain.c - leaves that are values: numbers become a tensor, texts a list.
 *
 * Invariant: all nodes of a column are of one kind, so the first says what the result is.
 */
#include "object/collate.h"

#include <string.h>

bool collate_is_plain(const struct ebb_object *object) {
    return object_is_node(object) && !kind_has_members(((const struct ebb_node *)object)->kind);
}

bool collate_becomes_list(const struct ebb_object *object) {
    int kind = ((const struct ebb_node *)object)->kind;
    return kind == EBB_NODE_STRING || kind == EBB_NODE_BYTES;
}

static struct ebb_dtype dtype_of(int kind) {
    struct ebb_dtype dtype = {EBB_INT, 64, 1};
    if (kind == EBB_NODE_REAL)
        dtype.code = EBB_FLOAT;
    if (kind == EBB_NODE_BOOL)
        dtype = (struct ebb_dtype){EBB_BOOL, 8, 1};
    return dtype;
}

static void *build_numbers(const struct collation *collation, void *const *column, int kind) {
    const int64_t shape[] = {(int64_t)collation->count};
    struct ebb_tensor *tensor = ebb_tensor_new(collation->region, dtype_of(kind), 1, shape);
    for (size_t i = 0; tensor && i < collation->count; i++) {
        const struct ebb_node *node = column[i];
        if (kind == EBB_NODE_REAL)
            ((double *)tensor->data)[i] = node->real;
        else if (kind == EBB_NODE_INTEGER)
            ((int64_t *)tensor->data)[i] = node->integer;
        else
            ((unsigned char *)tensor->data)[i] = node->truth != 0;
    }
    return tensor;
}

/* To its end, whatever its bytes are: a string that the program made itself may have a 0 inside. */
static struct ebb_node *copy_text(const struct collation *collation, const struct ebb_node *node) {
    size_t bytes = node->byte_count + (node->kind == EBB_NODE_STRING);
    struct ebb_node *copy = ebb_object_new(collation->region, &ebb_type_node, bytes);
    if (!copy)
        return NULL;
    memcpy(node_bytes(copy), node_bytes(node), bytes);
    copy->kind = node->kind;
    copy->byte_count = node->byte_count;
    return copy;
}

static void *build_texts(const struct collation *collation, void *const *column) {
    struct ebb_node *list = node_begin(collation->region, EBB_NODE_LIST, collation->count, 0);
    for (size_t i = 0; list && i < collation->count; i++) {
        list->members[i] = copy_text(collation, column[i]);
        if (!list->members[i])
            return NULL;
    }
    return list && node_compose(list, collation->count) == 0 ? list : NULL;
}

void *collate_build_plain(struct collation *collation, void *const *column) {
    int kind = ((const struct ebb_node *)column[0])->kind;
    if (kind == EBB_NODE_NONE)
        return ebb_node_new_none(collation->region);
    if (collate_becomes_list(column[0]))
        return build_texts(collation, column);
    return build_numbers(collation, column, kind);
}
