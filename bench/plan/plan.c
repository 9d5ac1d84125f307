// SPDX-License-Identifier: Apache-2.0
/*
 * plan.c - ebb-plan: the planner alone, on given instances.
 *
 *     ebb-plan [--capacity BYTES] [--keys N] [--slack PPM] [--search MS] [--tsv] FILE...
 *     ebb-plan --synthetic N
 *
 * What the columns mean is in docs/benchmarking.md.
 *
 * Exit codes: 0 all is planned; 1 a plan is higher than the capacity, which is said with the
 * numbers; 2 the arguments or a file are bad, a plan failed, or the output was lost. The other
 * files are still planned; but where memory runs out all ends with 2.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "instance.h"
#include "options.h"
#include "said.h"

enum { EXIT_TOO_HIGH = 1, EXIT_BAD_INPUT = 2 };

/* Planned, printed, and judged; the instances are gone afterwards. */
static int plan(struct instances *instances, const struct options *options, const char *name) {
    struct figures figures;
    bool measured = figures_measure(&figures, instances, options, name);
    instances_free(instances);
    if (!measured)
        return EXIT_BAD_INPUT;
    (options->tsv ? figures_print_rows : figures_print)(&figures, name);
    if (figures.room == 0 || figures.highest <= figures.room)
        return EXIT_SUCCESS;
    fprintf(stderr, "ebb-plan: %s: needs %" PRIu64 " bytes, %" PRIu64 " above the capacity of %"
            PRIu64 "\n", name, figures.highest, figures.highest - figures.room, figures.room);
    return EXIT_TOO_HIGH;
}

static int plan_file(const struct options *options, const char *path) {
    const char *slash = strrchr(path, '/');
    struct instances instances;
    struct instance_error error;
    if (instances_read(&instances, path, &error))
        return plan(&instances, options, slash ? slash + 1 : path);
    fprintf(stderr, "ebb-plan: %s: %s: %s\n", path, instance_error_name(error.code), error.text);
    return EXIT_BAD_INPUT;
}

static int plan_synthetic(const struct options *options) {
    struct instances instances;
    char name[32];
    snprintf(name, sizeof name, "synthetic_%" PRIu32, options->synthetic);
    synthetic_make(&instances, options->synthetic);
    return plan(&instances, options, name);
}

static int worse(int a, int b) {
    return a > b ? a : b;
}

static int run(int argc, char **argv) {
    struct options options;
    if (options_parse(&options, argc, argv) != 0)
        return EXIT_BAD_INPUT;
    if (options.help) {
        options_help();
        return EXIT_SUCCESS;
    }
    int code = EXIT_SUCCESS;
    if (!options.tsv)
        figures_print_head();
    if (options.synthetic)
        code = plan_synthetic(&options);
    for (int i = 0; i < options.path_count; i++)
        code = worse(code, plan_file(&options, options.paths[i]));
    return code;
}

int main(int argc, char **argv) {
    said_begin();
    return said_end(run(argc, argv), EXIT_BAD_INPUT, "ebb-plan");
}
