// SPDX-License-Identifier: Apache-2.0
/*
 * object.h - what the parts of the layer of objects offer each other.
 *
 *     type.c      registered types
 *     object.c    making, ending, finding, listing          one object
 *     compose.c   members of composites                     one object and what it is made of
 *     tensor.c    tensors and their storages
 *     sight.c     views: tensors that see the storage of another
 *     view.c      which elements they see: slices, permutations and the like
 *     apart.c     the same in shared memory
 *     adopt.c     owners that are not hosts: attach, borrow
 *     gather.c    everything that objects consist of        many objects
 *     journey.c   they move to another region
 *     own.c       promote, move, replace
 *     exchange.h  tensors come from and go to others
 *     counts.c    counters, as a struct and as a line
 *     check.c     the walker
 *
 * `state` of an object: 48 bits of the host's owner number (PIECE_OWNER), then OBJECT_LIVE. What
 * an earlier region left behind never matches, nor does a block that is no object: its first
 * word is no registered type. A tensor with a storage of its own begins with OBJECT_ALONE and loses
 * it for good when it is viewed, exported, adopted, composed, taken over, or goes elsewhere: as
 * long as it is set nothing else refers to the tensor.
 *
 * Pages that other processes can write to hold no objects, whatever lies there: objects of a shared
 * region lie in its safe (region/safe.h), except for the elements of tensors. These are a block of
 * their own, and the storage says so (STORAGE_APART).
 *
 * `serial` is the age of an object: the newest mark of its host when the host got its bytes, or the
 * newest of its parts. The head of a tensor that has ended keeps it for the storage behind it.
 *
 * Invariant: an object that is no member is in the list of its owner; those of the host's own have
 * serials that never increase towards the end. A member is in no list, and no newer than its whole.
 *
 * A program may overwrite the field that refers to a member. Then nothing finds the member. When
 * its composite goes elsewhere it is still counted where it was, unless that is in another tree
 * (member_counted_in()); and once the composite has ended, or lies elsewhere, `whole` is a mere
 * address. An object that comes to lie there is not taken for the composite as long as it has had
 * no members of its own, as its state says (OBJECT_WHOLE).
 */
#ifndef EBB_OBJECT_OBJECT_H
#define EBB_OBJECT_OBJECT_H

#include "base/hidden.h"
#include "region/kinds.h"
#include "region/small.h"

#include <ebb/own.h>
#include <ebb/tensor.h>

#define OBJECT_OWNER (((uint64_t)1 << 48) - 1)

/* Where an object was found. */
struct object_place {
    struct ebb_object *object;
    struct region *host;
    struct ebb_piece *piece; /* its block, or the window around it */
};

/* ---- type.c ---- */

bool type_is_registered(const struct ebb_type *type);

/* The next registered type behind `after` (NULL: the first) whose name is these `length` bytes;
 * NULL: there is none. */
const struct ebb_type *type_named(const char *name, size_t length, const struct ebb_type *after);

/* Count of an EBB_FIELD_OBJECTS or EBB_FIELD_BYTES field. */
static inline size_t field_count(const struct ebb_object *object, const struct ebb_field *field) {
    return *(const size_t *)(const void *)((const char *)object + field->count_offset);
}

/* Count of the pointers to objects of a field. */
static inline size_t field_count_of(const struct ebb_object *object,
                                    const struct ebb_field *field) {
    return field->kind == EBB_FIELD_OBJECT ? 1
           : field->kind == EBB_FIELD_OBJECTS ? field_count(object, field)
                                              : 0;
}

/* Where an object keeps the pointer of a field. */
static inline void **field_place(struct ebb_object *object, const struct ebb_field *field) {
    return (void **)(void *)((char *)object + field->offset);
}

/* ---- object.c ---- */

/* Sets the error that says why no object can be made in a region; returns NULL. */
struct region *object_refused(ebb_region handle);

/* The open region behind a handle, which has memory for objects; NULL with an error. */
static inline struct region *object_host_for(ebb_region handle) {
    struct region *host = region_peek(handle);
    return host && !host->hollow ? host : object_refused(handle);
}

/* Puts `fresh` in the place of `old`, which is no object any more; nothing is counted. */
void object_replace(struct ebb_object *old, struct ebb_object *fresh);

/* Makes the object, which just got a part, as new as that, and also what it is part of. */
void object_renew(struct ebb_object *object);

/* The live object at `address`; 0 or the error. */
int object_find(const void *address, struct object_place *place);

/* EBB_E_BUSY if the object is about to end in a call that this one is made inside of: its `forward`
 * leads to what ends next, so it may only be read. Else 0. */
int object_check_staying(const struct ebb_object *object);

