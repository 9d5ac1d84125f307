// SPDX-License-Identifier: Apache-2.0
//
// without.c - preloaded, it hides mimalloc: the tool and churn do not see that it is installed.

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int access(const char *path, int mode)
{
    if (!strstr(path, "/libmimalloc."))
        return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
    errno = ENOENT;
    return -1;
}
