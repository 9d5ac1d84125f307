// SPDX-License-Identifier: Apache-2.0
/*
 * batch.c - making the nodes of a tree (see ebb/batch.h).
 *
 * A node is a block, and one more for the pointers to its members. Until the members are taken in
 * its count is 0, so that ending it ends nothing but itself. Refuses members that are no objects of
 * the region, and names that come twice.
 */
#include "object/batch.h"
#include "base/error.h"
#include "region/block.h"
#include "object/attempt.h"

#include <string.h>

/* ---- the type ---- */

static const struct ebb_field fields[] = {
    EBB_FIELD_COUNTED(struct ebb_node, EBB_FIELD_OBJECTS, members, count),
};

/* Bytes of the table that says where the names begin, one for the node and each member. */
static size_t table_bytes(const struct ebb_node *node) {
    return node->count < UINT32_MAX / 8 ? (node->count + 1) * sizeof(uint32_t) : SIZE_MAX;
}

/* Is there an end behind `bytes` bytes behind the node? */
static bool ends_at(const struct ebb_node *node, size_t bytes) {
    return node_bytes(node)[bytes] == '\0';
}

bool node_is_sound(const struct ebb_node *node) {
    struct object_place place;
    if (node->count && !kind_has_members(node->kind))
        return false;
    if (node->kind >= EBB_NODE_NONE && node->kind <= EBB_NODE_REAL)
        return !node->byte_count;
    size_t room = object_block((uintptr_t)node, &place) - sizeof *node;
    if (node->kind < EBB_NODE_NONE || node->kind > EBB_NODE_DICT || node->byte_count > room)
        return false;
    if (node->kind == EBB_NODE_STRING)
        return node->byte_count < room && ends_at(node, node->byte_count);
    if (kind_has_names(node->kind) &&
        (node->byte_count <= table_bytes(node) || !ends_at(node, node->byte_count - 1)))
        return false;
    return !kind_has_members(node->kind) || !node->count ||
           compose_has_room(place.host, node->members, node->count);
}

/* Does each name begin behind the table? */
static bool has_names(const struct ebb_node *node) {
    const uint32_t *at = (const uint32_t *)(const void *)node_bytes(node);
    for (size_t i = 0; kind_has_names(node->kind) && i <= node->count; i++)
        if (at[i] < table_bytes(node) || at[i] >= node->byte_count)
            return false;
    return true;
}

/* A member that comes twice would be two of a batch, and on each level twice as many. They are live
 * objects; ebb's own pointer of one is free to mark it while nothing else happens. */
static int check_members_differ(const struct ebb_node *node) {
    struct ebb_object *const *members = (struct ebb_object *const *)node->members;
    size_t count = kind_has_members(node->kind) ? node->count : 0, marked = 0;
    int result = 0;
    for (; marked < count && !result; marked++)
        if (members[marked] && members[marked]->forward)
            result = error_set(EBB_E_DUPLICATE, "member %zu, %s %p, comes twice", marked,
                               object_kind_name(members[marked]), (void *)members[marked]);
        else if (members[marked])
            members[marked]->forward = members[marked];
    while (marked > 0)
        if (members[--marked])
            members[marked]->forward = NULL;
    return result;
}

/* Of every node that is composed, however it was made. */
static int check_node(const struct ebb_object *object) {
    const struct ebb_node *node = (const struct ebb_node *)object;
    struct object_place place;
    if (node_is_sound(node) && has_names(node))
        return check_members_differ(node);
    return error_set(EBB_E_TYPE, "node %p: kind %d, %zu members, %zu bytes, room for %zu",
                     (const void *)object, node->kind, node->count, node->byte_count,
                     object_block((uintptr_t)object, &place) - sizeof *node);
}


struct ebb_type ebb_type_node = {.name = "node",
                                 .bytes = sizeof(struct ebb_node),
                                 .fields = fields,
                                 .field_count = 1,
                                 .check = check_node,
                                 .kind = EBB_OBJECT_NODE};

/* ---- leaves ---- */

static struct ebb_node *new_leaf(ebb_region region, int kind, size_t bytes) {
    struct ebb_node *node = ebb_object_new(region, &ebb_type_node, bytes);
    if (node)
        node->kind = kind;
    return node;
}

struct ebb_node *ebb_node_new_none(ebb_region region) {
    return new_leaf(region, EBB_NODE_NONE, 0);
}

struct ebb_node *ebb_node_new_bool(ebb_region region, bool value) {
    struct ebb_node *node = new_leaf(region, EBB_NODE_BOOL, 0);
    if (node)
        node->truth = value;
    return node;
}

struct ebb_node *ebb_node_new_integer(ebb_region region, int64_t value) {
    struct ebb_node *node = new_leaf(region, EBB_NODE_INTEGER, 0);
    if (node)
        node->integer = value;
    return node;
}

struct ebb_node *ebb_node_new_real(ebb_region region, double value) {
    struct ebb_node *node = new_leaf(region, EBB_NODE_REAL, 0);
    if (node)
        node->real = value;
    return node;
}

struct ebb_node *ebb_node_new_string(ebb_region region, const char *text) {
    if (!text) {
        error_set(EBB_E_ARGUMENT, "the text of a string is NULL");
        return NULL;
    }
    size_t count = strlen(text);
    struct ebb_node *node = new_leaf(region, EBB_NODE_STRING, count + 1);
    if (!node)
        return NULL;
    memcpy(node_bytes(node), text, count + 1);
    node->byte_count = count;
    return node;
}