/* The region that has the live block, of an object or not. */
struct region *object_host(const void *block);

/* The region that an object there, in pages of `place`, would name as its host. */
struct region *object_host_at(struct region *place, uintptr_t addr);

/* The composite that a member names, if it is there, in the same host; or NULL. */
struct ebb_object *object_whole(const struct ebb_object *member);

/* If the member's composite, or what that is in, has ended: makes the `whole` that led there lead
 * to no object, so that nothing that comes to lie there is taken for it. */
void object_part(struct ebb_object *member);

/* The name of the member's composite, for texts. */
const char *object_whole_name(const struct ebb_object *member);

/* Releases a block that is known to be live. */
void object_release(void *block);

/* ---- compose.c ---- */

/*
 * Users may write to fields, so what these say is always checked: a member is a live object of the
 * same host that names the composite and is no newer; an array is a live block that has room for
 * its count.
 */

/* True if `address` is a member of `whole`. */
bool compose_has(const struct ebb_object *whole, const void *address);

/* True if a field of its composite refers to the member. Linear in the fields. */
bool compose_finds(const struct ebb_object *member);

/* True if there is a live block of the region that has room for so many pointers. */
bool compose_has_room(const struct region *host, void *const *members, size_t count);

/* Count of the pointers of a field to objects, which begin at *members; 0 of a field of bytes. */
size_t compose_members(struct ebb_object *object, const struct ebb_field *field,
                       void ***members);

/* Several fields may refer to one member. Walks that print each only once ask at each reference
 * whether the member was told before, and take the marks back at the end. */
bool compose_is_told(struct ebb_object *member);
void compose_untell(struct ebb_object *whole);

/* The block of a counted field is live, of `host`, no object, and long enough; or the error. */
int compose_check_block(const struct ebb_object *object, const struct region *host,
                        const struct ebb_field *field);

/*
 * Chains an object and everything below it by `forward`, each once, whole before member, and marks
 * them as gathered. Unchaining takes that back.
 */
struct ebb_object *compose_chain(struct ebb_object *whole);
void compose_unchain(struct ebb_object *first);

/* How deep the members under an object are nested; 0 if it has none. */
unsigned compose_depth(struct ebb_object *whole);

/* 0, or the error: a field but `slot` (NULL: any) refers to what is no member, or no such block. */
int compose_check_members(struct ebb_object *whole, const struct ebb_field *slot);

/* Checks `whole` with `fresh` in its field `slot`: the depth, the other fields, and what the type's
 * check says; 0 or the error. */
int compose_check_fresh(struct ebb_object *whole, const struct ebb_field *slot,
                        struct ebb_object *fresh);

/* Makes `member`, which was checked, a member. */
void compose_join(struct object_place whole, struct ebb_object *member);

/* ---- check.c ---- */

/* Walks all objects that a region owns; aborts if a law does not hold. */
void object_check_all(struct region *region);

/* ---- tensor.c ---- */

/* Flags of a storage. */
#define STORAGE_FOREIGN 1u   /* its bytes are a producer's: import.c */
#define STORAGE_READ_ONLY 2u /* as the producer said */
#define STORAGE_APART 4u     /* its bytes are a block of their own, of the same host. The last */

/* Bytes of the struct, its shape and its strides; what follows them is a storage or a cleanup. */
static inline size_t tensor_head_bytes(int ndim) {
    return sizeof(struct ebb_tensor) + 2 * sizeof(int64_t) * (size_t)ndim;
}

struct ebb_storage *tensor_own_storage(struct ebb_tensor *tensor);

/* Shape and strides follow the struct; `ndim` is set. */
static inline void tensor_place_arrays(struct ebb_tensor *tensor) {
    tensor->shape = (int64_t *)(tensor + 1);
    tensor->strides = tensor->shape + tensor->ndim;
}

static inline bool shape_is_empty(int ndim, const int64_t *shape) {
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            return true;
    return false;
}

/* One more tensor sees the storage. */
static inline void storage_enter(struct ebb_storage *storage) {
    struct ebb_object *base = storage->block;
    storage->tensors++;
    base->state &= ~OBJECT_ALONE;
}

/* A tensor that saw the storage has gone; the last one ends the storage. */
void storage_leave(struct ebb_storage *storage);

/* The block that the storage's bytes lie in, unless they are a producer's. */
static inline void *storage_bytes_block(const struct ebb_storage *storage) {
    return storage->flags & STORAGE_APART ? storage->data : storage->block;
}

/* Releases the blocks of a storage that no tensor sees. */
void storage_release(struct ebb_storage *storage);

/* The same, and gives a producer's bytes back. */
void storage_end(struct ebb_storage *storage);

