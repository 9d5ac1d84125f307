// SPDX-License-Identifier: Apache-2.0
/*
 * quarantine.c - freed blocks that wait (see quarantine.h).
 *
 * Invariant: a block in the quarantine is alive to the heap below and dead to the program. There
 * are at most so many blocks, bytes and addresses; the oldest leave first, and all if there is no
 * memory without. What the system does not open stays, and tries again in its turn; a block that
 * comes meanwhile leaves in its stead. No block is looked at by two threads: who takes it out of
 * its place has it, and the lock is not held while it leaves, but where a scope ends.
 */
#include "malloc/quarantine.h"
#include "malloc/closed.h"
#include "malloc/front.h"
#include "malloc/misuse.h"
#include "malloc/seal.h"
#include "malloc/tray.h"

#include "base/os.h"
#include "base/size.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define FILL 0xEB
#define HELD_BLOCKS 4096u
#define HELD_BYTES ((size_t)32 << 20)     /* that stay in memory: beside whole pages */
#define HELD_ADDRESSES ((size_t)4 << 30)  /* of whole pages */

/* ---- one of them ---- */

/* What the program cannot overwrite. */
struct held {
    char *block; /* NULL: it left before its turn */
    size_t bytes;
    size_t below; /* that the general heap has for it, if it is closed; else 0 */
    size_t spare; /* of these: whole pages behind its tail, which are gone */
    bool closed;  /* it has whole pages, and nobody can touch them */
};

/* Of a block: they fault by themselves once it is freed. None: at its end. */
struct span {
    char *from, *to;
};

static struct span pages_inside(char *block, size_t bytes) {
    char *from = (char *)size_align((uintptr_t)block, EBB_PAGE);
    char *to = (char *)size_align_down((uintptr_t)block + bytes, EBB_PAGE);
    if (from < to && !tray_holds((uintptr_t)block))
        return (struct span){from, to};
    return (struct span){block + bytes, block + bytes};
}

static size_t length(struct span pages) {
    return (size_t)(pages.to - pages.from);
}

/* The heap below gives more than it is asked for: nobody uses that. How much goes. */
static size_t give_back_behind(char *block, size_t bytes, size_t below) {
    char *from = (char *)size_align((uintptr_t)block + bytes + SEAL_TAIL, EBB_PAGE);
    char *to = (char *)size_align_down((uintptr_t)seal_place(block) + below, EBB_PAGE);
    size_t spare = from < to ? (size_t)(to - from) : 0;
    return spare && os.give_back(from, spare) == 0 ? spare : 0;
}

/* False: it is too large to be held back, and the system might not open it again; or it refuses, as
 * the process has as many mappings as it may. */
static bool closes(struct span pages) {
    return length(pages) && length(pages) <= HELD_ADDRESSES / 4 &&
           os.shut(pages.from, length(pages)) == 0;
}

static struct held close_block(char *block, size_t bytes) {
    struct held held = {.block = block, .bytes = bytes};
    struct span pages = pages_inside(block, bytes);
    held.closed = closes(pages);
    if (held.closed) {
        held.below = front_usable(seal_place(block));
        held.spare = give_back_behind(block, bytes, held.below);
    }
    return held;
}

static struct span closed_pages(const struct held *held) {
    char *end = held->block + held->bytes;
    return held->closed ? pages_inside(held->block, held->bytes) : (struct span){end, end};
}

/* What is not closed stays in memory. */
static size_t bytes_in_memory(const struct held *held) {
    return held->bytes - length(closed_pages(held));
}

/* What lies in front of its closed pages and behind them is looked at when it leaves. */
static void fill(const struct held *held) {
    struct span pages = closed_pages(held);
    memset(held->block, FILL, (size_t)(pages.from - held->block));
    memset(pages.to, FILL, (size_t)(held->block + held->bytes - pages.to));
}

static bool is_filled(const char *from, const char *to) {
    return from == to ||
           ((unsigned char)*from == FILL && memcmp(from, from + 1, (size_t)(to - from - 1)) == 0);
}

/* It is no survivor of its scope (suspects.h), whether it is held back or finds no place. */
static void forget_key(char *block) {
    if (!tray_holds((uintptr_t)block))
        return;
    struct tray_head *head = tray_head_of(seal_place(block));
    __atomic_store_n(&head->key, TRAY_NO_KEY, __ATOMIC_RELAXED);
}

