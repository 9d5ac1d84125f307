// SPDX-License-Identifier: Apache-2.0
//
// program.c - see program.h.

#include "program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "trace_scratch.h"

char said[1 << 14];

int run_program(const char *variable, const char *arguments)
{
    char command[4096];
    FILE *pipe;
    int status;

    snprintf(command, sizeof command, "%s %s 2>&1", getenv(variable), arguments);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = '\0';
    status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int run_on_scratch(const char *variable, const char *options)
{
    char arguments[2048];

    snprintf(arguments, sizeof arguments, "%s %s", options, scratch_path());
    return run_program(variable, arguments);
}

void program_says(const char *variable, const char *arguments, int code, const char *words)
{
    int got = run_program(variable, arguments);

    if (got != code || !strstr(said, words))
        print_error("%s: exit code %d, said: %s\n", arguments, got, said);
    assert_int_equal(got, code);
    assert_non_null(strstr(said, words));
}
