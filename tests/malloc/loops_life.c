// SPDX-License-Identifier: Apache-2.0
/*
 * loops_life.c - threads that end, are cancelled, fork, execute and jump in turns that are scopes;
 * handlers of signals that wait in the middle of them. Nothing hangs, crashes or is lost.
 *
 * Run preloaded with libebb-malloc and EBB_MALLOC=turns:wait; and without turns, when all of it
 * must hold as well.
 */
#include "malloc/one_wait.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <ucontext.h>

/* While no turn has begun: one that has counts for up to three. */
static uint64_t open_regions(void) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    EXPECT(wait_once(-1) == 1 && wait_once(-1) == 1);
    EXPECT(ebb_process_read_stats(&stats) == 0);
    return stats.open_regions;
}

enum { KEPT = 40 };

/* So many turns; some blocks live through many of them. */
static __attribute__((noinline)) void live(unsigned turns) {
    unsigned char *blocks[KEPT] = {NULL};
    unsigned kinds[KEPT] = {0};
    for (unsigned turn = 0; turn < turns; turn++) {
        EXPECT(wait_once(-1) == 1);
        for (unsigned i = turn; i < turn + 5; i++) {
            unsigned place = i * 7 % KEPT;
            if (blocks[place])
                end(blocks[place], kinds[place]);
            blocks[place] = make(kinds[place] = i);
        }
    }
    for (unsigned i = 0; i < KEPT; i++)
        if (blocks[i])
            end(blocks[i], kinds[i]);
}

/* What a loop allocates belongs to its turns, and if others were taken for the loop before. */
static void there_are_turns(void) {
    live(30);
    uint64_t before = opened_regions();
    for (unsigned i = 0; i < 100; i++) {
        EXPECT(wait_once(-1) == 1);
        end(make(2), 2);
    }
    EXPECT(has_turns ? opened_regions() > before + 90 : opened_regions() == before);
}

/* ---- threads ---- */

static void *dies(void *context) {
    live(2 + (unsigned)(uintptr_t)context % 3);
    if ((uintptr_t)context % 2)
        pthread_exit(NULL);
    return NULL;
}

/* A turn whose thread has ended is over: not one region stays. */
static void a_thousand_threads_die_in_a_turn(void) {
    uint64_t early = 0;
    for (unsigned i = 0; i < 1000; i++) {
        on_thread(dies, (void *)(uintptr_t)i);
        if (i == 100)
            early = open_regions();
    }
    EXPECT(open_regions() <= early + 2);
}

enum { KEYS = 40 }; /* more than the C library has room for in a thread itself */

static pthread_key_t late_key;

/* It has made none of these values yet: the C library asks for room, and then notes where. */
static void *sets_a_value_first(void *context) {
    for (unsigned i = 0; i < 2; i++)
        EXPECT(wait_once(-1) == 1);
    EXPECT(pthread_setspecific(late_key, context) == 0);
    EXPECT(pthread_getspecific(late_key) == context);
    end(make(2), 2);
    end(make(6), 6);
    return NULL;
}

/* What the library has noted for the thread's end is not lost. */
static void turns_begin_where_a_value_is_set(void) {
    uint64_t early = 0;
    for (unsigned i = 0; i < KEYS; i++)
        EXPECT(pthread_key_create(&late_key, NULL) == 0);
    for (unsigned i = 0; i < 1000; i++) {
        on_thread(sets_a_value_first, &early);
        if (i == 100)
            early = open_regions();
    }
    EXPECT(open_regions() <= early + 2);
}

static void *has_little_room(void *context) {
    live(50);
    return context;
}

static int add_variables(struct dl_phdr_info *info, size_t bytes, void *sum) {
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)sum += info->dlpi_phdr[i].p_memsz;
    return 0;
}

/* The first turn of the process is theirs, with all that is prepared then. Where libebb brings a
 * jemalloc of its own as well, the variables of each thread alone are most of the least stack. */
