// SPDX-License-Identifier: Apache-2.0
/*
 * operators.c - C++ operator new and delete in all forms, by the names that compilers give them.
 *
 * A new that finds no memory calls the program's new handler until there is some, or throws
 * std::bad_alloc; both are the C++ library's, which is looked for only then, so that programs
 * without C++ need none: where the program's calls are bound, where the caller's are, which may
 * have one inside, and then among all that is loaded. Compiled with -fexceptions: the exception
 * passes through here.
 *
 * A program may replace some of these, mostly the plain new and delete, and counts on the others to
 * call them ([new.delete] of the C++ standard says which one calls which): see theirs.h.
 */
#include "malloc/door.h"
#include "malloc/gate.h"
#include "malloc/theirs.h"

#include "base/size.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define FAMILY __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

typedef size_t align_val;    /* std::align_val_t */
typedef const void *nothrow; /* const std::nothrow_t & */

typedef void (*handler)(void);

/* ---- no memory ---- */

/* Its path. It is not opened here: the walk has a lock that a dlopen() elsewhere may wait for while
 * it has the one that we would need. */
static int find_library(struct dl_phdr_info *info, size_t bytes, void *path) {
    (void)bytes;
    bool is_it = info->dlpi_name && strstr(info->dlpi_name, "libstdc++.so") &&
                 strlen(info->dlpi_name) < PATH_MAX;
    if (is_it)
        strcpy(path, info->dlpi_name);
    return is_it;
}

/* The operators here have the same names. */
static bool is_ours(void *function) {
    static const char ours;
    Dl_info other, own;
    return dladdr(function, &other) && dladdr(&ours, &own) && other.dli_fbase == own.dli_fbase;
}

/* As a call from the caller's library is bound, which is not closed meanwhile: there or in one that
 * it was linked with. The program's own calls are bound as those of all. */
static void *find_from(const void *caller, const char *name) {
    struct link_map *object = NULL;
    Dl_info info;
    bool is_known = caller && dladdr1(caller, &info, (void **)&object, RTLD_DL_LINKMAP) != 0;
    if (!is_known || !*object->l_name)
        return NULL;
    void *library = dlopen(object->l_name, RTLD_NOLOAD | RTLD_LAZY);
    if (!library)
        return NULL;
    void *function = dlsym(library, name);
    dlclose(library);
    return function && !is_ours(function) ? function : NULL;
}

/* What is found may be called, so this one stays. */
static void *find_anywhere(const char *name) {
    char path[PATH_MAX];
    if (!dl_iterate_phdr(find_library, path))
        return NULL;
    void *library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    return library ? dlsym(library, name) : NULL;
}

/* A function of the C++ library that the caller has, or else the program, however it was loaded.
 * Keeps errno. */
static void *find(const char *name, const void *caller) {
    int before = errno;
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        function = find_from(caller, name);
    if (!function)
        function = find_anywhere(name);
    errno = before;
    return function;
}

static handler current_handler(const void *caller) {
    handler (*get)(void);
    *(void **)&get = find("_ZSt15get_new_handlerv", caller);
    return get ? get() : NULL;
}

/* False: there is no handler. One that gives up throws. */
static bool handle(const void *caller) {
    handler chosen = current_handler(caller);
    if (chosen)
        chosen();
    return chosen != NULL;
}

/* A library with a part of the C++ library inside may have this in its operator new alone, which
 * gets no block of that size from malloc() either. */
static void throw_bad_alloc(const void *caller) {
    static const char text[] = "ebb-malloc: operator new finds no memory, and no C++ library to "
                               "throw std::bad_alloc\n";
    void (*throw)(void);
    void *(*fail)(size_t);
    *(void **)&throw = find("_ZSt17__throw_bad_allocv", caller);
    if (throw)
        throw();
    *(void **)&fail = find("_Znwm", caller);
    if (fail)
        (void)fail((size_t)PTRDIFF_MAX + 1);
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    abort();
}

/* ---- new ---- */

