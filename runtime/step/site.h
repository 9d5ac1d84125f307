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
 *     course.c   what follows from a step: it is judged, what is made of it published
 *     work.h     what is made: records become drafts, drafts plans
 *     choose.c   which course a step belongs to
 *     rhythm.h   which kind of step comes next
 *     learn.h    the policy, with its numbers.h
 *     draft.h    records as drafts, drafts as plans
 *     merge.h    two drafts as one
 *     trim.h     drafts of loops as those of shorter ones
 *     search.c   better plans, in a thread of the site's own
 *     seat.h     which thread this is
 *
 *     site --- lanes    one for each step that is open at once: its rings, its tracks
 *         `--- courses  one for each tag, or kind of a tag's steps that come in rows: what was
 *                       learnt, the plan that is shared
 *
 * The mutex protects everything except what belongs to an open step (its lane's fields under
 * "open", its region, its track), and what bare steps use without it. It is never held while
 * regions of the caller's open or close, nor while a plan is made: `planning` then keeps other
 * threads from the course's drafts.
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
    uint64_t odd_next;     /* of the tag's own: number there of the step after one that the plan
                              did not fit; 0: none so far */
    uint64_t like_odd;     /* hash of a plan that fits steps after such ones, too; 0: none */
    uint64_t steps;        /* that have begun here; a step that failed to begin is taken back */
    uint64_t used;         /* steps of the site that had ended when the last one began here */
    uint64_t began;        /* number of that last one; 0: none */
    struct track *followed; /* of the last step to end here that followed a plan; NULL: none */
    struct learning learning;
    struct plan *plan;    /* NULL: none */
    struct draft *noted;  /* of the last record, to be compared with the next */
    struct draft *finer;  /* of the record of a coarse plan, with its small blocks */
    struct plan *coarser; /* that a plan with small blocks has replaced, until that is proven */
    bool planning;        /* a thread works with the drafts */
    bool searched_for;    /* waits for its turn in the search for better plans */
};

/* True if it is of no tag or kind: what was to be its first step could not begin. */
static inline bool course_is_free(const struct course *course) {
    return !course->kind.count && !course->steps;
}

/* A place in the ring of a lane, for the region of one step and what follows or records it. */
struct berth {
    struct step_hook hook;
    struct lane *lane;
    struct region *region; /* of an ended step; NULL: none, or it was closed with its parent */
    const struct region *parent; /* of that region, or NULL */
    struct track *tracks[SITE_COURSES]; /* made when they are needed */
    struct track *followed; /* the one that the step before followed, or NULL */
    bool has_outcast; /* a region taken out of here may be open and tied to one of these tracks */
};

/* Open regions that steps took out of rings because another thread was at work in them: all have
 * this hook. Their tracks may still be tied, so the site stays. Whoever closes one unties its track
 * before it is counted out here: so once it is gone its track is free. */
struct outcasts {
    struct step_hook hook;
    struct ebb_site *site;
    unsigned count; /* changes under the lock */
};

/* What a recorded or planned step saw, for the next one of its course in the lane, which may be in
 * another berth. */
struct lane_past {
    size_t above;  /* of its track */
    bool saw_above;
    uint64_t peak; /* of its region's pages; 0: there was no such step */
};

enum lane_state {
    LANE_IDLE, /* on the list of idle lanes */
    LANE_BARE, /* on that list, but taken by a bare step, without the lock (bare.c) */
    LANE_OPEN, /* on no list: a step has it. Entered and left under the lock */
};

/* What a step found when it began, to be restored if it cannot begin after all. */
struct before {
    uint64_t crowded;     /* of the site */
    uint64_t used, began; /* of the course */
};

struct lane {
    struct step_hook hook; /* of the region of the open step */
    struct ebb_site *site;
    struct lane *next;      /* all lanes of the site */
    struct lane *idle_next; /* lanes that are idle or bare */
    struct seat owner;      /* of the thread that began the last step here */
    _Atomic(enum lane_state) state;
    _Atomic(uint64_t) bare_steps; /* count of those that ended here */
    uint64_t steps;        /* count of those that began here */
    struct berth *ring;    /* one more than the site's ring; step k's is k modulo that */
    struct course *course; /* NULL: not learnt from, or not open; changes under the lock */
    struct rhythm *rhythm; /* that the step is part of, or NULL */
    uint64_t number;       /* of the step in that */
    struct before before;  /* the last step that began; changes under the lock */
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
    struct lane *idle; /* lanes that are idle or bare, the one that was open last first */
    struct lane *idle_lane; /* the last one looked at (idle.c), and its berth; NULL: none yet */
    unsigned idle_berth;
    struct outcasts outcasts;
    uint64_t open_most; /* most steps open lately beside one that ended */
    uint64_t open_steps; /* count of open lanes */
    uint64_t lost_steps; /* of these: in a child of a fork, opened by other threads of the parent */
    uint64_t begun, crowded; /* count of steps so far; and when the last one met another */
    uint64_t met; /* the same, when one that met another site's in the pool ended last */
    unsigned course_count, kind_count; /* in use; of these, courses of kinds */
    struct course *newest; /* the course of the last step */
    struct ebb_site_stats stats;
    atomic_uint_fast64_t given_back; /* for the stats; without the lock */
    struct ebb_site_options options;
    uint64_t number;           /* unique among all sites with scopes, for ever */
    _Atomic(bool) is_bare;     /* no step ever had anything in its region (bare.c) */
    struct searcher *searcher; /* NULL: none yet */
    _Atomic(void *) served;    /* scope_server's; NULL: nothing yet */
    char name[REGION_NAME_BYTES];
    struct course courses[SITE_COURSES]; /* those in use: the others cost no memory */
};

/* ---- site.c ---- */

/* As ebb_site_create(), for steps that are begun by malloc(), in the middle of anything. */
struct ebb_site *site_create_inner(const struct ebb_site_options *options);

/* A step that ends. */
struct ended {
    struct track_seen seen;
    struct region_cost cost;
    uint64_t promoted_bytes;
    uint64_t strays;
    ebb_pool *pool; /* of its region; NULL: a slot of a shared one, or no memory of the host */
    bool bare;      /* nothing ever was in its region */
    bool empty;     /* the same, and nothing was expected there: it is not learnt from */
};

/* Allocations of the step, including those born in the parent. */
uint64_t ended_allocations(const struct ended *ended);

/* Finishes a step: adds it to the counters, compares it with the budget, releases its lane. */
void site_count(struct lane *lane, const struct ended *ended, struct excess *excess);
void site_count_locked(struct lane *lane, const struct ended *ended, struct excess *excess);

/* Counts a plan that steps will follow. Lock held. */
void site_count_plan(struct ebb_site *site, const struct plan *plan);

/* ---- sites.c ---- */

/* Makes forks wait for the locks of sites and of the layers below, from now on. Any thread. */
void sites_prepare(void);

/* Adds a new site to the list of all; removes one that is about to end. */
void sites_add(struct ebb_site *site);
void sites_remove(struct ebb_site *site);

/* ---- step.c ---- */

/* The lane of a step that is open; NULL with an error. */
struct lane *step_find_open(ebb_step step);

/* ---- lane.c ---- */

/* What a step is given when it begins. */
struct ticket {
    struct lane *lane; /* with its course */
    struct seat owner_before; /* of the lane; if that is new, the step's thread */
    enum learn_mode mode;
    struct plan *plan; /* NULL: none */
    struct plan *own;  /* the same, if the step is counted among its users; else its track is */
    uint64_t tag;
    uint64_t begun; /* count of steps of the site that had ended */
    uint64_t number; /* among those that began; 0: it is bare */
    bool fits; /* the sizes of this step make a new plan of the structure that it follows */
};

/* Opens a lane for the calling thread and a step below `parent`, or NULL. False with EBB_E_MEMORY,
 * or EBB_E_BUSY: the site is being destroyed. */
bool lane_take(struct ebb_site *site, const struct region *parent, uint64_t tag,
               struct ticket *ticket);

/* Memory of the site for a lane, all zero; NULL with EBB_E_MEMORY. Lock held, so the program's
 * handler of exhausted memory, which may fork or take locks of its own, does not hear of it. */
void *lane_allocate(struct ebb_site *site, size_t bytes);

/* The state just now; with the lock held, "open" cannot change. */
enum lane_state lane_state(const struct lane *lane);

/* Changes the state from one to the other, atomically; false: it was another. */
bool lane_change(struct lane *lane, enum lane_state from, enum lane_state to);

/* The step could not begin: makes the lane idle and returns its ring to its owner. Nothing was
 * learnt of the step. */
void lane_return(const struct ticket *ticket);

/* The step has ended: makes its lane idle. */
void lane_release(struct lane *lane);
void lane_release_locked(struct lane *lane);

/* In a child of a fork: steps that other threads had open stay open, and count as lost until
 * something ends them. Lock held. */
void lane_lose_others(struct ebb_site *site);

/* How many steps of the site are open, bare ones too. Lock held. */
uint64_t lane_count_open(const struct ebb_site *site);

/* ---- bare.c ---- */

/* If steps of the site are bare, takes the lane that the calling thread had last. No lock held. */
bool bare_take(struct ebb_site *site, uint64_t tag, struct ticket *ticket);

/* Notes the lane as the one that the calling thread had last. */
void bare_note(struct lane *lane);

/* Ends the step and frees its lane if it was bare to the end; else false. */
bool bare_end(struct lane *lane, const struct ended *ended);

/* How many bare steps have ended. Lock held. */
uint64_t bare_count(const struct ebb_site *site);

/* ---- choose.c ---- */

/* Chooses the course of the step that begins in the ticket's lane, and what it will be there. Lock
 * held. */
void course_choose(struct ebb_site *site, struct ticket *ticket);

/* The step could not begin: takes it out of its row, and back from its course, which is free if the
 * step was its first. Lock held. */
void course_return(struct ebb_site *site, const struct ticket *ticket);

/* True if the track still has what the course's last step that followed a plan left there. Lock
 * held, and the track's lane is not open. */
bool course_tells_of(const struct course *course, const struct track *track);

/* The lane's step has ended, with this verdict: which courses the next ones belong to. True: its
 * course, the tag's own, begins anew. Lock held. */
bool course_sort(struct lane *lane, const struct learn_step *step, enum learn_verdict verdict);

/* Length of the rows that the last step's tag comes in; 0: no rows. Lock held. */
uint32_t course_row(const struct ebb_site *site);

/* ---- ring.c ---- */

/* Makes the berths of a new lane; false with EBB_E_MEMORY. */
bool ring_create(struct lane *lane);

/* Sets up the outcasts of a new site. */
void ring_prepare(struct ebb_site *site);

/* True if a region in the ring has a parent other than `parent` or NULL: only the thread that uses
 * that parent may close it. */
bool ring_hangs_below_another(const struct lane *lane, const struct region *parent);

/* True if the region whose place the next step would take cannot be closed: a cleanup of it or
 * below it is running. Lock held. */
bool ring_is_stuck(const struct lane *lane);

/* How many regions in the ring are like that. Lock held. */
unsigned ring_count_closing(const struct lane *lane);

/* The berth of the last step that began. */
struct berth *ring_present(const struct lane *lane);

/* True if the track of the next step's berth follows the plan already, as one of its users. */
bool ring_follows(const struct lane *lane, const struct course *course, const struct plan *plan);

/* The region whose place the next step takes; NULL: none. */
struct region *ring_oldest(const struct lane *lane);

/* A step begins: takes the oldest region out, to be closed; NULL: there is none, or another thread
 * is at work in it: then the program closes it. */
struct region *ring_turn(struct lane *lane);

/* The step could not begin: its place, which is empty now, is the next one again. */
void ring_turn_back(struct lane *lane);

/* Keeps the region of a step that has ended; false: there is no ring. */
bool ring_keep(struct lane *lane, struct region *region);

/* Closes everything, ends the tracks. */
void ring_end(struct lane *lane);

/* ---- idle.c ---- */

/* Called for each step: every few of them, looks at the tracks of one berth and gives back what
 * those hold that no step has used for long. Lock held. */
void idle_look(struct ebb_site *site);

/* ---- course.c ---- */

/* Learns from the lane's step, whose region is closed or in the ring. No lock held. Reports no
 * failures. True: nothing was to be made, and the step was counted as by site_count(). */
bool course_learn(struct lane *lane, const struct ended *ended, struct excess *excess);

/* True if lately steps of the site came one at a time, none stays readable, and they did not meet
 * those of other sites that took pages of the same pool. Lock held. */
bool course_is_alone(const struct ebb_site *site);

/* Forgets everything. */
void course_end(struct course *course);

/* ---- search.c ---- */

/* The course has a new plan: if it is worth it, has the site's thread look for a better one, after
 * those of other courses. True: call search_begin(), there is no thread yet. Lock held. */
bool search_ask(struct ebb_site *site, struct course *course);

/* The course's plan goes: ends the search for a better one. Lock held. */
void search_stop(const struct ebb_site *site, struct course *course);

/* Starts the thread. No lock held, and a step of the site is open. */
void search_begin(struct ebb_site *site);

/* True while the thread is looking for a better plan of the course. Lock held. */
bool search_is_for(const struct ebb_site *site, const struct course *course);

/* Ends the thread, if there is one. No lock held. */
void search_end(struct ebb_site *site);

#endif
