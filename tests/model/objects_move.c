// SPDX-License-Identifier: Apache-2.0
/* objects_move.c - operations that give objects to others: promote, move, attach, lend, replace. */
#include "model/objects.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED = 8 };

/* What will become of storages when the things that are marked leave their host. */
struct plan {
    int target, mode;
    bool compact;
    int going[SCENE_STORES]; /* tensors that go; 0: it stays */
    bool cut[SCENE_STORES];  /* only what one view sees goes */
    void *data[SCENE_STORES];
};

static bool is_marked_base(const struct scene *scene, const void *block) {
    for (int i = 0; i < SCENE_THINGS; i++)
        if (scene->things[i].mark && scene->things[i].addr == block)
            return true;
    return false;
}

static struct plan plan_journey(const struct scene *scene, int host, int target, int mode,
                                bool compact) {
    struct plan plan = {.target = target, .mode = mode, .compact = compact};
    for (int i = 0; i < SCENE_THINGS; i++) {
        const struct thing *it = &scene->things[i];
        if (it->mark && it->store != NOBODY && scene->stores[it->store].host == host)
            plan.going[it->store]++;
    }
    for (int i = 0; i < SCENE_STORES; i++) {
        const struct store *store = &scene->stores[i];
        if (!plan.going[i])
            continue;
        plan.data[i] = store->storage->data;
        plan.cut[i] = compact && plan.going[i] == 1 &&
                      !is_marked_base(scene, store->storage->block) &&
                      (store->tensors > 1 || mode == EBB_PROMOTE_COPY);
    }
    return plan;
}

/* 0, or why the things that are marked cannot leave their host. */
static int why_not_leave(const struct scene *scene, int host, int target) {
    bool up = is_above(scene, target, host);
    for (int i = 0; i < SCENE_THINGS; i++) {
        const struct thing *it = &scene->things[i];
        if (!it->mark || it->store == NOBODY)
            continue;
        int at = scene->stores[it->store].host;
        if (at != host && !(up && is_above(scene, at, target)))
            return EBB_E_NOT_OWNED;
    }
    return 0;
}

/* ---- what a journey means ---- */

static void readdress(struct scene *scene, int thing, void *addr, bool *moved) {
    struct thing *it = &scene->things[thing];
    const struct node *node = addr;
    SCENE_DEMAND(scene, addr != NULL);
    moved[thing] = it->addr != addr;
    if (moved[thing])
        scene->ghosts[scene->ghost_count++ % SCENE_GHOSTS] = it->addr;
    it->addr = addr;
    if (!it->kind)
        return;
    if (it->fields[0] != NOBODY)
        readdress(scene, it->fields[0], node->left, moved);
    if (it->fields[1] != NOBODY && it->fields[1] != it->fields[0])
        readdress(scene, it->fields[1], node->right, moved);
    for (int i = 0; i < it->part_count; i++) {
        int member = it->fields[2 + i];
        bool again = member == NOBODY;
        for (int k = 0; k < 2 + i; k++)
            again |= it->fields[k] == member;
        if (!again)
            readdress(scene, member, node->parts[i], moved);
    }
}

static int copy_store(struct scene *scene, const struct plan *plan, int from,
                      struct ebb_storage *storage, int64_t count) {
    int fresh = new_store(scene, plan->target, storage, count);
    scene->stores[fresh].tensors = plan->going[from];
    return fresh;
}

/* A view got a storage of its own. */
static void cut_out(struct scene *scene, const struct plan *plan, struct thing *it) {
    const struct ebb_tensor *tensor = it->addr;
    int64_t count = element_count(it), stride = 1;
    int from = it->store, fresh = copy_store(scene, plan, from, tensor->storage, count);
    for (int64_t i = 0; i < count; i++)
        scene->stores[fresh].elements[i] = *element_of(scene, it, i);
    for (int i = it->ndim; i-- > 0;) {
        it->strides[i] = stride;
        stride *= it->shape[i] ? it->shape[i] : 1;
    }
    it->offset = 0;
    it->store = fresh;
    leave_store(scene, from, 1);
}