static inline void *try(size_t bytes, size_t align, const void *caller) {
    if (!align)
        return door_alloc(bytes, caller); /* which refuses what is above PTRDIFF_MAX */
    return bytes <= PTRDIFF_MAX ? door_alloc_aligned(bytes, align, caller) : NULL;
}

static void *try_again(size_t bytes, size_t align, const void *caller) {
    void *block = NULL;
    while (!block && handle(caller))
        block = try(bytes, align, caller);
    return block;
}

/* In one call from make(), so that it has nothing to keep. */
static __attribute__((noinline)) void *make_after_all(size_t bytes, size_t align,
                                                      const void *caller) {
    void *block = try_again(bytes, align, caller);
    if (!block)
        throw_bad_alloc(caller);
    return block;
}

static __attribute__((noinline)) void *make_by_calls(size_t bytes, size_t align,
                                                     const void *caller) {
    void *block = try(bytes, align, caller);
    return __builtin_expect(block != NULL, 1) ? block : make_after_all(bytes, align, caller);
}

/* Apart from the rest, so that it has nothing to keep over a call. */
static __attribute__((noinline)) void *make_scoped(size_t bytes, struct scope *scope,
                                                   const void *caller) {
    void *block = front_alloc_quick(scope, bytes, TRAY_GRANULE, caller);
    return __builtin_expect(block != NULL, 1) ? block : make_by_calls(bytes, 0, caller);
}

/* As libstdc++: where no block can lie as is wished, no handler is asked. */
static inline void *make_aligned(size_t bytes, size_t align, const void *caller) {
    if (!size_is_power_of_two(align))
        throw_bad_alloc(caller);
    return make_by_calls(bytes, align, caller);
}

/* Either form, as a library that has one inside need not have both. */
static void *find_nothrow(bool aligned, const void *caller) {
    void *plain = find(aligned ? "_ZnwmSt11align_val_tRKSt9nothrow_t" : "_ZnwmRKSt9nothrow_t",
                       caller);
    return plain ? plain : find(aligned ? "_ZnamSt11align_val_tRKSt9nothrow_t"
                                        : "_ZnamRKSt9nothrow_t", caller);
}

/* A handler may throw, and only the C++ library's own function, which calls those above, can catch
 * that. */
static __attribute__((noinline)) void *try_theirs(size_t bytes, size_t align, nothrow tag,
                                                  const void *caller) {
    void *(*plain)(size_t, nothrow) = NULL;
    void *(*aligned)(size_t, align_val, nothrow) = NULL;
    if (!current_handler(caller))
        return NULL;
    if (align)
        *(void **)&aligned = find_nothrow(true, caller);
    else
        *(void **)&plain = find_nothrow(false, caller);
    return aligned ? aligned(bytes, align, tag) : plain ? plain(bytes, tag) : NULL;
}

static inline void *make_nothrow(size_t bytes, size_t align, nothrow tag, const void *caller) {
    void *block = try(bytes, align, caller);
    return block ? block : try_theirs(bytes, align, tag, caller);
}

static inline void *make_aligned_nothrow(size_t bytes, size_t align, nothrow tag,
                                         const void *caller) {
    return size_is_power_of_two(align) ? make_nothrow(bytes, align, tag, caller) : NULL;
}

FAMILY FRONT_HOT void *_Znwm(size_t bytes);
FAMILY FRONT_HOT void *_Znam(size_t bytes);
FAMILY FRONT_HOT void *_ZnwmRKSt9nothrow_t(size_t bytes, nothrow tag);
FAMILY void *_ZnamRKSt9nothrow_t(size_t bytes, nothrow tag);
FAMILY void *_ZnwmSt11align_val_t(size_t bytes, align_val align);
FAMILY void *_ZnamSt11align_val_t(size_t bytes, align_val align);
FAMILY void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t bytes, align_val align, nothrow tag);
FAMILY void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t bytes, align_val align, nothrow tag);