struct ebb_node *ebb_node_new_bytes(ebb_region region, const void *bytes, size_t count) {
    if (!bytes && count) {
        error_set(EBB_E_ARGUMENT, "%zu bytes at NULL", count);
        return NULL;
    }
    struct ebb_node *node = new_leaf(region, EBB_NODE_BYTES, count);
    if (!node)
        return NULL;
    if (count)
        memcpy(node_bytes(node), bytes, count);
    node->byte_count = count;
    return node;
}

/* ---- names ---- */

/* What the names of a node are to be. */
struct names {
    const char *name;        /* of the node; NULL: its members have no names */
    const char *const *keys; /* of the members */
    size_t bytes;            /* that they need behind the node */
};

static int check_key(const struct names *names, size_t at) {
    if (!names->keys[at])
        return error_set(EBB_E_ARGUMENT, "name %zu is NULL", at);
    for (size_t i = 0; i < at; i++)
        if (strcmp(names->keys[i], names->keys[at]) == 0)
            return error_set(EBB_E_DUPLICATE, "'%.40s' is the name of members %zu and %zu",
                             names->keys[at], i, at);
    return 0;
}

/* Checks the names and says how many bytes they need. */
static int measure(struct names *names, size_t count) {
    size_t bytes = 0;
    if (!names->name)
        return 0;
    if (count && !names->keys)
        return error_set(EBB_E_ARGUMENT, "the names of %zu members are NULL", count);
    for (size_t at = 0; at < count; at++) {
        int result = check_key(names, at);
        if (result)
            return result;
        bytes += strlen(names->keys[at]) + 1; /* all of them are in memory */
    }
    bytes += strlen(names->name) + 1;
    if (count >= UINT32_MAX / 8 || bytes > UINT32_MAX / 2)
        return error_set(EBB_E_SIZE, "%zu names of %zu bytes are too many", count, bytes);
    names->bytes = (count + 1) * sizeof(uint32_t) + bytes;
    return 0;
}

static void write_names(struct ebb_node *node, const struct names *names, size_t count) {
    uint32_t *at = (uint32_t *)(void *)node_bytes(node);
    uint32_t offset = (uint32_t)((count + 1) * sizeof *at);
    for (size_t i = 0; i <= count; i++) {
        const char *name = i ? names->keys[i - 1] : names->name;
        size_t bytes = strlen(name) + 1;
        at[i] = offset;
        memcpy(node_bytes(node) + offset, name, bytes);
        offset += (uint32_t)bytes;
    }
    node->byte_count = offset;
}

/* ---- inner nodes ---- */

/* A block of the region, like those of its objects. */
static void **new_pointers(ebb_region region, size_t count) {
    size_t bytes;
    if (!size_multiply(count, sizeof(void *), &bytes)) {
        error_set(EBB_E_SIZE, "%zu pointers overflow", count);
        return NULL;
    }
    void **pointers = block_for_object((struct region *)region.lane, bytes, EBB_GRANULE,
                                       __builtin_return_address(0));
    if (pointers)
        memset(pointers, 0, bytes);
    return pointers;
}

struct ebb_node *node_begin(ebb_region region, int kind, size_t count, size_t bytes) {
    struct ebb_node *node = new_leaf(region, kind, bytes);
    if (!node || count == 0)
        return node;
    node->members = new_pointers(region, count);
    return node->members ? node : NULL;
}

int node_compose(struct ebb_node *node, size_t count) {
    node->count = count;
    int result = ebb_object_compose(node);
    if (result)
        node->count = 0;
    return result;
}

/* 0 if the members are there. What they are is looked at when they are taken in. */
static int check_members(void *const *members, size_t count) {
    if (count && !members)
        return error_set(EBB_E_ARGUMENT, "the list of %zu members is NULL", count);
    for (size_t at = 0; at < count; at++)
        if (!members[at])
            return error_set(EBB_E_ARGUMENT, "member %zu is NULL", at);
    return 0;
}

static struct ebb_node *new_inner(ebb_region region, int kind, struct names *names,
                                  void *const *members, size_t count) {
    struct attempt attempt;
    if (measure(names, count) != 0 || check_members(members, count) != 0 ||
        !attempt_begin(&attempt, region))
        return NULL;
    struct ebb_node *node = node_begin(region, kind, count, names->bytes);
    if (node && names->name)
        write_names(node, names, count);
    if (node && count)
        memcpy(node->members, members, count * sizeof *members);
    if (node && node_compose(node, count) == 0)
        return node;
    attempt_abandon(&attempt);
    return NULL;
}

struct ebb_node *ebb_node_new_list(ebb_region region, void *const *members, size_t count) {
    return new_inner(region, EBB_NODE_LIST, &(struct names){0}, members, count);
}

struct ebb_node *ebb_node_new_tuple(ebb_region region, void *const *members, size_t count) {
    return new_inner(region, EBB_NODE_TUPLE, &(struct names){0}, members, count);
}

struct ebb_node *ebb_node_new_named_tuple(ebb_region region, const char *name,
                                          const char *const *field_names, void *const *members,
                                          size_t count) {
    struct names names = {.name = name, .keys = field_names};
    if (name)
        return new_inner(region, EBB_NODE_NAMED_TUPLE, &names, members, count);
    error_set(EBB_E_ARGUMENT, "the name of a named tuple is NULL");
    return NULL;
}

struct ebb_node *ebb_node_new_dict(ebb_region region, const char *const *keys,
                                   void *const *members, size_t count) {
    struct names names = {.name = "", .keys = keys};
    return new_inner(region, EBB_NODE_DICT, &names, members, count);
}
