// SPDX-License-Identifier: Apache-2.0
/*
 * guard.c - guards and the quarantine (see guard.h).
 *
 * Invariant: a block in the quarantine is alive to the heap below and dead to the program. The
 * quarantine holds at most so many blocks, bytes and addresses; the oldest leave first, and all if
 * there is no memory without. What the system does not open stays, and tries again in its turn; a
 * block that comes meanwhile leaves in its stead. Ends the process where a guard does not hold
 * (misuse.h).
 */
#include "malloc/guard.h"
#include "malloc/closed.h"
#include "malloc/front.h"
#include "malloc/misuse.h"
#include "malloc/tray.h"

#include "base/os.h"
#include "base/size.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAIL ((size_t)16)
#define FILL 0xEB
#define HELD_BLOCKS 4096u
#define HELD_BYTES ((size_t)32 << 20)     /* that stay in memory: beside whole pages */
#define HELD_ADDRESSES ((size_t)4 << 30)  /* of whole pages */

struct guard {
    uint64_t facts; /* bytes of the program << 8 | logarithm of the bytes in front of them */
    uint64_t seal;
};

enum guard_state { GUARD_LIVE = 1, GUARD_FREED = 2 };

static _Atomic(uint64_t) secret;

/* What the program cannot overwrite. */
struct held {
    char *block; /* NULL: it left before its turn */
    size_t bytes;
    size_t below; /* that the general heap has for it, if it is closed; else 0 */
    size_t spare; /* of these: whole pages behind its tail, which are gone */
    bool closed;  /* it has whole pages, and nobody can touch them */
};

/* The oldest at `first`. */
static struct quarantine {
    pthread_mutex_t lock;
    struct held blocks[HELD_BLOCKS];
    unsigned first, count;
    size_t bytes, addresses, below, spare;
    struct guard_closed lost; /* could not leave, and has found no place again */
    unsigned in_trays;        /* of those in places */
} quarantine = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- seals ---- */

static uint64_t mix(uint64_t number) {
    number = (number ^ number >> 32) * 0xD6E8FEB86659FD93u;
    number = (number ^ number >> 32) * 0xD6E8FEB86659FD93u;
    return number ^ number >> 32;
}

static uint64_t own_secret(void) {
    uint64_t now = atomic_load_explicit(&secret, memory_order_relaxed), drawn;
    if (now)
        return now;
    drawn = os.draw() | 1;
    return atomic_compare_exchange_strong(&secret, &now, drawn) ? drawn : now;
}

static struct guard *guard_of(const void *block) {
    return (struct guard *)(uintptr_t)block - 1;
}

/* What the heap below knows. */
static char *place_under(char *block) {
    return block - ((size_t)1 << (guard_of(block)->facts & 255));
}

static size_t bytes_of(const struct guard *guard) {
    return guard->facts >> 8;
}

static uint64_t seal_of(const void *block, const struct guard *guard, enum guard_state state) {
    return mix(mix((uintptr_t)block ^ own_secret()) ^ guard->facts) + (uint64_t)state;
}

static void write_tail(const void *block, size_t bytes, unsigned char tail[TAIL]) {
    uint64_t words[2] = {mix((uintptr_t)block + own_secret()), mix(bytes ^ own_secret())};
    memcpy(tail, words, TAIL);
}

static bool has_tail(const void *block, size_t bytes) {
    unsigned char tail[TAIL];
    write_tail(block, bytes, tail);
    return memcmp((const char *)block + bytes, tail, TAIL) == 0;
}

/* ---- where blocks are ---- */

#define STRETCH ((uintptr_t)256 << 20)
#define STRETCHES ((size_t)1 << 19) /* of 47 bits, as addresses have that the system gives */
#define ADDRESSES (STRETCH * STRETCHES)

/* Where a block has begun. What the heaps have around it is there, and may be read. */
static atomic_bool begun_in[STRETCHES];

/* relaxed, here and below: who has a block has it from its thread, with all that went before */
static void note_begin(const struct guard *guard) {
    uintptr_t stretch = (uintptr_t)guard / STRETCH;
    if (stretch < STRETCHES && !atomic_load_explicit(&begun_in[stretch], memory_order_relaxed))
        atomic_store_explicit(&begun_in[stretch], true, memory_order_relaxed);
}

/* The system is asked for something that it has not, after it has read what is there. */
static __attribute__((noinline, cold)) bool is_readable(const struct guard *guard) {
    return syscall(SYS_rt_sigprocmask, -1, guard, NULL, sizeof guard->seal) == 0 || errno != EFAULT;
}

/* Else a block may begin there, and to look does no harm. */
static bool is_nowhere(const struct guard *guard) {
    uintptr_t stretch = (uintptr_t)guard / STRETCH;
    bool is_near = stretch < STRETCHES &&
                   atomic_load_explicit(&begun_in[stretch], memory_order_relaxed);
    return __builtin_expect(!is_near, 0) && !is_readable(guard);
}

