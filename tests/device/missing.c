// SPDX-License-Identifier: Apache-2.0
/*
 * missing.c - no driver, one that is none, one that is too old, one without a device: each is said
 * by name. Every attempt is a forked child, for a driver that started stays.
 */
#include "kit/test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct missing {
    const char *library, *devices; /* of the environment */
    const char *say[3];
};

static bool says(const char *const *parts) {
    for (; *parts; parts++)
        if (!strstr(ebb_last_error_text(), *parts))
            return false;
    return true;
}

/* Exit code of a child: 0 if it is refused as it should be, twice, and a fence stays empty. */
static int refused(const struct missing *missing) {
    struct ebb_fence fence = {{0}}, empty = {{0}};
    setenv("EBB_CUDA_LIBRARY", missing->library, 1);
    setenv("FAKE_CUDA_DEVICES", missing->devices ? missing->devices : "2", 1);
    for (int i = 0; i < 2; i++) {
        int count = ebb_device_count();
        if (count != EBB_E_DEVICE || ebb_last_error() != EBB_E_DEVICE || !says(missing->say)) {
            fprintf(stderr, "%d: %s\n", count, ebb_last_error_text());
            return 1;
        }
        if (ebb_fence_record(&fence, 0, NULL) != EBB_E_DEVICE || !says(missing->say) ||
            memcmp(&fence, &empty, sizeof fence) != 0)
            return 2;
    }
    return ebb_fence_is_done(&fence) == 1 && ebb_fence_end(&fence) == 0 ? 0 : 3;
}

/* The second call, after cuInit(), fails once: threads of the driver may run by then. */
static int tried_again(const struct missing *missing) {
    setenv("EBB_CUDA_LIBRARY", missing->library, 1);
    setenv("FAKE_CUDA_FAIL", "2", 1);
    if (ebb_device_count() != EBB_E_DEVICE || !says(missing->say))
        return 1;
    if (!dlopen(missing->library, RTLD_NOW | RTLD_NOLOAD))
        return 2;
    return ebb_device_count() == 2 ? 0 : 3;
}

static void assert_in_a_child(int (*play)(const struct missing *),
                              const struct missing *missing) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(play(missing));
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void assert_refused_in_a_child(const struct missing *missing) {
    assert_in_a_child(refused, missing);
}

static void no_library_is_said(void **state) {
    assert_refused_in_a_child(&(struct missing){
        .library = "libcuda-nowhere.so.7", .say = {"no CUDA driver", "libcuda-nowhere.so.7"}});
}

static void a_file_that_is_no_library_is_said(void **state) {
    assert_refused_in_a_child(
        &(struct missing){.library = "/proc/self/status", .say = {"no CUDA driver", "status"}});
}

static void a_library_that_is_no_driver_is_said(void **state) {
    assert_refused_in_a_child(
        &(struct missing){.library = "libm.so.6", .say = {"libm.so.6", "cuInit"}});
}

static void a_missing_function_is_said(void **state) {
    assert_refused_in_a_child(
        &(struct missing){.library = getenv("FAKE_CUDA_OLD"), .say = {"cuEventQuery"}});
}

static void no_device_is_said(void **state) {
    assert_refused_in_a_child(&(struct missing){.library = getenv("FAKE_CUDA"), .devices = "0",
                                                .say = {"cuInit", "CUDA_ERROR_NO_DEVICE (100)"}});
}

static void a_driver_that_started_is_not_closed(void **state) {
    assert_in_a_child(tried_again,
                      &(struct missing){.library = getenv("FAKE_CUDA"),
                                        .say = {"cuDriverGetVersion", "CUDA_ERROR_UNKNOWN"}});
}

#define ASKS "--asks"

/* A library that others name would run with the rights of the program. */
static void a_setuid_program_opens_what_nobody_named(void **state) {
    int status;
    if (geteuid() != 0)
        skip(); /* only root can be another user */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("EBB_CUDA_LIBRARY", "libcuda-nowhere.so.7", 1);
        (void)!setresuid(65534, 0, 0); /* what is executed now is as a setuid program */
        execl("/proc/self/exe", "missing", ASKS, (char *)NULL);
        _exit(9);
    }
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], ASKS) == 0)
        return ebb_device_count() < 0 && strstr(ebb_last_error_text(), "nowhere") ? 1 : 0;
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_library_is_said),
        cmocka_unit_test(a_file_that_is_no_library_is_said),
        cmocka_unit_test(a_library_that_is_no_driver_is_said),
        cmocka_unit_test(a_missing_function_is_said),
        cmocka_unit_test(no_device_is_said),
        cmocka_unit_test(a_driver_that_started_is_not_closed),
        cmocka_unit_test(a_setuid_program_opens_what_nobody_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
