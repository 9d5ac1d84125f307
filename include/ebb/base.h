// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/base.h - errors, versions and the words that every other header uses.
 *
 * Error protocol, the same for every function of ebb:
 *
 *   - a function that returns `int` gives 0, or one of the negative EBB_E_ codes below;
 *   - a function that returns a pointer gives NULL on failure, one that returns a handle gives
 *     a handle for which ebb_region_is_open() is false; the reason is ebb_last_error();
 *   - a failed call changes nothing: no byte, no counter, no ownership (but ends go on although a
 *     cleanup failed: EBB_E_CLEANUP is no refusal; and a region may be left with more pages of its
 *     pool, and less padding);
 *   - ebb_last_error_text() is one sentence with the numbers that matter (asked, left, limit).
 *
 * The caller's mistakes and exhausted memory are errors. Only a broken invariant of ebb itself
 * ends the process, with a message on standard error.
 *
 * Vocabulary of the doc comments (docs/lifetimes.md defines it once more, with pictures):
 *   any thread             may be called at any time from any thread
 *   one thread at a time   the caller makes sure that no two calls for this region overlap
 *   valid until            the call that ends the result's life
 */
#ifndef EBB_BASE_H
#define EBB_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EBB_VERSION_MAJOR 0
#define EBB_VERSION_MINOR 1
#define EBB_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* Every symbol that leaves the library; all others are hidden. */
#define EBB_API __attribute__((visibility("default")))
/* The result tells whether the call failed: dropping it is a mistake. */
#define EBB_NODISCARD __attribute__((warn_unused_result))
/* Without optimization, too: or whatever such a function allocates has one site. The library has
 * the function for those who ask for its address; in gnu89's sense of inline, `extern` says so. */
#ifdef __GNUC_GNU_INLINE__
#define EBB_INLINE __attribute__((always_inline)) extern inline
#else
#define EBB_INLINE __attribute__((always_inline)) inline
#endif

