// SPDX-License-Identifier: Apache-2.0
/* reserved_threads.c - threads open one array at once: what each was promised it can touch. */
#include "kit/test.h"

#include "base/os.h"
#include "base/reserved.h"

#include <pthread.h>

#define STEP ((size_t)2 << 20)
#define MANY 16u
#define STEPS 32u

static struct reserved common;
static pthread_barrier_t together;
static struct os_table real;
static bool is_open[STEPS]; /* plain: ThreadSanitizer sees if nothing orders it before the use */

static int note_and_open(void *addr, size_t bytes) {
    size_t from = (size_t)((char *)addr - common.at);
    for (size_t step = from / STEP; step < (from + bytes) / STEP; step++)
        is_open[step] = true;
    return real.open(addr, bytes);
}

static void *open_and_touch(void *numbered) {
    size_t number = (size_t)(uintptr_t)numbered;
    pthread_barrier_wait(&together);
    for (size_t bytes = 4096 * (number + 1); bytes <= common.bytes; bytes += 4096 * MANY) {
        if (!reserved_open(&common, bytes) || !is_open[(bytes - 1) / STEP])
            return NULL;
        common.at[bytes - 1] = 1;
    }
    return &common;
}

static void many_threads_open_at_once(void **state) {
    pthread_t threads[MANY];
    (void)state;
    assert_true(reserved_make(&common, STEPS * STEP));
    real = os;
    os.open = note_and_open;
    pthread_barrier_init(&together, NULL, MANY);
    for (uintptr_t i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_touch, (void *)i), 0);
    for (unsigned i = 0; i < MANY; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &common);
    }
    os = real;
    for (size_t at = 4095; at < common.bytes; at += 4096)
        assert_int_equal(common.at[at], 1);
    assert_int_equal(atomic_load(&common.open), common.bytes);
    pthread_barrier_destroy(&together);
    os.release(common.at, common.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_open_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
