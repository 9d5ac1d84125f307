// SPDX-License-Identifier: Apache-2.0
//
// source.c - cuts a file, plain or gzip, into lines.
//
// One invariant: a line that is handed out has at most TRACE_LINE_MAX bytes, none of them NUL, and
// stood before a newline, or at the file's end if that may be; so the files above this one may
// treat it as a C string. Refused: longer lines, NUL bytes, a last line without newline unless it
// may lack one, and what bytes.c refuses.

#include "source.h"

#include <inttypes.h>
#include <string.h>

#include "failure.h"

bool trace_source_open(struct trace_source *source, const char *path, struct trace_error *error)
{
    source->begin = source->end = 0;
    source->line = 0;
    source->may_end_open = false;
    return trace_bytes_open(&source->bytes, path, error);
}

void trace_source_close(struct trace_source *source)
{
    trace_bytes_close(&source->bytes);
}

// Moves what is left to the front and reads behind it. False on errors; at the end of the file
// nothing is added.
static bool refill(struct trace_source *source, struct trace_error *error)
{
    size_t left = source->end - source->begin, got = 0;

    memmove(source->buffer, source->buffer + source->begin, left);
    source->begin = 0;
    source->end = left;
    if (!trace_bytes_read(&source->bytes, source->buffer + left,
                          (unsigned)(sizeof source->buffer - left), &got, source->line + 1, error))
        return false;
    source->end += got;
    return true;
}

// The newline that ends the line at `begin`; NULL at the end of the file and on errors.
static char *find_newline(struct trace_source *source, struct trace_error *error)
{
    for (;;) {
        size_t left = source->end - source->begin;
        char *newline = left ? memchr(source->buffer + source->begin, '\n', left) : NULL;

        if (newline || left > TRACE_LINE_MAX)
            return newline;
        if (!refill(source, error) || source->end == left)
            return NULL;
    }
}

static bool check_line(const char *line, size_t bytes, uint64_t number, struct trace_error *error)
{
    const char *nul;

    if (bytes > TRACE_LINE_MAX)
        return trace_fail(error, TRACE_ERROR_LINE_TOO_LONG, number,
                          "longer than %d bytes", TRACE_LINE_MAX);
    nul = memchr(line, 0, bytes);
    if (nul)
        return trace_fail(error, TRACE_ERROR_NUL, number, "NUL byte at column %td",
                          nul - line + 1);
    return true;
}

// What remains when no newline comes any more: nothing, too much, or a line that does not end. It
// lies at the front of the buffer, since nothing could be read behind it.
static const char *end_of_lines(struct trace_source *source, struct trace_error *error)
{
    size_t left = source->end - source->begin;
    char *line = source->buffer + source->begin;

    if (error->code != TRACE_OK || !left || !check_line(line, left, source->line + 1, error))
        return NULL;
    if (!source->may_end_open) {
        trace_fail(error, TRACE_ERROR_NO_NEWLINE, source->line + 1,
                   "the last line (%zu bytes) does not end with a newline", left);
        return NULL;
    }
    line[left] = '\0';
    source->last = source->begin;
    source->begin = source->end;
    source->line++;
    return line;
}

const char *trace_source_next(struct trace_source *source, struct trace_error *error)
{
    char *newline = find_newline(source, error);
    char *line = source->buffer + source->begin;

    if (!newline)
        return end_of_lines(source, error);
    if (!check_line(line, (size_t)(newline - line), source->line + 1, error))
        return NULL;
    *newline = '\0';
    source->last = source->begin;
    source->begin += (size_t)(newline - line) + 1;
    source->line++;
    return line;
}

void trace_source_again(struct trace_source *source)
{
    char *end = source->buffer + source->begin - 1; // where its newline was, if it had one

    if (!*end)
        *end = '\n';
    source->begin = source->last;
    source->line--;
}
