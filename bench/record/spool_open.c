// SPDX-License-Identifier: Apache-2.0
/*
 * spool_open.c - makes the spool that the environment asks for.
 *
 *     EBB_RECORD_SPOOL=FOLDER     each program that starts makes FOLDER/PID.N there
 *     EBB_RECORD_LIMIT=BYTES      of a spool; 1 GiB
 *     EBB_RECORD_FUNCTION=NAME    each call of it is noted
 *
 * Without the first nothing is recorded and the calls are passed on. A value that makes no sense is
 * told on the standard error, and has no effect. The environment is read from /proc, since the
 * first call comes before the C library has its own; where there is no /proc the constructor looks
 * again. A forked child notes nothing: the page that `recording` points to is wiped by fork,
 * whoever calls it. What the child executes makes a spool of its own.
 *
 * The file is locked until nobody has its head mapped any more, whatever ended the process or
 * became of its number: by that others see that nothing more will be noted.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "recorder.h"

enum { VALUE_MAX = SPOOL_FUNCTION, TRIES = 1000 }; /* as long as a path, too */

static const bool off;

struct spool_head *spool;
const bool *recording = &off;

static bool tried, told;
static bool *switched; /* what `recording` points to, once there is a spool */
static char path[VALUE_MAX + 32];
static int descriptor = -1;
static dev_t device;
static ino_t inode;
static atomic_flag kinds_lock = ATOMIC_FLAG_INIT;

/* ---- the environment */

struct wish {
    const char *name;
    char value[VALUE_MAX];
};

static struct wish wishes[] = {{"EBB_RECORD_SPOOL=", ""}, {"EBB_RECORD_LIMIT=", ""},
                               {"EBB_RECORD_FUNCTION=", ""}};

enum { WISH_SPOOL, WISH_LIMIT, WISH_FUNCTION, WISHES };

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *format, ...) {
    char text[VALUE_MAX + 128];
    va_list words;
    va_start(words, format);
    int length = vsnprintf(text, sizeof text, format, words);
    va_end(words);
    ssize_t ignored = write(STDERR_FILENO, text, (size_t)length);
    (void)ignored;
}

/* The environment may be read more than once; what is too long is told once. */
static void take_setting(const char *setting) {
    for (int i = 0; i < WISHES; i++) {
        size_t length = strlen(wishes[i].name);
        if (strncmp(setting, wishes[i].name, length) != 0)
            continue;
        if (strlen(setting + length) < VALUE_MAX) {
            strcpy(wishes[i].value, setting + length);
        } else if (!told) {
            told = true;
            tell("libebb-record: %.*s: more than %d bytes, which has no effect\n",
                 (int)length - 1, setting, VALUE_MAX - 1);
        }
    }
}

/* One setting after the other; what is longer than `setting` is cut, no wish is that long. */
static void read_environment(void) {
    static char block[4096], setting[2 * VALUE_MAX];
    size_t length = 0;
    int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    ssize_t got;
    while (file >= 0 && (got = read(file, block, sizeof block)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            if (length < sizeof setting - 1)
                setting[length++] = block[i];
            if (block[i] == '\0') {
                setting[length] = '\0';
                take_setting(setting);
                length = 0;
            }
        }
    if (file >= 0)
        close(file);
}

static uint64_t limit_wished(void) {
    const char *value = wishes[WISH_LIMIT].value;
    char *end;
    errno = 0;
    bool has_digits = *value >= '0' && *value <= '9'; /* no space, no sign */
    uint64_t limit = strtoull(value, &end, 10);
    if (has_digits && !*end && !errno && limit >= SPOOL_HEAD + SPOOL_CHUNK &&
        limit <= SPOOL_LIMIT_MOST)
        return limit;
    if (*value)
        tell("libebb-record: EBB_RECORD_LIMIT is '%.32s', expected %" PRIu64 " to %" PRIu64
             " bytes; it has no effect\n", value, (uint64_t)(SPOOL_HEAD + SPOOL_CHUNK),
             SPOOL_LIMIT_MOST);
    return UINT64_C(1) << 30;
}

/* ---- the file */

static void complain(const char *what) {
    tell("libebb-record: %s: %s: %s; nothing is recorded\n", path, what, strerror(errno));
}

/* The same file, under a number that the program does not look for: what it writes to a standard
 * stream that it has closed must not be written to the spool. */
static int out_of_the_way(int file) {
    int moved = fcntl(file, F_DUPFD_CLOEXEC, 200);
    if (moved < 0) /* so few are allowed */
        moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(file);
    return moved;
}

static bool make_file(void) {
    for (int i = 0; i < TRIES; i++) {
        snprintf(path, sizeof path, "%s/%ld.%d", wishes[WISH_SPOOL].value, (long)getpid(), i);
        int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0) {
            descriptor = out_of_the_way(file);
            if (descriptor >= 0)
                return true;
            unlink(path);
            break;
        }
        if (errno == ENOENT)
            return false; /* the recording is over: whoever began it has gone, and its folder */
        if (errno != EEXIST)
            break;
    }
    complain("cannot be made");
    return false;
}

/* The trace is made beside the spool, while that is there: it takes less than half as many bytes,
 * which must stay free. Some file systems do not say what they have. */
static bool leaves_room(int file, uint64_t size, uint64_t more) {
    struct statfs disk;
    if (fstatfs(file, &disk) != 0 || disk.f_blocks == 0 || disk.f_bsize <= 0)
        return true;
    uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
    return blocks > (size / 2 + more) / (uint64_t)disk.f_bsize;
}

