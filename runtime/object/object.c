// SPDX-License-Identifier: Apache-2.0
/*
 * object.c - one object: made, found, ended, listed (see object.h).
 *
 * An object begins a block, so whether an address is one is the same look-up as for a release,
 * and a look at its first words. Nothing here is visited when a region closes; a rewind ends the
 * newer objects one by one, before their blocks go.
 */
#include "region/block.h"
#include "object/adopt.h"
#include "base/error.h"
#include "region/lookup.h"
#include "object/exchange.h"
#include "region/safe.h"
#include "region/small.h"

#include <string.h>

/* ---- making ---- */

/* Moves an object in its list: behind another, or to the front if that is NULL. */
static void relist(struct region *owner, struct ebb_object *object, struct ebb_object *behind) {
    object_delist(owner, object);
    if (!behind) {
        object_enlist(owner, object);
        return;
    }
    object->prev = behind;
    object->next = behind->next;
    behind->next = object;
    if (object->next)
        object->next->prev = object;
}

/* The newest one that the region hosts; those that it got from others have cleanups. Were some of
 * these in front, all that go come to the front, or each would be looked for behind them. */
static struct ebb_object *newest_own(struct region *region, uint64_t serial) {
    struct ebb_object *last = NULL, *next;
    if (!region->objects || !region->objects->adoption)
        return region->objects;
    for (struct ebb_object *at = region->objects; at; at = next) {
        next = at->next;
        if (at->adoption)
            continue;
        if (at->serial < serial)
            break;
        relist(region, at, last);
        last = at;
    }
    return last ? region->objects : NULL;
}

/* False: there are none. */
static bool end_newer_own(struct region *region, uint64_t serial) {
    struct ebb_object *object = newest_own(region, serial);
    if (!object || object->serial < serial)
        return false;
    for (; object && object->serial >= serial; object = newest_own(region, serial))
        ebb_object_end(object);
    return true;
}

/* Meanwhile a producer who has bytes back may have made more views of what went next. */
static void end_newer(struct region *region, uint64_t serial) {
    region_begin_work(region);
    do
        tensor_rewind_views(region, serial);
    while (end_newer_own(region, serial));
    region_end_work(region);
}

/* True if the block begins with what is left of a tensor, whose storage others still see. What is
 * none of ebb's may look so only where such a one was before, and nothing was written since. */
static bool is_storage(const struct ebb_tensor *tensor, size_t bytes) {
    const struct ebb_storage *storage = tensor->storage;
    uintptr_t offset = (uintptr_t)storage - (uintptr_t)tensor;
    return offset % sizeof(int64_t) == 0 && offset >= sizeof *tensor &&
           offset <= bytes - sizeof *storage && storage->block == (const void *)tensor &&
           storage->tensors > 0;
}

/* Of what objects need besides, the region knows: block_claim(). */
static bool is_needed(const struct region *region, const void *block) {
    struct object_place place;
    const struct ebb_object *object = block;
    size_t bytes = range_holds((uintptr_t)block) ? object_block((uintptr_t)block, &place) : 0;
    if (bytes < sizeof *object || place.host != region)
        return false;
    if ((object->state & (OBJECT_OWNER | OBJECT_LIVE)) == (OBJECT_LIVE | region->owner))
        return object_is_tensor(object) || type_is_registered(object->type);
    return bytes >= sizeof(struct ebb_tensor) + sizeof(struct ebb_storage) &&
           object_is_tensor(object) && is_storage(block, bytes);
}

static bool part(struct ebb_cleanup *cleanup) {
    return adoption_part(cleanup) || import_part(cleanup);
}

const struct object_hooks object_hooks = {end_newer, storage_leave_to_exports, is_needed,
                                          object_check_all, part};

struct region *object_refused(ebb_region handle) {
    const struct region *host = region_find(handle);
    if (host)
        region_refuse_hollow(host, "an object needs memory of the host");
    return NULL;
}

void *ebb_object_new(ebb_region region, const struct ebb_type *type, size_t extra) {
    struct region *host = object_host_for(region);
    size_t bytes;
    if (!host)
        return NULL;
    if (!type || !type_is_registered(type)) {
        error_set(EBB_E_TYPE, "type '%s' is not registered", type && type->name ? type->name : "");
        return NULL;
    }
    if (type == &ebb_type_tensor) {
        error_set(EBB_E_TYPE, "a tensor has a shape and a storage: ebb_tensor_new() makes it");
        return NULL;
    }
    if (!size_add(type->bytes, extra, &bytes)) {
        error_set(EBB_E_SIZE, "%zu bytes behind an object of %zu overflow", extra, type->bytes);
        return NULL;
    }
    struct ebb_object *object =
        block_for_object(host, bytes, EBB_GRANULE, __builtin_return_address(0));
    if (!object)
        return NULL;
    memset(object, 0, type->bytes);
    object_begin(host, object, type, type->kind);
    return object;
}

