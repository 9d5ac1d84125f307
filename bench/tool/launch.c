// SPDX-License-Identifier: Apache-2.0
/*
 * launch.c - the command gets the recorder preloaded; ticks are this side's work.
 *
 * A tick is the number that the spool's counter had at that time, so it costs the recorded program
 * nothing. While the command runs nothing is said: the terminal is the command's. Interrupts from
 * the keyboard reach the command, which decides; who ends or hangs up the tool means the command,
 * which is told so. The tool goes on, since what was recorded until then is to become a trace.
 */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "complain.h"
#include "place.h"
#include "spool.h"
#include "spools.h"

enum {
    LOOK_MS = 100,
    HASTE_MS = 10, /* while programs come and go */
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127
};

struct watched {
    char name[NAME_MAX + 1];
    const struct spool_head *head; /* SPOOL_STATE bytes of it */
    int ticks;       /* file, or -1 */
    uint32_t ticked; /* what was written there last; nothing was noted before 1 */
};

enum { SIGNALS = 4, HANDED_ON = 2 };

/* As they were: what the tool does with signals is not the command's. */
struct signals {
    sigset_t blocked;
    struct sigaction action[SIGNALS];
};

static const int signals_of_tool[SIGNALS] = {SIGINT, SIGQUIT, SIGCHLD, SIGPIPE};
static const int signals_handed_on[HANDED_ON] = {SIGTERM, SIGHUP};

static sigset_t awaited; /* SIGCHLD, and of those that are handed on what is not ignored */

static struct sigaction file_size; /* SIGXFSZ, as it was */

struct watch {
    const struct launch *launch;
    struct watched spool[LAUNCH_WATCHED];
    int count, removed;
    struct timespec ticked, thinned;
    long pace_ms; /* from one thinning to the next */
};

/* ---- the command */

static void set_path(const char *name, const char *first) {
    const char *before = getenv(name);
    char *value = NULL;
    if (before && *before && asprintf(&value, "%s:%s", first, before) > 0)
        setenv(name, value, 1);
    else
        setenv(name, first, 1);
    free(value);
}

static void set_function(const char *name, bool within, const char *python) {
    char folder[PLACE_MAX];
    snprintf(folder, sizeof folder, "%s", python);
    if (strchr(name, '.')) {
        *strrchr(folder, '/') = '\0';
        set_path("PYTHONPATH", folder);
        setenv(within ? "EBB_RECORD_PYTHON_WITHIN" : "EBB_RECORD_PYTHON_FUNCTION", name, 1);
    } else {
        setenv("EBB_RECORD_FUNCTION", name, 1);
    }
}

void launch_spare_files(void) {
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignored, &file_size);
}

/* SIGCHLD may have been ignored, and then no exit code is to be had. Who closes the standard error
 * before the end has a trace all the same, and no spool beside it. */
static void take_signals(struct signals *before) {
    struct sigaction ignored = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
    struct sigaction now;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    for (int i = 0; i < HANDED_ON; i++)
        if (sigaction(signals_handed_on[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&awaited, signals_handed_on[i]);
    sigprocmask(SIG_BLOCK, &awaited, &before->blocked);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals_of_tool[i], signals_of_tool[i] == SIGCHLD ? &usual : &ignored,
                  &before->action[i]);
}

static void give_signals(const struct signals *before) {
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals_of_tool[i], &before->action[i], NULL);
    sigaction(SIGXFSZ, &file_size, NULL);
    sigprocmask(SIG_SETMASK, &before->blocked, NULL);
}

/* Where it cannot, `told` gets errno; where it can, the end of the file. */
_Noreturn static void become(const struct launch *launch, const char *recorder,
                             const char *python, int told) {
    static const char *const settings[] = {"EBB_RECORD_LIMIT", "EBB_RECORD_FUNCTION",
                                           "EBB_RECORD_PYTHON_FUNCTION",
                                           "EBB_RECORD_PYTHON_WITHIN"};
    char limit[32];
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        unsetenv(settings[i]); /* those of another recording, which this one is in */
    set_path("LD_PRELOAD", recorder);
    setenv("EBB_RECORD_SPOOL", launch->folder, 1);
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)launch->limit);
    if (launch->limit)
        setenv("EBB_RECORD_LIMIT", limit, 1);
    if (launch->function)
        set_function(launch->function, launch->within, python);
    execvp(launch->command[0], launch->command);
    int reason = errno;
    complain("%s: %s", launch->command[0], strerror(reason));
    (void)!write(told, &reason, sizeof reason);
    _exit(reason == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

/* ---- its spools */

static const struct spool_head *map_head(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct spool_head *head = NULL;
    if (file >= 0 && lseek(file, 0, SEEK_END) >= (off_t)SPOOL_HEAD)
        head = mmap(NULL, SPOOL_STATE, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return head == MAP_FAILED ? NULL : head;
}

static void forget(const struct watched *spool) {
    munmap((void *)(uintptr_t)spool->head, SPOOL_STATE);
    if (spool->ticks >= 0)
        close(spool->ticks);
}

static void forget_the_dead(struct watch *watch) {
    int kept = 0;
    for (int i = 0; i < watch->count; i++)
        if (spools_is_over(watch->launch->folder, watch->spool[i].name))
            forget(&watch->spool[i]);
        else
            watch->spool[kept++] = watch->spool[i];
    watch->count = kept;
}

static void watch_spool(struct watch *watch, const char *name) {
    char path[PLACE_MAX + NAME_MAX + 16];
    for (int i = 0; i < watch->count; i++)
        if (strcmp(watch->spool[i].name, name) == 0)
            return;
    if (watch->count == LAUNCH_WATCHED || spools_is_over(watch->launch->folder, name))
        return;
    struct watched *spool = &watch->spool[watch->count];
    spool->ticked = 0; /* of one that was watched here before */
    snprintf(path, sizeof path, "%s/%s", watch->launch->folder, name);
    spool->head = map_head(path);
    if (!spool->head)
        return; /* just being made: next time */
    snprintf(spool->name, sizeof spool->name, "%s", name);
    strcat(path, ".ticks");
    spool->ticks = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    watch->count++;
}

static void find_spools(struct watch *watch) {
    DIR *folder = opendir(watch->launch->folder);
    struct dirent *entry;
    if (watch->count == LAUNCH_WATCHED)
        forget_the_dead(watch);
    while (folder && (entry = readdir(folder)))
        if (spools_is_name(entry->d_name))
            watch_spool(watch, entry->d_name);
    if (folder)
        closedir(folder);
}

static double seconds_since(const struct timespec *then) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) / 1e9;
}

