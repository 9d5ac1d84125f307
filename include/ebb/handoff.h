// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/handoff.h - a region goes to another thread, or its contents to another process.
 *
 * Between threads it is one call, ebb_region_hand_over(). Between processes the region lies in a
 * pool of kind EBB_KIND_SHARED, which both have mapped:
 *
 *     worker                                                  trainer
 *     ebb_region_open(.pool = shared)     FREE -> WRITING
 *     ... allocates the batch in it ...
 *     ebb_region_send(region) --------- 32 bytes: parcel ---> ebb_parcel_open(pool, parcel)
 *                                         WRITING -> SENT        SENT -> HELD: a lease
 *                                                             tensors in place hold the lease
 *                                         HELD -> FREE        the last of them is dropped
 *
 * Each root region of a shared pool, with its children, has a slot of its own: a sparse stretch of
 * a memory file that has no name and ends with its last user. Pages of a slot stay when it goes
 * round, so a steady loop makes no system call, causes no page fault and holds no descriptor per
 * batch. What a region needs beyond that is allocated in the file before it is touched: a system
 * that refuses pages is EBB_E_NO_SPACE with numbers, and no signal. One that kills instead, as
 * Linux does at the limit of a memory cgroup, kills (SIGKILL) also there: docs/handoff.md says what
 * keeps a pool below it.
 *
 * Opening a root on a shared pool also fails with EBB_E_SLOTS (all slots are taken, and by whom),
 * after `wait_ns` if that is set; a region that needs more than `slot_bytes` gets EBB_E_POOL_LIMIT.
 * Waiting may deadlock a loader that keeps order; more slots cost addresses only. A process that
 * opens regions needs addresses of the range, and memory that describes them, for each slot in
 * which it does: EBB_E_MEMORY if there is none. To open parcels any addresses do, without memory.
 *
 * A process that dies loses what it wrote and held: its slots are free once somebody needs one, or
 * asks (ebb_pool_reclaim()). The kernel keeps the sign of life: no process looks dead that lives
 * and has kept its descriptors. What the dead had sent is kept as long as other slots are free, and
 * then as long as whoever needs one may wait, since the message may still be under way.
 *
 * All processes can write to all of the file. A broken or hostile one can make contents wrong and
 * slots unusable; it cannot make ebb in another process follow, call or trust what it wrote,
 * neither where parcels are opened nor where a region is written: blocks and elements lie in the
 * slot, but heads of objects and everything else that ebb relies on lie in memory of the process
 * itself. Cleanups must not lie in a slot (EBB_E_KIND). What a program believes of contents is its
 * own affair: see docs/handoff.md.
 *
 * A forked child has its parent's pools and gets a place of its own in them when it first needs
 * one. Leases and regions that were open at the fork are the parent's: what the child drops or
 * closes of them changes nothing for others (cleanups of such regions run in the parent only), and
 * it may read them only as long as the parent holds them. It must not allocate or change anything
 * in them: that is the parent's memory, not a copy. The same holds for any child with memory of its
 * own, even if the C library's fork() has not made it (see docs/handoff.md).
 */
#ifndef EBB_HANDOFF_H
#define EBB_HANDOFF_H

#include <ebb/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/*
 * A root region becomes another thread's: the result is its handle from now on, `region` is stale,
 * and so are copies of it. Children come along under their handles. A child is cut off from its
 * parent first, and budgets of the ancestors count it no longer; its objects are outside of scopes
 * from then on, and counted anew (ebb_region_read_objects()). The caller passes the handle on by
 * any means that orders memory (a queue with a lock). Nothing is copied; time is linear in the
 * regions that go and in their cleanups (an import, a loan and a view of another region's storage
 * have one each). On failure the handle is not open, and `region` as it was:
 * EBB_E_STALE, EBB_E_BUSY (region of a step; a cleanup runs; blocks in its pages were relinked to a
 * region that stays), EBB_E_BORROWED (objects lent or attached, or views of storages, between it
 * and a region that stays), EBB_E_KIND (a child in a shared pool: it has no slot of its own).
 */
EBB_API EBB_NODISCARD ebb_region ebb_region_hand_over(ebb_region region);

/* What crosses: plain bytes, to copy, pickle and send by any means. Good for one opening. */
struct ebb_parcel {
    uint64_t pool;       /* which memory file: a random number */
    uint32_t slot;
    uint32_t generation;
    uint64_t root;       /* where in the slot the root block is; UINT64_MAX: there is none */
    uint64_t bytes;      /* of the root block as requested */
};

