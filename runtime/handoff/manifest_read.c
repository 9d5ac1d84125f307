// SPDX-License-Identifier: Apache-2.0
/*
 * manifest_read.c - a tree of objects is made of what another process sent (see manifest.h).
 *
 *     words from the lease, copied --outline--> where each object is, its first member, who uses
 *                                                 which storage; all lengths checked
 *                                  --build----> objects from the last to the first: members exist
 *                                                 before what they are part of
 *
 * Not a word is believed: the copy is this process's, all places are checked against its end, and
 * each composite passes the check of its type like any that is composed. Elements stay in the
 * slot, where their sender may still write to them; those that say where others are (offsets and
 * indices of packed and ragged sequences, of ragged samples) are copied before they are checked,
 * once for all that share them, and no more bytes than were sent. All is made or nothing.
 */
#include "base/error.h"
#include "handoff/lease.h"
#include "handoff/manifest.h"
#include "object/attempt.h"
#include "object/copy.h"
#include "object/exchange.h"
#include "region/scratch.h"

#include <ebb/ragged.h>
#include <ebb/sample.h>
#include <ebb/sequence.h>

#include <string.h>

/* What is known of an object before it is made. */
struct outline {
    size_t at;     /* its first word */
    size_t member; /* number of its first member */
    bool copied;   /* a tensor that others are found by */
    struct ebb_object *made;
};

struct store {
    size_t offset, bytes; /* in the slot */
    size_t users, copiers;   /* tensors that see it, and that are copied from it */
    struct ebb_tensor *base; /* all of its bytes, while several tensors of it are made */
    struct ebb_tensor *copy; /* the same for those that are copied */
};

struct reader {
    struct ebb_lease *lease;
    ebb_region into;
    const uint64_t *words;
    size_t count, at; /* words, and the next one */
    size_t objects, stores, named; /* counts; objects that were named so far */
    size_t copied; /* bytes, so far */
    struct outline *outlines;
    struct store *storages;
};

static int refuse(const struct reader *reader, const char *what, uint64_t number) {
    return error_set(EBB_E_PARCEL, "manifest of %zu words, at word %zu: %s %llu", reader->count,
                     reader->at, what, (unsigned long long)number);
}

/* The next `count` words, which must be there; NULL: error set. */
static const uint64_t *take(struct reader *reader, size_t count) {
    const uint64_t *words = reader->words + reader->at;
    if (count > reader->count - reader->at) {
        refuse(reader, "too short for words", count);
        return NULL;
    }
    reader->at += count;
    return words;
}

static const uint64_t *take_bytes(struct reader *reader, uint64_t bytes) {
    return take(reader, bytes > EBB_SIZE_MAX ? SIZE_MAX : manifest_words(bytes));
}

/* ---- outlines ---- */

static int outline_tensor(struct reader *reader, const struct outline *outline) {
    const uint64_t *head = take(reader, MANIFEST_TENSOR - 1);
    if (!head)
        return EBB_E_PARCEL;
    uint64_t ndim = head[0] >> 32;
    if (ndim > EBB_DIMENSIONS_MAX)
        return refuse(reader, "dimensions", ndim);
    if (head[1] >= reader->stores)
        return refuse(reader, "storage", head[1]);
    reader->storages[head[1]].users += !outline->copied;
    reader->storages[head[1]].copiers += outline->copied;
    return take(reader, 2 * ndim) ? 0 : EBB_E_PARCEL;
}

static bool is_sent_as(const struct ebb_type *type, uint64_t layout) {
    return type != &ebb_type_tensor && !type->mend && manifest_layout(type) == layout;
}

