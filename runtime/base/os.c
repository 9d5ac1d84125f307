// SPDX-License-Identifier: Apache-2.0
/*
 * os.c - the real table: Linux.
 *
 * Reservations are private, anonymous and not counted against overcommit, but where the system
 * counts strictly, and then what is open; pages come into being when first touched. Refuses nothing
 * itself: failures are passed on.
 */
#include "base/os.h"
#include "base/os_file.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* The system's core dumps leave out what is closed; a debugger's write zeros for terabytes of it,
 * unless they are told. What is mapped over it is dumped again. */
static void *map_closed(void *addr, size_t bytes, int flags) {
    void *got = mmap(addr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags,
                     -1, 0);
    if (got == MAP_FAILED)
        return NULL;
    (void)madvise(got, bytes, MADV_DONTDUMP);
    return got;
}

#define LOW_UNIT ((size_t)2 << 20)

/*
 * Side by side and below all that the system places by itself, from half of the address of the
 * first caller's stack on: who has an address needs one comparison to see that it is above. No more
 * than a wish: what is taken, or not to be had, is placed as usual.
 */
static void *reserve(size_t bytes) {
    static atomic_uintptr_t end; /* relaxed: of two at once, one may have no such place */
    uintptr_t wish = atomic_load_explicit(&end, memory_order_relaxed);
    if (!wish)
        wish = size_align_down((uintptr_t)&wish / 2, LOW_UNIT);
    void *got = map_closed((void *)wish, bytes, 0);
    if ((uintptr_t)got == wish)
        atomic_store_explicit(&end, size_align(wish + bytes, EBB_PAGE), memory_order_relaxed);
    return got;
}

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif

/*
 * What the program has locked and left so goes as well: nobody has these pages any more. Locked
 * they are again when touched, and not where the system is older. Without this one page would keep
 * all that lies behind it.
 */
static int give_back(void *addr, size_t bytes) {
    int result = madvise(addr, bytes, MADV_DONTNEED);
    if (result == 0 || errno != EINVAL)
        return result;
    if (madvise(addr, bytes, MADV_DONTNEED_LOCKED) == 0)
        return 0;
    (void)munlock(addr, bytes);
    return madvise(addr, bytes, MADV_DONTNEED);
}

/* For the copy of a heap that asks it in a free(), which keeps errno: the system refuses to take
 * pages that are locked. */
int ebb_jemalloc_madvise(void *addr, size_t bytes, int advice);

int ebb_jemalloc_madvise(void *addr, size_t bytes, int advice) {
    int before = errno, result = madvise(addr, bytes, advice);
    errno = before;
    return result;
}

static size_t resident(void *addr, size_t bytes) {
    unsigned char in_core[1024];
    size_t total = 0;
    for (size_t done = 0; done < bytes; done += sizeof in_core * EBB_PAGE) {
        size_t part = size_smaller(bytes - done, sizeof in_core * EBB_PAGE);
        if (mincore((char *)addr + done, part, in_core) != 0)
            return total;
        for (size_t page = 0; page < part / EBB_PAGE; page++)
            total += (in_core[page] & 1) * EBB_PAGE;
    }
    return total;
}