/* Those that go got a copy, and the others keep theirs. */
static void split_store(struct scene *scene, const struct plan *plan, int from,
                        struct ebb_storage *storage) {
    const struct store *old = &scene->stores[from];
    int fresh = copy_store(scene, plan, from, storage, old->count);
    memcpy(scene->stores[fresh].elements, old->elements, (size_t)old->count * sizeof(int32_t));
    for (int i = 0; i < SCENE_THINGS; i++)
        if (scene->things[i].mark && scene->things[i].store == from)
            scene->things[i].store = fresh;
    leave_store(scene, from, plan->going[from]);
}

/* Stores follow; true for those that kept their memory. */
static bool move_store(struct scene *scene, const struct plan *plan, int store,
                       struct thing *first) {
    struct ebb_storage *storage = ((struct ebb_tensor *)first->addr)->storage;
    if (plan->cut[store]) {
        cut_out(scene, plan, first);
    } else if (plan->going[store] < scene->stores[store].tensors) {
        split_store(scene, plan, store, storage);
    } else {
        scene->stores[store].storage = storage;
        scene->stores[store].host = plan->target;
        scene->stores[store].serial = scene->regions[plan->target].mark_serial;
        return storage->data == plan->data[store];
    }
    return false;
}

static void arrive(struct scene *scene, const struct plan *plan, int owner, const bool *moved) {
    int before[SCENE_THINGS];
    bool kept[SCENE_STORES] = {false};
    for (int i = 0; i < SCENE_THINGS; i++)
        before[i] = scene->things[i].mark ? scene->things[i].store : NOBODY;
    for (int store = 0; store < SCENE_STORES; store++)
        for (int i = 0; i < SCENE_THINGS && plan->going[store]; i++)
            if (before[i] == store) {
                kept[store] = move_store(scene, plan, store, &scene->things[i]);
                break;
            }
    for (int i = 0; i < SCENE_THINGS; i++) {
        struct thing *it = &scene->things[i];
        if (!it->mark)
            continue;
        bool travels = before[i] != NOBODY && plan->going[before[i]];
        if (travels ? kept[before[i]] : !moved[i])
            BUMP(scene, owner, it->kind, relinked);
        else
            BUMP(scene, owner, it->kind, copied);
        it->host = plan->target;
        it->serial = scene->regions[plan->target].mark_serial;
        it->record_count = 0;
    }
}

/* ---- promoting ---- */

struct promotion {
    int source, target, things[LISTED], count, mode;
    bool compact, closes;
    uint16_t pin_percent;
    void *objects[LISTED];
};

static int why_not_admit(struct scene *scene, const struct promotion *promotion, int at) {
    int thing = promotion->things[at], host = scene->things[thing].host;
    if (scene->things[thing].whole != NOBODY)
        return EBB_E_MEMBER;
    if (is_lent(scene, thing))
        return EBB_E_BORROWED;
    if (owner_of(scene, thing) != promotion->source)
        return EBB_E_NOT_OWNED;
    if (host != promotion->source && !is_above(scene, host, promotion->target))
        return EBB_E_NOT_ANCESTOR;
    for (int i = 0; i < at; i++)
        if (promotion->things[i] == thing)
            return EBB_E_DUPLICATE;
    if (host == promotion->source)
        mark_tree(scene, thing);
    return why_not_leave(scene, promotion->source, promotion->target);
}

static int why_not_promote(struct scene *scene, const struct promotion *promotion) {
    int expected = 0;
    bool stays = promotion->source == promotion->target;
    if (!is_above(scene, promotion->target, promotion->source) || (stays && promotion->closes))
        return EBB_E_NOT_ANCESTOR;
    if (scene->regions[promotion->target].sealed && !stays)
        return EBB_E_SEALED;
    for (int i = 0; !expected && i < promotion->count; i++)
        expected = why_not_admit(scene, promotion, i);
    return expected;
}

static bool fits(const struct scene *scene, const struct promotion *promotion, int thing) {
    bool again = false;
    for (int i = 0; i < promotion->count; i++)
        again |= promotion->things[i] == thing;
    return !again && owner_of(scene, thing) == promotion->source && !is_lent(scene, thing) &&
           scene->things[thing].whole == NOBODY;
}

