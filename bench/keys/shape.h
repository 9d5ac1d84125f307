// SPDX-License-Identifier: Apache-2.0
/*
 * shape.h - steps of loops whose blocks have keys, made up: what comes and goes in each of them.
 */
#ifndef EBB_BENCH_KEYS_SHAPE_H
#define EBB_BENCH_KEYS_SHAPE_H

#include <stddef.h>
#include <stdint.h>

struct event {
    uint32_t block; /* counted from 0, in the order in which they come */
    uint32_t key;   /* it comes, from this place of the program; 0: it goes */
    size_t bytes;
};

/* One step. All zero: none yet. */
struct script {
    struct event *events;
    size_t count, limit;
    uint32_t blocks;
};

struct shape {
    const char *name;
    void (*draw)(struct script *script, uint32_t *random);
};

extern const struct shape shapes[];
extern const size_t shape_count;

/* Another step of the shape in place of the last one; ends the process where memory runs out. */
void script_draw(struct script *script, const struct shape *shape, uint32_t *random);

void script_free(struct script *script);

#endif
