// SPDX-License-Identifier: Apache-2.0
/*
 * adopt.c - owners that are not hosts: attached and borrowed objects.
 *
 * An adoption says that `owner` has the object, and what it was before (`under`). It hangs in the
 * cleanups of the owner, which decides what becomes of the object when that ends, and in those of
 * the host: no object outlives its bytes. Records lie in the host. A rewind of the host to a mark
 * between the object and its adoption takes the adoption back.
 *
 *     object -> | owner U, lent | -> | owner S, lent | -> host M
 *
 * Invariant: at most the lowest adoption is an attachment; the top one's owner has the object in
 * its list. Taking a record is all that can fail, and comes first.
 */
#include "object/adopt.h"
#include "base/check.h"
#include "base/error.h"
#include "region/block.h"
#include "region/cleanup.h"

#include <string.h>

struct ebb_adoption {
    struct ebb_cleanup owner_ends, host_ends;
    struct ebb_object *object;
    struct region *owner;
    struct ebb_adoption *under, *above;
    bool lent; /* goes back when the owner ends; else it ends too */
};

/* Who has the composite that the member is in, if it lies elsewhere. */
static struct region *owner_of_whole(const struct ebb_object *member) {
    const struct ebb_object *at = member, *whole;
    while (at->whole && (whole = object_whole(at)) != NULL)
        at = whole;
    return !at->whole && at->adoption ? at->adoption->owner : NULL;
}

struct region *object_owner(const struct ebb_object *object) {
    struct region *region = object->whole ? member_counted_in(object, owner_of_whole(object))
                            : object->adoption ? object->adoption->owner
                                               : NULL;
    return region ? region : object_host(object);
}

/* True if the region is of the tree of `member`, which the member's host is in. */
static bool is_of_its_tree(const struct ebb_object *member, const struct region *region) {
    struct region *root = region_of_owner(member->state & OBJECT_OWNER);
    while (root->parent)
        root = root->parent;
    struct region *at = root;
    while (at && at != region)
        at = region_next_below(at, root);
    return at != NULL;
}

struct region *member_counted_apart(const struct ebb_object *member, const struct region *owner) {
    struct region *region = (struct region *)(void *)member->next;
    bool is_known = region == owner || is_of_its_tree(member, region);
    return is_known && region->block_key == (uintptr_t)member->prev ? region : NULL;
}

bool object_is_lent(const struct ebb_object *object) {
    return object->adoption && object->adoption->lent;
}

static bool ends_with(const struct region *region, const struct region *closing) {
    return region == closing || region_is_above(closing, region);
}

bool object_outlives(const struct ebb_object *object, const struct region *closing) {
    const struct ebb_adoption *lowest = object->adoption;
    if (!lowest)
        return false;
    while (lowest->under)
        lowest = lowest->under;
    return !ends_with(object_host(object), closing) &&
           (lowest->lent || !ends_with(lowest->owner, closing));
}

/* ---- passing on ---- */

void object_count_passed(uint32_t kind, struct region *from, struct region *to) {
    if (to->depth == 0 && from->depth != 0)
        kind_count(&kind_of(from, kind)->detached);
    else if (from->depth == 0 && to->depth != 0)
        kind_count(&kind_of(to, kind)->attached);
    else
        kind_count(&kind_of(from, kind)->moved);
}

void object_pass_kinds(struct ebb_object *object, struct region *from, struct region *to) {
    struct ebb_object *first = compose_chain(object);
    for (struct ebb_object *at = first; at; at = at->forward) {
        if (at->whole)
            member_pass(at, from, to);
        else
            kind_passed(from, to, at->type->kind);
    }
    compose_unchain(first);
}

/* Where in the list of its host one that is older than a mark is looked for: what came back last
 * is still in front of what is older, if it is still there. */
static struct ebb_object *first_older(const struct region *host, const struct ebb_object *object) {
    struct ebb_object *last = host->came_back;
    struct object_place place;
    bool is_there = object_peek(last, &place) && place.host == host && !last->whole &&
                    !last->adoption && !(last->state & OBJECT_GATHERED);
    return is_there && last->serial >= object->serial ? last : host->objects;
}

