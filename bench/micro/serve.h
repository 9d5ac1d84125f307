// SPDX-License-Identifier: Apache-2.0
/*
 * serve.h - the child's side of the wire: one peer, one case, a round whenever asked.
 *
 * On the child's standard output, lines of text:
 *
 *     ready PATH           once; PATH is the library that provides malloc in this process
 *     absent               once, instead: this peer was not built in
 *     figure NAME VALUE    any number per round
 *     end                  after each round
 *
 * On its standard input: one byte asks for a round, the end of the input ends the child.
 */
#ifndef MICRO_SERVE_H
#define MICRO_SERVE_H

#include <stdbool.h>

/* Runs the child's loop; returns the process's exit status. */
int serve(const char *case_name, const char *peer_name, bool quick);

#endif
