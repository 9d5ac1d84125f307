// SPDX-License-Identifier: Apache-2.0
/*
 * os.h - the table of everything that ebb acquires from outside, and of internal acquisitions.
 *
 * All calls go through `os`, so that a test can count them, make the n-th fail, or refuse an
 * acquisition that has no system call of its own. os.c has the real calls on memory, os_file.c
 * those on memory files; nothing else includes sys/mman.h.
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

/* Which file a descriptor is of, among all that there are. */
struct os_file_identity {
    uint64_t device, number;
};

/* Calls that give an `int` give 0, or -1 where that is said, else an errno code. */
struct os_table {
    size_t (*page_bytes)(void);                 /* of the pages that the system maps */
    void *(*reserve)(size_t bytes);             /* addresses, closed; NULL on failure */
    int (*open)(void *addr, size_t bytes);      /* closed until now: zero pages when touched */
    int (*close)(void *addr, size_t bytes);     /* open until now, and if it fails; by a fresh
                                                 * reservation if it can be had */
    int (*shut)(void *addr, size_t bytes);      /* as close(), but what lies beside it stays open:
                                                 * reopened it needs no mapping of its own */
    int (*reopen)(void *addr, size_t bytes);    /* shut until now: zero pages when touched, where
                                                 * the system took those that were there */
    int (*give_back)(void *addr, size_t bytes); /* contents are lost, pages are zero, locked or
                                                 * not; 0 or -1 */
    size_t (*resident)(void *addr, size_t bytes); /* bytes of the range in memory now */
    uint64_t (*now_ns)(void);                   /* monotonic clock */
    bool (*allow)(enum os_acquisition what);    /* tests: false makes the acquisition fail */

    void (*release)(void *addr, size_t bytes);     /* what was reserved is gone */
    int (*cover)(void *addr, size_t bytes);        /* fresh open pages over whatever it is */
    int (*populate)(void *addr, size_t bytes);     /* touched, for writing, all at once */
    void (*advise_huge)(void *addr, size_t bytes); /* huge pages are welcome; no promise */
    void (*advise_small)(void *addr, size_t bytes); /* not any more: a touch brings one page */
    int (*wipe_in_children)(void *addr, size_t bytes); /* zero in each process that this one makes
                                                        * a copy of itself; 0 or -1 */
    int (*lock)(void *addr, size_t bytes);         /* touched, and never moved or written out; if
                                                    * it fails, none of them is locked */
    void (*unlock)(void *addr, size_t bytes);

    /* Memory files: without a name, sealed against any change of their size. */
    int (*file_make)(const char *name, size_t bytes, int *fd);
    int (*file_check)(int fd, size_t *bytes); /* it is one, so large; EINVAL: it is not */
    int (*file_identify)(int fd, struct os_file_identity *identity);
    int (*file_copy)(int fd, int *copy);      /* the same open file */
    int (*file_again)(int fd, int *other);    /* the file, opened once more */
    int (*file_read)(int fd, void *to, size_t bytes);         /* from its start; all of them */
    int (*file_map)(int fd, size_t offset, void *addr, size_t bytes); /* over reserved pages; in no
                                                                       * core dump */
    int (*file_back)(int fd, size_t offset, size_t bytes);  /* pages are there, zero if new; some
                                                             * may be if it fails */
    int (*file_hole)(int fd, size_t offset, size_t *at); /* the first byte from there on without a
                                                          * page that was touched; SIZE_MAX: the
                                                          * system does not tell */
    int (*file_punch)(int fd, size_t offset, size_t bytes); /* pages are gone */
    int (*file_lock)(int fd, size_t byte); /* until this opening ends; EAGAIN: another has it */
    int (*file_is_locked)(int fd, size_t byte, bool *locked); /* by another opening */
    void (*file_close)(int fd);

    bool (*shares_files)(int process); /* descriptors, with a process that is or was this one's
                                        * parent; true: or that is not known */
    int (*wait)(const void *word, uint32_t value, uint64_t ns); /* while the word has the value */
    void (*wake)(const void *word);        /* all who wait, of all processes */
    uint64_t (*draw)(void);                /* a number that nobody guesses */
    void (*pass)(const char *step);        /* tests: a step between processes comes next */
};

extern HIDDEN struct os_table os;

/* How the system counts memory is asked and kept for shut(), which else asks itself, once. It takes
 * a descriptor for a moment: before there are threads, and before the program forbids files. */
void os_learn_overcommit(void);

/* Open addresses of their own, for os.release(); NULL on failure. */
void *os_pages(size_t bytes);

#endif