const struct ebb_type *manifest_type(uint64_t layout, const char *name, size_t length) {
    const struct ebb_type *type = NULL, *found = NULL;
    const char *problem = "not registered here";
    while ((type = type_named(name, length, type))) {
        bool fits = is_sent_as(type, layout);
        problem = fits && found ? "the name of two of the same layout" : "of another layout here";
        if (fits && found)
            break;
        found = fits ? type : found;
    }
    if (found && !type)
        return found;
    error_set(EBB_E_TYPE, "type '%.*s' is %s", (int)size_smaller(length, 64), name, problem);
    return NULL;
}

/* `count` members follow: each word is 0 or 1. Tells which of them are to be copied. */
static int outline_members(struct reader *reader, const uint64_t *present, size_t count,
                           bool copied) {
    for (size_t i = 0; i < count; i++) {
        if (present[i] > 1)
            return refuse(reader, "member", present[i]);
        if (present[i] && reader->named == reader->objects)
            return refuse(reader, "one member more than objects:", reader->objects);
        if (present[i])
            reader->outlines[reader->named++].copied = copied;
    }
    return 0;
}

/* The elements of these say where others are. */
static bool is_structure(const struct ebb_type *type, size_t field) {
    return field > 0 && (type == &ebb_type_packed || type == &ebb_type_ragged ||
                         type == &ebb_type_sample);
}

static uint64_t count_in(const char *fields, const struct ebb_field *field) {
    size_t count = 1;
    if (field->kind == EBB_FIELD_OBJECT)
        return count;
    memcpy(&count, fields + field->count_offset - sizeof(struct ebb_object), sizeof count);
    return count;
}

static int outline_field(struct reader *reader, const struct ebb_type *type, size_t number,
                         const char *fields) {
    const struct ebb_field *field = &type->fields[number];
    uint64_t count = count_in(fields, field);
    if (field->kind != EBB_FIELD_BYTES) {
        const uint64_t *present = take(reader, count);
        return present ? outline_members(reader, present, count, is_structure(type, number))
                       : EBB_E_PARCEL;
    }
    const uint64_t *there = take(reader, 1);
    if (!there)
        return EBB_E_PARCEL;
    if (*there > 1 || (!*there && count))
        return refuse(reader, "bytes", *there);
    return !*there || take_bytes(reader, count) ? 0 : EBB_E_PARCEL;
}

/* What a composite begins with. */
struct composite {
    const struct ebb_type *type;
    const char *fields; /* the struct behind its head */
    size_t bytes;
};

static bool read_composite(struct reader *reader, struct composite *composite) {
    const uint64_t *head = take(reader, MANIFEST_COMPOSITE - 1);
    const char *name = head ? (const char *)take_bytes(reader, head[1]) : NULL;
    composite->fields = name ? (const char *)take_bytes(reader, head[2]) : NULL;
    if (!composite->fields)
        return false;
    composite->type = manifest_type(head[0], name, head[1]);
    composite->bytes = head[2];
    if (composite->type &&
        composite->bytes < composite->type->bytes - sizeof(struct ebb_object))
        refuse(reader, "struct too short:", composite->bytes);
    else
        return composite->type != NULL;
    return false;
}

static int outline_composite(struct reader *reader) {
    struct composite composite;
    int result = read_composite(reader, &composite) ? 0 : error_latest();
    for (size_t i = 0; !result && i < composite.type->field_count; i++)
        result = outline_field(reader, composite.type, i, composite.fields);
    return result;
}

/* An object that nobody has named before is part of nothing: only the first one may be that. */
static int outline_one(struct reader *reader, size_t number) {
    struct outline *outline = &reader->outlines[number];
    const uint64_t *kind = take(reader, 1);
    if (!kind)
        return EBB_E_PARCEL;
    if (number >= reader->named)
        return refuse(reader, "part of nothing: object", number);
    outline->at = reader->at;
    outline->member = reader->named;
    if (*kind == MANIFEST_IS_TENSOR)
        return outline_tensor(reader, outline);
    return *kind == MANIFEST_IS_COMPOSITE ? outline_composite(reader)
                                          : refuse(reader, "kind of object", *kind);
}

