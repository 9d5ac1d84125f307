// SPDX-License-Identifier: Apache-2.0
/*
 * deaths.c - a process is killed at each step of the protocol in turn, and others go on: every
 * slot becomes free again, and nothing that lives is taken for dead.
 */
#include "base/os.h"
#include "handoff/duo.h"
#include "pool/shared.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (4 * MIB)
#define SLOTS 3
#define STEPS_MOST 200

static unsigned steps_left;
static const char *last_step;

static void pass(const char *step) {
    last_step = step;
    if (--steps_left == 0)
        raise(SIGKILL);
}

/* Everything that a process does at a pool. 0, or a line that was not as it should be. */
static int do_everything(ebb_pool *pool) {
    struct ebb_parcel parcel;
    ebb_region closed = OPEN(.pool = pool);
    if (!ebb_region_alloc(closed, 100000, 64) || ebb_region_close(closed) != 0)
        return __LINE__;
    for (unsigned round = 0; round < 2; round++) {
        if (!try_send(pool, 200000 + round * MIB, round, &parcel))
            return __LINE__;
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        if (!lease || !lease_holds(lease, 200000 + round * MIB, round))
            return __LINE__;
        ebb_lease_drop(lease);
    }
    if (!try_send(pool, 5000, 1, &parcel) || ebb_parcel_discard(pool, &parcel) != 0)
        return __LINE__;
    ebb_pool_trim(pool, 0);
    ebb_pool_reclaim(pool, true);
    return 0;
}

/* A child that dies at the n-th step; false if it had fewer. */
static bool dies_at(ebb_pool *pool, unsigned nth) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        steps_left = nth;
        os.pass = pass;
        _exit(do_everything(pool) % 100);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status))
        assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void assert_usable(ebb_pool *pool) {
    struct ebb_parcel parcels[SLOTS];
    for (unsigned i = 0; i < SLOTS; i++)
        parcels[i] = send_pattern(pool, 2 * MIB + i, i);
    for (unsigned i = 0; i < SLOTS; i++) {
        ebb_lease *lease = ebb_parcel_open(pool, &parcels[i]);
        assert_true(lease_holds(lease, 2 * MIB + i, i));
        ebb_lease_drop(lease);
    }
    assert_states(pool, 0, 0, 0);
}

/* Reclaimed by a call, and all slots are free. */
static void the_killed_leave_nothing_behind(void **state) {
    ebb_pool *pool = shared_pool(SLOTS, SLOT_BYTES);
    unsigned nth = 1, reclaimed = 0;
    for (; nth < STEPS_MOST && dies_at(pool, nth); nth++) {
        unsigned counts[4];
        count_states(pool, counts);
        unsigned left = SLOTS - counts[SLOT_FREE];
        assert_int_equal(ebb_pool_reclaim(pool, true), left);
        reclaimed += left;
        assert_states(pool, 0, 0, 0);
    }
    assert_in_range(nth, 40, STEPS_MOST - 1);
    assert_true(reclaimed > nth / 2);
    assert_usable(pool);
    pool_end(pool);
}

/* Nobody asks: slots come back because they are needed, whatever the killed did. */
static void the_killed_are_found_when_slots_are_needed(void **state) {
    ebb_pool *pool = shared_pool(SLOTS, SLOT_BYTES);
    for (unsigned nth = 1; nth < STEPS_MOST && dies_at(pool, nth); nth++)
        if (nth % 3 == 0)
            assert_usable(pool);
    assert_usable(pool);
    pool_end(pool);
}

