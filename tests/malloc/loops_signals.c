// SPDX-License-Identifier: Apache-2.0
/*
 * loops_signals.c - a signal whose handler waits, allocates or jumps away, as a turn ends or begins
 * that is a scope: at the moment when signals are let in again, and at each instruction of a wait.
 *
 * Run preloaded with libebb-malloc and EBB_MALLOC=turns:wait; and without turns, when all of it
 * must hold as well. A number: only one of so many instructions, where each takes long.
 */
#include "malloc/one_wait.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { TINY = 2, SMALL = 4, SMALLS = 10, TURNS = 60 };

/* The first may be parts of one that a handler has left. That ends when its memory is full, so each
 * has more blocks than the last. */
static __attribute__((noinline)) bool has_a_scope_each_turn(void) {
    unsigned char *blocks[TURNS];
    uint64_t before = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        EXPECT(wait_once(-1) == 1);
        for (unsigned i = 0; i <= turn; i++)
            blocks[i] = make(SMALL);
        for (unsigned i = 0; i <= turn; i++)
            end(blocks[i], SMALL);
        before = turn == TURNS / 2 - 1 ? opened_regions() : before;
    }
    return !has_turns || opened_regions() >= before + TURNS / 2;
}

/* ---- as signals are let in again ---- */

static volatile bool is_to_come; /* one, as soon as all are blocked: it comes after that */

/* In front of the C library's. */
int pthread_sigmask(int how, const sigset_t *signals, sigset_t *before) {
    int error = sigprocmask(how, signals, before);
    if (is_to_come && how == SIG_SETMASK && signals && sigismember(signals, SIGUSR1)) {
        is_to_come = false;
        EXPECT(raise(SIGUSR1) == 0);
    }
    return error;
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    EXPECT(sigaction(number, &action, NULL) == 0);
}

static __attribute__((noinline)) void come_at_the_end_of_a_turn(void) {
    for (unsigned i = 0; i < 3; i++) {
        EXPECT(wait_once(-1) == 1);
        end(make(TINY), TINY);
    }
    is_to_come = has_turns;
    EXPECT(wait_once(-1) == 1);
    EXPECT(!is_to_come);
}

static void loop_and_allocate(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    for (unsigned i = 0; i < 2; i++)
        EXPECT(wait_once(-1) == 1);
    end(make(TINY), TINY);
}

enum { STACK_BYTES = 256 << 10 };

/* With a stack for handlers that lies above it: no frame there is deeper than a loop's. */
static void run_below_a_stack_for_handlers(void *(*body)(void *)) {
    char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    EXPECT(stacks != MAP_FAILED && pthread_attr_init(&attributes) == 0);
    EXPECT(pthread_attr_setstack(&attributes, stacks, STACK_BYTES) == 0);
    EXPECT(pthread_create(&thread, &attributes, body, stacks + STACK_BYTES) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
    EXPECT(munmap(stacks, 2 * STACK_BYTES) == 0);
}

static void use_for_handlers(void *stack) {
    stack_t own = {.ss_sp = stack, .ss_size = STACK_BYTES};
    EXPECT(sigaltstack(&own, NULL) == 0);
}

static void *ends_a_turn(void *stack) {
    use_for_handlers(stack);
    handle(SIGUSR1, loop_and_allocate, SA_ONSTACK);
    come_at_the_end_of_a_turn();
    EXPECT(has_a_scope_each_turn());
    return NULL;
}

static void a_handler_that_loops_leaves_no_scope(void) {
    run_below_a_stack_for_handlers(ends_a_turn);
}

enum { FAR = 256 << 20 }; /* from trays to the general heap */

static sigjmp_buf out;

static void jump_out(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    siglongjmp(out, 1);
}

static __attribute__((noinline)) void wait_deep_down(unsigned depth) {
    volatile char room[4000];
    room[0] = 1;
    if (depth)
        wait_deep_down(depth - 1);
    else
        EXPECT(wait_once(0) == 1);
    EXPECT(room[0]);
}

/* More than a tray has room for; how far from the place the last one is. */
static size_t fill_a_tray(const unsigned char *place) {
    unsigned char *blocks[SMALLS];
    for (unsigned i = 0; i < SMALLS; i++)
        blocks[i] = make(SMALL);
    size_t distance = (size_t)llabs(blocks[SMALLS - 1] - place);
    for (unsigned i = 0; i < SMALLS; i++)
        end(blocks[i], SMALL);
    return distance;
}

/* Its record is the next one's; what is left of the turn must not end that. */
static void who_jumps_out_leaves_no_turn(void) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "own", .scope = true));
    EXPECT(site);
    handle(SIGUSR1, jump_out, 0);
    if (sigsetjmp(out, 1) == 0)
        come_at_the_end_of_a_turn();
    ebb_step step = ebb_step_begin(site, 0);
    unsigned char *first = make(TINY);
    for (unsigned i = 0; i < 20; i++)
        wait_deep_down(i % 2);
    EXPECT(fill_a_tray(first) < FAR);
    end(first, TINY);
    EXPECT(ebb_step_end(step) == 0);
    EXPECT(has_a_scope_each_turn());
}

