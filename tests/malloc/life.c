// SPDX-License-Identifier: Apache-2.0
/*
 * life.c - threads that come and go, forks, jumps and signals, with scopes open and without.
 *
 * Run preloaded with libebb-malloc, and once without it: then steps are only steps, and all of it
 * must hold as well.
 */
#include <stdbool.h>

#include "malloc/blocks.h"

#include <ebb/ebb.h>

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

static ebb_site *site;

static ebb_step begin(void) {
    if (!site)
        site = ebb_site_create(EBB_SITE_OPTIONS(.name = "life", .scope = true));
    ebb_step step = ebb_step_begin(site, 0);
    EXPECT(ebb_region_is_open(step.region));
    return step;
}

static void finish(ebb_step step) {
    EXPECT(ebb_step_end(step) == 0);
}

static void churn(unsigned rounds) {
    void *blocks[32] = {NULL};
    unsigned kinds[32] = {0};
    for (unsigned i = 0; i < rounds; i++) {
        unsigned place = i * 7 % 32;
        if (blocks[place])
            end(blocks[place], kinds[place]);
        blocks[place] = make(kinds[place] = i);
    }
    for (unsigned i = 0; i < 32; i++)
        if (blocks[i])
            end(blocks[i], kinds[i]);
}

/* ---- threads ---- */

static void *short_life(void *context) {
    ebb_step step = begin();
    unsigned kind = (unsigned)(uintptr_t)context;
    void *first = make(kind), *second = make(kind + 3);
    if (kind % 4)
        finish(step); /* the others leave it open */
    end(second, kind + 3);
    return first;
}

static void a_thousand_short_threads(void) {
    size_t early = 0;
    for (unsigned i = 0; i < 1000; i++) {
        pthread_t threads[3];
        for (unsigned k = 0; k < 3; k++)
            EXPECT(pthread_create(&threads[k], NULL, short_life, (void *)(uintptr_t)(i + k)) == 0);
        for (unsigned k = 0; k < 3; k++) {
            void *first = NULL;
            EXPECT(pthread_join(threads[k], &first) == 0);
            end(first, i + k);
        }
        if (i == 300)
            early = act_resident();
    }
    EXPECT(act_resident() < early + ((size_t)16 << 20));
}

static pthread_key_t keys[4];
static atomic_uint destroyed;

/* Runs in each round of destructors, before and after those of the library. */
static void destroy(void *value) {
    unsigned round = *(unsigned *)value;
    free(value);
    churn(40);
    ebb_step step = begin();
    churn(40);
    void *kept = make(2);
    if (round % 2)
        finish(step);
    end(kept, 2);
    atomic_fetch_add(&destroyed, 1);
    if (round == 3)
        return;
    unsigned *next = malloc(sizeof *next);
    *next = round + 1;
    pthread_setspecific(keys[round], next);
}

static void *set_values(void *context) {
    if (context)
        begin();
    for (unsigned i = 0; i < 4; i++) {
        unsigned *value = malloc(sizeof *value);
        *value = i;
        pthread_setspecific(keys[i], value);
    }
    churn(50);
    return NULL;
}

static void destructors_of_threads_allocate(void) {
    pthread_key_create(&keys[0], destroy);
    pthread_key_create(&keys[1], destroy);
    finish(begin());
    pthread_key_create(&keys[2], destroy);
    pthread_key_create(&keys[3], destroy);
    unsigned rounds = 0;
    for (; act_goes_on(rounds, 100); rounds++)
        on_thread(set_values, (void *)(uintptr_t)(rounds % 2));
    EXPECT(atomic_load(&destroyed) >= 4 * rounds);
}

static void *exits_inside(void *context) {
    begin();
    begin();
    free(make(5));
    pthread_exit(make((unsigned)(uintptr_t)context));
}

static void *is_cancelled(void *context) {
    begin();
    atomic_store((atomic_bool *)context, true);
    for (;;) {
        churn(10);
        pthread_testcancel();
    }
    return NULL;
}

