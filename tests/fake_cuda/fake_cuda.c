// SPDX-License-Identifier: Apache-2.0
/*
 * fake_cuda.c - see fake_cuda.h. One lock for everything; what streams are asked is in streams.c.
 * FAKE_CUDA_OLD leaves a function out: a driver that is too old.
 */
#include "fake_cuda.h"
#include "driver_api.h"
#include "streams.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DONE = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600, REGISTERED_ALREADY = 712,
    NOT_REGISTERED = 713
};
#define HUGE ((size_t)2 << 20)
#define FILLED ((size_t)4 << 20) /* so much of new memory is not zero, the rest costs no page */

enum { DEVICES = 4, MOST = 1024, DEPTH = 16 };

struct memory {
    char *guarded; /* its address */
    char *open;    /* the same memory, for the fake */
    size_t bytes;
    char *mapped; /* around `guarded` */
    int device;
};

struct pages {
    char *addr;
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int process; /* that called cuInit */
static int device_count;
static size_t device_bytes;
static unsigned calls, fail_nth;
static bool fail_all, stalled, misaligned;
static const char *failed; /* the first call that was made to fail */
static struct memory memories[MOST];
static struct pages registered[MOST];
static struct event events[MOST];
static size_t retained[DEVICES], stuck, registrations, records;
static _Thread_local int current[DEPTH];
static _Thread_local unsigned depth;
static struct shared {
    size_t misuses;
    char first[128];
} *shared; /* with forked children */

static int misused(int code, const char *what) {
    if (shared->misuses++ == 0)
        snprintf(shared->first, sizeof shared->first, "%s", what);
    return code;
}

/* ---- every call ---- */

static void (*in_calls)(const char *name);

void fake_cuda_in_calls(void (*call)(const char *name)) {
    in_calls = call;
}

static int begin(const char *name) {
    if (in_calls)
        in_calls(name);
    pthread_mutex_lock(&lock);
    calls++;
    if (fail_nth && (calls == fail_nth || (fail_all && calls > fail_nth))) {
        failed = failed ? failed : name;
        return FAKE_CUDA_FAILURE;
    }
    if (!process)
        return NOT_INITIALIZED;
    return process == getpid() ? DONE : misused(NOT_INITIALIZED, "a call in a forked child");
}

static int begin_in_context(const char *name) {
    int result = begin(name);
    if (result == DONE && (!depth || !retained[current[depth - 1]]))
        return misused(INVALID_CONTEXT, name);
    return result;
}

static int end(int result) {
    pthread_mutex_unlock(&lock);
    return result;
}

static size_t environment(const char *name, size_t usual) {
    const char *text = getenv(name);
    return text ? (size_t)strtoull(text, NULL, 10) : usual;
}

static void (*before_fork)(void);

void fake_cuda_before_fork(void (*call)(void)) {
    before_fork = call;
}

/* As the real driver does to have its module loaded. */
static void run_helper(void) {
    if (before_fork)
        before_fork();
    pid_t helper = fork();
    if (helper == 0)
        _exit(0);
    if (helper > 0)
        waitpid(helper, NULL, 0);
}

/* Who does not know that it runs in a parent has to ask: that is no misuse. */
static bool may_ask_in_a_child(void) {
    return process && process != getpid() && environment("FAKE_CUDA_ASKED", 0);
}

int cuInit(unsigned flags) {
    (void)flags;
    if (may_ask_in_a_child())
        return NOT_INITIALIZED;
    if (environment("FAKE_CUDA_FORK", 0))
        run_helper();
    if (!shared)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
    int result = begin(__func__);
    if (result != NOT_INITIALIZED)
        return end(result);
    fail_nth = fail_nth ? fail_nth : (unsigned)environment("FAKE_CUDA_FAIL", 0);
    device_count = (int)environment("FAKE_CUDA_DEVICES", 2);
    device_bytes = environment("FAKE_CUDA_MEMORY", (size_t)256 << 20);
    if (device_count == 0)
        return end(100); /* CUDA_ERROR_NO_DEVICE */
    if (device_count > DEVICES)
        device_count = DEVICES;
    process = getpid();
    return end(DONE);
}

int cuGetErrorName(int result, const char **name) {
    static const struct {
        int code;
        const char *name;
    } names[] = {{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
                 {100, "CUDA_ERROR_NO_DEVICE"},
                 {FAKE_CUDA_FAILURE, "CUDA_ERROR_UNKNOWN"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == result) {
            *name = names[i].name;
            return DONE;
        }
    return INVALID_VALUE;
}

int cuDriverGetVersion(int *version) {
    int result = begin(__func__);
    *version = 12040;
    return end(result);
}

int cuDeviceGetCount(int *count) {
    int result = begin(__func__);
    *count = device_count;
    return end(result);
}

int cuDeviceGet(int *device, int ordinal) {
    int result = begin(__func__);
    *device = ordinal;
    return end(result ? result : ordinal < device_count ? DONE : INVALID_DEVICE);
}

/* ---- contexts ---- */

int cuDevicePrimaryCtxRetain(void **context, int device) {
    int result = begin(__func__);
    if (result == DONE) {
        retained[device]++;
        *context = &retained[device];
    }
    return end(result);
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    int result = begin(__func__);
    if (result == DONE && !retained[device])
        return end(misused(INVALID_CONTEXT, "a context that nobody retained is released"));
    if (result == DONE)
        retained[device]--;
    stuck += result == FAKE_CUDA_FAILURE;
    return end(result);
}

int cuCtxPushCurrent_v2(void *context) {
    int result = begin(__func__);
    size_t device = (size_t)((size_t *)context - retained);
    if (result == DONE && (device >= DEVICES || !retained[device] || depth == DEPTH))
        return end(misused(INVALID_CONTEXT, "a context that is none is made current"));
    if (result == DONE)
        current[depth++] = (int)device;
    return end(result);
}

/* Always pops: a context that stayed current would make every later mistake look right. */
int cuCtxPopCurrent_v2(void **context) {
    int result = begin(__func__);
    if (!depth)
        return end(misused(INVALID_CONTEXT, "no context to pop"));
    *context = &retained[current[--depth]];
    return end(result);
}

/* ---- finding ---- */

static struct memory *memory_at(const char *addr, size_t bytes) {
    for (size_t i = 0; i < MOST; i++)
        if (memories[i].bytes && addr >= memories[i].guarded &&
            addr + bytes <= memories[i].guarded + memories[i].bytes)
            return &memories[i];
    return NULL;
}

static struct pages *pages_at(const char *addr, size_t bytes) {
    for (size_t i = 0; i < MOST; i++)
        if (registered[i].bytes && addr < registered[i].addr + registered[i].bytes &&
            addr + bytes > registered[i].addr)
            return &registered[i];
    return NULL;
}

char *touchable(char *addr, size_t bytes) {
    const struct memory *memory = memory_at(addr, bytes);
    return memory ? memory->open + (addr - memory->guarded) : addr;
}

/* ---- streams ---- */

static int enqueue(void *handle, const struct operation *operation) {
    struct stream *stream = stream_of(handle);
    return stream ? stream_ask(stream, operation), DONE
                  : misused(INVALID_HANDLE, "no such stream");
}

int cuStreamCreate(void **handle, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    *handle = stream_begin();
    return end(*handle ? DONE : OUT_OF_MEMORY);
}

/* What it was asked is done all the same, later. */
int cuStreamDestroy_v2(void *handle) {
    pthread_mutex_lock(&lock);
    return end(stream_end(handle) ? DONE : misused(INVALID_HANDLE, "no such stream"));
}

int cuStreamSynchronize(void *handle) {
    int result = begin_in_context(__func__);
    struct stream *stream = stream_of(handle);
    if (result == DONE && !stream)
        return end(misused(INVALID_HANDLE, "no such stream"));
    if (result == DONE)
        stream_run(stream);
    return end(result);
}

/* ---- memory ---- */

static size_t used_on(int device) {
    size_t used = 0;
    for (size_t i = 0; i < MOST; i++)
        used += memories[i].device == device ? memories[i].bytes : 0;
    return used;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    int result = begin_in_context(__func__);
    if (result == DONE) {
        *total = device_bytes;
        *free = device_bytes - used_on(current[depth - 1]);
    }
    return end(result);
}

static size_t mapped_bytes(size_t bytes) {
    return (bytes + 4095 + 2 * HUGE) & ~(size_t)4095;
}

/* Closed addresses around the memory, wherever it begins in them; the fake's own are apart. */
static bool map_memory(struct memory *memory, size_t bytes) {
    memory->mapped = mmap(NULL, mapped_bytes(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory->open = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory->mapped == MAP_FAILED || memory->open == MAP_FAILED)
        return false;
    uintptr_t start = ((uintptr_t)memory->mapped + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
    memory->guarded = (char *)start + (misaligned ? 256 : 0);
    memset(memory->open, 0xCD, bytes < FILLED ? bytes : FILLED); /* what was there before */
    memory->bytes = bytes;
    return true;
}

int cuMemAlloc_v2(address *place, size_t bytes) {
    int result = begin_in_context(__func__);
    if (result)
        return end(result);
    int device = current[depth - 1];
    if (!bytes)
        return end(misused(INVALID_VALUE, "cuMemAlloc of nothing"));
    if (bytes > device_bytes - used_on(device))
        return end(OUT_OF_MEMORY);
    for (size_t i = 0; i < MOST; i++)
        if (!memories[i].bytes) {
            memories[i].device = device;
            if (!map_memory(&memories[i], bytes))
                return end(OUT_OF_MEMORY);
            *place = (address)(uintptr_t)memories[i].guarded;
            return end(DONE);
        }
    return end(OUT_OF_MEMORY);
}

/* As the real one, waits for everything. */
int cuMemFree_v2(address place) {
    int result = begin_in_context(__func__);
    if (result)
        return end(result);
    struct memory *memory = memory_at((char *)(uintptr_t)place, 1);
    if (!memory || memory->guarded != (char *)(uintptr_t)place)
        return end(misused(INVALID_VALUE, "cuMemFree of what is not allocated"));
    streams_run();
    munmap(memory->mapped, mapped_bytes(memory->bytes));
    munmap(memory->open, memory->bytes);
    memory->bytes = 0;
    return end(DONE);
}

int cuMemHostRegister_v2(void *addr, size_t bytes, unsigned flags) {
    int result = begin_in_context(__func__);
    (void)flags;
    if (result)
        return end(result);
    if (!bytes || (uintptr_t)addr % 4096 || bytes % 4096)
        return end(misused(INVALID_VALUE, "cuMemHostRegister of parts of pages"));
    if (pages_at(addr, bytes))
        return end(misused(REGISTERED_ALREADY, "pages are registered twice"));
    for (size_t i = 0; i < MOST; i++)
        if (!registered[i].bytes) {
            registered[i] = (struct pages){addr, bytes};
            registrations++;
            return end(DONE);
        }
    return end(OUT_OF_MEMORY);
}

int cuMemHostUnregister(void *addr) {
    int result = begin_in_context(__func__);
    struct pages *pages = pages_at(addr, 1);
    if (result)
        return end(result);
    if (!pages || pages->addr != addr)
        return end(misused(NOT_REGISTERED, "pages that are not registered are unregistered"));
    if (streams_use(pages->addr, pages->bytes))
        misused(0, "pages are unregistered while copies of them wait");
    pages->bytes = 0;
    return end(DONE);
}

/* ---- copies ---- */

/* Copies of host memory that is not registered are not late: its bytes are taken or put now. */
static int copy(struct operation copy, char *host, void *handle) {
    int result = enqueue(handle, &copy);
    if (result == DONE && host && !pages_at(host, copy.bytes))
        stream_run(stream_of(handle));
    return result;
}

int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *stream) {
    int result = begin_in_context(__func__);
    char *target = (char *)(uintptr_t)to;
    if (result)
        return end(result);
    if (!memory_at(target, bytes) || memory_at(from, 1))
        return end(misused(INVALID_VALUE, "a copy to what is no memory of a device"));
    return end(copy((struct operation){COPY_IN, target, (char *)from, bytes, 0, NULL, 0},
                    (char *)from, stream));
}

int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *stream) {
    int result = begin_in_context(__func__);
    char *source = (char *)(uintptr_t)from;
    if (result)
        return end(result);
    if (!memory_at(source, bytes) || memory_at(to, 1))
        return end(misused(INVALID_VALUE, "a copy from what is no memory of a device"));
    return end(copy((struct operation){COPY_OUT, to, source, bytes, 0, NULL, 0}, to, stream));
}

int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream) {
    int result = begin_in_context(__func__);
    char *target = (char *)(uintptr_t)to, *source = (char *)(uintptr_t)from;
    if (result)
        return end(result);
    if (!memory_at(target, bytes) || !memory_at(source, bytes))
        return end(misused(INVALID_VALUE, "a copy on a device that is none"));
    return end(copy((struct operation){COPY_ON, target, source, bytes, 0, NULL, 0}, NULL, stream));
}

int cuMemsetD8Async(address to, unsigned char value, size_t bytes, void *stream) {
    int result = begin_in_context(__func__);
    char *target = (char *)(uintptr_t)to;
    if (result)
        return end(result);
    if (!memory_at(target, bytes))
        return end(misused(INVALID_VALUE, "a fill of what is no memory of a device"));
    return end(copy((struct operation){FILL, target, NULL, bytes, value, NULL, 0}, NULL, stream));
}

/* ---- events ---- */

static struct event *event_of(void *handle) {
    struct event *event = handle;
    size_t at = (size_t)(event - events);
    return at < MOST && event->exists ? event : NULL;
}

int cuEventCreate(void **handle, unsigned flags) {
    int result = begin_in_context(__func__);
    (void)flags;
    for (size_t i = 0; result == DONE && i < MOST; i++)
        if (!events[i].exists) {
            events[i] = (struct event){.exists = true, .done = true};
            *handle = &events[i];
            return end(DONE);
        }
    return end(result ? result : OUT_OF_MEMORY);
}

int cuEventRecord(void *handle, void *stream) {
    int result = begin_in_context(__func__);
    struct event *event = event_of(handle);
    if (result)
        return end(result);
    if (!event)
        return end(misused(INVALID_HANDLE, "no such event"));
    result = enqueue(stream, &(struct operation){.action = RECORD, .event = event,
                                                 .record = records + 1});
    if (result == DONE) {
        event->recorded = ++records;
        event->done = false;
    }
    return end(result);
}

#ifndef FAKE_CUDA_OLD
/* Lets the streams run by one operation each, so that asking again and again comes to an end. */
int cuEventQuery(void *handle) {
    int result = begin_in_context(__func__);
    struct event *event = event_of(handle);
    if (result)
        return end(result);
    if (!event)
        return end(misused(INVALID_HANDLE, "no such event"));
    bool done = event->done;
    if (!stalled)
        streams_step();
    return end(done ? DONE : NOT_READY);
}
#endif

int cuStreamWaitEvent(void *stream, void *handle, unsigned flags) {
    int result = begin_in_context(__func__);
    struct event *event = event_of(handle);
    (void)flags;
    if (result)
        return end(result);
    if (!event)
        return end(misused(INVALID_HANDLE, "no such event"));
    return end(event->done ? DONE
                           : enqueue(stream, &(struct operation){.action = AWAIT,
                                                                 .record = event->recorded}));
}

int cuEventDestroy_v2(void *handle) {
    int result = begin_in_context(__func__);
    struct event *event = event_of(handle);
    if (result)
        return end(result);
    if (!event)
        return end(misused(INVALID_HANDLE, "no such event"));
    event->exists = false;
    return end(DONE);
}

/* ---- what only the fake has ---- */

void fake_cuda_look(struct fake_cuda_state *state) {
    memset(state, 0, sizeof *state);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST; i++) {
        state->allocations += memories[i].bytes != 0;
        state->allocated_bytes += memories[i].bytes;
        state->registered += registered[i].bytes != 0;
        state->registered_bytes += registered[i].bytes;
        state->events += events[i].exists;
    }
    for (size_t i = 0; i < DEVICES; i++)
        state->contexts += retained[i];
    state->waiting = streams_waiting();
    state->copies = streams_copies;
    state->stuck = stuck;
    state->registrations = registrations;
    state->failed = failed;
    if (shared) {
        state->misuses = shared->misuses;
        memcpy(state->misuse, shared->first, sizeof state->misuse);
    }
    pthread_mutex_unlock(&lock);
}

unsigned fake_cuda_fail(unsigned nth, bool all) {
    pthread_mutex_lock(&lock);
    unsigned before = calls;
    calls = 0;
    fail_nth = nth;
    fail_all = all;
    failed = NULL;
    pthread_mutex_unlock(&lock);
    return before;
}

void fake_cuda_stall(bool stall) {
    pthread_mutex_lock(&lock);
    stalled = stall;
    pthread_mutex_unlock(&lock);
}

void fake_cuda_misalign(bool misalign) {
    pthread_mutex_lock(&lock);
    misaligned = misalign;
    pthread_mutex_unlock(&lock);
}

void fake_cuda_run(void) {
    pthread_mutex_lock(&lock);
    streams_run();
    pthread_mutex_unlock(&lock);
}
