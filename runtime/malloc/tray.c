// SPDX-License-Identifier: Apache-2.0
/*
 * tray.c - where trays come from, and what becomes of those that outlive their scope.
 *
 * Trays are blocks of an arena of jemalloc that takes addresses from one reserved zone only, so
 * that a free recognises them by one comparison, with what of the zone is open; jemalloc reuses
 * them, lowest address first, and gives the pages of free ones back in time. Fails, without effect,
 * where the zone cannot be reserved or is full.
 */
#include "malloc/tray.h"
#include "malloc/general.h"
#include "malloc/holding.h"
#include "malloc/misuse.h"

#include "base/os.h"
#include "base/size.h"

#include <pthread.h>

#define ZONE_MOST ((size_t)256 << 30)
#define ZONE_LEAST ((size_t)64 << 20)

struct zone tray_zone;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tray *pinned;
static size_t pinned_trays, pinned_bytes;
static struct tray *to_thin[2]; /* the next one, where that is asked or not; NULL: the first */
static uint64_t last_seal;

/* ---- the zone ---- */

/* Reserves the zone, less of it where the system grants less. */
static void *reserve(size_t *bytes) {
    for (*bytes = ZONE_MOST; *bytes >= ZONE_LEAST; *bytes /= 4) {
        void *zone = os.reserve(*bytes);
        if (zone)
            return zone;
    }
    *bytes = 0;
    return NULL;
}

bool tray_prepare(void) {
    tray_zone.base = (uintptr_t)reserve(&tray_zone.bytes);
    if (!tray_zone.base)
        return false;
    if (zone_open(&tray_zone))
        return true;
    os.release((void *)tray_zone.base, tray_zone.bytes);
    tray_zone.base = tray_zone.bytes = 0;
    atomic_store_explicit(&tray_zone.carved, 0, memory_order_relaxed);
    return false;
}

/* ---- trays ---- */

struct tray *tray_take(struct heap *owner) {
    if (!tray_zone.bytes)
        return NULL;
    struct tray *tray = je_mallocx(TRAY_BYTES, MALLOCX_ALIGN(TRAY_SPAN) | MALLOCX_TCACHE_NONE |
                                                   MALLOCX_ARENA(tray_zone.arena));
    if (!tray)
        return NULL;
    if (!tray_holds((uintptr_t)tray)) {
        /* a thread that ends: jemalloc's own part of it is gone, so any arena may serve */
        tray_give(tray);
        return NULL;
    }
    tray_begin(tray, owner);
    return tray;
}

void tray_begin(struct tray *tray, struct heap *owner) {
    atomic_store_explicit(&tray->balance, 0, memory_order_relaxed);
    atomic_store_explicit(&tray->owner, owner, memory_order_relaxed);
}

void tray_give(struct tray *tray) {
    je_dallocx(tray, MALLOCX_ARENA(tray_zone.arena) | MALLOCX_TCACHE_NONE);
}

/* ---- pinned ---- */

/* relaxed: whether a seal is still there is decided by who has the lock */
static void set_seal(struct tray *tray, uint64_t seal) {
    atomic_store_explicit(&tray->seal, seal, memory_order_relaxed);
}

static bool has_seal(const struct tray *tray, uint64_t seal) {
    return atomic_load_explicit(&tray->seal, memory_order_relaxed) == seal;
}

static uint64_t pin(struct tray *tray, struct holding *holding) {
    tray->holding = holding;
    tray->seen = tray->gone_bytes = 0;
    holding_pin(holding, TRAY_BYTES);
    pthread_mutex_lock(&lock);
    tray->prev = NULL;
    tray->next = pinned;
    if (pinned)
        pinned->prev = tray;
    pinned = tray;
    pinned_trays++;
    pinned_bytes += TRAY_BYTES;
    uint64_t seal = ++last_seal;
    set_seal(tray, seal);
    pthread_mutex_unlock(&lock);
    return seal;
}

