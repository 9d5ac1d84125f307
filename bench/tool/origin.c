// SPDX-License-Identifier: Apache-2.0
/* origin.c - tells code by the name of its file, as bench/traces/FORMAT.md has the letters. */
#include "origin.h"

#include <stddef.h>
#include <string.h>

struct rule {
    const char *part; /* of the name of the file; with a '/' of the whole path */
    char plain, aligned;
};

/* The first that fits counts. */
static const struct rule rules[] = {
    {"libc10", 'C', 'T'},      {"libtorch", 'C', 'W'},   {"libdnnl", 'D', 'D'},
    {"libmkldnn", 'D', 'D'},   {"libpython", 'P', 'P'},  {"libstdc++", 'S', 'S'},
    {"libc++", 'S', 'S'},      {"libgcc_s", 'S', 'S'},   {"libc.so", 'L', 'L'},
    {"ld-linux", 'L', 'L'},    {"libgomp", 'L', 'L'},    {"libiomp", 'L', 'L'},
    {"libomp", 'L', 'L'},      {"libm.so", 'L', 'L'},    {"libpthread", 'L', 'L'},
    {"libdl.so", 'L', 'L'},    {".cpython-", 'N', 'N'},  {".abi3.so", 'N', 'N'},
    {"-packages/", 'N', 'N'},  {"/bin/python", 'P', 'P'},
};

char origin_of(const char *path, bool aligned) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strstr(strchr(rules[i].part, '/') ? path : name, rules[i].part))
            return aligned ? rules[i].aligned : rules[i].plain;
    return 'O';
}

const char *origin_name(char origin) {
    switch (origin) {
    case 'T': return "PyTorch tensor storage";
    case 'W': return "PyTorch operator workspace";
    case 'D': return "oneDNN";
    case 'C': return "other C++ objects of PyTorch";
    case 'P': return "CPython interpreter";
    case 'N': return "Python extension modules";
    case 'S': return "C++ standard library";
    case 'L': return "C library, loader, OpenMP";
    default: return "the program and other libraries";
    }
}