static void threads_die_inside_of_scopes(void) {
    for (unsigned i = 0; i < 60; i++) {
        pthread_t thread;
        void *kept = NULL;
        atomic_bool begun = false;
        EXPECT(pthread_create(&thread, NULL, exits_inside, (void *)(uintptr_t)i) == 0);
        EXPECT(pthread_join(thread, &kept) == 0);
        EXPECT(pthread_create(&thread, NULL, is_cancelled, &begun) == 0);
        while (!atomic_load(&begun))
            sched_yield();
        EXPECT(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
        end(kept, i);
    }
}

static void *on_a_small_stack(void *context) {
    for (unsigned i = 0; i < 50; i++) {
        ebb_step step = begin();
        churn(60);
        void *kept = make(i);
        finish(step);
        end(kept, i);
    }
    return context;
}

static void *is_about_to_die(void *context) {
    EXPECT(pthread_cancel(pthread_self()) == 0);
    ebb_step step = begin(); /* as malloc(), nothing in here is a place to be cancelled at */
    churn(10);
    finish(step);
    *(bool *)context = true;
    return NULL;
}

/* The first scope of the process is theirs: what it waits for must not be left half done. */
static void threads_are_cancelled_as_they_begin(void) {
    for (unsigned i = 0; i < 20; i++) {
        bool lived = false;
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, is_about_to_die, &lived) == 0);
        EXPECT(pthread_join(thread, NULL) == 0 && lived);
    }
}