extern THEIRS_OURS __typeof__(_Znwm) ours_new __attribute__((alias("_Znwm")));
extern THEIRS_OURS __typeof__(_Znam) ours_new_many __attribute__((alias("_Znam")));
extern THEIRS_OURS __typeof__(_ZnwmSt11align_val_t) ours_new_aligned
    __attribute__((alias("_ZnwmSt11align_val_t")));
extern THEIRS_OURS __typeof__(_ZnamSt11align_val_t) ours_new_many_aligned
    __attribute__((alias("_ZnamSt11align_val_t")));

static inline bool new_is_ours(void) {
    return theirs_is_ours((theirs_any *)_Znwm, (theirs_any *)ours_new);
}

/* And what that calls. */
static inline bool new_many_is_ours(void) {
    return theirs_is_ours((theirs_any *)_Znam, (theirs_any *)ours_new_many) && new_is_ours();
}

static inline bool new_aligned_is_ours(void) {
    return theirs_is_ours((theirs_any *)_ZnwmSt11align_val_t, (theirs_any *)ours_new_aligned);
}

static inline bool new_many_aligned_is_ours(void) {
    return new_aligned_is_ours() &&
           theirs_is_ours((theirs_any *)_ZnamSt11align_val_t, (theirs_any *)ours_new_many_aligned);
}

/* ---- new, of the program ---- */

/* Kept from the first time on, also that there is none: to look takes a lock. So not the caller's,
 * which may be closed. */
static void *find_once(const char *name, _Atomic(void *) *kept) {
    static char none;
    void *function = atomic_load_explicit(kept, memory_order_relaxed);
    if (!function) {
        function = find(name, NULL);
        atomic_store_explicit(kept, function ? function : &none, memory_order_relaxed);
    }
    return function == &none ? NULL : function;
}

/* The program's may throw, which only the C++ library's function, that calls it, can catch. Where
 * no such library is found, what it throws passes. */
static __attribute__((noinline)) void *ask_nothrow(bool many, size_t bytes, nothrow tag) {
    static _Atomic(void *) kept[2];
    void *(*theirs)(size_t, nothrow);
    *(void **)&theirs = find_once(many ? "_ZnamRKSt9nothrow_t" : "_ZnwmRKSt9nothrow_t",
                                  &kept[many]);
    if (theirs)
        return theirs(bytes, tag);
    return many ? _Znam(bytes) : _Znwm(bytes);
}

static __attribute__((noinline)) void *ask_aligned_nothrow(bool many, size_t bytes, align_val align,
                                                           nothrow tag) {
    static _Atomic(void *) kept[2];
    void *(*theirs)(size_t, align_val, nothrow);
    *(void **)&theirs = find_once(many ? "_ZnamSt11align_val_tRKSt9nothrow_t"
                                       : "_ZnwmSt11align_val_tRKSt9nothrow_t", &kept[many]);
    if (theirs)
        return theirs(bytes, align, tag);
    return many ? _ZnamSt11align_val_t(bytes, align) : _ZnwmSt11align_val_t(bytes, align);
}

/* ---- new, each form ---- */

#ifdef GATE

FRONT_HOT void *gate_new_scoped(size_t bytes, struct scope *scope) {
    return make_scoped(bytes, scope, CALLER);
}

FRONT_HOT void *gate_new_slow(size_t bytes) {
    void *block = gate_malloc_slow(bytes);
    return __builtin_expect(block != NULL, 1) ? block : make_after_all(bytes, 0, CALLER);
}

#define GATE_NEW GATE_SCOPE "jne gate_new_scoped\n" BODY_MALLOC("gate_new_slow")

/* As new_is_ours(). A jump follows if not. */
#define GATE_NEW_OURS               \
    "leaq ours_new(%rip), %rax\n\t" \
    "cmpq _Znwm@GOTPCREL(%rip), %rax\n\t"

GATE void *_Znwm(GATE_ARGUMENT size_t bytes) {
    __asm__(GATE_NEW);
}