/* What this process has in the meantime is not touched by any of it. */
static void the_living_keep_what_they_have(void **state) {
    ebb_pool *pool = shared_pool(SLOTS, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 300000, 5);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    ebb_region region = OPEN(.pool = pool);
    void *block = block_of(region, 500000, 64);
    for (unsigned nth = 1; nth < STEPS_MOST && dies_at(pool, nth); nth++) {
        assert_true(lease_holds(lease, 300000, 5));
        assert_true(pattern_holds(block, 500000, 500000));
        ebb_pool_reclaim(pool, true);
        assert_states(pool, 1, 0, 1);
    }
    ebb_lease_drop(lease);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* The whole machine is made of random deaths: workers that send, until one is killed. */
static void storms_of_kills_lose_nothing(void **state) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(
        .kind = EBB_KIND_SHARED, .slots = 6, .slot_bytes = SLOT_BYTES, .wait_ns = 5000000000));
    assert_non_null(pool);
    srand(1);
    unsigned right = 0;
    for (unsigned storm = 0; storm < 60; storm++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct ebb_parcel parcel;
            steps_left = 1 + (unsigned)rand() % 150 + storm;
            os.pass = pass;
            for (unsigned i = 0; try_send(pool, 30000 + i, i, &parcel); i++)
                write_all(ends[1], &parcel, sizeof parcel);
            _exit(1);
        }
        close(ends[1]);
        struct ebb_parcel parcel;
        for (unsigned i = 0; read_all(ends[0], &parcel, sizeof parcel); i++) {
            ebb_lease *lease = ebb_parcel_open(pool, &parcel);
            assert_non_null(lease);
            assert_true(lease_holds(lease, 30000 + i, i));
            right++;
            ebb_lease_drop(lease);
        }
        close(ends[0]);
        int status;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        if (storm % 4 == 0) /* what it has sent and said to nobody: else who comes later waits */
            ebb_pool_reclaim(pool, true);
    }
    assert_true(right > 200);
    ebb_pool_reclaim(pool, true);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

/* ---- waiting ---- */

static int hold_for_a_while(ebb_pool *pool, int out, const void *context) {
    const unsigned *how = context;
    struct ebb_parcel parcel;
    if (!try_send(pool, 5000, 1, &parcel))
        return 1;
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    write_all(out, "h", 1);
    usleep(how[0] * 1000);
    if (how[1])
        raise(SIGKILL);
    ebb_lease_drop(lease);
    usleep(300000); /* alive: what it freed it freed by itself */
    return 0;
}

static ebb_pool *waiting_pool_asking(uint64_t wait_ms, bool (*go_on)(void *), void *context) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(
        .kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = SLOT_BYTES,
        .wait_ns = wait_ms * 1000000, .go_on = go_on, .go_on_context = context));
    assert_non_null(pool);
    return pool;
}

static ebb_pool *waiting_pool(uint64_t wait_ms) {
    return waiting_pool_asking(wait_ms, NULL, NULL);
}

static void who_waits_gets_what_becomes_free(void **state) {
    for (unsigned killed = 0; killed < 2; killed++) {
        ebb_pool *pool = waiting_pool(20000);
        unsigned how[] = {100, killed};
        char byte;
        struct duo duo = duo_fork(pool, hold_for_a_while, how);
        assert_true(read_all(duo.in, &byte, 1));
        assert_refused(ebb_pool_destroy(NULL), EBB_E_ARGUMENT);
        uint64_t began = os.now_ns();
        ebb_region region = OPEN(.pool = pool);
        uint64_t waited = os.now_ns() - began;
        assert_true(ebb_region_is_open(region));
        assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT); /* no call has failed since */
        assert_true(waited < 10000000000);
        ebb_region_close(region);
        assert_int_equal(duo_end(&duo), killed ? SIGKILL : 0);
        pool_end(pool);
    }
}

static void waiting_ends(void **state) {
    ebb_pool *pool = waiting_pool(150);
    ebb_region region = OPEN(.pool = pool);
    uint64_t began = os.now_ns();
    ebb_region none = OPEN(.pool = pool);
    uint64_t waited = os.now_ns() - began;
    assert_false(ebb_region_is_open(none));
    assert_int_equal(ebb_last_error(), EBB_E_SLOTS);
    assert_true(waited >= 150000000);
    ebb_region_close(region);
    pool_end(pool);
}