static int outline_all(struct reader *reader) {
    const uint64_t *places = take(reader, reader->stores * MANIFEST_STORAGE);
    int result = places ? 0 : EBB_E_PARCEL;
    for (size_t i = 0; !result && i < reader->stores; i++) {
        reader->storages[i] = (struct store){.offset = places[2 * i], .bytes = places[2 * i + 1]};
        if (!ebb_lease_at(reader->lease, reader->storages[i].offset, reader->storages[i].bytes))
            result = EBB_E_PARCEL;
    }
    reader->named = 1;
    for (size_t i = 0; !result && i < reader->objects; i++)
        result = outline_one(reader, i);
    if (!result && reader->at != reader->count)
        result = refuse(reader, "words left:", reader->count - reader->at);
    return result;
}

/* ---- building ---- */

/* An import of bytes in the lease, all of them checked there. */
static struct ebb_tensor *import(const struct reader *reader, size_t offset,
                                 struct ebb_dtype dtype, int ndim, const int64_t *shape,
                                 const int64_t *strides) {
    struct DLManagedTensor *managed =
        ebb_lease_export(reader->lease, offset, dtype, ndim, shape, strides);
    struct ebb_tensor *tensor =
        managed ? ebb_tensor_import(reader->into, managed, EBB_EXCHANGE_SHARE) : NULL;
    if (managed && !tensor)
        lease_export_end(managed);
    return tensor;
}

/* Storages may lie on each other, whoever says so: nothing else bounds all copies together. */
static bool may_copy(struct reader *reader, size_t bytes) {
    if (bytes > ebb_lease_bytes(reader->lease) - reader->copied) {
        refuse(reader, "more to copy than was sent, bytes:", bytes);
        return false;
    }
    reader->copied += bytes;
    return true;
}

/* Elements that are checked later, where no other process writes, even if the region is shared. */
static struct ebb_tensor *copy(struct reader *reader, const struct ebb_tensor *form, size_t bytes) {
    struct ebb_tensor *tensor =
        may_copy(reader, bytes)
            ? tensor_new_private(reader->into, form->dtype, form->ndim, form->shape)
            : NULL;
    if (tensor)
        copy_elements(tensor->data, NULL, form->data, form->strides, form->shape, form->ndim,
                      ebb_dtype_bytes(form->dtype));
    return tensor;
}

/* One of several views of a storage that is copied as a whole, from the aligned address before it
 * on: so its elements are as well aligned in the copy. */
static struct ebb_tensor *see_copy(struct reader *reader, struct store *store,
                                   const struct ebb_tensor *form) {
    size_t start = size_align_down(store->offset, EXCHANGE_ALIGN_MOST);
    int64_t bytes = (int64_t)(store->offset - start + store->bytes), stride = 1;
    const struct ebb_tensor all = {.data = ebb_lease_at(reader->lease, start, 0),
                                   .dtype = {EBB_UINT, 8, 1},
                                   .ndim = 1,
                                   .shape = &bytes,
                                   .strides = &stride};
    struct ebb_tensor moved = *form;
    size_t offset = (uintptr_t)form->data - (uintptr_t)all.data;
    if (!store->copy)
        store->copy = copy(reader, &all, (size_t)bytes);
    if (!store->copy)
        return NULL;
    moved.data = (char *)store->copy->data + offset;
    return tensor_see(object_host_for(reader->into), store->copy, &moved);
}

/* One of several views of a storage. */
static struct ebb_tensor *see(struct reader *reader, struct store *store,
                              const struct ebb_tensor *form) {
    const struct ebb_dtype byte = {EBB_UINT, 8, 1};
    const int64_t bytes = (int64_t)store->bytes;
    if (!store->base)
        store->base = import(reader, store->offset, byte, 1, &bytes, NULL);
    if (!store->base)
        return NULL;
    return tensor_see(object_host_for(reader->into), store->base, form);
}

