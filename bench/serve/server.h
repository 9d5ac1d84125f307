// SPDX-License-Identifier: Apache-2.0
/*
 * server.h - an HTTP server on loopback, one thread for each connection, around a function.
 *
 * With SERVE_SCOPES=1 in the environment, and libebb-malloc in the process, each request is a step
 * of a site whose steps are scopes: its body, the inference and the answer are allocated in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message.h"

#ifdef __cplusplus
extern "C" {
#endif

/* False: it failed, and has said why. Called by any number of threads. */
typedef bool server_infer(const int32_t *tokens, size_t count, float answer[ANSWER_FLOATS]);

/* Listens, prints `port N`, and serves until standard input ends. The program's exit code. */
int server_run(server_infer *infer);

#ifdef __cplusplus
}
#endif
