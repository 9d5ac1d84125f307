// SPDX-License-Identifier: Apache-2.0
/*
 * message.h - HTTP/1.1 messages with a body, as little of them as both ends of this benchmark need.
 *
 * A request's body is tokens, int32; the answer's is ANSWER_FLOATS numbers, float32. Every message
 * says its Content-Length; connections are kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HEAD_MOST 4096
#define ANSWER_FLOATS 16

/*
 * Looks at the first `filled` bytes of a message. False: its head is not whole yet. Otherwise
 * where the body begins and how many bytes it has.
 */
bool message_head(const char *bytes, size_t filled, size_t *body_at, size_t *body_bytes);

/* Sends it all; false: the other end has gone. */
bool message_send(int socket, const void *bytes, size_t size);
