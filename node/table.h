// SPDX-License-Identifier: Apache-2.0
/*
 * table.h - the sites and open steps of a thread by number, and which steps malloc() serves.
 *
 * JavaScript knows both by numbers. A number names a place in the table, and its turn, which is
 * another one each time that it is taken, and begins far from those of other tables, also of those
 * that copies of the package have: numbers of what has ended, and of other threads, are found out.
 *
 *     number    0 | turn, 33 bits | index, 20 bits      below 2^53: JavaScript has it exactly
 *
 * After 2^32 of them in one place turns come again.
 *
 * Invariants: `innermost`, and from there on `outer`, name the places of all steps that are
 * entered, the last one first, as malloc() sees them; `moved` falls on that way, and
 * entered <= moved. Times are counts of what was entered.
 *
 * Errors are ebb's: what is not 0 is on record. A table belongs to one thread.
 */
#ifndef NODE_TABLE_H
#define NODE_TABLE_H

#include <ebb/scope.h>

#define TABLE_PLACES_MOST (1u << 20) /* sites and open steps at once */
#define TABLE_TURNS ((uint64_t)1 << 33)
#define TABLE_NOBODY UINT32_MAX

/* Goes when it has no place of its own any more and no step of it is open. */
struct site {
    ebb_site *site;
    uint64_t holders;  /* its own place or who made it, and each open step */
    struct site *next; /* that stays as well, see struct table */
};

struct place {
    ebb_step step;     /* none, if it is a site's own */
    struct site *site;
    bool is_site;
    uint64_t turn;    /* one more whenever it is taken or left; odd: it is taken */
    uint64_t entered; /* since when it is; 0: it is not */
    uint64_t moved;   /* when it became the innermost one */
    uint32_t next;    /* free one */
    uint32_t outer, inner; /* the one that was entered before it, and after it; TABLE_NOBODY */
};

struct table { /* a new one is all zero but for `innermost` */
    struct place *place;
    uint32_t count, unused; /* `unused`: the first free place; count: none */
    uint32_t innermost;     /* TABLE_NOBODY: no step is entered */
    uint64_t time;          /* the last one */
    struct site *staying;   /* nobody holds them, but a scope of theirs has yet to end */
};

/* How it was when a function began to run. */
struct table_moment {
    uint64_t time;
    int64_t innermost; /* 0: nobody */
    int64_t run;       /* the step that it runs in, if that was there; 0: none */
    uint64_t moved;    /* of that step */
};

/* NULL: no memory. */
struct site *site_create(const char *name);

/* A site that nobody holds goes, or later, when another one does or a step begins, if it cannot. */
void table_release(struct table *table, struct site *site);

/* Ends all its steps and sites; afterwards it is as new. What cannot go then stays for good. */
void table_clear(struct table *table);

/* Makes room for another site or step. False: no memory, or the table is full. */
bool table_has_room(struct table *table);

/* There are as many sites and open steps as there can be. */
bool table_is_full(const struct table *table);

/* The number of a site, which is the table's from now on. There has to be room. */
int64_t table_add_site(struct table *table, struct site *site);

/* NULL: the number names no site of this table. Valid as table_find(). */
struct place *table_find_site(const struct table *table, int64_t number);
void table_drop_site(struct table *table, struct place *place);

/* A step, entered. There has to be room. 0: it cannot begin. */
int64_t table_begin(struct table *table, struct site *site, uint64_t tag);

/* NULL: the number names no open step of this table. Valid until there is room for another. */
struct place *table_find(const struct table *table, int64_t number);

int table_enter(struct table *table, struct place *place);
int table_leave(struct table *table, struct place *place);
int table_end(struct table *table, struct place *place);

/* The step that malloc() serves; 0: none. */
int64_t table_innermost(const struct table *table);

/* Before a function runs in a step, and NULL: in one that is still to begin. */
struct table_moment table_before(const struct table *table, const struct place *place);

/* Those steps are entered that were then, in the same order, less what was left since then. One
 * that was entered by hand since then, and before, stays where that has put it; but the one that
 * malloc() served is the innermost. */
void table_go_back(struct table *table, const struct table_moment *then);

#endif
