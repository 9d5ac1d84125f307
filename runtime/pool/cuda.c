// SPDX-License-Identifier: Apache-2.0
/*
 * cuda.c - see cuda.h. The prototypes are those of the driver API, which keeps its binary
 * interface: a changed function gets another name (cuMemAlloc_v2).
 *
 * Invariant: `driver.process` is 0, A_FOREFATHER or A_PARENT, or all functions are there and
 * cuInit() succeeded in that process. The library is never closed once it started: threads of its
 * own run in it.
 *
 * A process is told from those that it was forked from by two numbers: in a namespace of its own a
 * child may have its parent's pid, and forks that the C library is not asked for are not counted
 * where the system does not tell them.
 */
#include "pool/cuda.h"
#include "base/error.h"
#include "base/module.h"
#include "pool/fork.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of enum cudaError_enum. */
enum { SUCCESS = 0, NOT_INITIALIZED = 3, DEINITIALIZED = 4, NOT_READY = 600 };
#define A_FOREFATHER (-1)       /* of this process started it, and not by this library */
#define A_PARENT (-2)           /* was starting it when this process was forked */
#define REGISTER_PORTABLE 1u    /* CU_MEMHOSTREGISTER_PORTABLE: for all contexts */
#define EVENT_WITHOUT_TIMING 2u /* CU_EVENT_DISABLE_TIMING */

struct functions {
    int (*init)(unsigned flags);
    int (*get_version)(int *version);
    int (*get_count)(int *count);
    int (*get_device)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*mem_info)(size_t *free, size_t *total);
    int (*mem_alloc)(unsigned long long *address, size_t bytes);
    int (*mem_free)(unsigned long long address);
    int (*host_register)(void *addr, size_t bytes, unsigned flags);
    int (*host_unregister)(void *addr);
    int (*copy_in)(unsigned long long to, const void *from, size_t bytes, void *stream);
    int (*copy_out)(void *to, unsigned long long from, size_t bytes, void *stream);
    int (*copy_on)(unsigned long long to, unsigned long long from, size_t bytes, void *stream);
    int (*fill)(unsigned long long to, unsigned char value, size_t bytes, void *stream);
    int (*synchronize)(void *stream);
    int (*event_create)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*stream_wait)(void *stream, void *event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*error_name)(int result, const char **name);
};

static const struct {
    const char *name;
    size_t place;
} symbols[] = {
    {"cuInit", offsetof(struct functions, init)},
    {"cuDriverGetVersion", offsetof(struct functions, get_version)},
    {"cuDeviceGetCount", offsetof(struct functions, get_count)},
    {"cuDeviceGet", offsetof(struct functions, get_device)},
    {"cuDevicePrimaryCtxRetain", offsetof(struct functions, retain)},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(struct functions, release)},
    {"cuCtxPushCurrent_v2", offsetof(struct functions, push)},
    {"cuCtxPopCurrent_v2", offsetof(struct functions, pop)},
    {"cuMemGetInfo_v2", offsetof(struct functions, mem_info)},
    {"cuMemAlloc_v2", offsetof(struct functions, mem_alloc)},
    {"cuMemFree_v2", offsetof(struct functions, mem_free)},
    {"cuMemHostRegister_v2", offsetof(struct functions, host_register)},
    {"cuMemHostUnregister", offsetof(struct functions, host_unregister)},
    {"cuMemcpyHtoDAsync_v2", offsetof(struct functions, copy_in)},
    {"cuMemcpyDtoHAsync_v2", offsetof(struct functions, copy_out)},
    {"cuMemcpyDtoDAsync_v2", offsetof(struct functions, copy_on)},
    {"cuMemsetD8Async", offsetof(struct functions, fill)},
    {"cuStreamSynchronize", offsetof(struct functions, synchronize)},
    {"cuEventCreate", offsetof(struct functions, event_create)},
    {"cuEventRecord", offsetof(struct functions, event_record)},
    {"cuEventQuery", offsetof(struct functions, event_query)},
    {"cuStreamWaitEvent", offsetof(struct functions, stream_wait)},
    {"cuEventDestroy_v2", offsetof(struct functions, event_destroy)},
    {"cuGetErrorName", offsetof(struct functions, error_name)},
};