/* What went wrong. Codes are stable; new ones are added at the end. */
enum ebb_error {
    EBB_OK = 0,
    EBB_E_ARGUMENT = -1,     /* an argument makes no sense on its own (NULL list, bad options) */
    EBB_E_ALIGNMENT = -2,    /* alignment is zero, no power of two, or above EBB_ALIGN_MAX */
    EBB_E_SIZE = -3,         /* a size cannot be represented, overflows, or is more than is there */
    EBB_E_MEMORY = -4,       /* the system gives no more memory or address space */
    EBB_E_POOL_LIMIT = -5,   /* the pool's limit on used or reserved bytes would be exceeded */
    EBB_E_REGION_LIMIT = -6, /* the limit of the region or of one of its ancestors would be */
    EBB_E_STALE = -7,        /* the handle's region was closed, or the handle never was one; the
                              * step has ended, the parcel was opened */
    EBB_E_SEALED = -8,       /* the region is sealed: it takes no new blocks */
    EBB_E_FOREIGN = -9,      /* the pointer belongs to another region, or to none of ebb's */
    EBB_E_INTERIOR = -10,    /* the pointer is inside the region but starts no block */
    EBB_E_RELEASED = -11,    /* the block was released before */
    EBB_E_MARK = -12,        /* the mark is of another region, rewound past, or was reset */
    EBB_E_NO_ROOM = -13,     /* the block cannot be resized where it is; the memory is too small */
    EBB_E_NOT_ANCESTOR = -14, /* the target of a promotion, or what a view sees, is not above */
    EBB_E_MEASURING = -15,   /* not possible on a measuring region: it has no memory */
    EBB_E_BUSY = -16,        /* it is in use: open regions, steps, exports, a cleanup that runs */
    EBB_E_LIVE_BLOCKS = -17, /* strict close: blocks are alive that nobody promoted */
    EBB_E_CHILD_OPEN = -18,  /* strict close: a child is still open */
    EBB_E_DUPLICATE = -19,   /* a list names a block, object or key twice; registered twice */
    EBB_E_NOT_OWNED = -20,   /* the object is not owned by that region, not lent, not composed */
    EBB_E_MEMBER = -21,      /* the object is a member of a composite and moves with it only */
    EBB_E_TYPE = -22,        /* the object is of another type, or the type is no good */
    EBB_E_BORROWED = -23,    /* not while the object is lent to another region, or attached to it */
    EBB_E_CYCLE = -24,       /* an object would contain itself */
    EBB_E_DEPTH = -25,       /* objects are nested deeper than EBB_DEPTH_MAX */
    EBB_E_CLEANUP = -26,     /* closed, reset or rewound, but a cleanup callback failed */
    EBB_E_DTYPE = -27,       /* the data type is none, or not the one that is needed */
    EBB_E_SHAPE = -28,       /* dimensions, shapes or strides are no good or do not agree */
    EBB_E_VIEW = -29,        /* the elements cannot be seen that way without a copy */
    EBB_E_OVERLAP = -30,     /* source and destination, or elements of one, share memory */
    EBB_E_VALUE = -31,       /* the data type cannot hold the value exactly */
    EBB_E_EMPTY = -32,       /* a list of sequences or samples is empty */
    EBB_E_LENGTH_COUNT = -33, /* as many lengths as sequences are needed */
    EBB_E_LENGTH_NEGATIVE = -34, /* a sequence is shorter than nothing; or empty, if refused */
    EBB_E_LENGTH_EXCEEDS = -35,  /* a length is greater than the padded length */
    EBB_E_TOTAL_LENGTH = -36, /* the total length is less than the longest sequence */
    EBB_E_UNSORTED = -37,    /* lengths increase, though it was promised that they do not */
    EBB_E_BATCH_SIZES = -38, /* batch sizes grow, are below 1, or do not sum to the rows */
    EBB_E_PERMUTATION = -39, /* indices are no permutation */
    EBB_E_METADATA = -40,    /* metadata does not fit the kind of sample */
    EBB_E_STRUCTURE = -41,   /* samples of one batch are not built alike */
    EBB_E_EXCHANGE = -42,    /* a DLPack struct is no good, some consumers would misread it, or its
                              * producer forbids to write to the elements */
    EBB_E_ORDER = -43,       /* a scope is left out of order */
    EBB_E_KIND = -44,        /* the kind of memory is none, or not the one that is needed */
    EBB_E_NO_SPACE = -45,    /* the system has no pages left for shared memory */
    EBB_E_SLOTS = -46,       /* all slots of a shared pool are taken */
    EBB_E_PARCEL = -47,      /* a parcel is of another pool, or was never made by ebb */
    EBB_E_SHARED = -48,      /* a descriptor is of no shared pool, or of one that is damaged; or it
                              * was a pool's own, and the program has closed it */
    EBB_E_DEVICE = -49,      /* no CUDA driver or device, it failed, or only the host can do that */
    EBB_E_THREAD = -50       /* the scope belongs to another thread */
};

/* Code of the last failed call on this thread; EBB_OK if none failed yet. Any thread. */
EBB_API int ebb_last_error(void);

/*
 * One sentence about the last failed call on this thread, with its numbers; "" if none failed
 * yet. Where names are so long that it has no room, it ends with "...". What a line cannot show is
 * "?": control characters, those that end a line or turn its direction, bytes of no UTF-8. Valid
 * until the next failing call on this thread. Any thread.
 */
EBB_API const char *ebb_last_error_text(void);

/* Name of a code, such as "EBB_E_SEALED"; "EBB_E_UNKNOWN" for a number that is none. Static. */
EBB_API const char *ebb_error_name(int code);

/* "MAJOR.MINOR.PATCH" of the library that is loaded. Static. Any thread. */
EBB_API const char *ebb_version(void);

#ifdef __cplusplus
}
#endif

#endif
