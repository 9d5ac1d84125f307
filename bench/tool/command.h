// SPDX-License-Identifier: Apache-2.0
/* command.h - the commands of the tool. Each gets "ebb NAME" as argv[0] and returns an exit
 * code: 0; 1 something failed; 2 arguments or input are bad. Record: that of the command. Budget: 1
 * a step is over, 3 that is not known. */
#ifndef EBB_BENCH_TOOL_COMMAND_H
#define EBB_BENCH_TOOL_COMMAND_H

enum { EXIT_FAILED = 1, EXIT_BAD_INPUT = 2, EXIT_UNKNOWN = 3, EXIT_NOT_RECORDED = 125 };

int command_record(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_report(int argc, char **argv);
int command_advise(int argc, char **argv);
int command_budget(int argc, char **argv);

#endif
