// SPDX-License-Identifier: Apache-2.0
/*
 * tender.c - the thread of tender.h.
 *
 * Statistics are written to a file beside the real one, which is then renamed, so that a reader
 * never sees half of them. A socket answers who connects (callers.h), in little time each tick, so
 * that whoever asks all the time keeps no memory from going back.
 *
 * A socket is begun with its folder locked, which leaves no file behind. Else of two processes that
 * find one left over the second removes that of the first; and one that is bound, and does not
 * listen yet, looks left over.
 *
 * Programs close files that they do not know, count on getting the lowest numbers, and hand what is
 * open on to their children. So where there are statistics, this thread has a table of files of its
 * own, in which of the program's there is the standard error alone, as it was when this began.
 *
 * Who cleans a folder may remove the name of a socket, at which nobody is reached then. So its name
 * is looked at each second, in the folder where it was bound, which stays open: to a process that
 * has changed its root or its folder the path says nothing of what others still reach. The old
 * socket stays until there is another one.
 *
 * A process whose threads have all ended would go on with this one alone, deaf to signals. So this
 * one looks, and has it ended by another one, which has the program's files: what is buffered goes
 * there. With statistics that one must be there from the beginning. Where it cannot be had this one
 * ends the process at once, without what exit() does.
 *
 * Invariants: all signals are blocked in this thread, and in the other until it ends the process;
 * this one never opens a file in the program's table. Where it cannot begin, memory is given back
 * at the ends of scopes only; it is tried again as scopes begin, after a second at the earliest.
 * What keeps statistics from being told is named once on the standard error; a file or socket that
 * cannot be had is tried again each second.
 */
#include "malloc/tender.h"
#include "base/os.h"
#include "base/schedule.h"
#include "base/size.h"
#include "malloc/callers.h"
#include "malloc/general.h"
#include "malloc/heap.h"
#include "malloc/options.h"
#include "malloc/trim.h"
#include "malloc/turn.h"
#include "malloc/view.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 250u
#define RETRY_NS UINT64_C(1000000000) /* before the thread is tried again that could not begin */
#define REST_MS 10000u /* between looks where nothing is left to do but what others may free */
#define WRITE_TICKS 4u /* statistics are written every so many */
#define LOCK_TRIES 20u /* others have a folder locked for much less than a millisecond */
#define LOCK_MS 5
#define TEXT_BYTES ((size_t)2 << 20) /* of a thousand sites at least; costs what is written */
#define STACK_BYTES ((size_t)256 << 10) /* beside the variables of each thread */
#define HEAP_BYTES ((size_t)8 << 20)    /* more than a thread has of the general heap at first */
#define FILES_LINE "\nFDSize:" /* of a thread's status */
#define FILES_MOST (1u << 20)   /* that a table has, where that is not to be read */

_Atomic(bool) tender_sleeps;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake, over;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_there, is_settled, is_over, has_complained;
static uint64_t try_at_ns; /* not before that */
static sigset_t blocked;   /* in the thread that began it */
static bool has_files; /* a table of its own, so that statistics can be told */
static size_t stack_bytes = STACK_BYTES;
static int listener = -1;
static int listener_folder = -1;  /* where it was bound, */
static struct stat listener_name; /* and what it was there by name */
static char text[TEXT_BYTES], for_prometheus[TEXT_BYTES];

static void complain_because(const char *what, const char *reason) {
    if (!has_complained)
        options_complain("EBB_MALLOC_STATS: %s: %s: %s", options.stats, what, reason);
    has_complained = true;
}

static void complain(const char *what) {
    complain_because(what, strerror(errno));
}

