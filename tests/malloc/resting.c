// SPDX-License-Identifier: Apache-2.0
/*
 * resting.c - large blocks of threads that rest: what others have freed goes back to the system;
 * so does what large requests had, though small ones come, and what a scope that stays open has
 * freed. And a process that is idle does nothing for it.
 *
 * Run preloaded with libebb-malloc, with idle_ms:100,turns:wait, and once without it: the C library
 * gives blocks of this size back at once. A thread rests in a wait that libebb-malloc does not see.
 */
#include <stdbool.h>

#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define MIB ((size_t)1 << 20)
#define BLOCK (16 * MIB)
#define CALM_US 10000
#define ASLEEP_S 12 /* after which the thread that gives memory back has nothing to do, and a bit */

enum { THREADS = 4, ROUNDS = 3, SOON_MS = 5000, LATE_MS = 20000, FORKS = 50, IDLE_MS = 300 };

static ebb_site *site;

struct rester {
    pthread_t thread;
    sem_t rests, wakes;
    unsigned char *block;
    size_t bytes; /* of its block */
    unsigned rounds;
    bool in_scope; /* it rests there */
};

static struct rester resters[THREADS];

static void await(sem_t *sem) {
    while (sem_wait(sem) != 0)
        continue;
}

static void *work_and_rest(void *context) {
    struct rester *rester = context;
    for (unsigned round = 0; round < rester->rounds; round++) {
        ebb_step step = ebb_step_begin(site, 0);
        EXPECT((rester->block = malloc(rester->bytes)) != NULL);
        memset(rester->block, (int)round + 1, rester->bytes);
        if (!rester->in_scope)
            EXPECT(ebb_step_end(step) == 0);
        sem_post(&rester->rests);
        await(&rester->wakes);
        if (rester->in_scope)
            EXPECT(ebb_step_end(step) == 0);
    }
    return NULL;
}

static void make_site(void) {
    if (!site)
        site = ebb_site_create(EBB_SITE_OPTIONS(.name = "resting", .scope = true));
}

static void begin_resting_with(size_t bytes, unsigned rounds, bool in_scope) {
    make_site();
    for (unsigned i = 0; i < THREADS; i++) {
        resters[i] = (struct rester){.bytes = bytes, .rounds = rounds, .in_scope = in_scope};
        sem_init(&resters[i].rests, 0, 0);
        sem_init(&resters[i].wakes, 0, 0);
        EXPECT(pthread_create(&resters[i].thread, NULL, work_and_rest, &resters[i]) == 0);
    }
}

static void begin_resting(unsigned rounds, bool in_scope) {
    begin_resting_with(BLOCK, rounds, in_scope);
}

static void await_rest(void) {
    for (unsigned i = 0; i < THREADS; i++)
        await(&resters[i].rests);
}

static void free_all(unsigned round) {
    for (unsigned i = 0; i < THREADS; i++) {
        const unsigned char *block = resters[i].block;
        EXPECT(block[0] == round + 1 && block[BLOCK / 2] == round + 1);
        EXPECT(block[BLOCK - 1] == round + 1);
        free(resters[i].block);
    }
}

static void wake_all(void) {
    for (unsigned i = 0; i < THREADS; i++)
        sem_post(&resters[i].wakes);
}

static void join_all(void) {
    for (unsigned i = 0; i < THREADS; i++)
        EXPECT(pthread_join(resters[i].thread, NULL) == 0);
}

static bool is_gone(size_t before, size_t now) {
    return now <= before - (THREADS - 1) * BLOCK;
}

/* What all of them had is gone, but for one's. */
static void expect_gone(size_t before, unsigned within_ms) {
    size_t now = act_resident();
    for (unsigned ms = 0; !is_gone(before, now) && ms < within_ms; ms += 10) {
        usleep(CALM_US);
        now = act_resident();
    }
    printf("# %zu MiB, then %zu\n", before / MIB, now / MIB);
    EXPECT(is_gone(before, now));
}

/* Of what is held now some goes soon. It goes in parts of a millisecond by the clock, so on a busy
 * machine all of it takes long. */
