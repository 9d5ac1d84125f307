// SPDX-License-Identifier: Apache-2.0
/*
 * site.h - the body of a site, its lanes and courses.
 *
 *     site.c     create, destroy, counters
 *     sites.c    all of them, for forks
 *     lane.c     which lane a step gets
 *     bare.c     steps that are there for their scope alone
 *     ring.c     ended steps that stay readable
 *     idle.c     what lanes that are idle for long give back
 *     step.c     begin and end
 *     scope.h    what the step means to malloc(), where that is served
 *     budget.h   what a step may cost
 *     course.c   what follows from a step: records become drafts, drafts plans
 *     choose.c   which course a step belongs to
 *     rhythm.h   which kind of step comes next
 *     learn.h    the policy
 *     draft.h    records as drafts, drafts as plans
 *     search.c   better plans, in a thread of the site's own
 *     seat.h     which thread this is
 *
 *     site --- lanes    one for each step that is open at once: its rings, its tracks
 *         `--- courses  one for each tag, or kind of a tag's steps that come in rows: what was
 *                       learnt, the plan that is shared
 *
 * The mutex protects all of it but what belongs to an open step: its lane's fields under "open",
 * its region, its track; and what bare steps use without it. It is never held while regions of the
 * caller's open or close, nor while a plan is made: `planning` then keeps others from the course's
 * drafts.
 */
#ifndef EBB_STEP_SITE_H
#define EBB_STEP_SITE_H

#include "step/budget.h"
#include "step/draft.h"
#include "step/learn.h"
#include "step/rhythm.h"
#include "step/seat.h"

#include <ebb/step.h>

#include <pthread.h>

#define SITE_TAGS 16u /* that are learnt; steps of any other are ordinary regions */
#define SITE_KINDS 8u /* of steps in rows, all tags together; others go with their tag */
#define SITE_COURSES (SITE_TAGS + SITE_KINDS)
#define SITE_RING_MOST 64u

struct course {
    uint64_t tag;
    struct step_kind kind; /* of the tag's steps; all zero: the tag's own course */
    struct rhythm *rhythm; /* of the tag's own; NULL: there was no memory */
    uint64_t steps;        /* that have begun here, but for those that could not after all */
    uint64_t used;         /* steps of the site that had ended when one began here last */
    uint64_t began;        /* its number; 0: none did */
    struct track *followed; /* a plan, by the step of these that ended last; NULL: none did */
    struct learning learning;
    struct plan *plan;    /* NULL: none */
    struct draft *noted;  /* of the last record, to be compared with the next */
    struct draft *finer;  /* of the one that a coarse plan is of, with its small blocks */
    struct plan *coarser; /* that one with small blocks took the place of; NULL: none, or proven */
    bool planning;        /* a thread is at work with the drafts */
    bool searched_for;    /* a better plan is to be looked for, when its turn comes */
};

/* It is of no tag or kind: a step that was to be the first of one could not begin. */
static inline bool course_is_free(const struct course *course) {
    return !course->kind.count && !course->steps;
}

/* A place in the ring of a lane, for the region of one step and what follows or records it. */
struct berth {
    struct step_hook hook;
    struct lane *lane;
    struct region *region; /* of an ended step; NULL: none, or it was closed with its parent */
    const struct region *parent; /* of that one; NULL: it has none */
    struct track *tracks[SITE_COURSES]; /* made when they are needed */
    struct track *followed; /* by the step before, of these; NULL: none */
    bool has_outcast; /* a region taken out of here may be open, and any of these tracks its */
};

/* Regions that steps took out of rings, since another thread was at work with them, and that are
 * open: all have this hook. Their tracks may be tied still, so the site stays. Whoever closes one
 * unties its track first, then comes here: who sees it gone has the track. */
struct outcasts {
    struct step_hook hook;
    struct ebb_site *site;
    unsigned count; /* changes under the lock */
};

/* What a step saw that was recorded or planned, for the next one of its course in the lane, which
 * may be in another berth. */
struct lane_past {
    size_t above;  /* of its track */
    bool saw_above;
    uint64_t peak; /* of its region's pages; 0: there was none */
};

enum lane_state {
    LANE_IDLE, /* on the list of these */
    LANE_BARE, /* there, too, but a bare step has taken it, without the lock (bare.c) */
    LANE_OPEN, /* on no list: a step has it. To here, and from here, under the lock */
};

/* What a step that began found, to be there again if it could not after all. */
struct before {
    uint64_t crowded;     /* of the site */
    uint64_t used, began; /* of the course */
};