/* One of elements that lie in the lease as `form` says, `bytes` row-major ones. */
static struct ebb_tensor *build_elements(struct reader *reader, const struct outline *outline,
                                         struct store *store, const struct ebb_tensor *form,
                                         size_t bytes) {
    size_t offset = (size_t)((char *)form->data - (char *)ebb_lease_at(reader->lease, 0, 0));
    if (!outline->copied && store->users == 1 && exchange_knows(form->dtype))
        return import(reader, offset, form->dtype, form->ndim, form->shape, form->strides);
    if (lease_check_align(form->dtype, offset) != 0)
        return NULL;
    if (!outline->copied)
        return see(reader, store, form);
    return store->copiers == 1 ? copy(reader, form, bytes) : see_copy(reader, store, form);
}

static struct ebb_tensor *build_tensor(struct reader *reader, const struct outline *outline) {
    const uint64_t *head = take(reader, MANIFEST_TENSOR - 1);
    int ndim = (int)(head[0] >> 32);
    const int64_t *shape = (const int64_t *)take(reader, (size_t)ndim);
    const int64_t *strides = (const int64_t *)take(reader, (size_t)ndim);
    struct store *store = &reader->storages[head[1]];
    struct ebb_dtype dtype = manifest_dtype(head[0]);
    size_t bytes, all;
    if (lease_measure(dtype, ndim, shape, strides, &bytes) != 0 ||
        !tensor_measure(dtype, ndim, shape, &all))
        return NULL;
    if (head[2] > store->bytes || bytes > store->bytes - head[2]) {
        refuse(reader, "tensor not in its storage, at", head[2]);
        return NULL;
    }
    if (outline->copied && all > bytes) { /* a few bytes, copied as often as the sender says */
        refuse(reader, "elements to copy that lie on each other, bytes:", all);
        return NULL;
    }
    if (!bytes) /* of any type: there is nothing to exchange */
        return ebb_tensor_new(reader->into, dtype, ndim, shape);
    const struct ebb_tensor form = {
        .data = (char *)ebb_lease_at(reader->lease, store->offset + head[2], bytes),
        .dtype = dtype,
        .ndim = ndim,
        .shape = (int64_t *)(uintptr_t)shape,
        .strides = (int64_t *)(uintptr_t)strides};
    return build_elements(reader, outline, store, &form, all);
}

/* Members in the order of the words, which were looked at before. */
static void fill_members(struct reader *reader, void **members, size_t count, size_t *next) {
    const uint64_t *present = take(reader, count);
    for (size_t i = 0; i < count; i++)
        members[i] = present[i] ? reader->outlines[(*next)++].made : NULL;
}

static int build_field(struct reader *reader, struct ebb_object *object,
                       const struct ebb_field *field, size_t *next) {
    void **place = field_place(object, field);
    if (field->kind == EBB_FIELD_OBJECT) {
        fill_members(reader, place, 1, next);
        return 0;
    }
    bool objects = field->kind == EBB_FIELD_OBJECTS;
    size_t count = field_count(object, field);
    if (!objects && !*take(reader, 1))
        return 0;
    if (objects && !count)
        return 0;
    size_t bytes = objects ? count * sizeof(void *) : count;
    *place = ebb_region_alloc(reader->into, bytes, EBB_GRANULE);
    if (!*place)
        return error_latest();
    if (objects)
        fill_members(reader, *place, count, next);
    else
        memcpy(*place, take_bytes(reader, count), count);
    return 0;
}

static struct ebb_object *build_composite(struct reader *reader, const struct outline *outline) {
    struct composite composite;
    size_t next = outline->member;
    if (!read_composite(reader, &composite))
        return NULL;
    size_t behind = composite.bytes - (composite.type->bytes - sizeof(struct ebb_object));
    struct ebb_object *object = ebb_object_new(reader->into, composite.type, behind);
    if (!object)
        return NULL;
    memcpy(object + 1, composite.fields, composite.bytes);
    for (size_t i = 0; i < composite.type->field_count; i++)
        *field_place(object, &composite.type->fields[i]) = NULL;
    int result = 0;
    for (size_t i = 0; !result && i < composite.type->field_count; i++)
        result = build_field(reader, object, &composite.type->fields[i], &next);
    return !result && ebb_object_compose(object) == 0 ? object : NULL;
}

