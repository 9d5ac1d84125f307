// SPDX-License-Identifier: Apache-2.0
//
// plugged.c - a program for whose functions there are several definitions; it knows which are its.
//
//     plugged SCENARIO
//
// EBB_PLUGS is the folder with the libraries, EBB_COPIES that with many of one. Exit code: 0, or 1
// where another function was called.

#include "demand.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "plugged.h"

__asm__(".symver client_choice, client_choice@V1"); // as if it was linked when V1 was the newest

static void *volatile sink;

static void *opened(const char *name, int flags)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/librecord_%s.so", getenv("EBB_PLUGS"), name);
    void *library = dlopen(path, flags);
    DEMAND(library);
    return library;
}

static int (*found(void *library, const char *name))(void)
{
    int (*function)(void);
    void *at = dlsym(library, name);

    DEMAND(at);
    memcpy(&function, &at, sizeof function);
    return function;
}

// More than a chunk of records, so that libraries are looked at again.
static void let_look(void)
{
    for (int i = 0; i < CLIENT_MANY; i++) {
        sink = malloc(CLIENT_MALLOC);
        free(sink);
    }
}

// Libraries are looked at before the first call, and afterwards.
static void check(int (*function)(void), int result)
{
    let_look();
    for (int i = 0; i < PLUGGED_CALLS; i++)
        DEMAND(function() == result);
    let_look();
    for (int i = 0; i < PLUGGED_CALLS; i++)
        DEMAND(function() == result);
}

static int call_choice(void)
{
    return client_choice();
}

static void version(void)
{
    check(call_choice, PLUGGED_OLD);
}

static int call_plug(void)
{
    return client_plug();
}

// A library that prefers its own.
static void deep(void)
{
    void *alpha = opened("alpha", RTLD_NOW | RTLD_DEEPBIND);

    check(call_plug, PLUGGED_BASE);
    check(found(alpha, "plug_run"), PLUGGED_ALPHA);
    check(call_plug, PLUGGED_BASE);
}

// The same, where the function is looked for when it is first called.
static void deep_and_late(void)
{
    void *alpha = opened("alpha", RTLD_LAZY | RTLD_DEEPBIND);

    check(found(alpha, "plug_run"), PLUGGED_ALPHA);
}

// The first definition that there is can be seen by its own library alone.
static void hidden(void)
{
    int (*run)(void) = found(opened("host", RTLD_LAZY | RTLD_GLOBAL), "host_run");

    opened("alpha", RTLD_LAZY | RTLD_LOCAL);
    let_look();
    opened("beta", RTLD_LAZY | RTLD_GLOBAL);
    check(run, PLUGGED_BETA);
}

// A library is closed, and stays as long as another is bound to it.
static void closed(void)
{
    int (*run)(void) = found(opened("host", RTLD_LAZY | RTLD_GLOBAL), "host_run");
    void *alpha = opened("alpha", RTLD_LAZY | RTLD_GLOBAL);

    let_look();
    for (int i = 0; i < PLUGGED_CALLS; i++)
        DEMAND(run() == PLUGGED_ALPHA);
    DEMAND(dlclose(alpha) == 0);
    check(run, PLUGGED_ALPHA);
}

// ---- places

// Takes blocks there and leaves them. The place.
static void *take_blocks(void *library, const char *place)
{
    void *at = dlsym(library, place), *(*take)(void);

    DEMAND(at);
    memcpy(&take, &at, sizeof take);
    for (int i = 0; i < PLUGGED_CALLS; i++)
        sink = take();
    return at;
}

// One library after the other, at the same addresses, and the first once more.
static void turns(void)
{
    void *place[3];

    for (int i = 0; i < 3; i++) {
        void *library = opened(i == 1 ? "beta" : "alpha", RTLD_NOW);

        place[i] = take_blocks(library, i == 1 ? "place_beta" : "place_alpha");
        DEMAND(dlclose(library) == 0);
    }
    if (place[0] != place[1] || place[0] != place[2])
        puts("other addresses");
}

// By a name that is another library's in the folder that the program ends in.
static void relative(void)
{
    char name[] = "./librecord_alpha.so";

    DEMAND(chdir(getenv("EBB_PLUGS")) == 0);
    void *library = dlopen(name, RTLD_NOW);
    DEMAND(library && chdir("/") == 0);
    take_blocks(library, "place_alpha");
}

// Copies of one library, each of which is another one.
static void crowd(void)
{
    char path[4096];

    for (int i = 0; i < PLUGGED_CROWD; i++) {
        snprintf(path, sizeof path, "%s/%d.so", getenv("EBB_COPIES"), i);
        void *library = dlopen(path, RTLD_NOW);
        DEMAND(library);
        take_blocks(library, "place_alpha");
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"version", version}, {"deep", deep},     {"deep_and_late", deep_and_late}, {"hidden", hidden},
    {"closed", closed},   {"turns", turns},   {"relative", relative},           {"crowd", crowd},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    return 1;
}