GATE void *_Znam(GATE_ARGUMENT size_t bytes) {
    __asm__(GATE_NEW_OURS "jne _Znwm@PLT\n\t" GATE_NEW);
}

/* The gate loses the tag, of which there is no more to know than its type. */
static const char any_tag;

FRONT_HOT void *gate_nothrow_scoped(size_t bytes, struct scope *scope) {
    void *block = door_alloc_scoped(bytes, scope, CALLER);
    return block ? block : try_theirs(bytes, 0, &any_tag, CALLER);
}

FRONT_HOT void *gate_nothrow_slow(size_t bytes) {
    void *block = gate_malloc_slow(bytes);
    return block ? block : try_theirs(bytes, 0, &any_tag, CALLER);
}

void *gate_nothrow_theirs(size_t bytes, nothrow tag) {
    return ask_nothrow(false, bytes, tag);
}

GATE void *_ZnwmRKSt9nothrow_t(GATE_ARGUMENT size_t bytes, GATE_ARGUMENT nothrow tag) {
    __asm__(GATE_NEW_OURS "jne gate_nothrow_theirs\n\t"
            GATE_SCOPE "jne gate_nothrow_scoped\n" BODY_MALLOC("gate_nothrow_slow"));
}

#else

/* Outside of scopes, where it does not matter who calls as long as there is memory: the place of
 * the call is read from the stack only where there is none. */
static inline void *make_general(size_t bytes) {
    void *block = je_malloc(bytes);
    return __builtin_expect(block != NULL, 1) ? block : make_after_all(bytes, 0, CALLER);
}

static inline void *make(size_t bytes) {
    struct scope *scope = here.scope;
    if (GUARDED)
        return make_by_calls(bytes, 0, CALLER);
    return __builtin_expect(!scope, 1) ? make_general(bytes) : make_scoped(bytes, scope, CALLER);
}

void *_Znwm(size_t bytes) {
    return make(bytes);
}

void *_Znam(size_t bytes) {
    return new_is_ours() ? make(bytes) : _Znwm(bytes);
}

void *_ZnwmRKSt9nothrow_t(size_t bytes, nothrow tag) {
    return new_is_ours() ? make_nothrow(bytes, 0, tag, CALLER) : ask_nothrow(false, bytes, tag);
}

#endif

void *_ZnamRKSt9nothrow_t(size_t bytes, nothrow tag) {
    return new_many_is_ours() ? make_nothrow(bytes, 0, tag, CALLER) : ask_nothrow(true, bytes, tag);
}

void *_ZnwmSt11align_val_t(size_t bytes, align_val align) {
    return make_aligned(bytes, align, CALLER);
}

void *_ZnamSt11align_val_t(size_t bytes, align_val align) {
    return new_aligned_is_ours() ? make_aligned(bytes, align, CALLER)
                                 : _ZnwmSt11align_val_t(bytes, align);
}

void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t bytes, align_val align, nothrow tag) {
    return new_aligned_is_ours() ? make_aligned_nothrow(bytes, align, tag, CALLER)
                                 : ask_aligned_nothrow(false, bytes, align, tag);
}

void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t bytes, align_val align, nothrow tag) {
    return new_many_aligned_is_ours() ? make_aligned_nothrow(bytes, align, tag, CALLER)
                                      : ask_aligned_nothrow(true, bytes, align, tag);
}

/* ---- delete ---- */

FAMILY FRONT_HOT void _ZdlPv(void *block);
FAMILY FRONT_HOT void _ZdaPv(void *block);
FAMILY void _ZdlPvRKSt9nothrow_t(void *block, nothrow tag);
FAMILY void _ZdaPvRKSt9nothrow_t(void *block, nothrow tag);
FAMILY void _ZdlPvm(void *block, size_t bytes);
FAMILY void _ZdaPvm(void *block, size_t bytes);
FAMILY void _ZdlPvSt11align_val_t(void *block, align_val align);
FAMILY void _ZdaPvSt11align_val_t(void *block, align_val align);
FAMILY void _ZdlPvmSt11align_val_t(void *block, size_t bytes, align_val align);
FAMILY void _ZdaPvmSt11align_val_t(void *block, size_t bytes, align_val align);
FAMILY void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, align_val align, nothrow tag);
FAMILY void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, align_val align, nothrow tag);

