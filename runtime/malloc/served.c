// SPDX-License-Identifier: Apache-2.0
/*
 * served.c - sites whose steps are scopes (see served.h).
 *
 * Invariant: a site's `served` is on the list and in the table of names, under the lock, as long as
 * its hidden site is there and a scope names it. Fails where there is no memory for the hidden
 * site: its scopes have no large blocks then, they are the general heap's.
 *
 * A record has two KiB, so to make or end a site walks over no others: a name is looked up by its
 * hash, and of a name that several have the first site knows up to where their numbers are taken,
 * and which of these ended last.
 */
#include "malloc/served.h"
#include "malloc/general.h"

#include "base/error.h"
#include "base/name.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct served *all;

/* ---- names ---- */

#define BUCKETS 4096u
#define NUMBER_FIRST 2u  /* the first site of a name has none */
#define NUMBER_DIGITS 9u /* that it has at most: there are fewer sites */

static struct served *buckets[BUCKETS]; /* by name; under the lock, as all here */

static struct served **bucket_of(const char *name, size_t length) {
    uint64_t hash = 0x811c9dc5u; /* FNV-1a of 32 bits: the product fits */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 0x1000193u & UINT32_MAX;
    return &buckets[hash % BUCKETS];
}

static struct served *find_told(const char *name, size_t length) {
    struct served *served = *bucket_of(name, length);
    while (served && (strncmp(served->name, name, length) != 0 || served->name[length]))
        served = served->beside;
    return served;
}

static bool is_told(const char *name) {
    return find_told(name, strlen(name)) != NULL;
}

static void tell(struct served *served) {
    struct served **bucket = bucket_of(served->name, strlen(served->name));
    served->free_from = NUMBER_FIRST;
    served->beside = *bucket;
    *bucket = served;
}

/* A site may have it as a part of its name. */
static unsigned next_number(struct served *first) {
    return first->ends ? first->ended[--first->ends] : first->free_from++;
}

/* Where there is no room for it, it is to be looked for. */
static void note_free(struct served *first, unsigned number) {
    if (number >= first->free_from) /* a program's own name, say: it was not given */
        return;
    if (first->ends < SERVED_ENDED)
        first->ended[first->ends++] = number;
    else
        first->free_from = number;
}

/* Of several sites with one name the second is "name#2", or has a number that is free again: sites
 * may end in any order. */
static void find_name(const char *name, char told[SERVED_NAME_BYTES]) {
    char plain[REGION_NAME_BYTES];
    name_copy(plain, sizeof plain, name);
    name_make_plain(plain);
    name_copy(told, SERVED_NAME_BYTES, plain);
    struct served *first = find_told(plain, strlen(plain));
    if (!first)
        return;
    do
        snprintf(told, SERVED_NAME_BYTES, "%s#%u", plain, next_number(first));
    while (is_told(told));
}

/* What is behind the last "#" of a name, if find_name() may have put it there; else 0. */
static unsigned number_at(const char *digits) {
    unsigned number = 0;
    size_t length = strlen(digits);
    if (length > NUMBER_DIGITS || strspn(digits, "0123456789") != length || *digits == '0')
        return 0;
    for (; *digits; digits++)
        number = number * 10 + (unsigned)(*digits - '0');
    return number;
}

/* The number that it had is free, whether it was given or a part of its name. */
static void untell(struct served *served) {
    struct served **place = bucket_of(served->name, strlen(served->name));
    while (*place != served)
        place = &(*place)->beside;
    *place = served->beside;
    const char *mark = strrchr(served->name, '#');
    unsigned number = mark ? number_at(mark + 1) : 0;
    struct served *first =
        number >= NUMBER_FIRST ? find_told(served->name, (size_t)(mark - served->name)) : NULL;
    if (first)
        note_free(first, number);
}

/* ---- sites ---- */

static void link_served(struct served *served) {
    served->next = all;
    served->place = &all;
    if (all)
        all->place = &served->next;
    all = served;
}

static void unlink_served(struct served *served) {
    *served->place = served->next;
    if (served->next)
        served->next->place = served->place;
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
    tell(served);
    link_served(served);
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
    struct served *served = site->served;
    uint64_t open = served_sum(served, SERVED_OPEN);
    if (open)
        return error_set(EBB_E_BUSY, "site '%s' has %llu open scopes", site->name,
                         (unsigned long long)open);
    int result = ebb_site_destroy(served->hidden);
    if (result)
        return result;
    untell(served);
    unlink_served(served);
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

void served_each(bool (*visit)(void *context, const struct served *served), void *context) {
    pthread_mutex_lock(&lock);
    const struct served *served = all;
    while (served && visit(context, served))
        served = served->next;
    pthread_mutex_unlock(&lock);
}

void served_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&lock);
}
