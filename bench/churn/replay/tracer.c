// SPDX-License-Identifier: Apache-2.0
/*
 * tracer.c - counts system calls with ptrace.
 *
 * The child stops at every system call. One number runs over all of them but the markers; a
 * begin marker notes it for its step, an end marker turns it into a difference. So steps that
 * overlap (on several threads of the trace) are each counted in full.
 */
#include "tracer.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marker.h"

enum { SYSCALL_STOP = SIGTRAP | 0x80, CANNOT_TRACE = 126 };

static pid_t start_child(char *const arguments[]) {
    pid_t child = fork();
    if (child != 0)
        return child;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(CANNOT_TRACE);
    execv("/proc/self/exe", arguments);
    _exit(CANNOT_TRACE);
}

static bool is_marker(const struct __ptrace_syscall_info *info) {
    return info->entry.nr == SYS_getppid && info->entry.args[0] == MARKER_MAGIC;
}

/* False if the system does not tell which call it is. */
static bool on_syscall(pid_t child, struct ledger *calls, double *total) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info) <= 0)
        return errno == ESRCH; /* the child was killed: its end will be seen */
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return true;
    if (!is_marker(&info)) {
        *total += 1;
        return true;
    }
    double *entry = ledger_at(calls, (uint32_t)info.entry.args[2], (uint32_t)info.entry.args[3]);
    *entry = info.entry.args[1] == MARKER_BEGIN ? *total : *total - *entry;
    return true;
}

static bool wait_for(pid_t child, int *status) {
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

/* Before Linux 5.3 a stop does not say which call it is, and none would be counted. */
static int give_up(pid_t child) {
    int status = 0;
    kill(child, SIGKILL);
    wait_for(child, &status);
    return -1;
}

static int exit_code(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int tracer_run(char *const arguments[], struct ledger *calls) {
    double total = 0;
    int status = 0, signal = 0;
    pid_t child = start_child(arguments);
    if (child < 0 || !wait_for(child, &status) || !WIFSTOPPED(status))
        return -1;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)options);
    for (;;) {
        ptrace(PTRACE_SYSCALL, child, NULL, (void *)(long)signal);
        if (!wait_for(child, &status))
            return -1;
        if (!WIFSTOPPED(status))
            return exit_code(status);
        signal = WSTOPSIG(status);
        if (signal == SYSCALL_STOP && !on_syscall(child, calls, &total))
            return give_up(child);
        if (signal == SYSCALL_STOP || signal == SIGTRAP)
            signal = 0; /* not for the child */
    }
}
