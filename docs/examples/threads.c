// SPDX-License-Identifier: Apache-2.0
/* threads.c - two workers, a region each, one pool; a region is handed over by joining. */
#include <ebb/ebb.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct worker {
    pthread_t thread;
    ebb_region region; /* the worker's until it is joined, then main's */
    char *result;
};

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static void *work(void *context) {
    struct worker *worker = context;
    for (int i = 0; i < 1000; i++) {
        char *scratch = ebb_region_alloc(worker->region, 5000, 64);
        need(scratch != NULL);
        memset(scratch, i, 5000);
        need(ebb_region_release(worker->region, scratch) == 0);
    }
    worker->result = ebb_region_alloc(worker->region, 6, 1);
    need(worker->result != NULL);
    memcpy(worker->result, "ready", 6);
    return NULL;
}

int main(void) {
    struct worker workers[2] = {0};
    for (int i = 0; i < 2; i++) {
        workers[i].region = ebb_region_open(EBB_REGION_OPTIONS(.name = "worker"));
        need(ebb_region_is_open(workers[i].region));
        need(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        need(pthread_join(workers[i].thread, NULL) == 0);
        need(strcmp(workers[i].result, "ready") == 0);
        need(ebb_region_close(workers[i].region) == 0);
    }
    return 0;
}