static struct promotion some_promotion(struct scene *scene) {
    int first = some_thing(scene);
    struct promotion promotion = {.mode = (int)below(scene, 3), .compact = chance(scene, 2),
                                  .closes = chance(scene, 4)};
    promotion.source = first == NOBODY ? some_region(scene) : owner_of(scene, first);
    promotion.target = promotion.source;
    if (chance(scene, 8))
        promotion.target = some_region(scene);
    else
        for (size_t up = 1 + below(scene, 2); up--;)
            if (scene->regions[promotion.target].parent != NOBODY)
                promotion.target = scene->regions[promotion.target].parent;
    int wanted = (int)below(scene, LISTED + 1);
    for (int i = 0; i < wanted; i++) {
        int thing = some_thing(scene);
        for (int look = 0; look < 20 && thing != NOBODY && !fits(scene, &promotion, thing); look++)
            thing = some_thing(scene);
        if (thing != NOBODY && (fits(scene, &promotion, thing) || chance(scene, 20)))
            promotion.things[promotion.count++] = thing;
    }
    promotion.pin_percent = chance(scene, 2) ? (uint16_t)below(scene, 200) : 0;
    for (int i = 0; i < promotion.count; i++)
        promotion.objects[i] = scene->things[promotion.things[i]].addr;
    return promotion;
}

static void promoted(struct scene *scene, const struct promotion *promotion,
                     const struct plan *plan) {
    bool moved[SCENE_THINGS] = {false};
    for (int i = 0; i < promotion->count; i++)
        if (scene->things[promotion->things[i]].mark)
            readdress(scene, promotion->things[i], promotion->objects[i], moved);
    arrive(scene, plan, promotion->source, moved);
    for (int i = 0; i < promotion->count; i++) {
        if (scene->things[promotion->things[i]].mark)
            count_passed(scene, promotion->things[i], promotion->source, promotion->target);
        else
            adopt_thing(scene, promotion->things[i], promotion->target);
    }
}

static uint64_t close_and_count(struct scene *scene, int region) {
    bool lived[SCENE_THINGS];
    uint64_t ended = 0;
    for (int i = 0; i < SCENE_THINGS; i++)
        lived[i] = scene->things[i].live;
    close_region(scene, region);
    for (int i = 0; i < SCENE_THINGS; i++)
        ended += lived[i] && !scene->things[i].live;
    return ended;
}

static void promote(struct scene *scene, struct promotion it) {
    ebb_region source = scene->regions[it.source].handle;
    ebb_region target = scene->regions[it.target].handle;
    struct ebb_own_options options = {sizeof options, it.mode, it.compact, it.pin_percent};
    struct ebb_promoted cost = {0};
    uint64_t ended = 0;
    int expected = why_not_promote(scene, &it), result;
    struct plan plan = plan_journey(scene, it.source, it.target, it.mode, it.compact);
    scene_say(scene, "promote %d from %d to %d mode %d compact %d closes %d: %d", it.count,
              it.source, it.target, it.mode, it.compact, it.closes, expected);
    if (has_room(scene, 30)) {
        scene_dare(scene);
        if (it.closes)
            result = ebb_objects_close_keeping(source, target, it.objects, (size_t)it.count,
                                               &options, &cost, &ended);
        else
            result = ebb_objects_promote(source, target, it.objects, (size_t)it.count, &options,
                                         &cost);
        if (scene_went(scene, result, expected) && it.source != it.target) {
            promoted(scene, &it, &plan);
            SCENE_DEMAND(scene, cost.pinned_bytes < (uint64_t)1 << 40);
            SCENE_DEMAND(scene, !it.closes || ended == close_and_count(scene, it.source));
        }
    }
    unmark_all(scene);
}

void op_promote(struct scene *scene) {
    promote(scene, some_promotion(scene));
}

void promote_to_parent(struct scene *scene, const int *things, int count) {
    struct promotion it = {.mode = (int)below(scene, 3)};
    for (int i = 0; i < count; i++) {
        it.source = owner_of(scene, things[i]);
        it.target = scene->regions[it.source].parent;
        it.things[0] = things[i];
        it.objects[0] = scene->things[things[i]].addr;
        it.count = 1;
        promote(scene, it);
    }
}

/* ---- one object ---- */

static int why_not_free(const struct scene *scene, int thing) {
    if (scene->things[thing].whole != NOBODY)
        return EBB_E_MEMBER;
    return is_lent(scene, thing) ? EBB_E_BORROWED : 0;
}