extern THEIRS_OURS __typeof__(_ZdlPv) ours_delete __attribute__((alias("_ZdlPv")));
extern THEIRS_OURS __typeof__(_ZdaPv) ours_delete_many __attribute__((alias("_ZdaPv")));
extern THEIRS_OURS __typeof__(_ZdlPvSt11align_val_t) ours_delete_aligned
    __attribute__((alias("_ZdlPvSt11align_val_t")));
extern THEIRS_OURS __typeof__(_ZdaPvSt11align_val_t) ours_delete_many_aligned
    __attribute__((alias("_ZdaPvSt11align_val_t")));

static inline bool delete_is_ours(void) {
    return theirs_is_ours((theirs_any *)_ZdlPv, (theirs_any *)ours_delete);
}

static inline bool delete_many_is_ours(void) {
    return theirs_is_ours((theirs_any *)_ZdaPv, (theirs_any *)ours_delete_many) && delete_is_ours();
}

static inline bool delete_aligned_is_ours(void) {
    return theirs_is_ours((theirs_any *)_ZdlPvSt11align_val_t, (theirs_any *)ours_delete_aligned);
}

static inline bool delete_many_aligned_is_ours(void) {
    return delete_aligned_is_ours() &&
           theirs_is_ours((theirs_any *)_ZdaPvSt11align_val_t,
                          (theirs_any *)ours_delete_many_aligned);
}

#ifdef GATE

GATE void _ZdlPv(GATE_ARGUMENT void *block) {
    __asm__(GATE_FREE);
}

GATE void _ZdaPv(GATE_ARGUMENT void *block) {
    __asm__("leaq ours_delete(%rip), %rax\n\t"
            "cmpq _ZdlPv@GOTPCREL(%rip), %rax\n\t"
            "jne _ZdlPv@PLT\n\t" GATE_FREE);
}

#else

void _ZdlPv(void *block) {
    door_free(block);
}

void _ZdaPv(void *block) {
    if (delete_is_ours())
        door_free(block);
    else
        _ZdlPv(block);
}

#endif

void _ZdlPvRKSt9nothrow_t(void *block, nothrow tag) {
    (void)tag;
    _ZdlPv(block);
}

void _ZdaPvRKSt9nothrow_t(void *block, nothrow tag) {
    (void)tag;
    _ZdaPv(block);
}

FRONT_HOT void _ZdlPvm(void *block, size_t bytes) {
    if (delete_is_ours())
        door_free_sized(block, bytes);
    else
        _ZdlPv(block);
}

void _ZdaPvm(void *block, size_t bytes) {
    if (delete_many_is_ours())
        door_free_sized(block, bytes);
    else
        _ZdaPv(block);
}

void _ZdlPvSt11align_val_t(void *block, align_val align) {
    (void)align;
    door_free(block);
}

void _ZdaPvSt11align_val_t(void *block, align_val align) {
    if (delete_aligned_is_ours())
        door_free(block);
    else
        _ZdlPvSt11align_val_t(block, align);
}

void _ZdlPvmSt11align_val_t(void *block, size_t bytes, align_val align) {
    if (delete_aligned_is_ours())
        door_free_sized(block, bytes);
    else
        _ZdlPvSt11align_val_t(block, align);
}

void _ZdaPvmSt11align_val_t(void *block, size_t bytes, align_val align) {
    if (delete_many_aligned_is_ours())
        door_free_sized(block, bytes);
    else
        _ZdaPvSt11align_val_t(block, align);
}

void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, align_val align, nothrow tag) {
    (void)tag;
    _ZdlPvSt11align_val_t(block, align);
}

void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, align_val align, nothrow tag) {
    (void)tag;
    _ZdaPvSt11align_val_t(block, align);
}
