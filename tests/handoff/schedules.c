// SPDX-License-Identifier: Apache-2.0
/*
 * schedules.c - every order of steps of real processes, as far as it has few preemptions.
 *
 * Two workers send a batch each, a trainer opens what arrives; the pool has a slot less than there
 * are regions at once. Before each step of the protocol (os.pass) a process asks the explorer and
 * waits. The explorer lets one go on, or kills it, and after a run begins again with the last
 * choice that has an alternative changed: depth first, until there is none. Runs that need more
 * than a few preemptions are left out; they are what the model is for (handoff.pml). Of those with
 * as many preemptions and kills as are allowed, one of EBB_SHARE is made, drawn anew each time.
 *
 * Checked in every run: contents are what was sent, a message is stale only if its sender is dead,
 * nobody fails otherwise, and afterwards all slots are free. EBB_PREEMPTIONS and EBB_KILLS set the
 * bounds; EBB_SHARE=1 makes all runs, some minutes; EBB_SEED draws the same ones again.
 */
#include "base/os.h"
#include "handoff/duo.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 2, TRAINER = WORKERS, ACTORS, SLOTS = 1, CHOICES_MOST = 400 };
enum { GO = 'g', DIE = 'd' };                                  /* what the explorer answers */
enum { STEP = 's', SENDS = 'm', WANTS = 'w', STALE = 'x', HAS = 'h' }; /* what an actor asks */
enum { EXIT_WRONG = 3 };

#define SLOT_BYTES (1 * MIB)
#define BATCH_BYTES 70000

struct message {
    struct ebb_parcel parcel;
    unsigned sender;
};

/* ---- actors ---- */

static int asks; /* of the actor that this process is */

static void ask(char what) {
    char answer = DIE;
    if (write(asks, &what, 1) != 1 || read(asks, &answer, 1) != 1 || answer == DIE)
        raise(SIGKILL);
}

static void pass(const char *step) {
    ask(STEP);
}

/* A worker that gets no slot sends nothing: that may be. */
static int work(ebb_pool *pool, int queue, unsigned number) {
    struct message message = {.sender = number};
    if (!try_send(pool, BATCH_BYTES, number, &message.parcel))
        return ebb_last_error() == EBB_E_SLOTS ? 0 : EXIT_WRONG;
    ask(SENDS);
    return write_all(queue, &message, sizeof message) ? 0 : EXIT_WRONG;
}

/* The queue has a message, or all workers are gone, when the explorer answers. */
static int train(ebb_pool *pool, int queue) {
    struct message message;
    const ssize_t whole = sizeof message;
    for (ask(WANTS); read(queue, &message, sizeof message) == whole; ask(WANTS)) {
        ebb_lease *lease = ebb_parcel_open(pool, &message.parcel);
        if (!lease && ebb_last_error() != EBB_E_STALE)
            return EXIT_WRONG;
        ask(lease ? HAS : STALE);
        if (!write_all(asks, &message.sender, sizeof message.sender))
            return EXIT_WRONG;
        if (lease && !lease_holds(lease, BATCH_BYTES, message.sender))
            return EXIT_WRONG;
        ebb_lease_drop(lease);
    }
    return 0;
}

/* ---- one run ---- */

struct actor {
    pid_t pid;
    int asks;
    char wants;  /* what it waits for; 0: it is gone */
    bool killed;
};

struct run {
    struct actor actors[ACTORS];
    int queue[2];
    unsigned messages, working; /* in the queue; workers that are there */
    unsigned stale, opened;
};

/* What comes next from an actor that goes on: its next question, or its end. */
static void hear(struct run *run, unsigned number) {
    struct actor *actor = &run->actors[number];
    int status;
    if (read(actor->asks, &actor->wants, 1) == 1)
        return;
    actor->wants = 0;
    close(actor->asks);
    run->working -= number < WORKERS;
    assert_int_equal(waitpid(actor->pid, &status, 0), actor->pid);
    if (actor->killed)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void start(struct run *run, ebb_pool *pool) {
    assert_int_equal(pipe2(run->queue, O_NONBLOCK), 0);
    for (unsigned number = 0; number < ACTORS; number++) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        struct actor *actor = &run->actors[number];
        pid_t child = fork();
        assert_true(child >= 0);
        *actor = (struct actor){.pid = child, .asks = ends[0]};
        if (child == 0) {
            asks = ends[1];
            close(ends[0]);
            for (unsigned other = 0; other < number; other++)
                close(run->actors[other].asks);
            os.pass = pass;
            ask(STEP);
            _exit(number == TRAINER ? train(pool, run->queue[0])
                                    : work(pool, run->queue[1], number));
        }
        close(ends[1]);
        hear(run, number);
    }
    run->working = WORKERS;
}

static bool can_go(const struct run *run, unsigned number) {
    char wants = run->actors[number].wants;
    return wants && (wants != WANTS || run->messages || !run->working);
}

/* The actor opened a message, or found it stale, and says whose it is. */
static void note_message(struct run *run, unsigned number, char what) {
    unsigned sender = ACTORS;
    assert_int_equal(read(run->actors[number].asks, &sender, sizeof sender), sizeof sender);
    assert_in_range(sender, 0, WORKERS - 1);
    run->stale += what == STALE;
    run->opened += what == HAS;
    if (what == STALE) /* who sent it is gone, and its slot was needed */
        assert_int_equal(run->actors[sender].wants, 0);
}

