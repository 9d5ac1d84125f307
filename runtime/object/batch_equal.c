// SPDX-License-Identifier: Apache-2.0
/*
 * batch_equal.c - are two trees the same?
 *
 * Both are walked together. What nodes, samples and tensors hold besides their members is compared
 * here; members and blocks of bytes are compared by the field table, so any type can be a leaf.
 * Changes nothing; elements are compared in place, whatever their strides.
 *
 * What is in a field and no member, since nobody has composed it, is not followed: so this goes as
 * deep as composites do. Nor is a count that a block has no room for, nor are imported bytes that
 * their producer has back. Who compares is told.
 *
 * Fields of a composite may share a member, on each level, so there may be many more ways to an
 * object than objects. What was compared once counts as equal from then on, or the answer is known.
 * So do those that are equal to the same: `forward` leads from each to one for all of them, itself
 * if that is so. Each comparison takes one of them away; there are no more than objects. An object
 * is compared with itself, too, once: what cannot be compared with others is refused there as well.
 */
#include "base/error.h"
#include "object/batch.h"
#include "object/exchange.h"
#include "object/sample.h"

#include <ebb/ragged.h>

#include <string.h>

/* ---- tensors ---- */

/* Elements of a dimension to look at: one where they all lie on each other, in both. */
static int64_t count_apart(const struct ebb_tensor *left, const struct ebb_tensor *right,
                           int dimension) {
    return left->strides[dimension] || right->strides[dimension] ? left->shape[dimension] : 1;
}

/* The last dimension of both, from these on. */
static bool rows_equal(const struct ebb_tensor *left, const char *from_left,
                       const struct ebb_tensor *right, const char *from_right, size_t bytes) {
    int last = left->ndim - 1;
    int64_t count = left->ndim ? count_apart(left, right, last) : 1;
    int64_t step_left = left->ndim ? left->strides[last] : 1;
    int64_t step_right = left->ndim ? right->strides[last] : 1;
    if (step_left == 1 && step_right == 1)
        return memcmp(from_left, from_right, (size_t)count * bytes) == 0;
    for (int64_t i = 0; i < count; i++)
        if (memcmp(from_left + i * step_left * (int64_t)bytes,
                   from_right + i * step_right * (int64_t)bytes, bytes) != 0)
            return false;
    return true;
}

/* Goes to the next row of all dimensions but the last; false after the last one. */
static bool next_row(const struct ebb_tensor *left, const struct ebb_tensor *right,
                     int64_t *index) {
    for (int i = left->ndim - 2; i >= 0; i--) {
        if (++index[i] < count_apart(left, right, i))
            return true;
        index[i] = 0;
    }
    return false;
}

static const char *row_at(const struct ebb_tensor *tensor, const int64_t *index, size_t bytes) {
    int64_t offset = 0;
    for (int i = 0; i < tensor->ndim - 1; i++)
        offset += index[i] * tensor->strides[i];
    return (const char *)tensor->data + offset * (int64_t)bytes;
}

static bool tensors_equal(const struct ebb_tensor *left, const struct ebb_tensor *right) {
    int64_t index[EBB_DIMENSIONS_MAX] = {0};
    if (!ebb_dtype_equal(left->dtype, right->dtype) || left->ndim != right->ndim ||
        memcmp(left->shape, right->shape, sizeof *left->shape * (size_t)left->ndim) != 0)
        return false;
    if (ebb_tensor_count(left) == 0)
        return true;
    if (import_check(left->storage) != 0 || import_check(right->storage) != 0)
        return false;
    if (left == right)
        return true;
    size_t bytes = ebb_dtype_bytes(left->dtype);
    do {
        if (!rows_equal(left, row_at(left, index, bytes), right, row_at(right, index, bytes),
                        bytes))
            return false;
    } while (next_row(left, right, index));
    return true;
}

/* ---- heads: what an object holds besides its members ---- */

/* The object has so many bytes behind its struct; else false with an error. */
static bool has_behind(const struct ebb_object *object, size_t bytes) {
    struct object_place place;
    size_t room = object_block((uintptr_t)object, &place) - object->type->bytes;
    if (bytes <= room)
        return true;
    error_set(EBB_E_SIZE, "%s %p: %zu bytes behind it, room for %zu", object->type->name,
              (const void *)object, bytes, room);
    return false;
}

/* What lies behind both, as many bytes as the first says. */
static bool behind_equal(const struct ebb_object *left, const struct ebb_object *right,
                         size_t bytes) {
    return has_behind(left, bytes) && has_behind(right, bytes) &&
           memcmp((const char *)left + left->type->bytes, (const char *)right + right->type->bytes,
                  bytes) == 0;
}

static bool nodes_equal(const struct ebb_node *left, const struct ebb_node *right) {
    return left->kind == right->kind && left->truth == right->truth &&
           left->integer == right->integer &&
           memcmp(&left->real, &right->real, sizeof left->real) == 0 &&
           left->byte_count == right->byte_count &&
           behind_equal(&left->object, &right->object, left->byte_count);
}

