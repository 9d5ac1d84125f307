// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/batch.h - batches: trees of tensors, samples and plain values.
 *
 * What a loader hands to a step is seldom one tensor. It is a dictionary of images, boxes and
 * labels, or a list of tuples. Here such a tree is one object: it is promoted, moved, printed and
 * collated as a whole and keeps its structure. A tuple stays a tuple, a dictionary keeps its order.
 *
 *     dict { "image": sample, "target": named tuple Target { boxes: sample, id: 17 } }
 *
 * Inner nodes are dict, list, tuple and named tuple. Leaves are none, bool, integer, real, string
 * and bytes, which are nodes, too, and any other object: tensors, samples, packed sequences, types
 * of your own. A node never changes; its members are made first, in the same region, and belong
 * to it from then on.
 *
 * Functions that read take any object and say EBB_E_TYPE, with both kinds, if it is not of the kind
 * that they read, or is a node made by hand that claims more than its block holds. One thread at a
 * time for the regions concerned.
 */
#ifndef EBB_BATCH_H
#define EBB_BATCH_H

#include <ebb/object.h>
#include <ebb/report.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ebb_node_kind {
    EBB_NODE_NONE = 1,
    EBB_NODE_BOOL = 2,
    EBB_NODE_INTEGER = 3,
    EBB_NODE_REAL = 4,
    EBB_NODE_STRING = 5,
    EBB_NODE_BYTES = 6,
    EBB_NODE_LIST = 7,
    EBB_NODE_TUPLE = 8,
    EBB_NODE_NAMED_TUPLE = 9,
    EBB_NODE_DICT = 10
};

/* A node. Read only, better with the functions below. Names and bytes lie behind it. */
struct ebb_node {
    struct ebb_object object;
    void **members;    /* [count] objects; NULL: was ended alone */
    size_t count;      /* of members */
    size_t byte_count; /* of a string without its final 0, of bytes, of all names */
    int32_t kind;      /* enum ebb_node_kind */
    int32_t truth;     /* of a bool */
    int64_t integer;
    double real;
};

/* The type of nodes; kind 2 of all counters. */
EBB_API extern struct ebb_type ebb_type_node;
#define EBB_OBJECT_NODE 2u

/*
 * Leaves. Strings and bytes are copied. Valid until: ebb_object_end(), the end of the owner. NULL
 * on failure: EBB_E_ARGUMENT (NULL text or bytes), and the errors of ebb_object_new().
 */
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_none(ebb_region region);
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_bool(ebb_region region, bool value);
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_integer(ebb_region region, int64_t value);
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_real(ebb_region region, double value);
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_string(ebb_region region, const char *text);
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_bytes(ebb_region region, const void *bytes,
                                                          size_t count);

/*
 * Inner nodes of `count` members, in this order: objects that `region` hosts and owns. Keys and
 * names [count] are copied; those of one node must differ. Time is that of ebb_object_compose()
 * and, with names, the square of their number. NULL on failure, without effect: EBB_E_ARGUMENT (a
 * member or name is NULL), EBB_E_DUPLICATE (a key or a member comes twice), EBB_E_DEPTH, and the
 * errors of ebb_object_compose() and ebb_object_new().
 */
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_list(ebb_region region, void *const *members,
                                                         size_t count);
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_tuple(ebb_region region, void *const *members,
                                                          size_t count);
EBB_API EBB_NODISCARD struct ebb_node *
ebb_node_new_named_tuple(ebb_region region, const char *name, const char *const *fields,
                         void *const *members, size_t count);
EBB_API EBB_NODISCARD struct ebb_node *ebb_node_new_dict(ebb_region region,
                                                         const char *const *keys,
                                                         void *const *members, size_t count);

/* enum ebb_node_kind of a live node; 0 for every other object, with an error if it is not live. */
EBB_API int ebb_node_kind(const void *object);

/* "dict", "integer" and so on; "unknown" for other numbers. Static. Any thread. */
EBB_API const char *ebb_node_kind_name(int kind);

/* Count of members; 0 for a leaf, with EBB_E_TYPE. */
EBB_API size_t ebb_node_count(const void *node);

/*
 * A member: by place, by key or field name, by path. A path is keys, field names and places with
 * '/' between them, such as "target/boxes" or "0/image"; "" is the object itself. A path names
 * members of a dict by key only, and cannot name a key that has a '/' in it. A place is found in
 * constant time, a key in time linear in the members. NULL on failure:
 * EBB_E_ARGUMENT (no such place or key), EBB_E_RELEASED (that member was ended), EBB_E_NOT_OWNED
 * (it was not composed), EBB_E_TYPE (a leaf has no members).
 */
EBB_API void *ebb_node_at(const void *node, size_t place);
EBB_API void *ebb_node_find(const void *node, const char *key);
EBB_API void *ebb_node_get(const void *node, const char *path);

/* Key or field name of a member, name of a named tuple. Valid as long as the node. NULL on
 * failure: EBB_E_ARGUMENT, EBB_E_TYPE. */
EBB_API const char *ebb_node_key(const void *node, size_t place);
EBB_API const char *ebb_node_name(const void *node);

/* Values of leaves. 0, or an error and nothing written: EBB_E_TYPE (of another kind),
 * EBB_E_ARGUMENT (value NULL). */
EBB_API int ebb_node_read_bool(const void *node, bool *value);
EBB_API int ebb_node_read_integer(const void *node, int64_t *value);
EBB_API int ebb_node_read_real(const void *node, double *value);

/* A string, ended by 0; bytes, and how many (`count` may be NULL). Valid as long as the node. NULL
 * on failure: EBB_E_TYPE. */
EBB_API const char *ebb_node_string(const void *node);
EBB_API const void *ebb_node_bytes(const void *node, size_t *count);

/*
 * True if both objects are built alike and hold the same: kinds, order, names, values; kinds and
 * metadata of samples; dtypes, shapes and elements of tensors, whatever their strides; how many
 * sequences are packed or ragged, and how long padding makes them; members and bytes of types of
 * your own. Reals and elements are compared byte by byte, so NaN equals itself and 0.0 is not -0.0.
 * Time is linear in the elements; those along a dimension with a stride of 0 in both count as one.
 * False with an error if one is not a live object, refers to something that was not composed
 * (EBB_E_NOT_OWNED), claims more than its block holds (EBB_E_SIZE), has elements that went back to
 * their producer (EBB_E_RELEASED: ebb/exchange.h), or is deeper than EBB_DEPTH_MAX (EBB_E_DEPTH).
 */
EBB_API bool ebb_batch_equal(const void *left, const void *right);

/*
 * The tree in words: structure, values, kinds, metadata, dtypes and shapes, no elements. Works for
 * every object. A member that several fields refer to is shown once; the others say "above". Text:
 * one line a node. JSON: one value; inner nodes, tensors and samples as {"dict": {...}} and the
 * like, other objects as {"object": NAME, "fields": {...}}. Returns 0, the callback's value if it
 * stopped, EBB_E_ARGUMENT, or the errors of ebb_object_end() if it is not a live object.
 */
EBB_API int ebb_report_batch(const void *object, enum ebb_report_format format,
                             ebb_write_fn *write, void *context);

#ifdef __cplusplus
}
#endif

#endif