/* What a move to the target means and whether it can be; the thing is marked if it travels. */
static int why_not_move(struct scene *scene, int thing, int target) {
    int host = scene->things[thing].host;
    if (scene->regions[target].sealed)
        return EBB_E_SEALED;
    if (is_above(scene, host, target))
        return 0;
    mark_tree(scene, thing);
    return why_not_leave(scene, host, target);
}

static void moved_to(struct scene *scene, int thing, void *addr, const struct plan *plan) {
    bool moved[SCENE_THINGS] = {false};
    int owner = owner_of(scene, thing);
    if (!scene->things[thing].mark) {
        SCENE_DEMAND(scene, addr == scene->things[thing].addr);
        adopt_thing(scene, thing, plan->target);
        return;
    }
    readdress(scene, thing, addr, moved);
    arrive(scene, plan, owner, moved);
    count_passed(scene, thing, owner, plan->target);
}

/* Where the call sends the thing; NOBODY and an error if it cannot be. */
static int destination(struct scene *scene, int thing, unsigned way, int *from, int *expected) {
    int owner = owner_of(scene, thing);
    *expected = why_not_free(scene, thing);
    *from = chance(scene, 10) ? some_region(scene) : owner;
    if (way == 0)
        return some_region(scene);
    if (way == 1)
        return root_of(scene, scene->things[thing].host);
    if (!*expected && owner != *from)
        *expected = EBB_E_NOT_OWNED;
    if (!*expected && scene->regions[*from].parent == NOBODY)
        *expected = EBB_E_NOT_ANCESTOR;
    return *expected ? owner : scene->regions[*from].parent;
}

void op_move(struct scene *scene) {
    int thing = some_thing(scene), expected, from;
    unsigned way = (unsigned)below(scene, 3);
    if (thing == NOBODY || !has_room(scene, 30))
        return;
    int target = destination(scene, thing, way, &from, &expected);
    struct thing *it = &scene->things[thing];
    bool there = !expected && owner_of(scene, thing) == target;
    if (!expected && !there)
        expected = why_not_move(scene, thing, target);
    struct plan plan = plan_journey(scene, it->host, target, EBB_PROMOTE_AUTO, false);
    scene_say(scene, "move %d from %d to %d by way %u: %d", thing, from, target, way, expected);
    scene_dare(scene);
    void *addr = way == 0   ? ebb_object_move(it->addr, scene->regions[target].handle)
                 : way == 1 ? ebb_object_detach(it->addr)
                            : ebb_object_move_outer(scene->regions[from].handle, it->addr);
    if (scene_went(scene, addr ? 0 : ebb_last_error(), expected)) {
        if (there)
            SCENE_DEMAND(scene, addr == it->addr);
        else
            moved_to(scene, thing, addr, &plan);
    }
    unmark_all(scene);
}

void op_attach(struct scene *scene) {
    int thing = some_thing(scene), region = some_region(scene);
    if (thing == NOBODY)
        return;
    struct thing *it = &scene->things[thing];
    int expected = why_not_free(scene, thing);
    bool there = !expected && owner_of(scene, thing) == region;
    if (!expected && !there && scene->regions[region].sealed)
        expected = EBB_E_SEALED;
    if (!expected && !there && !is_above(scene, it->host, region))
        expected = EBB_E_NOT_ANCESTOR;
    scene_say(scene, "attach %d to %d: %d", thing, region, expected);
    scene_dare(scene);
    int result = ebb_object_attach(it->addr, scene->regions[region].handle);
    if (scene_went(scene, result, expected) && !there)
        adopt_thing(scene, thing, region);
}

void op_lend(struct scene *scene) {
    int thing = some_thing(scene), region = some_region(scene);
    if (thing == NOBODY || scene->things[thing].record_count == SCENE_RECORDS)
        return;
    struct thing *it = &scene->things[thing];
    int expected = it->whole != NOBODY ? EBB_E_MEMBER : 0;
    scene_say(scene, "lend %d to %d: %d", thing, region, expected);
    scene_dare(scene);
    int result = ebb_object_borrow(it->addr, scene->regions[region].handle);
    if (scene_went(scene, result, expected) && owner_of(scene, thing) != region)
        push_record(scene, thing, region, true);
}

