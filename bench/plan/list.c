// SPDX-License-Identifier: Apache-2.0
/*
 * list.c - reads instances from files: `id,lower,upper,size` lines, or traces.
 *
 * The first line may be the head `id,lower,upper,size`. Whatever stands in a list's id is not
 * looked at, but it must be there. Lines end with LF or CR LF, the last one may end with the file,
 * and empty ones may follow it. Invariant: what is handed out, the planner does not refuse: it
 * has lives that are lives and sizes of at most half the address space. Refused: all else, by line.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "instance.h"
#include "source.h"

static const char *const names[] = {
    [INSTANCE_OK] = "INSTANCE_OK",
    [INSTANCE_ERROR_FILE] = "INSTANCE_ERROR_FILE",
    [INSTANCE_ERROR_TRACE] = "INSTANCE_ERROR_TRACE",
    [INSTANCE_ERROR_FIELDS] = "INSTANCE_ERROR_FIELDS",
    [INSTANCE_ERROR_NUMBER] = "INSTANCE_ERROR_NUMBER",
    [INSTANCE_ERROR_TOO_LARGE] = "INSTANCE_ERROR_TOO_LARGE",
    [INSTANCE_ERROR_LIFE] = "INSTANCE_ERROR_LIFE",
    [INSTANCE_ERROR_TOO_MANY] = "INSTANCE_ERROR_TOO_MANY",
    [INSTANCE_ERROR_EMPTY] = "INSTANCE_ERROR_EMPTY",
};

_Static_assert(sizeof names / sizeof *names == INSTANCE_ERROR_CODES, "every code has a name");

const char *instance_error_name(enum instance_error_code code) {
    return (unsigned)code < INSTANCE_ERROR_CODES ? names[code] : "INSTANCE_ERROR_?";
}

__attribute__((format(printf, 4, 5))) static bool
fail(struct instance_error *error, enum instance_error_code code, uint64_t line,
     const char *format, ...) {
    int used = line ? snprintf(error->text, sizeof error->text, "line %" PRIu64 ": ", line) : 0;
    va_list list;
    va_start(list, format);
    vsnprintf(error->text + used, sizeof error->text - (size_t)used, format, list);
    va_end(list);
    for (char *at = error->text; *at; at++) /* what it cites may hold a terminal's commands */
        if (*at < ' ' || *at > '~')
            *at = '?';
    error->code = code;
    error->line = line;
    return false;
}

/* What the reader of traces says already names its line. */
static bool fail_as(struct instance_error *error, enum instance_error_code code,
                    const struct trace_error *reason) {
    fail(error, code, 0, "%s", reason->text);
    error->line = reason->line;
    return false;
}

/* ---- one line */

struct field {
    const char *name;
    uint64_t largest;
};

enum { FIELDS = 4 };

static const struct field fields[FIELDS] = {
    {"id", 0}, {"lower", UINT32_MAX}, {"upper", UINT32_MAX}, {"size", INT64_MAX}};

static bool take_number(const char *text, size_t length, const struct field *field,
                        uint64_t *number, uint64_t line, struct instance_error *error) {
    *number = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return fail(error, INSTANCE_ERROR_NUMBER, line, "%s '%.*s' is no number", field->name,
                        (int)length, text);
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (unsigned)(text[i] - '0'), number) ||
            *number > field->largest)
            return fail(error, INSTANCE_ERROR_TOO_LARGE, line, "%s %.*s is above %" PRIu64,
                        field->name, (int)length, text, field->largest);
    }
    return true;
}

static bool take_line(struct packing_buffer *buffer, const char *text, uint64_t line,
                      struct instance_error *error) {
    uint64_t number[FIELDS] = {0};
    for (int i = 0; i < FIELDS; i++) {
        size_t length = strcspn(text, ",\r");
        if (length == 0)
            return fail(error, INSTANCE_ERROR_FIELDS, line, "%s is missing", fields[i].name);
        if (i > 0 && !take_number(text, length, &fields[i], &number[i], line, error))
            return false;
        text += length;
        text += i + 1 < FIELDS && *text == ',';
    }
    text += *text == '\r';
    if (*text)
        return fail(error, INSTANCE_ERROR_FIELDS, line, "'%.40s' behind the size", text);
    if (number[1] >= number[2])
        return fail(error, INSTANCE_ERROR_LIFE, line,
                    "lives from %" PRIu64 " to %" PRIu64, number[1], number[2]);
    *buffer = (struct packing_buffer){.lower = (uint32_t)number[1], .upper = (uint32_t)number[2],
                                      .align = 1, .bytes = number[3]};
    return true;
}

