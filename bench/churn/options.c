// SPDX-License-Identifier: Apache-2.0
/*
 * options.c - reads the command line; says what is wrong with it and leaves nothing half set.
 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "complain.h"

enum { ROUNDS_DEFAULT = 5, ROUNDS_QUICK = 3, ROUNDS_MAX = 1000 };

void options_help(void) {
    printf("churn - replays recorded allocation traces against several allocators\n\n"
           "  --traces DIR       folder of *.trace.gz files, or one such file\n"
           "  --allocators LIST  comma separated; all that are installed but ebb-unplanned if\n"
           "                     not given:\n"
           "                     ");
    for (int i = 0; i < allocator_count; i++)
        printf("%s%s", allocators[i].name, i + 1 < allocator_count ? "," : "\n");
    printf("  --rounds N         timed processes per trace and allocator (%d; quick: %d)\n"
           "  --quick            less of each trace\n"
           "  --no-plan          ebb without plans\n"
           "  --no-touch         the allocator alone: nanoseconds per event, blocks not touched\n"
           "  --no-spike         leave out the synthetic spike\n"
           "  --tsv FILE         write the rows there\n"
           "  --json FILE        write rows, machine, series and histograms there\n"
           "  --add-rows FILE    rows of another benchmark (TSV) to put into both files\n"
           "  --no-replay        replay nothing; only write the files\n"
           "  --as NAME          what stands in front of messages (churn)\n"
           "  -h, --help         this text\n", ROUNDS_DEFAULT, ROUNDS_QUICK);
}

static int refuse(const char *what, const char *value) {
    complain("%s: %s (--help tells more)", what, value);
    return -1;
}

static bool is_listed(const struct options *options, int allocator) {
    for (int i = 0; i < options->allocator_count; i++)
        if (options->allocator[i] == allocator)
            return true;
    return false;
}

/* Keeps the order of the table, ebb first, whatever the order of the list. */
static void insert(struct options *options, int allocator) {
    int at = options->allocator_count++;
    for (; at > 0 && options->allocator[at - 1] > allocator; at--)
        options->allocator[at] = options->allocator[at - 1];
    options->allocator[at] = allocator;
}

static int take_allocators(struct options *options, const char *list) {
    options->chosen = true;
    options->allocator_count = 0;
    for (const char *at = list;; at++) {
        int length = (int)strcspn(at, ",");
        int number = allocator_find(at, length);
        if (number < 0) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", length, at);
            return refuse("--allocators: no such allocator", name);
        }
        if (is_listed(options, number))
            return refuse("--allocators: named twice", allocators[number].name);
        insert(options, number);
        at += length;
        if (*at == '\0')
            return 0;
    }
}

static int take_rounds(struct options *options, const char *text) {
    char *end = NULL;
    errno = 0;
    long rounds = strtol(text, &end, 10);
    if (errno || !isdigit((unsigned char)text[0]) || *end || rounds < 1 || rounds > ROUNDS_MAX)
        return refuse("--rounds: not a number from 1 to 1000", text);
    options->rounds = (int)rounds;
    return 0;
}

static int take_option(struct options *options, int option, char *value) {
    switch (option) {
    case 't': options->traces = value; return 0;
    case 'a': return take_allocators(options, value);
    case 'r': return take_rounds(options, value);
    case 'q': options->quick = true; return 0;
    case 'n': options->touch = false; return 0;
    case 'p': options->plan = false; return 0;
    case 's': options->spike = false; return 0;
    case 'v': options->tsv = value; return 0;
    case 'j': options->json = value; return 0;
    case 'm': options->add_rows = value; return 0;
    case 'x': options->replay = false; return 0;
    case 'c': complain_as(value); return 0;
    case 'h': options->help = true; return 0;
    default: return -1;
    }
}

static void set_defaults(struct options *options) {
    *options = (struct options){.touch = true, .replay = true, .plan = true, .spike = true};
    for (int i = 0; i < allocator_count; i++)
        if (strcmp(allocators[i].name, "ebb-unplanned") != 0)
            options->allocator[options->allocator_count++] = i;
}

int options_parse(struct options *options, int argc, char **argv) {
    static const struct option known[] = {
        {"traces", 1, NULL, 't'},   {"allocators", 1, NULL, 'a'}, {"rounds", 1, NULL, 'r'},
        {"quick", 0, NULL, 'q'},    {"no-touch", 0, NULL, 'n'},   {"tsv", 1, NULL, 'v'},
        {"json", 1, NULL, 'j'},     {"add-rows", 1, NULL, 'm'},   {"no-replay", 0, NULL, 'x'},
        {"no-plan", 0, NULL, 'p'},  {"no-spike", 0, NULL, 's'},   {"as", 1, NULL, 'c'},
        {"help", 0, NULL, 'h'},     {NULL, 0, NULL, 0}};
    set_defaults(options);
    for (int option; (option = getopt_long(argc, argv, ":h", known, NULL)) != -1;)
        if (option == '?' || option == ':' ? !complain_of_option(option, argv, known)
                                           : take_option(options, option, optarg) != 0)
            return -1;
    if (optind < argc)
        return refuse("superfluous argument", argv[optind]);
    if (!options->traces && options->replay && !options->help)
        return refuse("missing", "--traces DIR");
    if (options->rounds == 0)
        options->rounds = options->quick ? ROUNDS_QUICK : ROUNDS_DEFAULT;
    return 0;
}
