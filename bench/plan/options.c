// SPDX-License-Identifier: Apache-2.0
/*
 * options.c - reads the command line; says what is wrong with it.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "plan/packing.h"

enum { SLACK_DEFAULT = 5000, SLACK_MAX = 1000000, SEARCH_MAX_MS = 3600000,
       MADE_UP_BUFFERS_MAX = 100000000 };

void options_help(void) {
    printf("ebb-plan - plans offsets for the buffers of each file: `id,lower,upper,size` lines,\n"
           "or a trace, whose steady steps are planned one by one; plain or gzip\n\n"
           "  --capacity BYTES  fail if a plan is higher; and be content if it is not\n"
           "  --keys N          try at most N orders, 1 to %u (%u)\n"
           "  --slack PPM       stop at so many millionths above max-live (%d)\n"
           "  --search MS       then search so long (0)\n"
           "  --synthetic N     a made-up training step of about N buffers\n"
           "  --random N,ALIVE  four steps of N buffers of random sizes and lives, ALIVE at once;\n"
           "                    up to %d steps to make up, of both options together\n"
           "  --tsv FILE        rows, beside the table\n"
           "  -h, --help        this text\n",
           PACKING_ORDERS, PACKING_ORDERS, SLACK_DEFAULT, MADE_UP_MOST);
}

static int refuse(const char *what, const char *value) {
    complain("%s: %s (--help tells more)", what, value);
    return -1;
}

static int take_number(uint64_t *number, const char *text, uint64_t least, uint64_t most,
                       const char *complaint) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || value < least ||
        value > most)
        return refuse(complaint, text);
    *number = value;
    return 0;
}

static int take_small(uint32_t *number, const char *text, uint32_t least, uint32_t most,
                      const char *complaint) {
    uint64_t value;
    if (take_number(&value, text, least, most, complaint) != 0)
        return -1;
    *number = (uint32_t)value;
    return 0;
}

static struct made_up *next_made_up(struct options *options, const char *value) {
    if (options->made_up_count < MADE_UP_MOST)
        return &options->made_up[options->made_up_count++];
    refuse("too many steps to make up", value);
    return NULL;
}

static int take_synthetic(struct options *options, const char *value) {
    struct made_up *step = next_made_up(options, value);
    if (!step)
        return -1;
    return take_small(&step->count, value, 1, MADE_UP_BUFFERS_MAX,
                      "--synthetic: not a number from 1 to 100000000");
}

static int take_random(struct options *options, const char *value) {
    const char *comma = strchr(value, ',');
    char count[16];
    struct made_up *step = next_made_up(options, value);
    if (!step)
        return -1;
    if (!comma || (size_t)(comma - value) >= sizeof count)
        return refuse("--random: not N,ALIVE", value);
    snprintf(count, sizeof count, "%.*s", (int)(comma - value), value);
    if (take_small(&step->count, count, 1, MADE_UP_BUFFERS_MAX,
                   "--random: not a number from 1 to 100000000") != 0)
        return -1;
    return take_small(&step->alive, comma + 1, 1, step->count,
                      "--random: not a number from 1 to that of all buffers");
}

static int take_option(struct options *options, int option, const char *value) {
    switch (option) {
    case 'c':
        return take_number(&options->capacity, value, 1, INT64_MAX,
                           "--capacity: not a number of bytes");
    case 'k':
        return take_small(&options->keys, value, 1, PACKING_ORDERS,
                          "--keys: not a number from 1 to 7");
    case 'l':
        return take_small(&options->slack_ppm, value, 0, SLACK_MAX,
                          "--slack: not a number up to 1000000");
    case 's':
        return take_small(&options->search_ms, value, 0, SEARCH_MAX_MS,
                          "--search: not a number of milliseconds up to 3600000");
    case 'n': return take_synthetic(options, value);
    case 'r': return take_random(options, value);
    case 't': options->tsv = value; return 0;
    case 'h': options->help = true; return 0;
    default: return -1;
    }
}

int options_parse(struct options *options, int argc, char **argv) {
    static const struct option known[] = {
        {"capacity", 1, NULL, 'c'}, {"keys", 1, NULL, 'k'},      {"slack", 1, NULL, 'l'},
        {"search", 1, NULL, 's'},   {"synthetic", 1, NULL, 'n'}, {"random", 1, NULL, 'r'},
        {"tsv", 1, NULL, 't'},      {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0}};
    *options = (struct options){.keys = PACKING_ORDERS, .slack_ppm = SLACK_DEFAULT};
    for (int option; (option = getopt_long(argc, argv, ":h", known, NULL)) != -1;)
        if (option == '?' || option == ':' ? !complain_of_option(option, argv, known)
                                           : take_option(options, option, optarg) != 0)
            return -1;
    options->paths = argv + optind;
    options->path_count = argc - optind;
    if (options->path_count == 0 && options->made_up_count == 0 && !options->help)
        return refuse("missing", "a file, or a step to make up");
    return 0;
}
