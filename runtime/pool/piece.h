// SPDX-License-Identifier: Apache-2.0
/*
 * piece.h - pieces: the out-of-line description of stretches of addresses, and their store.
 *
 * The page heap of a pool and the large lane of a region both cut stretches of addresses into
 * pieces that are linked in address order. A free piece is also in a bin of its owner's fit.
 *
 *     slab    | run of A (run)   | hot | run of B (run) | cold ...        page heap
 *     run     | block | free | window | block | top          |           large lane of A
 *
 * Invariant: neighbours tile their slab or run without gap or overlap:
 *     piece->addr + piece->bytes == piece->after->addr
 * No two neighbours are both free in the same way (they would have been merged). In a run the
 * last neighbour is a PIECE_END of no bytes, which moves when the run grows.
 *
 * Pieces live in one array inside the range, so 32 bits name one (see range.h), and are never
 * unmapped: a stale index reads a piece that does not match, never freed memory.
 */
#ifndef EBB_POOL_PIECE_H
#define EBB_POOL_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum piece_state {
    PIECE_UNUSED = 0, /* in a store */
    /* of the page heap */
    PIECE_COLD, /* pages without memory, free */
    PIECE_HOT,  /* pages with memory, free */
    PIECE_RUN,  /* pages that a region owns */
    PIECE_KEPT, /* pages with memory, free for who used them last */
    PIECE_HELD, /* pages that the pool keeps for exports; bytes that outlive their region */
    /* of a large lane */
    PIECE_FREE,   /* in a bin */
    PIECE_TOP,    /* free end of the newest run, in no bin */
    PIECE_LOOSE,  /* released last, not merged with its neighbours yet, in no bin */
    PIECE_BLOCK,  /* a large block */
    PIECE_WINDOW, /* a window of the small lane */
    PIECE_ARENA,  /* places of a plan */
    PIECE_END,    /* no bytes: behind the last piece of a run */
    PIECE_MARK    /* no addresses: a mark in the list of blocks */
};

struct ebb_piece {
    uintptr_t addr;
    size_t bytes;
    union {
        struct {
            uint64_t owner : 48; /* epoch and slot of the owning region, see PIECE_OWNER */
            uint8_t state;       /* enum piece_state */
            uint8_t flag : 1;    /* windows: among the holes; runs: relinked; blocks: listed;
                                    free: seen by keeper.c, and not used since; marks: the oldest
                                    that points into its window */
            uint8_t claimed : 1; /* blocks: needed by an object that begins elsewhere; of others
                                    it says nothing */
            uint8_t pins : 6;    /* 1: windows: a mark points into it; blocks: held; runs: a plan's
                                    arena fills it; else 0 */
        };
        uint32_t owner_low; /* has the slot */
        uint64_t word;
    };
    union {
        struct {
            size_t requested;
            struct ebb_piece *run;   /* the relinked run it sits in; NULL in the owner's lane */
            struct ebb_piece *spare; /* departing: entry to go back to if it is released first */
        } block;
        struct {
            uint32_t hole_next, hole_prev; /* names of windows with room between live blocks */
            uint64_t live;                 /* live blocks << 32 | their bytes, and padding */
            uint32_t map;                  /* name of its start map */
            uint16_t act_blocks;           /* a release that leaves so few calls for action */
            uint16_t scanned;              /* in holes: granules looked at in this pass */
        } window;
        struct {
            struct ebb_piece *first; /* first piece inside; NULL if relinked */
            struct ebb_piece *end;   /* the PIECE_END behind the last one; NULL if relinked */
        } run;
        struct {
            struct ebb_piece *first; /* as run.first */
            uint64_t memory;         /* what the device gave for it; 0: nothing */
            uint64_t forks;          /* pinned: how many led to the process that did that */
        } slab;
        struct {
            struct ebb_piece *run; /* that it ends */
        } end;
        struct {
            struct ebb_piece *none; /* run.first of a relinked run: NULL */
            size_t used;            /* bytes of survivors alive in it */
            uint32_t live_blocks;   /* survivors alive in it, and holds */
            uint32_t holds;         /* of bytes in it that are needed outside */
        } relinked;
        struct {
            uint64_t ticket;
        } kept;
        struct {
            uint32_t bin; /* that it is in */
        } free;
        struct {
            uint64_t serial;
            struct ebb_piece *window;
            uintptr_t cursor;
        } mark;
    };
    struct ebb_piece *before, *after; /* neighbours by address; NULL at the ends. Of survivors in a
                                         relinked run: those that live */
    struct ebb_piece *next, *prev;    /* bin, or the owner's list of blocks, windows or runs */
};