/* Where the file system cannot, posix_fallocate() writes. Beyond RLIMIT_FSIZE nothing is asked for:
 * the answer would be SIGXFSZ. */
bool spool_make_room(int file, uint64_t at, uint64_t bytes) {
    struct rlimit limit;
    int result;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && at + bytes > limit.rlim_cur) {
        errno = EFBIG;
        return false;
    }
    if (!leaves_room(file, at + bytes, bytes)) {
        errno = ENOSPC;
        return false;
    }
    do
        result = posix_fallocate(file, (off_t)at, (off_t)bytes);
    while (result == EINTR);
    errno = result;
    return result == 0;
}

/* Processes in a space of their own have numbers that others have outside of it. */
static uint32_t process_space(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint32_t)status.st_ino : 0;
}

/* A lock is that of the open file, which a mapping keeps open when its descriptor is closed, by us
 * or by the program. Not everywhere (overlayfs maps another file), so it is tried. */
static bool lock_mapped(void) {
    int file = flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return false;
    close(descriptor);
    descriptor = out_of_the_way(file);
    return flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* Who ends before the head is whole has said by this whose end that is (spools.c). */
static bool tell_space(void) {
    uint32_t space = process_space();
    return spool_make_room(descriptor, 0, SPOOL_STATE) &&
           pwrite(descriptor, &space, sizeof space, offsetof(struct spool_head, space)) ==
               (ssize_t)sizeof space;
}

/* A spool that nothing will be noted in is none. */
static bool give_up(const char *what) {
    complain(what);
    unlink(path);
    close(descriptor);
    return false;
}

static bool map_head(void) {
    struct stat status;
    if (!tell_space() || !spool_make_room(descriptor, 0, SPOOL_HEAD) ||
        fstat(descriptor, &status) != 0)
        return give_up("no room");
    if (status.st_nlink == 0)
        return false; /* the recording is over, and could not tell before there was a head */
    device = status.st_dev;
    inode = status.st_ino;
    void *head = mmap(NULL, SPOOL_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (head == MAP_FAILED)
        return give_up("cannot be mapped");
    spool = head;
    spool->process = (uint32_t)getpid();
    spool->limit = limit_wished();
    atomic_store(&spool->locked, lock_mapped());
    atomic_store(&spool->module_count, 1);
    atomic_store(&spool->sequence, 1);
    memcpy(spool->magic, SPOOL_MAGIC, sizeof spool->magic);
    return true;
}

static bool make_switch(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0)
        return give_up("no page that fork wipes");
    switched = page;
    *switched = true;
    recording = switched;
    return true;
}

void spool_open(void) {
    int kept = errno;
    if (!wishes[WISH_SPOOL].value[0])
        read_environment();
    if (!tried && wishes[WISH_SPOOL].value[0]) {
        tried = true;
        if (make_file() && map_head() && make_switch() && wishes[WISH_FUNCTION].value[0])
            function_watch(wishes[WISH_FUNCTION].value);
    }
    errno = kept;
}

static bool is_ours(int file) {
    struct stat status;
    return file >= 0 && fstat(file, &status) == 0 && status.st_dev == device &&
           status.st_ino == inode;
}

/* Programs close descriptors that they do not know, and get the number again for something else. */
int spool_descriptor(void) {
    if (is_ours(descriptor))
        return descriptor;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (!is_ours(file)) {
        if (file >= 0)
            close(file);
        return -1;
    }
    descriptor = out_of_the_way(file);
    return descriptor;
}

void spool_stop(enum spool_stop why) {
    uint32_t none = SPOOL_GOES_ON;
    if (atomic_compare_exchange_strong(&spool->stopped, &none, (uint32_t)why))
        atomic_store(&spool->stop_sequence, atomic_load(&spool->sequence));
    *switched = false;
}

/* ---- kinds */

/* The format wants a word of printable characters. */
static void copy_word(char *to, const char *from) {
    size_t length = 0;
    for (; from[length] && length < SPOOL_KIND_NAME - 1; length++)
        to[length] = from[length] > ' ' && from[length] < 127 ? from[length] : '_';
    if (length == 0)
        to[length++] = '_';
    to[length] = '\0';
}

/* False: it is none of those there are, and `number` would be the next. */
static bool find_kind(const char *word, uint32_t *number) {
    uint32_t count = atomic_load(&spool->kind_count);
    for (*number = 0; *number < count; ++*number)
        if (strcmp(spool->kind[*number], word) == 0)
            return true;
    return false;
}

/* A signal handler that marks something must not wait for what it interrupted. */
static uint32_t add_kind(const char *word) {
    sigset_t all, before;
    uint32_t number;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (atomic_flag_test_and_set(&kinds_lock))
        continue;
    if (!find_kind(word, &number) && number < SPOOL_KINDS) {
        strcpy(spool->kind[number], word);
        atomic_store(&spool->kind_count, number + 1);
    }
    atomic_flag_clear(&kinds_lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return number;
}

/* Kinds stay once they are counted, so most are found without a lock. */
uint32_t spool_kind(const char *name) {
    char word[SPOOL_KIND_NAME];
    uint32_t number;
    copy_word(word, name);
    if (!find_kind(word, &number) && number < SPOOL_KINDS)
        number = add_kind(word);
    return number < SPOOL_KINDS ? number : SPOOL_KINDS - 1; /* the rest share the last */
}

/* ---- begin of the process */

__attribute__((constructor)) static void look_again(void) {
    next_resolve();
    for (char **setting = environ; !spool && setting && *setting; setting++)
        take_setting(*setting);
    spool_open();
    function_look_again();
}