static const char *kind_name(mode_t mode) {
    return S_ISREG(mode)    ? "a file"
           : S_ISDIR(mode)  ? "a directory"
           : S_ISLNK(mode)  ? "a link"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* ---- statistics ---- */

static bool write_all(int file, const char *from, size_t bytes) {
    while (bytes) {
        ssize_t done = write(file, from, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        from += done;
        bytes -= (size_t)done;
    }
    return true;
}

static bool is_for_prometheus(const char *path) {
    const char *end = strrchr(path, '.');
    return end && strcmp(end, ".prom") == 0;
}

/* Statistics take the name of the file that was there before: a device would be gone. */
static bool may_be_replaced(const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0 || S_ISREG(status.st_mode))
        return true;
    complain_because("is there, and is no file to be replaced", kind_name(status.st_mode));
    return false;
}

/* The file that is written beside it, empty. What else has that name stays as it is: nothing is
 * written through a link or to a pipe. -1: errno says why; 0: it is not ours alone. */
static int open_beside(const char *path) {
    struct stat status;
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (file < 0)
        return -1;
    bool is_seen = fstat(file, &status) == 0;
    bool is_ours = is_seen && S_ISREG(status.st_mode) && status.st_nlink == 1;
    if (is_ours && ftruncate(file, 0) == 0)
        return file;
    int reason = is_seen && !is_ours ? 0 : errno;
    close(file);
    errno = reason;
    return -1;
}

static void write_file(void) {
    char beside[OPTIONS_PATH_BYTES + 8];
    if (!may_be_replaced(options.stats)) /* it may have come since the last time */
        return;
    size_t bytes = view_write(text, sizeof text, is_for_prometheus(options.stats));
    snprintf(beside, sizeof beside, "%s.new", options.stats);
    int file = open_beside(beside);
    if (file < 0) {
        complain_because("the file with .new behind its name cannot be opened",
                         errno ? strerror(errno) : "it is no file, or has other names");
        return;
    }
    bool written = write_all(file, text, bytes);
    if (close(file) == 0 && written && rename(beside, options.stats) == 0)
        return;
    complain("cannot be written");
    (void)unlink(beside);
}

static int new_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* A socket at which nobody listens any more: whose it was has ended. */
static bool is_left_over(const struct sockaddr_un *address) {
    struct stat status;
    int other = new_socket();
    bool refused = other >= 0 &&
                   connect(other, (const struct sockaddr *)address, sizeof *address) != 0 &&
                   errno == ECONNREFUSED;
    if (other >= 0)
        close(other);
    return refused && lstat(address->sun_path, &status) == 0 && S_ISSOCK(status.st_mode);
}

static int open_folder(int flags) {
    char path[OPTIONS_PATH_BYTES];
    memcpy(path, options.stats, sizeof path);
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
    return open(slash ? path : ".", flags | O_DIRECTORY | O_CLOEXEC);
}

static int look_in(int folder, struct stat *status) {
    const char *slash = strrchr(options.stats, '/');
    return fstatat(folder, slash ? slash + 1 : options.stats, status, AT_SYMLINK_NOFOLLOW);
}

/* Until it is closed. -1: it cannot be had, or (EWOULDBLOCK) somebody else has it for long. */
static int lock_folder(void) {
    int folder = open_folder(O_RDONLY);
    for (unsigned i = 0; folder >= 0 && i < LOCK_TRIES; i++) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0)
            return folder;
        if (errno != EWOULDBLOCK)
            break;
        (void)poll(NULL, 0, LOCK_MS);
        errno = EWOULDBLOCK;
    }
    int reason = errno;
    if (folder >= 0)
        close(folder);
    errno = reason;
    return -1;
}

/* `reason`: why the folder is not locked, so that nothing can be taken over; or 0. */
static bool bind_at(int made, const struct sockaddr_un *address, int reason) {
    if (bind(made, (const struct sockaddr *)address, sizeof *address) == 0)
        return true;
    if (errno != EADDRINUSE)
        return false;
    bool is_free = is_left_over(address);
    if (is_free && reason) {
        errno = reason;
        complain("a socket is left over, but its folder cannot be locked");
        return false;
    }
    is_free = is_free && unlink(address->sun_path) == 0;
    errno = EADDRINUSE;
    return is_free && bind(made, (const struct sockaddr *)address, sizeof *address) == 0;
}

/* Of what is there and no socket the system says that the address is in use. */
static void complain_of_socket(const char *path) {
    struct stat status;
    int reason = errno;
    if (reason == EADDRINUSE && lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode))
        complain_because("is there, and is no socket", kind_name(status.st_mode));
    else
        complain_because("no socket", strerror(reason));
}

static void exchange(int *one, int *other) {
    int file = *one;
    *one = *other;
    *other = file;
}

static void close_any(int file) {
    if (file >= 0)
        close(file);
}

