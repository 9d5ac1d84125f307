// SPDX-License-Identifier: Apache-2.0
/* exchange.c - tensors by DLPack: what is exported outlives its region, what is imported is given
 * back. Consumer and producer are played by this program. */
#include <ebb/ebb.h>

#include <dlpack/dlpack.h>
#include <stdlib.h>

static const struct ebb_dtype float32 = {EBB_FLOAT, 32, 1};

static void need(bool holds) {
    if (!holds)
        exit(1);
}

/* What a step hands to another library, as a Python binding would by a capsule. */
static DLManagedTensor *answer(ebb_region run) {
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = run));
    struct ebb_tensor *logits = ebb_tensor_new(step, float32, 2, (int64_t[]){64, 1000});
    need(logits != NULL);
    ((float *)logits->data)[63999] = 42;
    DLManagedTensor *handed_on = ebb_tensor_export(logits, EBB_EXCHANGE_IF_NEEDED);
    need(handed_on != NULL && ebb_region_close(step) == 0);
    return handed_on;
}

static float weights[64];
static int given_back;

static void take_back(DLManagedTensor *self) {
    (void)self;
    given_back++;
}

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    struct ebb_pool_stats stats = {.size = sizeof stats};

    /* The step has ended; the consumer reads on, and gives back when it likes. */
    DLManagedTensor *logits = answer(run);
    need(ebb_pool_read_stats(ebb_pool_default(), &stats) == 0 && stats.held >= 64 * 1000 * 4);
    need(((float *)logits->dl_tensor.data)[63999] == 42);
    logits->deleter(logits);
    need(ebb_pool_read_stats(ebb_pool_default(), &stats) == 0 && stats.held == 0);

    /* A producer's bytes become a tensor; nothing is copied, and it has them back once. */
    int64_t shape[] = {8, 8};
    DLManagedTensor produced = {
        .dl_tensor = {.data = weights, .device = {kDLCPU, 0}, .ndim = 2,
                      .dtype = {kDLFloat, 32, 1}, .shape = shape},
        .deleter = take_back};
    struct ebb_tensor *imported = ebb_tensor_import(run, &produced, EBB_EXCHANGE_SHARE);
    need(imported != NULL && imported->data == weights && given_back == 0);
    need(ebb_region_close(run) == 0 && given_back == 1);
    return 0;
}