static void expect_gone_soon(size_t before, size_t held) {
    size_t now = act_resident();
    for (unsigned ms = 0; !is_gone(before, now) && now > held - MIB && ms < SOON_MS; ms += 10) {
        usleep(CALM_US);
        now = act_resident();
    }
    EXPECT(is_gone(before, now) || now <= held - MIB);
    expect_gone(before, LATE_MS);
}

/* They use it again, and it goes again. */
static void go_round(bool in_scope) {
    begin_resting(ROUNDS, in_scope);
    for (unsigned round = 0; round < ROUNDS; round++) {
        await_rest();
        size_t before = act_resident();
        free_all(round);
        expect_gone_soon(before, before);
        wake_all();
    }
    join_all();
}

static void what_outlived_scopes_goes(void) {
    go_round(false);
}

static void what_open_scopes_had_goes(void) {
    go_round(true);
}

static void *have_scopes(void *over) {
    while (!atomic_load((atomic_bool *)over)) {
        ebb_step step = ebb_step_begin(site, 1);
        free(malloc(100000));
        EXPECT(ebb_step_end(step) == 0);
        usleep(100);
    }
    return NULL;
}

static void it_goes_while_others_have_scopes(void) {
    atomic_bool over = false;
    pthread_t thread;
    begin_resting(1, false);
    EXPECT(pthread_create(&thread, NULL, have_scopes, &over) == 0);
    await_rest();
    size_t before = act_resident();
    free_all(0);
    expect_gone_soon(before, before);
    atomic_store(&over, true);
    EXPECT(pthread_join(thread, NULL) == 0);
    wake_all();
    join_all();
}

static void a_trim_takes_it_at_once(void) {
    begin_resting(1, false);
    await_rest();
    size_t before = act_resident();
    free_all(0);
    (void)malloc_trim(0);
    expect_gone(before, 0);
    wake_all();
    join_all();
}

static void a_child_gives_back_what_it_frees(void) {
    begin_resting(1, false);
    await_rest();
    pid_t child = fork();
    if (child == 0) {
        size_t before = act_resident();
        free_all(0);
        (void)malloc_trim(0);
        expect_gone(before, 0);
        _exit(0);
    }
    act_await(child);
    free_all(0); /* as they were */
    wake_all();
    join_all();
}

/* At any moment; each child has its own thread's block, and goes on. */
static void forks_while_it_goes(void) {
    begin_resting_with(2 * MIB, FORKS, false);
    for (unsigned i = 0; i < FORKS; i++) {
        await_rest();
        for (unsigned k = 0; k < THREADS; k++)
            free(resters[k].block);
        pid_t child = fork();
        if (child == 0) {
            ebb_step step = ebb_step_begin(site, 2);
            free(malloc(BLOCK));
            EXPECT(ebb_step_end(step) == 0);
            (void)malloc_trim(0);
            _exit(0);
        }
        if (i % 2)
            (void)malloc_trim(0);
        wake_all();
        act_await(child);
    }
    join_all();
}

