// SPDX-License-Identifier: Apache-2.0
/*
 * spool.h - the file that a recorded process writes, as the recorder and the tool both see it.
 *
 *     0                  struct spool_head     counts, sites, modules, kinds
 *     SPOOL_HEAD         chunk 0               SPOOL_CHUNK bytes: records of one lane
 *     + SPOOL_CHUNK      chunk 1 ...
 *
 * The file is mapped shared and written by plain stores, so what was noted is there whatever ends
 * the process. A chunk belongs to one lane, that is, to one thread at a time; its first record is
 * SPOOL_CHUNK_HEAD. Records that are all zero were never written: readers pass over them.
 *
 * Invariant: sequence numbers are dense and unique, and give the order of all threads. An
 * allocation takes its number after the allocator returned, a free before the allocator is called;
 * so an allocation stands before its free, and the free before the next use of the address, also
 * where the threads differ. A realloc has two: the old block ends at the first, the new one begins
 * at the second.
 */
#ifndef EBB_BENCH_RECORD_SPOOL_H
#define EBB_BENCH_RECORD_SPOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPOOL_CHUNK = 64 << 10,
    SPOOL_CHUNK_RECORDS = SPOOL_CHUNK / 16,
    SPOOL_SITES = 1 << 15,
    SPOOL_SITE_PROBES = 64,
    SPOOL_MODULES = 1024,
    SPOOL_MODULE_PATH = 248,
    SPOOL_KINDS = 256,
    SPOOL_KIND_NAME = 64,
    SPOOL_LANES = 4096,
    SPOOL_FUNCTION = 4096, /* of the name of a watched function: those of C++ are long */
};

#define SPOOL_MAGIC "ebbspl1\n"
#define SPOOL_LIMIT_MOST (UINT64_C(32) << 30) /* keeps sequence numbers below 2^32 */

/* What happened. A record is two words:
 *
 *     what   bits 0..3 operation, 4..18 site or kind, 19..63 address / 8 or identity
 *     when   bits 0..31 size or argument, 32..63 sequence number
 *
 * Where the record before it in the chunk is SPOOL_WIDE, that one says more.
 */
enum spool_op {
    SPOOL_NOTHING,
    SPOOL_MALLOC,  /* malloc and operator new */
    SPOOL_CALLOC,
    SPOOL_ALIGNED,
    SPOOL_FREE,
    SPOOL_REALLOC_FROM,   /* realloc begins: the block may be gone from now on */
    SPOOL_REALLOC_TO,     /* it succeeded: the new block */
    SPOOL_REALLOC_FREED,  /* it was a free: size 0, and NULL came back */
    SPOOL_REALLOC_FAILED, /* the block is as it was */
    SPOOL_BEGIN,          /* a region of a kind; address: its identity, size: its argument */
    SPOOL_END,            /* the region of this identity; 0: of the thread's last begin without */
    SPOOL_CALL,           /* a named function was called: ends the kind's region, begins another */
    SPOOL_THREAD_END,     /* the lane goes to another thread */
    SPOOL_WIDE,           /* when: bits 0..31 upper half of size or argument, 32..39 log2 of
                             alignment */
    SPOOL_CHUNK_HEAD,     /* first of a chunk; when: the number of the lane */
};

struct spool_record {
    _Atomic uint64_t when, what;
};

/* Why nothing more was noted. */
enum spool_stop {
    SPOOL_GOES_ON,
    SPOOL_STOP_LIMIT,   /* the limit of bytes */
    SPOOL_STOP_DISK,    /* no room on the disk for more and the trace, or RLIMIT_FSIZE */
    SPOOL_STOP_FILE,    /* the file was closed and could not be opened again */
    SPOOL_STOP_MEMORY,  /* no address space for more chunks */
    SPOOL_STOP_THREADS, /* more than SPOOL_LANES threads at once */
    SPOOL_STOP_END,     /* the command ended before this process; who recorded it says so */
};

/* A place that allocates. caller 0: the slot is free. */
struct spool_site {
    _Atomic uint64_t caller; /* return address */
    _Atomic uint32_t module; /* number of its module; 0: none is known */
    uint32_t reserved;
};

/* A program or library. Module 0 stands for none. */
struct spool_module {
    _Atomic uint64_t base; /* 1 more than what is added to addresses of its file; 0: not yet */
    char path[SPOOL_MODULE_PATH];
};

struct spool_head {
    char magic[8];
    uint32_t process;
    uint32_t space; /* in which that is its number; 0: not known. Written first of all */
    uint64_t limit; /* bytes of the file */
    _Atomic uint32_t chunks, stopped;
    _Atomic uint64_t stop_sequence; /* what is later does not count, where it stopped */
    _Atomic uint32_t module_count, kind_count;
    _Atomic uint32_t locked; /* by flock(), as long as somebody has the head mapped */
    uint32_t padding[3];
    _Alignas(64) _Atomic uint64_t sequence; /* next number; a line of its own */
    _Alignas(64) struct spool_site site[SPOOL_SITES];
    struct spool_module module[SPOOL_MODULES];
    char kind[SPOOL_KINDS][SPOOL_KIND_NAME];
};

#define SPOOL_STATE offsetof(struct spool_head, site) /* bytes before the tables */

#define SPOOL_HEAD \
    ((sizeof(struct spool_head) + SPOOL_CHUNK - 1) / SPOOL_CHUNK * (uint64_t)SPOOL_CHUNK)

static inline uint64_t spool_what(enum spool_op op, uint32_t site, uint64_t address) {
    return (uint64_t)op | (uint64_t)site << 4 | address >> 3 << 19;
}

static inline uint64_t spool_when(uint64_t sequence, uint64_t size) {
    return sequence << 32 | (uint32_t)size;
}

static inline enum spool_op spool_op(uint64_t what) {
    return (enum spool_op)(what & 15);
}

static inline uint32_t spool_site(uint64_t what) {
    return what >> 4 & (SPOOL_SITES - 1);
}

static inline uint64_t spool_address(uint64_t what) {
    return what >> 19 << 3;
}

#endif