static void the_least_of_stacks_is_enough(void) {
    size_t bytes = (size_t)12 << 10, least = (size_t)PTHREAD_STACK_MIN;
    pthread_attr_t attributes;
    pthread_t thread;
    (void)dl_iterate_phdr(add_variables, &bytes);
    EXPECT(pthread_attr_init(&attributes) == 0);
    EXPECT(pthread_attr_setstacksize(&attributes, bytes > least ? bytes : least) == 0);
    EXPECT(pthread_create(&thread, &attributes, has_little_room, NULL) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
}

static void frees(void *block) {
    live(5);
    end(block, 3);
}

static void *waits_forever(void *context) {
    struct pollfd none = {.fd = -1};
    pthread_cleanup_push(frees, make(3));
    live(3);
    if (context)
        pthread_testcancel();
    for (;;)
        (void)poll(&none, 1, -1);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel_threads(void) {
    for (unsigned i = 0; i < 400; i++) {
        pthread_t thread;
        void *result = NULL;
        EXPECT(pthread_create(&thread, NULL, waits_forever, (void *)(uintptr_t)(i % 2)) == 0);
        if (i % 3)
            usleep(i % 300);
        EXPECT(pthread_cancel(thread) == 0);
        EXPECT(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
}

/* What is learnt of the turns lies in regions as well, and comes when it does: sooner or later
 * there are no more of them. */
static void threads_are_cancelled(void) {
    uint64_t early = 0, late = open_regions();
    for (unsigned i = 0; i < 8 && late > early; i++) {
        early = late;
        cancel_threads();
        late = open_regions();
    }
    EXPECT(late <= early);
}

static pthread_key_t keys[3];

/* In each round of destructors, after those of the library. */
static void destroy(void *value) {
    unsigned round = *(unsigned *)value;
    free(value);
    live(4);
    if (round == 2)
        return;
    unsigned *next = malloc(sizeof *next);
    *next = round + 1;
    pthread_setspecific(keys[round], next);
}

static void *sets_values(void *context) {
    live(3);
    for (unsigned i = 0; i < 3; i++) {
        unsigned *value = malloc(sizeof *value);
        *value = i;
        pthread_setspecific(keys[i], value);
    }
    return context;
}

static void destructors_have_turns(void) {
    for (unsigned i = 0; i < 3; i++)
        EXPECT(pthread_key_create(&keys[i], destroy) == 0);
    for (unsigned i = 0; i < 200; i++)
        on_thread(sets_values, NULL);
}

/* ---- forks and programs ---- */

static atomic_bool over;

static void *stays_busy(void *context) {
    while (!atomic_load(&over))
        live(50);
    return context;
}

static void in_fork(void) {
    end(make(5), 5);
    end(make(1), 1);
}

static void forks_come_in_turns(void) {
    pthread_t threads[3];
    EXPECT(pthread_atfork(in_fork, in_fork, in_fork) == 0);
    for (unsigned i = 0; i < 3; i++)
        EXPECT(pthread_create(&threads[i], NULL, stays_busy, NULL) == 0);
    for (unsigned i = 0; act_goes_on(i, 300); i++) {
        EXPECT(wait_once(-1) == 1);
        unsigned char *block = i % 3 ? make(i) : NULL; /* some turns had none */
        pid_t child = fork();
        if (child == 0) {
            unsigned char *own = make(i + 1);
            live(20);
            if (block)
                end(block, i);
            end(own, i + 1);
            if (i % 2)
                on_thread(dies, (void *)(uintptr_t)i);
            exit(0);
        }
        act_await(child);
        if (block)
            end(block, i);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 3; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
}

static void programs_are_run_in_turns(void) {
    for (unsigned i = 0; i < 10; i++) {
        EXPECT(wait_once(-1) == 1);
        unsigned char *block = make(i);
        EXPECT(system("exit 3") == 3 << 8);
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
            _exit(1);
        }
        act_await(child);
        end(block, i);
    }
}

/* ---- jumps and signals ---- */

static sigjmp_buf out;
static volatile sig_atomic_t may_jump;
static volatile unsigned jumps;

static void jumps_out(int number) {
    (void)number;
    if (!may_jump)
        return;
    may_jump = 0;
    jumps = jumps + 1;
    siglongjmp(out, 1);
}

/* The handler is called every so many microseconds; 0: no more. */
static void tick(void (*handler)(int), long us) {
    static timer_t timer;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec every = {{.tv_nsec = us * 1000}, {.tv_nsec = us * 1000}};
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    EXPECT(!us || timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    EXPECT(timer_settime(timer, 0, &every, NULL) == 0);
}

/* As programs leave a wait that lasts too long; whatever the library does in there. */
static __attribute__((noinline)) void jump(unsigned times) {
    unsigned char *volatile kept[KEPT] = {NULL};
    jumps = 0;
    tick(jumps_out, 50);
    for (volatile unsigned i = 0; jumps < times; i++) {
        if (kept[i % KEPT])
            end(kept[i % KEPT], i % KEPT);
        kept[i % KEPT] = NULL;
        if (sigsetjmp(out, 1) == 0) {
            for (;;) {
                may_jump = 1;
                (void)wait_once(i % 4 ? -1 : 0);
                may_jump = 0;
                end(make(2), 2); /* so that there is a scope to end */
            }
        }
        kept[i % KEPT] = make(i % KEPT);
    }
    tick(SIG_IGN, 0);
    for (unsigned i = 0; i < KEPT; i++)
        if (kept[i])
            end(kept[i], i);
    live(100);
}

static void waits_are_jumped_out_of(void) {
    jump(2000);
    uint64_t early = open_regions();
    jump(4000);
    EXPECT(open_regions() <= early + 4); /* a loop that begins turns later has so many */
}

static volatile unsigned handled;

/* It may: poll() and select() are safe in handlers. */
static void waits_itself(int number) {
    struct timeval zero = {0};
    int before = errno;
    (void)number;
    for (unsigned i = 0; i < 4; i++)
        EXPECT(wait_once(i % 2 ? -1 : 0) == 1);
    EXPECT(select(0, NULL, NULL, NULL, &zero) == 0);
    handled = handled + 1;
    errno = before;
}

static void handlers_wait(void) {
    tick(waits_itself, 100);
    for (unsigned i = 0; handled < 10000; i++) {
        if (i % 4 == 0)
            EXPECT(wait_once(-1) == 1);
        for (unsigned k = 0; k < 50; k++)
            end(make(i + k), i + k);
    }
    tick(SIG_IGN, 0);
    live(100);
}

enum { STACK_BYTES = 256 << 10 };

static void *is_interrupted(void *stack) {
    stack_t own = {.ss_sp = stack, .ss_size = STACK_BYTES};
    sigset_t signals;
    EXPECT(sigaltstack(&own, NULL) == 0);
    EXPECT(sigemptyset(&signals) == 0 && sigaddset(&signals, SIGUSR1) == 0);
    EXPECT(pthread_sigmask(SIG_UNBLOCK, &signals, NULL) == 0);
    handled = 0;
    while (handled < 3000) {
        EXPECT(wait_once(-1) == 1);
        for (unsigned k = 0; k < 20; k++)
            end(make(k), k);
    }
    tick(SIG_IGN, 0);
    there_are_turns();
    return NULL;
}

/* Which lies above that of the thread: no frame in it is deeper than the loop's. */
static void handlers_wait_on_a_stack_of_their_own(void) {
    char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_handler = waits_itself, .sa_flags = SA_RESTART | SA_ONSTACK};
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t signals;
    EXPECT(stacks != MAP_FAILED && pthread_attr_init(&attributes) == 0);
    EXPECT(pthread_attr_setstack(&attributes, stacks, STACK_BYTES) == 0);
    EXPECT(sigemptyset(&signals) == 0 && sigaddset(&signals, SIGUSR1) == 0);
    EXPECT(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    tick(waits_itself, 50);
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    EXPECT(pthread_create(&thread, &attributes, is_interrupted, stacks + STACK_BYTES) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(pthread_sigmask(SIG_UNBLOCK, &signals, NULL) == 0);
    pthread_attr_destroy(&attributes);
    EXPECT(munmap(stacks, 2 * STACK_BYTES) == 0);
}

#if defined(__x86_64__)
enum { TRAP_FLAG = 0x100 };

/* From here on a signal comes after each instruction. */
static inline void trace(void) {
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static inline void trace_no_more(void) {
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static volatile unsigned left; /* instructions up to the one that is interrupted */
static volatile bool is_first;

static __attribute__((noinline)) void waits_deep_down(void) {
    volatile char room[4000];
    room[0] = 1;
    EXPECT(wait_once(100) == 1 && room[0]);
}

static void waits_once(int number, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    (void)number, (void)info;
    left = left - 1;
    if (left)
        return;
    interrupted->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP_FLAG;
    if (is_first)
        waits_deep_down();
    else
        EXPECT(wait_once(100) == 1);
}

/* A handler in the wait and one in malloc(); false: this has not so many instructions. No turn has
 * begun before: while one ends, signals wait, which this one cannot. */
static __attribute__((noinline)) bool run_a_round(unsigned first, unsigned second) {
    for (unsigned i = 0; i < 3; i++)
        EXPECT(wait_once(-1) == 1);
    left = first, is_first = true;
    trace();
    (void)wait_once(-1);
    trace_no_more();
    left = second, is_first = false;
    trace();
    void *volatile block = malloc(100);
    trace_no_more();
    bool was_second = !left;
    free(block);
    return was_second;
}

/* The first handler's frame is taken for the loop's, the second's is not as deep and in malloc(),
 * which has read that a turn is awaited. */
static void two_handlers_wait_at_any_two_instructions(void) {
    struct sigaction action = {.sa_sigaction = waits_once, .sa_flags = SA_RESTART | SA_SIGINFO};
    EXPECT(sigaction(SIGTRAP, &action, NULL) == 0);
    live(3);
    for (unsigned first = 10; first < 120; first += 10)
        for (unsigned second = 1; second < 100 && run_a_round(first, second); second++)
            continue;
    there_are_turns();
}
#endif

static void left_alone(void) {
    live(3);
    EXPECT(ebb_last_error() == 0);
    errno = ENOTTY;
    unsigned char *block = make(4);
    EXPECT(wait_once(-1) == 1 && errno == ENOTTY);
    end(block, 4);
    block = make(5);
    EXPECT(wait_once(-1) == 1 && errno == ENOTTY && ebb_last_error() == 0);
    sigset_t mask;
    int state;
    EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 && sigisemptyset(&mask));
    EXPECT(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0);
    EXPECT(state == PTHREAD_CANCEL_ENABLE);
    end(block, 5);
}

static void errno_errors_and_masks_are_left_alone(void) {
    for (unsigned i = 0; i < 50; i++)
        left_alone();
}

int main(void) {
    static const struct act acts[] = {
        ACT(there_are_turns),
        ACT(a_thousand_threads_die_in_a_turn),
        ACT(turns_begin_where_a_value_is_set),
        ACT(the_least_of_stacks_is_enough),
        ACT(threads_are_cancelled),
        ACT(destructors_have_turns),
        ACT(forks_come_in_turns),
        ACT(programs_are_run_in_turns),
        ACT(waits_are_jumped_out_of),
        ACT(handlers_wait),
        ACT(handlers_wait_on_a_stack_of_their_own),
#if defined(__x86_64__)
        ACT(two_handlers_wait_at_any_two_instructions),
#endif
        ACT(errno_errors_and_masks_are_left_alone),
    };
    const char *options = getenv("EBB_MALLOC");
    has_turns = options && strstr(options, "turns:wait") && ebb_scope_is_served();
    EXPECT(pipe(always) == 0 && write(always[1], "x", 1) == 1);
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
