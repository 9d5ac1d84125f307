// SPDX-License-Identifier: Apache-2.0
//
// header.c - understands the '#' lines of a trace and holds them to what they claim.
//
// One invariant: a claim is remembered and compared, never believed; no memory is sized by it. The
// format lets a reader skip every line but the first, so a line may be missing, and a line that is
// unknown is only kept; but one that is there must be well formed, appear once, and be right.

#include "header.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "failure.h"
#include "fields.h"

// A header line: its key, its fields (as for trace_fields_scan()) and where they go. Counts go to
// `offset` of trace_totals, the bytes of an "nn" line to the member after it.
struct row {
    const char *key;
    const char *pattern;
    size_t offset;
    enum trace_error_code wrong; // TRACE_OK: not a count
};

#define TOTAL(member) offsetof(struct trace_totals, member)

static const struct row rows[] = {
    {"#name", "w", 0, TRACE_OK},
    {"#view", "w", 0, TRACE_OK},
    {"#warmup", "n", 0, TRACE_OK},
    {"#untouched", "nn", 0, TRACE_OK},
    {"#objects", "n", TOTAL(objects), TRACE_ERROR_COUNT_OBJECTS},
    {"#preexisting", "nn", TOTAL(preexisting), TRACE_ERROR_COUNT_PREEXISTING},
    {"#events", "n", TOTAL(events), TRACE_ERROR_COUNT_EVENTS},
    {"#allocs", "n", TOTAL(allocs), TRACE_ERROR_COUNT_ALLOCS},
    {"#frees", "n", TOTAL(frees), TRACE_ERROR_COUNT_FREES},
    {"#reallocs", "n", TOTAL(reallocs), TRACE_ERROR_COUNT_REALLOCS},
    {"#max-live", "nn", TOTAL(max_live), TRACE_ERROR_COUNT_MAX_LIVE},
    {"#left", "nn", TOTAL(left), TRACE_ERROR_COUNT_LEFT},
};

enum { ROW_NAME, ROW_VIEW, ROW_WARMUP, ROW_UNTOUCHED, ROWS = sizeof rows / sizeof rows[0] };

_Static_assert(TOTAL(preexisting_bytes) == TOTAL(preexisting) + sizeof(uint64_t), "pair");
_Static_assert(TOTAL(max_live_bytes) == TOTAL(max_live) + sizeof(uint64_t), "pair");
_Static_assert(TOTAL(left_bytes) == TOTAL(left) + sizeof(uint64_t), "pair");

static int find_row(const char *text)
{
    size_t length = strcspn(text, " ");

    for (int i = 0; i < ROWS; i++)
        if (strlen(rows[i].key) == length && !memcmp(rows[i].key, text, length))
            return i;
    return -1;
}

static bool take_view(struct trace_header *header, const char *word, uint64_t line,
                      struct trace_error *error)
{
    if (!strcmp(word, "full"))
        header->view = TRACE_VIEW_FULL;
    else if (!strcmp(word, "tensor"))
        header->view = TRACE_VIEW_TENSOR;
    else
        return trace_fail(error, TRACE_ERROR_HEADER_FIELDS, line,
                          "#view is 'full' or 'tensor', not '%s'", word);
    return true;
}

static bool take_warmup(struct trace_header *header, uint64_t warmup, uint64_t line,
                        struct trace_error *error)
{
    header->warmup = warmup;
    if (warmup > UINT32_MAX)
        return trace_fail(error, TRACE_ERROR_HEADER_FIELDS, line,
                          "#warmup %" PRIu64 " is above 2^32 - 1", warmup);
    return true;
}

static bool take_row(struct trace_header *header, int row, const struct trace_fields *fields,
                     uint64_t line, struct trace_error *error)
{
    if (row == ROW_NAME) {
        memcpy(header->name, fields->word, sizeof header->name);
        return true;
    }
    if (row == ROW_VIEW)
        return take_view(header, fields->word, line, error);
    if (row == ROW_WARMUP)
        return take_warmup(header, fields->number[0], line, error);
    if (row == ROW_UNTOUCHED) {
        memcpy(header->untouched, fields->number, sizeof header->untouched);
        return true;
    }
    memcpy((char *)&header->claimed + rows[row].offset, fields->number,
           strlen(rows[row].pattern) * sizeof fields->number[0]);
    return true;
}

// A malformed header line is TRACE_ERROR_HEADER_FIELDS, whatever the scanner called it, but a
// number that does not fit keeps its own code.
static bool scan_row(struct trace_fields *fields, int row, const char *text, uint64_t line,
                     struct trace_error *error)
{
    const char *key = rows[row].key;

    if (trace_fields_scan(fields, text + strlen(key), rows[row].pattern, line, error))
        return true;
    if (error->code == TRACE_ERROR_FIELDS)
        error->code = TRACE_ERROR_HEADER_FIELDS;
    return false;
}

static void keep_note(struct trace_header *header, const char *text)
{
    size_t length = strlen(text);

    if (header->noted + length + 1 > TRACE_NOTES_MAX)
        return;
    memcpy(header->notes + header->noted, text, length);
    header->noted += length;
    header->notes[header->noted++] = '\n';
}

bool trace_header_line(struct trace_header *header, const char *text, uint64_t line,
                       struct trace_error *error)
{
    int row = find_row(text);
    struct trace_fields fields;

    if (row < 0) {
        keep_note(header, text);
        return true;
    }
    if (header->seen >> row & 1)
        return trace_fail(error, TRACE_ERROR_HEADER_TWICE, line, "%s a second time",
                          rows[row].key);
    header->seen |= UINT32_C(1) << row;
    return scan_row(&fields, row, text, line, error) &&
           take_row(header, row, &fields, line, error);
}

static bool check_count(const struct row *row, const uint64_t *claimed, const uint64_t *counted,
                        struct trace_error *error)
{
    size_t numbers = strlen(row->pattern);

    if (!memcmp(claimed, counted, numbers * sizeof *counted))
        return true;
    if (numbers == 1)
        return trace_fail(error, row->wrong, 0, "%s claims %" PRIu64 ", counted %" PRIu64,
                          row->key, claimed[0], counted[0]);
    return trace_fail(error, row->wrong, 0,
                      "%s claims %" PRIu64 " of %" PRIu64 " bytes, counted %" PRIu64 " of %" PRIu64
                      " bytes",
                      row->key, claimed[0], claimed[1], counted[0], counted[1]);
}

bool trace_header_check(const struct trace_header *header, const struct trace_totals *counted,
                        struct trace_error *error)
{
    for (int i = ROW_UNTOUCHED + 1; i < ROWS; i++) {
        uint64_t claim[2], count[2];
        size_t bytes = strlen(rows[i].pattern) * sizeof(uint64_t);

        memcpy(claim, (const char *)&header->claimed + rows[i].offset, bytes);
        memcpy(count, (const char *)counted + rows[i].offset, bytes);
        if (header->seen >> i & 1 && !check_count(&rows[i], claim, count, error))
            return false;
    }
    return true;
}