/* Somebody who is asked whether to go on waiting. */
struct asked {
    ebb_pool *pool;
    unsigned times, most;
    ebb_region frees; /* closed when asked for the last time; or none */
};

static volatile sig_atomic_t alarmed;

static void on_alarm(int number) {
    (void)number;
    alarmed = 1;
}

static bool until_most(void *context) {
    struct asked *asked = context;
    assert_int_equal(pool_stats_of(asked->pool).open_regions, 1); /* no lock is held */
    if (++asked->times < asked->most)
        return true;
    return asked->frees.lane && ebb_region_close(asked->frees) == 0;
}

static bool until_alarmed(void *context) {
    struct asked *asked = context;
    asked->times++;
    return !alarmed;
}

static void who_is_asked_ends_the_wait(void **state) {
    struct asked asked = {.most = 3};
    asked.pool = waiting_pool_asking(60000, until_most, &asked);
    ebb_region region = OPEN(.pool = asked.pool);
    uint64_t began = os.now_ns();
    assert_false(ebb_region_is_open(OPEN(.pool = asked.pool)));
    assert_int_equal(ebb_last_error(), EBB_E_SLOTS);
    assert_text_names("1 are written to");
    assert_true(os.now_ns() - began < 50000000000);
    assert_int_equal(asked.times, 3);
    asked = (struct asked){.pool = asked.pool, .most = 1};
    began = os.now_ns();
    for (unsigned i = 0; i < 40; i++) /* it is asked before any wait */
        assert_false(ebb_region_is_open(OPEN(.pool = asked.pool)));
    assert_true(os.now_ns() - began < 2000000000);
    assert_int_equal(asked.times, 40);
    asked = (struct asked){.pool = asked.pool, .most = 1, .frees = region};
    region = OPEN(.pool = asked.pool);
    assert_true(ebb_region_is_open(region));
    ebb_region_close(region);
    pool_end(asked.pool);
}