void object_replace(struct ebb_object *old, struct ebb_object *fresh) {
    struct region *owner = object_owner(old);
    object_delist(owner, old);
    object_enlist(owner, fresh);
    fresh->serial = object_host(fresh)->mark_serial;
    adoption_follow(fresh);
    old->state = 0;
    old->adoption = NULL;
}

void object_renew(struct ebb_object *object) {
    struct region *host = object_host(object);
    object->serial = host->mark_serial;
    while (object->whole) {
        const struct ebb_object *whole = object_whole(object);
        if (!whole || whole->serial == host->mark_serial || !compose_finds(object))
            return; /* the rest is as new already, or has lost it; and it is in no list */
        object = object->whole;
        object->serial = host->mark_serial;
    }
    if (object->adoption) {
        adoption_follow(object);
        return;
    }
    object_delist(host, object);
    object_enlist(host, object);
}

/* ---- finding ---- */

/* Says why there is no live object: sets and returns the error. */
static __attribute__((cold)) int not_found(const void *address) {
    if (!range_holds((uintptr_t)address))
        return error_set(EBB_E_FOREIGN, "%p is not memory of ebb", address);
    ebb_region around = ebb_region_of(address);
    struct region *region = (struct region *)around.lane;
    struct block_place place;
    if (!ebb_region_is_open(around))
        return error_set(EBB_E_FOREIGN, "%p belongs to no open region", address);
    region = block_owner(region, (uintptr_t)address);
    int result = block_find(region, address, &place);
    if (result)
        return result;
    const struct ebb_object *object = address;
    if (safe_is_needed(address))
        return error_set(EBB_E_TYPE, "%p is a block of %zu bytes in shared memory, no object",
                         address, place.requested);
    if (place.requested >= sizeof *object && !region->hollow && type_is_registered(object->type))
        return error_set(EBB_E_RELEASED, "%s %p has ended before", object->type->name, address);
    return error_set(EBB_E_TYPE, "%p is a block of %zu bytes, no object", address,
                     place.requested);
}

int object_find(const void *address, struct object_place *place) {
    return object_peek(address, place) ? 0 : not_found(address);
}

int object_check_staying(const struct ebb_object *object) {
    if (__builtin_expect(!(object->state & OBJECT_GATHERED), 1))
        return 0;
    return error_set(EBB_E_BUSY, "%s %p is ending with others", object->type->name,
                     (const void *)object);
}

void *ebb_object_as(void *address, const struct ebb_type *type) {
    struct object_place place;
    if (object_find(address, &place) != 0)
        return NULL;
    if (place.object->type == type)
        return address;
    error_set(EBB_E_TYPE, "%p is of type '%s', not '%s'", address, place.object->type->name,
              type && type->name ? type->name : "");
    return NULL;
}

/* The host of what can be none: no state of an object matches its owner number. In regions of
 * malloc() there are none, and another thread is at work there, perhaps. */
static const struct region nowhere = {.owner = UINT64_MAX};

struct region *object_host_at(struct region *place, uintptr_t addr) {
    return place->shared || place->inner ? (struct region *)&nowhere : block_owner(place, addr);
}

struct region *object_host(const void *block) {
    uintptr_t addr = (uintptr_t)block;
    return block_owner(region_of_piece(range_block_at(addr)), addr);
}

struct ebb_object *object_whole(const struct ebb_object *member) {
    struct object_place place;
    bool is_there = object_peek(member->whole, &place) && place.object->state & OBJECT_WHOLE &&
                    object_lies_with(place.object, member);
    return is_there ? member->whole : NULL;
}

/* Lies where no object does. */
static struct ebb_object gone;

void object_part(struct ebb_object *member) {
    struct ebb_object *whole;
    for (; member->whole; member = whole)
        if (!(whole = object_whole(member))) {
            member->whole = &gone;
            return;
        }
}

const char *object_whole_name(const struct ebb_object *member) {
    const struct ebb_object *whole = object_whole(member);
    return whole ? whole->type->name : "an object that has gone";
}

ebb_region ebb_object_owner(const void *address) {
    struct object_place place;
    if (object_find(address, &place) != 0)
        return region_handle(NULL);
    return region_handle(object_owner(place.object));
}

bool ebb_region_owns(ebb_region handle, const void *address) {
    struct object_place place;
    struct region *region = region_peek(handle);
    error_mute();
    bool found = region && object_find(address, &place) == 0;
    error_unmute();
    return found && object_owner(place.object) == region;
}

