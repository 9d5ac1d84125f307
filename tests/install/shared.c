// SPDX-License-Identifier: Apache-2.0
// The library of both.c. It calls what the program calls, too, and what the program does not.
#include <ebb/ebb.h>
#include <stdio.h>

int library_uses_ebb(void);

static int complain(const char *about) {
    printf("%s: %s\n", about, ebb_last_error_text());
    return 1;
}

int library_uses_ebb(void) {
    ebb_region region = ebb_region_open(NULL);
    struct ebb_tensor *tensor =
        ebb_tensor_new(region, (struct ebb_dtype){EBB_FLOAT, 32, 1}, 1, (int64_t[]){1000});
    if (!tensor)
        return complain("tensor");
    if (ebb_tensor_fill(tensor, ebb_value_int(1)) != 0)
        return complain("fill");
    return ebb_region_close(region) == 0 ? 0 : complain("close");
}
