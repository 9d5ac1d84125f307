// SPDX-License-Identifier: Apache-2.0
/* chance_told.h - for chance.c: what the library tells of itself, and what sizes say of blocks. */
#ifndef MALLOC_CHANCE_TOLD_H
#define MALLOC_CHANCE_TOLD_H

#include "malloc/acts.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *socket_pattern; /* as in EBB_MALLOC_STATS, unix:PATH.%p; NULL: there is none */

static inline void name_socket(pid_t of, char *path, size_t room) {
    size_t before = strcspn(socket_pattern, "%") - strlen("unix:");
    snprintf(path, room, "%.*s%ld", (int)before, socket_pattern + strlen("unix:"), (long)of);
}

static inline void forget_socket(pid_t of) {
    char path[108];
    if (!socket_pattern)
        return;
    name_socket(of, path, sizeof path);
    (void)unlink(path);
}

/* The library's own thread makes the socket some time after the first scope. */
static inline int reach_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    EXPECT(socket_pattern);
    name_socket(getpid(), address.sun_path, sizeof address.sun_path);
    for (unsigned i = 0; i < 3000; i++) {
        int asking = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT(asking >= 0);
        if (connect(asking, (const struct sockaddr *)&address, sizeof address) == 0)
            return asking;
        close(asking);
        usleep(10000);
    }
    return -1;
}

/* The statistics of this process. */
static inline const char *ask(void) {
    static char text[1 << 15];
    size_t got = 0;
    int asking = reach_socket();
    EXPECT(asking >= 0 && shutdown(asking, SHUT_WR) == 0);
    for (ssize_t more; (more = read(asking, text + got, sizeof text - 1 - got)) > 0;)
        got += (size_t)more;
    text[got] = 0;
    close(asking);
    return text;
}

/* The number of that name; it is there. */
static inline uint64_t told(const char *text, const char *name) {
    size_t length = strlen(name);
    while ((text = strstr(text, name)) && text[length] != ' ')
        text += length;
    EXPECT(text);
    return strtoull(text + length, NULL, 10);
}

static bool is_told; /* and so all this is known of blocks */

/* The sizes of small blocks of scopes are odd multiples of 8, the general heap's are no such ones
 * but for 8. */
static inline bool is_in_a_tray(size_t usable) {
    return is_told && usable > 8 && usable % 16 == 8;
}

/* Four for each power of two are the general heap's. */
static inline bool is_a_large_one(size_t usable) {
    return is_told && usable > 8192 && usable % ((size_t)1 << (61 - __builtin_clzll(usable))) != 0;
}

/* It may be a scope's, and may be none's. Large ones of scopes have units of 64 bytes, or pages. */
static inline bool is_doubtful(size_t bytes, size_t usable) {
    return usable == 8 || (usable >= 8192 && !is_a_large_one(usable) &&
                           usable - bytes < (bytes < 32768 ? 64 : 4096));
}

struct sum {
    uint64_t blocks, bytes;
};

/* With its head. */
static inline struct sum what_it_takes(size_t usable) {
    return (struct sum){1, usable > 8192 ? usable : usable + 8};
}

static inline void add(struct sum *sum, struct sum more) {
    sum->blocks += more.blocks;
    sum->bytes += more.bytes;
}

#endif