static struct {
    pthread_mutex_t lock;
    struct functions call; /* complete once `process` is set, and never changed then */
    int version;           /* 12040: 12.4 */
    unsigned forks;        /* that led to the process that started it */
    _Atomic int process;   /* that started it; 0: not started */
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_this(int process, unsigned forks) {
    return process == getpid() && forks == fork_count();
}

/* ---- starting ---- */

static const char *name_of(const struct functions *call, int result) {
    const char *name = NULL;
    return call->error_name(result, &name) == SUCCESS && name ? name : "an error without a name";
}

static int find_functions(void *library, const char *path, struct functions *call) {
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function)
            return error_set(EBB_E_DEVICE, "CUDA driver '%s' has no function %s: it is too old, "
                             "or none", path, symbols[i].name);
        memcpy((char *)call + symbols[i].place, &function, sizeof function);
    }
    return 0;
}

/* In a fork of who started it, as torch may have, it says that it was not started, and always will:
 * nobody is asked that again. */
static int start_library(const char *path, const struct functions *call) {
    int result = call->init(0);
    if (result == SUCCESS)
        return 0;
    if (result == NOT_INITIALIZED) /* relaxed: no function is to be seen */
        atomic_store_explicit(&driver.process, A_FOREFATHER, memory_order_relaxed);
    return error_set(EBB_E_DEVICE, "CUDA driver '%s': cuInit: %s (%d)", path,
                     name_of(call, result), result);
}

/* It has started: its functions are for all from here on. */
static int publish(const char *path, const struct functions *call) {
    int version = 0, result = call->get_version(&version);
    if (result != SUCCESS)
        return error_set(EBB_E_DEVICE, "CUDA driver '%s': cuDriverGetVersion: %s (%d)", path,
                         name_of(call, result), result);
    driver.call = *call;
    driver.version = version;
    driver.forks = fork_count();
    /* release: whoever sees that it has started sees the functions */
    atomic_store_explicit(&driver.process, getpid(), memory_order_release);
    return 0;
}

static int load(void) {
    const char *named = secure_getenv("EBB_CUDA_LIBRARY");
    const char *path = named && *named ? named : "libcuda.so.1";
    struct functions call;
    void *library = module_open(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return error_set(EBB_E_DEVICE, "no CUDA driver: %s", why ? why : path);
    }
    int result = find_functions(library, path, &call);
    if (!result)
        result = start_library(path, &call);
    if (!result)
        return publish(path, &call);
    dlclose(library);
    return result;
}

/* 0 if the driver runs in this process, EBB_E_DEVICE if in its parent, 1 if it does not run. */
static int look(void) {
    int process = atomic_load_explicit(&driver.process, memory_order_acquire);
    if (!process)
        return 1;
    if (process == A_FOREFATHER)
        return error_set(EBB_E_DEVICE, "cuInit said CUDA_ERROR_NOT_INITIALIZED, as in a fork of a "
                         "process where the CUDA driver runs: process %d cannot use it (start it "
                         "by spawn or exec)", getpid());
    if (process == A_PARENT)
        return error_set(EBB_E_DEVICE, "process %d is a fork of one where the CUDA driver was "
                         "starting: it cannot use it (start it by spawn or exec)", getpid());
    if (is_this(process, driver.forks))
        return 0;
    return error_set(EBB_E_DEVICE, "process %d is a fork of %d, where the CUDA driver runs: it "
                     "cannot use it (start it by spawn or exec)", getpid(), process);
}

bool cuda_is_inherited(void) {
    error_mute();
    int result = look();
    error_unmute();
    return result < 0;
}

int cuda_start(void) {
    int result = look();
    if (result <= 0)
        return result;
    module_keep_own();  /* forks call back */
    fork_prepare();     /* and are counted from here on, */
    fork_prepare_raw(); /* all that there are */
    pthread_mutex_lock(&driver.lock);
    result = look();
    if (result > 0)
        result = load();
    pthread_mutex_unlock(&driver.lock);
    return result;
}

static bool got_lock; /* of the fork that is being made, whose other locks guard it */

void cuda_before_fork(void) {
    got_lock = pthread_mutex_trylock(&driver.lock) == 0;
}

void cuda_after_fork(bool in_child) {
    int none = 0;
    if (got_lock)
        pthread_mutex_unlock(&driver.lock);
    else if (in_child) /* whose lock it was is not here: nobody takes it any more */
        atomic_compare_exchange_strong(&driver.process, &none, A_PARENT);
}