static void listen_at(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, options.stats, sizeof options.stats);
    int locked = lock_folder(), reason = locked < 0 ? errno : 0;
    if (reason == EWOULDBLOCK) {
        complain("no socket, its folder is locked");
        return;
    }
    int folder = open_folder(O_PATH), made = folder >= 0 ? new_socket() : -1;
    bool is_had = made >= 0 && bind_at(made, &address, reason) && listen(made, SOMAXCONN) == 0 &&
                  look_in(folder, &listener_name) == 0;
    if (is_had) {
        exchange(&listener, &made);
        exchange(&listener_folder, &folder);
    } else {
        complain_of_socket(address.sun_path);
    }
    close_any(made);
    close_any(folder);
    close_any(locked);
}

/* Who connects to its name comes here, as far as that can be seen. */
static bool is_listening(void) {
    struct stat status;
    if (listener < 0)
        return false;
    if (look_in(listener_folder, &status) != 0)
        return errno != ENOENT;
    return status.st_dev == listener_name.st_dev && status.st_ino == listener_name.st_ino;
}

static void tell(unsigned tick) {
    bool is_time = has_files && tick % WRITE_TICKS == 0;
    if (is_time && !options.is_socket)
        write_file();
    if (is_time && options.is_socket && !is_listening())
        listen_at();
    if (options.is_socket)
        callers_serve(listener, text, for_prometheus, sizeof text);
}

/* ---- the thread ---- */

/* Waits for a tick, or for a scope if there is nothing to do until then: but a free() of a thread
 * that has no scope wakes nobody, so it looks now and then. */
static void pause_for(bool sleeps) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(sleeps ? REST_MS : TICK_MS) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&tender_sleeps, sleeps, memory_order_relaxed);
    (void)pthread_cond_timedwait(&wake, &lock, &until);
    atomic_store_explicit(&tender_sleeps, false, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

/* Numbers that the thread's table has room for. */
static unsigned count_files(void) {
    int file = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = 0;
    const char *line = strstr(text, FILES_LINE);
    unsigned long count = line ? strtoul(line + strlen(FILES_LINE), NULL, 10) : 0;
    return count ? (unsigned)count : FILES_MOST;
}

/*
 * First in one call, which many containers allow that forbid the other. Not by closefrom(): where
 * that call is missing it looks at the files of the process's first thread, and waits for these to
 * go; and without /proc it ends the process.
 */
static bool own_files(void) {
    bool is_done = close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_UNSHARE) == 0;
    if (!is_done && unshare(CLONE_FILES) != 0)
        return false;
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    for (unsigned file = STDERR_FILENO + 1, end = is_done ? 0 : count_files(); file < end; file++)
        close((int)file);
    return true;
}

/* A thread that the general heap has no memory for does not fail to allocate, but crashes. */
static bool has_room(size_t stack) {
    size_t bytes = size_align(stack + HEAP_BYTES, EBB_PAGE);
    void *room = os_pages(bytes);
    if (room)
        os.release(room, bytes);
    return room != NULL;
}

/* Whoever began the thread waits for this, and may then limit the process. */
static void settle(void) {
    pthread_mutex_lock(&lock);
    is_settled = true;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
}

/*
 * The first thread has ended, which leaves no program to be read, and so have all others but those
 * here: the folder of threads has two links beside one for each. Asked without opening a file.
 */
static bool is_alone(bool has_ender) {
    char path[1];
    struct stat threads;
    return readlink("/proc/self/exe", path, sizeof path) < 0 && errno == ENOENT &&
           stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 2u + 2u + has_ender;
}

/* As the C library does when a process's last thread ends; with a stack for what the program does
 * then, and with its files, in which there may be something to write. Signals reach it. */
static void *end_process(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!is_over)
        pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    exit(0);
}

static size_t usual_stack_bytes(void) {
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    (void)pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return bytes;
}

static bool begin_ender_on(size_t stack) {
    pthread_attr_t attributes;
    pthread_t ender;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool begun = pthread_attr_setstacksize(&attributes, stack) == 0 &&
                 pthread_create(&ender, &attributes, end_process, NULL) == 0;
    pthread_attr_destroy(&attributes);
    return begun;
}

/* The thread that will: it has the table of files that this one has now, and the stack that the
 * program's threads have, or a small one. While the program runs it leaves room for what that
 * allocates. */
static bool begin_ender(bool is_at_end) {
    size_t stacks[] = {usual_stack_bytes(), stack_bytes};
    for (unsigned i = 0; i < sizeof stacks / sizeof *stacks; i++)
        if ((is_at_end || has_room(stacks[i])) && begin_ender_on(stacks[i]))
            return true;
    return false;
}

