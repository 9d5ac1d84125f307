// SPDX-License-Identifier: Apache-2.0
/* objects_shadow.c - the shadow of objects: what each operation means (see objects.h). */
#include "model/objects.h"

#include <stdlib.h>
#include <string.h>

/* ---- choosing ---- */

int some_region(struct scene *scene) {
    if (scene->only)
        return scene->only - 1;
    size_t start = below(scene, SCENE_REGIONS);
    for (size_t i = 0; i < SCENE_REGIONS; i++) {
        size_t at = (start + i) % SCENE_REGIONS;
        if (scene->regions[at].open)
            return (int)at;
    }
    return NOBODY;
}

static int some_of(struct scene *scene, bool tensors, bool nodes) {
    size_t start = below(scene, SCENE_THINGS);
    for (size_t i = 0; i < SCENE_THINGS; i++) {
        size_t at = (start + i) % SCENE_THINGS;
        const struct thing *thing = &scene->things[at];
        if (thing->live && (thing->kind ? nodes : tensors))
            return (int)at;
    }
    return NOBODY;
}

int some_thing(struct scene *scene) {
    return some_of(scene, true, true);
}

int some_tensor(struct scene *scene) {
    return some_of(scene, true, false);
}

int some_node(struct scene *scene) {
    return some_of(scene, false, true);
}

/* ---- asking ---- */

bool is_above(const struct scene *scene, int ancestor, int region) {
    while (region != NOBODY && region != ancestor)
        region = scene->regions[region].parent;
    return region == ancestor;
}

int root_of(const struct scene *scene, int region) {
    while (scene->regions[region].parent != NOBODY)
        region = scene->regions[region].parent;
    return region;
}

static int top_of(const struct scene *scene, int thing) {
    while (scene->things[thing].whole != NOBODY)
        thing = scene->things[thing].whole;
    return thing;
}

int owner_of(const struct scene *scene, int thing) {
    const struct thing *top = &scene->things[top_of(scene, thing)];
    return top->record_count ? top->records[top->record_count - 1].region : top->host;
}

bool is_lent(const struct scene *scene, int thing) {
    const struct thing *it = &scene->things[thing];
    return it->record_count && it->records[it->record_count - 1].lent;
}

bool contains(const struct scene *scene, int whole, int thing) {
    while (thing != NOBODY && thing != whole)
        thing = scene->things[thing].whole;
    return thing == whole;
}

int depth_under(const struct scene *scene, int thing) {
    int deepest = 0;
    for (int i = 0; i < SCENE_THINGS; i++) {
        int depth = 0, at = i;
        while (scene->things[i].live && at != NOBODY && at != thing) {
            at = scene->things[at].whole;
            depth++;
        }
        if (scene->things[i].live && at == thing && depth > deepest)
            deepest = depth;
    }
    return deepest;
}

int mark_tree(struct scene *scene, int thing) {
    int count = 0;
    for (int i = 0; i < SCENE_THINGS; i++)
        if (scene->things[i].live && !scene->things[i].mark && contains(scene, thing, i)) {
            scene->things[i].mark = true;
            count++;
        }
    return count;
}

void unmark_all(struct scene *scene) {
    for (int i = 0; i < SCENE_THINGS; i++)
        scene->things[i].mark = false;
}

/* ---- counting ---- */

static void add(struct ebb_object_counts *counts, size_t field) {
    ++*(uint64_t *)(void *)((char *)counts + field);
}

void bump(struct scene *scene, int region, int kind, size_t field) {
    add(&scene->regions[region].counts[kind], field);
    add(&scene->process[kind], field);
}

void count_passed(struct scene *scene, int thing, int from, int to) {
    int kind = scene->things[thing].kind;
    bool from_root = scene->regions[from].depth == 0, to_root = scene->regions[to].depth == 0;
    if (to_root && !from_root)
        BUMP(scene, from, kind, detached);
    else if (from_root && !to_root)
        BUMP(scene, to, kind, attached);
    else
        BUMP(scene, from, kind, moved);
}

