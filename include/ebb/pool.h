// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/pool.h - pools: where regions get their pages from.
 *
 * A pool hands runs of pages to regions and takes them back when regions close. Pages that came
 * back stay mapped and hot for the next step (`cached`); those under exported tensors that outlived
 * their region are `held` until they are given back. These numbers describe it, always:
 *
 *     reserved = owned by open regions + cached + held     in bytes, whole pages
 *     owned    = used by live blocks + waste               per region, summed
 *
 * Pages come from one range of addresses that is reserved once per process: whether a pointer is
 * ebb's is one comparison.
 *
 * A pool gives memory back in two ways. ebb_pool_trim() does it at once. And at every step
 * boundary (the close of a region that held pages and is a root or the child of one) the pool
 * looks at the peaks of recent steps: what they did not need, less a margin, goes back to the
 * system. A step that was far larger than those before it pays for that at its own close, so no
 * later step is slowed down by it.
 *
 * All functions here: any thread.
 */
#ifndef EBB_POOL_H
#define EBB_POOL_H

#include <ebb/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_pool ebb_pool;

/* Kinds of memory: flags. HUGE and PINNED go together, and so do SHARED and PINNED. */
enum ebb_kind {
    EBB_KIND_HOST = 0,   /* ordinary pages of this process */
    EBB_KIND_HUGE = 1,   /* the system is asked for huge pages; it may have none */
    EBB_KIND_PINNED = 2, /* stays where it is, so that devices can copy from it */
    EBB_KIND_SHARED = 4, /* seen by several processes, see ebb/handoff.h */
    EBB_KIND_DEVICE = 8  /* memory of a device: the processor cannot touch it */
};

struct ebb_pool_options {
    size_t size;                 /* sizeof(struct ebb_pool_options); set by EBB_POOL_OPTIONS */
    const char *name;            /* copied, at most 31 bytes; NULL: "pool" */
    size_t limit_used_bytes;     /* most bytes in live blocks, as rounded; 0: no limit */
    size_t limit_reserved_bytes; /* most bytes of pages held, owned and cached; 0: no limit */
    unsigned keep_margin_percent; /* of what steps need, kept above the recent peak when shrinking;
                                   * 0: 25, or 100 if the kind is pinned or device, whose slabs
                                   * are dear */
    bool keep_all;               /* true: never shrink by itself, only by ebb_pool_trim() */
    unsigned kind;               /* EBB_KIND_ flags; 0: host. If shared, the limits above apply to
                                  * each root region with its children, for what lies in its slot.
                                  * The rest lies in the default pool: heads of objects, and
                                  * elements moved or promoted there from ordinary memory */
    int device;                  /* device, pinned: its number */
    size_t slot_bytes;           /* shared: most bytes of a region, up to the next multiple of
                                  * 2 MiB; 0: 1 GiB, or less: all slots have a quarter of the
                                  * addresses that ebb has */
    unsigned slots;              /* shared: most regions at once, sent ones too; 0: 256, or as many
                                  * of slot_bytes as half of the addresses hold, or of 2 MiB as a
                                  * quarter does. Each one that a process opened a region in counts
                                  * as one of its 1024 pools */
    uint64_t wait_ns;            /* shared: how long opening waits for a slot before it takes those
                                  * that dead processes have sent; 0: not at all */
    bool (*go_on)(void *context); /* shared: called before waiting for a slot, then at least every
                                   * tenth of a second, and after each signal. false: EBB_E_SLOTS
                                   * at once, without any wait if it is the first answer.
                                   * Several threads may be in it; it must not end the pool.
                                   * No thread is cancelled in it.
                                   * NULL: only time ends the wait */
    void *go_on_context;
};

/* Options with every field at its default: EBB_POOL_OPTIONS(.name = "loader"). C, not C++. */
#define EBB_POOL_OPTIONS(...) \
    (&(struct ebb_pool_options){.size = sizeof(struct ebb_pool_options), __VA_ARGS__})

