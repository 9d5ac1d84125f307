// SPDX-License-Identifier: Apache-2.0
/*
 * plan.c - ebb-plan: the planner alone, on given instances.
 *
 *     ebb-plan [--capacity BYTES] [--keys N] [--slack PPM] [--search MS] [--tsv FILE] FILE...
 *     ebb-plan --synthetic N, or --random N,ALIVE
 *
 * What the columns mean is in docs/benchmarking.md.
 *
 * Exit codes: 0 all is planned; 1 a plan is higher than the capacity, which is said with the
 * numbers; 2 the arguments or a file are bad, a plan failed, or the output was lost. The other
 * files are still planned; but where memory runs out all ends with 2.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "instance.h"
#include "options.h"
#include "complain.h"
#include "said.h"

enum { EXIT_TOO_HIGH = 1, EXIT_BAD_INPUT = 2 };

/* Planned, printed, and judged; the instances are gone afterwards. */
static int plan(struct instances *instances, const struct options *options, FILE *rows,
                const char *name) {
    struct figures figures;
    bool measured = figures_measure(&figures, instances, options, name);
    instances_free(instances);
    if (!measured)
        return EXIT_BAD_INPUT;
    figures_print(&figures, name);
    if (rows)
        figures_write_rows(rows, &figures, name);
    if (figures.room == 0 || figures.highest <= figures.room)
        return EXIT_SUCCESS;
    complain("%s: needs %" PRIu64 " bytes, %" PRIu64 " above the capacity of %" PRIu64, name,
             figures.highest, figures.highest - figures.room, figures.room);
    return EXIT_TOO_HIGH;
}

/* What the file is called, without the folder and what says how it is written: `a.full`. */
static void name_of(char *name, size_t size, const char *path) {
    static const char *const endings[] = {".gz", ".trace", ".csv"};
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash ? slash + 1 : path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(name), tail = strlen(endings[i]);
        if (length > tail && strcmp(name + length - tail, endings[i]) == 0)
            name[length - tail] = '\0';
    }
}

static int plan_file(const struct options *options, FILE *rows, const char *path) {
    char name[NAME_MAX + 1];
    struct instances instances;
    struct instance_error error;
    name_of(name, sizeof name, path);
    if (instances_read(&instances, path, &error))
        return plan(&instances, options, rows, name);
    complain("%s: %s: %s", path, instance_error_name(error.code), error.text);
    return EXIT_BAD_INPUT;
}

static int plan_made_up(const struct options *options, FILE *rows, const struct made_up *step) {
    struct instances instances;
    char name[32];
    if (step->alive) {
        snprintf(name, sizeof name, "random_%" PRIu32 "_%" PRIu32, step->count, step->alive);
        random_make(&instances, step->count, step->alive);
    } else {
        snprintf(name, sizeof name, "synthetic_%" PRIu32, step->count);
        synthetic_make(&instances, step->count);
    }
    return plan(&instances, options, rows, name);
}

static int worse(int a, int b) {
    return a > b ? a : b;
}

static int plan_all(const struct options *options, FILE *rows) {
    int code = EXIT_SUCCESS;
    figures_print_head();
    for (int i = 0; i < options->made_up_count; i++)
        code = worse(code, plan_made_up(options, rows, &options->made_up[i]));
    for (int i = 0; i < options->path_count; i++)
        code = worse(code, plan_file(options, rows, options->paths[i]));
    return code;
}

static int refuse(const char *what, const char *path) {
    complain("%s: %s", what, path);
    return EXIT_BAD_INPUT;
}

/* With the rows beside the table. */
static int plan_into(const struct options *options) {
    FILE *rows = fopen(options->tsv, "w");
    if (!rows)
        return refuse("cannot write", options->tsv);
    int code = plan_all(options, rows);
    bool lost = ferror(rows) != 0;
    if (fclose(rows) == 0 && !lost)
        return code;
    return refuse("not all rows could be written", options->tsv);
}

static int run(int argc, char **argv) {
    struct options options;
    if (options_parse(&options, argc, argv) != 0)
        return EXIT_BAD_INPUT;
    if (options.help) {
        options_help();
        return EXIT_SUCCESS;
    }
    return options.tsv ? plan_into(&options) : plan_all(&options, NULL);
}

int main(int argc, char **argv) {
    complain_as("ebb-plan");
    said_begin();
    return said_end(run(argc, argv), EXIT_BAD_INPUT, "ebb-plan");
}