/* Back in the list of its host, which is in the order of age. */
static void enlist_by_age(struct region *host, struct ebb_object *object) {
    bool is_old = object->serial < host->mark_serial;
    struct ebb_object *at = is_old ? first_older(host, object) : host->objects;
    struct ebb_object *before = at ? at->prev : NULL;
    while (at && is_old && (at->adoption || at->serial > object->serial)) {
        before = at;
        at = at->next;
    }
    host->came_back = is_old ? object : host->came_back;
    object->prev = before;
    object->next = at;
    if (at)
        at->prev = object;
    if (before)
        before->next = object;
    else
        host->objects = object;
}

static void pass(struct ebb_object *object, struct region *from, struct region *to) {
    object_delist(from, object);
    if (to == object_host(object))
        enlist_by_age(to, object);
    else
        object_enlist(to, object);
    to->hooks = from->hooks;
    object_pass_kinds(object, from, to);
    object_count_passed(object->type->kind, from, to);
}

/* ---- records ---- */

static void delist(struct ebb_adoption *adoption) {
    cleanup_delist(&adoption->owner_ends);
    cleanup_delist(&adoption->host_ends);
}

static void give_record(struct ebb_adoption *adoption) {
    if (adoption->above)
        adoption->above->under = adoption->under;
    else
        adoption->object->adoption = adoption->under;
    if (adoption->under)
        adoption->under->above = adoption->above;
    delist(adoption);
    object_release(adoption);
}

/* The owner of a record ends. */
static int owner_ends(void *data) {
    struct ebb_adoption *adoption = data;
    if (!adoption->lent)
        return ebb_object_end(adoption->object); /* who got it lent from this one loses it, too */
    if (!adoption->above)
        return ebb_object_return(adoption->object);
    give_record(adoption);
    return 0;
}

static void pop(struct ebb_object *object);

/* The host ends, or is rewound: to before the object came, or only to before it was adopted. */
static int host_ends(void *data) {
    struct ebb_adoption *adoption = data;
    struct ebb_object *object = adoption->object;
    if (object->serial >= object_host(object)->ending)
        return ebb_object_end(object);
    CHECK(object->adoption == adoption); /* newer records went first */
    pop(object);
    return 0;
}

static int push(struct ebb_object *object, struct region *owner, bool lent) {
    struct region *host = object_host(object);
    struct ebb_adoption *adoption = block_place_private(host, sizeof *adoption, EBB_GRANULE);
    if (!adoption)
        return error_latest();
    *adoption = (struct ebb_adoption){.owner_ends = {.run = owner_ends, .data = adoption},
                                      .host_ends = {.run = host_ends, .data = adoption},
                                      .object = object,
                                      .owner = owner,
                                      .under = object->adoption,
                                      .lent = lent};
    pass(object, object_owner(object), owner);
    cleanup_enlist(owner, &adoption->owner_ends);
    cleanup_enlist(host, &adoption->host_ends);
    if (object->adoption)
        object->adoption->above = adoption;
    object->adoption = adoption;
    object->state &= ~OBJECT_ALONE;
    return 0;
}

struct region *adoption_tied_to(const struct ebb_cleanup *cleanup) {
    const struct ebb_adoption *adoption = cleanup->data;
    if (cleanup->run == host_ends)
        return adoption->owner;
    return cleanup->run == owner_ends ? object_host(adoption->object) : NULL;
}

bool adoption_has(const struct ebb_cleanup *cleanup, const struct ebb_object *object) {
    const struct ebb_adoption *adoption = cleanup->data;
    return (cleanup->run == host_ends || cleanup->run == owner_ends) && adoption->object == object;
}

struct ebb_object *adoption_lost(const struct ebb_cleanup *cleanup,
                                 const struct region *closing) {
    const struct ebb_adoption *adoption = cleanup->data;
    bool hosts = cleanup->run == host_ends;
    if (!hosts && (cleanup->run != owner_ends || adoption->lent))
        return NULL;
    struct ebb_object *object = adoption->object;
    bool counts = hosts ? !adoption->above : !ends_with(object_host(object), closing);
    return counts && !ends_with(object->adoption->owner, closing) ? object : NULL;
}

/* The top record goes; who is next gets the object. */
static void pop(struct ebb_object *object) {
    struct ebb_adoption *top = object->adoption;
    struct region *next = top->under ? top->under->owner : object_host(object);
    pass(object, top->owner, next);
    give_record(top);
}