void op_return(struct scene *scene) {
    int thing = some_thing(scene);
    for (int look = 0; look < 20 && thing != NOBODY && !is_lent(scene, thing); look++)
        thing = some_thing(scene);
    if (thing == NOBODY)
        return;
    int expected = is_lent(scene, thing) ? 0 : EBB_E_NOT_OWNED;
    scene_say(scene, "return %d: %d", thing, expected);
    if (scene_went(scene, ebb_object_return(scene->things[thing].addr), expected))
        pop_record(scene, thing);
}

/* ---- slots ---- */

static int why_not_replace(struct scene *scene, int whole, int fresh) {
    int expected = fresh == NOBODY ? 0 : why_not_free(scene, fresh);
    if (!expected && fresh != NOBODY && contains(scene, fresh, whole))
        expected = EBB_E_CYCLE;
    if (!expected && is_lent(scene, whole))
        expected = EBB_E_BORROWED;
    int host = scene->things[whole].host;
    if (expected || fresh == NOBODY || scene->things[fresh].host == host)
        return expected;
    mark_tree(scene, fresh);
    return scene->regions[host].sealed ? EBB_E_SEALED
                                       : why_not_leave(scene, scene->things[fresh].host, host);
}

static void replaced(struct scene *scene, int whole, int field, int fresh,
                     const struct plan *plan) {
    struct thing *it = &scene->things[whole];
    const struct node *node = it->addr;
    int old = it->fields[field];
    if (fresh != NOBODY && scene->things[fresh].host != it->host)
        moved_to(scene, fresh, field ? node->right : node->left, plan);
    else if (fresh != NOBODY && scene->things[fresh].record_count)
        adopt_thing(scene, fresh, it->host);
    if (old != NOBODY)
        end_thing(scene, old);
    it->fields[field] = fresh;
    if (fresh == NOBODY)
        return;
    scene->things[fresh].whole = whole;
    BUMP(scene, owner_of(scene, whole), scene->things[fresh].kind, joined);
    if (scene->things[fresh].serial > it->serial)
        renew_thing(scene, whole);
}

void op_replace(struct scene *scene) {
    int whole = some_node(scene), field = (int)below(scene, 2);
    int fresh = chance(scene, 6) ? NOBODY : some_thing(scene);
    for (int look = 0; look < 5 && fresh != NOBODY && why_not_free(scene, fresh); look++)
        fresh = some_thing(scene);
    if (whole == NOBODY || !has_room(scene, 30))
        return;
    struct thing *it = &scene->things[whole];
    int expected = why_not_replace(scene, whole, fresh);
    struct plan plan = plan_journey(scene, fresh == NOBODY ? it->host : scene->things[fresh].host,
                                    it->host, EBB_PROMOTE_AUTO, false);
    scene_say(scene, "replace field %d of %d by %d: %d", field, whole, fresh, expected);
    scene_dare(scene);
    int result = ebb_object_replace(it->addr, (size_t)field,
                                    fresh == NOBODY ? NULL : scene->things[fresh].addr);
    if (scene_went(scene, result, expected))
        replaced(scene, whole, field, fresh, &plan);
    unmark_all(scene);
}

void op_end_but(struct scene *scene) {
    int region = some_region(scene), things[LISTED], count = 0, expected = 0;
    void *keep[LISTED];
    for (int i = 0; i < LISTED; i++) {
        int thing = some_thing(scene);
        if (thing == NOBODY || (owner_of(scene, thing) != region && !chance(scene, 30)))
            continue;
        if (!expected && scene->things[thing].whole != NOBODY)
            expected = EBB_E_MEMBER;
        else if (!expected && owner_of(scene, thing) != region)
            expected = EBB_E_NOT_OWNED;
        keep[count] = scene->things[thing].addr;
        things[count++] = thing;
    }
    scene_say(scene, "end all of %d but %d: %d", region, count, expected);
    if (!scene_went(scene, ebb_objects_end_but(scene->regions[region].handle, keep,
                                               (size_t)count), expected))
        return;
    for (int i = 0; i < SCENE_THINGS; i++) {
        const struct thing *it = &scene->things[i];
        bool stays = false;
        for (int k = 0; k < count; k++)
            stays |= things[k] == i;
        if (it->live && it->whole == NOBODY && !stays && owner_of(scene, i) == region)
            end_thing(scene, i);
    }
}