static long cpu_ms(void) {
    struct timespec used;
    EXPECT(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* Nothing happens, and nothing is done: not until there is nothing to do, nor from then on. */
static void be_idle(void) {
    long before = cpu_ms();
    sleep(ASLEEP_S);
    long used = cpu_ms() - before;
    printf("# %ld ms of work in %d s\n", used, ASLEEP_S);
    EXPECT(used < IDLE_MS);
}

/* Nobody has begun a scope for long. */
static void it_goes_when_nothing_else_happens(void) {
    begin_resting(1, false);
    await_rest();
    be_idle();
    size_t before = act_resident();
    free_all(0);
    expect_gone(before, LATE_MS);
    wake_all();
    join_all();
}

static void request(size_t bytes) {
    ebb_step step = ebb_step_begin(site, 3);
    free(malloc(bytes));
    EXPECT(ebb_step_end(step) == 0);
}

/* The same program asks whether it is alive. */
static void what_a_large_request_had_goes_though_small_ones_come(void) {
    void *blocks[THREADS];
    make_site();
    ebb_step step = ebb_step_begin(site, 3);
    for (unsigned i = 0; i < THREADS; i++) {
        EXPECT((blocks[i] = malloc(BLOCK)) != NULL);
        memset(blocks[i], 1, BLOCK);
    }
    size_t before = act_resident(), now = before;
    for (unsigned i = 0; i < THREADS; i++)
        free(blocks[i]);
    EXPECT(ebb_step_end(step) == 0);
    for (unsigned ms = 0; now > before - (THREADS - 1) * BLOCK && ms < LATE_MS; ms += 10) {
        request(100);
        usleep(CALM_US);
        now = act_resident();
    }
    printf("# %zu MiB, then %zu\n", before / MIB, now / MIB);
    EXPECT(now <= before - (THREADS - 1) * BLOCK);
}

/* ---- scopes that stay open ---- */

static void fill_all(void **blocks) {
    for (unsigned i = 0; i < THREADS; i++) {
        EXPECT((blocks[i] = malloc(BLOCK)) != NULL);
        memset(blocks[i], 1, BLOCK);
    }
}

/* They are freed, and gone a moment later. */
static void empty_all(void **blocks) {
    size_t before = act_resident();
    for (unsigned i = 0; i < THREADS; i++)
        free(blocks[i]);
    expect_gone_soon(before, before);
}

/* As a connection that waits for its next request, and has something of its own. */
static void what_a_scope_that_waits_has_freed_goes(void) {
    void *blocks[THREADS];
    make_site();
    ebb_step step = ebb_step_begin(site, 4);
    unsigned char *kept = malloc(20000);
    memset(kept, 7, 20000);
    for (unsigned round = 0; round < ROUNDS; round++) {
        EXPECT(ebb_scope_enter(step) == 0);
        fill_all(blocks);
        EXPECT(ebb_scope_leave(step) == 0);
        empty_all(blocks);
        for (unsigned i = 0; i < 20000; i++)
            EXPECT(kept[i] == 7);
    }
    free(kept);
    EXPECT(ebb_step_end(step) == 0);
}

/* Its thread is at work, and has nothing large for it. */
static void what_a_scope_that_serves_has_freed_goes(void) {
    void *blocks[THREADS];
    make_site();
    ebb_step step = ebb_step_begin(site, 5);
    fill_all(blocks);
    empty_all(blocks);
    EXPECT(ebb_step_end(step) == 0);
}

/* The last turn of a loop: no wait ends it. */
static void what_a_turn_has_freed_goes(void) {
    void *blocks[THREADS];
    int files[2];
    char byte = 0;
    EXPECT(pipe(files) == 0);
    for (unsigned i = 0; i < 5; i++) {
        struct pollfd file = {.fd = files[0], .events = POLLIN};
        EXPECT(write(files[1], &byte, 1) == 1);
        EXPECT(poll(&file, 1, -1) == 1);
        EXPECT(read(files[0], &byte, 1) == 1);
        free(malloc(100));
    }
    fill_all(blocks);
    empty_all(blocks);
}

/* The thread that gives memory back sleeps by then. */
static void what_a_long_scope_had_goes_soon(void) {
    void *blocks[THREADS];
    make_site();
    ebb_step step = ebb_step_begin(site, 6);
    fill_all(blocks);
    sleep(ASLEEP_S);
    size_t before = act_resident();
    for (unsigned i = 0; i < THREADS; i++)
        free(blocks[i]);
    EXPECT(ebb_step_end(step) == 0);
    expect_gone_soon(before, act_resident());
}

int main(void) {
    static const struct act acts[] = {
        ACT(what_outlived_scopes_goes),
        ACT(what_open_scopes_had_goes),
        ACT(it_goes_while_others_have_scopes),
        ACT(a_trim_takes_it_at_once),
        ACT(a_child_gives_back_what_it_frees),
        ACT(forks_while_it_goes),
        ACT(it_goes_when_nothing_else_happens),
        ACT(what_a_large_request_had_goes_though_small_ones_come),
        ACT(what_a_scope_that_waits_has_freed_goes),
        ACT(what_a_scope_that_serves_has_freed_goes),
        ACT(what_a_turn_has_freed_goes),
        ACT(what_a_long_scope_had_goes_soon),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
