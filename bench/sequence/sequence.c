// SPDX-License-Identifier: Apache-2.0
/*
 * sequence.c - packing and padding against what the bytes alone cost.
 *
 *     ebb-sequence KIND FEATURES ROUNDS LENGTH...      KIND: float32 or int64
 *
 * FEATURES 0: a row is one element. Exit codes: 0; 1 if something failed or the rows were lost; 2
 * if a word is bad.
 *
 * Rows `bench TAB case TAB peer TAB metric TAB value`, medians in ns. Each round does every task
 * once, so all of them see the same machine. The floor of packing is one memcpy() of the payload,
 * that of padding a memcpy() of the payload and a memset() of the padding, from and to memory
 * that is warm. ebb's result lies in a region that is opened before and closed after, outside of
 * the time.
 */
#include <ebb/ebb.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "said.h"

enum { SEQUENCES_MAX = 4096, ROUNDS_MAX = 10000, ELEMENTS_MAX = 1 << 24 };

struct scene {
    struct ebb_dtype dtype;
    int64_t features; /* 0: a row is one element */
    size_t count;
    int64_t lengths[SEQUENCES_MAX];
    struct ebb_tensor *list[SEQUENCES_MAX], *back[SEQUENCES_MAX];
    size_t payload_bytes, padded_bytes;
    char *source, *target;
    struct ebb_packed *packed;
    ebb_region inputs, step;
};

static void need(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "ebb-sequence: %s: %s\n", what, ebb_last_error_text());
    exit(1);
}

/* ---- tasks: one call is one round ---- */

static void pack_floor(struct scene *scene) {
    memcpy(scene->target, scene->source, scene->payload_bytes);
}

static void pack_ebb(struct scene *scene) {
    need(ebb_sequences_pack(scene->step, scene->list, scene->count, NULL) != NULL, "pack");
}

static void pad_floor(struct scene *scene) {
    memcpy(scene->target, scene->source, scene->payload_bytes);
    memset(scene->target + scene->payload_bytes, 0, scene->padded_bytes - scene->payload_bytes);
}

static void pad_with(struct scene *scene, bool batch_first) {
    struct ebb_pad_options options = {.size = sizeof options, .batch_first = batch_first};
    need(ebb_packed_pad(scene->step, scene->packed, &options) != NULL, "pad");
}

static void pad_ebb(struct scene *scene) {
    pad_with(scene, false);
}

static void pad_batch_first_ebb(struct scene *scene) {
    pad_with(scene, true);
}

static void pad_list_ebb(struct scene *scene) {
    need(ebb_sequences_pad(scene->step, scene->list, scene->count, NULL) != NULL, "pad a list");
}

static void unpack_ebb(struct scene *scene) {
    need(ebb_packed_unpack(scene->step, scene->packed, scene->back, scene->count) == 0, "unpack");
}

static void join_ebb(struct scene *scene) {
    need(ebb_sequences_join(scene->step, scene->list, scene->count) != NULL, "join");
}

static const struct task {
    const char *name, *peer;
    void (*run)(struct scene *scene);
} tasks[] = {
    {"pack", "floor", pack_floor},
    {"pack", "ebb", pack_ebb},
    {"pad", "floor", pad_floor},
    {"pad", "ebb", pad_ebb},
    {"pad_batch_first", "ebb", pad_batch_first_ebb},
    {"pad_list", "ebb", pad_list_ebb},
    {"unpack", "ebb", unpack_ebb},
    {"join", "ebb", join_ebb},
};

enum { TASKS = sizeof tasks / sizeof *tasks };

/* ---- measuring ---- */

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double run(const struct task *task, struct scene *scene) {
    scene->step = ebb_region_open(NULL);
    double before = now_ns();
    task->run(scene);
    double span = now_ns() - before;
    need(ebb_region_close(scene->step) == 0, "close");
    return span;
}

static double spans[TASKS][ROUNDS_MAX];

static void measure(struct scene *scene, size_t rounds) {
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < TASKS; i++) {
            run(&tasks[i], scene); /* warm: the task before used other memory */
            spans[i][round] = run(&tasks[i], scene);
        }
}

static void report(const char *kind, long long features, size_t rounds) {
    for (size_t i = 0; i < TASKS; i++) {
        qsort(spans[i], rounds, sizeof **spans, compare);
        printf("sequence\t%s_%s_%lld\t%s\tns\t%.6g\n", tasks[i].name, kind, features,
               tasks[i].peer, spans[i][rounds / 2]);
    }
}

/* ---- the scene ---- */

static void make_list(struct scene *scene) {
    size_t row = ebb_dtype_bytes(scene->dtype) * (size_t)(scene->features ? scene->features : 1);
    int64_t longest = 0;
    for (size_t i = 0; i < scene->count; i++) {
        int64_t shape[] = {scene->lengths[i], scene->features};
        struct ebb_tensor *tensor =
            ebb_tensor_new(scene->inputs, scene->dtype, scene->features ? 2 : 1, shape);
        need(tensor != NULL, "a sequence");
        memset(tensor->data, (int)(i + 1), ebb_tensor_bytes(tensor));
        scene->list[i] = tensor;
        scene->payload_bytes += ebb_tensor_bytes(tensor);
        if (shape[0] > longest)
            longest = shape[0];
    }
    scene->padded_bytes = (size_t)longest * scene->count * row;
}

static void make(struct scene *scene) {
    scene->inputs = ebb_region_open(NULL);
    make_list(scene);
    scene->source = ebb_region_alloc(scene->inputs, scene->payload_bytes, 64);
    scene->target = ebb_region_alloc(scene->inputs, scene->padded_bytes, 64);
    need(scene->source && scene->target, "memory of the floor");
    memset(scene->source, 1, scene->payload_bytes);
    memset(scene->target, 1, scene->padded_bytes);
    scene->packed = ebb_sequences_pack(scene->inputs, scene->list, scene->count, NULL);
    need(scene->packed != NULL, "packing");
}

/* ---- words ---- */

static struct ebb_dtype dtype_of(const char *kind) {
    bool integers = strcmp(kind, "int64") == 0;
    if (!integers && strcmp(kind, "float32") != 0) {
        fprintf(stderr, "ebb-sequence: KIND: neither float32 nor int64: %s\n", kind);
        exit(2);
    }
    return (struct ebb_dtype){integers ? EBB_INT : EBB_FLOAT, integers ? 64 : 32, 1};
}

static long number_of(const char *what, const char *text, long least, long most) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end || number < least || number > most) {
        fprintf(stderr, "ebb-sequence: %s: not a number from %ld to %ld: %s\n", what, least, most,
                text);
        exit(2);
    }
    return number;
}

int main(int argc, char **argv) {
    static struct scene scene;
    said_begin();
    if (argc < 5 || argc - 4 > SEQUENCES_MAX) {
        fprintf(stderr, "usage: ebb-sequence KIND FEATURES ROUNDS LENGTH..., up to %d of them\n",
                SEQUENCES_MAX);
        return 2;
    }
    scene.dtype = dtype_of(argv[1]);
    scene.features = number_of("FEATURES", argv[2], 0, ELEMENTS_MAX);
    size_t rounds = (size_t)number_of("ROUNDS", argv[3], 1, ROUNDS_MAX);
    for (int i = 4; i < argc; i++)
        scene.lengths[scene.count++] = number_of("LENGTH", argv[i], 1, ELEMENTS_MAX);
    make(&scene);
    measure(&scene, rounds);
    report(argv[1], (long long)scene.features, rounds);
    return said_end(ebb_region_close(scene.inputs) != 0, 1, "ebb-sequence");
}
