// SPDX-License-Identifier: Apache-2.0
/* os_file.h - the real calls on memory files, for the table in os.c only (see os.h), and what the
 * two files offer each other. */
#ifndef EBB_BASE_OS_FILE_H
#define EBB_BASE_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct os_file_identity; /* see os.h */

int os_file_make(const char *name, size_t bytes, int *fd);
int os_file_check(int fd, size_t *bytes);
int os_file_identify(int fd, struct os_file_identity *identity);
int os_file_copy(int fd, int *copy);
int os_file_again(int fd, int *other);
int os_file_read(int fd, void *to, size_t bytes);
int os_file_map(int fd, size_t offset, void *addr, size_t bytes);
int os_file_back(int fd, size_t offset, size_t bytes);
int os_file_hole(int fd, size_t offset, size_t *at);
int os_file_punch(int fd, size_t offset, size_t bytes);
int os_file_lock(int fd, size_t byte);
int os_file_is_locked(int fd, size_t byte, bool *locked);
void os_file_close(int fd);

/* What lies behind a mapping. */
struct os_backing {
    int flags; /* shared or private, anonymous or not */
    int fd;
    size_t offset;
};

/* os.c: maps open pages over whatever is there. They become resident when touched, even where the
 * process locks all that it maps. 0, or an errno code. */
int os_map_over(void *addr, size_t bytes, const struct os_backing *what);

/* os.c: the system can populate pages. */
bool os_populates(void);

#endif
