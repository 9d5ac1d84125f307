// SPDX-License-Identifier: Apache-2.0
/* said.h - what a program says on its standard output must have arrived, or it has failed. */
#ifndef EBB_BENCH_SAID_H
#define EBB_BENCH_SAID_H

/*
 * The exit code of a program that would end with `code`: where not all of its output was written,
 * a message as "SPEAKER: ..." on standard error, and `failed` instead of 0. The last thing main()
 * calls.
 */
int said_end(int code, int failed, const char *speaker);

#endif
