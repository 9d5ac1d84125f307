// SPDX-License-Identifier: Apache-2.0
/*
 * piece.c - stores of pieces.
 *
 * A store cuts pieces from batches that it keeps; batches it no longer needs go to a list that
 * all stores share; when a pool gives pages back, so do they, all but the page with their link,
 * and are on another list then. Meanwhile each is on a third one, so that nobody waits for the
 * system with the lock. First batches are parts of a batch that was cut for them, and stay
 * what they are. Invariant: a piece is in at most one store. Taking can fail, giving cannot.
 */
#include "pool/piece.h"
#include "base/os.h"
#include "base/size.h"
#include "pool/range.h"

#include <assert.h>
#include <pthread.h>

#ifndef BATCHES_KEPT
#define BATCHES_KEPT 5 /* per store: what piece_forget_all() leaves it, 65 KiB */
#endif

static_assert(sizeof(struct ebb_piece) % 16 == 0, "32 bits name a piece in units of 16 bytes");

static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;
static struct ebb_piece *shared; /* batches without an owner, linked by next */
static size_t shared_count;      /* of these */
static struct ebb_piece *going;  /* the same; a thread is giving them back */
static struct ebb_piece *cold;   /* the same; they were given back, and all entries are unused */

static struct ebb_piece *shared_firsts; /* first batches without an owner */
static char *uncut; /* what first batches are cut from next, as far as `uncut_end` */
static char *uncut_end;

static void wipe(struct ebb_piece *batch, unsigned entries) {
    for (unsigned i = 1; i < entries; i++)
        piece_put_word(&batch[i], PIECE_UNUSED);
}

static struct ebb_piece *pop(struct ebb_piece **list) {
    struct ebb_piece *batch = *list;
    if (batch)
        *list = batch->next;
    return batch;
}

static void push(struct ebb_piece **list, struct ebb_piece *batch) {
    batch->next = *list;
    *list = batch;
}

static struct ebb_piece *pop_shared(void) {
    shared_count -= shared != NULL;
    return pop(&shared);
}

/* From the first batch to the last of a list. */
static void share(struct ebb_piece *first, struct ebb_piece *last, size_t count) {
    last->next = shared;
    shared = first;
    shared_count += count;
}

/* Of a batch that nobody had: an old name may lead to an entry of it, and shall find one. */
static struct ebb_piece *cut_first_locked(void) {
    if (uncut == uncut_end) {
        char *batch = (char *)range_carve_pieces();
        if (!batch)
            return NULL;
        uncut = batch;
        uncut_end = batch + size_align_down(PIECES_BATCH_BYTES, PIECES_FIRST_BYTES);
    }
    char *first = uncut;
    uncut += PIECES_FIRST_BYTES;
    return (struct ebb_piece *)(void *)first;
}

/* All its entries are unused. */
static struct ebb_piece *acquire_batch(bool first) {
    if (!os.allow(OS_PIECES))
        return NULL;
    pthread_mutex_lock(&sharing);
    struct ebb_piece *used = first ? pop(&shared_firsts) : pop_shared(), *batch = used;
    if (!used)
        batch = first ? cut_first_locked() : pop(&cold);
    pthread_mutex_unlock(&sharing);
    if (used)
        wipe(used, first ? PIECES_IN_FIRST : PIECES_PER_BATCH); /* of another owner before */
    return batch || first ? batch : range_carve_pieces();
}

static unsigned entries_of(const struct piece_store *store, const struct ebb_piece *batch) {
    return batch == store->first ? PIECES_IN_FIRST : PIECES_PER_BATCH;
}

/* Appends a batch behind the current one, which is used up. */
static bool grow(struct piece_store *store) {
    struct ebb_piece *batch = acquire_batch(!store->first);
    if (!batch)
        return false;
    batch->next = NULL;
    if (store->last)
        store->last->next = batch;
    else
        store->first = batch;
    store->last = batch;
    if (++store->batches == BATCHES_KEPT)
        store->kept = batch;
    return true;
}

/* Makes the entries of the next batch ready. */
static bool advance(struct piece_store *store) {
    struct ebb_piece **next = store->current ? &store->current->next : &store->first;
    if (!*next && !grow(store))
        return false;
    store->current = *next;
    store->cut = 1;
    store->ready += entries_of(store, store->current) - 1;
    return true;
}

