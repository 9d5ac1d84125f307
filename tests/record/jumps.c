// SPDX-License-Identifier: Apache-2.0
//
// jumps.c - what a harness for tests does: the handler of a signal jumps out of the allocator, and
// the program goes on. Sizes tell where it has.

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "jumps.h"

static sigjmp_buf out;

static void jump(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

// Of a block that no allocator has: it looks for what lies before it, where nothing is mapped.
static void end_none(void)
{
    void *volatile none = (void *)(uintptr_t)64;

    if (!sigsetjmp(out, 1)) {
        free(none);
        exit(1);
    }
}

// Of a block that the C library finds damaged: its size stands before it, and is a multiple of 16.
static void resize_damaged(void)
{
    size_t *volatile block = malloc(JUMPS_LEFT);

    block[-1] ^= 8;
    if (!sigsetjmp(out, 1)) {
        block = realloc(block, 2 * JUMPS_LEFT);
        exit(1);
    }
}

static void go_on(size_t size)
{
    for (int i = 0; i < JUMPS_BLOCKS; i++) {
        void *volatile block = malloc(size);

        block = realloc(block, size + 1);
        free(block);
    }
}

// Its frame is there where that of the call was that did not return.
static __attribute__((noinline)) void go_on_further_down(size_t size)
{
    volatile char much[2000];

    for (size_t i = 0; i < sizeof much; i++)
        much[i] = 1;
    go_on(size);
}

int main(void)
{
    signal(SIGSEGV, jump);
    signal(SIGABRT, jump);
    resize_damaged();
    end_none();
    go_on(JUMPS_BESIDE);
    end_none();
    go_on_further_down(JUMPS_BELOW);
    return 0;
}
