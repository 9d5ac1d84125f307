// SPDX-License-Identifier: Apache-2.0
/*
 * cxx.c - operator new and delete in all forms, as the program calls them.
 *
 * The C++ library's operators call malloc() and free(), where the call is noted; other allocators'
 * do so or not, each form as it likes. So an operator notes a block only if it was not noted below,
 * and what it has noted to end is not noted again. Either way the place that allocates is the one
 * that called the operator, and the size is what it asked for.
 *
 * A program may have an operator new of its own, which the C++ library's other forms call, and that
 * may put a header before each block. Then the block that malloc() has noted is not the one that
 * delete is given: once such a one was seen, all is left to malloc() and free(), as are the
 * program's own operators, which are not seen here.
 *
 * Which operators a thread is in is kept in memory of the thread, not on its stacks: who jumps out
 * of an operator may give up the stack as well, and that of a fiber or a signal's handler goes. So
 * frames are compared and never read, and an operator that was left is still around what is called
 * further down, until another's frame is where its was.
 *
 * Built with -fexceptions: std::bad_alloc passes through, and what a new handler does is noted.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "recorder.h"

/* Names as the C++ ABI mangles them. The second of each pair is for arrays. */
enum form {
    NEW, NEW_ARRAY,
    NEW_NOTHROW, NEW_ARRAY_NOTHROW,
    NEW_ALIGNED, NEW_ARRAY_ALIGNED,
    NEW_ALIGNED_NOTHROW, NEW_ARRAY_ALIGNED_NOTHROW,
    DELETE, DELETE_ARRAY,
    DELETE_SIZED, DELETE_ARRAY_SIZED,
    DELETE_NOTHROW, DELETE_ARRAY_NOTHROW,
    DELETE_ALIGNED, DELETE_ARRAY_ALIGNED,
    DELETE_SIZED_ALIGNED, DELETE_ARRAY_SIZED_ALIGNED,
    DELETE_ALIGNED_NOTHROW, DELETE_ARRAY_ALIGNED_NOTHROW,
    FORMS
};

static const char *const names[FORMS] = {
    "_Znwm", "_Znam",
    "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv", "_ZdaPv",
    "_ZdlPvm", "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};

union operator {
    void *found;
    void *(*plain)(size_t);
    void *(*nothrow)(size_t, const void *);
    void *(*aligned)(size_t, size_t);
    void *(*aligned_nothrow)(size_t, size_t, const void *);
    void (*end)(void *);
    void (*end_sized)(void *, size_t); /* or aligned: the words are passed alike */
    void (*end_nothrow)(void *, const void *);
    void (*end_sized_aligned)(void *, size_t, size_t);
    void (*end_aligned_nothrow)(void *, size_t, const void *);
};

enum { HEADER_MOST = 256 }; /* bytes of a header and what follows the block; the rest is a pool's */
enum { OPERATORS = 8 };     /* at once, each on a stack of its own or left by a jump */

static union operator known[FORMS];
static atomic_bool headed[2]; /* blocks of the forms without an alignment, and with one */
THREAD_OWN struct operator_call operators[OPERATORS];
__thread int operators_known __attribute__((tls_model("initial-exec")));

/* Of a C++ library that was loaded later than the program, by one of its libraries, RTLD_NEXT knows
 * nothing. */
static void *find_loaded(const char *name) {
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            found = dlsym(library, name);
    }
    return found;
}

_Noreturn static void no_operator(void) {
    static const char text[] = "libebb-record: operator new or delete without a C++ library\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    abort();
}

static union operator below(enum form form) {
    if (unlikely(!known[form].found)) {
        void *found = dlsym(RTLD_NEXT, names[form]);
        known[form].found = found ? found : find_loaded(names[form]);
        if (!known[form].found)
            no_operator();
    }
    return known[form];
}

/* ---- which operators the thread is in */

/* The closest one above this frame. Another's frame need not be on the same stack: where that is
 * a signal's, the operator that it interrupted goes on, and so it stays. */
struct operator_call *operator_around(const void *frame) {
    uintptr_t here = (uintptr_t)frame;
    struct operator_call *found = NULL;
    for (int i = 0; i < operators_known; i++) {
        struct operator_call *call = &operators[i];
        if (call->frame > here && call->frame - here <= DEEPEST &&
            (!found || call->frame < found->frame))
            found = call;
    }
    return found;
}

static struct operator_call *operator_of(uintptr_t frame) {
    for (int i = 0; i < operators_known; i++)
        if (operators[i].frame == frame)
            return &operators[i];
    return NULL;
}

