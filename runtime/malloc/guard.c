// SPDX-License-Identifier: Apache-2.0
/*
 * guard.c - blocks with guards (see guard.h).
 *
 * Invariant: no byte that the program names is written, or taken for a size, before its seal has
 * been found whole; where nothing can be read no seal is looked for. Ends the process where a guard
 * does not hold (misuse.h).
 */
#include "malloc/guard.h"
#include "malloc/front.h"
#include "malloc/misuse.h"
#include "malloc/quarantine.h"
#include "malloc/seal.h"
#include "malloc/tray.h"

#include "base/size.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- where blocks are ---- */

#define STRETCH ((uintptr_t)256 << 20)
#define STRETCHES ((size_t)1 << 19) /* of 47 bits, as addresses have that the system gives */
#define ADDRESSES (STRETCH * STRETCHES)

/* Where a block has begun. What the heaps have around it is there, and may be read. */
static atomic_bool begun_in[STRETCHES];

/* relaxed, here and below: who has a block has it from its thread, with all that went before */
static void note_begin(const struct seal *seal) {
    uintptr_t stretch = (uintptr_t)seal / STRETCH;
    if (stretch < STRETCHES && !atomic_load_explicit(&begun_in[stretch], memory_order_relaxed))
        atomic_store_explicit(&begun_in[stretch], true, memory_order_relaxed);
}

/* The system is asked for something that it has not, after it has read what is there. */
static __attribute__((noinline, cold)) bool is_readable(const struct seal *seal) {
    return syscall(SYS_rt_sigprocmask, -1, seal, NULL, sizeof seal->hash) == 0 || errno != EFAULT;
}

/* Else a block may begin there, and to look does no harm. */
static bool is_nowhere(const struct seal *seal) {
    uintptr_t stretch = (uintptr_t)seal / STRETCH;
    bool is_near = stretch < STRETCHES &&
                   atomic_load_explicit(&begun_in[stretch], memory_order_relaxed);
    return __builtin_expect(!is_near, 0) && !is_readable(seal);
}

/* Reserved for scopes, and closed, as none has needed it yet. */
static bool is_closed(const void *block) {
    uintptr_t addr = (uintptr_t)block;
    return (tray_reserves(addr) && !tray_holds(addr)) ||
           (range_reserves(addr) && !range_holds(addr));
}

/* The seal of a live block of the program's. Ends the process if it is none. */
static struct seal *expect_live(const void *block) {
    struct seal *seal = seal_of(block);
    if ((uintptr_t)block % GUARD_ALIGN != 0 || (uintptr_t)block < EBB_PAGE || is_closed(block) ||
        is_nowhere(seal))
        misuse_of_guarded(block, "no block begins there");
    uint64_t hash = __atomic_load_n(&seal->hash, __ATOMIC_RELAXED);
    if (hash == seal_hash(block, seal, SEAL_FREED))
        misuse_of_guarded(block, "double free, or use of a freed block");
    if (hash != seal_hash(block, seal, SEAL_LIVE))
        misuse_of_guarded(block, "no block begins there, or bytes before it were overwritten");
    if (!seal_has_tail(block, seal_bytes(seal)))
        misuse_of_guarded(block, "bytes behind it were overwritten");
    return seal;
}

/* ---- allocating ---- */

/* What a block has around it; false: no such size, errno is ENOMEM. */
static bool find_total(size_t bytes, size_t lead, size_t *total) {
    if (size_add(bytes, lead + SEAL_TAIL, total) && *total <= PTRDIFF_MAX)
        return true;
    errno = ENOMEM;
    return false;
}

/* The program's block in a place that the heap below gave; NULL: it gave none. */
static void *dress(char *place, size_t bytes, size_t lead) {
    if (!place)
        return NULL;
    char *block = place + lead;
    struct seal *seal = seal_of(block);
    note_begin(seal);
    seal->facts = (uint64_t)bytes << 8 | (uint64_t)__builtin_ctzll(lead);
    seal->hash = seal_hash(block, seal, SEAL_LIVE);
    seal_write_tail(block, bytes, (unsigned char *)block + bytes);
    return block;
}

/* All that is held back leaves, unless so much is more than all addresses; false: nothing did. */
static bool make_room(size_t total) {
    return total < ADDRESSES && quarantine_empty();
}

static void *place_of(size_t total, size_t align, const void *caller) {
    return align > GUARD_ALIGN ? front_alloc_aligned(total, align, caller)
                               : front_alloc(total, caller);
}

void *guard_alloc(size_t bytes, size_t align, const void *caller) {
    size_t lead = size_larger(align, sizeof(struct seal)), total;
    if (!find_total(bytes, lead, &total))
        return NULL;
    void *place = place_of(total, align, caller);
    if (!place && make_room(total))
        place = place_of(total, align, caller);
    return dress(place, bytes, lead);
}

/* Zeroed below, where it is known which pages are zero already. */
void *guard_alloc_zeroed(size_t bytes, const void *caller) {
    size_t total;
    if (!find_total(bytes, sizeof(struct seal), &total))
        return NULL;
    void *place = front_alloc_zeroed(total, caller);
    if (!place && make_room(total))
        place = front_alloc_zeroed(total, caller);
    return dress(place, bytes, sizeof(struct seal));
}

size_t guard_usable(const void *block) {
    return block ? seal_bytes(expect_live(block)) : 0;
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

/* Of several threads that free it at once one does. */
static void claim(const void *block, struct seal *seal) {
    uint64_t live = seal_hash(block, seal, SEAL_LIVE);
    /* relaxed: who comes second ends the process */
    if (!__atomic_compare_exchange_n(&seal->hash, &live, seal_hash(block, seal, SEAL_FREED), false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        misuse_of_guarded(block, "double free, by two threads at once");
}

void guard_free(void *block) {
    int before = errno;
    if (!block)
        return;
    struct seal *seal = expect_live(block);
    claim(block, seal);
    quarantine_take(block, seal_bytes(seal));
    errno = before;
}

void guard_free_sized(void *block, size_t bytes) {
    if (block && seal_bytes(expect_live(block)) != bytes)
        misuse_of_size(block, bytes, seal_bytes(seal_of(block)));
    guard_free(block);
}
