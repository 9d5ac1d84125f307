// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/own.h - objects change hands: promote, attach, detach, move, borrow, replace.
 *
 * One rule for all: the object goes with everything it consists of, each storage once, so that
 * what shared bytes still shares them; or nothing goes and an error says why. Where bytes must
 * move (to an ancestor of the host) the object's address changes, and the function returns the
 * new one; where they need not, the address stays.
 *
 * Whatever other systems ignore is an error here: an object that the region does not own, a
 * member of a composite, a target that is closed, sealed or unrelated. Going where it already is
 * changes nothing.
 *
 * A rewind ends what its region got since the mark, and views of it, which it looks for among the
 * cleanups of all regions below. For objects that are attached or lent this means:
 *
 *   - a rewind of the host: what was attached since the mark is the host's again, whoever had it
 *     then; what was lent since is its lender's again. A composite ends with its newest part;
 *   - a rewind of the owner: what was attached to it since the mark ends, however old it is; what
 *     was lent to it since goes back to its lender. If it was lent on, the last borrower keeps it,
 *     and later it goes back past this owner. A composite that the owner had before the mark stays
 *     with all its members: they lie in the host.
 *
 * Sources: TorchSharp's DisposeScope, DJL's NDManager; docs/lifetimes.md says where ebb differs.
 */
#ifndef EBB_OWN_H
#define EBB_OWN_H

#include <ebb/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How objects are promoted. Zero is the default. */
struct ebb_own_options {
    size_t size;  /* sizeof(struct ebb_own_options) */
    int mode;     /* enum ebb_promotion_mode; what lies in small blocks is always copied */
    bool compact; /* if only one view of a storage goes, and the storage is seen by others, too, or
                   * is to be copied anyway: copy only what the view sees; it becomes contiguous */
    uint16_t pin_percent; /* what auto may pin, in percent of the bytes that it relinks; 0:
                           * EBB_PIN_PERCENT */
};

/*
 * Promotes objects that `source` owns to its ancestor `target`. On success the entries of
 * `objects` are the new addresses; the old ones have ended. If `target` is `source` the objects are
 * only checked. All or nothing. `options` and `cost` may be NULL. Errors, all without effect:
 * EBB_E_STALE, EBB_E_NOT_ANCESTOR, EBB_E_SEALED, EBB_E_NOT_OWNED (also: a view of a storage in a
 * region between the two), EBB_E_MEMBER, EBB_E_BORROWED, EBB_E_DUPLICATE, EBB_E_FOREIGN,
 * EBB_E_INTERIOR, EBB_E_RELEASED, EBB_E_TYPE (a block that is no object; or an object in a field
 * for a block), EBB_E_BUSY (tensors that see imported bytes stay: ebb/exchange.h; or one is about
 * to end: ebb_object_end()), EBB_E_SIZE (a block is shorter than its count says), EBB_E_DEPTH
 * (fields that were written make it deeper), EBB_E_MEMORY, EBB_E_POOL_LIMIT, EBB_E_REGION_LIMIT,
 * EBB_E_ARGUMENT; into a shared pool: EBB_E_NO_SPACE, EBB_E_SHARED.
 */
EBB_API int ebb_objects_promote(ebb_region source, ebb_region target, void **objects, size_t count,
                                const struct ebb_own_options *options, struct ebb_promoted *cost);

/* The same, and closes `source`; on failure it stays open. `ended` may be NULL: how many other
 * objects of the source and the regions below it ended, those that were lent elsewhere included.
 * Also EBB_E_BUSY (a cleanup of the source or below it runs) and EBB_E_CLEANUP (all is done). */
EBB_API int ebb_objects_close_keeping(ebb_region source, ebb_region target, void **objects,
                                      size_t count, const struct ebb_own_options *options,
                                      struct ebb_promoted *cost, uint64_t *ended);

/*
 * Ends all objects that the region owns but those in `keep` (with their members). The region
 * stays open and goes on owning them. Errors, without effect: EBB_E_STALE, EBB_E_NOT_OWNED,
 * EBB_E_MEMBER, EBB_E_ARGUMENT, and those of ebb_object_end() for what is no live object.
 */
EBB_API int ebb_objects_end_but(ebb_region region, void *const *keep, size_t count);

/*
 * Gives an object that `from` owns to its parent. Returns where it is now, NULL on failure:
 * EBB_E_NOT_OWNED, EBB_E_NOT_ANCESTOR (`from` is a root), and those of ebb_objects_promote().
 */
EBB_API void *ebb_object_move_outer(ebb_region from, void *object);

/*
 * Gives an object to any region of any tree: up by promotion; down, to a region below its host,
 * without moving a byte (it then ends with that region); else by copy. Returns where it is now;
 * the old address has ended if it differs. NULL on failure: those of ebb_objects_promote(),
 * EBB_E_MEASURING and EBB_E_DEVICE (the region has no memory of the host).
 */
EBB_API void *ebb_object_move(void *object, ebb_region target);

/*
 * Gives an object to a region below its host, whoever owns it, without moving a byte: what a root
 * owns comes in from outside. It ends with that region. To its host: back. That it is there is
 * noted in a small block of its host. Errors: EBB_E_STALE, EBB_E_SEALED, EBB_E_NOT_ANCESTOR (its
 * host is not above the region), EBB_E_MEMBER, EBB_E_BORROWED, EBB_E_MEMORY, EBB_E_POOL_LIMIT and
 * EBB_E_REGION_LIMIT (of the host), and those of ebb_object_end() for what is no live object.
 */
EBB_API int ebb_object_attach(void *object, ebb_region region);

/* Gives the object to the root of its tree; it lives until that ends or it is ended. An object
 * that a root owns stays. Returns where it is now, NULL on failure: as ebb_object_move(). */
EBB_API void *ebb_object_detach(void *object);

/*
 * Lends the object to `region`, of any tree: that region owns it until it closes, or until
 * ebb_object_return(); then the region that had it has it again. If the lender ends first, so does
 * the object, and the borrower forgets it. Sealed regions may lend, borrow and take back. An
 * object that was lent may be lent on. Both regions belong to the calling thread. Each loan is
 * noted in a small block of the object's host. Errors: EBB_E_STALE, EBB_E_MEMBER, EBB_E_MEMORY,
 * EBB_E_POOL_LIMIT and EBB_E_REGION_LIMIT (of the object's host), EBB_E_MEASURING and EBB_E_DEVICE
 * (the region has no memory of the host), and those of ebb_object_end() for what is no live object.
 */
EBB_API int ebb_object_borrow(void *object, ebb_region region);

/* Gives it back to the region that had it before. Errors: EBB_E_NOT_OWNED (it is not lent), and
 * those of ebb_object_end() for what is no live object. */
EBB_API int ebb_object_return(void *object);

/*
 * Puts `fresh` into field number `field` (EBB_FIELD_OBJECT) of the composite `whole`: the member
 * that was there ends, `fresh` goes to the owner of the composite, by relinking where it can, and
 * becomes its member. How parameters of a model are replaced. `fresh` may be NULL. Errors,
 * without effect: as ebb_objects_promote(), EBB_E_TYPE, EBB_E_ARGUMENT (no such field), EBB_E_CYCLE
 * (`fresh` is the composite, or what it is a member of), EBB_E_DEPTH, and, if the type has a check,
 * those of that, those of ebb_object_compose() for the blocks of other fields, and EBB_E_NOT_OWNED
 * (another field refers to what is no member).
 */
EBB_API int ebb_object_replace(void *whole, size_t field, void *fresh);

#ifdef __cplusplus
}
#endif

#endif
