// SPDX-License-Identifier: Apache-2.0
/*
 * manifest_write.c - an object is sent with all that it consists of (see manifest.h).
 *
 * The tree is walked twice, to measure and to write. Storages stay where they are if that is in
 * the slot; the bytes of others, imported ones say, are copied into the region first. Invariant:
 * both walks visit the same, since nothing happens between them; and whatever was taken from the
 * region is given back if the region is not sent, and counted nowhere.
 *
 * Refuses what cannot be read elsewhere: a struct that has pointers into itself, and one whose name
 * and layout are another type's, too.
 */
#include "base/error.h"
#include "handoff/manifest.h"
#include "handoff/send.h"
#include "object/exchange.h"
#include "pool/shared.h"
#include "region/block.h"
#include "region/undo.h"

#include <string.h>

/* Where words go; `words` is NULL while they are only counted. */
struct writer {
    struct region *region; /* whose slot it is */
    uint64_t *words;
    size_t count;
    struct ebb_object *first;    /* chained by forward */
    struct ebb_storage *storages, *last;
    size_t objects, storage_count;
    const struct ebb_type *found; /* the last one that was looked up by its name */
};

static void put(struct writer *writer, uint64_t word) {
    if (writer->words)
        writer->words[writer->count] = word;
    writer->count++;
}

static void put_bytes(struct writer *writer, const void *bytes, size_t count) {
    size_t words = manifest_words(count);
    if (writer->words && words) {
        writer->words[writer->count + words - 1] = 0;
        memcpy(writer->words + writer->count, bytes, count);
    }
    writer->count += words;
}

/* ---- storages ---- */

/* Each storage gets its number plus one in `gathered`. */
static void chain_storage(struct writer *writer, struct ebb_storage *storage) {
    if (storage->gathered)
        return;
    storage->gathered = (uint32_t)++writer->storage_count;
    storage->forward = NULL;
    if (writer->last)
        writer->last->forward = storage;
    else
        writer->storages = storage;
    writer->last = storage;
}

static void unchain_storages(struct writer *writer) {
    for (struct ebb_storage *at = writer->storages, *next; at; at = next) {
        next = at->forward;
        at->forward = NULL;
        at->gathered = 0;
    }
}

static uintptr_t slot_start(const struct writer *writer) {
    return atomic_load_explicit(&writer->region->pool->slot->addr, memory_order_relaxed);
}

static bool is_in_slot(const struct writer *writer, const struct ebb_storage *storage) {
    return (uintptr_t)storage->data - slot_start(writer) <
           writer->region->pool->slot->shared->slot_bytes;
}

/* A copy begins so many bytes behind a multiple of the alignment, as what is copied does: then the
 * elements of all tensors that see it are as well aligned as they were. */
static size_t lead_of(const struct ebb_storage *storage) {
    return (uintptr_t)storage->data % EXCHANGE_ALIGN_MOST;
}

/* Bytes of storages that are elsewhere; copied behind each other into one block. */
static int measure_elsewhere(const struct writer *writer, size_t *bytes) {
    *bytes = 0;
    for (const struct ebb_storage *at = writer->storages; at; at = at->forward) {
        if (at->bytes && import_check(at) != 0)
            return EBB_E_RELEASED;
        if (at->bytes && !is_in_slot(writer, at) &&
            (!size_add(*bytes, lead_of(at), bytes) || !size_add(*bytes, at->bytes, bytes) ||
             !size_round_up(*bytes, EBB_STORAGE_ALIGN, bytes)))
            return error_set(EBB_E_SIZE, "storages outside of the slot overflow with %zu bytes",
                             at->bytes);
    }
    return 0;
}

static void put_storages(struct writer *writer, char *copies) {
    for (const struct ebb_storage *at = writer->storages; at; at = at->forward) {
        const char *data = at->data;
        if (at->bytes && !is_in_slot(writer, at) && writer->words) {
            data = memcpy(copies + lead_of(at), at->data, at->bytes);
            copies += size_align(lead_of(at) + at->bytes, EBB_STORAGE_ALIGN);
        }
        put(writer, at->bytes && writer->words ? (uintptr_t)data - slot_start(writer) : 0);
        put(writer, at->bytes);
    }
}

/* ---- objects ---- */

static void put_tensor(struct writer *writer, const struct ebb_tensor *tensor) {
    size_t bytes = (size_t)tensor->ndim * sizeof(int64_t);
    put(writer, manifest_form(tensor->dtype, tensor->ndim));
    put(writer, tensor->storage->gathered - 1);
    put(writer, tensor->storage->bytes
                    ? (uintptr_t)tensor->data - (uintptr_t)tensor->storage->data
                    : 0);
    put_bytes(writer, tensor->shape, bytes);
    put_bytes(writer, tensor->strides, bytes);
}

/* The struct without its head; what its fields point to follows. */
static void put_struct(struct writer *writer, const struct ebb_object *object, size_t bytes) {
    const struct ebb_type *type = object->type;
    char *copy = writer->words ? (char *)(writer->words + writer->count) : NULL;
    put_bytes(writer, object + 1, bytes);
    for (size_t i = 0; copy && i < type->field_count; i++)
        memset(copy + type->fields[i].offset - sizeof *object, 0, sizeof(void *));
}

