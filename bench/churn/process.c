// SPDX-License-Identifier: Apache-2.0
/*
 * process.c - starts churn-replay with an allocator preloaded and reads what it prints.
 *
 * The environment is this one's, less what could disturb: LD_PRELOAD and the allocators' own
 * variables are removed, and set anew where the table of allocators says so. A report is a few
 * lines (see replay/replay.c); any other line is a message, and the last message tells why a
 * process failed. Figures are taken only of one that did not.
 *
 * Invariant: processes are waited for in the order in which they were started, or what they print
 * is shorter than a pipe holds: of those that are timed it is. A child dies with the harness.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 20 };

/* As churn-replay calls them. */
static const char *const kind_names[] = {
    [PROCESS_TIME] = "time",           [PROCESS_BARE] = "bare",   [PROCESS_TRACE] = "trace",
    [PROCESS_FOOTPRINT] = "footprint", [PROCESS_SPIKE] = "spike",
};

static bool disturbs(const char *setting) {
    static const char *const beginnings[] = {"LD_PRELOAD=", "GLIBC_TUNABLES=", "MALLOC_",
                                             "MIMALLOC_",   "TCMALLOC_",       "EBB_"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(setting, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void clean_environment(void) {
    char **to = environ;
    for (char **from = environ; *from; from++)
        if (!disturbs(*from))
            *to++ = *from;
    *to = NULL;
}

/* The loader takes spaces and colons for the ends of names. */
static void preload(const char *library) {
    char plain[32];
    int file = strpbrk(library, " :") ? open(library, O_RDONLY) : -1;
    snprintf(plain, sizeof plain, "/proc/self/fd/%d", file);
    setenv("LD_PRELOAD", file < 0 ? library : plain, 1);
}

static void set_environment(const struct allocator *allocator, bool plan) {
    char library[ALLOCATOR_PATH_MAX];
    clean_environment();
    if (allocator->variable)
        setenv(allocator->variable, allocator->value, 1);
    else if (!plan)
        setenv("EBB_BENCH_PLANS", "no", 1);
    if (allocator_path(allocator, library) && library[0])
        preload(library);
}

_Noreturn static void become_replay(const struct process *process, const struct portion *portion,
                                    int output) {
    char folder[ALLOCATOR_PATH_MAX], program[ALLOCATOR_PATH_MAX + 16], fd[16], passes[16],
        until[16], limit[16];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    allocator_own_folder(folder);
    snprintf(program, sizeof program, "%s/churn-replay", folder);
    snprintf(fd, sizeof fd, "%d", process->workload->compiled.fd);
    snprintf(passes, sizeof passes, "%u", portion->passes);
    snprintf(until, sizeof until, "%u", portion->until);
    snprintf(limit, sizeof limit, "%u", workload_limit_percent(process->workload));
    set_environment(process->allocator, process->plan);
    execl(program, program, "--script-fd", fd, "--kind", kind_names[process->kind],
          "--passes", passes, "--until", until, "--limit", limit, (char *)NULL);
    dprintf(STDERR_FILENO, "cannot start %s: %s\n", program, strerror(errno));
    _exit(127);
}

int process_start(struct process *process, const struct portion *portion) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES); /* a wish; what pipes have by default does too */
    process->pid = fork();
    if (process->pid == 0)
        become_replay(process, portion, ends[1]);
    close(ends[1]);
    process->output = ends[0];
    if (process->pid < 0)
        close(ends[0]);
    return process->pid < 0 ? -1 : 0;
}

/* What is known while a report is read. */
struct intake {
    struct process *process;
    struct samples *samples;
    char *fault;
    bool full;     /* samples took no more */
    bool expected; /* the heap was the wanted one */
};

static void take_heap(struct intake *intake, const char *name, const char *library) {
    const struct allocator *wanted = intake->process->allocator;
    const char *file = strrchr(library, '/');
    file = file ? file + 1 : library;
    bool own = strcmp(name, "ebb") == 0;
    bool wants_own = wanted->library && !wanted->package;
    bool serves = wanted->library ? strncmp(file, wanted->library, strlen(wanted->library)) == 0
                                  : strncmp(file, "libc.", 5) == 0;
    intake->expected = wants_own ? own : !own && serves;
    if (!intake->expected)
        snprintf(intake->fault, PROCESS_FAULT_MAX, "served by %.40s (%.180s)", name, library);
}

static void take_series(struct intake *intake, char *words) {
    char *state = NULL, *name = strtok_r(words, " ", &state), *end;
    size_t count = 0, room = strlen(state ? state : "") / 2 + 1;
    double *values = malloc(room * sizeof *values);
    for (char *word; values && (word = strtok_r(NULL, " ", &state)) != NULL;)
        values[count++] = strtod(word, &end);
    if (count)
        intake->full |= !samples_add_series(intake->samples, intake->process->workload_number,
                                            intake->process->allocator_number, name, values, count);
    free(values);
}

static void take_json(struct intake *intake, char *words) {
    char *name = strsep(&words, " ");
    intake->full |= !words || !samples_add_report(intake->samples, intake->process->workload_number,
                                                  intake->process->allocator_number, name, words);
}

static bool begins_with(const char *line, const char *word) {
    return strncmp(line, word, strlen(word)) == 0;
}

static bool is_figure(const char *line) {
    return begins_with(line, "metric ") || begins_with(line, "series ") ||
           begins_with(line, "report ");
}

/* Changes nothing in the line. */
static void listen_to(struct intake *intake, char *line) {
    char name[SAMPLE_NAME_MAX], library[ALLOCATOR_PATH_MAX];
    if (sscanf(line, "heap %95s %511s", name, library) == 2)
        take_heap(intake, name, library);
    else if (!is_figure(line) && !begins_with(line, "note "))
        snprintf(intake->fault, PROCESS_FAULT_MAX, "%.250s", line);
}

static void take_figure(struct intake *intake, char *line) {
    char name[SAMPLE_NAME_MAX];
    double value;
    if (sscanf(line, "metric %95s %lf", name, &value) == 2)
        intake->full |= !samples_add(intake->samples, intake->process->workload_number,
                                     intake->process->allocator_number, name, value);
    else if (begins_with(line, "series "))
        take_series(intake, line + strlen("series "));
    else if (begins_with(line, "report "))
        take_json(intake, line + strlen("report "));
}

static void each_line(struct intake *intake, char *text,
                      void (*take)(struct intake *intake, char *line)) {
    while (*text) {
        char *end = text + strcspn(text, "\n"), mark = *end;
        *end = '\0';
        take(intake, text);
        *end = mark;
        text = mark ? end + 1 : end;
    }
}

/* All that a process printed, to be freed; NULL: no memory. */
static char *read_report(int output) {
    FILE *report = fdopen(output, "r");
    char *text = NULL;
    size_t room = 0;
    bool said = report && getdelim(&text, &room, '\0', report) > 0;
    if (report)
        fclose(report);
    else
        close(output);
    if (said)
        return text;
    free(text);
    return report ? strdup("") : NULL;
}

/* 0 if the process ended well; a message that it printed itself is kept. */
static int judge(int status, char *fault) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status))
        snprintf(fault, PROCESS_FAULT_MAX, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (!fault[0])
        snprintf(fault, PROCESS_FAULT_MAX, "exit code %d", WEXITSTATUS(status));
    return -1;
}

/* A process that failed, or was served by another heap, is not counted: it is read twice. */
int process_finish(struct process *process, struct samples *samples, char *fault) {
    struct intake intake = {.process = process, .samples = samples, .fault = fault};
    char *report = read_report(process->output);
    int status = 0;
    fault[0] = '\0';
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (report)
        each_line(&intake, report, listen_to);
    bool good = judge(status, fault) == 0 && intake.expected;
    if (good)
        each_line(&intake, report, take_figure);
    free(report);
    if (!report || intake.full)
        snprintf(fault, PROCESS_FAULT_MAX, "a name that is too long, or out of memory");
    return good && !intake.full ? 0 : -1;
}
