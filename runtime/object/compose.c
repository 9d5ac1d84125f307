// SPDX-License-Identifier: Apache-2.0
/*
 * compose.c - objects become members of a composite, and are found again.
 *
 * All fields are looked at first; only then does anything change. Members that are composites
 * were checked when they were composed, so what is new here is one level and the depth. Invariant:
 * `whole` of a member is the composite that has it in a field, so there are no cycles. Walks go
 * without recursion, and past whatever was written into fields since they were composed.
 */
#include "base/cancel.h"
#include "base/check.h"
#include "base/error.h"
#include "region/block.h"
#include "region/lookup.h"
#include "object/adopt.h"
#include "region/safe.h"
#include "region/survivor.h"
#include "region/undo.h"

#include <string.h>

/* ---- walking ---- */

bool compose_has(const struct ebb_object *whole, const void *address) {
    struct object_place place;
    const struct ebb_object *member = address;
    return address && object_begins_at(address, &place) && member_names(member, whole) &&
           object_lies_with(member, whole) && /* else it was lost, and stayed where it was */
           member->serial <= whole->serial;   /* else it was lost, and got something newer */
}

bool compose_has_room(const struct region *host, void *const *members, size_t count) {
    uintptr_t addr = (uintptr_t)members;
    struct object_place block;
    return range_holds(addr) && count <= object_block(addr, &block) / sizeof(void *) &&
           (block.host == host || region_of_piece(block.piece) == host);
}

size_t compose_members(struct ebb_object *object, const struct ebb_field *field,
                       void ***members) {
    void **place = field_place(object, field);
    size_t count = field_count_of(object, field);
    *members = field->kind == EBB_FIELD_OBJECT ? place : *place;
    if (field->kind != EBB_FIELD_OBJECTS || !count)
        return count;
    return compose_has_room(object_host(object), *place, count) ? count : 0;
}

bool compose_finds(const struct ebb_object *member) {
    struct ebb_object *whole = object_whole(member);
    for (size_t i = 0; whole && i < whole->type->field_count; i++) {
        void **members;
        size_t count = compose_members(whole, &whole->type->fields[i], &members);
        for (size_t at = 0; at < count; at++)
            if (members[at] == member)
                return true;
    }
    return false;
}

static void chain_last(struct ebb_object **last, struct ebb_object *object) {
    object->state |= OBJECT_GATHERED;
    object->forward = NULL;
    if (*last)
        (*last)->forward = object;
    *last = object;
}

static void chain_field(struct ebb_object **last, struct ebb_object *object,
                        const struct ebb_field *field) {
    void **members;
    size_t count = compose_members(object, field, &members);
    for (size_t i = 0; i < count; i++) {
        struct ebb_object *member = members[i];
        if (compose_has(object, member) && !(member->state & OBJECT_GATHERED))
            chain_last(last, member);
    }
}

struct ebb_object *compose_chain(struct ebb_object *whole) {
    struct ebb_object *last = NULL;
    CHECK(!(whole->state & OBJECT_GATHERED)); /* `forward` has one place in one chain */
    chain_last(&last, whole);
    for (struct ebb_object *at = whole; at; at = at->forward)
        for (size_t i = 0; i < at->type->field_count; i++)
            chain_field(&last, at, &at->type->fields[i]);
    return whole;
}

void compose_unchain(struct ebb_object *first) {
    for (struct ebb_object *next; first; first = next) {
        next = first->forward;
        first->forward = NULL;
        first->state &= ~OBJECT_GATHERED;
    }
}

/* ---- members at several places ---- */

bool compose_is_told(struct ebb_object *member) {
    bool told = member->state & OBJECT_TOLD;
    member->state |= OBJECT_TOLD;
    return told;
}

void compose_untell(struct ebb_object *whole) {
    for (size_t i = 0; i < whole->type->field_count; i++) {
        void **members;
        size_t count = compose_members(whole, &whole->type->fields[i], &members);
        for (size_t at = 0; at < count; at++)
            if (compose_has(whole, members[at]))
                ((struct ebb_object *)members[at])->state &= ~OBJECT_TOLD;
    }
}

/* ---- depth ---- */

static unsigned depth_above(const struct ebb_object *object) {
    unsigned depth = 0;
    while (object->whole && (object = object_whole(object)) != NULL)
        depth++;
    return depth;
}

unsigned compose_depth(struct ebb_object *whole) {
    struct ebb_object *first = compose_chain(whole);
    unsigned deepest = 0;
    for (const struct ebb_object *at = first; at; at = at->forward) {
        unsigned depth = 0;
        for (const struct ebb_object *above = at; above != whole; above = above->whole)
            depth++;
        deepest = depth > deepest ? depth : deepest;
    }
    compose_unchain(first);
    return deepest;
}

