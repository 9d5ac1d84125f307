// SPDX-License-Identifier: Apache-2.0
//
// client.c - a program that knows what it allocates. test_record.c records it.
//
//     client SCENARIO
//
// What is to be exact lies between two marks; outside of them the C library may do as it likes.
// Exit code: 0, or 1 where something is not as it should be, with a line that says what.

#include "demand.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ebb/step.h>

#include "client.h"

enum { THREADS = 4, BLOCKS = 2000, MANY = 50000 };

static void (*begin)(const char *kind, uint64_t argument);
static void (*end)(void);

// Kept from the compiler, which knows what malloc() and free() do.
static void *volatile sink;

static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    DEMAND(found);
    memcpy(function, &found, sizeof found);
}

// ---- one thread

static void fail_well(size_t huge)
{
    void *block = NULL;

    errno = 0;
    sink = malloc(huge);
    DEMAND(!sink && errno == ENOMEM);
    sink = calloc(huge, 2);
    DEMAND(!sink);
    DEMAND(posix_memalign(&block, 3, 100) == EINVAL);
}

static void family(void)
{
    volatile size_t huge = (size_t)PTRDIFF_MAX + 1;
    void *a, *b, *c, *d = NULL;

    begin("family", 7);
    a = malloc(CLIENT_MALLOC);
    b = calloc(3, CLIENT_CALLOC);
    c = aligned_alloc(256, CLIENT_ALIGNED);
    DEMAND(posix_memalign(&d, 4096, CLIENT_POSIX) == 0);
    a = realloc(a, CLIENT_GROWN);
    b = reallocarray(b, 5, CLIENT_ARRAY);
    sink = realloc(NULL, CLIENT_FRESH);
    free(sink);
    sink = malloc(0);
    DEMAND(sink);
    free(sink);
    fail_well(huge);
    errno = 0;
    sink = a;
    sink = realloc(sink, huge);
    DEMAND(!sink && errno == ENOMEM); // a is as it was
    sink = b;
    sink = reallocarray(sink, huge, 4);
    DEMAND(!sink);
    errno = EDOM;
    free(c);
    DEMAND(errno == EDOM);
    sink = memalign(64, CLIENT_MEMALIGN);
    DEMAND((uintptr_t)sink % 64 == 0);
    free(sink);
    sink = valloc(CLIENT_VALLOC);
    free(sink);
    sink = pvalloc(CLIENT_VALLOC);
    DEMAND(malloc_usable_size(sink) >= CLIENT_VALLOC && malloc_usable_size(NULL) == 0);
    free(sink);
    free(NULL);
    end();
    free(a); // after the last mark: alive at the end of the trace
    free(b);
    free(d);
}

// A block that was aligned and is not any more.
static void moved(void)
{
    begin("moved", 0);
    sink = aligned_alloc(64, CLIENT_ALIGNED);
    sink = realloc(sink, CLIENT_GROWN);
    free(sink);
    end();
}

static void giant(void)
{
    size_t bytes = (size_t)5 << 30; // more than 32 bits hold

    begin("giant", bytes);
    sink = malloc(bytes);
    DEMAND(sink);
    free(sink);
    end();
}

// ---- threads

static void *blocks[THREADS][BLOCKS];
static pthread_barrier_t barrier;

// Each thread frees what its neighbour allocated.
static void *exchange(void *argument)
{
    size_t own = (size_t)(uintptr_t)argument;

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[own][i] = malloc(16 + i % 100);
        pthread_barrier_wait(&barrier);
        for (size_t i = 0; i < BLOCKS; i++)
            free(blocks[(own + 1) % THREADS][i]);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];

    pthread_barrier_init(&barrier, NULL, THREADS);
    begin("threads", 0);
    for (size_t i = 0; i < THREADS; i++)
        DEMAND(pthread_create(&thread[i], NULL, exchange, (void *)(uintptr_t)i) == 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    sink = malloc(CLIENT_MALLOC);
    end();
}

static pthread_key_t late;

// As late as destructors come, and the C library's own come later still.
static void clean_up(void *rounds)
{
    sink = malloc(CLIENT_FRESH);
    free(sink);
    if ((uintptr_t)rounds > 1)
        pthread_setspecific(late, (void *)((uintptr_t)rounds - 1));
}