/* A tray goes: who is to look at it next looks at the one behind it. */
static void go_past(struct tray *tray, struct tray **next) {
    if (*next == tray)
        *next = tray->next;
}

static void unpin(struct tray *tray) {
    pthread_mutex_lock(&lock);
    size_t bytes = TRAY_BYTES - tray->gone_bytes;
    go_past(tray, &to_thin[false]);
    go_past(tray, &to_thin[true]);
    if (tray->prev)
        tray->prev->next = tray->next;
    else
        pinned = tray->next;
    if (tray->next)
        tray->next->prev = tray->prev;
    pinned_trays--;
    pinned_bytes -= bytes;
    set_seal(tray, 0);
    pthread_mutex_unlock(&lock);
    holding_unpin(tray->holding, bytes);
}

bool tray_hold(const struct tray *tray, uint64_t seal) {
    if (!has_seal(tray, seal))
        return false;
    pthread_mutex_lock(&lock);
    if (has_seal(tray, seal))
        return true;
    pthread_mutex_unlock(&lock);
    return false;
}

void tray_let(void) {
    pthread_mutex_unlock(&lock);
}

/* ---- what is in them ---- */

static uintptr_t behind(const struct tray *tray, const struct tray_head *head) {
    return head ? (uintptr_t)head + tray_step_of(head) : tray_first(tray);
}

const struct tray_head *tray_next(const struct tray *tray, const struct tray_head *head) {
    uintptr_t at = behind(tray, head);
    head = (const struct tray_head *)at;
    if (at >= tray->used_to)
        return NULL;
    uint32_t step = tray_step_of(head);
    bool is_one = tray_is_marked(head) && step && step <= tray->used_to - at;
    return is_one ? head : NULL;
}

int64_t tray_count(const struct tray *tray) {
    const struct tray_head *head = NULL, *last = NULL;
    int64_t count = 0;
    while ((head = tray_next(tray, last))) {
        uint32_t state = tray_state(head);
        if (state == TRAY_LIVE || state == TRAY_PASSED)
            count += tray_weight(tray_step_of(head));
        last = head;
    }
    uintptr_t end = behind(tray, last);
    if (end != tray->used_to)
        misuse_before((const struct tray_head *)end + 1);
    return count;
}

bool tray_is_empty(const struct tray *tray, int64_t left) {
    /* acquire: what others did with the blocks that they freed comes before the next use */
    return left + atomic_load_explicit(&tray->balance, memory_order_acquire) == 0;
}

uint64_t tray_seal(struct tray *tray, int64_t left, struct holding *holding) {
    if (tray_is_empty(tray, left)) /* only this thread can bring the balance above zero, below */
        return 0;
    uint64_t seal = pin(tray, holding);
    atomic_store_explicit(&tray->owner, TRAY_SEALED, memory_order_relaxed);
    /* acq_rel: as in tray_release_other(), whichever comes last */
    if (atomic_fetch_add_explicit(&tray->balance, left, memory_order_acq_rel) + left != 0)
        return seal;
    unpin(tray);
    return 0;
}

bool tray_release_other(struct tray *tray, int64_t weight) {
    /* acq_rel: what this thread did with the block comes before whoever gives the tray away */
    if (atomic_fetch_sub_explicit(&tray->balance, weight, memory_order_acq_rel) != weight)
        return false;
    /* The last one of a tray that is sealed: an open one has a balance below this. */
    unpin(tray);
    return true;
}

/* ---- pages of pinned ones ---- */

/* Whole pages from there to there; their bytes. */
static size_t give_back(uintptr_t from, uintptr_t to) {
    uintptr_t first = size_align(from, EBB_PAGE), last = size_align_down(to, EBB_PAGE);
    bool is_done = first < last && os.give_back((void *)first, last - first) == 0;
    return is_done ? last - first : 0;
}

/* Blocks of which none is alive are one from now on, so that no head is needed behind the first. */
static size_t give_run(struct tray_head *first, uintptr_t end, uintptr_t pages_end) {
    first->mark = tray_state(first) + (uint32_t)(end - (uintptr_t)first);
    return give_back((uintptr_t)(first + 1), pages_end);
}

