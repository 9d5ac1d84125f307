// SPDX-License-Identifier: Apache-2.0
/*
 * slow_socket.c - listen() and unlink() that take their time, so that processes which want the same
 * socket meet in the midst of it. To be preloaded, by test_view.py.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void let_others_start(void) {
    struct timespec while_they_do = {.tv_nsec = 300000000};
    nanosleep(&while_they_do, NULL);
}

int listen(int file, int count) {
    let_others_start();
    return (int)syscall(SYS_listen, file, count);
}

int unlink(const char *path) {
    let_others_start();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
