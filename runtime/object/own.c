// SPDX-License-Identifier: Apache-2.0
/*
 * own.c - objects change hands: promote, move, detach, replace (see ebb/own.h).
 *
 * Everything is checked and gathered first; then either bytes move (journey.c) or only the owner
 * does (adopt.c). Objects of one call that are hosted further up than the source need no journey.
 * Refuses members, what is lent, and regions that are closed, sealed or on the wrong side.
 */
#include "base/error.h"
#include "region/promote.h"
#include "object/adopt.h"
#include "object/journey.h"

static const struct ebb_own_options defaults = {.size = sizeof(struct ebb_own_options)};

/* ---- checking ---- */

static int check_target(const struct region *target, const struct ebb_object *object) {
    if (target->hollow)
        return region_refuse_hollow(target, "an object needs memory of the host");
    if (!target->sealed)
        return 0;
    return error_set(EBB_E_SEALED, "region '%s' is sealed: %s %p refused", target->name,
                     object->type->name, (const void *)object);
}

static bool is_at_or_above(const struct region *region, const struct region *other) {
    return region == other || region_is_above(region, other);
}

/* ---- promoting ---- */

/* An object that is marked is listed before, or about to end: which of both, if it is `busy`. */
static int check_listed(const struct journey *journey, size_t at, int busy) {
    const struct ebb_object *object = journey->objects[at];
    for (size_t i = 0; i < at && busy == EBB_E_BUSY; i++)
        if (journey->objects[i] == object)
            return error_set(EBB_E_DUPLICATE, "%s %p is listed twice", object->type->name,
                             (const void *)object);
    return busy;
}

/* Number `at` of the list: it travels, stays where it is hosted, or is refused. */
static int admit(struct journey *journey, const struct region *source, size_t at) {
    struct gathering *gathering = &journey->gathering;
    void *address = journey->objects[at];
    struct object_place place;
    int result = object_check_free(address, &place);
    if (result)
        return check_listed(journey, at, result);
    const struct region *owner = object_owner(place.object);
    if (owner != source)
        return error_set(EBB_E_NOT_OWNED, "%s %p is owned by region '%s', not by '%s'",
                         place.object->type->name, address, owner->name, source->name);
    if (place.host == source)
        return gather_add(gathering, place.object);
    if (!is_at_or_above(place.host, gathering->target))
        return error_set(EBB_E_NOT_ANCESTOR, "%s %p lies in region '%s', below '%s'",
                         place.object->type->name, address, place.host->name,
                         gathering->target->name);
    place.object->state |= OBJECT_GATHERED;
    return 0;
}

/* Those that are hosted at the target or above it were marked only to find them twice. */
static int admit_all(struct journey *journey, const struct region *source) {
    size_t admitted = 0;
    int result = 0;
    while (admitted < journey->count && !result)
        result = admit(journey, source, admitted++);
    for (size_t i = 0; i < admitted - (result != 0); i++) {
        struct ebb_object *object = journey->objects[i];
        if (object->adoption)
            object->state &= ~OBJECT_GATHERED;
    }
    return result;
}

static int promote(struct journey *journey, const struct region *source) {
    struct gathering *gathering = &journey->gathering;
    int result = admit_all(journey, source);
    bool goes = !result && gathering->target != source;
    if (goes && gathering->first)
        result = journey_make(journey);
    else if (goes)
        journey_adopt(journey);
    if (result || !goes)
        gather_forget(gathering);
    return result;
}

static int check_options(const struct ebb_own_options *options) {
    if (options->size != sizeof *options || options->mode < EBB_PROMOTE_AUTO ||
        options->mode > EBB_PROMOTE_RELINK)
        return error_set(EBB_E_ARGUMENT, "options: size field %zu, expected %zu; mode %d",
                         options->size, sizeof *options, options->mode);
    return 0;
}

static int promote_list(ebb_region from, ebb_region to, void **objects, size_t count,
                        const struct ebb_own_options *options, struct ebb_promoted *cost,
                        bool closes, const void *site) {
    struct region *source = region_find(from), *target = source ? region_find(to) : NULL;
    options = options ? options : &defaults;
    int result = target ? check_options(options) : EBB_E_STALE;
    if (result)
        return result;
    if (count && !objects)
        return error_set(EBB_E_ARGUMENT, "list of %zu objects is NULL", count);
    if (source != target && !region_is_above(target, source))
        return error_set(EBB_E_NOT_ANCESTOR, "region '%s' is no ancestor of '%s'", target->name,
                         source->name);
    if (target->sealed && source != target)
        return error_set(EBB_E_SEALED, "region '%s' is sealed: promotion from '%s' refused",
                         target->name, source->name);
    struct journey journey = {.gathering = {.host = source, .target = target},
                              .owner = source,
                              .objects = objects,
                              .count = count,
                              .mode = options->mode,
                              .pin_percent = options->pin_percent,
                              .closes = closes,
                              .compact = options->compact,
                              .site = site};
    result = promote(&journey, source);
    if (!result)
        promoted_add(cost, &journey.cost);
    return result;
}