static int check_depth(const struct ebb_object *whole, struct ebb_object *fresh) {
    unsigned depth = depth_above(whole) + 1 + compose_depth(fresh);
    if (depth > EBB_DEPTH_MAX)
        return error_set(EBB_E_DEPTH, "%s %p: objects nested %u deep, %d may be",
                         whole->type->name, (const void *)whole, depth, EBB_DEPTH_MAX);
    return 0;
}

/* ---- checking ---- */

static bool is_above(const struct ebb_object *object, const struct ebb_object *member) {
    for (; object; object = object_whole(object))
        if (object == member)
            return true;
    return false;
}

static int check_member(struct object_place whole, const char *field, void *address) {
    struct object_place place;
    if (!address)
        return 0;
    int result = object_find(address, &place);
    if (!result)
        result = object_check_staying(place.object);
    if (result)
        return result;
    struct ebb_object *member = place.object;
    if (is_above(whole.object, member))
        return error_set(EBB_E_CYCLE, "%s %p would contain itself: field '%s'",
                         member->type->name, address, field);
    if (member->whole && !member_names(member, whole.object))
        return error_set(EBB_E_MEMBER, "field '%s': %s %p is a member of %s %p", field,
                         member->type->name, address, object_whole_name(member),
                         (void *)member->whole);
    if (member->adoption)
        return error_set(EBB_E_BORROWED, "field '%s': %s %p belongs to region '%s' for a time",
                         field, member->type->name, address, object_owner(member)->name);
    if (place.host != whole.host)
        return error_set(EBB_E_NOT_OWNED, "field '%s': %s %p is of region '%s', not '%s'", field,
                         member->type->name, address, place.host->name, whole.host->name);
    bool is_checked = member->whole && !whole.object->whole; /* else it may have been lost since */
    return is_checked ? 0 : check_depth(whole.object, member);
}

int compose_check_block(const struct ebb_object *object, const struct region *host,
                        const struct ebb_field *field) {
    void *block = *field_place((struct ebb_object *)object, field);
    size_t needed = field_count(object, field);
    struct object_place place;
    struct block_place found;
    int result = block_find((struct region *)host, block, &found);
    if (result)
        return result;
    if (object_peek(block, &place))
        return error_set(EBB_E_TYPE, "field '%s': %p is a %s, no block", field->name, block,
                         place.object->type->name);
    if (field->kind == EBB_FIELD_OBJECTS && !size_multiply(needed, sizeof(void *), &needed))
        needed = SIZE_MAX;
    if (found.requested < needed)
        return error_set(EBB_E_SIZE, "field '%s': %zu bytes needed, %p has %zu", field->name,
                         needed, block, found.requested);
    return 0;
}

/* The block of a counted field, or that there is none. */
static int check_counted(struct ebb_object *object, struct region *host,
                         const struct ebb_field *field) {
    if (field->kind == EBB_FIELD_OBJECT)
        return 0;
    if (*field_place(object, field))
        return compose_check_block(object, host, field);
    size_t count = field_count(object, field);
    if (!count)
        return 0;
    return error_set(EBB_E_ARGUMENT, "field '%s' is NULL, its count %zu", field->name, count);
}

static int check_field(struct object_place whole, const struct ebb_field *field) {
    void **members;
    int result = check_counted(whole.object, whole.host, field);
    size_t count = result ? 0 : compose_members(whole.object, field, &members);
    for (size_t at = 0; at < count && !result; at++)
        result = check_member(whole, field->name, members[at]);
    return result;
}

static int check_has(struct ebb_object *whole, const struct ebb_field *field) {
    void **members;
    int result = check_counted(whole, object_host(whole), field);
    size_t count = result ? 0 : compose_members(whole, field, &members);
    for (size_t at = 0; at < count; at++)
        if (members[at] && !compose_has(whole, members[at]))
            return error_set(EBB_E_NOT_OWNED, "field '%s': %p is no member of %s %p", field->name,
                             members[at], whole->type->name, (void *)whole);
    return result;
}

int compose_check_members(struct ebb_object *whole, const struct ebb_field *slot) {
    int result = 0;
    for (size_t i = 0; !result && i < whole->type->field_count; i++)
        if (&whole->type->fields[i] != slot)
            result = check_has(whole, &whole->type->fields[i]);
    return result;
}

/* Fields may have what they are to have only if it may stay. */
static int check_type(const struct ebb_object *object) {
    if (!object->type->check)
        return 0;
    int cancels = cancel_defer();
    int result = object->type->check(object);
    cancel_restore(cancels);
    return result;
}

int compose_check_fresh(struct ebb_object *whole, const struct ebb_field *slot,
                        struct ebb_object *fresh) {
    int result = fresh ? check_depth(whole, fresh) : 0;
    if (!result && whole->type->check)
        result = compose_check_members(whole, slot);
    return result ? result : check_type(whole);
}

