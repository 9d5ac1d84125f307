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

static union operator known[FORMS];
static atomic_bool headed[2]; /* blocks of the forms without an alignment, and with one */
__thread struct operator_call operator_around __attribute__((tls_model("initial-exec")));

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

/* Operators are around what they call, and not around what follows a jump out of it. */
IN_PLACE void forget_what_was_left(void) {
    (void)is_allocators_own();
}

static void leave(const struct operator_call *before) {
    struct operator_call call = operator_around;
    operator_around = *before;
    if (before->caller) {
        operator_around.born = call.born;
        operator_around.born_bytes = call.born_bytes;
    }
}

/* Whether malloc() has noted this block, of an operator that asked it for a header as well. */
static bool has_header(const void *block, size_t size, size_t align) {
    uintptr_t born = (uintptr_t)operator_around.born, at = (uintptr_t)block;
    size_t born_bytes = operator_around.born_bytes;
    return born && at > born && born_bytes >= size && at - born <= born_bytes - size &&
           born_bytes - size <= HEADER_MOST + 2 * align;
}

/* Whether the operator is to note this birth: malloc() has not. */
static bool is_new(const void *block, size_t size, size_t align) {
    atomic_bool *seen = &headed[align != 0];
    if (operator_around.born == block) /* of a new handler's, too, which is inside of another */
        return false;
    if (!*seen && has_header(block, size, align))
        *seen = true;
    return !*seen;
}

/* `nothrow` NULL and `align` 0: the form has none. Where one operator calls another the first is
 * the one that counts: it is whom the program called. */
static void *make(enum form form, size_t size, size_t align, const void *nothrow,
                  uint64_t caller) {
    forget_what_was_left();
    __attribute__((cleanup(leave))) struct operator_call before = operator_around;
    void *block;
    if (!before.caller)
        operator_around = (struct operator_call){caller, size, align ? align : 2, NULL, 0, NULL};
    switch (form & ~1u) {
    case NEW: block = below(form).plain(size); break;
    case NEW_NOTHROW: block = below(form).nothrow(size, nothrow); break;
    case NEW_ALIGNED: block = below(form).aligned(size, align); break;
    default: block = below(form).aligned_nothrow(size, align, nothrow); break;
    }
    if (is_new(block, size, align))
        note_birth(align ? SPOOL_ALIGNED : SPOOL_MALLOC, block, size, align, caller);
    return block;
}

/* Before the operator below is called; returns what is to be set again afterwards. */
static const void *begin_end(const void *block, bool aligned) {
    forget_what_was_left();
    const void *before = operator_around.ending;
    if (headed[aligned])
        return before;
    if (block)
        note_end(SPOOL_FREE, block);
    operator_around.ending = block;
    return before;
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
    const void *before = begin_end(block, false);
    below(DELETE).end(block);
    operator_around.ending = before;
}

void _ZdaPv(void *block) {
    const void *before = begin_end(block, false);
    below(DELETE_ARRAY).end(block);
    operator_around.ending = before;
}

void _ZdlPvm(void *block, size_t size) {
    const void *before = begin_end(block, false);
    below(DELETE_SIZED).end_sized(block, size);
    operator_around.ending = before;
}

void _ZdaPvm(void *block, size_t size) {
    const void *before = begin_end(block, false);
    below(DELETE_ARRAY_SIZED).end_sized(block, size);
    operator_around.ending = before;
}

void _ZdlPvRKSt9nothrow_t(void *block, const void *nothrow) {
    const void *before = begin_end(block, false);
    below(DELETE_NOTHROW).end_nothrow(block, nothrow);
    operator_around.ending = before;
}

void _ZdaPvRKSt9nothrow_t(void *block, const void *nothrow) {
    const void *before = begin_end(block, false);
    below(DELETE_ARRAY_NOTHROW).end_nothrow(block, nothrow);
    operator_around.ending = before;
}

void _ZdlPvSt11align_val_t(void *block, size_t align) {
    const void *before = begin_end(block, true);
    below(DELETE_ALIGNED).end_sized(block, align);
    operator_around.ending = before;
}

void _ZdaPvSt11align_val_t(void *block, size_t align) {
    const void *before = begin_end(block, true);
    below(DELETE_ARRAY_ALIGNED).end_sized(block, align);
    operator_around.ending = before;
}

void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t align) {
    const void *before = begin_end(block, true);
    below(DELETE_SIZED_ALIGNED).end_sized_aligned(block, size, align);
    operator_around.ending = before;
}

void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t align) {
    const void *before = begin_end(block, true);
    below(DELETE_ARRAY_SIZED_ALIGNED).end_sized_aligned(block, size, align);
    operator_around.ending = before;
}

void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const void *nothrow) {
    const void *before = begin_end(block, true);
    below(DELETE_ALIGNED_NOTHROW).end_aligned_nothrow(block, align, nothrow);
    operator_around.ending = before;
}

void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const void *nothrow) {
    const void *before = begin_end(block, true);
    below(DELETE_ARRAY_ALIGNED_NOTHROW).end_aligned_nothrow(block, align, nothrow);
    operator_around.ending = before;
}