static void *one_block(void *argument)
{
    pthread_setspecific(late, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
    sink = strerror(123456);
    begin("brief", 0); // and never ended
    *(void **)argument = malloc(CLIENT_MALLOC);
    return NULL;
}

// Many threads that come and go.
static void crowd(void)
{
    DEMAND(pthread_key_create(&late, clean_up) == 0);
    for (int i = 0; i < CLIENT_CROWD; i++) {
        pthread_t thread;
        void *block = NULL;

        DEMAND(pthread_create(&thread, NULL, one_block, &block) == 0);
        pthread_join(thread, NULL);
        free(block);
    }
}

static void *work(void *argument)
{
    (void)argument;
    for (int i = 0; i < CLIENT_CROWD; i++) {
        sink = malloc(CLIENT_MALLOC);
        free(sink);
    }
    return NULL;
}

// One thread after the other, without marks.
static void workers(void)
{
    for (int i = 0; i < CLIENT_WORKERS; i++) {
        pthread_t thread;

        DEMAND(pthread_create(&thread, NULL, work, NULL) == 0);
        pthread_join(thread, NULL);
    }
}

// ---- processes

static void forks(void)
{
    int status = 0;
    pid_t child;

    begin("forks", 0);
    void *kept = malloc(CLIENT_MALLOC);
    child = fork();
    DEMAND(child >= 0);
    if (child == 0) {
        for (int i = 0; i < MANY; i++) // many chunks, if they were noted
            sink = malloc(CLIENT_GROWN);
        free(kept);
        _exit(0);
    }
    waitpid(child, &status, 0);
    DEMAND(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sink = malloc(CLIENT_FRESH);
    end();
}

static __attribute__((noinline)) void many(int count)
{
    for (int i = 0; i < count; i++)
        sink = malloc(CLIENT_MALLOC);
}

static void killed(void)
{
    begin("killed", 0);
    many(MANY);
    kill(getpid(), SIGKILL);
}

// Waits to be killed together with the tool; the file says that it is ready.
static void waits(void)
{
    begin("waits", 0);
    many(MANY);
    close(open(getenv("CLIENT_READY"), O_CREAT | O_WRONLY, 0600));
    for (;;)
        pause();
}

static void much(void)
{
    begin("much", 0);
    many(MANY);
    end();
}

// The spool's file must not grow: as on a full disk.
static void full(void)
{
    struct rlimit limit = {CLIENT_FILE_LIMIT, CLIENT_FILE_LIMIT};

    begin("full", 0);
    end();
    DEMAND(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    much();
}

// Closes what it does not know, and opens files of its own under the same numbers.
static void closes(void)
{
    struct stat status;
    int files[300], count = 0;
    char name[] = "/tmp/client.XXXXXX";
    int file = mkstemp(name);

    DEMAND(file >= 0);
    for (int i = 3; i < 1024; i++)
        if (i != file)
            close(i);
    while (count < 300 && (files[count] = dup(file)) >= 0)
        count++;
    begin("closes", 0);
    many(MANY);
    end();
    DEMAND(fstat(file, &status) == 0 && status.st_size == 0);
    unlink(name);
}

// Goes on writing to the standard streams that it has closed.
static void mute(void)
{
    for (int i = 0; i < 1024; i++)
        close(i);
    begin("mute", 0);
    for (int i = 0; i < 9; i++) {
        many(MANY / 9);
        for (int j = 0; j < 3; j++)
            DEMAND(write(j, "what nobody is to see", 21) < 0 && errno == EBADF);
    }
    end();
}

static bool through;

static void *go_through(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&barrier);
    many(MANY);
    through = true;
    return NULL;
}

// A cancelled thread ends where it waits, and not in malloc(), though files are opened again there.
static void cancelled(void)
{
    pthread_t thread;

    sink = malloc(CLIENT_MALLOC); // the files are there, and this thread needs no more of them
    for (int i = 3; i < 1024; i++)
        close(i);
    pthread_barrier_init(&barrier, NULL, 2);
    DEMAND(pthread_create(&thread, NULL, go_through, NULL) == 0);
    DEMAND(pthread_cancel(thread) == 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    DEMAND(through);
}

static bool nameless;

// As in a root of its own, where there is no /proc.
ssize_t readlink(const char *restrict link, char *restrict to, size_t bytes)
{
    if (!nameless)
        return syscall(SYS_readlinkat, AT_FDCWD, link, to, bytes);
    errno = ENOENT;
    return -1;
}

// The first block that the program itself asks for: the recorder wants to know what it is called.
static void unnamed(void)
{
    nameless = true;
    errno = 0;
    sink = malloc(CLIENT_MALLOC);
    DEMAND(sink && errno == 0);
}

// ---- steps

static void steps(void)
{
    ebb_site *(*site_create)(const struct ebb_site_options *);
    ebb_step (*step_begin)(ebb_site *, uint64_t);
    int (*step_end)(ebb_step);
    ebb_site *outer, *inner;

    find(&site_create, "ebb_site_create");
    find(&step_begin, "ebb_step_begin");
    find(&step_end, "ebb_step_end");
    outer = site_create(EBB_SITE_OPTIONS(.name = "re quest"));
    inner = site_create(EBB_SITE_OPTIONS(.name = "token"));
    for (uint64_t i = 0; i < CLIENT_STEPS; i++) {
        ebb_step step = step_begin(outer, 10 + i), token = step_begin(inner, 0);

        sink = malloc(CLIENT_MALLOC);
        free(sink);
        if (i % 2) { // in the wrong order: the inner one ends with the outer one
            DEMAND(step_end(step) == 0);
            DEMAND(step_end(token) == 0);
        } else {
            DEMAND(step_end(token) == 0);
            DEMAND(step_end(step) == 0);
        }
        sink = malloc(CLIENT_FRESH); // outside
    }
}

// Sites that come and go, and then more than the recorder has places for.
static void sites(void)
{
    static ebb_site *many[CLIENT_SITES + CLIENT_MORE];
    ebb_site *(*site_create)(const struct ebb_site_options *);
    ebb_step (*step_begin)(ebb_site *, uint64_t);
    int (*step_end)(ebb_step), (*site_destroy)(ebb_site *);

    find(&site_create, "ebb_site_create");
    find(&site_destroy, "ebb_site_destroy");
    find(&step_begin, "ebb_step_begin");
    find(&step_end, "ebb_step_end");
    for (int i = 0; i < 2 * CLIENT_SITES; i++) {
        ebb_site *site = site_create(EBB_SITE_OPTIONS(.name = i % 2 ? "odd" : "even"));
        DEMAND(step_end(step_begin(site, 1 + (uint64_t)i % 2)) == 0);
        DEMAND(site_destroy(site) == 0);
    }
    for (int i = 0; i < CLIENT_SITES + CLIENT_MORE; i++)
        many[i] = site_create(EBB_SITE_OPTIONS(.name = i < 10 ? "first" : "many"));
    for (int i = CLIENT_SITES + CLIENT_MORE; i-- > 0;)
        DEMAND(step_end(step_begin(many[i], i < 10 ? 3 : i < CLIENT_SITES ? 4 : 5)) == 0);
    for (int i = 0; i < CLIENT_SITES + CLIENT_MORE; i++)
        DEMAND(site_destroy(many[i]) == 0);
    begin(NULL, 6);
    end();
}

static void deep(void)
{
    for (int i = 0; i < CLIENT_DEEP; i++)
        begin("deep", 0);
    sink = malloc(CLIENT_MALLOC);
    for (int i = 0; i < CLIENT_DEEP; i++)
        end();
}

// Steps that nobody has marked: all dies within, but for one block each.
static void loop(void)
{
    void *block[CLIENT_LOOP_BLOCKS];

    for (int i = 0; i < CLIENT_LOOP; i++) {
        for (size_t j = 0; j < CLIENT_LOOP_BLOCKS; j++)
            block[j] = malloc(500 + 7 * j);
        for (size_t j = 0; j < CLIENT_LOOP_BLOCKS; j++)
            free(block[j]);
        sink = malloc(CLIENT_FRESH);
    }
}

// A function of a shared library that this program calls through its linkage table.
static void calls(void)
{
    for (int i = 0; i < MANY; i++)
        sink = malloc(CLIENT_MALLOC); // a chunk and more, so that libraries are looked at again
    for (int i = 0; i < CLIENT_STEPS; i++) {
        sink = malloc(CLIENT_FRESH);
        DEMAND(strtold("1.5", NULL) == 1.5L);
        client_long_name();
    }
    DEMAND(strtof("1.5", NULL) == 1.5f);
}

// Reads data of a library, which finds it as it finds functions.
static void number(void)
{
    sink = malloc(CLIENT_MALLOC);
    DEMAND(client_number() == 7);
}

// Libraries are looked at in the midst of it, too.
static void opens(void)
{
    for (int i = 0; i < CLIENT_OPENS; i++) {
        void *library = dlopen(getenv("EBB_WITHOUT"), RTLD_LAZY);

        DEMAND(library);
        dlclose(library);
    }
}

static bool interrupts;

// As a signal handler, while the recorder looks for a kind.
int strcmp(const char *a, const char *b)
{
    if (interrupts) {
        interrupts = false;
        begin("handler", 0);
        end();
    }
    for (; *a && *a == *b; a++)
        b++;
    return (unsigned char)*a - (unsigned char)*b;
}

static void handled(void)
{
    size_t in_use;

    for (size_t bytes = 0; bytes < 512; bytes++)
        sink = malloc(bytes); // each that comes after these is counted
    in_use = mallinfo2().uordblks;
    begin("handler", 0);
    DEMAND(mallinfo2().uordblks == in_use); // what it has interrupted may be malloc()
    end();
    interrupts = true;
    begin("handled", 0);
    end();
    DEMAND(!interrupts);
}

#if defined __x86_64__
static int cleared;

// What the C library may do anywhere, done where the recorder calls it.
__attribute__((target("avx"))) int madvise(void *at, size_t bytes, int advice)
{
    if (__builtin_cpu_supports("avx")) {
        __asm__ volatile("vzeroall" : : : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                         "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
                         "xmm14", "xmm15");
        cleared++;
    }
    return (int)syscall(SYS_madvise, at, bytes, advice);
}

__attribute__((target("avx"))) static void add_wide(void)
{
    client_wide first = {1, 2, 3, 4}, second = {10, 20, 30, 40};

    for (int i = 0; i < MANY; i++)
        DEMAND(client_sum(first, second) == 110);
}

static void wide(void)
{
    for (int i = 0; i < MANY; i++)
        sink = malloc(CLIENT_MALLOC);
    if (__builtin_cpu_supports("avx"))
        add_wide();
    DEMAND(cleared || !getenv("EBB_RECORD_SPOOL") || !__builtin_cpu_supports("avx"));
}
#else
static void wide(void)
{
}
#endif

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"family", family}, {"giant", giant}, {"threads", threads}, {"crowd", crowd},
    {"forks", forks},   {"killed", killed}, {"waits", waits},   {"much", much},
    {"full", full},     {"closes", closes}, {"steps", steps},   {"sites", sites},
    {"deep", deep},
    {"calls", calls},   {"loop", loop},     {"mute", mute},
    {"wide", wide},     {"moved", moved},   {"number", number}, {"workers", workers},
    {"cancelled", cancelled}, {"unnamed", unnamed}, {"handled", handled},
    {"opens", opens},
};

static void no_mark(const char *kind, uint64_t argument)
{
    (void)kind, (void)argument;
}

static void no_end(void)
{
}

// Whether libebb is behind the recorder where it shall be, and nowhere else.
static bool is_linked_as_said(void)
{
#ifdef CLIENT_LINKED
    return ebb_last_error() == 0; // or the linker leaves it out
#else
    return dlopen("libebb.so.0", RTLD_LAZY | RTLD_NOLOAD) == NULL;
#endif
}

int main(int argc, char **argv)
{
    bool recorded = getenv("EBB_RECORD_SPOOL") != NULL;

    begin = no_mark;
    end = no_end;
    DEMAND(is_linked_as_said());
    if (recorded) {
        find(&begin, "ebb_record_begin");
        find(&end, "ebb_record_end");
    }
    for (size_t i = 0; argc == 2 && i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return argc == 2 && strcmp(argv[1], "much") == 0 ? CLIENT_CODE : 0;
        }
    return 1;
}
