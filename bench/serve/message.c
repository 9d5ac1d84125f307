// SPDX-License-Identifier: Apache-2.0
/* message.c - see message.h. */
#include "message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LENGTH "\r\ncontent-length:"

bool message_head(const char *bytes, size_t filled, size_t *body_at, size_t *body_bytes) {
    const char *end = memmem(bytes, filled, "\r\n\r\n", 4);
    if (!end)
        return false;
    *body_at = (size_t)(end - bytes) + 4;
    *body_bytes = 0;
    for (const char *at = bytes; at + strlen(LENGTH) < end; at++)
        if (strncasecmp(at, LENGTH, strlen(LENGTH)) == 0)
            *body_bytes = strtoul(at + strlen(LENGTH), NULL, 10);
    return true;
}

bool message_send(int socket, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size > 0) {
        ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}