/* Of a block of a tray: it is as forget_key() left it. Else front_free() would end the process. */
static bool has_head(char *block) {
    const struct tray_head *head = tray_head_of(seal_place(block));
    return tray_state(head) == TRAY_LIVE && head->key == TRAY_NO_KEY;
}

/* What was done to a block after it was freed, to which nobody may have written; NULL: nothing. */
static const char *harm_to(const struct held *held) {
    char *block = held->block, *end = block + held->bytes;
    const struct seal *seal = seal_of(block);
    if (seal->hash != seal_hash(block, seal, SEAL_FREED) ||
        (tray_holds((uintptr_t)block) && !has_head(block)))
        return "bytes before it were overwritten after it was freed";
    struct span pages = closed_pages(held);
    if (!is_filled(block, pages.from) || !is_filled(pages.to, end))
        return "it was written to after it was freed";
    if (!seal_has_tail(block, held->bytes))
        return "bytes behind it were overwritten after it was freed";
    return NULL;
}

/* False: the system does not open its pages, so it cannot be used again. */
static bool let_go(const struct held *held) {
    struct span pages = closed_pages(held);
    if (length(pages) && os.reopen(pages.from, length(pages)) != 0)
        return false;
    seal_of(held->block)->hash = 0;
    front_free(seal_place(held->block));
    return true;
}

/* The same; ends the process if somebody wrote to it. */
static bool check_out(const struct held *held) {
    const char *harm = harm_to(held);
    if (harm)
        misuse_of_guarded(held->block, harm);
    return let_go(held);
}

/* Larger ones leave at once: there is not so much memory for each. */
static bool may_be_held(const struct held *held) {
    return bytes_in_memory(held) <= HELD_BYTES / 4;
}

/* It is not closed. Its pages go. */
static void leave_at_once(const struct held *held) {
    struct span pages = pages_inside(held->block, held->bytes);
    (void)os.give_back(pages.from, length(pages));
    (void)let_go(held);
}

/* ---- all of them, with the lock held ---- */

/* The oldest at `first`. */
static struct quarantine {
    pthread_mutex_t lock;
    struct held blocks[HELD_BLOCKS];
    unsigned first, count;
    size_t bytes, addresses, below, spare;
    struct quarantine_closed lost; /* could not leave, and has found no place again */
    unsigned in_trays;             /* of those in places */
} quarantine = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool has_room(const struct held *held) {
    return quarantine.count < HELD_BLOCKS &&
           quarantine.bytes + bytes_in_memory(held) <= HELD_BYTES &&
           quarantine.addresses + length(closed_pages(held)) <= HELD_ADDRESSES;
}

/* Trays count theirs. relaxed, here and below: by this count blocks leave with the lock only, and
 * a scope that looks at its trays when it ends learns from it and does no more. */
static void count_in_tray(const char *block) {
    quarantine.in_trays++;
    atomic_fetch_add_explicit(&tray_of((uintptr_t)block)->held, 1, memory_order_relaxed);
}

static void count_out_of_tray(const char *block) {
    quarantine.in_trays--;
    atomic_fetch_sub_explicit(&tray_of((uintptr_t)block)->held, 1, memory_order_relaxed);
}

static struct held *place_at(unsigned i) {
    return &quarantine.blocks[(quarantine.first + i) % HELD_BLOCKS];
}

static void append(const struct held *held) {
    *place_at(quarantine.count++) = *held;
    quarantine.bytes += bytes_in_memory(held);
    quarantine.addresses += length(closed_pages(held));
    quarantine.below += held->below;
    quarantine.spare += held->spare;
    if (tray_holds((uintptr_t)held->block))
        count_in_tray(held->block);
}

/* What has its place no longer; without a block: it has left before. */
static struct held take_out(struct held *place) {
    struct held held = *place;
    if (!held.block)
        return held;
    quarantine.bytes -= bytes_in_memory(&held);
    quarantine.addresses -= length(closed_pages(&held));
    quarantine.below -= held.below;
    quarantine.spare -= held.spare;
    if (tray_holds((uintptr_t)held.block))
        count_out_of_tray(held.block);
    place->block = NULL;
    return held;
}

static struct held take_oldest(void) {
    struct held held = take_out(place_at(0));
    quarantine.first = (quarantine.first + 1) % HELD_BLOCKS;
    quarantine.count--;
    return held;
}

/* It is closed, and the system does not open it now. */
static void keep(const struct held *held) {
    if (quarantine.count < HELD_BLOCKS) {
        append(held);
        return;
    }
    quarantine.lost.blocks += held->below;
    quarantine.lost.pages += length(closed_pages(held)) + held->spare;
}

