// SPDX-License-Identifier: Apache-2.0
/* ends.h - acts that shall end the process: they are a child's, and their words are kept. */
#ifndef EBB_TESTS_KIT_ENDS_H
#define EBB_TESTS_KIT_ENDS_H

#include "kit/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The signal that ended the child which did it, or 0; what it said. */
static inline int signal_of(void (*act)(void *), void *context, char *said, size_t room) {
    int ends[2], status;
    const struct rlimit no_core = {0, 0};
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        alarm(20); /* or it goes on, nobody knows where */
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDERR_FILENO);
        act(context);
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], said, room - 1);
    assert_true(length >= 0);
    said[length] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

#endif