/* Counts are written as they are: what a field names and has not is said to be missing. */
static void put_field(struct writer *writer, struct ebb_object *object,
                      const struct ebb_field *field) {
    void **members, *bytes = *field_place(object, field);
    if (field->kind == EBB_FIELD_BYTES) {
        put(writer, bytes != NULL);
        if (bytes)
            put_bytes(writer, bytes, field_count(object, field));
        return;
    }
    size_t count = compose_members(object, field, &members);
    for (size_t i = 0; i < field_count_of(object, field); i++)
        put(writer, i < count && compose_has(object, members[i]));
}

static void put_composite(struct writer *writer, struct ebb_object *object) {
    const struct ebb_type *type = object->type;
    size_t bytes = ebb_region_block_bytes(region_handle(object_host(object)), object);
    put(writer, manifest_layout(type));
    put(writer, strlen(type->name));
    put(writer, bytes - sizeof *object);
    put_bytes(writer, type->name, strlen(type->name));
    put_struct(writer, object, bytes - sizeof *object);
    for (size_t i = 0; i < type->field_count; i++)
        put_field(writer, object, &type->fields[i]);
}

static void put_all(struct writer *writer, char *copies) {
    writer->count = 0;
    put(writer, MANIFEST_MAGIC);
    put(writer, writer->objects);
    put(writer, writer->storage_count);
    put_storages(writer, copies);
    for (struct ebb_object *at = writer->first; at; at = at->forward) {
        put(writer, object_is_tensor(at) ? MANIFEST_IS_TENSOR : MANIFEST_IS_COMPOSITE);
        if (object_is_tensor(at))
            put_tensor(writer, tensor_of(at));
        else
            put_composite(writer, at);
    }
}

/* ---- checking ---- */

/* A counted field says how long its block is: it must be so, since all of it is read. */
static int check_fields(struct ebb_object *object) {
    for (size_t i = 0; i < object->type->field_count; i++) {
        const struct ebb_field *field = &object->type->fields[i];
        bool counted = field->kind != EBB_FIELD_OBJECT && *field_place(object, field);
        int result = counted ? compose_check_block(object, object_host(object), field) : 0;
        if (!counted && field->kind != EBB_FIELD_OBJECT && field_count(object, field))
            result = error_set(EBB_E_TYPE, "type '%s': field '%s' is NULL, but counts %zu",
                               object->type->name, field->name, field_count(object, field));
        if (result)
            return result;
    }
    return 0;
}

static int check_type(struct writer *writer, const struct ebb_type *type) {
    if (type == writer->found)
        return 0;
    if (type->mend)
        return error_set(EBB_E_TYPE, "type '%s' has pointers into itself: it cannot be sent",
                         type->name);
    writer->found = manifest_type(manifest_layout(type), type->name, strlen(type->name));
    return writer->found ? 0 : error_latest();
}

static int check_object(struct writer *writer, struct ebb_object *object) {
    int result = object_is_tensor(object) ? 0 : check_type(writer, object->type);
    return object_is_tensor(object) || result ? result : check_fields(object);
}

static int gather(struct writer *writer) {
    int result = 0;
    for (struct ebb_object *at = writer->first; at && !result; at = at->forward) {
        writer->objects++;
        result = check_object(writer, at);
        if (!result && object_is_tensor(at))
            chain_storage(writer, tensor_of(at)->storage);
    }
    return result;
}

/* ---- sending ---- */

/* Measures, takes the blocks, writes. The manifest, or NULL with an error; *copies may be set. */
static uint64_t *make(struct writer *writer, char **copies) {
    size_t elsewhere;
    if (gather(writer) != 0 || measure_elsewhere(writer, &elsewhere) != 0)
        return NULL;
    put_all(writer, NULL);
    if (elsewhere &&
        !(*copies = block_place(writer->region, elsewhere, EBB_STORAGE_ALIGN)))
        return NULL;
    uint64_t *words = block_place(writer->region, writer->count * sizeof *words, EBB_STORAGE_ALIGN);
    if (!words)
        return NULL;
    writer->words = words;
    put_all(writer, *copies);
    return words;
}

int ebb_region_send_object(ebb_region handle, void *object, struct ebb_parcel *parcel) {
    struct writer writer = {.region = send_begin(handle, parcel)}; /* before a byte is written */
    struct object_place place;
    struct undo undo;
    char *copies = NULL;
    if (!writer.region || object_find(object, &place) != 0 ||
        object_check_staying(place.object) != 0)
        return error_latest();
    undo_remember(writer.region, &undo);
    writer.first = compose_chain(place.object);
    uint64_t *words = make(&writer, &copies);
    unchain_storages(&writer);
    compose_unchain(writer.first);
    int result = words ? ebb_region_send(handle, words, parcel) : error_latest();
    if (ebb_region_is_open(handle)) {
        ebb_region_release(handle, words);
        ebb_region_release(handle, copies);
        undo_restore(writer.region, &undo);
    }
    return result;
}
