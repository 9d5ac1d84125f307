// SPDX-License-Identifier: Apache-2.0
/* version.c - the library, the header and the build agree on the version. */
#include "kit/test.h"

#include <stdio.h>

static void library_has_the_version_of_the_header(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", EBB_VERSION_MAJOR, EBB_VERSION_MINOR,
             EBB_VERSION_PATCH);
    assert_string_equal(ebb_version(), text);
}

static void library_has_the_version_of_the_build(void **state) {
    (void)state;
    assert_string_equal(ebb_version(), BUILD_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_has_the_version_of_the_header),
        cmocka_unit_test(library_has_the_version_of_the_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