static void forget(struct operator_call *call) {
    call->frame = 0;
    while (operators_known > 0 && operators[operators_known - 1].frame == 0)
        operators_known--;
}

/* A jump has left what is close and no higher: this call's frame is where that one's was. */
static void forget_what_was_left(uintptr_t here) {
    for (int i = operators_known - 1; i >= 0; i--)
        if (operators[i].frame && operators[i].frame <= here &&
            here - operators[i].frame <= DEEPEST)
            forget(&operators[i]);
}

/* Where all are in use, the first is given up: of that many stacks some have been left. */
static struct operator_call *find_free(void) {
    for (int i = 0; i < operators_known; i++)
        if (operators[i].frame == 0)
            return &operators[i];
    return operators_known < OPERATORS ? &operators[operators_known++] : &operators[0];
}

/* A call of an operator, in its frame. The frame is that of the operator around it, if there is
 * one, which it stands for: that is whom the program called. */
struct visit {
    uintptr_t frame;
    struct operator_call before; /* no call: none is around */
};

/* What a signal's handler begins meanwhile it ends as well, so a frame is told at last. */
static struct operator_call *enter(struct visit *visit, struct operator_call *around) {
    struct operator_call *call = around;
    if (around) {
        *visit = (struct visit){around->frame, *around};
    } else {
        *visit = (struct visit){(uintptr_t)visit, {0}};
        forget_what_was_left(visit->frame);
        call = find_free();
        *call = (struct operator_call){0};
        atomic_signal_fence(memory_order_seq_cst);
        call->frame = visit->frame;
    }
    return call;
}

/* Nothing is known of a call that was given up, or went on in another thread. */
static void leave(struct visit *visit) {
    struct operator_call *call = operator_of(visit->frame);
    if (call && visit->before.frame) {
        visit->before.born = call->born;
        visit->before.born_bytes = call->born_bytes;
        *call = visit->before;
    } else if (call) {
        forget(call);
    }
}

/* ---- what they note */

/* Whether malloc() has noted this block, of an operator that asked it for a header as well. */
static bool has_header(const struct operator_call *call, const void *block, size_t size,
                       size_t align) {
    uintptr_t born = (uintptr_t)call->born, at = (uintptr_t)block;
    size_t born_bytes = call->born_bytes;
    return born && at > born && born_bytes >= size && at - born <= born_bytes - size &&
           born_bytes - size <= HEADER_MOST + 2 * align;
}

/* Whether the operator is to note this birth: malloc() has not. It mostly has, so what is not known
 * any more is not noted. */
static bool is_new(const struct operator_call *call, const void *block, size_t size,
                   size_t align) {
    atomic_bool *seen = &headed[align != 0];
    if (!call || call->born == block) /* of a new handler's, too, which is inside of another */
        return false;
    if (!*seen && has_header(call, block, size, align))
        *seen = true;
    return !*seen;
}

/* `nothrow` NULL and `align` 0: the form has none. False: what it returns is noted already. */
static bool make_below(enum form form, size_t size, size_t align, const void *nothrow,
                       uint64_t caller, struct operator_call *around, void **block) {
    __attribute__((cleanup(leave))) struct visit visit;
    struct operator_call *call = enter(&visit, around);
    if (!call->caller) {
        call->caller = caller;
        call->size = size;
        call->slack = align ? align : 2;
        call->ending = NULL;
    }
    switch (form & ~1u) {
    case NEW: *block = below(form).plain(size); break;
    case NEW_NOTHROW: *block = below(form).nothrow(size, nothrow); break;
    case NEW_ALIGNED: *block = below(form).aligned(size, align); break;
    default: *block = below(form).aligned_nothrow(size, align, nothrow); break;
    }
    return is_new(operator_of(visit.frame), *block, size, align);
}

/* What the operator notes itself is of the one around it, if there is one. */
static void *make(enum form form, size_t size, size_t align, const void *nothrow,
                  uint64_t caller) {
    void *block;
    if (make_below(form, size, align, nothrow, caller, own_operator(), &block))
        note_birth(align ? SPOOL_ALIGNED : SPOOL_MALLOC, block, size, align, caller);
    return block;
}

/* Before the operator below is called, and afterwards leave(). */
IN_PLACE void begin_end(struct visit *visit, const void *block, bool aligned) {
    if (block && !headed[aligned])
        note_end(SPOOL_FREE, block);
    struct operator_call *call = enter(visit, own_operator());
    if (!headed[aligned])
        call->ending = block;
}

/* ---- the forms; in C under the names of the ABI */

