// SPDX-License-Identifier: Apache-2.0
/*
 * shared_file.c - the descriptors of a shared pool, and whether they still are.
 *
 * A descriptor is a number, and the program may close it: a daemon closes all that it knows nothing
 * of. What it opens next has the number then, and would get the pool's pages, lose its own to the
 * holes that trimming punches, and be closed with the pool. So a pool knows which file it is, and
 * each call that has to do with the descriptor looks first. These are rare, as mapping is; slots
 * that are mapped and have their pages need no descriptor.
 *
 * What nothing here can see: another descriptor of the same file in place of the pool's, and one
 * that another thread closes between the look and the call.
 */
#include "base/error.h"
#include "pool/shared.h"

int shared_take_file(struct shared *shared, int fd) {
    int reason = os.file_identify(fd, &shared->file);
    if (reason) {
        os.file_close(fd);
        return error_set(EBB_E_MEMORY, "descriptor %d tells nothing of its file, error %d", fd,
                         reason);
    }
    shared->fd = fd;
    return 0;
}

bool shared_has(const struct shared *shared, int fd) {
    struct os_file_identity now;
    return fd >= 0 && os.file_identify(fd, &now) == 0 && now.device == shared->file.device &&
           now.number == shared->file.number;
}

int shared_check_file(const struct shared *shared) {
    if (shared_has(shared, shared->fd))
        return 0;
    return error_set(EBB_E_SHARED, "descriptor %d is no longer that of pool '%s': it was closed, "
                     "not by the pool", shared->fd, shared->pool->name);
}

void shared_close(const struct shared *shared, int fd) {
    if (shared_has(shared, fd))
        os.file_close(fd);
}