struct lane {
    struct step_hook hook; /* of the region of the open step */
    struct ebb_site *site;
    struct lane *next;      /* all lanes of the site */
    struct lane *idle_next; /* those that are idle or bare */
    struct seat owner;      /* began a step here last */
    _Atomic(enum lane_state) state;
    _Atomic(uint64_t) bare_steps; /* that ended here */
    uint64_t steps;        /* so many began here */
    struct berth *ring;    /* one more than the site's ring; step k's is k modulo that */
    struct course *course; /* NULL: not learnt from, or not open; changes under the lock */
    struct rhythm *rhythm; /* that the step is part of, as this number; or NULL */
    uint64_t number;
    struct before before;  /* the step that began last; changes under the lock */
    bool is_lost; /* open, and one of the site's lost steps */
    struct lane_past past[SITE_COURSES]; /* an open step has its course's, without the lock */
    /* open */
    struct region *region;
    struct track *track;   /* NULL: nothing follows or records */
    void *scope;           /* of scope_server; NULL: none */
    enum learn_mode mode;
};

struct ebb_site {
    pthread_mutex_t lock;
    ebb_region memory; /* of the site and its lanes */
    struct ebb_site *next, *prev; /* see sites.c */
    bool is_inner, is_ending;
    struct lane *lanes;
    struct lane *idle; /* of these: idle or bare, the one that was open last first */
    struct lane *idle_lane; /* looked at last, with this berth (idle.c); NULL: none yet */
    unsigned idle_berth;
    struct outcasts outcasts;
    uint64_t open_most; /* of late, beside one that ended */
    uint64_t open_steps; /* lanes that are open */
    uint64_t lost_steps; /* of these: in a child of a fork, threads of its parent had them open */
    uint64_t begun, crowded; /* steps so far; as many had the last one that met another */
    uint64_t met; /* as many had the last one that met another site's in the pool, when it ended */
    struct course courses[SITE_COURSES];
    unsigned course_count, kind_count; /* the second: of the first */
    struct course *newest; /* the one that a step belonged to last */
    struct ebb_site_stats stats;
    atomic_uint_fast64_t given_back; /* for the stats; no lock */
    struct ebb_site_options options;
    uint64_t number;           /* no two sites with scopes ever have the same */
    _Atomic(bool) is_bare;     /* no step ever had anything in its region (bare.c) */
    struct searcher *searcher; /* NULL: none yet */
    _Atomic(void *) served;    /* of scope_server; NULL: nothing yet */
    char name[REGION_NAME_BYTES];
};

/* ---- site.c ---- */

/* A site whose steps are begun by malloc(), in the midst of whatever. As ebb_site_create(). */
struct ebb_site *site_create_inner(const struct ebb_site_options *options);

/* What a step was, when it ends. */
struct ended {
    struct track_seen seen;
    struct region_cost cost;
    uint64_t promoted_bytes;
    uint64_t strays;
    ebb_pool *pool; /* of its region; NULL: a slot of a shared one, or no memory of the host */
    bool bare;      /* nothing ever was in its region */
    bool empty;     /* the same, nor was anything expected: it is not learnt from */
};

/* Those that were born in the parent included. */
uint64_t ended_allocations(const struct ended *ended);

/* The last of a step: adds it to the counters, compares it with the budget, releases its lane. */
void site_count(struct lane *lane, const struct ended *ended, struct excess *excess);
void site_count_locked(struct lane *lane, const struct ended *ended, struct excess *excess);

/* A plan was made that steps will follow. Lock held. */
void site_count_plan(struct ebb_site *site, const struct plan *plan);

/* ---- sites.c ---- */

/* From the first call on forks wait for the locks of sites and of what is below. Any thread. */
void sites_prepare(void);

/* The site was made, or is about to end. */
void sites_add(struct ebb_site *site);
void sites_remove(struct ebb_site *site);

/* ---- step.c ---- */

/* The lane of a step that is open; NULL with an error. */
struct lane *step_find_open(ebb_step step);

/* ---- lane.c ---- */

/* What a step that begins gets. */
struct ticket {
    struct lane *lane; /* with its course */
    struct seat owner_before; /* of the lane; of a new one: the step's thread */
    enum learn_mode mode;
    struct plan *plan; /* with a user for the step; NULL: none */
    uint64_t tag;
    uint64_t begun; /* steps of the site that have ended */
    uint64_t number; /* of those that began; 0: it is bare */
    bool fits; /* what the step asks for makes a plan of the structure that it follows */
};

/* A lane for the calling thread, which is then open, and a step below `parent`, or NULL. False with
 * EBB_E_MEMORY, or EBB_E_BUSY: the site is being destroyed. */
bool lane_take(struct ebb_site *site, const struct region *parent, uint64_t tag,
               struct ticket *ticket);

/* Memory of the site for a lane, all zero; NULL with EBB_E_MEMORY. Lock held, so the program's
 * handler of exhausted memory, which may fork or take locks of its own, does not hear of it. */
void *lane_allocate(struct ebb_site *site, size_t bytes);