/* ---- at each instruction ---- */

static unsigned stride = 1; /* from one to the next; with each seed of a run, others */

#if defined(__x86_64__)
enum { TRAP_FLAG = 0x100, INSTRUCTIONS = 10000, NO_MORE = 3 };

/* From here on a signal comes after each instruction. */
static inline void trace(void) {
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static inline void trace_no_more(void) {
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static volatile unsigned left; /* instructions up to the one that is interrupted */

static void loop_once(int number, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    left = left - 1;
    if (left)
        return;
    interrupted->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP_FLAG;
    loop_and_allocate(number, info, context);
}

/* No turn has begun before: while one ends, signals wait, which this one cannot. */
static __attribute__((noinline)) bool wait_interrupted(unsigned instruction) {
    for (unsigned i = 0; i < 3; i++)
        EXPECT(wait_once(-1) == 1);
    left = instruction;
    trace();
    (void)wait_once(-1);
    trace_no_more();
    return !left;
}

static unsigned instruction;
static bool has_so_many;

static void *is_traced(void *stack) {
    use_for_handlers(stack);
    handle(SIGTRAP, loop_once, SA_ONSTACK);
    EXPECT(has_a_scope_each_turn());
    has_so_many = wait_interrupted(instruction);
    EXPECT(has_a_scope_each_turn());
    return NULL;
}

/* Each in a child: what the hardened library holds back of many threads is taken for survivors. */
static void a_handler_loops_at_any_instruction_of_a_wait(void) {
    const char *seed = getenv("EBB_FRESH_SEED");
    int status = 0;
    instruction = 1 + (unsigned)(strtoul(seed ? seed : "0", NULL, 10) % stride);
    for (; status == 0; instruction += stride) {
        EXPECT(instruction < INSTRUCTIONS);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            run_below_a_stack_for_handlers(is_traced);
            _exit(has_so_many ? 0 : NO_MORE);
        }
        EXPECT(waitpid(child, &status, 0) == child);
    }
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == NO_MORE);
    printf("# %u instructions\n", instruction);
}
#endif

int main(int count, char **words) {
    static const struct act acts[] = {
        ACT(a_handler_that_loops_leaves_no_scope),
        ACT(who_jumps_out_leaves_no_turn),
#if defined(__x86_64__)
        ACT(a_handler_loops_at_any_instruction_of_a_wait),
#endif
    };
    if (count > 1)
        EXPECT((stride = (unsigned)atoi(words[1])) > 0);
    const char *options = getenv("EBB_MALLOC");
    has_turns = options && strstr(options, "turns:wait") && ebb_scope_is_served();
    EXPECT(pipe(always) == 0 && write(always[1], "x", 1) == 1);
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
