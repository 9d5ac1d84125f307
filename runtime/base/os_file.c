// SPDX-License-Identifier: Apache-2.0
/*
 * os_file.c - memory files: Linux's memfd, its seals, and locks that end with their opening.
 *
 * A memory file has no name and lives as long as a descriptor or a mapping of it; nothing is left
 * behind, however its users end. Sealed, its size is what it was made with: a mapping of it never
 * loses the file under it. Locks are those of open file descriptions: the kernel drops them when
 * the last descriptor of an opening is closed, at the latest when the process is gone.
 *
 * Whoever calls here holds locks. So what the C library makes a point where a thread may be
 * cancelled is a plain system call.
 */
#include "base/os_file.h"
#include "base/os.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10 /* Linux 5.1 */
#endif

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SEALS_AGAINST_US (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) /* no mapping can be written to */

#define BACKED_AT_ONCE ((size_t)4 << 20)

/* A file that is larger than the process may have would end it with a signal. */
static bool may_be_so_large(size_t bytes) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

/* A program that closed its standard files would print into one that has such a number. */
static int keep_off_standard(int *fd) {
    int low = *fd;
    if (low < 0)
        return errno;
    if (low > STDERR_FILENO)
        return 0;
    int reason = os_file_copy(low, fd);
    os_file_close(low);
    return reason;
}

/* Never to be executed, where the system knows that: it may make no others (vm.memfd_noexec). */
static int make(const char *name) {
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}

int os_file_make(const char *name, size_t bytes, int *fd) {
    if (!may_be_so_large(bytes))
        return EFBIG;
    *fd = make(name);
    int reason = keep_off_standard(fd);
    if (reason)
        return reason;
    if (ftruncate(*fd, (off_t)bytes) == 0 && fcntl(*fd, F_ADD_SEALS, SEALS) == 0)
        return 0;
    reason = errno;
    os_file_close(*fd);
    return reason;
}

int os_file_check(int fd, size_t *bytes) {
    struct stat stat;
    int seals = fcntl(fd, F_GET_SEALS), flags = fcntl(fd, F_GETFL);
    if (seals < 0 || flags < 0 || fstat(fd, &stat) != 0)
        return errno;
    if ((flags & O_ACCMODE) != O_RDWR)
        return EACCES;
    if ((seals & SEALS) != SEALS || stat.st_size < 0 || (seals & SEALS_AGAINST_US))
        return EINVAL;
    *bytes = (size_t)stat.st_size;
    return 0;
}

int os_file_identify(int fd, struct os_file_identity *identity) {
    struct stat stat;
    if (fstat(fd, &stat) != 0)
        return errno;
    *identity = (struct os_file_identity){.device = stat.st_dev, .number = stat.st_ino};
    return 0;
}

int os_file_copy(int fd, int *copy) {
    *copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return *copy < 0 ? errno : 0;
}

int os_file_again(int fd, int *other) {
    char path[40]; /* that of the process has no files once its first thread has ended */
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
    *other = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    return keep_off_standard(other);
}

int os_file_read(int fd, void *to, size_t bytes) {
    long got;
    do
        got = syscall(SYS_pread64, fd, to, bytes, (off_t)0);
    while (got < 0 && errno == EINTR);
    return got < 0 ? errno : (size_t)got == bytes ? 0 : EINVAL;
}

/* A core dump reads all of a mapping, and what is read of a hole gets pages that nobody counts. */
int os_file_map(int fd, size_t offset, void *addr, size_t bytes) {
    int reason = os_map_over(addr, bytes, &(struct os_backing){MAP_SHARED, fd, offset});
    if (!reason)
        (void)madvise(addr, bytes, MADV_DONTDUMP);
    return reason;
}

static int allocate(int fd, int mode, size_t offset, size_t bytes) {
    long result = syscall(SYS_fallocate, fd, mode, (off_t)offset, (off_t)bytes);
    return result == 0 ? 0 : errno;
}

/*
 * Older versions of Linux, 6.1 among them, give up when a signal comes, and take back all that the
 * call has got: with a timer that comes again and again a long call would never end. So there are
 * several, as long as signals allow; a page can be had between two of them.
 */
int os_file_back(int fd, size_t offset, size_t bytes) {
    for (size_t most = BACKED_AT_ONCE; bytes > 0;) {
        size_t part = size_smaller(bytes, most);
        int reason = allocate(fd, FALLOC_FL_KEEP_SIZE, offset, part);
        if (reason && reason != EINTR)
            return reason;
        if (reason) {
            most = size_align(part / 2, EBB_PAGE);
            continue;
        }
        offset += part;
        bytes -= part;
        most = size_smaller(2 * most, BACKED_AT_ONCE);
    }
    return 0;
}

/* To Linux pages that were allocated and never touched are a hole. Where they are touched one by
 * one, there are such ones among those that are in use. Some systems that serve Linux's calls
 * themselves, or filter them, know of no holes: such a file is as one that has none. */
int os_file_hole(int fd, size_t offset, size_t *at) {
    *at = SIZE_MAX;
    if (!os_populates())
        return 0;
    off_t hole = lseek(fd, (off_t)offset, SEEK_HOLE);
    if (hole < 0)
        return errno == EINVAL || errno == ENOTSUP ? 0 : errno;
    *at = (size_t)hole;
    return 0;
}

int os_file_punch(int fd, size_t offset, size_t bytes) {
    int reason;
    do
        reason = allocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, offset, bytes);
    while (reason == EINTR);
    return reason;
}

static struct flock lock_of(size_t byte) {
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
}

int os_file_lock(int fd, size_t byte) {
    struct flock lock = lock_of(byte);
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EACCES ? EAGAIN : errno;
}

int os_file_is_locked(int fd, size_t byte, bool *locked) {
    struct flock lock = lock_of(byte);
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
        return errno;
    *locked = lock.l_type != F_UNLCK;
    return 0;
}

void os_file_close(int fd) {
    (void)syscall(SYS_close, fd);
}
