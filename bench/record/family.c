// SPDX-License-Identifier: Apache-2.0
/*
 * family.c - the malloc family as the program calls it: passed on, and noted.
 *
 * A call that fails notes nothing. Sizes are noted as asked for, not as rounded. reallocarray() is
 * made here, so that it is one call below, too; blocks of the bootstrap arena are never noted.
 *
 * An allocator may call its own functions by the names that it exports, which lead here: calloc()
 * may call malloc(), and realloc() free(). The program has made one call, and one is noted.
 *
 * A signal's handler may jump out of the allocator, which then never returns. That shows by the
 * next call: it is not further down on the stack, or what lay there has been written over or has
 * gone with its stack. What cannot be told, a handler's call on a stack of its own, is noted: once
 * too often, not never.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder.h"

/* C23; the C library's headers do not have them yet. */
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t align, size_t size);

__thread const struct work *allocator_at_work __attribute__((tls_model("initial-exec")));

static void begin_work(struct work *work) {
    work->itself = work;
    work->around = allocator_at_work;
    allocator_at_work = work;
}

static void end_work(struct work *work) {
    work->itself = NULL;
    allocator_at_work = work->around;
}

/* The kernel reads a set of signals there, and then refuses what is to be done with it. */
static bool is_mapped(const void *at) {
    int kept = errno;
    bool readable = syscall(SYS_rt_sigprocmask, -1, at, NULL, sizeof(uint64_t)) == 0 ||
                    errno != EFAULT;
    errno = kept;
    return readable;
}

/* It may lie on another stack, as that of a fiber, which has gone since a jump left it. What is on
 * one page with this frame has not. */
static bool is_there(const struct work *work, uintptr_t here) {
    enum { PAGE = 4096 };
    return ((uintptr_t)work ^ here) < PAGE || is_mapped(work);
}

bool work_goes_on(const void *frame) {
    const struct work *work = allocator_at_work;
    uintptr_t here = (uintptr_t)frame, there = (uintptr_t)work;
    if (here < there && there - here <= DEEPEST && is_there(work, here) && work->itself == work)
        return true;
    allocator_at_work = NULL;
    return false;
}

static bool ready(void) {
    return !unlikely(!next.malloc) || next_resolve();
}

EXPORT void *malloc(size_t size) {
    if (!ready())
        return bootstrap_alloc(size, 1);
    struct work work;
    begin_work(&work);
    void *block = next.malloc(size);
    end_work(&work);
    note_birth(SPOOL_MALLOC, block, size, 0, CALLER);
    return block;
}

EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (!ready())
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : bootstrap_alloc(bytes, 1);
    struct work work;
    begin_work(&work);
    void *block = next.calloc(count, size);
    end_work(&work);
    note_birth(SPOOL_CALLOC, block, count * size, 0, CALLER);
    return block;
}

EXPORT void free(void *block) {
    if (!block || bootstrap_owns(block))
        return;
    if (ready()) {
        note_end(SPOOL_FREE, block);
        struct work work;
        begin_work(&work);
        next.free(block);
        end_work(&work);
    }
}

EXPORT void free_sized(void *block, size_t size) {
    if (!block || bootstrap_owns(block) || !ready())
        return;
    note_end(SPOOL_FREE, block);
    struct work work;
    begin_work(&work);
    if (next.free_sized)
        next.free_sized(block, size);
    else
        next.free(block);
    end_work(&work);
}

EXPORT void free_aligned_sized(void *block, size_t align, size_t size) {
    if (!block || bootstrap_owns(block) || !ready())
        return;
    note_end(SPOOL_FREE, block);
    struct work work;
    begin_work(&work);
    if (next.free_aligned_sized)
        next.free_aligned_sized(block, align, size);
    else
        next.free(block);
    end_work(&work);
}

/* A block of the arena moves out of it. */
IN_PLACE void *move_out(void *block, size_t size, uint64_t caller) {
    size_t held = bootstrap_size(block);
    bool is_ready = ready();
    struct work work;
    begin_work(&work);
    void *moved = is_ready ? next.malloc(size) : bootstrap_alloc(size, 1);
    end_work(&work);
    if (moved)
        memcpy(moved, block, held < size ? held : size);
    if (moved && !bootstrap_owns(moved))
        note_birth(SPOOL_MALLOC, moved, size, 0, caller);
    return moved;
}

IN_PLACE void *resize(void *block, size_t size, uint64_t caller) {
    if (block && bootstrap_owns(block))
        return move_out(block, size, caller);
    if (!ready())
        return bootstrap_alloc(size, 1);
    if (!block) {
        struct work work;
        begin_work(&work);
        void *born = next.realloc(NULL, size);
        end_work(&work);
        note_birth(SPOOL_MALLOC, born, size, 0, caller);
        return born;
    }
    note_end(SPOOL_REALLOC_FROM, block);
    struct work work;
    begin_work(&work);
    void *moved = next.realloc(block, size);
    end_work(&work);
    if (moved)
        note_birth(SPOOL_REALLOC_TO, moved, size, 0, caller);
    else
        note_end(size ? SPOOL_REALLOC_FAILED : SPOOL_REALLOC_FREED, block);
    return moved;
}

EXPORT void *realloc(void *block, size_t size) {
    return resize(block, size, CALLER);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(block, bytes, CALLER);
}

/* The C library rounds an alignment that is no power of two up to one. */
static size_t power_above(size_t align) {
    size_t power = 1;
    while (power < align && power < (size_t)1 << 62)
        power <<= 1;
    return power;
}

EXPORT void *aligned_alloc(size_t align, size_t size) {
    if (!ready())
        return bootstrap_alloc(size, align);
    struct work work;
    begin_work(&work);
    void *block = next.aligned_alloc(align, size);
    end_work(&work);
    note_birth(SPOOL_ALIGNED, block, size, power_above(align), CALLER);
    return block;
}

EXPORT int posix_memalign(void **block, size_t align, size_t size) {
    if (!ready()) {
        *block = bootstrap_alloc(size, align);
        return *block ? 0 : ENOMEM;
    }
    struct work work;
    begin_work(&work);
    int result = next.posix_memalign(block, align, size);
    end_work(&work);
    if (result == 0)
        note_birth(SPOOL_ALIGNED, *block, size, align, CALLER);
    return result;
}

EXPORT void *memalign(size_t align, size_t size) {
    if (!ready())
        return bootstrap_alloc(size, align);
    struct work work;
    begin_work(&work);
    void *block = next.memalign(align, size);
    end_work(&work);
    note_birth(SPOOL_ALIGNED, block, size, power_above(align), CALLER);
    return block;
}

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

EXPORT void *valloc(size_t size) {
    if (!ready())
        return bootstrap_alloc(size, page_bytes());
    struct work work;
    begin_work(&work);
    void *block = next.valloc ? next.valloc(size) : next.memalign(page_bytes(), size);
    end_work(&work);
    note_birth(SPOOL_ALIGNED, block, size, page_bytes(), CALLER);
    return block;
}

EXPORT void *pvalloc(size_t size) {
    if (!ready())
        return bootstrap_alloc(size, page_bytes());
    struct work work;
    begin_work(&work);
    void *block = next.pvalloc ? next.pvalloc(size) : next.memalign(page_bytes(), size);
    end_work(&work);
    note_birth(SPOOL_ALIGNED, block, size, page_bytes(), CALLER);
    return block;
}

EXPORT size_t malloc_usable_size(void *block) {
    if (!block)
        return 0;
    if (bootstrap_owns(block))
        return bootstrap_size(block);
    return ready() ? next.malloc_usable_size(block) : 0;
}