/* ---- calls ---- */

const struct cuda_bystander *cuda_bystander;

/* In front of the driver's calls, wherever a lock may be held, and behind them. */
static void stand_aside(void) {
    if (cuda_bystander)
        cuda_bystander->stand_aside();
}

static void come_back(void) {
    if (cuda_bystander)
        cuda_bystander->come_back();
}

/* ---- devices ---- */

/* 0, or the error of a call that has no numbers of its own. */
static int checked(int result, const char *call, int ordinal) {
    if (result == SUCCESS)
        return 0;
    return error_set(EBB_E_DEVICE, "%s, device %d: %s (%d), driver %d.%d", call, ordinal,
                     name_of(&driver.call, result), result, driver.version / 1000,
                     driver.version % 1000 / 10);
}

/* The same for a call about bytes. */
static int checked_bytes(int result, const char *call, int ordinal, size_t bytes) {
    if (result == SUCCESS)
        return 0;
    return error_set(EBB_E_DEVICE, "%s of %zu bytes, device %d: %s (%d)", call, bytes, ordinal,
                     name_of(&driver.call, result), result);
}

int cuda_count(int *count) {
    int result = cuda_start();
    if (result)
        return result;
    result = driver.call.get_count(count);
    if (result != SUCCESS)
        return error_set(EBB_E_DEVICE, "cuDeviceGetCount: %s (%d)",
                         name_of(&driver.call, result), result);
    return 0;
}

static int take(struct cuda_hold *hold, int ordinal) {
    int count, device;
    void *context = NULL;
    int result = cuda_count(&count);
    if (result)
        return result;
    if (ordinal < 0 || ordinal >= count)
        return error_set(EBB_E_DEVICE, "device %d asked, the CUDA driver has %d", ordinal, count);
    result = checked(driver.call.get_device(&device, ordinal), "cuDeviceGet", ordinal);
    if (!result)
        result = checked(driver.call.retain(&context, device), "cuDevicePrimaryCtxRetain",
                         ordinal);
    if (!result)
        *hold = (struct cuda_hold){ordinal, device, getpid(), fork_count(), context};
    return result;
}

int cuda_take(struct cuda_hold *hold, int ordinal) {
    stand_aside();
    int result = take(hold, ordinal);
    come_back();
    return result;
}

bool cuda_is_here(const struct cuda_hold *hold) {
    return is_this(hold->process, hold->forks);
}

void cuda_leave(struct cuda_hold *hold) {
    if (hold->context && cuda_is_here(hold)) {
        stand_aside();
        driver.call.release(hold->device); /* a refusal leaves a count that ends with the process */
        come_back();
    }
    hold->context = NULL;
}

/* The device's context becomes the thread's; leave() makes it what it was. */
static int enter(const struct cuda_hold *hold) {
    int result = look();
    if (result)
        return result;
    stand_aside();
    result = checked(driver.call.push(hold->context), "cuCtxPushCurrent", hold->ordinal);
    if (result)
        come_back();
    return result;
}

static void leave(void) {
    void *context;
    driver.call.pop(&context);
    come_back();
}

/* The same for giving back; 1: it is gone with the driver, or was never this process's. */
static int enter_for_end(const struct cuda_hold *hold) {
    if (!cuda_is_here(hold))
        return 1;
    stand_aside();
    int result = driver.call.push(hold->context);
    if (result != SUCCESS)
        come_back();
    return result == DEINITIALIZED ? 1 : checked(result, "cuCtxPushCurrent", hold->ordinal);
}

/* ---- memory ---- */

static int report_alloc(const struct cuda_hold *hold, int result, size_t bytes) {
    size_t free = 0, total = 0;
    if (driver.call.mem_info(&free, &total) != SUCCESS)
        return checked_bytes(result, "cuMemAlloc", hold->ordinal, bytes);
    return error_set(EBB_E_DEVICE, "cuMemAlloc of %zu bytes, device %d: %s (%d), %zu of %zu bytes "
                     "are free", bytes, hold->ordinal, name_of(&driver.call, result), result, free,
                     total);
}

