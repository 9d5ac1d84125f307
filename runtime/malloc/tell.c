// SPDX-License-Identifier: Apache-2.0
/*
 * tell.c - statistics of a running process, for others to read (see tell.h).
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
 * Invariant: this thread never opens a file in the program's table. What keeps statistics from
 * being told is named once on the standard error; a file or socket that cannot be had is tried
 * again each second.
 */
#include "malloc/tell.h"
#include "malloc/callers.h"
#include "malloc/options.h"
#include "malloc/view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define WRITE_TICKS 4u /* statistics are written every so many */
#define LOCK_TRIES 20u /* others have a folder locked for much less than a millisecond */
#define LOCK_MS 5
#define TEXT_BYTES ((size_t)2 << 20) /* of a thousand sites at least; costs what is written */
#define FILES_LINE "\nFDSize:" /* of a thread's status */
#define FILES_MOST (1u << 20)   /* that a table has, where that is not to be read */

static bool has_complained;
static int listener = -1;
static int listener_folder = -1;  /* where it was bound, */
static struct stat listener_name; /* and what it was there by name */
static char text[TEXT_BYTES], for_prometheus[TEXT_BYTES];

void tell_complain(const char *what, const char *reason) {
    if (!has_complained)
        options_complain("EBB_MALLOC_STATS: %s: %s: %s", options.stats, what, reason);
    has_complained = true;
}

static void complain(const char *what) {
    tell_complain(what, strerror(errno));
}

static const char *kind_name(mode_t mode) {
    return S_ISREG(mode)    ? "a file"
           : S_ISDIR(mode)  ? "a directory"
           : S_ISLNK(mode)  ? "a link"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

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
    tell_complain("is there, and is no file to be replaced", kind_name(status.st_mode));
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
        tell_complain("the file with .new behind its name cannot be opened",
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
        tell_complain("is there, and is no socket", kind_name(status.st_mode));
    else
        tell_complain("no socket", strerror(reason));
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

void tell(unsigned tick) {
    bool is_time = tick % WRITE_TICKS == 0;
    if (is_time && !options.is_socket)
        write_file();
    if (is_time && options.is_socket && !is_listening())
        listen_at();
    if (options.is_socket)
        callers_serve(listener, text, for_prometheus, sizeof text);
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

bool tell_begin(void) {
    has_complained = false; /* of what kept it from beginning until now */
    bool begun = own_files();
    if (!begun)
        complain("no table of files of its own");
    return begun;
}

void tell_forget(void) {
    listener = listener_folder = -1; /* which were in the thread's table */
    callers_forget();                /* so were theirs */
    has_complained = false;
}
