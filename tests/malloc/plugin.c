// SPDX-License-Identifier: Apache-2.0
/*
 * plugin.c - a program without C++ that loads a library with a C++ library inside: what that
 * library's new finds no memory for is its own handler's, and ends in an exception that it catches.
 *
 * Run preloaded with libebb-malloc, and once without it.
 * plugin BRINGER: the library of bringer.cc, with nothing beside the C library that it needs.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>

static const char *bringer;

static int (*find_fails(int mode))(void) {
    int (*fails)(void);
    void *library = dlopen(bringer, mode);
    EXPECT(library);
    *(void **)&fails = dlsym(library, "bringer_fails");
    EXPECT(fails);
    return fails;
}

static void a_new_without_memory_throws(void) {
    EXPECT(find_fails(RTLD_NOW | RTLD_LOCAL)() == 3);
}

static void the_same_of_a_library_that_all_see(void) {
    EXPECT(find_fails(RTLD_NOW | RTLD_GLOBAL)() == 3);
}

static void the_same_in_a_scope(void) {
    int (*fails)(void) = find_fails(RTLD_LAZY | RTLD_LOCAL);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "plugin", .scope = true));
    for (unsigned i = 0; i < 20; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        EXPECT(fails() == 3);
        EXPECT(ebb_step_end(step) == 0);
    }
}

/* The child says why it ends. */
static void a_new_that_nobody_throws_for_says_so(void) {
    int ends[2], status = 0;
    char said[200] = "";
    void *(*make)(size_t);
    *(void **)&make = dlsym(RTLD_DEFAULT, "_Znwm");
    if (!make)
        return; /* as without libebb-malloc */
    EXPECT(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        _exit(make((size_t)PTRDIFF_MAX + 1) ? 0 : 1);
    }
    close(ends[1]);
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    EXPECT(read(ends[0], said, sizeof said - 1) > 0);
    EXPECT(strncmp(said, "ebb-malloc: operator new finds no memory", 40) == 0);
}

int main(int count, char **words) {
    static const struct act acts[] = {
        ACT(a_new_without_memory_throws),
        ACT(the_same_of_a_library_that_all_see),
        ACT(the_same_in_a_scope),
        ACT(a_new_that_nobody_throws_for_says_so),
    };
    bringer = count > 1 ? words[1] : "./bringer.so";
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