_Static_assert(offsetof(struct ebb_piece, state) == offsetof(struct ebb_piece, word) + 6,
               "bits of a word are numbered from its first byte");
_Static_assert(offsetof(struct ebb_piece, owner_low) == offsetof(struct ebb_piece, word) &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "a word begins with the low bits of its owner");

/*
 * Other threads may read these fields of a run that a hint has led them to (range_run_at()).
 * relaxed: whoever changes a run takes care of the order in which they are seen.
 */
static inline void piece_put_addr(struct ebb_piece *piece, uintptr_t addr) {
    __atomic_store_n(&piece->addr, addr, __ATOMIC_RELAXED);
}

static inline void piece_put_bytes(struct ebb_piece *piece, size_t bytes) {
    __atomic_store_n(&piece->bytes, bytes, __ATOMIC_RELAXED);
}

static inline void piece_put_state(struct ebb_piece *piece, enum piece_state state) {
    __atomic_store_n(&piece->state, (uint8_t)state, __ATOMIC_RELAXED);
}

static inline void piece_put_word(struct ebb_piece *piece, uint64_t word) {
    __atomic_store_n(&piece->word, word, __ATOMIC_RELAXED);
}

/*
 * Who a piece belongs to: the slot of the region, and an epoch that grows with every open and
 * reset in that slot. A piece that an earlier region left behind never matches.
 */
#define PIECE_SLOT_BITS 21
#define PIECE_EPOCH_BITS 27
#define PIECE_OWNER(slot, epoch) ((uint64_t)(epoch) << PIECE_SLOT_BITS | (uint64_t)(slot))

static inline void piece_set_owner(struct ebb_piece *piece, uint64_t owner) {
    piece->owner = owner & (((uint64_t)1 << (PIECE_SLOT_BITS + PIECE_EPOCH_BITS)) - 1);
}

/* The same for a run, which other threads may be reading. */
static inline void piece_put_owner(struct ebb_piece *run, uint64_t owner) {
    struct ebb_piece said = {.word = run->word};
    piece_set_owner(&said, owner);
    piece_put_word(run, said.word);
}

static inline size_t piece_slot(const struct ebb_piece *piece) {
    /* relaxed: other threads may ask this of a run */
    uint32_t low = __atomic_load_n(&piece->owner_low, __ATOMIC_RELAXED);
    return low & (((uint32_t)1 << PIECE_SLOT_BITS) - 1);
}

/* Owner and state as one number, so that one comparison checks both. */
static inline uint64_t piece_key(const struct ebb_piece *piece) {
    return (piece->word & UINT64_MAX >> 8) << 8; /* without the bits on top */
}

#define PIECE_KEY_NONE UINT64_MAX /* the key of no piece */

static inline uint64_t piece_key_of(uint64_t owner, enum piece_state state) {
    struct ebb_piece piece = {.word = 0};
    piece_set_owner(&piece, owner);
    piece.state = (uint8_t)state;
    return piece_key(&piece);
}

#ifndef PIECES_BATCH_BYTES
#define PIECES_BATCH_BYTES ((size_t)16 << 10)
#endif
#define PIECES_PER_BATCH ((unsigned)(PIECES_BATCH_BYTES / sizeof(struct ebb_piece)))
#define PIECES_FIRST_BYTES ((size_t)1024) /* part of a batch; other stores have the rest */
#define PIECES_IN_FIRST ((unsigned)(PIECES_FIRST_BYTES / sizeof(struct ebb_piece)))

/*
 * Where one owner gets its pieces from: batches of its own, kept across uses. One thread. The
 * first entry of a batch links the batches of a store. The first batch is small, a quarter of a
 * page: most owners need only a few pieces.
 */
