// SPDX-License-Identifier: Apache-2.0
/*
 * tsv.c - rows out, and the rows of other benchmarks in.
 *
 * Refused on the way in: lines that do not have five fields that are not empty, or whose last
 * field is not a number.
 */
#include "tsv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "complain.h"
#include "output.h"

enum { FIELDS = 5 };

static int refuse(const char *path, const char *reason) {
    complain("%s: %s", path, reason);
    return -1;
}

int tsv_write(const struct bench *bench, const char *path) {
    struct output output;
    if (!output_begin(&output, path))
        return -1;
    for (size_t i = 0; i < bench->samples.row_count; i++) {
        const struct row *row = &bench->samples.row[i];
        fprintf(output.file, "churn\t%s\t%s\t%s\t%.12g\n", bench->workload[row->workload].id,
                allocators[row->allocator].name, bench->samples.metric[row->metric], row->value);
    }
    for (int i = 0; i < bench->imported_count; i++) {
        const struct imported_row *row = &bench->imported[i];
        fprintf(output.file, "%s\t%s\t%s\t%s\t%s\n", row->bench, row->name, row->allocator,
                row->metric, row->value);
    }
    return output_end(&output);
}

static bool is_number(const char *text) {
    char *end = NULL;
    strtod(text, &end);
    return end != text && *end == '\0';
}

/* Cuts `line` in place. False if it is no row. */
static bool cut(char *line, struct imported_row *row) {
    char **field[FIELDS] = {&row->bench, &row->name, &row->allocator, &row->metric, &row->value};
    for (int i = 0; i < FIELDS; i++) {
        *field[i] = strsep(&line, "\t");
        if (!*field[i] || !**field[i])
            return false;
    }
    return line == NULL && is_number(row->value);
}

static int import_line(struct bench *bench, const char *path, char *line, int number) {
    struct imported_row row;
    line[strcspn(line, "\n")] = '\0';
    char *copy = strdup(line);
    struct imported_row *grown =
        realloc(bench->imported, (size_t)(bench->imported_count + 1) * sizeof *grown);
    if (grown)
        bench->imported = grown;
    if (!copy || !grown) {
        free(copy);
        return refuse(path, "out of memory");
    }
    if (!cut(copy, &row)) {
        complain("%s: line %d is no row of five fields and a number", path, number);
        free(copy);
        return -1;
    }
    grown[bench->imported_count++] = row;
    return 0;
}

int tsv_import(struct bench *bench, const char *path) {
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int result = file ? 0 : refuse(path, strerror(errno));
    for (int number = 1; result == 0 && getline(&line, &room, file) > 0; number++)
        result = import_line(bench, path, line, number);
    if (result == 0 && !feof(file))
        result = refuse(path, strerror(errno)); /* a folder is opened, but not read */
    free(line);
    if (file)
        fclose(file);
    return result;
}
