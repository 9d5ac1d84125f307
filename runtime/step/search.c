// SPDX-License-Identifier: Apache-2.0
/*
 * search.c - better plans, in a thread of the site's own.
 *
 * The thread is made when it is needed, takes one course after the other that has a new plan, and
 * ends when there is none: a process whose own threads have all ended would be kept by one that
 * sleeps. It has a share of the plan, so the site goes on. Its plan takes the place of the one that
 * it was asked to beat, if that is still there; if not, the search is broken off. Invariants: what
 * the thread has taken is its own until `plan` is NULL again; a site has one at a time, and who
 * makes the next, or ends the site, has waited for the last.
 *
 * A site that cannot have a thread does without. The thread begins with no lock held: what the C
 * library allocates for it may be served by a scope, which locks another site. A search is broken
 * off, at the site's end, too, by the clock that it looks at: that says that time is up.
 *
 * A child has no such thread, and may be one that no handler of forks ran in: who asks for the
 * searcher finds none there (searcher_of()).
 */
#include "step/site.h"

#include "base/error.h"
#include "base/os.h"
#include "base/schedule.h"
#include "pool/fork.h"

#include <signal.h>

/* A plan this much above the bytes alive is worth a search; one that much is good enough. */
#define SEARCH_FROM_PPM 10000u
#define SEARCH_TO_PPM 1000u

struct searcher {
    struct ebb_site *site;
    unsigned forks;   /* when it was made: another number by now: it is a parent's */
    bool is_there;    /* takes what is asked for, or will: it is to begin */
    pthread_t thread; /* the last, to be waited for, if it is noted */
    bool is_noted;
    pthread_cond_t noted;
    atomic_bool ending;
    atomic_bool hurried; /* what is searched for is of no use any more */
    /* what is searched for; plan NULL: nothing */
    struct course *course;
    struct plan *plan; /* to be beaten; with a user */
};

/* ---- the thread ---- */

static _Thread_local const struct searcher *own;

static uint64_t time_left(void) {
    /* relaxed: nothing is read because of them */
    bool is_up = atomic_load_explicit(&own->ending, memory_order_relaxed) ||
                 atomic_load_explicit(&own->hurried, memory_order_relaxed);
    return is_up ? UINT64_MAX : os.now_ns();
}

/* A plan that is a page lower at least: less is no gain, and lanes would have to change for it. */
static struct plan *search(const struct searcher *searcher, uint64_t budget_ns) {
    const struct packing_effort effort = {.keys = PACKING_ORDERS, .slack_ppm = SEARCH_TO_PPM,
                                          .search_ns = budget_ns, .orders_too = true,
                                          .clock_ns = time_left};
    struct draft *draft = draft_of_plan(searcher->plan);
    struct plan *plan =
        draft ? draft_plan(draft, &effort, searcher->plan->height_bytes - EBB_PAGE) : NULL;
    draft_drop(draft);
    return plan;
}

/* Lock held. What is not used any more is left in *plan. */
static void publish(struct searcher *searcher, struct plan **plan) {
    struct course *course = searcher->course;
    if (!*plan || course->plan != searcher->plan || course->planning)
        return;
    course->plan = *plan;
    site_count_plan(searcher->site, course->plan);
    *plan = searcher->plan; /* the course's share of it */
}

/* Lock held. The first course that waits; false: none does. */
static bool take_course(struct searcher *searcher) {
    struct ebb_site *site = searcher->site;
    for (unsigned i = 0; i < site->course_count; i++) {
        struct course *course = &site->courses[i];
        if (!course->searched_for)
            continue;
        course->searched_for = false;
        plan_share(course->plan);
        searcher->course = course;
        searcher->plan = course->plan;
        searcher->hurried = false;
        return true;
    }
    return false;
}

/* Lock held, but not while it searches, and gives back what it needed. */
static void look_for_a_plan(struct searcher *searcher) {
    pthread_mutex_t *lock = &searcher->site->lock;
    uint64_t budget_ns = searcher->site->options.search_ns, began = os.now_ns();
    pthread_mutex_unlock(lock);
    struct plan *plan = search(searcher, budget_ns);
    pthread_mutex_lock(lock);
    publish(searcher, &plan);
    searcher->site->stats.planning_ns += os.now_ns() - began;
    struct plan *beaten = searcher->plan;
    searcher->plan = NULL;
    pthread_mutex_unlock(lock); /* it may be asked for more meanwhile, and finds that then */
    plan_drop(plan);
    plan_drop(beaten);
    plan_pool_rest(0);
    pthread_mutex_lock(lock);
}

