// SPDX-License-Identifier: Apache-2.0
/*
 * options.c - reads the command line. Refused: what is no number, a budget of nothing, no budget
 * at all, what is said twice, and no file.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "complain.h"

void options_help(void) {
    puts("usage: ebb budget [OPTION...] TRACE...\n\n"
         "Replays each trace once, with ebb, and fails if a step costs more than it may:\n\n"
         "  --bytes N        requested by all allocations of a step\n"
         "  --allocations N  of a step\n"
         "  --promoted N     bytes that a step leaves to its parent, copied or relinked\n"
         "  --reserved N     bytes of pages that a step holds at once\n"
         "  --site KIND      only steps of this kind have the budget; the others none\n"
         "  -h, --help       this text\n\n"
         "Exit codes: 0 no step is over its budget; 1 one is; 2 bad arguments or traces; 3 it\n"
         "cannot be known, as there is no memory, say, or the output is lost");
}

static int refuse(const char *what, const char *value) {
    complain("%s: %s (--help tells more)", what, value);
    return -1;
}

static int take_bound(uint64_t *bound, const char *text, const char *complaint) {
    char *end = NULL;
    if (*bound)
        return refuse("a second budget of one kind", text);
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9' || value == 0)
        return refuse(complaint, text);
    *bound = value;
    return 0;
}

/* One that is not looked at would pass. */
static int take_kind(const char **kind, const char *name) {
    if (*kind)
        return refuse("a second --site", name);
    *kind = name;
    return 0;
}

static int take_option(struct options *options, int option, const char *value) {
    struct ebb_churn_budget *budget = &options->budget;
    switch (option) {
    case 'b': return take_bound(&budget->bytes, value, "--bytes: no number above 0");
    case 'a': return take_bound(&budget->allocations, value, "--allocations: no number above 0");
    case 'p': return take_bound(&budget->promoted_bytes, value, "--promoted: no number above 0");
    case 'r': return take_bound(&budget->reserved_bytes, value, "--reserved: no number above 0");
    case 's': return take_kind(&options->kind, value);
    case 'h': options->help = true; return 0;
    default: return -1;
    }
}

static bool has_bound(const struct ebb_churn_budget *budget) {
    return budget->bytes || budget->allocations || budget->promoted_bytes ||
           budget->reserved_bytes;
}

int options_parse(struct options *options, int argc, char **argv) {
    static const struct option known[] = {
        {"bytes", 1, NULL, 'b'},    {"allocations", 1, NULL, 'a'}, {"promoted", 1, NULL, 'p'},
        {"reserved", 1, NULL, 'r'}, {"site", 1, NULL, 's'},        {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    *options = (struct options){0};
    for (int option; (option = getopt_long(argc, argv, ":h", known, NULL)) != -1;)
        if (option == '?' || option == ':' ? !complain_of_option(option, argv, known)
                                           : take_option(options, option, optarg) != 0)
            return -1;
    options->paths = argv + optind;
    options->path_count = argc - optind;
    if (options->help)
        return 0;
    if (!has_bound(&options->budget))
        return refuse("missing", "a budget, as --bytes N");
    return options->path_count ? 0 : refuse("missing", "a trace");
}