int ebb_objects_promote(ebb_region source, ebb_region target, void **objects, size_t count,
                        const struct ebb_own_options *options, struct ebb_promoted *cost) {
    return promote_list(source, target, objects, count, options, cost, false,
                        __builtin_return_address(0));
}

static uint64_t live_objects(const struct region *region) {
    uint64_t live = 0;
    for (uint32_t left = region->kinds; left; left &= left - 1)
        live += kind_live(&region->kind_counts[__builtin_ctz(left)]);
    return live;
}

/* Of an object and all below it those that regions at or below `closing` count, or the others: a
 * member that was lost and found again may be counted elsewhere than its composite. */
static uint64_t count_parts(struct ebb_object *whole, const struct region *closing, bool inside) {
    uint64_t count = 0;
    const struct region *owner = object_owner(whole);
    struct ebb_object *first = compose_chain(whole);
    for (const struct ebb_object *part = first; part; part = part->forward) {
        const struct region *at = part->whole ? member_counted_in(part, owner) : owner;
        count += (at && is_at_or_above(closing, at)) == inside;
    }
    compose_unchain(first);
    return count;
}

/* Objects of a region that closes, at or below `closing`: without those that go back to lenders,
 * with those that are lost to borrowers elsewhere. */
static uint64_t ending_objects(const struct region *region, const struct region *closing) {
    uint64_t ending = live_objects(region);
    for (struct ebb_object *at = region->objects; at; at = at->next)
        if (object_outlives(at, closing))
            ending -= count_parts(at, closing, true);
    for (const struct ebb_cleanup *at = region->cleanups; at; at = at->next) {
        struct ebb_object *lost = adoption_lost(at, closing);
        ending += lost ? count_parts(lost, closing, false) : 0;
    }
    return ending;
}

int ebb_objects_close_keeping(ebb_region from, ebb_region to, void **objects, size_t count,
                              const struct ebb_own_options *options, struct ebb_promoted *cost,
                              uint64_t *ended) {
    struct region *source = region_find(from), *target = source ? region_find(to) : NULL;
    if (!target)
        return EBB_E_STALE;
    if (source->closing)
        return region_refuse_closing(source);
    if (source == target)
        return error_set(EBB_E_NOT_ANCESTOR, "region '%s' cannot close and keep into itself",
                         source->name);
    struct ebb_promoted paid = {0};
    int result = promote_list(from, to, objects, count, options, &paid, true,
                              __builtin_return_address(0));
    if (result)
        return result;
    uint64_t left = 0;
    for (struct region *at = source; ended && at; at = region_next_below(at, source))
        left += ending_objects(at, source);
    size_t before = target->pinned_by_ends;
    result = ebb_region_close(from);
    paid.pinned_bytes += target->pinned_by_ends - before;
    promoted_add(cost, &paid);
    if (ended)
        *ended = left;
    return result;
}

/* ---- ending all but some ---- */

static void unmark(void *const *keep, size_t count) {
    for (size_t i = 0; i < count; i++)
        ((struct ebb_object *)keep[i])->state &= ~OBJECT_GATHERED;
}

/* Chains the objects of a region that are not marked, and marks them. */
static struct ebb_object *chain_unmarked(const struct region *region) {
    struct ebb_object *first = NULL, **end = &first;
    for (struct ebb_object *at = region->objects; at; at = at->next) {
        if (at->state & OBJECT_GATHERED)
            continue;
        at->state |= OBJECT_GATHERED;
        adoption_begin_work(at);
        *end = at;
        end = &at->forward;
    }
    return first;
}

/* Ends them one by one. A producer who has bytes back meanwhile cannot end those that come next. */
static void end_chain(struct region *region, struct ebb_object *first) {
    region_begin_work(region);
    for (struct ebb_object *at = first, *next; at; at = next) {
        next = at->forward;
        at->forward = NULL;
        at->state &= ~OBJECT_GATHERED;
        adoption_end_work(at);
        ebb_object_end(at);
    }
    region_end_work(region);
}

int ebb_objects_end_but(ebb_region handle, void *const *keep, size_t count) {
    struct region *region = region_find(handle);
    struct object_place place;
    int result = region ? 0 : EBB_E_STALE;
    if (!result && count && !keep)
        result = error_set(EBB_E_ARGUMENT, "list of %zu objects is NULL", count);
    for (size_t i = 0; !result && i < count; i++) {
        result = object_find(keep[i], &place);
        if (!result)
            result = object_check_staying(place.object);
        if (!result && place.object->whole)
            result = object_check_free(keep[i], &place);
        if (!result && object_owner(place.object) != region)
            result = error_set(EBB_E_NOT_OWNED, "%s %p is not owned by region '%s'",
                               place.object->type->name, keep[i], region->name);
    }
    if (result)
        return result;
    for (size_t i = 0; i < count; i++)
        ((struct ebb_object *)keep[i])->state |= OBJECT_GATHERED;
    struct ebb_object *others = chain_unmarked(region);
    unmark(keep, count);
    end_chain(region, others);
    return 0;
}

