// SPDX-License-Identifier: Apache-2.0
/*
 * contest.c - see contest.h.
 *
 * The malloc libraries are Debian's, found by the loader under their sonames. The tuned rows have
 * the settings of the churn benchmark (bench/churn/allocator.c): they give nothing back.
 */
#include "contest.h"

#include <string.h>

#define GLIBC_TUNED                                                                    \
    "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.mmap_threshold=33554432:"    \
    "glibc.malloc.trim_threshold=9223372036854775807:glibc.malloc.top_pad=67108864"
#define JEMALLOC_TUNED "MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0"

const struct contestant contestants[] = {
    {"floor", FAMILY_FLOOR, "floor", NULL, NULL},
    {"floor-in-memory", FAMILY_FLOOR, "floor-in-memory", NULL, NULL},
    {"ebb", FAMILY_EBB, "ebb", NULL, NULL},
    {"glibc", FAMILY_MALLOC, "malloc", NULL, NULL},
    {"glibc-tuned", FAMILY_MALLOC, "malloc", NULL, GLIBC_TUNED},
    {"jemalloc", FAMILY_MALLOC, "malloc", "libjemalloc.so.2", NULL},
    {"jemalloc-tuned", FAMILY_MALLOC, "malloc", "libjemalloc.so.2", JEMALLOC_TUNED},
    {"mimalloc", FAMILY_MALLOC, "malloc", "libmimalloc.so.2.0", NULL},
    {"tcmalloc", FAMILY_MALLOC, "malloc", "libtcmalloc_minimal.so.4", NULL},
    {"apr", FAMILY_ARENA, "apr", NULL, NULL},
    {"talloc", FAMILY_ARENA, "talloc", NULL, NULL},
    {"obstack", FAMILY_ARENA, "obstack", NULL, NULL},
    {"pmr", FAMILY_ARENA, "pmr", NULL, NULL},
    {"bumpalo", FAMILY_ARENA, "bumpalo", NULL, NULL},
};
const size_t contestant_count = sizeof contestants / sizeof contestants[0];

#define MALLOCS " glibc glibc-tuned jemalloc jemalloc-tuned mimalloc tcmalloc"

const struct contest contests[] = {
    {"small10k", CASE_SMALL10K, true, NULL},
    {"const", CASE_CONST, true, NULL},
    {"open_close", CASE_OPEN_CLOSE, true, "ebb apr talloc obstack pmr bumpalo"},
    {"close_n", CASE_CLOSE_N, false, "ebb apr talloc obstack pmr bumpalo" MALLOCS},
    {"flat_count", CASE_FLAT_COUNT, false, "floor ebb mimalloc"},
    {"flat_bytes", CASE_FLAT_BYTES, false, "floor ebb mimalloc"},
    {"large", CASE_LARGE, true, "floor ebb pmr bumpalo" MALLOCS},
    {"request", CASE_REQUEST, true, "floor ebb apr pmr bumpalo" MALLOCS},
    {"release", CASE_RELEASE, true, "ebb talloc" MALLOCS},
    {"promote", CASE_PROMOTE, false, "floor ebb"},
    {"tensor", CASE_TENSOR, true, "ebb" MALLOCS},
    {"promote_objects", CASE_PROMOTE_OBJECTS, false, "ebb"},
    {"planned", CASE_PLANNED, true, "floor ebb" MALLOCS},
};
const size_t contest_count = sizeof contests / sizeof contests[0];

bool contest_lists(const char *list, const char *name) {
    size_t length = strlen(name);

    while (list != NULL) {
        list += strspn(list, " ,");
        if (*list == '\0')
            return false;
        if (strcspn(list, " ,") == length && memcmp(list, name, length) == 0)
            return true;
        list += strcspn(list, " ,");
    }
    return true;
}

const struct contestant *contest_find_contestant(const char *name) {
    for (size_t i = 0; i < contestant_count; i++)
        if (strcmp(contestants[i].name, name) == 0)
            return &contestants[i];
    return NULL;
}

const struct contest *contest_find_case(const char *name) {
    for (size_t i = 0; i < contest_count; i++)
        if (strcmp(contests[i].name, name) == 0)
            return &contests[i];
    return NULL;
}

const struct peer *contest_find_peer(const char *name) {
    const struct {
        const char *name;
        const struct peer *peer;
    } peers[] = {{"floor", &peer_floor},   {"floor-in-memory", &peer_floor_in_memory},
                 {"ebb", &peer_ebb},       {"malloc", &peer_malloc},
                 {"apr", &peer_apr},       {"bumpalo", &peer_bumpalo},
                 {"pmr", &peer_pmr},       {"obstack", &peer_obstack},
                 {"talloc", &peer_talloc}};

    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++)
        if (strcmp(peers[i].name, name) == 0)
            return peers[i].peer;
    return NULL;
}