/*
 * Closes a root region of a shared pool, and its children, and leaves their bytes as they are, for
 * whoever opens the parcel. `root`: a live block of the region or of a child, where the receiver
 * starts to read; NULL: none. What cleanups release, rewind or reset meanwhile stays as it is, too,
 * and what they release or rewind counts until the end. What they allocate lies where nothing was.
 *
 * Closed and sent: 0, or EBB_E_CLEANUP if a cleanup failed. Closed and not sent: EBB_E_BUSY if a
 * cleanup exported from it, EBB_E_STALE if its slot was taken away in the middle of the call. Any
 * other error leaves it open: EBB_E_STALE (also: opened before a fork, or its slot was taken away
 * before), EBB_E_KIND (not in a shared pool), EBB_E_ARGUMENT (not a root; parcel NULL), EBB_E_BUSY
 * (exports are out; a cleanup runs), EBB_E_FOREIGN and others of ebb_region_release() for `root`.
 */
EBB_API int ebb_region_send(ebb_region region, const void *root, struct ebb_parcel *parcel);

/*
 * Where an address is in the slot of its region, for descriptions that cross: 0 is the slot's
 * start. SIZE_MAX with EBB_E_KIND (region not in a shared pool), EBB_E_FOREIGN (address not in its
 * slot), EBB_E_STALE.
 */
EBB_API size_t ebb_region_offset(ebb_region region, const void *address);

/* What was sent and is held here. Ends when the last reference is dropped. */
typedef struct ebb_lease ebb_lease;

/*
 * Opens what was sent; one reference is the caller's. Any thread. NULL on failure, which leaves the
 * parcel as good as it was: EBB_E_PARCEL (of another pool, no such slot or generation, the root not
 * in what was sent), EBB_E_STALE (opened before, or reclaimed since), EBB_E_NO_SPACE, EBB_E_SHARED,
 * EBB_E_MEMORY (no addresses for a slot, anywhere; more than may be locked, where the pool is
 * pinned), EBB_E_DEVICE (the driver does not pin it), EBB_E_KIND, EBB_E_ARGUMENT.
 */
EBB_API EBB_NODISCARD ebb_lease *ebb_parcel_open(ebb_pool *pool, const struct ebb_parcel *parcel);

/* Gives back what nobody opened, without opening it: when a message is thrown away. What is neither
 * opened nor given back keeps its slot as long as its sender lives. Errors as above. */
EBB_API int ebb_parcel_discard(ebb_pool *pool, const struct ebb_parcel *parcel);

/*
 * The lease that an address lies in, with one more reference, which is the caller's. The caller
 * must have something that holds the lease, such as a tensor. Any thread. NULL with EBB_E_FOREIGN:
 * the address is in no slot that this process holds a lease of.
 */
EBB_API EBB_NODISCARD ebb_lease *ebb_lease_of(const void *address);

/* The root block, and its bytes if `bytes` is not NULL; NULL and 0 if there is none. If `lease` is
 * NULL: EBB_E_ARGUMENT, also from the next two functions. Any thread. */
EBB_API void *ebb_lease_root(const ebb_lease *lease, size_t *bytes);

/* [offset, offset + bytes) of the slot; NULL with EBB_E_PARCEL if that is not in what was sent. */
EBB_API void *ebb_lease_at(const ebb_lease *lease, size_t offset, size_t bytes);

/* How much of the slot was sent, whole pages from its start: all that ebb_lease_at() gives. */
EBB_API size_t ebb_lease_bytes(const ebb_lease *lease);

/*
 * One more reference. The caller has one. NULL: nothing. Any thread, no lock. Up to 2^29 are
 * counted, those of ebb_lease_of(), of exports and of objects among them. If there are so many at
 * once the lease never ends, whoever drops them, and its slot stays held.
 */
EBB_API void ebb_lease_hold(ebb_lease *lease);

/*
 * One reference less; the last one frees the slot. Any thread, no lock, at most one system call;
 * also at the end of the process. NULL: nothing. In a forked child a lease of its parent is only
 * counted.
 */
EBB_API void ebb_lease_drop(ebb_lease *lease);