/* ---- a file */

static bool is_head(const char *text) {
    size_t length = strcspn(text, "\r");
    return length == strlen("id,lower,upper,size") &&
           strncmp(text, "id,lower,upper,size", length) == 0;
}

static bool is_empty(const char *text) {
    return !*text || strcmp(text, "\r") == 0;
}

static bool take_lines(struct instance *instance, struct trace_source *source, const char *text,
                       struct instance_error *error) {
    struct trace_error reason = {0};
    size_t capacity = 0;
    uint64_t empty = 0; /* the first line that is */
    if (text && is_head(text))
        text = trace_source_next(source, &reason);
    for (; text; text = trace_source_next(source, &reason)) {
        if (!empty && is_empty(text))
            empty = source->line;
        if (is_empty(text))
            continue;
        if (empty)
            return fail(error, INSTANCE_ERROR_FIELDS, empty, "empty, though others follow");
        if (instance->count == PACKING_COUNT_MAX)
            return fail(error, INSTANCE_ERROR_TOO_MANY, source->line, "more than %u buffers",
                        PACKING_COUNT_MAX);
        instance->buffers = buffer_reserve(instance->buffers, &capacity, instance->count,
                                           sizeof *instance->buffers);
        if (!take_line(&instance->buffers[instance->count], text, source->line, error))
            return false;
        instance->count++;
    }
    if (reason.code != TRACE_OK)
        return fail_as(error, INSTANCE_ERROR_FILE, &reason);
    return instance->count > 0 || fail(error, INSTANCE_ERROR_EMPTY, 0, "no buffers");
}

/* From its first line on; the file may be a pipe, which can be read only once. */
static bool read_trace(struct instances *instances, struct trace_source *source,
                       struct instance_error *error) {
    struct trace_error reason;
    trace_source_again(source);
    source->may_end_open = false;
    struct ebb_trace *trace = trace_read_source(source, &reason);
    if (!trace)
        return fail_as(error, INSTANCE_ERROR_TRACE, &reason);
    recorded_collect(instances, trace);
    trace_free(trace);
    return instances->count > 0 ||
           fail(error, INSTANCE_ERROR_EMPTY, 0, "no steady step that allocates");
}

static bool read_list(struct instances *instances, struct trace_source *source, const char *text,
                      struct instance_error *error) {
    instances->instance = buffer_resize(NULL, 1, sizeof *instances->instance);
    instances->instance[0] = (struct instance){0};
    instances->count = 1;
    return take_lines(&instances->instance[0], source, text, error);
}

bool instances_read(struct instances *instances, const char *path, struct instance_error *error) {
    struct trace_source *source = buffer_resize(NULL, 1, sizeof *source);
    struct trace_error reason = {0};
    *instances = (struct instances){0};
    *error = (struct instance_error){0};
    bool done = false;
    if (trace_source_open(source, path, &reason)) {
        source->may_end_open = true;
        const char *text = trace_source_next(source, &reason);
        if (reason.code != TRACE_OK)
            fail_as(error, INSTANCE_ERROR_FILE, &reason);
        else if (text && text[0] == '#')
            done = read_trace(instances, source, error);
        else
            done = read_list(instances, source, text, error);
        trace_source_close(source);
    } else {
        fail_as(error, INSTANCE_ERROR_FILE, &reason);
    }
    free(source);
    if (!done)
        instances_free(instances);
    return done;
}

void instances_free(struct instances *instances) {
    for (size_t i = 0; i < instances->count; i++)
        free(instances->instance[i].buffers);
    free(instances->instance);
    *instances = (struct instances){0};
}
