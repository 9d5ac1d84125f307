// SPDX-License-Identifier: Apache-2.0
/*
 * sites.c - all sites, so that a fork waits until nobody is at work in one (see pool/fork.c).
 *
 *     list of sites > sites of the program > inner ones > what is below
 *
 * Invariant: a site is on the list, under the lock, as long as its own lock is there. No thread has
 * the locks of two sites but for a fork; and while it has one, it does not call malloc(), which
 * inner sites serve.
 *
 * A child has no other thread: steps that these had open stay open, with nobody in them, and who
 * planned or searched is gone.
 */
#include "step/site.h"

#include "pool/fork.h"
#include "region/exhausted.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ebb_site *all;
static _Thread_local unsigned forking; /* see pool/fork.h */

static void lock_those(bool is_inner) {
    for (struct ebb_site *site = all; site; site = site->next)
        if (site->is_inner == is_inner)
            pthread_mutex_lock(&site->lock);
}

static void before(void) {
    if (!fork_is_first(&forking))
        return;
    pthread_mutex_lock(&lock);
    lock_those(false);
    lock_those(true);
}

static void after(void) {
    for (struct ebb_site *site = all; site; site = site->next)
        pthread_mutex_unlock(&site->lock);
    pthread_mutex_unlock(&lock);
}

static void after_in_parent(void) {
    if (fork_is_last(&forking))
        after();
}

/* A plan that one of them was making is nobody's any more, nor is the draft that was noted for it,
 * which may be half changed. Its memory may be just then, too, so it stays. */
static void forget_planning(struct course *course) {
    if (course->planning)
        course->noted = NULL;
    course->planning = false;
}

static void forget_threads(struct ebb_site *site) {
    for (unsigned i = 0; i < site->course_count; i++)
        forget_planning(&site->courses[i]);
    lane_lose_others(site);
}

static void after_in_child(void) {
    if (!fork_is_last(&forking))
        return;
    for (struct ebb_site *site = all; site; site = site->next)
        forget_threads(site);
    after();
}

static void watch_forks(void) {
    fork_prepare(); /* locks of what is below come after these */
    exhausted_prepare();
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before, after_in_parent, after_in_child);
}

void sites_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
}

void sites_add(struct ebb_site *site) {
    pthread_mutex_lock(&lock);
    site->next = all;
    if (all)
        all->prev = site;
    all = site;
    pthread_mutex_unlock(&lock);
}

void sites_remove(struct ebb_site *site) {
    pthread_mutex_lock(&lock);
    if (site->prev)
        site->prev->next = site->next;
    else
        all = site->next;
    if (site->next)
        site->next->prev = site->prev;
    pthread_mutex_unlock(&lock);
}