EXPORT void *_Znwm(size_t size);
EXPORT void *_Znam(size_t size);
EXPORT void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow);
EXPORT void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow);
EXPORT void *_ZnwmSt11align_val_t(size_t size, size_t align);
EXPORT void *_ZnamSt11align_val_t(size_t size, size_t align);
EXPORT void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void *nothrow);
EXPORT void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void *nothrow);
EXPORT void _ZdlPv(void *block);
EXPORT void _ZdaPv(void *block);
EXPORT void _ZdlPvm(void *block, size_t size);
EXPORT void _ZdaPvm(void *block, size_t size);
EXPORT void _ZdlPvRKSt9nothrow_t(void *block, const void *nothrow);
EXPORT void _ZdaPvRKSt9nothrow_t(void *block, const void *nothrow);
EXPORT void _ZdlPvSt11align_val_t(void *block, size_t align);
EXPORT void _ZdaPvSt11align_val_t(void *block, size_t align);
EXPORT void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t align);
EXPORT void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t align);
EXPORT void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const void *nothrow);
EXPORT void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const void *nothrow);

void *_Znwm(size_t size) {
    return make(NEW, size, 0, NULL, CALLER);
}

void *_Znam(size_t size) {
    return make(NEW_ARRAY, size, 0, NULL, CALLER);
}

void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow) {
    return make(NEW_NOTHROW, size, 0, nothrow, CALLER);
}

void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow) {
    return make(NEW_ARRAY_NOTHROW, size, 0, nothrow, CALLER);
}

void *_ZnwmSt11align_val_t(size_t size, size_t align) {
    return make(NEW_ALIGNED, size, align, NULL, CALLER);
}

void *_ZnamSt11align_val_t(size_t size, size_t align) {
    return make(NEW_ARRAY_ALIGNED, size, align, NULL, CALLER);
}

void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void *nothrow) {
    return make(NEW_ALIGNED_NOTHROW, size, align, nothrow, CALLER);
}

void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void *nothrow) {
    return make(NEW_ARRAY_ALIGNED_NOTHROW, size, align, nothrow, CALLER);
}

void _ZdlPv(void *block) {
    struct visit visit;
    begin_end(&visit, block, false);
    below(DELETE).end(block);
    leave(&visit);
}

void _ZdaPv(void *block) {
    struct visit visit;
    begin_end(&visit, block, false);
    below(DELETE_ARRAY).end(block);
    leave(&visit);
}

void _ZdlPvm(void *block, size_t size) {
    struct visit visit;
    begin_end(&visit, block, false);
    below(DELETE_SIZED).end_sized(block, size);
    leave(&visit);
}

void _ZdaPvm(void *block, size_t size) {
    struct visit visit;
    begin_end(&visit, block, false);
    below(DELETE_ARRAY_SIZED).end_sized(block, size);
    leave(&visit);
}

void _ZdlPvRKSt9nothrow_t(void *block, const void *nothrow) {
    struct visit visit;
    begin_end(&visit, block, false);
    below(DELETE_NOTHROW).end_nothrow(block, nothrow);
    leave(&visit);
}

void _ZdaPvRKSt9nothrow_t(void *block, const void *nothrow) {
    struct visit visit;
    begin_end(&visit, block, false);
    below(DELETE_ARRAY_NOTHROW).end_nothrow(block, nothrow);
    leave(&visit);
}

void _ZdlPvSt11align_val_t(void *block, size_t align) {
    struct visit visit;
    begin_end(&visit, block, true);
    below(DELETE_ALIGNED).end_sized(block, align);
    leave(&visit);
}

void _ZdaPvSt11align_val_t(void *block, size_t align) {
    struct visit visit;
    begin_end(&visit, block, true);
    below(DELETE_ARRAY_ALIGNED).end_sized(block, align);
    leave(&visit);
}

void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t align) {
    struct visit visit;
    begin_end(&visit, block, true);
    below(DELETE_SIZED_ALIGNED).end_sized_aligned(block, size, align);
    leave(&visit);
}

void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t align) {
    struct visit visit;
    begin_end(&visit, block, true);
    below(DELETE_ARRAY_SIZED_ALIGNED).end_sized_aligned(block, size, align);
    leave(&visit);
}

void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const void *nothrow) {
    struct visit visit;
    begin_end(&visit, block, true);
    below(DELETE_ALIGNED_NOTHROW).end_aligned_nothrow(block, align, nothrow);
    leave(&visit);
}

void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const void *nothrow) {
    struct visit visit;
    begin_end(&visit, block, true);
    below(DELETE_ARRAY_ALIGNED_NOTHROW).end_aligned_nothrow(block, align, nothrow);
    leave(&visit);
}
