// SPDX-License-Identifier: Apache-2.0
/*
 * table.c - sites and steps get numbers; steps are entered, left and ended (see table.h).
 *
 * The table grows before a step begins, never inside of one. Who asks for one by a number has to
 * ask again once another could have begun: places move when the table grows.
 */
#include "table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { TRIES_IN_VAIN = 8 };

/* ---- sites ---- */

struct site *site_create(const char *name) {
    struct site *site = malloc(sizeof *site);
    ebb_site *made = site ? ebb_site_create(EBB_SITE_OPTIONS(.name = name, .scope = true)) : NULL;
    if (!made) {
        free(site);
        return NULL;
    }
    *site = (struct site){.site = made, .holders = 1};
    return site;
}

/* A scope whose survivors had no memory ends later, and keeps its site until then. No more than so
 * many are tried in vain: each try looks at all such scopes of the thread. */
static void destroy_staying(struct table *table, uint32_t in_vain) {
    struct site **link = &table->staying;
    while (*link && in_vain > 0) {
        struct site *site = *link;
        if (ebb_site_destroy(site->site) != 0) {
            link = &site->next;
            in_vain--;
            continue;
        }
        *link = site->next;
        free(site);
    }
}

void table_release(struct table *table, struct site *site) {
    if (--site->holders > 0)
        return;
    site->next = table->staying;
    table->staying = site;
    destroy_staying(table, TRIES_IN_VAIN);
}

/* ---- places ---- */

static uint32_t index_of(const struct table *table, const struct place *place) {
    return (uint32_t)(place - table->place);
}

static int64_t number_of(const struct table *table, const struct place *place) {
    return (int64_t)(place->turn * TABLE_PLACES_MOST + index_of(table, place));
}

static void turn(struct place *place) {
    place->turn = (place->turn + 1) % TABLE_TURNS;
}

static _Atomic uint32_t made; /* first turns, and where their count began */

/* Copies of this module count each for itself, and so does one that is loaded once more: no two
 * are loaded at one time. */
