// SPDX-License-Identifier: Apache-2.0
/*
 * manifest.h - a tree of objects in words, as it crosses between processes.
 *
 *     magic, objects, storages
 *     storage    offset in the slot, bytes                                    for each
 *     object     TENSOR, dtype and dimensions, storage, offset in it, shape, strides
 *                COMPOSITE, layout, bytes of the name, bytes of the struct,
 *                    name, struct, and for each field
 *                        an object: 1 if there is one
 *                        objects:   the same for each of its count
 *                        bytes:     1 if there are any, and they
 *
 * Objects come whole before member, and members in the order in which fields name them: so a 1 is
 * enough to say which object is meant, and no sequence of words describes a cycle, or one object
 * that is part of two. Nothing is an address. A struct is its bytes behind struct ebb_object, with
 * pointers of fields zero; its type is found by name and layout (a number for what its fields are,
 * their names and their places), which must be those of one type only in both processes. Strings
 * and bytes fill up words.
 */
#ifndef EBB_HANDOFF_MANIFEST_H
#define EBB_HANDOFF_MANIFEST_H

#include "base/size.h"
#include "object/object.h"

#define MANIFEST_MAGIC UINT64_C(0x317473656669ebeb)
#define MANIFEST_HEAD 3u           /* words */
#define MANIFEST_STORAGE 2u
#define MANIFEST_TENSOR 4u         /* without shape and strides */
#define MANIFEST_COMPOSITE 4u      /* without what follows */
#define MANIFEST_OBJECT_LEAST 4u   /* of either kind */

enum manifest_kind { MANIFEST_IS_TENSOR = 1, MANIFEST_IS_COMPOSITE = 2 };

static inline size_t manifest_words(size_t bytes) {
    return bytes / sizeof(uint64_t) + (bytes % sizeof(uint64_t) != 0);
}

static inline uint64_t manifest_form(struct ebb_dtype dtype, int ndim) {
    return (uint64_t)dtype.code | (uint64_t)dtype.bits << 8 | (uint64_t)dtype.lanes << 16 |
           (uint64_t)(uint32_t)ndim << 32;
}

static inline struct ebb_dtype manifest_dtype(uint64_t form) {
    return (struct ebb_dtype){(uint8_t)form, (uint8_t)(form >> 8), (uint16_t)(form >> 16)};
}

static inline uint64_t manifest_mix(uint64_t number, uint64_t value) {
    return number * 0x100000001B3u ^ value;
}

/* Takes the 0 in, too: else what ends one name might as well begin the next. */
static inline uint64_t manifest_mix_name(uint64_t number, const char *name) {
    for (; *name; name++)
        number = manifest_mix(number, (unsigned char)*name);
    return manifest_mix(number, 0);
}

/* A number for what both processes must agree on: which fields are where, and how large all is. */
static inline uint64_t manifest_layout(const struct ebb_type *type) {
    uint64_t number = type->bytes;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct ebb_field *field = &type->fields[i];
        bool counted = field->kind != EBB_FIELD_OBJECT;
        number = manifest_mix_name(number, field->name);
        number = manifest_mix(number, (uint64_t)field->kind);
        number = manifest_mix(number, field->offset);
        number = manifest_mix(number, counted ? field->count_offset : 0);
    }
    return number;
}

/* The one type that this process has of that name and layout, and whose objects can be sent; NULL
 * with EBB_E_TYPE: there is none, or several. */
const struct ebb_type *manifest_type(uint64_t layout, const char *name, size_t length);

#endif