/*
 * The pool that regions use when they name none. Made on first use, never destroyed, no limits.
 * NULL, with EBB_E_MEMORY, only if it cannot be made: the process cannot reserve any address space,
 * or has 1024 pools before the first use, or the system's pages are not of 4 KiB, which no kind of
 * pool can be made with. (Measuring regions have one of these for themselves.)
 */
EBB_API ebb_pool *ebb_pool_default(void);

/*
 * A new pool. NULL options: all defaults. Owned by the caller until ebb_pool_destroy().
 * Errors: EBB_E_ARGUMENT (size field; a device below 0; slots, a wait, go_on or a device, which
 * this kind of pool has no use for), EBB_E_KIND (flags that do not go together, or a kind that this
 * build or machine has not), EBB_E_MEMORY (also: 1024 pools exist), EBB_E_DEVICE; of shared ones
 * EBB_E_SIZE (above 4096 slots, or all of them longer than half of the addresses that ebb has,
 * which are a TiB, or what the process may reserve), EBB_E_NO_SPACE. A shared pool is a sparse file
 * as long as all of its slots: RLIMIT_FSIZE must allow that (else EBB_E_MEMORY), and /proc must be
 * there, since each process opens the file again by /proc/thread-self/fd: who makes the pool here,
 * others when they first open a region or a parcel. Up to 1024 processes may use it at once; to the
 * next one EBB_E_MEMORY says so then.
 */
EBB_API EBB_NODISCARD ebb_pool *ebb_pool_create(const struct ebb_pool_options *options);

/*
 * Ends the pool; all its pages go back to the system. Errors: EBB_E_BUSY while a region of the
 * pool is open (the text names how many), pages are held for exports (how many bytes) or leases are
 * out; EBB_E_ARGUMENT for NULL or the default pool; EBB_E_DEVICE: it did not take all back. No
 * other thread may be in a call about the pool, a region or a step in it.
 */
EBB_API int ebb_pool_destroy(ebb_pool *pool);

/*
 * The shared pool behind a descriptor that is another process's ebb_pool_descriptor(), passed on by
 * any means; `fd` stays the caller's. Of the options, `slots` and `slot_bytes` must be 0: the pool
 * has them. NULL: all defaults. Errors: EBB_E_SHARED (no memory file, not sealed, not open for
 * writing, other magic, layout or size than it says: nothing else was touched), EBB_E_ARGUMENT,
 * EBB_E_KIND, EBB_E_NO_SPACE, EBB_E_MEMORY.
 */
EBB_API EBB_NODISCARD ebb_pool *ebb_pool_attach(int fd, const struct ebb_pool_options *options);

/*
 * Descriptor of a shared pool's memory, to pass on; closed on exec. It stays the pool's. A child of
 * fork() needs none: it has the pool. -1 with EBB_E_KIND if the pool is not shared, EBB_E_SHARED if
 * the program closed it: the pool maps and grows no more slots then, see docs/handoff.md.
 */
EBB_API int ebb_pool_descriptor(ebb_pool *pool);

/*
 * A number that differs from that of every ancestor process which has asked for it: what a program
 * noted together with another number is such an ancestor's. Processes that do not descend from each
 * other may have the same number. Children not made by fork() are told apart once there is a shared
 * pool, if the system allows it. Any thread; a system call at most the first time.
 */
EBB_API unsigned ebb_forks(void);

/*
 * Frees slots of a shared pool whose processes are gone: those they wrote to and held, and with
 * `sent_too` those they had sent and nobody opened (a parcel that comes later is EBB_E_STALE). That
 * also happens by itself when a slot is needed, to those sent once `wait_ns` has passed. Returns
 * how many; 0 with EBB_E_KIND for others, and without a look with EBB_E_MEMORY and EBB_E_SHARED
 * (this process has no place at the pool yet and gets none; or its place is another's, since the
 * program closed the descriptors). Before that, but without them, nobody is found to be gone.
 */
EBB_API size_t ebb_pool_reclaim(ebb_pool *pool, bool sent_too);

