// SPDX-License-Identifier: Apache-2.0
/*
 * batch_read.c - what is in a tree: members by place, key and path; values.
 *
 * Every address is looked up before it is believed, members too: their composite may have lost
 * them. Nothing here changes anything. Refuses to read a kind as another.
 */
#include "base/error.h"
#include "object/batch.h"
#include "object/sample.h"

#include <string.h>

/* ---- kinds ---- */

const char *ebb_node_kind_name(int kind) {
    static const char *const names[] = {"unknown", "none", "bool",  "integer",     "real", "string",
                                        "bytes",   "list", "tuple", "named tuple", "dict"};
    return kind >= EBB_NODE_NONE && kind <= EBB_NODE_DICT ? names[kind] : names[0];
}

const char *object_kind_name(const struct ebb_object *object) {
    if (object_is_node(object))
        return ebb_node_kind_name(((const struct ebb_node *)object)->kind);
    if (object->type == &ebb_type_sample)
        return ebb_sample_kind_name(((const struct ebb_sample *)object)->kind);
    return object->type->name;
}

int ebb_node_kind(const void *address) {
    struct object_place place;
    if (object_find(address, &place) != 0 || !object_is_node(place.object))
        return 0;
    return ((const struct ebb_node *)place.object)->kind;
}

/* The live node at an address; NULL with an error. */
static const struct ebb_node *node_find(const void *address) {
    struct object_place place;
    if (object_find(address, &place) != 0)
        return NULL;
    const struct ebb_node *node = (const struct ebb_node *)place.object;
    if (!object_is_node(place.object))
        error_set(EBB_E_TYPE, "%s %p is no node", object_kind_name(place.object), address);
    else if (!node_is_sound(node))
        error_set(EBB_E_TYPE, "node %p, kind %d: %zu members and %zu bytes are not there", address,
                  node->kind, node->count, node->byte_count);
    else
        return node;
    return NULL;
}

/* The node if it is of this kind, or one with members if `kind` is 0; NULL with an error. */
static const struct ebb_node *find_kind(const void *address, int kind) {
    const struct ebb_node *node = node_find(address);
    if (!node || (kind ? node->kind == kind : kind_has_members(node->kind)))
        return node;
    error_set(EBB_E_TYPE, "%s %p, %s is needed", ebb_node_kind_name(node->kind), address,
              kind ? ebb_node_kind_name(kind) : "a node with members");
    return NULL;
}

/* ---- members ---- */

size_t ebb_node_count(const void *address) {
    const struct ebb_node *node = find_kind(address, 0);
    return node ? node->count : 0;
}

static void *member_at(const struct ebb_node *node, size_t place) {
    if (place >= node->count)
        error_set(EBB_E_ARGUMENT, "%s of %zu members has no place %zu",
                  ebb_node_kind_name(node->kind), node->count, place);
    else if (!node->members[place])
        error_set(EBB_E_RELEASED, "%s of %zu members: member %zu was ended",
                  ebb_node_kind_name(node->kind), node->count, place);
    else if (!compose_has(&node->object, node->members[place]))
        error_set(EBB_E_NOT_OWNED, "%s of %zu members: member %zu, %p, was not composed",
                  ebb_node_kind_name(node->kind), node->count, place, node->members[place]);
    else
        return node->members[place];
    return NULL;
}

size_t node_place(const struct ebb_node *node, const char *name, size_t length) {
    for (size_t i = 0; kind_has_names(node->kind) && i < node->count; i++) {
        const char *key = node_name_at(node, i + 1);
        if (strncmp(key, name, length) == 0 && key[length] == '\0')
            return i;
    }
    return SIZE_MAX;
}

void *ebb_node_at(const void *address, size_t place) {
    const struct ebb_node *node = find_kind(address, 0);
    return node ? member_at(node, place) : NULL;
}