/* True, and `then` is now, if this is so long ago. */
static bool is_due(struct timespec *then, long ms) {
    if (seconds_since(then) < (double)ms / 1000)
        return false;
    clock_gettime(CLOCK_MONOTONIC, then);
    return true;
}

/* The spools of programs that have ended would fill the disk, one megabyte each. */
static void thin(struct watch *watch) {
    int removed = spools_thin(watch->launch->folder, &watch->removed);
    watch->pace_ms = removed ? HASTE_MS : LOOK_MS;
    if (removed)
        forget_the_dead(watch);
}

/* What was not noted meanwhile needs no room: a program may rest, or have ended long ago. */
static void tick_one(struct watched *spool) {
    uint32_t now = (uint32_t)spool->head->sequence;
    if (spool->ticks < 0 || now == spool->ticked)
        return;
    spool->ticked = now;
    if (write(spool->ticks, &now, sizeof now) != (ssize_t)sizeof now) {
        close(spool->ticks); /* a full disk: what was ticked so far stays */
        spool->ticks = -1;
    }
}

static void tick(struct watch *watch) {
    for (int i = 0; i < watch->count; i++)
        tick_one(&watch->spool[i]);
}

static void look(struct watch *watch) {
    if (!watch->launch->keep && is_due(&watch->thinned, watch->pace_ms))
        thin(watch);
    if (!watch->launch->every_ms)
        return;
    find_spools(watch);
    if (is_due(&watch->ticked, watch->launch->every_ms))
        tick(watch);
}

/* Until the next tick, or thinning; they may be late by each other. */
static struct timespec until_next(const struct watch *watch) {
    double seconds = (double)watch->pace_ms / 1000;
    double tick = (double)watch->launch->every_ms / 1000 - seconds_since(&watch->ticked);
    if (watch->launch->every_ms && tick < seconds)
        seconds = tick > 0 ? tick : 0;
    return (struct timespec){.tv_nsec = (long)(seconds * 1e9)};
}

static void end_watch(struct watch *watch) {
    for (int i = 0; i < watch->count; i++)
        forget(&watch->spool[i]);
}

/* ---- both */

/* The status of its end, once it is there. The first process of a container is the parent of all
 * that have lost theirs, and only when it has waited for them are they gone. */
static bool is_done(pid_t child, int *status) {
    pid_t ended;
    while ((ended = waitpid(-1, status, WNOHANG)) > 0)
        if (ended == child)
            return true;
    return ended < 0;
}

static int wait_for(pid_t child, struct watch *watch) {
    int status = 0;
    while (!is_done(child, &status)) {
        struct timespec pause = until_next(watch);
        int signal = sigtimedwait(&awaited, NULL, &pause);
        if (signal > 0 && signal != SIGCHLD)
            kill(child, signal);
        look(watch);
    }
    return status;
}

/* What a shell would say of it. The exit code. */
static int tell_end(const struct launch *launch, int status) {
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    complain("%s: ended by signal %d, %s", launch->command[0], WTERMSIG(status),
             strsignal(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
}

/* A process that is or will be the command; -1 after a message. `told`: see become(). */
static pid_t start(const struct launch *launch, int *told) {
    char recorder[PLACE_MAX], python[PLACE_MAX] = "";
    struct signals before;
    int ends[2];
    if (!place_find(PLACE_RECORDER, recorder) ||
        (launch->function && !place_find(PLACE_PYTHON, python)))
        return -1;
    if (strpbrk(recorder, " :")) {
        complain("%s: LD_PRELOAD takes no path with a space or a colon", recorder);
        return -1;
    }
    take_signals(&before);
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0) {
        complain("no process can be started: %s", strerror(errno));
    } else if (child == 0) {
        give_signals(&before);
        become(launch, recorder, python, ends[1]);
    } else {
        close(ends[1]);
        *told = ends[0];
    }
    return child;
}

static bool has_become(int told) {
    int reason;
    ssize_t length;
    do
        length = read(told, &reason, sizeof reason);
    while (length < 0 && errno == EINTR);
    close(told);
    return length != sizeof reason;
}

bool launch_run(const struct launch *launch, struct launched *launched) {
    struct watch *watch = calloc(1, sizeof *watch);
    int told = -1, status = 0;
    *launched = (struct launched){0};
    if (!watch)
        return complain("out of memory");
    watch->launch = launch;
    watch->pace_ms = HASTE_MS;
    clock_gettime(CLOCK_MONOTONIC, &watch->ticked);
    pid_t child = start(launch, &told);
    bool started = child > 0 && has_become(told);
    if (child > 0)
        status = wait_for(child, watch);
    end_watch(watch);
    if (child > 0)
        launched->code = tell_end(launch, status);
    launched->removed = watch->removed;
    free(watch);
    return started;
}