static __attribute__((constructor)) void begin_count(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* never fails here */
    made = (uint32_t)((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

/* Even, and as far as can be from the first turns of all other places, but for those that are made
 * together: multiples of the golden section spread like that. */
static uint64_t first_turn(void) {
    return atomic_fetch_add(&made, 1) * UINT64_C(2654435769) % (TABLE_TURNS / 2) * 2;
}

bool table_is_full(const struct table *table) {
    return table->unused == table->count && table->count >= TABLE_PLACES_MOST;
}

bool table_has_room(struct table *table) {
    if (table->unused < table->count)
        return true;
    uint32_t more = table->count ? table->count * 2 : 64;
    if (table_is_full(table))
        return false;
    struct place *place = realloc(table->place, more * sizeof *place);
    if (!place)
        return false;
    uint64_t first = first_turn();
    for (uint32_t i = table->count; i < more; i++)
        place[i] = (struct place){.turn = first, .next = i + 1};
    table->place = place;
    table->unused = table->count;
    table->count = more;
    return true;
}

static struct place *take_place(struct table *table, struct site *site, bool is_site) {
    struct place *place = &table->place[table->unused];
    table->unused = place->next;
    turn(place);
    place->site = site;
    place->is_site = is_site;
    return place;
}

static void give_place(struct table *table, struct place *place) {
    turn(place);
    place->next = table->unused;
    table->unused = index_of(table, place);
    table_release(table, place->site);
}

static bool is_taken(const struct place *place) {
    return place->turn % 2 != 0;
}

static struct place *find(const struct table *table, int64_t number, bool is_site) {
    uint64_t index = (uint64_t)number % TABLE_PLACES_MOST;
    if (number < 0 || index >= table->count)
        return NULL;
    struct place *place = &table->place[index];
    return is_taken(place) && place->is_site == is_site && number_of(table, place) == number
               ? place
               : NULL;
}

struct place *table_find_site(const struct table *table, int64_t number) {
    return find(table, number, true);
}

struct place *table_find(const struct table *table, int64_t number) {
    return find(table, number, false);
}

int64_t table_add_site(struct table *table, struct site *site) {
    return number_of(table, take_place(table, site, true));
}

void table_drop_site(struct table *table, struct place *place) {
    give_place(table, place);
}

/* ---- which are entered ---- */

/* What names the one outside of it. */
static uint32_t *link_from(struct table *table, uint32_t inner) {
    return inner == TABLE_NOBODY ? &table->innermost : &table->place[inner].outer;
}

static void link_outside_of(struct table *table, struct place *place, uint32_t inner) {
    uint32_t index = index_of(table, place), *link = link_from(table, inner);
    place->inner = inner;
    place->outer = *link;
    if (place->outer != TABLE_NOBODY)
        table->place[place->outer].inner = index;
    *link = index;
}

static void unlink_place(struct table *table, const struct place *place) {
    *link_from(table, place->inner) = place->outer;
    if (place->outer != TABLE_NOBODY)
        table->place[place->outer].inner = place->inner;
}

static void note_left(struct table *table, struct place *place) {
    if (place->entered)
        unlink_place(table, place);
    place->entered = 0;
}

static void note_entered(struct table *table, struct place *place) {
    uint64_t since = place->entered ? place->entered : table->time + 1;
    note_left(table, place);
    link_outside_of(table, place, TABLE_NOBODY);
    place->entered = since;
    place->moved = ++table->time;
}

int64_t table_innermost(const struct table *table) {
    uint32_t innermost = table->innermost;
    return innermost == TABLE_NOBODY ? 0 : number_of(table, &table->place[innermost]);
}

/* ---- before and after a function ---- */

struct table_moment table_before(const struct table *table, const struct place *place) {
    return (struct table_moment){
        .time = table->time,
        .innermost = table_innermost(table),
        .run = place ? number_of(table, place) : 0,
        .moved = place ? place->moved : 0,
    };
}

static void leave_newer(struct table *table, uint64_t time) {
    uint32_t i = table->innermost;
    while (i != TABLE_NOBODY && table->place[i].moved > time) {
        struct place *place = &table->place[i];
        i = place->outer;
        if (place->entered > time)
            (void)table_leave(table, place);
    }
}

/* malloc() has a new step as the innermost only: those inside of it are entered once more. */
static void move_back(struct table *table, struct place *place, uint64_t moved) {
    uint32_t inner = TABLE_NOBODY;
    unlink_place(table, place);
    for (uint32_t *link = &table->innermost;
         *link != TABLE_NOBODY && table->place[*link].moved > moved;
         link = &table->place[*link].outer)
        inner = *link;
    link_outside_of(table, place, inner);
    place->moved = moved;
    for (; inner != TABLE_NOBODY; inner = table->place[inner].inner)
        (void)ebb_scope_enter(table->place[inner].step);
}

/* NULL: it was not entered then, or left since then. */
static struct place *find_entered(const struct table *table, int64_t number, uint64_t time) {
    struct place *place = table_find(table, number);
    return place && place->entered && place->entered <= time ? place : NULL;
}

void table_go_back(struct table *table, const struct table_moment *then) {
    leave_newer(table, then->time);
    struct place *run = find_entered(table, then->run, then->time);
    if (run)
        move_back(table, run, then->moved);
    struct place *innermost = find_entered(table, then->innermost, then->time);
    if (innermost && table->innermost != index_of(table, innermost))
        (void)table_enter(table, innermost);
}

/* ---- steps ---- */

int64_t table_begin(struct table *table, struct site *site, uint64_t tag) {
    destroy_staying(table, TRIES_IN_VAIN);
    ebb_step step = ebb_step_begin(site->site, tag);
    if (!ebb_region_is_open(step.region))
        return 0;
    struct place *place = take_place(table, site, false);
    place->step = step;
    site->holders++;
    note_entered(table, place);
    return number_of(table, place);
}

int table_enter(struct table *table, struct place *place) {
    int result = ebb_scope_enter(place->step);
    if (result == 0)
        note_entered(table, place);
    return result;
}

int table_leave(struct table *table, struct place *place) {
    int result = ebb_scope_leave(place->step);
    if (result == 0)
        note_left(table, place);
    return result;
}

int table_end(struct table *table, struct place *place) {
    int result = ebb_step_end(place->step);
    note_left(table, place);
    give_place(table, place);
    return result;
}

static void empty(struct table *table, struct place *place) {
    if (place->is_site)
        table_drop_site(table, place);
    else
        (void)table_end(table, place);
}

void table_clear(struct table *table) {
    for (uint32_t i = 0; i < table->count; i++)
        if (is_taken(&table->place[i]))
            empty(table, &table->place[i]);
    destroy_staying(table, UINT32_MAX);
    free(table->place);
    *table = (struct table){.innermost = TABLE_NOBODY};
}