void *ebb_node_find(const void *address, const char *key) {
    const struct ebb_node *node = find_kind(address, 0);
    size_t place = node && key ? node_place(node, key, strlen(key)) : SIZE_MAX;
    if (place != SIZE_MAX)
        return member_at(node, place);
    if (node)
        error_set(EBB_E_ARGUMENT, "%s of %zu members has no '%.40s'",
                  ebb_node_kind_name(node->kind), node->count, key ? key : "");
    return NULL;
}

/* A place that is written as a number; SIZE_MAX if it is none. */
static size_t read_place(const char *text, size_t length) {
    size_t place = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] < '0' || text[i] > '9' ||
            __builtin_mul_overflow(place, (size_t)10, &place) ||
            __builtin_add_overflow(place, (size_t)(text[i] - '0'), &place))
            return SIZE_MAX;
    return length ? place : SIZE_MAX;
}

/* One step of a path: a key, a field name or a place. */
static void *step(const struct ebb_node *node, const char *part, size_t length) {
    size_t place = node_place(node, part, length);
    if (place == SIZE_MAX && node->kind != EBB_NODE_DICT)
        place = read_place(part, length);
    if (place < node->count)
        return member_at(node, place);
    error_set(EBB_E_ARGUMENT, "%s of %zu members has no '%.*s'", ebb_node_kind_name(node->kind),
              node->count, length < 40 ? (int)length : 40, part);
    return NULL;
}

void *ebb_node_get(const void *address, const char *path) {
    struct object_place found;
    void *at = object_find(address, &found) == 0 ? found.object : NULL;
    if (at && !path) {
        error_set(EBB_E_ARGUMENT, "the path is NULL");
        return NULL;
    }
    for (const char *part = at && *path ? path : NULL; at && part;) {
        const struct ebb_node *node = find_kind(at, 0);
        size_t length = strcspn(part, "/");
        at = node ? step(node, part, length) : NULL;
        part = part[length] ? part + length + 1 : NULL;
    }
    return at;
}

/* ---- names ---- */

const char *ebb_node_key(const void *address, size_t place) {
    const struct ebb_node *node = find_kind(address, 0);
    if (!node)
        return NULL;
    if (kind_has_names(node->kind) && place < node->count)
        return node_name_at(node, place + 1);
    error_set(kind_has_names(node->kind) ? EBB_E_ARGUMENT : EBB_E_TYPE,
              "%s of %zu members has no name at %zu", ebb_node_kind_name(node->kind), node->count,
              place);
    return NULL;
}

const char *ebb_node_name(const void *address) {
    const struct ebb_node *node = find_kind(address, EBB_NODE_NAMED_TUPLE);
    return node ? node_name_at(node, 0) : NULL;
}

/* ---- values ---- */

/* The node if it is of this kind and there is somewhere to write; 0 or an error. */
static int find_value(const void *address, int kind, const void *value,
                      const struct ebb_node **node) {
    *node = find_kind(address, kind);
    if (!*node)
        return error_latest();
    return value ? 0 : error_set(EBB_E_ARGUMENT, "nowhere to write to: value is NULL");
}

int ebb_node_read_bool(const void *address, bool *value) {
    const struct ebb_node *node;
    int result = find_value(address, EBB_NODE_BOOL, value, &node);
    if (!result)
        *value = node->truth != 0;
    return result;
}

int ebb_node_read_integer(const void *address, int64_t *value) {
    const struct ebb_node *node;
    int result = find_value(address, EBB_NODE_INTEGER, value, &node);
    if (!result)
        *value = node->integer;
    return result;
}

int ebb_node_read_real(const void *address, double *value) {
    const struct ebb_node *node;
    int result = find_value(address, EBB_NODE_REAL, value, &node);
    if (!result)
        *value = node->real;
    return result;
}

const char *ebb_node_string(const void *address) {
    const struct ebb_node *node = find_kind(address, EBB_NODE_STRING);
    return node ? node_bytes(node) : NULL;
}

const void *ebb_node_bytes(const void *address, size_t *count) {
    const struct ebb_node *node = find_kind(address, EBB_NODE_BYTES);
    if (node && count)
        *count = node->byte_count;
    return node ? node_bytes(node) : NULL;
}
