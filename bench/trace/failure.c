// SPDX-License-Identifier: Apache-2.0
//
// failure.c - names and texts of what can be wrong with a trace.
//
// One invariant: every code has a name here (the array is as long as the enum). The text of an
// error always begins with the line, where there is one, and says the numbers that were wrong; it
// does not say the path, which the caller knows. What it cites is plain: a file that is no trace is
// none of a terminal's commands either.

#include "failure.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const names[] = {
    [TRACE_OK] = "TRACE_OK",
    [TRACE_ERROR_OPEN] = "TRACE_ERROR_OPEN",
    [TRACE_ERROR_READ] = "TRACE_ERROR_READ",
    [TRACE_ERROR_MEMORY] = "TRACE_ERROR_MEMORY",
    [TRACE_ERROR_TRUNCATED] = "TRACE_ERROR_TRUNCATED",
    [TRACE_ERROR_CORRUPT] = "TRACE_ERROR_CORRUPT",
    [TRACE_ERROR_LINE_TOO_LONG] = "TRACE_ERROR_LINE_TOO_LONG",
    [TRACE_ERROR_NUL] = "TRACE_ERROR_NUL",
    [TRACE_ERROR_NO_NEWLINE] = "TRACE_ERROR_NO_NEWLINE",
    [TRACE_ERROR_MAGIC] = "TRACE_ERROR_MAGIC",
    [TRACE_ERROR_HEADER_LATE] = "TRACE_ERROR_HEADER_LATE",
    [TRACE_ERROR_HEADER_TWICE] = "TRACE_ERROR_HEADER_TWICE",
    [TRACE_ERROR_HEADER_FIELDS] = "TRACE_ERROR_HEADER_FIELDS",
    [TRACE_ERROR_UNKNOWN_LINE] = "TRACE_ERROR_UNKNOWN_LINE",
    [TRACE_ERROR_FIELDS] = "TRACE_ERROR_FIELDS",
    [TRACE_ERROR_NUMBER_TOO_LARGE] = "TRACE_ERROR_NUMBER_TOO_LARGE",
    [TRACE_ERROR_SIZE_TOO_LARGE] = "TRACE_ERROR_SIZE_TOO_LARGE",
    [TRACE_ERROR_ALIGNMENT_NOT_POWER] = "TRACE_ERROR_ALIGNMENT_NOT_POWER",
    [TRACE_ERROR_ALIGNMENT_TOO_LARGE] = "TRACE_ERROR_ALIGNMENT_TOO_LARGE",
    [TRACE_ERROR_PREEXISTING_LATE] = "TRACE_ERROR_PREEXISTING_LATE",
    [TRACE_ERROR_UNKNOWN_OBJECT] = "TRACE_ERROR_UNKNOWN_OBJECT",
    [TRACE_ERROR_DEAD_OBJECT] = "TRACE_ERROR_DEAD_OBJECT",
    [TRACE_ERROR_THREAD_TOO_LARGE] = "TRACE_ERROR_THREAD_TOO_LARGE",
    [TRACE_ERROR_NESTING_TOO_DEEP] = "TRACE_ERROR_NESTING_TOO_DEEP",
    [TRACE_ERROR_END_WITHOUT_BEGIN] = "TRACE_ERROR_END_WITHOUT_BEGIN",
    [TRACE_ERROR_KIND_MISMATCH] = "TRACE_ERROR_KIND_MISMATCH",
    [TRACE_ERROR_REGION_LEFT_OPEN] = "TRACE_ERROR_REGION_LEFT_OPEN",
    [TRACE_ERROR_TOO_MANY_NAMES] = "TRACE_ERROR_TOO_MANY_NAMES",
    [TRACE_ERROR_TOO_MANY_EVENTS] = "TRACE_ERROR_TOO_MANY_EVENTS",
    [TRACE_ERROR_COUNT_OBJECTS] = "TRACE_ERROR_COUNT_OBJECTS",
    [TRACE_ERROR_COUNT_PREEXISTING] = "TRACE_ERROR_COUNT_PREEXISTING",
    [TRACE_ERROR_COUNT_EVENTS] = "TRACE_ERROR_COUNT_EVENTS",
    [TRACE_ERROR_COUNT_ALLOCS] = "TRACE_ERROR_COUNT_ALLOCS",
    [TRACE_ERROR_COUNT_FREES] = "TRACE_ERROR_COUNT_FREES",
    [TRACE_ERROR_COUNT_REALLOCS] = "TRACE_ERROR_COUNT_REALLOCS",
    [TRACE_ERROR_COUNT_MAX_LIVE] = "TRACE_ERROR_COUNT_MAX_LIVE",
    [TRACE_ERROR_COUNT_LEFT] = "TRACE_ERROR_COUNT_LEFT",
};

_Static_assert(sizeof names / sizeof names[0] == TRACE_ERROR_CODES, "every code has a name");

const char *trace_error_name(enum trace_error_code code)
{
    return (unsigned)code < TRACE_ERROR_CODES ? names[code] : "TRACE_ERROR_?";
}

bool trace_fail(struct trace_error *error, enum trace_error_code code, uint64_t line,
                const char *format, ...)
{
    int used = line ? snprintf(error->text, sizeof error->text, "line %" PRIu64 ": ", line) : 0;
    va_list list;

    error->code = code;
    error->line = line;
    va_start(list, format);
    vsnprintf(error->text + used, sizeof error->text - (size_t)used, format, list);
    va_end(list);
    for (char *at = error->text; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    return false;
}
