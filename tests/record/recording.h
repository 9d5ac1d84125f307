// SPDX-License-Identifier: Apache-2.0
//
// recording.h - runs ebb record on a client and looks at what it wrote: for the tests beside it.
//
// Every trace is read with the reader of bench/trace, which refuses one whose counts, markers or
// frees are wrong. There is one trace at a time, in a folder that the group fixtures make and
// remove.

#ifndef EBB_TESTS_RECORD_RECORDING_H
#define EBB_TESTS_RECORD_RECORDING_H

#include <stdint.h>

#include "trace.h"

int make_folder(void **state);
int remove_folder(void **state);

extern char folder[];   // where it all happens
extern char path[256];  // of the trace

// The tool's exit code, from EBB_TOOL; what it says can be asked for afterwards.
int ebb(const char *arguments);
const char *said(void);
void assert_said(const char *part);

// Records a scenario of the client that an environment variable names. The exit code.
int record(const char *options, const char *variable, const char *scenario);

// The trace; recorded() records it first, with EBB_CLIENT, which must end with 0.
struct ebb_trace *read_it(void);
struct ebb_trace *recorded(const char *options, const char *scenario);

// Writes a module of Python into the folder; records a script that has those, and must end well.
void write_module(const char *name, const char *text);
struct ebb_trace *recorded_script(const char *options, const char *text);

// The trace of a command with a region every 10 ms. Its last word is how long it works, which is
// doubled, three times at most, until there are five: a slow machine may come to none at first.
struct ebb_trace *recorded_ticks(const char *command, unsigned length);

// Events of this sort; `value` 0: of any value.
uint32_t count(const struct ebb_trace *trace, enum trace_op op, uint64_t value);

// A line of the header that a reader may skip; NULL if it is not there.
const char *header_line(const char *key);

// Spools, and traces that are not complete, in the folder.
int files_left(void);

#endif