size_t ebb_region_list_objects(ebb_region handle, void **objects, size_t room) {
    struct region *region = region_find(handle);
    size_t count = 0;
    if (!region)
        return 0;
    if (!objects && room > 0) {
        error_set(EBB_E_ARGUMENT, "region '%s': room for %zu objects at NULL", region->name, room);
        return 0;
    }
    for (struct ebb_object *object = region->objects; object; object = object->next, count++)
        if (count < room)
            objects[count] = object;
    return count;
}

/* ---- ending ---- */

void object_release(void *block) {
    ebb_region_release(region_handle(object_host(block)), block);
}

/* Blocks of fields that were written since are let alone, unless they are blocks of the host. */
static void release_fields(struct ebb_object *object) {
    ebb_region host = region_handle(object_host(object));
    struct object_place place;
    for (size_t i = 0; i < object->type->field_count; i++) {
        const struct ebb_field *field = &object->type->fields[i];
        void *block = *field_place(object, field);
        bool counted = field->kind != EBB_FIELD_OBJECT && block && block != object;
        if (counted && !object_peek(block, &place))
            ebb_region_release(host, block);
    }
}

/* `counted`: where, or NULL. */
static void finish_one(struct region *counted, struct ebb_object *object) {
    if (counted)
        kind_ended(counted, object->type->kind);
    object->state = 0;
    object->forward = NULL;
    if (object_is_tensor(object)) {
        tensor_finish(tensor_of(object));
        return;
    }
    error_mute();
    release_fields(object);
    error_unmute();
    object_release(object);
}

/*
 * Ends an object and its members; its blocks are released. It is in no list any more. Producers
 * have their bytes back meanwhile, and may do anything but end what is chained here, or its host or
 * who has or had it; a tensor is over when that happens. A composite ends before its members, which
 * forget it first.
 */
static void finish(struct object_place place, struct region *owner) {
    struct region *other = owner != place.host ? owner : NULL;
    struct region *counted = place.object->whole ? member_counted_in(place.object, owner) : owner;
    struct ebb_object *next;
    if (object_is_tensor(place.object)) {
        adoption_forget(place.object);
        finish_one(counted, place.object);
        return;
    }
    struct ebb_adoption *had = adoption_begin_end(place.object);
    struct ebb_object *first = compose_chain(place.object);
    for (struct ebb_object *at = first; at; at = at->forward)
        at->whole = NULL;
    region_begin_work(place.host);
    region_begin_work(other);
    for (struct ebb_object *at = first; at; at = next) {
        next = at->forward;
        finish_one(at == first ? counted : member_counted_in(at, owner), at);
    }
    adoption_finish_end(had);
    region_end_work(other);
    region_end_work(place.host);
}

/* The field of its composite that refers to a member becomes empty. */
static void leave_whole(struct ebb_object *member) {
    struct ebb_object *whole = object_whole(member);
    for (size_t i = 0; whole && i < whole->type->field_count; i++) {
        void **members;
        size_t count = compose_members(whole, &whole->type->fields[i], &members);
        for (size_t at = 0; at < count; at++)
            members[at] = members[at] == member ? NULL : members[at];
    }
}

static __attribute__((noinline)) int end_other(void *address) {
    struct object_place place = {.object = NULL}; /* gcc does not see that it is found */
    int result = object_find(address, &place);
    if (result)
        return result;
    result = object_check_staying(place.object);
    if (result)
        return result;
    struct region *owner = object_owner(place.object);
    if (place.object->whole)
        leave_whole(place.object);
    else
        object_delist(owner, place.object);
    finish(place, owner);
    return 0;
}

/* Most objects are tensors that nobody else has to do with, and one small block: found by the
 * look-up of a release, and ended by the same. */
int ebb_object_end(void *address) {
    uintptr_t addr = (uintptr_t)address;
    struct ebb_object *object = address;
    if (!range_holds(addr))
        return end_other(address);
    struct ebb_piece *window = range_block_at(addr);
    struct region *host = region_of_piece(window);
    if (piece_key(window) != host->quick_key || !piece_covers(window, addr) || host->hollow)
        return end_other(address);
    uint16_t *entry = small_entry(window, addr);
    if (!small_is_live(entry, addr) || *entry <= sizeof *object || object->state != host->alone)
        return end_other(address);
    size_t bytes = small_entry_bytes(*entry);
    object->state = 0;
    object_delist(host, object);
    kind_count(&host->kind_counts[EBB_OBJECT_TENSOR].ended); /* valid: it has had this one */
    return small_end(host, window, addr, entry, bytes);
}