struct ebb_piece *piece_take_fresh(struct piece_store *store) {
    if (!store->ready && !advance(store))
        return NULL;
    store->ready--;
    return store->current + store->cut++;
}

/* What is left of the current batch goes to the free list, so that the next can be current. */
static void finish_batch(struct piece_store *store) {
    while (store->current && store->cut < entries_of(store, store->current)) {
        struct ebb_piece *piece = store->current + store->cut++;
        piece->next = store->free;
        store->free = piece;
    }
}

bool piece_make_ready(struct piece_store *store, unsigned count) {
    while (store->ready < count) {
        finish_batch(store);
        if (!advance(store))
            return false;
    }
    return true;
}

static void share_tail(struct piece_store *store) {
    pthread_mutex_lock(&sharing);
    share(store->kept->next, store->last, store->batches - BATCHES_KEPT);
    pthread_mutex_unlock(&sharing);
    store->last = store->kept;
    store->last->next = NULL;
    store->batches = BATCHES_KEPT;
}

static void wipe_all(struct ebb_piece *batch, unsigned entries) {
    for (; batch; batch = batch->next)
        wipe(batch, entries);
}

void piece_wipe(struct piece_store *store) {
    if (store->first) {
        wipe(store->first, PIECES_IN_FIRST);
        wipe_all(store->first->next, PIECES_PER_BATCH);
    }
    pthread_mutex_lock(&sharing);
    /* some may have been the store's; whoever took others has wiped them */
    wipe_all(shared, PIECES_PER_BATCH);
    wipe_all(going, PIECES_PER_BATCH);
    wipe_all(shared_firsts, PIECES_IN_FIRST);
    pthread_mutex_unlock(&sharing);
}

void piece_forget_all(struct piece_store *store) {
    store->free = NULL;
    store->current = NULL;
    store->cut = 0;
    store->ready = 0;
    if (store->batches > BATCHES_KEPT)
        share_tail(store);
}

/* False: the system refused. */
static bool cool(struct ebb_piece *batch) {
    uintptr_t from = size_align((uintptr_t)(batch + 1), EBB_PAGE);
    uintptr_t to = size_align_down((uintptr_t)batch + PIECES_BATCH_BYTES, EBB_PAGE);
    if (os.give_back((void *)from, to - from) != 0)
        return false;
    for (unsigned i = 1; i < PIECES_PER_BATCH; i++)
        if ((uintptr_t)&batch[i] < from || (uintptr_t)&batch[i + 1] > to)
            piece_put_word(&batch[i], PIECE_UNUSED);
    return true;
}

static void stop_going(const struct ebb_piece *batch) {
    struct ebb_piece **place = &going;
    while (*place != batch)
        place = &(*place)->next;
    *place = batch->next;
}

/* With the lock, which others have meanwhile. False: the system refused. */
static bool cool_next(void) {
    struct ebb_piece *batch = pop_shared();
    push(&going, batch);
    pthread_mutex_unlock(&sharing);
    bool is_cold = cool(batch);
    pthread_mutex_lock(&sharing);
    stop_going(batch);
    if (is_cold)
        push(&cold, batch);
    else
        share(batch, batch, 1);
    return is_cold;
}

/* No more than there were when it began: others may bring some all the time. */
bool piece_trim(uint64_t deadline_ns, size_t *most) {
    pthread_mutex_lock(&sharing);
    for (size_t left = shared_count;
         left && shared && *most >= PIECES_BATCH_BYTES &&
         !(deadline_ns && os.now_ns() >= deadline_ns) && cool_next();
         left--)
        *most -= PIECES_BATCH_BYTES;
    bool is_done = !shared && !going;
    pthread_mutex_unlock(&sharing);
    return is_done;
}

void piece_give_up(struct piece_store *store) {
    struct ebb_piece *first = store->first;
    if (first) {
        pthread_mutex_lock(&sharing);
        if (first != store->last)
            share(first->next, store->last, store->batches - 1);
        first->next = shared_firsts;
        shared_firsts = first;
        pthread_mutex_unlock(&sharing);
    }
    *store = (struct piece_store){0};
}

void piece_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&sharing);
}
