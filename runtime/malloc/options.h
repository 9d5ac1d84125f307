// SPDX-License-Identifier: Apache-2.0
/*
 * options.h - what the environment asks of libebb-malloc.
 *
 *     EBB_MALLOC=KEY:VALUE,...
 *         idle_ms:N        memory that nobody used for so long goes back; 0: it stays
 *         turns:wait       a turn of a loop that waits for events is a scope, see turn.h
 *         turns:receive    the same of one that waits for what it receives
 *     EBB_MALLOC_STATS=FILE
 *         statistics are written there, see view.h; %p stands for the number of the process
 *     EBB_MALLOC_STATS=unix:PATH
 *         a socket that tells them to who connects
 *
 * A value that makes no sense is named in one line on the standard error, and has no effect. A
 * program that has more rights than who executes it is asked nothing.
 */
#ifndef EBB_MALLOC_OPTIONS_H
#define EBB_MALLOC_OPTIONS_H

#include "base/hidden.h"

#include <stdbool.h>

#define OPTIONS_PATH_BYTES 108 /* of a socket's path, the shorter of both */

enum turns { TURNS_NONE, TURNS_WAIT, TURNS_RECEIVE };

struct options {
    enum turns turns;
    unsigned idle_ms;
    char stats[OPTIONS_PATH_BYTES]; /* of the file or socket; "": none */
    bool is_socket;
    bool is_per_process; /* the path had %p in it */
};

extern HIDDEN struct options options;

/* Reads the environment. Once, before any other thread. */
void options_read(void);

/* This is the child of a fork: the file or socket is the parent's, unless the path has %p in it. */
void options_for_child(void);

/* A line on the standard error, behind `ebb-malloc: `. What a line cannot show (name.h) is `?`, and
 * what is too long is cut. Also of what the system says in a locale of no UTF-8. */
void options_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
