// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/object.h - objects: structs in regions that ebb knows the inside of.
 *
 * A static description, the type, lists the fields of a struct that refer to other objects or to
 * bytes. Nothing else is needed to promote, move, count, check and print the struct as one unit,
 * with everything it consists of. Tensors (ebb/tensor.h), packed sequences, samples and batches are
 * such types; users add their own.
 *
 *     struct ebb_object            64 bytes, the first member of every object
 *     | type | next | ... | serial |  fields of the type ...  | bytes behind them |
 *                                      |        |
 *                                      member   block of bytes
 *
 * Terms. An object lies in the pages of its *host* and lives as long as its *owner*. Both are the
 * same region, until the object is attached or lent to a region below its host. A *composite* owns
 * its *members*: they follow it wherever it goes, end with it, and cannot go alone (EBB_E_MEMBER).
 * A root region is what other systems call "outside of any scope": an object that a region below
 * hands to the root of its tree is *detached*, one that goes the other way is *attached*.
 *
 * All functions check that they are given a live object. One thread at a time for the regions
 * concerned. Ending a region ends all its objects without visiting them. No object can be made in a
 * measuring region (EBB_E_MEASURING) or in one of a device (EBB_E_DEVICE).
 *
 * The block of a live object belongs to the object, as do its elements and the arrays that it was
 * composed with: ebb_object_end() ends them, ebb/own.h moves them, ebb_promote() copies them. The
 * other functions on blocks do not check what lies in a block: releasing or resizing such a one
 * breaks the lists of its region.
 */
#ifndef EBB_OBJECT_H
#define EBB_OBJECT_H

#include <ebb/promote.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EBB_OBJECT_KINDS_MAX 16 /* kinds of objects that are counted apart */
#define EBB_DEPTH_MAX 64 /* how deep composites may be nested */

struct ebb_type;

/* What every object begins with. Read `type`; everything else is ebb's. */
struct ebb_object {
    const struct ebb_type *type;
    struct ebb_object *next, *prev; /* others of the same owner; of a member, that owner */
    struct ebb_object *whole;       /* the composite it is a member of, or NULL */
    struct ebb_adoption *adoption;  /* owned by another region than its host */
    struct ebb_object *forward;     /* during calls on many objects */
    uint64_t state;                 /* live or not, and its host */
    uint64_t serial;                /* age: of the newest mark when its host got it */
};

enum ebb_field_kind {
    EBB_FIELD_OBJECT = 1,  /* pointer to a member, or NULL */
    EBB_FIELD_OBJECTS = 2, /* pointer to a block of pointers to members, any of them NULL */
    EBB_FIELD_BYTES = 3    /* pointer to a block of bytes without pointers, or NULL */
};

struct ebb_field {
    const char *name;
    enum ebb_field_kind kind;
    size_t offset;       /* of the pointer in the struct */
    size_t count_offset; /* of a size_t: count of pointers, or of bytes; not for OBJECT */
};

/* A type. Static, one for each kind of struct; only ebb_type_register() writes to it. */
struct ebb_type {
    const char *name;
    size_t bytes; /* of the struct, its struct ebb_object included */
    const struct ebb_field *fields;
    size_t field_count;
    /* NULL, or: corrects those pointers of `copy`, a copy byte by byte, that point into the object
     * itself. Threads are not cancelled in it. */
    void (*mend)(struct ebb_object *copy, const struct ebb_object *original);
    /* NULL, or: checks an object that is about to be composed, or to get another member; all that
     * its fields refer to is there. Returns 0 or an error code. Threads are not cancelled in it. */
    int (*check)(const struct ebb_object *object);
    uint32_t kind; /* number of its counters; set by ebb_type_register() */
};