static void go_on(struct run *run, unsigned number) {
    char what = run->actors[number].wants;
    run->messages += what == SENDS;
    run->messages -= what == WANTS && run->messages;
    assert_int_equal(write(run->actors[number].asks, &(char){GO}, 1), 1);
    if (what == STALE || what == HAS)
        note_message(run, number, what);
    hear(run, number);
}

static void kill_it(struct run *run, unsigned number) {
    run->actors[number].killed = true;
    assert_int_equal(write(run->actors[number].asks, &(char){DIE}, 1), 1);
    hear(run, number);
}

/* ---- all runs ---- */

/* A choice: 2 * actor, or 2 * actor + 1 to kill it. */
struct explorer {
    struct {
        unsigned taken, count;
        unsigned ways[2 * ACTORS];
    } choices[CHOICES_MOST];
    unsigned known; /* choices that the next run makes as they stand */
    unsigned preemptions_most, kills_most;
    unsigned share; /* one of so many of the last preemptions and kills is made */
    unsigned runs, opened, stale, killed;
};

/* True if one more preemption or kill is made here: always, but for the last one. */
static bool is_drawn(const struct explorer *explorer, unsigned made) {
    bool last = made + 1 == explorer->preemptions_most + explorer->kills_most;
    return !last || random() % explorer->share == 0;
}

/* What can be done now, the actor that went on last first. */
static unsigned list_ways(const struct run *run, const struct explorer *explorer, unsigned last,
                          unsigned preemptions, unsigned kills, unsigned *ways) {
    unsigned count = 0;
    bool goes_on = last < ACTORS && can_go(run, last);
    if (goes_on)
        ways[count++] = 2 * last;
    for (unsigned number = 0; number < ACTORS; number++)
        if (number != last && can_go(run, number) &&
            (!goes_on || (preemptions < explorer->preemptions_most &&
                          is_drawn(explorer, preemptions + kills))))
            ways[count++] = 2 * number;
    for (unsigned number = 0; number < ACTORS && kills < explorer->kills_most; number++)
        if (can_go(run, number) && (number == last || !goes_on) &&
            is_drawn(explorer, preemptions + kills))
            ways[count++] = 2 * number + 1;
    return count;
}

static unsigned choose(struct explorer *explorer, unsigned at, const struct run *run,
                       unsigned last, unsigned preemptions, unsigned kills) {
    assert_true(at < CHOICES_MOST);
    if (at >= explorer->known) {
        explorer->choices[at].taken = 0;
        explorer->choices[at].count = list_ways(run, explorer, last, preemptions, kills,
                                                explorer->choices[at].ways);
        explorer->known = at + 1;
    }
    return explorer->choices[at].ways[explorer->choices[at].taken];
}

static bool anybody(const struct run *run) {
    for (unsigned number = 0; number < ACTORS; number++)
        if (can_go(run, number))
            return true;
    return false;
}

static void play(struct explorer *explorer, ebb_pool *pool) {
    struct run run = {.messages = 0};
    unsigned last = ACTORS, preemptions = 0, kills = 0;
    start(&run, pool);
    for (unsigned at = 0; anybody(&run); at++) {
        unsigned way = choose(explorer, at, &run, last, preemptions, kills);
        unsigned number = way / 2;
        preemptions += last < ACTORS && number != last && can_go(&run, last);
        kills += way % 2;
        if (way % 2)
            kill_it(&run, number);
        else
            go_on(&run, number);
        last = number;
    }
    close(run.queue[0]);
    close(run.queue[1]);
    explorer->runs++;
    explorer->opened += run.opened;
    explorer->stale += run.stale;
    explorer->killed += kills;
}

/* The last choice that has an alternative is changed; false: all runs were made. */
static bool advance(struct explorer *explorer) {
    while (explorer->known) {
        unsigned at = explorer->known - 1;
        if (++explorer->choices[at].taken < explorer->choices[at].count)
            return true;
        explorer->known--;
    }
    return false;
}

static void explore(unsigned preemptions, unsigned kills) {
    struct explorer *explorer = calloc(1, sizeof *explorer);
    explorer->preemptions_most = (unsigned)number_from("EBB_PREEMPTIONS", preemptions);
    explorer->kills_most = (unsigned)number_from("EBB_KILLS", kills);
    explorer->share = (unsigned)number_from("EBB_SHARE", 8);
    assert_true(explorer->share > 0);
    unsigned seed = (unsigned)fresh_seed();
    print_message("# EBB_SEED=%u draws one of %u\n", seed, explorer->share);
    srandom(seed);
    ebb_pool *pool = shared_pool(SLOTS, SLOT_BYTES);
    do {
        play(explorer, pool);
        ebb_pool_reclaim(pool, true);
        assert_states(pool, 0, 0, 0);
        ebb_pool_trim(pool, 0); /* all runs begin alike */
    } while (advance(explorer));
    print_message("# %u runs: %u batches opened, %u stale, %u kills\n", explorer->runs,
                  explorer->opened, explorer->stale, explorer->killed);
    assert_true(explorer->runs > 100 && explorer->opened > explorer->runs / 2);
    assert_true(!explorer->kills_most || explorer->stale);
    pool_end(pool);
    free(explorer);
}

static void orders_without_deaths(void **state) {
    explore(2, 0);
}

static void orders_with_a_death(void **state) {
    explore(1, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_without_deaths),
        cmocka_unit_test(orders_with_a_death),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