static bool samples_equal(const struct ebb_sample *left, const struct ebb_sample *right) {
    return left->kind == right->kind && left->format == right->format &&
           left->clamping == right->clamping && left->canvas[0] == right->canvas[0] &&
           left->canvas[1] == right->canvas[1] && left->byte_count == right->byte_count &&
           behind_equal(&left->object, &right->object, left->byte_count);
}

/* Sequences that are empty, and what padding gives, are in no member. */
static bool packed_equal(const struct ebb_packed *left, const struct ebb_packed *right) {
    return left->count == right->count && left->padded_length == right->padded_length;
}

static bool ragged_equal(const struct ebb_ragged *left, const struct ebb_ragged *right) {
    return left->count == right->count && left->padded_length == right->padded_length;
}

static bool heads_equal(const struct ebb_object *left, const struct ebb_object *right) {
    const void *a = left, *b = right;
    if (left->type != right->type)
        return false;
    if (object_is_tensor(left))
        return tensors_equal(a, b);
    if (object_is_node(left))
        return nodes_equal(a, b);
    if (left->type == &ebb_type_sample)
        return samples_equal(a, b);
    if (left->type == &ebb_type_packed)
        return packed_equal(a, b);
    return left->type != &ebb_type_ragged || ragged_equal(a, b);
}

/* ---- trees ---- */

static bool trees_equal(struct ebb_object *left, struct ebb_object *right);

/* True if `address` is a member or NULL; else false with an error. */
static bool may_follow(const struct ebb_object *whole, const struct ebb_field *field,
                       const void *address) {
    if (!address || compose_has(whole, address))
        return true;
    error_set(EBB_E_NOT_OWNED, "field '%s' of %s %p: %p was not composed", field->name,
              whole->type->name, (const void *)whole, address);
    return false;
}

static bool members_equal(const struct ebb_object *left, void *a, const struct ebb_object *right,
                          void *b, const struct ebb_field *field) {
    return may_follow(left, field, a) && may_follow(right, field, b) && trees_equal(a, b);
}

/* Is the block of a counted field one of the object's, and as long as the count says? */
static bool has_block(const struct ebb_object *object, const struct ebb_field *field) {
    return compose_check_block(object, object_host(object), field) == 0;
}

static bool blocks_equal(struct ebb_object *left, struct ebb_object *right,
                         const struct ebb_field *field) {
    size_t count = field_count(left, field);
    if (count != field_count(right, field))
        return false;
    if (count == 0)
        return true;
    if (!has_block(left, field) || !has_block(right, field))
        return false;
    void **a = *field_place(left, field), **b = *field_place(right, field);
    if (field->kind == EBB_FIELD_BYTES)
        return memcmp(a, b, count) == 0;
    for (size_t i = 0; i < count; i++)
        if (!members_equal(left, a[i], right, b[i], field))
            return false;
    return true;
}

static bool fields_equal(struct ebb_object *left, struct ebb_object *right,
                         const struct ebb_field *field) {
    if (field->kind != EBB_FIELD_OBJECT)
        return blocks_equal(left, right, field);
    return members_equal(left, *field_place(left, field), right, *field_place(right, field), field);
}

/* The one for all that count as equal to the object. */
static struct ebb_object *one_for(struct ebb_object *object) {
    struct ebb_object *one = object, *next;
    while (one->forward && one->forward != one)
        one = one->forward;
    for (; object != one; object = next) {
        next = object->forward;
        object->forward = one;
    }
    one->forward = one;
    return one;
}

/* From here on they count as equal; false if they did before: both were looked at. */
static bool join(struct ebb_object *left, struct ebb_object *right) {
    bool is_first = left == right && !left->forward;
    struct ebb_object *one = one_for(left), *other = one_for(right);
    one->forward = other;
    return one != other || is_first;
}

static bool trees_equal(struct ebb_object *left, struct ebb_object *right) {
    if (!left || !right)
        return left == right;
    if (!join(left, right))
        return true;
    if (!heads_equal(left, right))
        return false;
    for (size_t i = 0; i < left->type->field_count; i++)
        if (!fields_equal(left, right, &left->type->fields[i]))
            return false;
    return true;
}

/* What is marked was reached through what is marked. */
static void unmark(struct ebb_object *object) {
    void **members;
    if (!object->forward)
        return;
    object->forward = NULL;
    for (size_t i = 0; i < object->type->field_count; i++) {
        size_t count = compose_members(object, &object->type->fields[i], &members);
        for (size_t at = 0; at < count; at++)
            if (compose_has(object, members[at]))
                unmark(members[at]);
    }
}

bool ebb_batch_equal(const void *left, const void *right) {
    struct object_place a, b;
    if (object_find(left, &a) != 0 || object_find(right, &b) != 0)
        return false;
    if (object_check_staying(a.object) != 0 || object_check_staying(b.object) != 0)
        return false;
    if (compose_depth(a.object) > EBB_DEPTH_MAX) { /* what was lost was found again further down */
        error_set(EBB_E_DEPTH, "%s %p: objects nested more than %d deep", a.object->type->name,
                  left, EBB_DEPTH_MAX);
        return false;
    }
    bool equal = trees_equal(a.object, b.object);
    unmark(a.object);
    unmark(b.object);
    return equal;
}
