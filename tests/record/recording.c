// SPDX-License-Identifier: Apache-2.0
//
// recording.c - see recording.h.

#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

char folder[] = "/tmp/test_record.XXXXXX";
char path[256]; // of the trace

// ---- to record

// What it says goes to FOLDER/said.
int ebb(const char *arguments)
{
    char command[8192];
    int status;

    snprintf(command, sizeof command, "exec %s %s >%s/said 2>&1", getenv("EBB_TOOL"), arguments,
             folder);
    status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

const char *said(void)
{
    static char text[1 << 14];
    char name[256];
    FILE *file;

    snprintf(name, sizeof name, "%s/said", folder);
    file = fopen(name, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

void assert_said(const char *part)
{
    if (!strstr(said(), part))
        print_error("not said: %s\nbut: %s\n", part, said());
    assert_non_null(strstr(said(), part));
}

int record(const char *options, const char *variable, const char *scenario)
{
    char arguments[2048];

    unlink(path);
    snprintf(arguments, sizeof arguments, "record %s -o %s -- %s %s", options, path,
             getenv(variable), scenario);
    return ebb(arguments);
}

struct ebb_trace *read_it(void)
{
    struct trace_error error;
    struct ebb_trace *trace = trace_read(path, &error);

    if (!trace)
        print_error("%s: %s\n%s\n", trace_error_name(error.code), error.text, said());
    assert_non_null(trace);
    return trace;
}

struct ebb_trace *recorded(const char *options, const char *scenario)
{
    int code = record(options, "EBB_CLIENT", scenario);

    if (code)
        print_error("%s\n", said());
    assert_int_equal(code, 0);
    return read_it();
}

void write_module(const char *name, const char *text)
{
    char file[512];
    FILE *out;

    snprintf(file, sizeof file, "%s/%s.py", folder, name);
    out = fopen(file, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

struct ebb_trace *recorded_script(const char *options, const char *text)
{
    char arguments[1024];

    write_module("script", text);
    snprintf(arguments, sizeof arguments, "record %s -o %s -- /usr/bin/python3 %s/script.py",
             options, path, folder);
    int code = ebb(arguments);
    if (code)
        print_error("%s: %s\n", options, said());
    assert_int_equal(code, 0);
    return read_it();
}

struct ebb_trace *recorded_ticks(const char *command, unsigned length)
{
    char arguments[2048];

    for (int doubled = 0;; doubled++, length *= 2) {
        struct ebb_trace *trace;

        snprintf(arguments, sizeof arguments, "record --every 10 -o %s -- %s %u", path, command,
                 length);
        assert_int_equal(ebb(arguments), 0);
        trace = read_it();
        if (count(trace, TRACE_BEGIN, 0) >= 5 || doubled == 3)
            return trace;
        trace_free(trace);
    }
}

// ---- to look

uint32_t count(const struct ebb_trace *trace, enum trace_op op, uint64_t value)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < trace->event_count; i++)
        found += trace->events[i].op == op && (value == 0 || trace->events[i].value == value);
    return found;
}

const char *header_line(const char *key)
{
    static char line[1100];
    gzFile file = gzopen(path, "rb");
    bool found = false;

    while (!found && gzgets(file, line, sizeof line) && line[0] == '#')
        found = strncmp(line, key, strlen(key)) == 0;
    gzclose(file);
    return found ? line : NULL;
}

int files_left(void)
{
    DIR *at = opendir(folder);
    int found = 0;

    for (struct dirent *entry; (entry = readdir(at));)
        found += strstr(entry->d_name, ".spool-") || strstr(entry->d_name, ".part");
    closedir(at);
    return found;
}

int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/out.trace.gz", folder);
    return 0;
}

int remove_folder(void **state)
{
    char command[256];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}