bool os_tells_resident(void) {
    unsigned char none;
    return mincore(NULL, 0, &none) == 0;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool allow(enum os_acquisition what) {
    (void)what;
    return true;
}

static void release(void *addr, size_t bytes) {
    (void)munmap(addr, bytes);
}

enum overcommit { OVERCOMMIT_IS_STRICT = '2', OVERCOMMIT_UNKNOWN = 0, OVERCOMMIT_NOT_ASKED = 1 };

/* As the system writes it. By plain system calls: others are points where a thread may be
 * cancelled, with locks held. */
static char overcommit(void) {
    char mode = OVERCOMMIT_UNKNOWN;
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/sys/vm/overcommit_memory",
                        O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return mode;
    if (syscall(SYS_read, file, &mode, 1) != 1)
        mode = OVERCOMMIT_UNKNOWN;
    (void)syscall(SYS_close, file);
    return mode;
}

static _Atomic(char) learned_overcommit = OVERCOMMIT_NOT_ASKED;

void os_learn_overcommit(void) {
    /* relaxed, here and below: it stands for itself, and who asks at once learns the same */
    atomic_store_explicit(&learned_overcommit, overcommit(), memory_order_relaxed);
}

/* As it was when it was learned. A free() must open no file each time: other threads of the program
 * count on the lowest descriptor, and a sandbox may forbid it. */
static bool is_strict_for_shut(void) {
    if (atomic_load_explicit(&learned_overcommit, memory_order_relaxed) == OVERCOMMIT_NOT_ASKED)
        os_learn_overcommit();
    return atomic_load_explicit(&learned_overcommit, memory_order_relaxed) == OVERCOMMIT_IS_STRICT;
}

/* Where this is not told, there is a limit. */
static bool is_limited(void) {
    struct rlimit data;
    if (getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY)
        return true;
    char mode = overcommit();
    return mode == OVERCOMMIT_UNKNOWN || mode == OVERCOMMIT_IS_STRICT;
}

/*
 * Fresh addresses are counted nowhere; what mprotect() closes may stay counted where overcommit is
 * strict. It goes first all the same: a system that has no memory for the mapping may have unmapped
 * what was there, and then others may have the addresses.
 */
static int close_pages(void *addr, size_t bytes) {
    bool closed = mprotect(addr, bytes, PROT_NONE) == 0;
    return map_closed(addr, bytes, MAP_FIXED) || closed ? 0 : errno;
}

/* mprotect() may be refused in the midst of several mappings: those before are opened again, which
 * needs no mapping more. */
static int close_or_leave(void *addr, size_t bytes) {
    int reason = close_pages(addr, bytes);
    if (reason)
        (void)mprotect(addr, bytes, PROT_READ | PROT_WRITE);
    return reason;
}

/* The system refuses to take pages that are locked; of closed addresses there are none to take. */
static bool is_locked(void *closed, size_t bytes) {
    return madvise(closed, bytes, MADV_DONTNEED) != 0 && errno == EINVAL;
}

/* As of a process that has called mlockall(MCL_FUTURE), which nothing else tells. EAGAIN: it has
 * locked all that it may. */
static bool locks_what_is_new(void) {
    void *page = mmap(NULL, EBB_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                      0);
    if (page == MAP_FAILED)
        return errno == EAGAIN;
    bool locks = is_locked(page, EBB_PAGE);
    release(page, EBB_PAGE);
    return locks;
}

static int map_over(void *addr, size_t bytes, int protection, const struct os_backing *what) {
    void *got = mmap(addr, bytes, protection, what->flags | MAP_NORESERVE | MAP_FIXED, what->fd,
                     (off_t)what->offset);
    return got == MAP_FAILED ? errno : 0;
}

/* What is locked has all its pages as soon as it is open, holes of a file too, unless it was said
 * before that they are to be locked when touched. */
int os_map_over(void *addr, size_t bytes, const struct os_backing *what) {
    if (!locks_what_is_new())
        return map_over(addr, bytes, PROT_READ | PROT_WRITE, what);
    int reason = map_over(addr, bytes, PROT_NONE, what);
    if (reason)
        return reason;
    (void)mlock2(addr, bytes, MLOCK_ONFAULT);
    return mprotect(addr, bytes, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
}

static const struct os_backing zero_pages = {.flags = MAP_PRIVATE | MAP_ANONYMOUS, .fd = -1};

static int cover(void *addr, size_t bytes) {
    return os_map_over(addr, bytes, &zero_pages);
}

/*
 * What takes the place of a mapping as long is not held against RLIMIT_DATA: the program would find
 * nothing left. Where overcommit is strict, Linux before 6.12 refuses after it has unmapped what
 * was there, and others get the addresses. mprotect() refuses first, if not in the midst of several
 * mappings: those before are closed again. But memcheck looks at each byte of what that opens.
 *
 * What is locked has all its pages as soon as it is open, unless it was said before, and of a fresh
 * mapping it cannot be, that they are to be locked when touched. Where that is refused they come.
 */
static int open_pages(void *addr, size_t bytes) {
    bool locks = locks_what_is_new();
    if (!locks && !is_limited())
        return map_over(addr, bytes, PROT_READ | PROT_WRITE, &zero_pages);
    if (locks || is_locked(addr, bytes))
        (void)mlock2(addr, bytes, MLOCK_ONFAULT);
    if (mprotect(addr, bytes, PROT_READ | PROT_WRITE) == 0) {
        (void)madvise(addr, bytes, MADV_DODUMP);
        return 0;
    }
    int reason = errno;
    (void)close_pages(addr, bytes);
    return reason;
}

/*
 * A fresh mapping between others, there and back, stays one of its own for ever where they are of
 * another kind: in the child of a fork, where they are locked, or advised to have huge pages. What
 * mprotect() closes is no data (RLIMIT_DATA), but may stay counted where overcommit is strict.
 * Where a filter of system calls lets no pages go nothing is shut: it would all stay in memory. But
 * a process above its limit of data may not open it again at once. It stays shut then.
 */
static int shut(void *addr, size_t bytes) {
    if (is_strict_for_shut())
        return close_or_leave(addr, bytes);
    if (mprotect(addr, bytes, PROT_NONE) != 0 || give_back(addr, bytes) != 0) {
        int reason = errno;
        if (mprotect(addr, bytes, PROT_READ | PROT_WRITE) == 0) /* as in close_or_leave() */
            return reason;
    }
    (void)madvise(addr, bytes, MADV_DONTDUMP);
    return 0;
}

/* What is locked has all its pages as soon as it is open: to say before that they are to be locked
 * when touched would make another kind of it. So they go again. */
static int reopen(void *addr, size_t bytes) {
    bool locked = is_locked(addr, bytes);
    if (mprotect(addr, bytes, PROT_READ | PROT_WRITE) == 0) {
        if (locked)
            (void)give_back(addr, bytes);
        (void)madvise(addr, bytes, MADV_DODUMP);
        return 0;
    }
    int reason = errno;
    (void)shut(addr, bytes);
    return reason;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

bool os_populates(void) {
    return madvise(NULL, 0, MADV_POPULATE_WRITE) == 0;
}

/* An older system does not know it, and touches the pages one by one later. */
static int populate(void *addr, size_t bytes) {
    int result;
    do
        result = madvise(addr, bytes, MADV_POPULATE_WRITE);
    while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL ? 0 : errno;
}

static void advise_huge(void *addr, size_t bytes) {
    (void)madvise(addr, bytes, MADV_HUGEPAGE);
}

static void advise_small(void *addr, size_t bytes) {
    (void)madvise(addr, bytes, MADV_NOHUGEPAGE);
}

/* Who agrees to advice that does not exist (an emulator, a filter of system calls) follows none. */
static int wipe_in_children(void *addr, size_t bytes) {
    if (madvise(addr, bytes, -1) == 0)
        return -1;
    return madvise(addr, bytes, MADV_WIPEONFORK); /* Linux 4.14 */
}

/* Linux says that pages are locked before it touches them, and leaves it at that where there is no
 * memory for one of them. */
static int lock(void *addr, size_t bytes) {
    if (mlock(addr, bytes) == 0)
        return 0;
    int reason = errno;
    (void)munlock(addr, bytes);
    return reason;
}

static void unlock(void *addr, size_t bytes) {
    (void)munlock(addr, bytes);
}

/* ---- between processes ---- */

/* Once that process has gone its number may be another's: only the parent is asked about. */
static bool shares_files(int process) {
    return getppid() != process ||
           syscall(SYS_kcmp, getpid(), process, KCMP_FILES, 0, 0) <= 0;
}

static int wait(const void *word, uint32_t value, uint64_t ns) {
    struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0) == 0 ? 0 : errno;
}

static void wake(const void *word) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Early in a boot there may be nothing to draw from: the clock and an address then. */
static uint64_t draw(void) {
    uint64_t number = 0;
    if (syscall(SYS_getrandom, &number, sizeof number, GRND_NONBLOCK) != (long)sizeof number)
        number = now_ns() * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)&number;
    return number;
}

static void pass(const char *step) {
    (void)step;
}

struct os_table os = {
    .page_bytes = page_bytes,
    .reserve = reserve,
    .open = open_pages,
    .close = close_or_leave,
    .shut = shut,
    .reopen = reopen,
    .give_back = give_back,
    .resident = resident,
    .now_ns = now_ns,
    .allow = allow,
    .release = release,
    .cover = cover,
    .populate = populate,
    .advise_huge = advise_huge,
    .advise_small = advise_small,
    .wipe_in_children = wipe_in_children,
    .shares_files = shares_files,
    .lock = lock,
    .unlock = unlock,
    .file_make = os_file_make,
    .file_check = os_file_check,
    .file_identify = os_file_identify,
    .file_copy = os_file_copy,
    .file_again = os_file_again,
    .file_read = os_file_read,
    .file_map = os_file_map,
    .file_back = os_file_back,
    .file_hole = os_file_hole,
    .file_punch = os_file_punch,
    .file_lock = os_file_lock,
    .file_is_locked = os_file_is_locked,
    .file_close = os_file_close,
    .wait = wait,
    .wake = wake,
    .draw = draw,
    .pass = pass,
};

void *os_pages(size_t bytes) {
    void *addr = os.reserve(bytes);
    if (!addr || os.open(addr, bytes) == 0)
        return addr;
    os.release(addr, bytes);
    return NULL;
}