/* ---- making ---- */

bool has_room(const struct scene *scene, int things) {
    int free_things = 0, free_stores = 0;
    for (int i = 0; i < SCENE_THINGS; i++)
        free_things += !scene->things[i].live;
    for (int i = 0; i < SCENE_STORES; i++)
        free_stores += !scene->stores[i].tensors;
    return free_things >= things && free_stores >= things;
}

int new_thing(struct scene *scene, int host, int kind, void *addr) {
    int at = 0;
    while (scene->things[at].live)
        at++;
    scene->things[at] = (struct thing){.live = true, .addr = addr, .kind = kind, .host = host,
                                       .serial = scene->regions[host].mark_serial,
                                       .whole = NOBODY, .store = NOBODY};
    for (int i = 0; i < 2 + SCENE_PARTS; i++)
        scene->things[at].fields[i] = NOBODY;
    if (scene->regions[host].depth)
        BUMP(scene, host, kind, created_inside);
    else
        BUMP(scene, host, kind, created_outside);
    return at;
}

int new_store(struct scene *scene, int host, struct ebb_storage *storage, int64_t count) {
    int at = 0;
    while (scene->stores[at].tensors)
        at++;
    scene->stores[at] = (struct store){.host = host, .tensors = 1, .storage = storage,
                                       .serial = scene->regions[host].mark_serial,
                                       .count = count,
                                       .elements = calloc((size_t)count + 1, sizeof(int32_t))};
    if (!scene->stores[at].elements)
        abort();
    return at;
}

/* ---- owners ---- */

void push_record(struct scene *scene, int thing, int region, bool lent) {
    struct thing *it = &scene->things[thing];
    count_passed(scene, thing, owner_of(scene, thing), region);
    it->records[it->record_count++] =
        (struct record){.region = region, .lent = lent,
                        .owner_serial = scene->regions[region].mark_serial,
                        .host_serial = scene->regions[it->host].mark_serial};
}

void pop_record(struct scene *scene, int thing) {
    struct thing *it = &scene->things[thing];
    int from = owner_of(scene, thing);
    it->record_count--;
    count_passed(scene, thing, from, owner_of(scene, thing));
}

void adopt_thing(struct scene *scene, int thing, int region) {
    struct thing *it = &scene->things[thing];
    if (region == it->host) {
        pop_record(scene, thing);
    } else if (!it->record_count) {
        push_record(scene, thing, region, false);
    } else {
        count_passed(scene, thing, owner_of(scene, thing), region);
        it->records[0].region = region;
        it->records[0].owner_serial = scene->regions[region].mark_serial;
        it->records[0].host_serial = scene->regions[it->host].mark_serial;
    }
}

void renew_thing(struct scene *scene, int thing) {
    for (; thing != NOBODY; thing = scene->things[thing].whole) {
        struct thing *it = &scene->things[thing];
        it->serial = scene->regions[it->host].mark_serial;
        for (int i = 0; i < it->record_count; i++)
            it->records[i].host_serial = it->serial;
    }
}

/* ---- ending ---- */

void leave_store(struct scene *scene, int at, int tensors) {
    scene->stores[at].tensors -= tensors;
    if (scene->stores[at].tensors)
        return;
    free(scene->stores[at].elements);
    scene->stores[at].elements = NULL;
}

static void end_one(struct scene *scene, int thing, int owner) {
    struct thing *it = &scene->things[thing];
    if (scene->regions[owner].depth)
        BUMP(scene, owner, it->kind, ended_inside);
    else
        BUMP(scene, owner, it->kind, ended_outside);
    if (it->store != NOBODY)
        leave_store(scene, it->store, 1);
    it->live = false;
    scene->ghosts[scene->ghost_count++ % SCENE_GHOSTS] = it->addr;
}

