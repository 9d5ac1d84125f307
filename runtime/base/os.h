// SPDX-License-Identifier: Apache-2.0
/*
 * os.h - the table of calls to the system, and of internal acquisitions.
 *
 * All calls go through `os`, so that a test can count them, make the n-th one fail, or refuse an
 * acquisition that makes no system call. The real calls are in os.c (memory) and os_file.c (memory
 * files); no other file includes sys/mman.h.
 */
#ifndef EBB_BASE_OS_H
#define EBB_BASE_OS_H

#include "base/hidden.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Internal acquisitions that `os.allow` is asked about. */
enum os_acquisition {
    OS_RANGE,  /* the address range, once per process */
    OS_POOL,   /* a pool's own record */
    OS_SLOT,   /* a region's slot */
    OS_SLAB,   /* a chunk of addresses of the range */
    OS_RUN,    /* a run of pages for a region */
    OS_PIECES, /* a batch of bookkeeping: pieces, or start maps */
    OS_EXPORT, /* the struct of an exported tensor, from the C library */
    OS_FILE,   /* a memory file, a descriptor or a mapping of it */
    OS_BACKING, /* pages of a memory file */
    OS_OWNER,  /* this process's place among the owners of a shared pool */
    OS_LEASES, /* the table of a shared pool's leases */
    OS_ACQUISITIONS
};

/* Tells the open file behind a descriptor from all others. */
struct os_file_identity {
    uint64_t device, number;
};

/* Calls that return an `int` return 0 on success; on failure an errno code, or -1 where noted. */
struct os_table {
    size_t (*page_bytes)(void);                 /* of the pages that the system maps */
    void *(*reserve)(size_t bytes);             /* addresses, closed; NULL on failure */
    int (*open)(void *addr, size_t bytes);      /* closed until now: zero pages when touched */
    int (*close)(void *addr, size_t bytes);     /* open until now, and still if it fails; by a fresh
                                                 * reservation if possible */
    int (*shut)(void *addr, size_t bytes);      /* as close(), between pages that stay open: no
                                                 * mapping of its own is left once reopened */
    int (*reopen)(void *addr, size_t bytes);    /* shut until now; pages that the system took
                                                 * meanwhile are zero */
    int (*give_back)(void *addr, size_t bytes); /* contents are lost: pages read as zero, even
                                                 * locked ones; 0 or -1 */
    size_t (*resident)(void *addr, size_t bytes); /* bytes of the range in memory now */
    uint64_t (*now_ns)(void);                   /* monotonic clock */
    bool (*allow)(enum os_acquisition what);    /* tests: false makes the acquisition fail */

    void (*release)(void *addr, size_t bytes);     /* ends a reservation */
    int (*cover)(void *addr, size_t bytes);        /* fresh open pages, whatever was there */
    int (*populate)(void *addr, size_t bytes);     /* touches all pages at once, for writing */
    void (*advise_huge)(void *addr, size_t bytes); /* huge pages are welcome; no promise */
    void (*advise_small)(void *addr, size_t bytes); /* no longer: a touch brings one small page */
    int (*wipe_in_children)(void *addr, size_t bytes); /* reads as zero in forked children; 0 or
                                                        * -1 */
    int (*lock)(void *addr, size_t bytes);         /* touches all pages and keeps them in memory;
                                                    * if it fails, none is locked */
    void (*unlock)(void *addr, size_t bytes);

    /* Memory files: not in any folder, sealed against changes of size. */
    int (*file_make)(const char *name, size_t bytes, int *fd);
    int (*file_check)(int fd, size_t *bytes); /* EINVAL: not such a file; else its size */
    int (*file_identify)(int fd, struct os_file_identity *identity);
    int (*file_copy)(int fd, int *copy);      /* the same open file */
    int (*file_again)(int fd, int *other);    /* the file, opened once more */
    int (*file_read)(int fd, void *to, size_t bytes);         /* all of `bytes`, from the start */
    int (*file_map)(int fd, size_t offset, void *addr, size_t bytes); /* over reserved pages; left
                                                                       * out of core dumps */
    int (*file_back)(int fd, size_t offset, size_t bytes);  /* allocates pages, zero if new; a
                                                             * failure may leave some allocated */
    int (*file_hole)(int fd, size_t offset, size_t *at); /* the first byte at or after `offset` that
                                                          * no touched page holds; SIZE_MAX: the
                                                          * system does not tell */
    int (*file_punch)(int fd, size_t offset, size_t bytes); /* frees pages */
    int (*file_lock)(int fd, size_t byte); /* until this opening ends; EAGAIN: another has it */
    int (*file_is_locked)(int fd, size_t byte, bool *locked); /* by another opening */
    void (*file_close)(int fd);

    bool (*shares_files)(int process); /* whether this process shares its descriptors with
                                        * `process`, its parent now or before; true if unknown */
    int (*wait)(const void *word, uint32_t value, uint64_t ns); /* while *word is `value` */
    void (*wake)(const void *word);        /* all waiters, in all processes */
    uint64_t (*draw)(void);                /* a random number */
    void (*pass)(const char *step);        /* tests: the protocol's next step is `step` */
};

extern HIDDEN struct os_table os;

/* False: resident() finds nothing, as the system does not say it (a filter of system calls). */
bool os_tells_resident(void);

/* Reads the system's overcommit mode for shut(), which otherwise does so itself, once. That opens a
 * file for a moment: so call it before there are threads, and before the program forbids files. */
void os_learn_overcommit(void);

/* Reserves and opens addresses, to be given to os.release(); NULL on failure. */
void *os_pages(size_t bytes);

#endif
