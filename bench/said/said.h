// SPDX-License-Identifier: Apache-2.0
/* said.h - what a program says on its standard output must have arrived, or it has failed. */
#ifndef EBB_BENCH_SAID_H
#define EBB_BENCH_SAID_H

/*
 * Where files have a limit (RLIMIT_FSIZE), a write that reaches it fails as on a full disk, instead
 * of ending the process by a signal. The first thing main() calls.
 */
void said_begin(void);

/*
 * The exit code of a program that would end with `code`: where not all of its output was written,
 * a message as "SPEAKER: ..." on standard error, and `failed` instead of 0. The last thing main()
 * calls.
 */
int said_end(int code, int failed, const char *speaker);

#endif