static void small_stacks(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    EXPECT(pthread_attr_init(&attributes) == 0);
    EXPECT(pthread_attr_setstacksize(&attributes, (size_t)32 << 10) == 0);
    EXPECT(pthread_create(&thread, &attributes, on_a_small_stack, NULL) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
}

static _Atomic(void *) parcels[64];
static atomic_bool over;

static void *exchange(void *context) {
    for (unsigned i = 0; act_goes_on(i, 4000); i++) {
        ebb_step step = begin();
        for (unsigned k = 0; k < 5; k++) {
            unsigned place = (i * 31 + k * 7) % 64;
            void *other = atomic_exchange(&parcels[place], make(place));
            if (other)
                end(other, place);
        }
        finish(step);
    }
    return context;
}

static void threads_free_each_others_blocks(void) {
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        EXPECT(pthread_create(&threads[i], NULL, exchange, NULL) == 0);
    for (unsigned i = 0; i < 4; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    for (unsigned i = 0; i < 64; i++)
        end(parcels[i], i);
}

/* ---- forks ---- */

/* All that a child may want to do with what its parent had. */
static void live_on(void *blocks[], unsigned count, ebb_step step) {
    churn(100);
    for (unsigned i = 0; i < count; i++)
        end(blocks[i], i);
    ebb_step inner = begin();
    churn(100);
    finish(inner);
    (void)ebb_step_end(step); /* done or, in another thread's child, refused */
    churn(100);
}

static void *fork_inside(void *context) {
    for (unsigned round = 0; act_goes_on(round, 20); round++) {
        void *blocks[2 * SIZES];
        for (unsigned i = 0; i < SIZES; i++)
            blocks[i] = make(i);
        ebb_step outer = begin(), step = begin();
        for (unsigned i = SIZES; i < 2 * SIZES; i++)
            blocks[i] = make(i);
        if (round % 2)
            finish(step);
        pid_t child = fork();
        if (child == 0) {
            live_on(blocks, 2 * SIZES, outer);
            pid_t grandchild = fork();
            if (grandchild == 0) {
                churn(100);
                exit(0);
            }
            act_await(grandchild);
            exit(0);
        }
        act_await(child);
        for (unsigned i = 0; i < 2 * SIZES; i++)
            end(blocks[i], i);
        if (!(round % 2))
            finish(step);
        finish(outer);
    }
    return context;
}

static void forks_in_the_middle_of_scopes(void) {
    fork_inside(NULL);
    on_thread(fork_inside, NULL);
    fork_inside(NULL);
}

static void *stay_busy(void *context) {
    for (unsigned i = 0; !atomic_load(&over); i++) {
        ebb_step step = {0};
        if (i % 3)
            step = begin();
        churn(30);
        unsigned place = (i * 5 + (unsigned)(uintptr_t)context) % 64;
        void *other = atomic_exchange(&parcels[place], make(place));
        if (other)
            end(other, place);
        if (i % 3)
            finish(step);
    }
    return NULL;
}

/* Whatever the others are in the middle of: the child does not wait for them. */
static void forks_while_others_allocate(void) {
    pthread_t threads[3];
    finish(begin());
    for (uintptr_t i = 0; i < 3; i++)
        EXPECT(pthread_create(&threads[i], NULL, stay_busy, (void *)i) == 0);
    for (unsigned i = 0; act_goes_on(i, 200); i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(CHILD_SECONDS);
            for (unsigned k = 0; k < 64; k++) {
                void *block = atomic_exchange(&parcels[k], NULL);
                if (block)
                    end(block, k);
            }
            if (ebb_scope_is_served()) /* else sites that others were at work in are left alone */
                live_on(NULL, 0, (ebb_step){0});
            churn(100);
            _exit(0);
        }
        act_await(child);
        churn(10);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 3; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
}

static void *free_much(void *context) {
    while (!atomic_load(&over))
        end(make(2), 2);
    return context;
}

/* Nobody has begun a scope yet, in the child no more than in the parent. */
static void forks_before_there_is_a_scope(void) {
    pthread_t threads[3];
    for (unsigned i = 0; i < 3; i++)
        EXPECT(pthread_create(&threads[i], NULL, free_much, NULL) == 0);
    for (unsigned i = 0; act_goes_on(i, 200); i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(CHILD_SECONDS);
            churn(100);
            finish(begin());
            _exit(0);
        }
        act_await(child);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 3; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
}

#define TELLS "--tells"

/* A program that forks before it has a scope; the child has one, and a file of statistics. */
static int tell(void) {
    pid_t child = fork();
    if (child == 0) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/ebb-life.%ld", (long)getpid());
        finish(begin());
        for (unsigned i = 0; i < 500 && access(path, R_OK) != 0; i++)
            usleep(10000);
        EXPECT(unlink(path) == 0);
        _exit(0);
    }
    act_await(child);
    return 0;
}

static void children_tell_their_own_statistics(void) {
    if (!ebb_scope_is_served())
        return;
    pid_t child = fork();
    if (child == 0) {
        setenv("EBB_MALLOC_STATS", "/tmp/ebb-life.%p", 1);
        execl("/proc/self/exe", "life", TELLS, (char *)NULL);
        _exit(1);
    }
    act_await(child);
    char path[64];
    snprintf(path, sizeof path, "/tmp/ebb-life.%ld", (long)child);
    unlink(path);
}

static void programs_are_run_from_scopes(void) {
    ebb_step step = begin();
    EXPECT(system("true") == 0);
    FILE *pipe = popen("echo 5", "r");
    int number = 0;
    EXPECT(pipe && fscanf(pipe, "%d", &number) == 1 && number == 5);
    finish(step);
    EXPECT(pclose(pipe) == 0);
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    act_await(child);
}

/* ---- jumps and signals ---- */

static jmp_buf out;

static void jump_out(unsigned depth) {
    for (unsigned i = 0; i <= depth; i++) {
        begin();
        free(make(i));
    }
    longjmp(out, 1);
}

static void scopes_are_jumped_out_of(void) {
    for (volatile unsigned i = 0; i < 200; i++) {
        ebb_step step = begin();
        void *volatile before = make(i);
        if (setjmp(out) == 0)
            jump_out(i % 5);
        void *after = make(i + 1);
        finish(step);
        end(before, i);
        end(after, i + 1);
    }
    churn(1000);
}

static void *volatile kept_by_handler;
static volatile sig_atomic_t handled;

static void handler(int number) {
    int before = errno;
    ebb_step step = begin();
    churn(20);
    if (kept_by_handler)
        end(kept_by_handler, (unsigned)number);
    kept_by_handler = make((unsigned)number);
    finish(step);
    churn(20);
    handled++;
    errno = before;
}

/* Where the program itself was not inside of malloc(); else glibc's may deadlock, too. */
static void handlers_of_signals_allocate(void) {
    struct sigaction action = {.sa_handler = handler};
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    for (unsigned i = 0; i < 300; i++) {
        ebb_step step = begin();
        void *block = make(i);
        errno = 77;
        EXPECT(raise(SIGUSR1) == 0);
        EXPECT(errno == 77);
        end(block, i);
        finish(step);
    }
    EXPECT(handled == 300);
}

static void ten_thousand_scopes_are_open(void) {
    enum { MANY = 10000 };
    static ebb_step steps[MANY];
    static void *blocks[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        steps[i] = begin();
        blocks[i] = make(i % 4);
        if (i % 100 == 0)
            free(make(6));
        if (i % 3 == 0 && ebb_scope_is_served())
            EXPECT(ebb_scope_leave(steps[i]) == 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        unsigned next = i * 7919 % MANY; /* in no order */
        finish(steps[next]);
        end(blocks[next], next % 4);
    }
}

/* ---- the end ---- */

static void *volatile left;

static void at_the_end(void) {
    churn(50);
    end(left, 3);
    ebb_step step = begin();
    churn(50);
    finish(step);
}

static __attribute__((destructor)) void later_still(void) {
    churn(50);
}

static void what_runs_at_exit_allocates(void) {
    EXPECT(atexit(at_the_end) == 0);
    begin();
    left = make(3);
}

static void *stays(void *context) {
    begin();
    for (;;)
        churn(100);
    return context;
}

/* The process ends while threads allocate. */
static void exit_while_others_allocate(void) {
    for (unsigned i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            alarm(CHILD_SECONDS);
            for (unsigned k = 0; k < 3; k++)
                EXPECT(pthread_create(&thread, NULL, stays, NULL) == 0);
            churn(200);
            exit(0);
        }
        act_await(child);
    }
}

/* However much is kept from being used again, it is bounded. */
static void what_is_freed_goes(void) {
    for (unsigned i = 0; i < 5000; i++)
        end(make(1), 1);
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < 200; i++) {
        unsigned char *block = malloc(7 << 20);
        EXPECT(block);
        block[0] = 1;
        free(block);
    }
    EXPECT(mallinfo2().uordblks < before + ((size_t)64 << 20));
}