/* ---- moving ---- */

/* Into the pages of another region; the object is free to go. */
static void *rehost(struct object_place place, struct region *target, const void *site) {
    void *object = place.object;
    struct journey journey = {.gathering = {.host = place.host, .target = target},
                              .owner = object_owner(place.object),
                              .objects = &object,
                              .count = 1,
                              .site = site};
    journey.gathering.anywhere = !region_is_above(target, place.host);
    int result = gather_add(&journey.gathering, place.object);
    if (!result)
        result = journey_make(&journey);
    if (!result)
        return object;
    gather_forget(&journey.gathering);
    return NULL;
}

/* To any region; the object is free to go and not there yet. */
static void *move(struct object_place place, struct region *target, const void *site) {
    if (check_target(target, place.object) != 0)
        return NULL;
    if (!is_at_or_above(place.host, target))
        return rehost(place, target, site);
    return object_adopt(place.object, target) == 0 ? place.object : NULL;
}

void *ebb_object_move(void *address, ebb_region handle) {
    struct region *target = region_find(handle);
    struct object_place place;
    if (!target || object_check_free(address, &place) != 0)
        return NULL;
    if (object_owner(place.object) == target)
        return address;
    return move(place, target, __builtin_return_address(0));
}

void *ebb_object_move_outer(ebb_region handle, void *address) {
    struct region *from = region_find(handle);
    struct object_place place;
    if (!from || object_check_free(address, &place) != 0)
        return NULL;
    if (object_owner(place.object) != from) {
        error_set(EBB_E_NOT_OWNED, "%s %p is not owned by region '%s'", place.object->type->name,
                  address, from->name);
        return NULL;
    }
    if (!from->parent) {
        error_set(EBB_E_NOT_ANCESTOR, "region '%s' is a root: there is none outside of it",
                  from->name);
        return NULL;
    }
    return move(place, from->parent, __builtin_return_address(0));
}

void *ebb_object_detach(void *address) {
    struct object_place place;
    if (object_check_free(address, &place) != 0)
        return NULL;
    struct region *root = place.host;
    while (root->parent)
        root = root->parent;
    if (object_owner(place.object) == root)
        return address;
    return move(place, root, __builtin_return_address(0));
}

/* ---- replacing ---- */

static int check_slot(const struct ebb_object *whole, size_t field) {
    if (field < whole->type->field_count && whole->type->fields[field].kind == EBB_FIELD_OBJECT)
        return 0;
    return error_set(EBB_E_ARGUMENT, "%s has no field %zu for an object, %zu in all",
                     whole->type->name, field, whole->type->field_count);
}

static int check_fresh(const struct ebb_object *whole, void *fresh, struct object_place *place) {
    int result = object_check_free(fresh, place);
    for (const struct ebb_object *at = whole; !result && at; at = object_whole(at))
        if (at == fresh)
            result = error_set(EBB_E_CYCLE, "%s %p would contain itself", at->type->name, fresh);
    return result;
}

/* A member lies where its composite does. */
static void *bring(struct object_place fresh, struct region *host, const void *site) {
    if (fresh.host != host)
        return check_target(host, fresh.object) == 0 ? rehost(fresh, host, site) : NULL;
    if (fresh.object->adoption)
        object_adopt(fresh.object, host);
    return fresh.object;
}

/* What the type and the depth say of the fields with `fresh` in the slot. */
static int try_slot(struct ebb_object *whole, const struct ebb_field *field, void *fresh) {
    void **slot = field_place(whole, field), *old = *slot;
    *slot = fresh;
    int result = compose_check_fresh(whole, field, fresh);
    *slot = old;
    return result;
}

int ebb_object_replace(void *address, size_t field, void *fresh) {
    struct object_place place, fresh_place;
    int result = object_find(address, &place);
    if (!result)
        result = object_check_staying(place.object);
    if (!result)
        result = check_slot(place.object, field);
    if (!result && fresh)
        result = check_fresh(place.object, fresh, &fresh_place);
    if (!result && object_is_lent(place.object))
        result = object_check_free(address, &place);
    if (result)
        return result;
    const struct ebb_field *described = &place.object->type->fields[field];
    void **slot = field_place(place.object, described), *old = *slot;
    bool had = compose_has(place.object, old); /* `fresh` may be `old`, or come to lie there */
    result = try_slot(place.object, described, fresh);
    object_part(place.object); /* else what is copied may come to lie where its whole was */
    if (!result && fresh &&
        !(fresh = bring(fresh_place, place.host, __builtin_return_address(0))))
        result = error_latest();
    if (result)
        return result;
    *slot = fresh;
    compose_join(place, fresh);
    return had ? ebb_object_end(old) : 0;
}
