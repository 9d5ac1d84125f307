// SPDX-License-Identifier: Apache-2.0
//
// jumps_cxx.cc - the same as jumps.c, out of operator new and delete where malloc() and free() are
// not at work. What comes afterwards has places and ends of its own.

#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "jumps.h"
#include "leaving.h"

static volatile std::size_t huge = static_cast<std::size_t>(PTRDIFF_MAX) + 1;
static sigjmp_buf out;

static void jump()
{
    siglongjmp(out, 1);
}

static void *kept(void *block)
{
    static void *volatile sink;
    sink = block;
    return sink;
}

static __attribute__((noinline)) void leave_new()
{
    if (!sigsetjmp(out, 1)) {
        kept(operator new(huge));
        std::exit(1);
    }
}

// The address comes again.
static __attribute__((noinline)) void leave_delete()
{
    void *volatile block = operator new(JUMPS_BELOW);

    leaving = jump;
    if (!sigsetjmp(out, 1)) {
        operator delete(block);
        std::exit(1);
    }
    leaving = nullptr;
    std::free(block);
}

static __attribute__((noinline)) void go_on_with_malloc()
{
    for (int i = 0; i < JUMPS_BLOCKS; i++)
        std::free(kept(std::malloc(JUMPS_BESIDE)));
}

static __attribute__((noinline)) void go_on_with_new()
{
    for (int i = 0; i < JUMPS_BLOCKS; i++)
        operator delete(kept(operator new(JUMPS_BELOW)));
}

int main()
{
    delete new char; // what a C++ library keeps for itself is there from now on
    std::set_new_handler(jump);
    leave_new();
    go_on_with_malloc();
    go_on_with_new();
    leave_delete();
    go_on_with_malloc();
    go_on_with_new();
    return 0;
}