/*
 * Gives cached pages back to the system until at most `target_bytes` are cached, those that were
 * used longest ago (the highest addresses) first. Returns the bytes that were resident and no
 * longer are, as the kernel reports it; 0 if nothing was left to give. Pages that open regions
 * own are never touched. Time is linear in the bytes given back. Pools of kind pinned and device
 * give whole slabs: those that are free all over, and no more than are above the target. Shared
 * ones give the pages of free slots, whichever process had them. 0 with EBB_E_ARGUMENT for NULL;
 * of shared ones as ebb_pool_reclaim(), and EBB_E_SHARED once the program closed the descriptor.
 */
EBB_API size_t ebb_pool_trim(ebb_pool *pool, size_t target_bytes);

/*
 * The same, but stops once `budget_ns` nanoseconds have passed (checked every MiB; in pools that
 * give whole slabs or slots, after each); 0: no bound.
 * *remaining_bytes, if not NULL, receives the cached bytes still above the target that can be
 * given: of pools that give whole slabs, those in slabs that are not longer than what is above it;
 * of shared ones, those that this process can reach and that the system did not refuse just now; 0
 * of one that fails.
 */
EBB_API size_t ebb_pool_trim_within(ebb_pool *pool, size_t target_bytes, uint64_t budget_ns,
                                    size_t *remaining_bytes);

/*
 * Changes the limit on reserved bytes; 0: none. A limit below what is held now refuses only new
 * pages. Of a shared pool: for root regions that are opened from now on. (The limit on used bytes
 * is fixed when the pool is created, since it shuts the inline path of its regions.) Errors:
 * EBB_E_ARGUMENT.
 */
EBB_API int ebb_pool_set_reserved_limit(ebb_pool *pool, size_t bytes);

/* One quantity over time: now, at its highest, and summed over all increases. */
struct ebb_meter {
    uint64_t current;
    uint64_t peak;
    uint64_t total;
};

/*
 * Counters of a pool. Bytes unless the name says otherwise. Sums over regions are made when they
 * are read, so the regions must be quiescent: no other thread may be allocating in the pool.
 * Pages (reserved, owned, cached) are exact at any time. The peaks of blocks, requested and used
 * never exceed what there was at once: each is the most that one region ever had, that a region had
 * at its close together with those above it, or that all have now. If several regions were at their
 * peaks at once, the pool's true peak is higher; and a sum that was only seen by a reading is not
 * remembered, so a later one may say less. The peaks of single regions are exact.
 *
 * "Used", here and for a region, means live blocks, as rounded, and padding in front of small
 * blocks aligned to more than 16 bytes. When such a block is gone its padding still counts until
 * its place is used again, or that of all that lay around it: so something may be used with no
 * block left, and a call that fails after it has looked for room may leave less used. Where a limit
 * on live bytes applies, or in a region with `sites`, padding is waste from the start.
 */
struct ebb_pool_stats {
    size_t size;                 /* sizeof(struct ebb_pool_stats), set by the caller */
    struct ebb_meter blocks;     /* count of blocks */
    struct ebb_meter requested;  /* as the callers asked */
    struct ebb_meter used;       /* as rounded and placed, see above */
    struct ebb_meter reserved;   /* pages: owned + cached + held */
    uint64_t owned;              /* pages held by open regions */
    uint64_t cached;             /* pages of nobody, hot */
    uint64_t waste;              /* owned - used: gaps, padding, unused tails, pinned bytes */
    uint64_t pinned;             /* part of waste: relinked pages around live survivors */
    uint64_t recent_peak;        /* moving peak of owned bytes that the pool keeps for */
    uint64_t given_back;         /* bytes given back to the system so far */
    uint64_t open_regions;       /* count */
    uint64_t opened_regions;     /* count, since the pool's birth */
    uint64_t held;               /* pages under exports that outlived their region */
};

/* Fills *stats (its `size` field must be set). Of a shared pool all is summed over the slots that
 * this process wrote to, peaks too, which need not have been at the same time; what it only opened
 * as parcels counts nowhere. Errors: EBB_E_ARGUMENT. Regions quiescent. */
EBB_API int ebb_pool_read_stats(ebb_pool *pool, struct ebb_pool_stats *stats);

/* The same figures, peaks too, summed over all pools of the process. */
EBB_API int ebb_process_read_stats(struct ebb_pool_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
