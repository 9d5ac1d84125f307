// SPDX-License-Identifier: Apache-2.0
/*
 * signals.c - signals that come again and again do not keep a slot from growing.
 *
 * syscall() is this program's: it allocates pages of a file as older versions of Linux do, which
 * give up when a signal comes and take back what the call has got. A signal comes whenever a call
 * asks for more than so many bytes.
 */
#include "handoff/duo.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOT_BYTES (64 * MIB)
#define CALLS_MOST 20000 /* then it goes on for ever */

static long at_most = -1; /* bytes; negative: no signal comes */
static unsigned interrupted;

typedef long system_call(long number, ...);

static system_call *real_call(void) {
    static system_call *call;
    void *found = call ? NULL : dlsym(RTLD_NEXT, "syscall");
    if (found)
        memcpy(&call, &found, sizeof call);
    return call;
}

long syscall(long number, ...) {
    long with[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        with[i] = va_arg(arguments, long);
    va_end(arguments);
    bool allocates = number == SYS_fallocate && !(with[1] & FALLOC_FL_PUNCH_HOLE);
    if (!allocates || at_most < 0 || with[3] <= at_most)
        return real_call()(number, with[0], with[1], with[2], with[3], with[4], with[5]);
    errno = ++interrupted < CALLS_MOST ? EINTR : EIO;
    return -1;
}

static size_t file_bytes(ebb_pool *pool) {
    struct stat stat;
    assert_int_equal(fstat(ebb_pool_descriptor(pool), &stat), 0);
    return (size_t)stat.st_blocks * 512;
}

static void a_slot_grows_between_signals(void **state) {
    static const size_t bytes[] = {3 * MIB, 100000, PAGE};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        ebb_pool *pool = shared_pool(1, SLOT_BYTES);
        size_t before = file_bytes(pool);
        interrupted = 0;
        at_most = (long)bytes[i];
        ebb_region region = OPEN(.pool = pool);
        void *block = ebb_region_alloc(region, 20 * MIB, 64);
        at_most = -1;
        if (!block)
            print_error("%s\n", ebb_last_error_text());
        assert_non_null(block);
        assert_true(interrupted > 0);
        assert_in_range(file_bytes(pool), before + 20 * MIB, before + SLOT_BYTES);
        pattern_fill(block, 20 * MIB, 1);
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_grows_between_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