/* Each step leads to the next head, up to the end. */
static bool is_whole(const struct tray *tray) {
    const struct tray_head *last = NULL;
    for (const struct tray_head *head = NULL; (head = tray_next(tray, head));)
        last = head;
    return behind(tray, last) == tray->used_to;
}

/* acquire: who has freed it is done with its head. */
static bool is_dead(const struct tray_head *head) {
    return __atomic_load_n(&head->mark, __ATOMIC_ACQUIRE) - TRAY_LIVE > TRAY_MOST;
}

/* With the lock, which keeps it pinned. Others may free blocks meanwhile; what is dead stays so. */
static size_t give_dead_pages(struct tray *tray) {
    struct tray_head *dead = NULL; /* the first of a run */
    uintptr_t end = (uintptr_t)tray + TRAY_BYTES;
    size_t bytes = 0;
    for (const struct tray_head *head = NULL; (head = tray_next(tray, head));) {
        if (is_dead(head)) {
            dead = dead ? dead : (struct tray_head *)(uintptr_t)head;
        } else if (dead) {
            bytes += give_run(dead, (uintptr_t)head, (uintptr_t)head);
            dead = NULL;
        }
    }
    return bytes + (dead ? give_run(dead, tray->used_to, end) : give_back(tray->used_to, end));
}

/* Pages that have gone once count once. */
static size_t thin_whole(struct tray *tray) {
    size_t bytes = give_dead_pages(tray);
    size_t more = bytes > tray->gone_bytes ? bytes - tray->gone_bytes : 0;
    tray->gone_bytes = (uint16_t)(tray->gone_bytes + more);
    pinned_bytes -= more;
    holding_lessen(tray->holding, more);
    return more;
}

/* One that is not, and may be later, counts as not seen. */
static size_t thin(struct tray *tray, uint64_t live) {
    if (!is_whole(tray))
        return 0;
    tray->seen = (uint16_t)(live / TRAY_GRANULE);
    return thin_whole(tray);
}

/* All that is freed of a pinned tray makes this less. Where nobody waits for the pages it is to be
 * worth a look at all blocks: a page went, or half of what kept some. */
static bool is_to_be_thinned(const struct tray *tray, uint64_t live, bool is_asked) {
    uint64_t seen = tray->seen * TRAY_GRANULE;
    return !seen || (is_asked ? live != seen : live + EBB_PAGE <= seen || live <= seen / 2);
}

bool tray_thin(uint64_t limit_ns, bool is_asked, size_t *bytes) {
    struct tray **next = &to_thin[is_asked];
    pthread_mutex_lock(&lock);
    uint64_t began = os.now_ns(); /* to wait for the lock takes none of it */
    struct tray *tray = *next ? *next : pinned;
    for (; tray && os.now_ns() - began < limit_ns; tray = tray->next) {
        int64_t balance = atomic_load_explicit(&tray->balance, memory_order_relaxed);
        uint64_t live = balance > 0 ? tray_balance_bytes(balance) : 0;
        if (live && is_to_be_thinned(tray, live, is_asked))
            *bytes += thin(tray, live);
    }
    *next = tray;
    pthread_mutex_unlock(&lock);
    return tray != NULL;
}

/* ---- how much it is ---- */

struct tray_pinned tray_read_pinned(void) {
    struct tray_pinned read = {0, 0, 0, 0};
    pthread_mutex_lock(&lock);
    for (struct tray *tray = pinned; tray; tray = tray->next) {
        int64_t balance = atomic_load_explicit(&tray->balance, memory_order_relaxed);
        if (balance > 0) {
            read.blocks += (size_t)(uint32_t)balance;
            read.live += tray_balance_bytes(balance);
        }
    }
    read.trays = pinned_trays;
    read.bytes = pinned_bytes;
    pthread_mutex_unlock(&lock);
    return read;
}

void tray_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&lock);
}