static bool end_if_alone(bool has_ender) {
    if (!is_alone(has_ender))
        return false;
    /* among files of this thread's own what the program has buffered would go to one of these */
    if (!has_ender && (has_files || !begin_ender(true)))
        _exit(0);
    pthread_mutex_lock(&lock);
    is_over = true;
    pthread_cond_signal(&over);
    pthread_mutex_unlock(&lock);
    return true;
}

static void *tend(void *unused) {
    struct trim_idle idle = {0};
    bool sleeps = false;
    (void)unused;
    has_complained = false; /* of what kept it from beginning until now */
    turn_never();
    schedule_as_first(); /* others wait for locks that it has */
    je_free(je_malloc(1)); /* what the general heap keeps for it is had now, while there is room */
    bool has_ender = *options.stats && begin_ender(false);
    has_files = *options.stats && own_files();
    if (*options.stats && !has_files)
        complain("no table of files of its own");
    settle();
    for (unsigned tick = 0; !end_if_alone(has_ender); tick++) {
        tell(tick);
        bool done = !options.idle_ms || trim_when_idle(&idle, TICK_MS, options.idle_ms);
        /* once more after all is done, since a scope may have begun before this was to be seen */
        pause_for(sleeps && done && !has_files);
        sleeps = done;
    }
    return NULL;
}

static void prepare(void) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &clock);
    pthread_condattr_destroy(&clock);
    pthread_cond_init(&over, NULL);
}

static int add_variables(struct dl_phdr_info *info, size_t bytes, void *sum) {
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

/* The C library puts the variables that each thread has at the end of its stack; for those of what
 * is loaded later it has set little aside. The walk has a lock that in a child nobody may give
 * back, as its thread did not come along: the thread of a child begins without a walk. */
void tender_prepare(void) {
    size_t bytes = STACK_BYTES;
    (void)dl_iterate_phdr(add_variables, &bytes);
    stack_bytes = bytes;
}

/* 0, or an errno code. */
static int begin_thread(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    if (!has_room(stack_bytes) || pthread_attr_init(&attributes) != 0)
        return ENOMEM;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &blocked);
    int error = pthread_create(&thread, &attributes, tend, NULL);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* True: it is missing, and the caller's to begin. */
static bool take_turn(void) {
    uint64_t now_ns = os.now_ns();
    pthread_mutex_lock(&lock);
    bool is_due = !is_there && now_ns >= try_at_ns;
    if (is_due) {
        is_there = true;
        try_at_ns = now_ns + RETRY_NS;
    }
    pthread_mutex_unlock(&lock);
    return is_due;
}

static bool has_work(void) {
    return options.idle_ms || *options.stats;
}

void tender_begin(void) {
    if (!has_work())
        return;
    pthread_once(&once, prepare);
    if (!take_turn())
        return;
    int cancel; /* a thread that is cancelled in the wait would keep the lock */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int error = begin_thread();
    if (error && *options.stats)
        complain_because("no thread, it is tried again as scopes begin", strerror(error));
    pthread_mutex_lock(&lock);
    is_there = !error;
    if (error) /* so that the next scope asks for it */
        atomic_store_explicit(&tender_sleeps, true, memory_order_relaxed);
    while (!error && !is_settled)
        pthread_cond_wait(&wake, &lock);
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
}

void tender_rouse(void) {
    pthread_mutex_lock(&lock);
    if (is_there) {
        atomic_store_explicit(&tender_sleeps, false, memory_order_relaxed);
        pthread_cond_signal(&wake);
    }
    pthread_mutex_unlock(&lock);
}

void tender_wake(void) {
    tender_begin();
    tender_rouse();
}

void tender_fork(bool before, bool in_child) {
    if (before) {
        pthread_mutex_lock(&lock);
        return;
    }
    if (in_child) {
        is_there = is_settled = is_over = false;
        try_at_ns = 0;
        options_for_child();
        atomic_store_explicit(&tender_sleeps, has_work(), memory_order_relaxed); /* until a scope */
        listener = listener_folder = -1; /* which were in the thread's table */
        callers_forget();                /* so were theirs */
        has_complained = false;
        prepare(); /* the condition that nobody waits for any more */
    }
    pthread_mutex_unlock(&lock);
}
