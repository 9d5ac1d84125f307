// SPDX-License-Identifier: Apache-2.0
/*
 * cuda.h - the CUDA driver, loaded when it is first needed.
 *
 * ebb needs no toolkit and no header of NVIDIA's to be built, and no driver to run: `libcuda.so.1`,
 * or the file that the environment's EBB_CUDA_LIBRARY names (not in a program that has more rights
 * than who executes it), is opened at the first call that needs it. What is missing (the library, a
 * function in it, a device) is EBB_E_DEVICE, and the text says which. All functions here: any
 * thread. They leave the thread's current context as it was.
 *
 * A hold keeps the primary context of a device, the one that the CUDA runtime and torch use too, so
 * addresses and streams of theirs are valid here. It belongs to the process that took it: in a
 * forked child nothing of the driver's may be touched. There what would need the driver fails by
 * name, and what gives something back does nothing, for the child never had it.
 */
#ifndef EBB_POOL_CUDA_H
#define EBB_POOL_CUDA_H

#include "base/hidden.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who serves malloc() from pools. The driver allocates, and whoever calls it may have a lock of a
 * pool, which comes after those that are needed for that. So the calling thread is served by others
 * from stand_aside() to come_back(). Filled when libebb-malloc is loaded; NULL: there is none. */
struct cuda_bystander {
    void (*stand_aside)(void);
    void (*come_back)(void);
};

extern HIDDEN const struct cuda_bystander *cuda_bystander;

struct cuda_hold {
    int ordinal;    /* as counted by cuDeviceGetCount() */
    int device;     /* the driver's own number */
    int process;    /* that took it, */
    unsigned forks; /* and how many led there */
    void *context;  /* NULL: nothing is held */
};

/* Loads and starts the driver. 0 or EBB_E_DEVICE; a failure is tried again by the next call. Forks
 * wait for locks and the driver may fork: no lock is held but the loader's. */
int cuda_start(void);

/* True in a child of the process that started the driver, or was starting it: it is not to be had
 * here. Where another library started it, that is known once cuda_start() was refused. */
bool cuda_is_inherited(void);

/* Devices that there are; EBB_E_DEVICE. */
int cuda_count(int *count);

/* Holds the primary context of a device. Errors: EBB_E_DEVICE (no such device: how many are). */
int cuda_take(struct cuda_hold *hold, int ordinal);
void cuda_leave(struct cuda_hold *hold);

/* False in a child of the process that took it. */
bool cuda_is_here(const struct cuda_hold *hold);

/* Memory of the device. Freeing waits for all work that uses it. Both: 0 or EBB_E_DEVICE. */
int cuda_alloc(const struct cuda_hold *hold, size_t bytes, uint64_t *address);
int cuda_free(const struct cuda_hold *hold, uint64_t address);

/* Bytes that the driver says nobody has; 0 if it does not say. */
size_t cuda_free_bytes(const struct cuda_hold *hold);

/* Makes pages of the host fit for copies without a detour, for all devices. 0 or EBB_E_DEVICE. */
int cuda_register(const struct cuda_hold *hold, void *addr, size_t bytes);
int cuda_unregister(const struct cuda_hold *hold, void *addr);

/* Work for a stream (NULL: the default one), done when the stream gets to it. 0, EBB_E_DEVICE. */
int cuda_copy_in(const struct cuda_hold *hold, uint64_t to, const void *from, size_t bytes,
                 void *stream);
int cuda_copy_out(const struct cuda_hold *hold, void *to, uint64_t from, size_t bytes,
                  void *stream);
int cuda_copy_on(const struct cuda_hold *hold, uint64_t to, uint64_t from, size_t bytes,
                 void *stream);
int cuda_fill(const struct cuda_hold *hold, uint64_t to, unsigned char value, size_t bytes,
              void *stream);

/* Waits until the stream has done everything that it was given. */
int cuda_finish(const struct cuda_hold *hold, void *stream);

/* An event: a point in a stream's work. Querying never waits; a stream that is to await it does, in
 * its turn. */
int cuda_event_new(const struct cuda_hold *hold, void **event);
int cuda_event_record(const struct cuda_hold *hold, void *event, void *stream);
int cuda_event_query(const struct cuda_hold *hold, void *event, bool *done);
int cuda_event_await(const struct cuda_hold *hold, void *event, void *stream);
int cuda_event_end(const struct cuda_hold *hold, void *event);

/*
 * A fork does not wait for a driver to start: that may take seconds, and the driver may fork then,
 * and that fork wait for what this one has: locks of the C library and of others' handlers among
 * them. A child that is made meanwhile cannot use the driver, as if it had been running. Between
 * the two calls the fork has locks that no other one has.
 */
void cuda_before_fork(void);
void cuda_after_fork(bool in_child);

#endif