/* Only exports are left: what begins the block is no object any more. */
void storage_leave_to_exports(void *block);

/* The tensor has ended: its storage, too, if nobody else sees it. Releases their blocks. */
void tensor_finish(struct ebb_tensor *tensor);

/* Sets shape and row-major strides; the arrays have their places and `ndim` is set. */
void tensor_fill_row_major(struct ebb_tensor *tensor, const int64_t *shape);

/* Bytes of row-major elements of this shape; false with an error if that is none. */
bool tensor_measure(struct ebb_dtype dtype, int ndim, const int64_t *shape, size_t *bytes);

/* What a view sees, in a block of `region` with a storage of its own; the head is the view's. Other
 * processes can write to the elements only if they could before, or a producer's were copied. NULL:
 * an error. */
struct ebb_tensor *tensor_compact(struct region *region, const struct ebb_tensor *view,
                                  const void *site);

/* The region that has the storage, whatever became of the tensor that began its block. */
static inline struct region *storage_host(const struct ebb_storage *storage) {
    return object_host(storage->block);
}

static inline bool object_is_tensor(const struct ebb_object *object) {
    return object->type == &ebb_type_tensor;
}

static inline struct ebb_tensor *tensor_of(struct ebb_object *object) {
    return (struct ebb_tensor *)object;
}

/* True if the tensor's storage is in its own block. */
static inline bool tensor_has_storage(const struct ebb_tensor *tensor) {
    return tensor->storage->block == (const void *)tensor;
}

/* Sets the error that says that the object is no tensor; returns NULL. */
struct ebb_tensor *tensor_refused(const struct ebb_object *object);

/* The live tensor, or NULL with an error. */
static inline struct ebb_tensor *tensor_find(const struct ebb_tensor *tensor,
                                             struct object_place *place) {
    if (object_find(tensor, place) != 0)
        return NULL;
    return object_is_tensor(place->object) ? tensor_of(place->object)
                                           : tensor_refused(place->object);
}

/* The same of one whose elements can be read: import_check(). */
struct ebb_tensor *tensor_find_readable(const struct ebb_tensor *tensor,
                                        struct object_place *place);

/* ---- sight.c ---- */

/* True if the region may have views of the storage of `base`, else false with an error. */
bool tensor_is_visible(const struct ebb_tensor *base, const struct region *region);

/* A view of the storage of `base` with data, dtype, shape and strides of `form`, all checked. */
struct ebb_tensor *tensor_see(struct region *region, const struct ebb_tensor *base,
                              const struct ebb_tensor *form);

/* A view of a storage further up leaves it when its region `host` ends. */
void tensor_watch_storage(struct region *host, struct ebb_tensor *view);
void tensor_unwatch_storage(struct ebb_tensor *view);

/* The region of the storage if the cleanup is a view's that watches it; else NULL. */
struct region *tensor_tied_to(const struct ebb_cleanup *cleanup);

/* Storages of the region that are as new as the mark go: ends the views of them further down. */
void tensor_rewind_views(struct region *region, uint64_t serial);

/* A copy of a view, byte by byte: it refers to its own arrays and watches nothing. */
void tensor_mend_view(struct ebb_tensor *view);

/* ---- apart.c ---- */

/* A tensor in a shared region. The shape is right. */
struct ebb_tensor *tensor_new_apart(struct region *host, struct ebb_dtype dtype, int ndim,
                                    const int64_t *shape, const void *site);

/* As tensor_compact(), to the slot of a shared region. */
struct ebb_tensor *tensor_compact_apart(struct region *region, const struct ebb_tensor *view,
                                        const void *site);

/* A tensor of elements that ebb goes by: no other process can write to them. */
struct ebb_tensor *tensor_new_private(ebb_region region, struct ebb_dtype dtype, int ndim,
                                      const int64_t *shape);

/* ---- adopt.c ---- */

/* The region that has the object: the last that it, or what it is part of, was given to; else its
 * host. */
struct region *object_owner(const struct ebb_object *object);

/* The object ends: records of who has it go. */
void adoption_forget(struct ebb_object *object);

/* The object took the place of the one that is adopted, or has got something new. */
void adoption_follow(struct ebb_object *object);

/* ---- what every object does ---- */

extern HIDDEN const struct object_hooks object_hooks;

static inline void object_enlist(struct region *owner, struct ebb_object *object) {
    object->prev = NULL;
    object->next = owner->objects;
    if (object->next)
        object->next->prev = object;
    owner->objects = object;
}

static inline void object_delist(struct region *owner, struct ebb_object *object) {
    if (__builtin_expect(object->prev != NULL, 0))
        object->prev->next = object->next;
    else
        owner->objects = object->next;
    if (object->next)
        object->next->prev = object->prev;
}

