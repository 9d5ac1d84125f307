// SPDX-License-Identifier: Apache-2.0
/* tracer.h - runs a program and counts its system calls between markers. */
#ifndef EBB_BENCH_TRACER_H
#define EBB_BENCH_TRACER_H

#include "ledger.h"

/*
 * Runs `arguments` as a traced child and fills `calls` with the number of system calls of each
 * step, markers excluded. Returns the child's exit code, 128 + signal if a signal ended it, or
 * -1 if this system does not let it trace (nothing has run then).
 */
int tracer_run(char *const arguments[], struct ledger *calls);

#endif
