// SPDX-License-Identifier: Apache-2.0
/*
 * spool_read.c - takes a spool in, however its process ended.
 *
 * Nothing in the file is believed: the head must have its mark and fit the file, chunks count only
 * as far as the file reaches and begin with their own record, sequence numbers count only below
 * what the head says. Refused: what has no head.
 */
#include "spool_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"

static bool map_file(struct spool_file *spool, const char *path) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0)
        return complain("%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size < SPOOL_HEAD) {
        close(file);
        return complain("%s: %lld bytes are no spool, whose head alone has %llu", path,
                        (long long)status.st_size, (unsigned long long)SPOOL_HEAD);
    }
    spool->bytes = (size_t)status.st_size;
    void *at = mmap(NULL, spool->bytes, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (at == MAP_FAILED)
        return complain("%s: %s", path, strerror(errno));
    spool->head = at;
    spool->records = (const struct spool_record *)((const char *)at + SPOOL_HEAD);
    return true;
}

static bool is_chunk(const struct spool_file *spool, size_t chunk) {
    const struct spool_record *first = &spool->records[chunk * SPOOL_CHUNK_RECORDS];
    return first->what == SPOOL_CHUNK_HEAD && first->when < SPOOL_LANES;
}

static void order_chunk(struct spool_file *spool, size_t chunk) {
    size_t at = chunk * SPOOL_CHUNK_RECORDS;
    for (size_t i = at + 1; i < at + SPOOL_CHUNK_RECORDS; i++) {
        enum spool_op op = spool_op(spool->records[i].what);
        size_t sequence = spool->records[i].when >> 32;
        if (op != SPOOL_NOTHING && op < SPOOL_WIDE && sequence < spool->order_count)
            spool->order[sequence] = (uint32_t)i + 1;
    }
}

static bool make_order(struct spool_file *spool, const char *path) {
    uint64_t sequence = spool->head->sequence;
    spool->chunk_count = (spool->bytes - SPOOL_HEAD) / SPOOL_CHUNK;
    if (spool->chunk_count > spool->head->chunks)
        spool->chunk_count = spool->head->chunks;
    if (sequence > spool->chunk_count * SPOOL_CHUNK_RECORDS + SPOOL_LANES)
        sequence = spool->chunk_count * SPOOL_CHUNK_RECORDS + SPOOL_LANES;
    uint64_t stop = spool->head->stop_sequence; /* 0: who stopped it was ended before it said so */
    if (spool->head->stopped && stop && stop < sequence)
        sequence = stop;
    spool->order_count = (size_t)sequence;
    spool->order = calloc(spool->order_count + 1, sizeof *spool->order);
    if (!spool->order)
        return complain("%s: no memory for the order of %zu records", path, spool->order_count);
    for (size_t chunk = 0; chunk < spool->chunk_count; chunk++)
        if (is_chunk(spool, chunk))
            order_chunk(spool, chunk);
    return true;
}

bool spool_file_open(struct spool_file *spool, const char *path) {
    *spool = (struct spool_file){0};
    if (!map_file(spool, path))
        return false;
    if (memcmp(spool->head->magic, SPOOL_MAGIC, sizeof spool->head->magic) != 0) {
        complain("%s: no spool of ebb record", path);
        spool_file_close(spool);
        return false;
    }
    if (make_order(spool, path))
        return true;
    spool_file_close(spool);
    return false;
}

void spool_file_close(struct spool_file *spool) {
    free(spool->order);
    if (spool->head)
        munmap((void *)(uintptr_t)spool->head, spool->bytes);
    *spool = (struct spool_file){0};
}

/* Bytes [at, at + count) of the head's first part. */
static void copy(void *to, const char *state, size_t at, size_t count) {
    memcpy(to, state + at, count);
}

/* The space is there before the rest. Only where the lock is made is it asked for: the recorder
 * must find it free before. */
static void take_state(struct spool_glance *glance, int file, const char state[SPOOL_STATE]) {
    uint32_t locked;
    copy(&glance->space, state, offsetof(struct spool_head, space), sizeof glance->space);
    if (memcmp(state, SPOOL_MAGIC, strlen(SPOOL_MAGIC)) != 0)
        return;
    copy(&glance->records, state, offsetof(struct spool_head, sequence), sizeof glance->records);
    copy(&locked, state, offsetof(struct spool_head, locked), sizeof locked);
    glance->unlocked = locked && flock(file, LOCK_SH | LOCK_NB) == 0;
}

/* Nothing is mapped: that may be what there is no room for. A pipe does not keep it waiting. */
bool spool_file_glance(const char *path, struct spool_glance *glance) {
    char state[SPOOL_STATE];
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *glance = (struct spool_glance){0};
    if (file < 0)
        return false;
    bool good = fstat(file, &status) == 0;
    if (good && S_ISREG(status.st_mode) && (uint64_t)status.st_size >= SPOOL_STATE) {
        good = pread(file, state, sizeof state, 0) == (ssize_t)sizeof state;
        if (good)
            take_state(glance, file, state);
    }
    int reason = errno;
    close(file);
    errno = reason;
    return good;
}