/* True if both lie in one region, as a member and its composite do. */
static inline bool object_lies_with(const struct ebb_object *object,
                                    const struct ebb_object *other) {
    return ((object->state ^ other->state) & OBJECT_OWNER) == 0;
}

/* The member names this composite, and not one that has ended, whose place this has. */
static inline bool member_names(const struct ebb_object *member, const struct ebb_object *whole) {
    return member->whole == whole && (whole->state & OBJECT_WHOLE) != 0;
}

/* The object becomes a member. */
static inline void member_join(struct ebb_object *member, struct ebb_object *whole) {
    member->whole = whole;
    member->state &= ~OBJECT_ALONE;
    whole->state |= OBJECT_WHOLE;
}

/* A member has no neighbours. In their place is the region that counts it, and what that is called
 * until it ends or is reset. */
static inline void member_count_in(struct ebb_object *member, struct region *region) {
    member->next = (struct ebb_object *)(void *)region;
    member->prev = (struct ebb_object *)(uintptr_t)region->block_key;
}

/* The region that counts the member, which may be any that had the composite. NULL: nobody does any
 * more. That has ended, or it is neither `owner`, which has the composite (NULL: not known), nor of
 * the host's tree: then it may be another thread's by now, and is not looked at (adopt.c). */
struct region *member_counted_apart(const struct ebb_object *member, const struct region *owner);

static inline struct region *member_counted_in(const struct ebb_object *member,
                                               const struct region *owner) {
    uint64_t hosted = piece_key_of(member->state & OBJECT_OWNER, PIECE_BLOCK);
    if (__builtin_expect((uintptr_t)member->prev == hosted, 1))
        return (struct region *)(void *)member->next; /* the host: it is there */
    return member_counted_apart(member, owner);
}

/* The region counts the member, which went there with what `from` had, from now on; as a new one if
 * nobody counted it any more. */
static inline void member_pass(struct ebb_object *member, const struct region *from,
                               struct region *to) {
    struct region *had = member_counted_in(member, from);
    if (!had)
        had = member_counted_in(member, to);
    if (had == to)
        return;
    if (had)
        kind_passed(had, to, member->type->kind);
    else
        kind_created(to, member->type->kind);
    member_count_in(member, to);
}

/* Fills the head of a new object in a block of `host`, which owns it, and counts it as `kind`. */
static inline void object_begin(struct region *host, struct ebb_object *object,
                                const struct ebb_type *type, uint32_t kind) {
    object->type = type;
    object->whole = NULL;
    object->adoption = NULL;
    object->forward = NULL;
    object->state = OBJECT_LIVE | host->owner;
    object->serial = host->mark_serial;
    object_enlist(host, object);
    host->hooks = &object_hooks; /* before the first is counted: new_small() */
    kind_created(host, kind);
}

/* Begins a tensor in a new block of `host`. Its data, shape, strides and storage are not set. */
static inline void tensor_begin(struct region *host, struct ebb_tensor *tensor,
                                struct ebb_dtype dtype, int ndim) {
    object_begin(host, &tensor->object, &ebb_type_tensor, EBB_OBJECT_TENSOR);
    tensor->dtype = dtype;
    tensor->ndim = ndim;
    tensor_place_arrays(tensor);
}

/* The block at `addr` and its host, which is a step if the block was born for it in the parent;
 * bytes asked for it, 0 if there is no live block. What lies in shared memory has a host that no
 * object names: others may write there, whatever it looks like. */
static inline size_t object_block(uintptr_t addr, struct object_place *place) {
    struct ebb_piece *piece = range_block_at(addr);
    struct region *host = region_of_piece(piece);
    place->piece = piece;
    place->host = __builtin_expect(host->mixed, 0) ? object_host_at(host, addr) : host;
    return block_peek(host, piece, addr);
}

/* True if a live block begins at `address` and names its host as the head of an object does. No
 * block that is none does so by chance; those of hollow regions have no bytes to do so with. */
static inline bool object_begins_at(const void *address, struct object_place *place) {
    struct ebb_object *object = (struct ebb_object *)address;
    place->object = object;
    return range_holds((uintptr_t)address) &&
           object_block((uintptr_t)address, place) >= sizeof *object && !place->host->hollow &&
           (object->state & (OBJECT_OWNER | OBJECT_LIVE)) == (OBJECT_LIVE | place->host->owner);
}

/* True if there is a live object at `address`. */
static inline bool object_peek(const void *address, struct object_place *place) {
    return object_begins_at(address, place) &&
           (place->object->type == &ebb_type_tensor || type_is_registered(place->object->type));
}

#endif
