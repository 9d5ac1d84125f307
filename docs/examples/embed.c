// SPDX-License-Identifier: Apache-2.0
/* embed.c - look-ups in a table that lives long: results land where the call says, not there. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, WIDTH = 16, TOKENS = 8 };

static void need(bool holds) {
    if (!holds)
        exit(1);
}

/* Rows of the table, in `region`, whatever region the table is in. */
static struct ebb_tensor *look_up(ebb_region region, const struct ebb_tensor *table,
                                  const struct ebb_tensor *tokens) {
    int64_t shape[] = {tokens->shape[0], table->shape[1]};
    struct ebb_tensor *result = ebb_tensor_new(region, table->dtype, 2, shape);
    need(result != NULL);
    const int64_t *token = tokens->data;
    for (int64_t i = 0; i < shape[0]; i++)
        memcpy((float *)result->data + i * WIDTH, (float *)table->data + token[i] * WIDTH,
               WIDTH * sizeof(float));
    return result;
}

static uint64_t live(ebb_region region) {
    struct ebb_object_counts counts;
    need(ebb_region_read_objects(region, EBB_OBJECT_ALL, &counts) == 0);
    return counts.live;
}

int main(void) {
    struct ebb_dtype f32 = {EBB_FLOAT, 32, 1}, i64 = {EBB_INT, 64, 1};
    ebb_region model = ebb_region_open(EBB_REGION_OPTIONS(.name = "model"));
    struct ebb_tensor *table = ebb_tensor_new(model, f32, 2, (const int64_t[]){ROWS, WIDTH});
    need(table != NULL);
    for (int i = 0; i < ROWS * WIDTH; i++)
        ((float *)table->data)[i] = (float)i;
    for (int i = 0; i < 1000; i++) {
        ebb_region call = ebb_region_open(EBB_REGION_OPTIONS(.name = "call", .parent = model));
        struct ebb_tensor *tokens = ebb_tensor_new(call, i64, 1, (const int64_t[]){TOKENS});
        need(tokens != NULL);
        for (int64_t k = 0; k < TOKENS; k++)
            ((int64_t *)tokens->data)[k] = (i + k) % ROWS;
        struct ebb_tensor *rows = look_up(call, table, tokens);
        need(((float *)rows->data)[WIDTH] == (float)((i + 1) % ROWS * WIDTH));
        need(live(call) == 2 && live(model) == 1); /* the model never has more than its table */
        need(ebb_region_close(call) == 0);
    }
    return ebb_region_close(model);
}