/* A signal is told at once: with the next look after a tenth of a second at most. */
static void a_signal_is_asked_about(void **state) {
    struct asked asked = {.most = 0};
    asked.pool = waiting_pool_asking(60000, until_alarmed, &asked);
    ebb_region region = OPEN(.pool = asked.pool);
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    const struct itimerval soon = {.it_value = {.tv_usec = 30000}};
    struct sigaction before;
    alarmed = 0;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    assert_false(ebb_region_is_open(OPEN(.pool = asked.pool)));
    assert_int_equal(ebb_last_error(), EBB_E_SLOTS);
    assert_true(alarmed && asked.times > 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    ebb_region_close(region);
    pool_end(asked.pool);
}

static int send_and_end(ebb_pool *pool, int out, const void *context) {
    struct ebb_parcel parcel;
    return !try_send(pool, 5000, 7, &parcel) || !write_all(out, &parcel, sizeof parcel);
}

/* A message of a process that is gone, which is opened while somebody waits for the slot. */
struct late_message {
    ebb_pool *pool;
    struct ebb_parcel parcel;
    unsigned opened;
};

static bool open_it(void *context) {
    struct late_message *late = context;
    ebb_lease *lease = late->opened ? NULL : ebb_parcel_open(late->pool, &late->parcel);
    late->opened += lease && lease_holds(lease, 5000, 7);
    ebb_lease_drop(lease);
    return true;
}

static void who_waits_leaves_messages_of_the_dead_alone(void **state) {
    struct late_message late = {.opened = 0};
    late.pool = waiting_pool_asking(60000, open_it, &late);
    struct duo duo = duo_fork(late.pool, send_and_end, NULL);
    assert_true(read_all(duo.in, &late.parcel, sizeof late.parcel));
    assert_int_equal(duo_end(&duo), 0);
    ebb_region region = OPEN(.pool = late.pool);
    assert_true(ebb_region_is_open(region));
    assert_int_equal(late.opened, 1);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(late.pool);
}

/* Whatever became of the message: nobody waits longer for it than he was told to. */
static void what_the_dead_sent_goes_when_the_time_is_over(void **state) {
    ebb_pool *pool = waiting_pool(150);
    struct ebb_parcel parcel;
    struct duo duo = duo_fork(pool, send_and_end, NULL);
    assert_true(read_all(duo.in, &parcel, sizeof parcel));
    assert_int_equal(duo_end(&duo), 0);
    uint64_t began = os.now_ns();
    ebb_region region = OPEN(.pool = pool);
    assert_true(ebb_region_is_open(region));
    assert_true(os.now_ns() - began >= 150000000);
    assert_null(ebb_parcel_open(pool, &parcel));
    assert_int_equal(ebb_last_error(), EBB_E_STALE);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* ---- how often the system is asked who lives ---- */

#define MANY 200

/* Holds so many slots until it is killed; between them it had as many that are free again. */
static int hold_many(ebb_pool *pool, int out, const void *context) {
    const unsigned count = *(const unsigned *)context;
    ebb_region regions[2 * MANY];
    for (unsigned i = 0; i < 2 * count; i++) {
        regions[i] = OPEN(.pool = pool);
        EXPECT(ebb_region_alloc(regions[i], 5000, 64));
    }
    for (unsigned i = 0; i < 2 * count; i += 2)
        EXPECT(ebb_region_close(regions[i]) == 0);
    EXPECT(write_all(out, "", 1));
    for (;;)
        pause();
}

static int (*is_locked)(int fd, size_t byte, bool *locked);
static unsigned questions;

static int ask(int fd, size_t byte, bool *locked) {
    questions++;
    return is_locked(fd, byte, locked);
}

/* Opens regions until no slot is left; the most questions that one of them took. */
static unsigned count_questions(unsigned held) {
    ebb_pool *pool = shared_pool(3 * held, 2 * MIB);
    struct duo duo = duo_fork(pool, hold_many, &held);
    ebb_region regions[2 * MANY];
    unsigned most = 0, opened = 0;
    char ready;
    assert_true(read_all(duo.in, &ready, 1));
    is_locked = os.file_is_locked;
    os.file_is_locked = ask;
    do {
        questions = 0;
        regions[opened] = OPEN(.pool = pool);
        most = questions > most ? questions : most;
    } while (ebb_region_is_open(regions[opened]) && ++opened < 2 * MANY);
    os.file_is_locked = is_locked;
    assert_true(opened == 2 * held);
    kill(duo.child, SIGKILL);
    assert_int_equal(duo_end(&duo), SIGKILL);
    ebb_region found = OPEN(.pool = pool); /* what it held */
    assert_true(ebb_region_is_open(found));
    assert_int_equal(ebb_region_close(found), 0);
    while (opened)
        assert_int_equal(ebb_region_close(regions[--opened]), 0);
    pool_end(pool);
    return most;
}

static void a_look_at_the_slots_asks_about_each_process_once(void **state) {
    assert_int_equal(count_questions(5), 1);
    assert_int_equal(count_questions(MANY), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_killed_leave_nothing_behind),
        cmocka_unit_test(the_killed_are_found_when_slots_are_needed),
        cmocka_unit_test(the_living_keep_what_they_have),
        cmocka_unit_test(storms_of_kills_lose_nothing),
        cmocka_unit_test(who_waits_gets_what_becomes_free),
        cmocka_unit_test(waiting_ends),
        cmocka_unit_test(who_is_asked_ends_the_wait),
        cmocka_unit_test(a_signal_is_asked_about),
        cmocka_unit_test(who_waits_leaves_messages_of_the_dead_alone),
        cmocka_unit_test(what_the_dead_sent_goes_when_the_time_is_over),
        cmocka_unit_test(a_look_at_the_slots_asks_about_each_process_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
