// SPDX-License-Identifier: Apache-2.0
/*
 * ebb.c - the command-line tool: what a program's memory does, and what ebb would make of it.
 *
 *     ebb record -- COMMAND ...    runs a command and writes a trace of its allocations
 *     ebb replay TRACE ...         replays traces with several allocators
 *     ebb report TRACE             what the program would gain
 *     ebb advise TRACE             where its regions could begin and end
 *     ebb budget TRACE ...         fails if a step costs more than it may
 *     ebb help COMMAND             what one of them takes, as COMMAND --help
 *
 * The manual page is ebb.1, the guide docs/recording.md.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <ebb/base.h>

#include "command.h"
#include "complain.h"
#include "launch.h"
#include "said.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
};

static const struct command commands[] = {
    {"record", command_record, "run a command and write a trace of its allocations"},
    {"replay", command_replay, "replay traces with several allocators"},
    {"report", command_report, "say what the recorded program would gain"},
    {"advise", command_advise, "say where regions could begin and end"},
    {"budget", command_budget, "fail if a step of a trace costs more than it may"},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static char name[32] = "ebb"; /* with the command, as getopt() is to say it */

static int help(FILE *to) {
    fputs("usage: ebb COMMAND [OPTION...] [ARGUMENT...]\n\n", to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].about);
    fputs("\n`ebb help COMMAND` and `man ebb` tell more; `ebb --version` prints the version.\n",
          to);
    return to == stdout ? 0 : EXIT_BAD_INPUT;
}

/* A standard stream that is closed must not be the number of a file that is opened later. What is
 * written there fails; a program that is executed has it closed, as it was. */
static void fill_streams(void) {
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY | O_CLOEXEC) != stream)
            return;
}

static int run(int argc, char **argv) {
    if (argc < 2)
        return help(stderr);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2))
        return help(stdout);
    if (strcmp(argv[1], "--version") == 0) {
        printf("ebb %d.%d.%d\n", EBB_VERSION_MAJOR, EBB_VERSION_MINOR, EBB_VERSION_PATCH);
        return 0;
    }
    if (strcmp(argv[1], "help") == 0) { /* `help COMMAND` is `COMMAND --help` */
        static char option[] = "--help";
        argv[1] = argv[2];
        argv[2] = option;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            snprintf(name, sizeof name, "ebb %s", commands[i].name);
            argv[1] = name;
            return commands[i].run(argc - 1, argv + 1);
        }
    complain("no command '%s' (ebb --help lists the %d there are)", argv[1], (int)COMMANDS);
    return EXIT_BAD_INPUT;
}

int main(int argc, char **argv) {
    complain_as(name);
    launch_spare_files();
    fill_streams();
    int code = run(argc, argv);
    return said_end(code, EXIT_FAILED, name);
}
