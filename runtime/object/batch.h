// SPDX-License-Identifier: Apache-2.0
/*
 * batch.h - the inside of nodes: names and bytes behind them.
 *
 *     | struct ebb_node | text, 0 |                                       string
 *     | struct ebb_node | bytes |                                         bytes
 *     | struct ebb_node | uint32_t at[count + 1] | name, 0, key, 0 ... |  dict, named tuple
 *
 * at[0] is where the name of the node begins ("" of a dict), at[i + 1] the key of member i, both
 * from the end of the struct. Nothing points there, so nothing has to be mended after a move.
 */
#ifndef EBB_OBJECT_BATCH_H
#define EBB_OBJECT_BATCH_H

#include "object/object.h"

#include <ebb/batch.h>

static inline bool object_is_node(const struct ebb_object *object) {
    return object->type == &ebb_type_node;
}

static inline char *node_bytes(const struct ebb_node *node) {
    return (char *)(node + 1);
}

static inline bool kind_has_names(int kind) {
    return kind == EBB_NODE_DICT || kind == EBB_NODE_NAMED_TUPLE;
}

static inline bool kind_has_members(int kind) {
    return kind >= EBB_NODE_LIST && kind <= EBB_NODE_DICT;
}

/* Name 0 is that of the node, name i + 1 that of member i. "" if there is none behind the node, of
 * which nobody who made it by hand was told. */
static inline const char *node_name_at(const struct ebb_node *node, size_t which) {
    uint32_t at = ((const uint32_t *)(const void *)node_bytes(node))[which];
    return at < node->byte_count ? node_bytes(node) + at : "";
}

/* True if the node has as many members and bytes as it says, and all that is said to end does: then
 * it can be read, although nobody may have composed it. Constant time. */
bool node_is_sound(const struct ebb_node *node);

/* What an error calls an object: the kind of a node, the name of its type otherwise. */
const char *object_kind_name(const struct ebb_object *object);

/* Place of the member of this name, `length` bytes of it; SIZE_MAX if there is none. */
size_t node_place(const struct ebb_node *node, const char *name, size_t length);

/*
 * A node without members yet, but with a block for `count` of them, and room for `bytes` behind
 * it. NULL with an error; it is part of an attempt (object/attempt.h), which then is undone.
 */
struct ebb_node *node_begin(ebb_region region, int kind, size_t count, size_t bytes);

/* Takes in the `count` members that the caller has written. 0 or the error of composing. */
int node_compose(struct ebb_node *node, size_t count);

#endif