/* Reserved for scopes, and closed, as none has needed it yet. */
static bool is_closed(const void *block) {
    uintptr_t addr = (uintptr_t)block;
    return (tray_reserves(addr) && !tray_holds(addr)) ||
           (range_reserves(addr) && !range_holds(addr));
}

/* The guard of a live block of the program's. Ends the process if it is none. */
static struct guard *expect_live(const void *block) {
    struct guard *guard = guard_of(block);
    if ((uintptr_t)block % GUARD_ALIGN != 0 || (uintptr_t)block < EBB_PAGE || is_closed(block) ||
        is_nowhere(guard))
        misuse_of_guarded(block, "no block begins there");
    uint64_t seal = __atomic_load_n(&guard->seal, __ATOMIC_RELAXED);
    if (seal == seal_of(block, guard, GUARD_FREED))
        misuse_of_guarded(block, "double free, or use of a freed block");
    if (seal != seal_of(block, guard, GUARD_LIVE))
        misuse_of_guarded(block, "no block begins there, or bytes before it were overwritten");
    if (!has_tail(block, bytes_of(guard)))
        misuse_of_guarded(block, "bytes behind it were overwritten");
    return guard;
}

/* ---- allocating ---- */

/* All that is held leaves, unless so much is more than all addresses; false: nothing did. */
static bool let_all_go(size_t total);

/* What a block has around it; false: no such size, errno is ENOMEM. */
static bool find_total(size_t bytes, size_t lead, size_t *total) {
    if (size_add(bytes, lead + TAIL, total) && *total <= PTRDIFF_MAX)
        return true;
    errno = ENOMEM;
    return false;
}

/* The program's block in a place that the heap below gave; NULL: it gave none. */
static void *dress(char *place, size_t bytes, size_t lead) {
    if (!place)
        return NULL;
    char *block = place + lead;
    struct guard *guard = guard_of(block);
    note_begin(guard);
    guard->facts = (uint64_t)bytes << 8 | (uint64_t)__builtin_ctzll(lead);
    guard->seal = seal_of(block, guard, GUARD_LIVE);
    write_tail(block, bytes, (unsigned char *)block + bytes);
    return block;
}

static void *place_of(size_t total, size_t align, const void *caller) {
    return align > GUARD_ALIGN ? front_alloc_aligned(total, align, caller)
                               : front_alloc(total, caller);
}

void *guard_alloc(size_t bytes, size_t align, const void *caller) {
    size_t lead = size_larger(align, sizeof(struct guard)), total;
    if (!find_total(bytes, lead, &total))
        return NULL;
    void *place = place_of(total, align, caller);
    if (!place && let_all_go(total))
        place = place_of(total, align, caller);
    return dress(place, bytes, lead);
}

/* Zeroed below, where it is known which pages are zero already. */
void *guard_alloc_zeroed(size_t bytes, const void *caller) {
    size_t total;
    if (!find_total(bytes, sizeof(struct guard), &total))
        return NULL;
    void *place = front_alloc_zeroed(total, caller);
    if (!place && let_all_go(total))
        place = front_alloc_zeroed(total, caller);
    return dress(place, bytes, sizeof(struct guard));
}

size_t guard_usable(const void *block) {
    return block ? bytes_of(expect_live(block)) : 0;
}

void *guard_resize(void *block, size_t bytes, const void *caller) {
    size_t before = guard_usable(block);
    void *moved = guard_alloc(bytes, GUARD_ALIGN, caller);
    if (!moved || !block)
        return moved;
    memcpy(moved, block, size_smaller(before, bytes));
    guard_free(block);
    return moved;
}

/* ---- freeing ---- */

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
    char *from = (char *)size_align((uintptr_t)block + bytes + TAIL, EBB_PAGE);
    char *to = (char *)size_align_down((uintptr_t)place_under(block) + below, EBB_PAGE);
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
        held.below = front_usable(place_under(block));
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

/* Of a block of a tray: it is as forget_key() left it. Else front_free() would end the process. */
static bool has_head(char *block) {
    const struct tray_head *head = tray_head_of(place_under(block));
    return tray_state(head) == TRAY_LIVE && head->key == TRAY_NO_KEY;
}

/* What was done to a block after it was freed, to which nobody may have written; NULL: nothing. */
static const char *harm_to(const struct held *held) {
    char *block = held->block, *end = block + held->bytes;
    const struct guard *guard = guard_of(block);
    if (guard->seal != seal_of(block, guard, GUARD_FREED) ||
        (tray_holds((uintptr_t)block) && !has_head(block)))
        return "bytes before it were overwritten after it was freed";
    struct span pages = closed_pages(held);
    if (!is_filled(block, pages.from) || !is_filled(pages.to, end))
        return "it was written to after it was freed";
    return has_tail(block, held->bytes) ? NULL
                                        : "bytes behind it were overwritten after it was freed";
}