void end_thing(struct scene *scene, int thing) {
    int owner = owner_of(scene, thing), whole = scene->things[thing].whole;
    if (whole != NOBODY)
        for (int i = 0; i < 2 + SCENE_PARTS; i++)
            if (scene->things[whole].fields[i] == thing)
                scene->things[whole].fields[i] = NOBODY;
    bool goes[SCENE_THINGS];
    for (int i = 0; i < SCENE_THINGS; i++)
        goes[i] = scene->things[i].live && contains(scene, thing, i);
    for (int i = 0; i < SCENE_THINGS; i++)
        if (goes[i])
            end_one(scene, i, owner);
}

/* ---- the end of regions, or of what is newer than a mark ---- */

static void run_cleanups(struct scene *scene, int region, uint64_t serial) {
    for (int i = 0; i < SCENE_CLEANUPS; i++)
        if (scene->cleanups[i].region == region && scene->cleanups[i].serial >= serial) {
            scene->cleanups[i].region = NOBODY;
            scene->cleanups[i].expected++;
        }
}

/* The region loses what it hosts and others have: that ends, or comes back if only the record of
 * it is newer than the mark. */
static void lose_hosted(struct scene *scene, int thing, uint64_t serial, bool all) {
    struct thing *it = &scene->things[thing];
    if (all || it->serial >= serial) {
        end_thing(scene, thing);
        return;
    }
    while (it->record_count && it->records[it->record_count - 1].host_serial >= serial)
        pop_record(scene, thing);
}

/* The region loses what it has of others. */
static void lose_owned(struct scene *scene, int thing, int region, uint64_t serial) {
    struct thing *it = &scene->things[thing];
    for (int i = it->record_count; it->live && i-- > 0;) {
        struct record record = it->records[i];
        if (record.region != region || record.owner_serial < serial)
            continue;
        if (!record.lent) {
            end_thing(scene, thing);
        } else if (i == it->record_count - 1) {
            pop_record(scene, thing);
        } else {
            memmove(&it->records[i], &it->records[i + 1],
                    (size_t)(--it->record_count - i) * sizeof *it->records);
        }
    }
}

/* `serial` 0: everything. Its children have ended, or stay. */
static void lose(struct scene *scene, int region, uint64_t serial) {
    run_cleanups(scene, region, serial);
    for (int i = 0; i < SCENE_THINGS; i++) {
        struct thing *it = &scene->things[i];
        if (it->live && it->whole == NOBODY && it->record_count) {
            if (it->host == region)
                lose_hosted(scene, i, serial, serial == 0);
            if (it->live)
                lose_owned(scene, i, region, serial);
        }
    }
    for (int i = 0; i < SCENE_THINGS; i++) {
        struct thing *it = &scene->things[i];
        bool blind = it->live && it->store != NOBODY &&
                     scene->stores[it->store].host == region &&
                     scene->stores[it->store].serial >= serial;
        bool newer = it->live && it->host == region && it->serial >= serial;
        if (blind || newer)
            end_thing(scene, i);
    }
}

static int newest_child(const struct scene *scene, int region) {
    int newest = NOBODY;
    for (int i = 0; i < SCENE_REGIONS; i++)
        if (scene->regions[i].open && scene->regions[i].parent == region &&
            (newest == NOBODY || scene->regions[i].born > scene->regions[newest].born))
            newest = i;
    return newest;
}

static void close_children(struct scene *scene, int region) {
    int child;
    while ((child = newest_child(scene, region)) != NOBODY)
        close_region(scene, child);
}

void close_region(struct scene *scene, int region) {
    close_children(scene, region);
    keep_exports(scene, region);
    lose(scene, region, 0);
    scene->regions[region].open = false;
}

void reset_region(struct scene *scene, int region) {
    close_children(scene, region);
    keep_exports(scene, region);
    lose(scene, region, 0);
    scene->regions[region].mark_count = 0;
}

void rewind_region(struct scene *scene, int region, uint64_t serial) {
    struct scene_region *it = &scene->regions[region];
    lose(scene, region, serial);
    while (it->mark_count && it->marks[it->mark_count - 1].serial >= serial)
        it->mark_count--;
}