/* As it is just now; as it stays, for who has the lock and sees it open. */
enum lane_state lane_state(const struct lane *lane);

/* True: it was in the one state, and is in the other. */
bool lane_change(struct lane *lane, enum lane_state from, enum lane_state to);

/* The step could not begin: the lane is idle, and its ring is whose it was; nothing was learnt of
 * the step. */
void lane_return(const struct ticket *ticket);

/* The step has ended, and is over for its lane. */
void lane_release(struct lane *lane);
void lane_release_locked(struct lane *lane);

/* In a child of a fork: the steps that others had open stay so, and are lost until something ends
 * them. Lock held. */
void lane_lose_others(struct ebb_site *site);

/* All open steps of the site, bare ones too. Lock held. */
uint64_t lane_count_open(const struct ebb_site *site);

/* ---- bare.c ---- */

/* The lane that the calling thread had last, where steps of the site are bare. No lock held. */
bool bare_take(struct ebb_site *site, uint64_t tag, struct ticket *ticket);

/* The calling thread has the lane now. */
void bare_note(struct lane *lane);

/* The step is over if it was bare up to now, and its lane is free. */
bool bare_end(struct lane *lane, const struct ended *ended);

/* Bare steps that have ended. Lock held. */
uint64_t bare_count(const struct ebb_site *site);

/* ---- choose.c ---- */

/* Which course the step belongs to that begins now in the ticket's lane, and what it will be there.
 * Lock held. */
void course_choose(struct ebb_site *site, struct ticket *ticket);

/* The step could not begin: it is none of its row, no tag but those of others is there for it, and
 * none is newer. Lock held. */
void course_return(struct ebb_site *site, const struct ticket *ticket);

/* True: the track still has what the course's last step that followed a plan left there. Lock held,
 * and the track's lane is not open. */
bool course_tells_of(const struct course *course, const struct track *track);

/* Steps in a row of the tag that a step belonged to last; 0: no row. Lock held. */
uint32_t course_row(const struct ebb_site *site);

/* ---- ring.c ---- */

/* The berths of a lane that is being made; false with EBB_E_MEMORY. */
bool ring_create(struct lane *lane);

/* Of a site that was just made: nothing was taken out of its rings. */
void ring_prepare(struct ebb_site *site);

/* True if a region in it has another parent than this one, or NULL: whoever closes it must be the
 * one who uses that. */
bool ring_hangs_below_another(const struct lane *lane, const struct region *parent);

/* True if the region that a step's would take the place of cannot be closed: a cleanup of it runs
 * just now, or one below. Lock held. */
bool ring_is_stuck(const struct lane *lane);

/* How many regions in it are like that. Lock held. */
unsigned ring_count_closing(const struct lane *lane);

/* The berth of the step that began last. */
struct berth *ring_present(const struct lane *lane);

/* The region that a step that begins takes the place of; NULL: none. */
struct region *ring_oldest(const struct lane *lane);

/* A step begins: the oldest region is taken out, to be closed; NULL: none, or one that another
 * thread is at work with: the program closes that. */
struct region *ring_turn(struct lane *lane);

/* The step that was to begin could not: its place, from which the oldest is gone, waits. */
void ring_turn_back(struct lane *lane);

/* The region of the step that has ended stays, if there is a ring. */
bool ring_keep(struct lane *lane, struct region *region);

/* Closes everything, ends the tracks. */
void ring_end(struct lane *lane);

/* ---- idle.c ---- */

/* A step was counted: every few of them the tracks of one berth are looked at, and those that no
 * step has used for long give back what they hold. Lock held. */
void idle_look(struct ebb_site *site);

/* ---- course.c ---- */

/* Learns from the lane's step, whose region is closed or in the ring. No lock held. Keeps failures
 * to itself. True: nothing was to be made of it, and it was counted as by site_count(). */
bool course_learn(struct lane *lane, const struct ended *ended, struct excess *excess);

/* Steps of the site come one at a time, at least of late, and none stays readable; nor did they
 * meet those of other sites that took pages of the same pool. Lock held. */
bool course_is_alone(const struct ebb_site *site);

/* Forgets everything. */
void course_end(struct course *course);

/* ---- search.c ---- */

/* The course has another plan: a thread looks for a better one, when it is done with those of other
 * courses. True: it is still to begin, by search_begin(). Lock held. */
bool search_ask(struct ebb_site *site, struct course *course);

/* The course's plan goes: nobody looks for a better one. Lock held. */
void search_stop(const struct ebb_site *site, struct course *course);

/* The thread that was asked for begins. No lock held, and a step of the site is open. */
void search_begin(struct ebb_site *site);

/* True while it is looking for one for the course. Lock held. */
bool search_is_for(const struct ebb_site *site, const struct course *course);

/* Ends the thread, if there is one. No lock held. */
void search_end(struct ebb_site *site);

#endif