/* False: the system does not open its pages, so it cannot be used again. */
static bool let_go(const struct held *held) {
    struct span pages = closed_pages(held);
    if (length(pages) && os.reopen(pages.from, length(pages)) != 0)
        return false;
    guard_of(held->block)->seal = 0;
    front_free(place_under(held->block));
    return true;
}

/* It leaves. */
static bool check_out(const struct held *held) {
    const char *harm = harm_to(held);
    if (harm)
        misuse_of_guarded(held->block, harm);
    return let_go(held);
}

/* With the lock held, here and below. */
static bool has_room(const struct held *held) {
    return quarantine.count < HELD_BLOCKS &&
           quarantine.bytes + bytes_in_memory(held) <= HELD_BYTES &&
           quarantine.addresses + length(closed_pages(held)) <= HELD_ADDRESSES;
}

static void note_held(const char *block) {
    quarantine.in_trays++;
    atomic_fetch_add_explicit(&tray_of((uintptr_t)block)->held, 1, memory_order_relaxed);
}

static void note_left(const char *block) {
    quarantine.in_trays--;
    /* relaxed: with the lock */
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
        note_held(held->block);
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
        note_left(held.block);
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

/* Those that cannot are passed over, and all that have as many pages: others may have fewer. */
static bool let_all_go(size_t total) {
    bool is_any = false;
    size_t refused = HELD_ADDRESSES;
    pthread_mutex_lock(&quarantine.lock);
    unsigned to_try = total < ADDRESSES ? quarantine.count : 0;
    for (; to_try && quarantine.count; to_try--) {
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

/* Of several threads that free it at once one does. */
static void claim(const void *block, struct guard *guard) {
    uint64_t live = seal_of(block, guard, GUARD_LIVE);
    /* relaxed: who comes second ends the process */
    if (!__atomic_compare_exchange_n(&guard->seal, &live, seal_of(block, guard, GUARD_FREED), false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        misuse_of_guarded(block, "double free, by two threads at once");
}

/* It is no survivor of its scope (suspects.h), whether it is held back or finds no place. */
static void forget_key(char *block) {
    if (!tray_holds((uintptr_t)block))
        return;
    struct tray_head *head = tray_head_of(place_under(block));
    __atomic_store_n(&head->key, TRAY_NO_KEY, __ATOMIC_RELAXED);
}

void guard_free(void *block) {
    int before = errno;
    if (!block)
        return;
    struct guard *guard = expect_live(block);
    claim(block, guard);
    struct held held = close_block(block, bytes_of(guard));
    if (may_be_held(&held)) {
        fill(&held);
        forget_key(block);
        hold(&held);
    } else {
        leave_at_once(&held);
    }
    errno = before;
}

void guard_free_sized(void *block, size_t bytes) {
    if (block && bytes_of(expect_live(block)) != bytes)
        misuse_of_size(block, bytes, bytes_of(guard_of(block)));
    guard_free(block);
}

/* Its scope has ended, and nothing but blocks that are held back is alive in it. */
static bool is_over_with(const struct tray *tray) {
    /* relaxed: before all that is alive is in the balance it is not above zero */
    int64_t balance = atomic_load_explicit(&tray->balance, memory_order_relaxed);
    return atomic_load_explicit(&tray->owner, memory_order_relaxed) == TRAY_SEALED &&
           balance > 0 && tray_balance_blocks(balance) ==
                              atomic_load_explicit(&tray->held, memory_order_relaxed);
}

/* With the lock. They leave their places to those to come. */
static void drop_empty_newest(void) {
    while (quarantine.count && !place_at(quarantine.count - 1)->block)
        quarantine.count--;
}

/* From the newest on, as far as there are blocks of trays: those of this scope come soon. The
 * process ends without the lock, for a handler of SIGABRT may free. */
void guard_release_sealed(void) {
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

struct guard_closed guard_read_closed(void) {
    size_t trays = closed_count();
    pthread_mutex_lock(&quarantine.lock);
    size_t blocks = quarantine.below + quarantine.lost.blocks;
    size_t pages = quarantine.addresses + quarantine.spare + quarantine.lost.pages;
    pthread_mutex_unlock(&quarantine.lock);
    return (struct guard_closed){
        .blocks = blocks + trays * TRAY_BYTES,
        .pages = pages + trays * (TRAY_BYTES + EBB_PAGE), /* jemalloc adds one (tray.h) */
    };
}

/* Blocks that leave with the quarantine's lock held may close their trays. */
void guard_fork(bool before) {
    if (before)
        pthread_mutex_lock(&quarantine.lock);
    closed_fork(before);
    if (!before)
        pthread_mutex_unlock(&quarantine.lock);
}