static void *search_on(void *context) {
    struct searcher *searcher = context;
    own = searcher;
    schedule_as_first();
    error_mute(); /* nobody hears of what it cannot do, the program's handler neither */
    pthread_mutex_lock(&searcher->site->lock);
    while (!searcher->is_noted)
        pthread_cond_wait(&searcher->noted, &searcher->site->lock);
    while (!searcher->ending && take_course(searcher))
        look_for_a_plan(searcher);
    searcher->is_there = false;
    pthread_mutex_unlock(&searcher->site->lock);
    return NULL;
}

/* ---- the site ---- */

/* The last thread, which has nothing left to do, or has been told so. */
static void wait_for_last(struct searcher *searcher) {
    int cancel; /* a thread that is cancelled here would leave half a site */
    if (!searcher->is_noted)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_join(searcher->thread, NULL);
    pthread_setcancelstate(cancel, NULL);
    searcher->is_noted = false;
}

/* Signals of the program are not for the thread. */
static int start(struct searcher *searcher, pthread_t *thread) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, search_on, searcher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* This process's; NULL: none so far. Lock held, or no other thread is in the site. */
static struct searcher *searcher_of(const struct ebb_site *site) {
    struct searcher *searcher = site->searcher;
    return searcher && searcher->forks == fork_count() ? searcher : NULL;
}

/* One that has no thread yet; NULL: no memory. */
static struct searcher *make(struct ebb_site *site) {
    struct searcher *searcher =
        ebb_region_alloc_zeroed(site->memory, sizeof *searcher, EBB_UNIT);
    if (!searcher)
        return NULL;
    fork_prepare_raw();
    searcher->site = site;
    searcher->forks = fork_count();
    pthread_cond_init(&searcher->noted, NULL);
    return searcher;
}

/* Where what stays to the end lies apart, a lower plan would serve less. */
static bool is_worth_it(const struct plan *plan) {
    uint64_t slack = (uint64_t)plan->max_live_bytes / LEARN_MILLION * SEARCH_FROM_PPM;
    size_t wanted = plan->max_live_bytes + size_larger((size_t)slack, EBB_PAGE);
    return !plan->apart && plan->height_bytes > wanted;
}

void search_stop(const struct ebb_site *site, struct course *course) {
    course->searched_for = false;
    if (search_is_for(site, course))
        site->searcher->hurried = true;
}

bool search_ask(struct ebb_site *site, struct course *course) {
    search_stop(site, course);
    if (!is_worth_it(course->plan))
        return false;
    course->searched_for = true;
    if (!searcher_of(site))
        site->searcher = make(site);
    bool begins = site->searcher && !site->searcher->is_there;
    if (begins)
        site->searcher->is_there = true;
    return begins;
}

void search_begin(struct ebb_site *site) {
    struct searcher *searcher = site->searcher; /* nobody else ends it while a step is open */
    pthread_t thread;
    wait_for_last(searcher);
    bool begun = start(searcher, &thread) == 0;
    pthread_mutex_lock(&site->lock);
    if (begun) {
        searcher->thread = thread;
        searcher->is_noted = true;
        pthread_cond_signal(&searcher->noted);
    } else {
        site->searcher = NULL;
        pthread_cond_destroy(&searcher->noted);
        ebb_region_release(site->memory, searcher);
    }
    pthread_mutex_unlock(&site->lock);
}

bool search_is_for(const struct ebb_site *site, const struct course *course) {
    const struct searcher *searcher = searcher_of(site);
    return searcher && searcher->plan && searcher->course == course;
}

void search_end(struct ebb_site *site) {
    struct searcher *searcher = searcher_of(site);
    if (!searcher)
        return;
    pthread_mutex_lock(&site->lock);
    searcher->ending = true;
    pthread_mutex_unlock(&site->lock);
    wait_for_last(searcher);
    pthread_cond_destroy(&searcher->noted);
}
