// SPDX-License-Identifier: Apache-2.0
//
// stacks_cxx.cc - operators and the allocator at work on stacks that go, or that lie on others.
// What a jump has left was on a stack right above the one that is used next.

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "jumps.h"

enum { STACK = 32 << 10 };

static volatile std::size_t huge = static_cast<std::size_t>(PTRDIFF_MAX) + 1;
static ucontext_t program;
static void *reserve;

static void *kept(void *block)
{
    static void *volatile sink;
    sink = block;
    return sink;
}

static void jump()
{
    setcontext(&program);
}

static void jump_from_signal(int)
{
    setcontext(&program);
}

static void run_on(char *stack, void (*function)())
{
    ucontext_t fiber;

    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = STACK;
    fiber.uc_link = &program;
    makecontext(&fiber, function, 0);
    swapcontext(&program, &fiber);
}

static void run_one_below_what_goes(void (*leave)(), void (*go_on)())
{
    void *stacks = mmap(nullptr, 2 * STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (stacks == MAP_FAILED)
        std::exit(1);
    run_on(static_cast<char *>(stacks) + STACK, leave);
    std::signal(SIGSEGV, SIG_DFL);
    munmap(static_cast<char *>(stacks) + STACK, STACK);
    run_on(static_cast<char *>(stacks), go_on);
    munmap(stacks, STACK);
}

static void leave_new()
{
    kept(operator new(huge));
}

static void leave_free()
{
    std::signal(SIGSEGV, jump_from_signal);
    std::free(reinterpret_cast<void *>(static_cast<std::uintptr_t>(64)));
}

static void go_on_with_new()
{
    for (int i = 0; i < JUMPS_BLOCKS; i++)
        operator delete(kept(operator new(JUMPS_BELOW)));
}

static void go_on_with_malloc()
{
    for (int i = 0; i < JUMPS_BLOCKS; i++)
        std::free(kept(std::malloc(JUMPS_BESIDE)));
}

static void limit(bool low)
{
    struct rlimit limit;

    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = low ? 1 << 20 : limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

static void free_the_reserve(int)
{
    limit(false);
    std::free(reserve);
    operator delete(kept(operator new(JUMPS_BESIDE)));
}

static void raise_signal()
{
    std::raise(SIGUSR1);
}

static __attribute__((noinline)) void interrupt_new()
{
    reserve = std::malloc(JUMPS_BESIDE);
    limit(true);
    operator delete(kept(operator new(JUMPS_MUCH)));
}

// The signal's stack lies above the operator that it interrupts, which goes on.
static void interrupt_from_above()
{
    char above[STACK];
    stack_t stack = {}, before = {};
    struct sigaction action = {};

    stack.ss_sp = above;
    stack.ss_size = sizeof above;
    sigaltstack(&stack, &before);
    action.sa_handler = free_the_reserve;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    for (int i = 0; i < JUMPS_BLOCKS; i++)
        interrupt_new();
    sigaltstack(&before, nullptr);
}

int main()
{
    delete new char; // what a C++ library keeps for itself is there from now on
    std::set_new_handler(jump);
    run_one_below_what_goes(leave_new, go_on_with_new);
    run_one_below_what_goes(leave_free, go_on_with_malloc);
    std::set_new_handler(raise_signal);
    interrupt_from_above();
    return 0;
}