static bool build_all(struct reader *reader) {
    for (size_t i = reader->objects; i > 0; i--) {
        struct outline *outline = &reader->outlines[i - 1];
        reader->at = outline->at;
        if (reader->words[outline->at - 1] == MANIFEST_IS_TENSOR) {
            struct ebb_tensor *tensor = build_tensor(reader, outline);
            outline->made = tensor ? &tensor->object : NULL;
        } else {
            outline->made = build_composite(reader, outline);
        }
        if (!outline->made)
            return false;
    }
    for (size_t i = 0; i < reader->stores; i++) {
        if (reader->storages[i].base)
            ebb_object_end(reader->storages[i].base);
        if (reader->storages[i].copy)
            ebb_object_end(reader->storages[i].copy);
    }
    return true;
}

/* ---- the whole ---- */

/* What is noted is bounded by what was sent: there are words for so many, at the least. */
static bool has_words_for(const struct reader *reader, uint64_t objects, uint64_t stores) {
    size_t left = reader->count - MANIFEST_HEAD;
    return objects <= left / MANIFEST_OBJECT_LEAST &&
           stores <= (left - objects * MANIFEST_OBJECT_LEAST) / MANIFEST_STORAGE;
}

/* The words, and what is noted about them, in one block; false: error set. */
static bool begin(struct reader *reader, struct scratch *scratch) {
    size_t bytes, objects, stores;
    const uint64_t *root = ebb_lease_root(reader->lease, &bytes);
    reader->count = bytes / sizeof *root;
    if (!root || (uintptr_t)root % sizeof *root || reader->count < MANIFEST_HEAD ||
        bytes % sizeof *root) {
        error_set(EBB_E_PARCEL, "a root of %zu bytes at %p is no manifest", bytes,
                  (const void *)root);
        return false;
    }
    uint64_t head[MANIFEST_HEAD];
    memcpy(head, root, sizeof head);
    if (head[0] != MANIFEST_MAGIC || head[1] == 0 || !has_words_for(reader, head[1], head[2])) {
        refuse(reader, "no manifest, or too many objects:", head[1]);
        return false;
    }
    objects = head[1] * sizeof *reader->outlines;
    stores = head[2] * sizeof *reader->storages;
    char *memory = scratch_take(scratch, bytes + objects + stores);
    if (!memory)
        return false;
    memcpy(memory, root, bytes);
    memset(memory + bytes, 0, objects + stores);
    reader->words = (const uint64_t *)(void *)memory;
    reader->outlines = (struct outline *)(void *)(memory + bytes);
    reader->storages = (struct store *)(void *)(memory + bytes + objects);
    reader->objects = head[1];
    reader->stores = head[2];
    reader->at = MANIFEST_HEAD;
    return true;
}

void *ebb_lease_object(struct ebb_lease *lease, ebb_region into) {
    struct region *region = object_host_for(into);
    struct reader reader = {.lease = lease, .into = into};
    struct scratch scratch;
    struct attempt attempt;
    if (region && !lease)
        error_set(EBB_E_ARGUMENT, "no lease with an object for region '%s'", region->name);
    if (!region || !lease || !attempt_begin(&attempt, into))
        return NULL;
    if (!begin(&reader, &scratch)) {
        attempt_abandon(&attempt);
        return NULL;
    }
    void *made = NULL;
    bool built = outline_all(&reader) == 0 && build_all(&reader);
    if (built)
        made = reader.outlines[0].made;
    scratch_give(&scratch);
    if (!built)
        attempt_abandon(&attempt);
    return made;
}
