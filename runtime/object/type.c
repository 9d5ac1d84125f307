// SPDX-License-Identifier: Apache-2.0
/*
 * type.c - registered types. A type stays registered for the life of the process, so the module
 * that it is part of stays loaded.
 *
 * Invariant: types[k]->kind == k for every k below `count`; both only grow, and an entry is
 * written before the count that covers it. Refuses descriptions that could not be walked safely.
 */
#include "base/error.h"
#include "base/module.h"
#include "object/batch.h"
#include "object/object.h"
#include "object/registry.h"
#include "object/sample.h"

#include <ebb/ragged.h>

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

static_assert(EBB_OBJECT_KINDS_MAX == POOL_KINDS, "each kind has its counters");
static_assert(sizeof(struct ebb_object) == 64, "the head of an object is a cache line");

static const struct ebb_type *types[EBB_OBJECT_KINDS_MAX] = {
    &ebb_type_tensor, &ebb_type_sample, &ebb_type_node, &ebb_type_packed, &ebb_type_ragged};
static atomic_uint count = 5; /* ebb's own */

bool type_is_registered(const struct ebb_type *type) {
    /* acquire: the entries below the count are seen */
    unsigned known = atomic_load_explicit(&count, memory_order_acquire);
    for (unsigned kind = 0; kind < known; kind++)
        if (types[kind] == type)
            return true;
    return false;
}

const struct ebb_type *type_named(const char *name, size_t length, const struct ebb_type *after) {
    /* acquire: as above */
    unsigned known = atomic_load_explicit(&count, memory_order_acquire);
    for (unsigned kind = after ? after->kind + 1 : 0; kind < known; kind++)
        if (strlen(types[kind]->name) == length && memcmp(types[kind]->name, name, length) == 0)
            return types[kind];
    return NULL;
}

static bool fits(size_t offset, size_t bytes, size_t struct_bytes) {
    return offset >= sizeof(struct ebb_object) && offset % bytes == 0 &&
           bytes <= struct_bytes && offset <= struct_bytes - bytes;
}

static bool is_counted(const struct ebb_field *field) {
    return field->kind != EBB_FIELD_OBJECT;
}

static int check_field(const struct ebb_type *type, const struct ebb_field *field) {
    if (!field->name || field->kind < EBB_FIELD_OBJECT || field->kind > EBB_FIELD_BYTES)
        return error_set(EBB_E_TYPE, "type '%s': a field has no name or kind %d", type->name,
                         (int)field->kind);
    if (!fits(field->offset, sizeof(void *), type->bytes) ||
        (is_counted(field) && !fits(field->count_offset, sizeof(size_t), type->bytes)))
        return error_set(EBB_E_TYPE, "type '%s': field '%s' at %zu, count at %zu, of %zu bytes",
                         type->name, field->name, field->offset, field->count_offset,
                         type->bytes);
    return 0;
}

/* Fields may share a count, but no pointer is a count or another field's. Reports and other
 * processes know fields by their names. */
static int check_apart(const struct ebb_type *type, size_t at) {
    const struct ebb_field *field = &type->fields[at];
    for (size_t i = 0; i < type->field_count; i++) {
        const struct ebb_field *other = &type->fields[i];
        if ((i != at && other->offset == field->offset) ||
            (is_counted(other) && other->count_offset == field->offset))
            return error_set(EBB_E_TYPE, "type '%s': fields '%s' and '%s' share the word at %zu",
                             type->name, field->name, other->name, field->offset);
        if (i > at && strcmp(other->name, field->name) == 0)
            return error_set(EBB_E_TYPE, "type '%s': fields %zu and %zu are both called '%s'",
                             type->name, at, i, field->name);
    }
    return 0;
}

static int check_type(const struct ebb_type *type) {
    if (!type || !type->name || type->bytes < sizeof(struct ebb_object) ||
        type->bytes > EBB_SIZE_MAX / 2 || (type->field_count && !type->fields))
        return error_set(EBB_E_TYPE, "type '%s': %zu bytes, %zu fields",
                         type && type->name ? type->name : "", type ? type->bytes : 0,
                         type ? type->field_count : 0);
    for (size_t i = 0; i < type->field_count; i++) {
        int result = check_field(type, &type->fields[i]);
        if (result)
            return result;
    }
    for (size_t i = 0; i < type->field_count; i++)
        if (check_apart(type, i) != 0)
            return error_latest();
    return 0;
}

/* The lock is held. */
static int add(struct ebb_type *type) {
    unsigned known = atomic_load_explicit(&count, memory_order_relaxed);
    if (known == EBB_OBJECT_KINDS_MAX)
        return error_set(EBB_E_TYPE, "type '%s': %u kinds exist", type->name, known);
    type->kind = known;
    types[known] = type;
    atomic_store_explicit(&count, known + 1, memory_order_release);
    return 0;
}

int ebb_type_register(struct ebb_type *type) {
    int result = check_type(type);
    if (result)
        return result;
    registry_lock();
    bool is_new = !type_is_registered(type);
    if (is_new)
        result = add(type);
    registry_unlock();
    if (is_new && result == 0)
        module_keep(type); /* a plugin's: objects and those who receive them are led there */
    return result;
}