struct piece_store {
    struct ebb_piece *free;    /* given back, linked by next */
    struct ebb_piece *first;   /* oldest batch */
    struct ebb_piece *last;    /* newest batch */
    struct ebb_piece *kept;    /* last of the batches that piece_forget_all() leaves */
    struct ebb_piece *current; /* batch that is cut next */
    uint32_t cut;              /* entries taken from it */
    uint32_t batches;
    uint32_t ready; /* calls of piece_take() that need no new batch */
};

/* A piece that was never given back; NULL as for piece_take(). */
struct ebb_piece *piece_take_fresh(struct piece_store *store);

/* A piece with undefined contents, or NULL when the array is used up or a test refuses. */
static inline struct ebb_piece *piece_take(struct piece_store *store) {
    struct ebb_piece *piece = store->free;
    if (!piece)
        return piece_take_fresh(store);
    store->ready--;
    store->free = piece->next;
    return piece;
}

bool piece_make_ready(struct piece_store *store, unsigned count);

/* Makes sure that the next `count` calls of piece_take() cannot fail. */
static inline bool piece_prepare(struct piece_store *store, unsigned count) {
    return store->ready >= count || piece_make_ready(store, count);
}

static inline void piece_give(struct piece_store *store, struct ebb_piece *piece) {
    piece_put_state(piece, PIECE_UNUSED);
    piece->next = store->free;
    store->free = piece;
    store->ready++;
}

/* Makes every entry that the store has, or had and forgot, unused, so that none can be mistaken for
 * one of a later epoch. */
void piece_wipe(struct piece_store *store);

/* Forgets every piece; a few batches stay for next time, the rest goes to other stores. */
void piece_forget_all(struct piece_store *store);

/* Forgets every piece and gives all batches to other stores. */
void piece_give_up(struct piece_store *store);

/* Gives the memory of batches that no store has back to the system, until the clock passes
 * `deadline_ns` (0: none), and at most *most bytes, which are subtracted from it. True: no such
 * batch is left. Any thread. */
bool piece_trim(uint64_t deadline_ns, size_t *most);

/* Takes the lock of batches without an owner before a fork, and gives it back after. */
void piece_fork(bool before);

/* List with two links, newest first; `head` is the address of the first's pointer. */
static inline void piece_push(struct ebb_piece **head, struct ebb_piece *piece) {
    piece->prev = NULL;
    piece->next = *head;
    if (*head)
        (*head)->prev = piece;
    *head = piece;
}

static inline void piece_unlink(struct ebb_piece **head, struct ebb_piece *piece) {
    struct ebb_piece *next = piece->next, *prev = piece->prev;
    if (prev)
        prev->next = next;
    else
        *head = next;
    if (next)
        next->prev = prev;
}

static inline uintptr_t piece_end(const struct ebb_piece *piece) {
    return piece->addr + piece->bytes;
}

/* True if there is such a piece, and that is its state. */
static inline bool piece_is(const struct ebb_piece *piece, enum piece_state state) {
    return piece && piece->state == state;
}

/* True if the address lies in the piece. */
static inline bool piece_covers(const struct ebb_piece *piece, uintptr_t addr) {
    return addr - piece->addr < piece->bytes;
}

/* Cuts `piece` at `addr`: `rest`, already taken from a store, becomes [addr, end), of the same
 * owner and state. */
static inline void piece_split(struct ebb_piece *piece, struct ebb_piece *rest, uintptr_t addr) {
    piece_put_addr(rest, addr);
    piece_put_bytes(rest, piece_end(piece) - addr);
    rest->before = piece;
    rest->after = piece->after;
    if (rest->after)
        rest->after->before = rest;
    piece_put_word(rest, piece_key(piece) >> 8);
    piece->after = rest;
    piece_put_bytes(piece, addr - piece->addr);
}

/* Joins the neighbour behind into `piece` and gives its entry back. */
static inline void piece_absorb_after(struct ebb_piece *piece, struct piece_store *store) {
    struct ebb_piece *gone = piece->after;
    piece_put_bytes(piece, piece->bytes + gone->bytes);
    piece->after = gone->after;
    if (piece->after)
        piece->after->before = piece;
    piece_give(store, gone);
}

#endif
