// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/object.h - objects: structs in regions that ebb knows the inside of.
 *
 * A static description, the type, lists the fields of a struct that refer to other objects or to
 * bytes. It is all that is needed to promote, move, count, check and print the struct as one
 * unit, with everything it consists of. Tensors (ebb/tensor.h), packed sequences, samples and
 * batches are such types; users add their own.
 *
 *     struct ebb_object            64 bytes, the first member of every object
 *     | type | next | ... | serial |  fields of the type ...  | bytes behind them |
 *                                      |        |
 *                                      member   block of bytes
 *
 * Words. An object lies in the pages of its *host* and lives as long as its *owner*: the same
 * region, until the object is attached or lent to a region below its host. A *composite* owns its
 * *members*: they follow it wherever it goes, end with it, and cannot go alone (EBB_E_MEMBER). A
 * root region is what other systems call "outside of any scope": an object that a region below
 * hands to the root of its tree is *detached*, one that goes the other way is *attached*.
 *
 * All functions check that what they are given is a live object. One thread at a time for the
 * regions concerned. Ending a region ends all its objects without a look at them. No object is made
 * in a measuring region (EBB_E_MEASURING) or in one of a device (EBB_E_DEVICE).
 *
 * The block of a live object is the object's, and so are its elements and the arrays that it was
 * composed with: they go by ebb_object_end() and move by ebb/own.h; ebb_promote() copies them. The
 * other functions on blocks do not ask what lies in one; releasing or resizing it by them breaks
 * the lists of its region.
 */
#ifndef EBB_OBJECT_H
#define EBB_OBJECT_H

#include <ebb/promote.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EBB_OBJECT_KINDS_MAX 16 /* kinds of objects that are counted apart */
#define EBB_DEPTH_MAX 64 /* composites may be nested so deep */

struct ebb_type;

/* What every object begins with. Read `type`; everything else is ebb's. */
struct ebb_object {
    const struct ebb_type *type;
    struct ebb_object *next, *prev; /* others of the same owner; of a member, that owner */
    struct ebb_object *whole;       /* the composite it is a member of, or NULL */
    struct ebb_adoption *adoption;  /* owned by another region than its host */
    struct ebb_object *forward;     /* while something happens to many */
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
    /* Mends pointers of `copy`, a copy byte by byte, that point into the object itself. Or NULL. No
     * thread is cancelled in it. */
    void (*mend)(struct ebb_object *copy, const struct ebb_object *original);
    /* Looks at an object that is about to be composed, or to get another member: what its fields
     * refer to is there. 0 or an error code. Or NULL. No thread is cancelled in it, either. */
    int (*check)(const struct ebb_object *object);
    uint32_t kind; /* number that its counters have; set by ebb_type_register() */
};

/* Field tables: {EBB_FIELD(struct pair, EBB_FIELD_OBJECT, left), ...}. */
#define EBB_FIELD(type, kind, member) {#member, kind, offsetof(type, member), 0}
#define EBB_FIELD_COUNTED(type, kind, member, count) \
    {#member, kind, offsetof(type, member), offsetof(type, count)}

/*
 * Makes a type known for the life of the process; again: nothing. The type, and what it refers to,
 * must stay that long. If it lies in a shared object, that is not unloaded any more, whoever closes
 * it. Other types may have the same name; but of two whose fields are the same, too, in kind, name
 * and place, none is sent to other processes (ebb/handoff.h). Any thread. Errors: EBB_E_TYPE
 * (smaller than struct ebb_object, field outside of the struct, nameless, two fields of one name, a
 * pointer where another field has one or its count, or EBB_OBJECT_KINDS_MAX kinds exist).
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
 * Makes what the fields refer to part of `object`: members must be objects that its host owns
 * and has in its pages, and of no other composite; blocks of bytes must be blocks of that. If
 * `object` is attached elsewhere they go to its owner; what is attached itself is EBB_E_BORROWED,
 * also if that owner has it, as what is lent is (ebb_object_replace() takes what is attached).
 * Composing again takes new members in; those whose fields were overwritten stay members that
 * nothing finds, so use ebb_object_replace() or end them. Lost like that they neither end nor go
 * with the composite; they stay EBB_E_MEMBER for all that a member cannot do, are owned and
 * counted where they were until that ends, or is of another tree than theirs and has the composite
 * no more: their host owns them then, and does not count them. They can be ended, or taken in again
 * by the same composite. Do end them: once that has ended, another with members of its own may come
 * to lie where it did, and pass for it. A block of bytes is of one composite only; nothing checks
 * that.
 * In a region of a shared pool, pointers to members that lie in shared memory move to memory of
 * this process: the field names their new block, and the old one is released. That fails as
 * ebb_region_alloc() does, also in a region that is sealed.
 * Errors, all without effect: EBB_E_NOT_OWNED, EBB_E_MEMBER, EBB_E_BORROWED, EBB_E_CYCLE,
 * EBB_E_DEPTH, EBB_E_FOREIGN, EBB_E_INTERIOR, EBB_E_RELEASED, EBB_E_BUSY (as ebb_object_end()),
 * EBB_E_SIZE (block shorter than its count), EBB_E_TYPE (an object for a block, or a block for an
 * object), EBB_E_ARGUMENT, and those of the type's check.
 */
EBB_API int ebb_object_compose(void *object);

/*
 * Ends the object, its members and its blocks of bytes now; their places are reused. Errors:
 * EBB_E_RELEASED (ended before: nothing happens), EBB_E_FOREIGN, EBB_E_INTERIOR, EBB_E_TYPE (a
 * block that is no object), EBB_E_BUSY (it is about to end, in the call that this one is inside of:
 * a deleter of ebb/exchange.h). A member may be ended: its field in the composite becomes NULL.
 */
EBB_API int ebb_object_end(void *object);

/* The object if it is a live one of this type, else NULL with EBB_E_TYPE or what ebb_object_end()
 * says of what is no live object. */
EBB_API void *ebb_object_as(void *object, const struct ebb_type *type);

/* The region that owns the object; a handle that is not open if it is no live object. */
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
    uint64_t attached; /* given or lent by a root to this region, which is none */
    uint64_t detached; /* given or lent by this region, which is no root, to one */
    uint64_t moved;    /* given or lent by this region to another, both a root or neither */
    uint64_t copied;   /* of those given: by copying their bytes */
    uint64_t relinked; /* of those given: by relinking their storage */
    uint64_t joined;   /* became a member of a composite */
    uint64_t live;     /* now */
};

#define EBB_OBJECT_ALL UINT32_MAX

/*
 * Counters of one region: of what it created, ended, gave away and received. Those of a child begin
 * anew when it is handed over: it received what it has then.
 *     live = created - ended - given away + received
 * Errors: EBB_E_STALE, EBB_E_ARGUMENT (no such kind).
 */
EBB_API int ebb_region_read_objects(ebb_region region, uint32_t kind,
                                    struct ebb_object_counts *counts);

/* The same for all regions that the process ever had. What a call on another thread has made so far
 * counts, also if it fails in the end, and leaves no trace then. Any thread. */
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
