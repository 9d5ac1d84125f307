// SPDX-License-Identifier: Apache-2.0
/*
 * served.c - sites whose steps are scopes (see served.h).
 *
 * Invariant: a site's `served` is on the list, under the lock, as long as its hidden site is there
 * and a scope names it. Fails where there is no memory for
 * the hidden site: its scopes have no large blocks then, they are the general heap's.
 */
#include "malloc/served.h"
#include "malloc/general.h"

#include "base/error.h"
#include "base/name.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct served *all;

#define NUMBER_MOST 100000000u /* of a name, and one more digit: there are fewer sites */

static bool is_told(const char *name) {
    const struct served *served = all;
    while (served && strcmp(served->name, name) != 0)
        served = served->next;
    return served != NULL;
}

/* Of one that is told as `name`, `#` and a number as they are given here; else 0. */
static unsigned number_of(const struct served *served, const char *name, size_t length) {
    const char *digit = served->name + length;
    unsigned number = 0;
    if (strncmp(served->name, name, length) != 0 || *digit++ != '#' || *digit == '0')
        return 0;
    for (; *digit >= '0' && *digit <= '9' && number < NUMBER_MOST; digit++)
        number = number * 10 + (unsigned)(*digit - '0');
    return *digit ? 0 : number;
}

enum { WINDOW = 4096 };

/* The lowest number from 2 on that is free, looked for in a window after the other: sites may end
 * in any order. Lock held. */
static unsigned find_number(const char *name) {
    static bool taken[WINDOW]; /* not on the stack, of which the thread may have little */
    size_t length = strlen(name);
    for (unsigned low = 2;; low += WINDOW) {
        memset(taken, false, sizeof taken);
        for (const struct served *served = all; served; served = served->next) {
            unsigned number = number_of(served, name, length);
            if (number >= low && number - low < WINDOW)
                taken[number - low] = true;
        }
        const bool *free_one = memchr(taken, false, sizeof taken);
        if (free_one)
            return low + (unsigned)(free_one - taken);
    }
}

/* Of several sites with one name the second is "name#2", or has the first number that is free. */
static void find_name(const char *name, char told[SERVED_NAME_BYTES]) {
    char plain[REGION_NAME_BYTES];
    name_copy(plain, sizeof plain, name);
    name_make_plain(plain);
    name_copy(told, SERVED_NAME_BYTES, plain);
    if (is_told(told))
        snprintf(told, SERVED_NAME_BYTES, "%s#%u", plain, find_number(plain));
}

static struct served *make(ebb_site *site) {
    struct served *served =
        je_mallocx(sizeof *served, MALLOCX_ALIGN(_Alignof(struct served)) | MALLOCX_ZERO);
    if (!served)
        return NULL;
    served->hidden = site_create_inner(EBB_SITE_OPTIONS(
        .name = site->name, .unplanned = site->options.unplanned,
        .tenure_none = site->options.tenure_none, .search_ns = site->options.search_ns));
    if (!served->hidden) {
        je_free(served);
        return NULL;
    }
    served->holding = holding_create();
    served->site = site;
    find_name(site->name, served->name);
    served->next = all;
    all = served;
    return served;
}

uint64_t served_sum(const struct served *served, enum served_count count) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < SERVED_SHARES; i++) /* acquire: scopes that have ended are done */
        sum += atomic_load_explicit(&served->shares[i].counts[count], memory_order_acquire);
    return sum;
}

bool served_is_modest(const struct served *served) {
    return atomic_load_explicit(&served->modest, memory_order_relaxed) == SERVED_MODEST_SCOPES;
}

/* Two that end at once may count as one. What is as it is is not written: nobody takes the line. */
void served_note_large(struct served *served, uint64_t bytes) {
    unsigned seen = atomic_load_explicit(&served->modest, memory_order_relaxed);
    if (bytes > SERVED_MODEST_BYTES && seen)
        atomic_store_explicit(&served->modest, 0, memory_order_relaxed);
    else if (bytes <= SERVED_MODEST_BYTES && seen < SERVED_MODEST_SCOPES)
        (void)atomic_compare_exchange_strong_explicit(&served->modest, &seen, seen + 1,
                                                      memory_order_relaxed, memory_order_relaxed);
}

struct served *served_of(ebb_site *site) {
    /* acquire, and release below: it is seen as it was made */
    struct served *served = atomic_load_explicit(&site->served, memory_order_acquire);
    if (served)
        return served;
    pthread_mutex_lock(&lock);
    served = atomic_load_explicit(&site->served, memory_order_relaxed);
    if (!served && (served = make(site)))
        atomic_store_explicit(&site->served, served, memory_order_release);
    pthread_mutex_unlock(&lock);
    return served;
}

/* Lock held. Whoever reads the list may look at the hidden site. */
static int forget_locked(ebb_site *site) {
    struct served *served = site->served, **place = &all;
    uint64_t open = served_sum(served, SERVED_OPEN);
    if (open)
        return error_set(EBB_E_BUSY, "site '%s' has %llu open scopes", site->name,
                         (unsigned long long)open);
    int result = ebb_site_destroy(served->hidden);
    if (result)
        return result;
    while (*place != served)
        place = &(*place)->next;
    *place = served->next;
    site->served = NULL;
    holding_drop(served->holding);
    je_free(served);
    return 0;
}

int served_forget(ebb_site *site) {
    pthread_mutex_lock(&lock);
    int result = forget_locked(site);
    pthread_mutex_unlock(&lock);
    return result;
}

void served_each(void (*visit)(void *context, const struct served *served), void *context) {
    pthread_mutex_lock(&lock);
    for (const struct served *served = all; served; served = served->next)
        visit(context, served);
    pthread_mutex_unlock(&lock);
}

void served_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&lock);
}