/* Field tables: {EBB_FIELD(struct pair, EBB_FIELD_OBJECT, left), ...}. */
#define EBB_FIELD(type, kind, member) {#member, kind, offsetof(type, member), 0}
#define EBB_FIELD_COUNTED(type, kind, member, count) \
    {#member, kind, offsetof(type, member), offsetof(type, count)}

/*
 * Makes a type known for the life of the process; does nothing if it is known. The type, and what
 * it refers to, must stay that long. A shared object that it lies in is not unloaded any more,
 * whoever closes it. Types may have equal names; but of two that are equal in name and in kind,
 * name and place of all fields, neither is sent to other processes (ebb/handoff.h). Any thread.
 * Errors: EBB_E_TYPE (smaller than struct ebb_object, field outside of the struct, no name, two
 * fields of one name, a pointer in the place of another field's pointer or count, or
 * EBB_OBJECT_KINDS_MAX kinds exist).
 */
EBB_API int ebb_type_register(struct ebb_type *type);

/*
 * A new object of the type in the region, all its fields zero, with room for `extra` bytes behind
 * the struct. Valid until: ebb_object_end(), the end of its owner. NULL on failure: EBB_E_TYPE
 * (not registered, or that of tensors), and the errors of ebb_region_alloc().
 */
EBB_API EBB_NODISCARD void *ebb_object_new(ebb_region region, const struct ebb_type *type,
                                           size_t extra);

/*
 * Makes what the fields refer to part of `object`. Members must be objects that its host both owns
 * and hosts, and belong to no other composite; blocks of bytes must be blocks of its host, and
 * belong to one composite only, which nothing checks. If `object` is attached to another region
 * the members go to that owner. A member that is itself lent, or attached (even to the same owner),
 * is EBB_E_BORROWED; ebb_object_replace() takes attached ones.
 *
 * Composing again takes new members in. A member whose field was overwritten is lost: it stays a
 * member (EBB_E_MEMBER), but neither ends nor moves with the composite. So use
 * ebb_object_replace(), or end it. A lost member is owned and counted where it was until that
 * region ends, or is of another tree than the member and has the composite no more; from then on
 * its host owns it and does not count it. It can be ended, or taken in again by the same composite.
 * Do end it: after the composite's end another one may come to lie in its place, and pass for it.
 *
 * In a region of a shared pool, arrays of pointers to members that lie in shared memory move to
 * memory of this process: the field then names the new block, and the old one is released. That
 * fails as ebb_region_alloc() does, also in a sealed region.
 * Errors, all without effect: EBB_E_NOT_OWNED, EBB_E_MEMBER, EBB_E_BORROWED, EBB_E_CYCLE,
 * EBB_E_DEPTH, EBB_E_FOREIGN, EBB_E_INTERIOR, EBB_E_RELEASED, EBB_E_BUSY (as ebb_object_end()),
 * EBB_E_SIZE (block shorter than its count), EBB_E_TYPE (an object for a block, or a block for an
 * object), EBB_E_ARGUMENT, and those of the type's check.
 */
EBB_API int ebb_object_compose(void *object);

/*
 * Ends the object, its members and its blocks of bytes now; their places are reused. Errors:
 * EBB_E_RELEASED (ended before: nothing happens), EBB_E_FOREIGN, EBB_E_INTERIOR, EBB_E_TYPE (a
 * block that is no object), EBB_E_BUSY (called from a deleter of ebb/exchange.h, for an object that
 * the outer call is about to end). A member may be ended: its field in the composite becomes NULL.
 */
EBB_API int ebb_object_end(void *object);

/* The object, if it is a live one of this type; else NULL, with EBB_E_TYPE or an error of
 * ebb_object_end(). */
EBB_API void *ebb_object_as(void *object, const struct ebb_type *type);

/* The region that owns the object; a handle that is not open if the object is not live. */
EBB_API ebb_region ebb_object_owner(const void *object);

/* True if the region is open and owns the object. Members: as their composite. Never fails. */
EBB_API bool ebb_region_owns(ebb_region region, const void *object);

/*
 * Writes up to `room` objects that the region owns, newest first, members not included, and
 * returns how many there are. A snapshot. 0 with EBB_E_STALE if the region is closed, with
 * EBB_E_ARGUMENT if `objects` is NULL and `room` is not 0.
 */
EBB_API size_t ebb_region_list_objects(ebb_region region, void **objects, size_t room);

/* Objects of one kind, or of all. */
struct ebb_object_counts {
    uint64_t created_outside; /* in a root region */
    uint64_t ended_outside;   /* while a root owned them */
    uint64_t created_inside;  /* in a region with a parent */
    uint64_t ended_inside;
    uint64_t attached; /* given or lent by a root to this region, which is not a root */
    uint64_t detached; /* given or lent by this region, which is not a root, to a root */
    uint64_t moved;    /* given or lent by this region to another, both roots or neither */
    uint64_t copied;   /* of those given: by copying their bytes */
    uint64_t relinked; /* of those given: by relinking their storage */
    uint64_t joined;   /* became members of a composite */
    uint64_t live;     /* now */
};

#define EBB_OBJECT_ALL UINT32_MAX

/*
 * Counters of one region: what it created, ended, gave away and received. A child's begin anew when
 * it is handed over: what it owns then counts as received.
 *     live = created - ended - given away + received
 * Errors: EBB_E_STALE, EBB_E_ARGUMENT (no such kind).
 */
EBB_API int ebb_region_read_objects(ebb_region region, uint32_t kind,
                                    struct ebb_object_counts *counts);

/* The same for all regions that the process ever had. Objects that a call on another thread has
 * made so far count, even if it fails in the end; then they leave no trace. Any thread. */
EBB_API int ebb_process_read_objects(uint32_t kind, struct ebb_object_counts *counts);

/*
 * The process's counters as one line, in the form and order of TorchSharp's
 * ThreadDisposeScopeStatistics.ToString(); returns its length, as snprintf() does. Any thread. 0
 * with EBB_E_ARGUMENT: no such kind; `text` is NULL and `room` is not 0.
 */
EBB_API size_t ebb_report_objects(uint32_t kind, char *text, size_t room);

#ifdef __cplusplus
}
#endif

#endif
