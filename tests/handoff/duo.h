// SPDX-License-Identifier: Apache-2.0
/* duo.h - two processes at one shared pool, and what tests of the hand-off ask about it. */
#ifndef HANDOFF_DUO_H
#define HANDOFF_DUO_H

#include "kit/test.h"

#include <sys/types.h>

/* A shared pool; fails the test if there is none. */
ebb_pool *shared_pool(unsigned slots, size_t slot_bytes);

/* How many slots are written to, sent and held, as their words say. */
void count_states(ebb_pool *pool, unsigned counts[4]);
void assert_states(ebb_pool *pool, unsigned writing, unsigned sent, unsigned held);

/* One region with one block of that pattern, sent. */
bool try_send(ebb_pool *pool, size_t bytes, unsigned seed, struct ebb_parcel *parcel);
struct ebb_parcel send_pattern(ebb_pool *pool, size_t bytes, unsigned seed);
bool lease_holds(const ebb_lease *lease, size_t bytes, unsigned seed);

bool write_all(int out, const void *bytes, size_t count);
bool read_all(int in, void *bytes, size_t count);

/* A child that writes to `in`. */
struct duo {
    pid_t child;
    int in;
};

/* In a part, whose exit status says that the claim does not hold. */
#define EXPECT(claim) \
    do { \
        if (!(claim)) { \
            print_error("child, line %d: %s\n", __LINE__, ebb_last_error_text()); \
            return __LINE__ % 200 + 1; \
        } \
    } while (0)

typedef int duo_part(ebb_pool *pool, int out, const void *context);

struct duo duo_fork(ebb_pool *pool, duo_part *part, const void *context);

/* By a system call that the C library knows nothing of. */
pid_t fork_raw(void);
struct duo duo_fork_raw(ebb_pool *pool, duo_part *part, const void *context);

/* This program once more, with the pool's descriptor; it calls duo_executed() in main(). */
struct duo duo_execute(ebb_pool *pool, const char *batches);
int duo_executed(const char *fd, const char *batches, duo_part *part);

/* Its exit status, or the signal that ended it. */
int duo_end(struct duo *duo);

/* A part: sends 5000 bytes of seed 7, holds another parcel, writes a third, and kills itself. */
int die_with_three(ebb_pool *pool, int out, const void *context);

#endif
