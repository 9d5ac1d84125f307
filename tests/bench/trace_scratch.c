// SPDX-License-Identifier: Apache-2.0
//
// trace_scratch.c - a scratch file, and what trace_read() is expected to make of it.
//
// One invariant: a failed expectation prints what the reader said before the test stops.

#include "trace_scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char scratch[] = "/tmp/test_trace.XXXXXX";

const char *scratch_path(void)
{
    return scratch;
}

int make_scratch(void **state)
{
    int fd = mkstemp(scratch);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

int remove_scratch(void **state)
{
    (void)state;
    return unlink(scratch);
}

void write_bytes(const void *bytes, size_t count)
{
    FILE *file = fopen(scratch, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

size_t write_gzip(const char *text)
{
    gzFile file = gzopen(scratch, "wb9");
    FILE *plain;
    long bytes;

    assert_non_null(file);
    assert_int_equal(gzputs(file, text), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
    plain = fopen(scratch, "rb");
    assert_int_equal(fseek(plain, 0, SEEK_END), 0);
    bytes = ftell(plain);
    fclose(plain);
    return (size_t)bytes;
}

void expect_refused(enum trace_error_code code, uint64_t line, const char *part)
{
    struct trace_error error;
    struct ebb_trace *trace = trace_read(scratch, &error);

    if (trace || error.code != code || error.line != line || !strstr(error.text, part))
        print_error("got %s at line %" PRIu64 ": %s\n", trace_error_name(error.code), error.line,
                    error.text);
    assert_null(trace);
    assert_string_equal(trace_error_name(error.code), trace_error_name(code));
    assert_int_equal(error.line, line);
    assert_non_null(strstr(error.text, part));
}

struct ebb_trace *expect_read(void)
{
    struct trace_error error;
    struct ebb_trace *trace = trace_read(scratch, &error);

    if (!trace)
        print_error("%s: %s\n", trace_error_name(error.code), error.text);
    assert_non_null(trace);
    assert_int_equal(error.code, TRACE_OK);
    return trace;
}

void refuse_text(const char *text, enum trace_error_code code, uint64_t line, const char *part)
{
    write_bytes(text, strlen(text));
    expect_refused(code, line, part);
}

struct ebb_trace *read_text(const char *text)
{
    write_bytes(text, strlen(text));
    return expect_read();
}

void accept_text(const char *text)
{
    trace_free(read_text(text));
}

void add(struct text *text, const char *format, ...)
{
    va_list list;
    size_t room = sizeof text->bytes - text->used;
    int got;

    va_start(list, format);
    got = vsnprintf(text->bytes + text->used, room, format, list);
    va_end(list);
    assert_true(got >= 0 && (size_t)got < room);
    text->used += (size_t)got;
}

struct text *new_text(void)
{
    static struct text text;

    text.used = 0;
    add(&text, MAGIC);
    return &text;
}
