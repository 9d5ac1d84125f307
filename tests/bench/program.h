// SPDX-License-Identifier: Apache-2.0
//
// program.h - runs a program of the benchmarks and keeps what it said.

#ifndef EBB_TESTS_BENCH_PROGRAM_H
#define EBB_TESTS_BENCH_PROGRAM_H

extern char said[1 << 14]; // by the latest run, both streams; cut

// Runs the program that an environment variable names. Its exit code; any other end fails the test.
int run_program(const char *variable, const char *arguments);

// The same, with the scratch file as last argument.
int run_on_scratch(const char *variable, const char *options);

// Runs it and demands that exit code, and that it said these words.
void program_says(const char *variable, const char *arguments, int code, const char *words);

#endif