static void zeroed_memory_comes_when_it_is_touched(void) {
    ebb_step step = begin();
    for (unsigned i = 0; i < 2; i++) {
        size_t bytes = (size_t)1 << 30, before = act_resident();
        unsigned char *block = calloc(1, bytes);
        EXPECT(block && !block[0] && !block[bytes / 2] && !block[bytes - 1]);
        EXPECT(act_resident() < before + bytes / 4);
        free(block);
        if (i == 0)
            finish(step); /* and once without a scope */
    }
}

static long faults(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

/* By the first thread too, whose arena jemalloc makes before it reads its settings. */
static void pages_of_large_blocks_stay_for_the_next(void) {
    enum { BYTES = 9 << 20, PAGES = BYTES / 4096, ROUNDS = 20 };
    const char *preloaded = getenv("LD_PRELOAD");
    long before = 0;
    if (preloaded && strstr(preloaded, "hardened"))
        return; /* nobody may touch these pages then */
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (i == ROUNDS / 2)
            before = faults();
        volatile unsigned char *block = malloc(BYTES);
        EXPECT(block);
        for (size_t page = 0; page < PAGES; page++)
            block[page * (BYTES / PAGES)] = 1;
        free((void *)block);
    }
    EXPECT(faults() - before < PAGES);
}

static void it_is_what_was_preloaded(void) {
    EXPECT(ebb_scope_is_served() == (getenv("LD_PRELOAD") != NULL));
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], TELLS) == 0)
        return tell();
    static const struct act acts[] = {
        ACT(it_is_what_was_preloaded),
        ACT(pages_of_large_blocks_stay_for_the_next),
        ACT(a_thousand_short_threads),
        ACT(destructors_of_threads_allocate),
        ACT(threads_die_inside_of_scopes),
        ACT(threads_are_cancelled_as_they_begin),
        ACT(small_stacks),
        ACT(threads_free_each_others_blocks),
        ACT(forks_in_the_middle_of_scopes),
        ACT(forks_while_others_allocate),
        ACT(forks_before_there_is_a_scope),
        ACT(children_tell_their_own_statistics),
        ACT(programs_are_run_from_scopes),
        ACT(scopes_are_jumped_out_of),
        ACT(handlers_of_signals_allocate),
        ACT(ten_thousand_scopes_are_open),
        ACT(what_runs_at_exit_allocates),
        ACT(exit_while_others_allocate),
        ACT(what_is_freed_goes),
        ACT(zeroed_memory_comes_when_it_is_touched),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