bool adoption_part(struct ebb_cleanup *cleanup) {
    struct ebb_adoption *adoption = cleanup->data;
    struct ebb_object *object = cleanup->run == host_ends ? adoption->object : NULL;
    while (object && object->adoption)
        pop(object);
    if (object)
        return true;
    if (cleanup->run != owner_ends)
        return false;
    if (adoption->above)
        give_record(adoption);
    else
        pop(adoption->object);
    return true;
}

void adoption_forget(struct ebb_object *object) {
    while (object->adoption)
        give_record(object->adoption);
}

struct ebb_adoption *adoption_begin_end(struct ebb_object *object) {
    struct ebb_adoption *top = object->adoption;
    for (struct ebb_adoption *at = top; at; at = at->under) {
        delist(at);
        region_begin_work(at->owner);
    }
    object->adoption = NULL;
    return top;
}

void adoption_finish_end(struct ebb_adoption *top) {
    struct ebb_adoption *under;
    for (struct ebb_adoption *at = top; at; at = under) {
        under = at->under;
        region_end_work(at->owner);
        object_release(at);
    }
}

void adoption_follow(struct ebb_object *object) {
    struct region *host = object_host(object);
    for (struct ebb_adoption *at = object->adoption; at; at = at->under) {
        at->object = object;
        cleanup_delist(&at->host_ends);
        cleanup_enlist(host, &at->host_ends);
    }
}

void adoption_begin_work(const struct ebb_object *object) {
    if (object->adoption)
        region_begin_work(object_host(object));
    for (const struct ebb_adoption *at = object->adoption; at; at = at->under)
        region_begin_work(at->owner);
}

void adoption_end_work(const struct ebb_object *object) {
    if (object->adoption)
        region_end_work(object_host(object));
    for (const struct ebb_adoption *at = object->adoption; at; at = at->under)
        region_end_work(at->owner);
}

/* ---- attaching ---- */

int object_adopt(struct ebb_object *object, struct region *target) {
    struct ebb_adoption *adoption = object->adoption;
    if (target == object_host(object)) {
        pop(object);
        return 0;
    }
    if (!adoption)
        return push(object, target, false);
    pass(object, adoption->owner, target);
    adoption->owner = target;
    delist(adoption);
    cleanup_enlist(target, &adoption->owner_ends);
    cleanup_enlist(object_host(object), &adoption->host_ends); /* as new as if it had come now */
    return 0;
}

int ebb_object_attach(void *address, ebb_region handle) {
    struct object_place place;
    struct region *target = region_find(handle);
    if (!target)
        return EBB_E_STALE;
    int result = object_check_free(address, &place);
    if (result || object_owner(place.object) == target)
        return result;
    if (target->sealed)
        return error_set(EBB_E_SEALED, "region '%s' is sealed: %s %p refused", target->name,
                         place.object->type->name, address);
    if (target != place.host && !region_is_above(place.host, target))
        return error_set(EBB_E_NOT_ANCESTOR, "%s %p lies in region '%s', not above '%s'",
                         place.object->type->name, address, place.host->name, target->name);
    return object_adopt(place.object, target);
}

int object_check_free(const void *address, struct object_place *place) {
    int result = object_find(address, place);
    if (result)
        return result;
    const struct ebb_object *object = place->object;
    if (object->whole)
        return error_set(EBB_E_MEMBER, "%s %p is a member of %s %p", object->type->name, address,
                         object_whole_name(object), (void *)object->whole);
    result = object_check_staying(object);
    if (!result && object_is_lent(object))
        return error_set(EBB_E_BORROWED, "%s %p is lent to region '%s'", object->type->name,
                         address, object->adoption->owner->name);
    return result;
}

/* ---- lending ---- */

int ebb_object_borrow(void *address, ebb_region handle) {
    struct object_place place;
    struct region *borrower = object_host_for(handle);
    int result = borrower ? object_find(address, &place) : error_latest();
    if (!result)
        result = object_check_staying(place.object);
    if (result)
        return result;
    if (place.object->whole)
        return object_check_free(address, &place);
    if (object_owner(place.object) == borrower)
        return 0;
    return push(place.object, borrower, true);
}

int ebb_object_return(void *address) {
    struct object_place place;
    int result = object_find(address, &place);
    if (!result)
        result = object_check_staying(place.object);
    if (result)
        return result;
    if (!object_is_lent(place.object))
        return error_set(EBB_E_NOT_OWNED, "%s %p is not lent", place.object->type->name, address);
    pop(place.object);
    return 0;
}