/* Without the lock, which is taken again. False: it could not, and is kept. */
static bool leave(const struct held *held) {
    pthread_mutex_unlock(&quarantine.lock);
    bool left = check_out(held);
    pthread_mutex_lock(&quarantine.lock);
    if (!left)
        keep(held);
    return left;
}

static bool leave_oldest(void) {
    struct held oldest = take_oldest();
    return !oldest.block || leave(&oldest);
}

/* ---- coming and leaving ---- */

/* Where the oldest cannot leave it leaves itself: what was closed a moment ago can be opened, if
 * no other thread was faster. */
static void hold(const struct held *held) {
    pthread_mutex_lock(&quarantine.lock);
    while (!has_room(held) && leave_oldest())
        ;
    if (has_room(held))
        append(held);
    else
        (void)leave(held);
    pthread_mutex_unlock(&quarantine.lock);
}

void quarantine_take(char *block, size_t bytes) {
    struct held held = close_block(block, bytes);
    if (may_be_held(&held)) {
        fill(&held);
        forget_key(block);
        hold(&held);
    } else {
        leave_at_once(&held);
    }
}

/* Those that cannot are passed over, and all that have as many pages: others may have fewer. */
bool quarantine_empty(void) {
    bool is_any = false;
    size_t refused = HELD_ADDRESSES;
    pthread_mutex_lock(&quarantine.lock);
    for (unsigned to_try = quarantine.count; to_try && quarantine.count; to_try--) {
        struct held oldest = take_oldest();
        size_t pages = oldest.block ? length(closed_pages(&oldest)) : 0;
        if (pages >= refused)
            keep(&oldest);
        else if (oldest.block && leave(&oldest))
            is_any = true;
        else if (pages)
            refused = pages;
    }
    pthread_mutex_unlock(&quarantine.lock);
    return is_any;
}

/* Its scope has ended, and nothing but blocks that are held back is alive in it. */
static bool is_over_with(const struct tray *tray) {
    /* relaxed: before all that is alive is in the balance it is not above zero */
    int64_t balance = atomic_load_explicit(&tray->balance, memory_order_relaxed);
    return atomic_load_explicit(&tray->owner, memory_order_relaxed) == TRAY_SEALED &&
           balance > 0 && tray_balance_blocks(balance) ==
                              atomic_load_explicit(&tray->held, memory_order_relaxed);
}

/* Those to come get the places. */
static void drop_empty_newest(void) {
    while (quarantine.count && !place_at(quarantine.count - 1)->block)
        quarantine.count--;
}

/* From the newest on, as far as there are blocks of trays: those of this scope come soon. The
 * process ends without the lock, for a handler of SIGABRT may free. */
void quarantine_release_sealed(void) {
    const char *harm = NULL;
    struct held held = {.block = NULL};
    pthread_mutex_lock(&quarantine.lock);
    unsigned to_see = quarantine.in_trays;
    for (unsigned i = quarantine.count; i > 0 && to_see && !harm; i--) {
        struct held *place = place_at(i - 1);
        if (!place->block || !tray_holds((uintptr_t)place->block))
            continue;
        to_see--;
        if (!is_over_with(tray_of((uintptr_t)place->block)))
            continue;
        held = take_out(place);
        harm = harm_to(&held);
        if (!harm)
            (void)let_go(&held); /* in a tray it is open */
    }
    drop_empty_newest();
    pthread_mutex_unlock(&quarantine.lock);
    if (harm)
        misuse_of_guarded(held.block, harm);
}

struct quarantine_closed quarantine_read_closed(void) {
    size_t trays = closed_count();
    pthread_mutex_lock(&quarantine.lock);
    size_t blocks = quarantine.below + quarantine.lost.blocks;
    size_t pages = quarantine.addresses + quarantine.spare + quarantine.lost.pages;
    pthread_mutex_unlock(&quarantine.lock);
    return (struct quarantine_closed){
        .blocks = blocks + trays * TRAY_BYTES,
        .pages = pages + trays * (TRAY_BYTES + EBB_PAGE), /* jemalloc adds one (tray.h) */
    };
}

/* Blocks that leave with the quarantine's lock held may close their trays. */
void quarantine_fork(bool before) {
    if (before)
        pthread_mutex_lock(&quarantine.lock);
    closed_fork(before);
    if (!before)
        pthread_mutex_unlock(&quarantine.lock);
}
