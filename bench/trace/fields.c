// SPDX-License-Identifier: Apache-2.0
//
// fields.c - takes lines apart by an exact grammar.
//
// One invariant: what is accepted is " FIELD FIELD ..." and nothing else, so two lines that mean
// different things never scan alike. Refused: missing and superfluous fields, two spaces in a row,
// signs, hexadecimal, tabs, carriage returns, letters that are no origin, numbers above 2^64 - 1.

#include "fields.h"

#include <string.h>

#include "failure.h"

static const char origins[] = "TWDCPNSLO";

// Length of the field at `text`: up to the next space or the end.
static size_t field_length(const char *text)
{
    return strcspn(text, " ");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static enum trace_error_code scan_number(const char *text, size_t length, uint64_t *number)
{
    uint64_t value = 0;
    bool overflow = false;

    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i]))
            return TRACE_ERROR_FIELDS;
        overflow |= __builtin_mul_overflow(value, 10, &value);
        overflow |= __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value);
    }
    *number = value;
    return overflow ? TRACE_ERROR_NUMBER_TOO_LARGE : TRACE_OK;
}

static enum trace_error_code scan_word(const char *text, size_t length, char *word)
{
    if (length > TRACE_WORD_MAX)
        return TRACE_ERROR_FIELDS;
    for (size_t i = 0; i < length; i++)
        if (text[i] < '!' || text[i] > '~')
            return TRACE_ERROR_FIELDS;
    memcpy(word, text, length);
    word[length] = '\0';
    return TRACE_OK;
}

static enum trace_error_code scan_origin(const char *text, size_t length, char *origin)
{
    if (length != 1 || !strchr(origins, text[0]))
        return TRACE_ERROR_FIELDS;
    *origin = text[0];
    return TRACE_OK;
}

static bool fail_field(enum trace_error_code code, int ordinal, const char *text, uint64_t line,
                       struct trace_error *error)
{
    int length = (int)field_length(text);

    if (code == TRACE_ERROR_NUMBER_TOO_LARGE)
        return trace_fail(error, code, line, "field %d is above 2^64 - 1: '%.*s'", ordinal,
                          length > 40 ? 40 : length, text);
    return trace_fail(error, code, line, "field %d is malformed: '%.*s'", ordinal,
                      length > 40 ? 40 : length, text);
}

static enum trace_error_code scan_field(struct trace_fields *fields, char type, uint64_t **number,
                                        const char *text)
{
    size_t length = field_length(text);

    if (!length)
        return TRACE_ERROR_FIELDS;
    if (type == 'n')
        return scan_number(text, length, (*number)++);
    if (type == 'w')
        return scan_word(text, length, fields->word);
    return scan_origin(text, length, &fields->origin);
}

bool trace_fields_scan(struct trace_fields *fields, const char *text, const char *pattern,
                       uint64_t line, struct trace_error *error)
{
    uint64_t *number = fields->number;

    for (int i = 0; pattern[i]; i++) {
        enum trace_error_code code;

        if (*text != ' ')
            return trace_fail(error, TRACE_ERROR_FIELDS, line, "%d fields instead of %zu", i,
                              strlen(pattern));
        code = scan_field(fields, pattern[i], &number, ++text);
        if (code != TRACE_OK)
            return fail_field(code, i + 1, text, line, error);
        text += field_length(text);
    }
    if (*text)
        return trace_fail(error, TRACE_ERROR_FIELDS, line, "more than %zu fields",
                          strlen(pattern));
    return true;
}