size_t cuda_free_bytes(const struct cuda_hold *hold) {
    size_t free = 0, total = 0;
    error_mute();
    int result = enter(hold);
    error_unmute();
    if (result)
        return 0;
    bool said = driver.call.mem_info(&free, &total) == SUCCESS;
    leave();
    return said ? free : 0;
}

int cuda_alloc(const struct cuda_hold *hold, size_t bytes, uint64_t *address) {
    unsigned long long place = 0;
    int result = enter(hold);
    if (result)
        return result;
    result = driver.call.mem_alloc(&place, bytes);
    if (result != SUCCESS)
        result = report_alloc(hold, result, bytes);
    else
        *address = place;
    leave();
    return result;
}

int cuda_free(const struct cuda_hold *hold, uint64_t address) {
    int result = enter_for_end(hold);
    if (result)
        return result > 0 ? 0 : result;
    result = checked(driver.call.mem_free(address), "cuMemFree", hold->ordinal);
    leave();
    return result;
}

int cuda_register(const struct cuda_hold *hold, void *addr, size_t bytes) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked_bytes(driver.call.host_register(addr, bytes, REGISTER_PORTABLE),
                           "cuMemHostRegister", hold->ordinal, bytes);
    leave();
    return result;
}

int cuda_unregister(const struct cuda_hold *hold, void *addr) {
    int result = enter_for_end(hold);
    if (result)
        return result > 0 ? 0 : result;
    result = checked(driver.call.host_unregister(addr), "cuMemHostUnregister", hold->ordinal);
    leave();
    return result;
}

/* ---- work for streams ---- */

int cuda_copy_in(const struct cuda_hold *hold, uint64_t to, const void *from, size_t bytes,
                 void *stream) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked_bytes(driver.call.copy_in(to, from, bytes, stream), "cuMemcpyHtoDAsync",
                           hold->ordinal, bytes);
    leave();
    return result;
}

int cuda_copy_out(const struct cuda_hold *hold, void *to, uint64_t from, size_t bytes,
                  void *stream) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked_bytes(driver.call.copy_out(to, from, bytes, stream), "cuMemcpyDtoHAsync",
                           hold->ordinal, bytes);
    leave();
    return result;
}

int cuda_copy_on(const struct cuda_hold *hold, uint64_t to, uint64_t from, size_t bytes,
                 void *stream) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked_bytes(driver.call.copy_on(to, from, bytes, stream), "cuMemcpyDtoDAsync",
                           hold->ordinal, bytes);
    leave();
    return result;
}

int cuda_fill(const struct cuda_hold *hold, uint64_t to, unsigned char value, size_t bytes,
              void *stream) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked_bytes(driver.call.fill(to, value, bytes, stream), "cuMemsetD8Async",
                           hold->ordinal, bytes);
    leave();
    return result;
}

int cuda_finish(const struct cuda_hold *hold, void *stream) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked(driver.call.synchronize(stream), "cuStreamSynchronize", hold->ordinal);
    leave();
    return result;
}

/* ---- events ---- */

int cuda_event_new(const struct cuda_hold *hold, void **event) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked(driver.call.event_create(event, EVENT_WITHOUT_TIMING), "cuEventCreate",
                     hold->ordinal);
    leave();
    return result;
}

int cuda_event_record(const struct cuda_hold *hold, void *event, void *stream) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked(driver.call.event_record(event, stream), "cuEventRecord", hold->ordinal);
    leave();
    return result;
}

int cuda_event_query(const struct cuda_hold *hold, void *event, bool *done) {
    int result = enter(hold);
    if (result)
        return result;
    int state = driver.call.event_query(event);
    *done = state == SUCCESS;
    result = checked(state == NOT_READY ? SUCCESS : state, "cuEventQuery", hold->ordinal);
    leave();
    return result;
}

int cuda_event_await(const struct cuda_hold *hold, void *event, void *stream) {
    int result = enter(hold);
    if (result)
        return result;
    result = checked(driver.call.stream_wait(stream, event, 0), "cuStreamWaitEvent",
                     hold->ordinal);
    leave();
    return result;
}

int cuda_event_end(const struct cuda_hold *hold, void *event) {
    int result = enter_for_end(hold);
    if (result)
        return result > 0 ? 0 : result;
    result = checked(driver.call.event_destroy(event), "cuEventDestroy", hold->ordinal);
    leave();
    return result;
}