/*
 * A tensor of bytes in the lease, as a DLPack struct that holds the lease. What it describes is
 * checked like an import, and must lie in what was sent: `offset` from the slot's start, strides in
 * elements, NULL: row-major. Shape and strides are read once, so they may lie in the slot. Its
 * deleter: C, any thread, once; a forked child may call it. Any thread. NULL on failure:
 * EBB_E_PARCEL (not in what was sent), EBB_E_SHAPE, EBB_E_SIZE, EBB_E_DTYPE, EBB_E_EXCHANGE (type
 * that some consumers misread, negative strides, `offset` no multiple of an element's bytes, of a
 * complex one's part), EBB_E_MEMORY, EBB_E_ARGUMENT (no lease). Some consumers want multiples of
 * EBB_STORAGE_ALIGN, which is up to the sender here.
 */
EBB_API EBB_NODISCARD struct DLManagedTensor *
ebb_lease_export(ebb_lease *lease, size_t offset, struct ebb_dtype dtype, int ndim,
                 const int64_t *shape, const int64_t *strides);

/* The same as a versioned struct (DLPack 1.0). */
EBB_API EBB_NODISCARD struct DLManagedTensorVersioned *
ebb_lease_export_versioned(ebb_lease *lease, size_t offset, struct ebb_dtype dtype, int ndim,
                           const int64_t *shape, const int64_t *strides);

/*
 * Sends an object with everything that it consists of, such as a tensor, a packed sequence, a
 * sample, a batch, or one of a registered type. Bytes of tensors that lie in the slot stay where
 * they are, others are copied there; storages that tensors share are shared again. Types cross by
 * name. A type must have the same fields in both processes, at the same places, and in neither may
 * another one have that name and those fields. Of a struct its fields and plain values cross; other
 * pointers in it mean nothing elsewhere. The object may be of any region of this thread, or a
 * member of another object: then a copy goes, and it stays what it was. The region is closed as by
 * ebb_region_send(). Errors: as there, EBB_E_TYPE (a type with pointers into itself, or two of one
 * name and the same fields), those of ebb_object_as() for the object, and of ebb_region_alloc().
 */
EBB_API int ebb_region_send_object(ebb_region region, void *object, struct ebb_parcel *parcel);

/*
 * The object that was sent, as an object in `into`, a region of ordinary memory: tensors see their
 * bytes in the slot, and each storage holds the lease until it ends. Integers that say where others
 * are (batch sizes, indices, offsets) are copied. Everything is checked, whatever the sender wrote.
 * May be called again, for another copy. One thread at a time for `into`. NULL on failure, without
 * effect: EBB_E_PARCEL (no object was sent, or its description is damaged), EBB_E_TYPE (not
 * registered here, or another layout, or two of it by that name, or what the type's check says),
 * those of ebb_lease_export(), ebb_object_compose() and ebb_region_alloc().
 */
EBB_API EBB_NODISCARD void *ebb_lease_object(ebb_lease *lease, ebb_region into);

/*
 * Guards the lease while a device reads it: whoever drops the last reference, the slot is not free
 * before `stream` of that device has done all that it was asked so far. Call it after each copy
 * from the lease that does not wait. `stream` is a CUstream or cudaStream_t; NULL: the default
 * stream; the per-thread one is the calling thread's. More than four streams at once: EBB_E_BUSY. A
 * stream with the handle of one that was destroyed also waits for what that one was asked. A device
 * that fails keeps the slot. Any thread that has a reference.
 * Errors: EBB_E_DEVICE (see ebb/device.h), EBB_E_STALE (a forked child), EBB_E_ARGUMENT.
 */
EBB_API int ebb_lease_guard(ebb_lease *lease, int device, void *stream);

/*
 * Asked when the last reference to a lease has gone. True: the slot may be used again. False: not
 * yet, a device still copies from it; asked again when a region or a parcel of the pool is opened
 * or a lease of it guarded, and by ebb_pool_reclaim() and ebb_pool_trim(), all in this process: one
 * that gets no parcels for want of slots must call one of these, or the slot stays taken. Called by
 * any thread, also by one that has the pool locked: it must not call into the pool, nor fork, and
 * may use ebb_lease_at() and its like. No thread is cancelled in it.
 */
typedef bool ebb_release_check(void *context, ebb_lease *lease);

/* Sets it for this process; NULL: none. Errors: EBB_E_KIND, EBB_E_BUSY (leases are out),
 * EBB_E_MEMORY. */
EBB_API int ebb_pool_set_release_check(ebb_pool *pool, ebb_release_check *check, void *context);

#ifdef __cplusplus
}
#endif

#endif