static int check_all(struct object_place whole) {
    const struct ebb_type *type = whole.object->type;
    int result = 0;
    for (size_t i = 0; !result && i < type->field_count; i++)
        result = check_field(whole, &type->fields[i]);
    return result ? result : check_type(whole.object);
}

/* ---- joining ---- */

void compose_join(struct object_place whole, struct ebb_object *member) {
    struct region *owner = object_owner(whole.object);
    if (!member)
        return;
    if (member->whole == whole.object) { /* it may have been counted elsewhere, while it was lost */
        if (member_counted_in(member, owner) != owner)
            object_pass_kinds(member, whole.host, owner);
    } else {
        object_delist(whole.host, member);
        if (owner != whole.host)
            object_pass_kinds(member, whole.host, owner);
        member_join(member, whole.object);
        member_count_in(member, owner);
        kind_count(&kind_of(owner, member->type->kind)->joined);
    }
    if (member->serial > whole.object->serial)
        object_renew(whole.object);
}

static void join_field(struct object_place whole, const struct ebb_field *field) {
    void **members;
    size_t count = compose_members(whole.object, field, &members);
    for (size_t at = 0; at < count; at++)
        compose_join(whole, members[at]);
    void *block = field->kind != EBB_FIELD_OBJECT ? *field_place(whole.object, field) : NULL;
    if (block)
        block_claim(whole.host, block);
    if (block && whole.object->serial < whole.host->mark_serial)
        object_renew(whole.object); /* how old a block is, nobody knows */
}

static int join_all(struct object_place whole) {
    int result = check_all(whole);
    if (result)
        return result;
    for (size_t i = 0; i < whole.object->type->field_count; i++)
        join_field(whole, &whole.object->type->fields[i]);
    return 0;
}

/* ---- pointers that others could change ---- */

/* The block of pointers of a field lies in shared memory. */
static bool is_exposed(struct ebb_object *object, const struct ebb_field *field) {
    return field->kind == EBB_FIELD_OBJECTS && safe_is_needed(*field_place(object, field));
}

/* The field gets a copy that no other process writes to; behind its pointers, where it was. */
static int shelter_field(struct object_place whole, const struct ebb_field *field) {
    void **place = field_place(whole.object, field), *exposed = *place, **copy;
    size_t count = field_count(whole.object, field), bytes;
    int result = compose_check_block(whole.object, whole.host, field);
    if (result)
        return result;
    if (!size_add(count, 1, &bytes) || !size_multiply(bytes, sizeof *copy, &bytes))
        return error_set(EBB_E_SIZE, "field '%s': %zu pointers overflow", field->name, count);
    copy = block_allocate_private(whole.host, bytes, EBB_GRANULE, __builtin_return_address(0));
    if (!copy)
        return error_latest();
    memcpy(copy, exposed, count * sizeof *copy);
    copy[count] = exposed;
    *place = copy;
    return 0;
}

/* Of the first `fields` fields those in the set: the copies go, or what they are copies of. */
static void leave_shelter(struct object_place whole, size_t fields, uint64_t set, bool back) {
    for (size_t i = 0; i < fields; i++) {
        const struct ebb_field *field = &whole.object->type->fields[i];
        void **place = field_place(whole.object, field), **copy = *place;
        if (!(set >> i & 1))
            continue;
        void *exposed = copy[field_count(whole.object, field)];
        *place = back ? exposed : copy;
        object_release(back ? copy : exposed);
    }
}

/* In shared memory: the same, but pointers are looked at and kept where nobody changes them. */
static int compose_sheltered(struct object_place whole) {
    size_t count = size_smaller(whole.object->type->field_count, 64), done = 0;
    struct undo undo;
    undo_remember(whole.host, &undo);
    uint64_t set = 0;
    int result = 0;
    for (; done < count && !result; done++)
        if (is_exposed(whole.object, &whole.object->type->fields[done]) &&
            (result = shelter_field(whole, &whole.object->type->fields[done])) == 0)
            set |= (uint64_t)1 << done;
    for (size_t i = count; i < whole.object->type->field_count && !result; i++)
        if (is_exposed(whole.object, &whole.object->type->fields[i]))
            result = error_set(EBB_E_TYPE, "type '%s': more than 64 fields, and pointers in shared "
                               "memory", whole.object->type->name);
    if (!result)
        result = join_all(whole);
    leave_shelter(whole, done, set, result != 0);
    if (result)
        undo_restore(whole.host, &undo);
    return result;
}

int ebb_object_compose(void *address) {
    struct object_place whole;
    int result = object_find(address, &whole);
    if (!result)
        result = object_check_staying(whole.object);
    if (!result && object_is_lent(whole.object))
        result = object_check_free(address, &whole);
    if (result)
        return result;
    return whole.host->shared ? compose_sheltered(whole) : join_all(whole);
}
