// SPDX-License-Identifier: Apache-2.0
/* duo.c - see duo.h. */
#include "handoff/duo.h"
#include "pool/shared.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

ebb_pool *shared_pool(unsigned slots, size_t slot_bytes) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = slots, .slot_bytes = slot_bytes);
    if (!pool)
        print_error("%s\n", ebb_last_error_text());
    assert_non_null(pool);
    return pool;
}

void count_states(ebb_pool *pool, unsigned counts[4]) {
    memset(counts, 0, 4 * sizeof *counts);
    for (uint32_t i = 0; i < pool->shared->slot_count; i++) {
        unsigned state = word_state(atomic_load(&pool->shared->control->records[i].word));
        if (state < 4)
            counts[state]++;
    }
}

void assert_states(ebb_pool *pool, unsigned writing, unsigned sent, unsigned held) {
    unsigned counts[4];
    count_states(pool, counts);
    assert_int_equal(counts[SLOT_WRITING], writing);
    assert_int_equal(counts[SLOT_SENT], sent);
    assert_int_equal(counts[SLOT_HELD], held);
    assert_int_equal(counts[SLOT_FREE], pool->shared->slot_count - writing - sent - held);
}

bool try_send(ebb_pool *pool, size_t bytes, unsigned seed, struct ebb_parcel *parcel) {
    ebb_region region = OPEN(.pool = pool);
    void *block = ebb_region_is_open(region) ? ebb_region_alloc(region, bytes, 64) : NULL;
    if (!block)
        return false;
    pattern_fill(block, bytes, seed);
    return ebb_region_send(region, block, parcel) == 0;
}

struct ebb_parcel send_pattern(ebb_pool *pool, size_t bytes, unsigned seed) {
    struct ebb_parcel parcel;
    bool sent = try_send(pool, bytes, seed, &parcel);
    if (!sent)
        print_error("%s\n", ebb_last_error_text());
    assert_true(sent);
    return parcel;
}

bool lease_holds(const ebb_lease *lease, size_t bytes, unsigned seed) {
    size_t there;
    const void *root = ebb_lease_root(lease, &there);
    return root && there == bytes && pattern_holds(root, bytes, seed);
}

bool write_all(int out, const void *bytes, size_t count) {
    return write(out, bytes, count) == (ssize_t)count;
}

bool read_all(int in, void *bytes, size_t count) {
    char *at = bytes;
    while (count) {
        ssize_t got = read(in, at, count);
        if (got <= 0)
            return false;
        at += got;
        count -= (size_t)got;
    }
    return true;
}

pid_t fork_raw(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static struct duo make_child(pid_t (*make)(void), ebb_pool *pool, duo_part *part,
                             const void *context) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = make();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        _exit(part(pool, ends[1], context));
    }
    close(ends[1]);
    return (struct duo){child, ends[0]};
}

struct duo duo_fork(ebb_pool *pool, duo_part *part, const void *context) {
    return make_child(fork, pool, part, context);
}

struct duo duo_fork_raw(ebb_pool *pool, duo_part *part, const void *context) {
    return make_child(fork_raw, pool, part, context);
}

struct duo duo_execute(ebb_pool *pool, const char *batches) {
    int ends[2];
    char fd[16], path[256];
    assert_int_equal(pipe(ends), 0);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(length > 0);
    path[length] = '\0';
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        snprintf(fd, sizeof fd, "%d", dup(ebb_pool_descriptor(pool)));
        dup2(ends[1], STDOUT_FILENO);
        execl(path, path, "--worker", fd, batches, (char *)NULL);
        _exit(99);
    }
    close(ends[1]);
    return (struct duo){child, ends[0]};
}

int duo_executed(const char *fd, const char *batches, duo_part *part) {
    unsigned count = (unsigned)atoi(batches);
    ebb_pool *pool = ebb_pool_attach(atoi(fd), NULL);
    close(atoi(fd));
    if (!pool)
        return 98;
    int result = part(pool, STDOUT_FILENO, &count);
    return ebb_pool_destroy(pool) == 0 ? result : 97;
}

int duo_end(struct duo *duo) {
    int status;
    close(duo->in);
    assert_int_equal(waitpid(duo->child, &status, 0), duo->child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

int die_with_three(ebb_pool *pool, int out, const void *context) {
    struct ebb_parcel kept, sent;
    ebb_region written = OPEN(.pool = pool);
    if (!try_send(pool, 6000, 1, &kept) || !ebb_parcel_open(pool, &kept) ||
        !try_send(pool, 5000, 7, &sent) || !ebb_region_alloc(written, 5000, 64) ||
        !write_all(out, &sent, sizeof sent))
        return 1;
    raise(SIGKILL);
    return 0;
}
