// SPDX-License-Identifier: Apache-2.0
/*
 * record.c - ebb record: runs a command, makes a trace of what its process noted.
 *
 * Each program that starts has a spool of its own, in a folder beside the trace; the trace is made
 * of the one that noted most. The folder goes when the trace is there, or there is nothing in it,
 * and stays when it is not, or something in it cannot be read.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "complain.h"
#include "launch.h"
#include "output.h"
#include "place.h"
#include "render.h"
#include "site_list.h"
#include "spools.h"
#include "words.h"

enum { UNPAIRED_FEW = 100 }; /* so many blocks, or one of so many */

struct wish {
    const char *output, *recover;
    struct launch launch;
    struct launched launched;
    struct render render;
    bool quiet, help;
};

static const char help_text[] =
    "usage: ebb record [OPTION...] [--] COMMAND [ARGUMENT...]\n"
    "       ebb record --recover SPOOL -o FILE\n\n"
    "Runs COMMAND and writes a trace of its allocations, with its steps.\n\n"
    "  -o, --output FILE    the trace (COMMAND.trace.gz)\n"
    "  --every MS           a region every MS milliseconds, 1 to 3600000, where the program has\n"
    "                       no steps; not with --function or --within\n"
    "  --function NAME      a region from each call of NAME to the next: a function that a shared\n"
    "                       library exports, or Python's module.function or module.Class.method\n"
    "  --within NAME        each call of a Python function is a region\n"
    "  --limit BYTES        most that a process's spool may hold (1G; K, M and G may follow);\n"
    "                       then its recording stops\n"
    "  --sites              also write which place asked for which block: to NAME.sites.gz if\n"
    "                       FILE is NAME.trace.gz, else to FILE.sites\n"
    "  --tensor             only the storage of PyTorch's tensors\n"
    "  --recover SPOOL      make the trace of what a killed recording left; not with --every,\n"
    "                       --function, --within, --limit or --keep\n"
    "  --keep               keep the spools of all processes\n"
    "  -q, --quiet          no summary\n"
    "  -h, --help           this text\n\n"
    "The exit code is that of COMMAND; 126 or 127 if it cannot be run; 125 if it ended with 0 and\n"
    "there is no trace, or if it was not run because no trace can be written.\n";

/* ---- options */

/* "64M"; false for anything that is no number of bytes above 0. */
static bool take_bytes(const char *text, uint64_t *bytes) {
    static const char units[] = "KMG";
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (errno || !isdigit((unsigned char)text[0]) || number == 0 || (*end && !unit) ||
        (unit && end[1]) || number > UINT64_MAX >> shift)
        return complain("--limit: '%s' is no number of bytes", text);
    *bytes = (uint64_t)number << shift;
    return true;
}

static bool take_ms(const char *text, long *ms) {
    char *end = NULL;
    errno = 0;
    *ms = strtol(text, &end, 10);
    if (errno || !isdigit((unsigned char)text[0]) || *end || *ms < 1 || *ms > 3600000)
        return complain("--every: '%s' is no number of milliseconds from 1 to 3600000", text);
    return true;
}

static bool take_option(struct wish *wish, int option, const char *value) {
    switch (option) {
    case 'o': wish->output = value; return true;
    case 'e': return take_ms(value, &wish->launch.every_ms);
    case 'f':
        wish->launch.function = value;
        wish->launch.within = false;
        return true;
    case 'w':
        wish->launch.function = value;
        wish->launch.within = true;
        return strchr(value, '.') || complain("--within: '%s' is no module.function", value);
    case 'l': return take_bytes(value, &wish->launch.limit);
    case 's': wish->render.sites = true; return true;
    case 't': wish->render.tensor = true; return true;
    case 'r': wish->recover = value; return true;
    case 'k': wish->launch.keep = true; return true;
    case 'q': wish->quiet = true; return true;
    case 'h': wish->help = true; return true;
    default: return false;
    }
}

static bool check(const struct wish *wish) {
    if (wish->help)
        return true;
    if (wish->recover && (wish->launch.command[0] || !wish->output))
        return complain("--recover wants -o FILE and no command");
    if (wish->recover && (wish->launch.every_ms || wish->launch.function || wish->launch.limit))
        return complain("--recover excludes --every, --function, --within and --limit: what the "
                        "spool has was noted before");
    if (wish->recover && wish->launch.keep)
        return complain("--recover leaves the spool where it is: --keep says nothing");
    if (wish->output && !*wish->output)
        return complain("-o: a file without a name");
    if (!wish->recover && !wish->launch.command[0])
        return complain("no command (--help tells more)");
    if (wish->launch.every_ms && wish->launch.function)
        return complain("--every excludes --function and --within");
    if (wish->launch.function && !*wish->launch.function)
        return complain("--function: a function without a name");
    if (wish->launch.function && strlen(wish->launch.function) >= SPOOL_FUNCTION)
        return complain("--function: a name of %zu bytes is too long, the most is %d",
                        strlen(wish->launch.function), SPOOL_FUNCTION - 1);
    if (wish->launch.limit && wish->launch.limit < SPOOL_HEAD + SPOOL_CHUNK)
        return complain("--limit: %" PRIu64 " bytes are too few, the least is %" PRIu64,
                        wish->launch.limit, SPOOL_HEAD + SPOOL_CHUNK);
    if (wish->launch.limit > SPOOL_LIMIT_MOST)
        return complain("--limit: %" PRIu64 " bytes are too many, the most is %" PRIu64,
                        wish->launch.limit, SPOOL_LIMIT_MOST);
    return true;
}

static bool parse(struct wish *wish, int argc, char **argv) {
    static const struct option known[] = {
        {"output", 1, NULL, 'o'}, {"every", 1, NULL, 'e'},   {"function", 1, NULL, 'f'},
        {"limit", 1, NULL, 'l'},  {"sites", 0, NULL, 's'},   {"tensor", 0, NULL, 't'},
        {"recover", 1, NULL, 'r'}, {"keep", 0, NULL, 'k'},   {"quiet", 0, NULL, 'q'},
        {"help", 0, NULL, 'h'},   {"within", 1, NULL, 'w'},
        {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, "+:ho:q", known, NULL)) != -1;) {
        if (option == '?' || option == ':')
            return complain_of_option(option, argv, known);
        if (!take_option(wish, option, optarg))
            return false;
    }
    wish->launch.command = argv + optind;
    return check(wish);
}

/* ---- the output */

static bool name_output(struct wish *wish, char *path) {
    if (wish->output) {
        if (snprintf(path, PLACE_MAX, "%s", wish->output) >= PLACE_MAX)
            return complain("%s: too long a name", wish->output);
        return true;
    }
    const char *slash = strrchr(wish->launch.command[0], '/');
    const char *name = slash ? slash + 1 : wish->launch.command[0];
    return snprintf(path, PLACE_MAX, "%s.trace.gz", name) < PLACE_MAX ||
           complain("%s: too long a name", name);
}

/* The folder for spools, beside the trace: absolute, since the command may go elsewhere. */
static bool make_folder(const char *output, char *folder) {
    char beside[PLACE_MAX + 32], whole[PATH_MAX];
    snprintf(beside, sizeof beside, "%s.spool-XXXXXX", output);
    if (!mkdtemp(beside))
        return complain("%s: %s", output, strerror(errno));
    if (!realpath(beside, whole))
        return complain("%s: %s", beside, strerror(errno));
    snprintf(folder, PLACE_MAX, "%s", whole);
    return true;
}

static void join_command(char **command, char *text, size_t room) {
    size_t used = 0;
    text[0] = '\0';
    for (; *command && used < room; command++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", used ? " " : "", *command);
}

/* ---- spools */

/* The heaviest spool of a folder, or the file itself that `place` is. What the command has left
 * running is stopped. False after a message. */
static bool choose_spool(const struct wish *wish, const char *place, struct spools *spools) {
    struct stat status;
    *spools = (struct spools){0};
    if (stat(place, &status) != 0)
        return complain("%s: %s", place, strerror(errno));
    if (!S_ISDIR(status.st_mode)) {
        spools->count = 1;
        return snprintf(spools->heaviest, PLACE_MAX, "%s", place) < PLACE_MAX;
    }
    if (wish->recover)
        spools_weigh(place, spools);
    else
        spools_stop(place, spools);
    if (spools->reason)
        complain("%s: %s", spools->unread, strerror(spools->reason));
    if (spools->count || spools->reason)
        return spools->count > 0;
    if (wish->recover)
        return complain("%s: no spool in it", place);
    return complain("nothing was recorded: the command is static, setuid, built with a sanitizer "
                    "or for another C library (musl), ended before it began, or there was no room "
                    "at %s", place);
}

/* False after a message: there are some, and no memory for them. */
static bool read_ticks(const char *spool, uint32_t **ticks, size_t *count) {
    char path[PLACE_MAX + 8];
    struct stat status;
    snprintf(path, sizeof path, "%s.ticks", spool);
    FILE *file = fopen(path, "r");
    size_t bytes = file && fstat(fileno(file), &status) == 0 ? (size_t)status.st_size : 0;
    *count = 0;
    *ticks = bytes ? malloc(bytes) : NULL;
    if (*ticks)
        *count = fread(*ticks, sizeof **ticks, bytes / sizeof **ticks, file);
    if (file)
        fclose(file);
    return *ticks || !bytes || complain("%s: no memory for %zu bytes", path, bytes);
}

/* A few come with a kill; more of them, from an allocator that the recorder is not before. */
static void tell_unpaired(const struct rendered *rendered) {
    uint64_t unknown = rendered->unknown_frees, lost = rendered->lost_frees;
    if (unknown + lost <= UNPAIRED_FEW || unknown + lost <= rendered->blocks / UNPAIRED_FEW)
        return;
    fprintf(stderr, "ebb record: %" PRIu64 " frees of blocks that were never seen, and %" PRIu64
            " blocks whose frees were not: some library calls another malloc\n", unknown, lost);
}

static void tell_no_regions(const struct launch *launch, uint64_t calls) {
    const char *function = launch->function;
    if (function && calls)
        fprintf(stderr, "ebb record: no thread called %s twice, and a region lasts from one call "
                        "to the next%s\n", words_name(function),
                strchr(function, '.') ? "; with --within it is the call" : "");
    else if (function)
        fprintf(stderr, "ebb record: no call of %s was seen\n", words_name(function));
    else if (calls)
        fprintf(stderr, "ebb record: no thread called ebb_record_call() twice with one name, and a "
                        "region lasts from one call to the next\n");
    else if (launch->every_ms)
        fprintf(stderr, "ebb record: no period of %ld ms ended in it, or it was not among the %d "
                        "processes that are watched\n", launch->every_ms, LAUNCH_WATCHED);
    else
        fprintf(stderr, "ebb record: no steps in it: --every or --function make some, and `ebb "
                        "advise` looks for them\n");
}

static void summarize(const struct wish *wish, const struct spool_file *spool,
                      const struct rendered *rendered, const struct spools *spools) {
    int running = spools->running, others = spools->count - 1 + wish->launched.removed;
    if (wish->quiet)
        return;
    fprintf(stderr, "ebb record: %s: %" PRIu64 " events, %" PRIu64 " objects, %" PRIu64
            " regions", words_name(wish->render.path), rendered->events, rendered->objects,
            rendered->regions);
    if (spool->head->stopped)
        fprintf(stderr, "; recording stopped early, see #stopped in it");
    else if (rendered->cut)
        fprintf(stderr, "; there was more than a trace takes, see #stopped in it");
    if (others > 0)
        fprintf(stderr, "; %d other program%s noted less and %s left out", others,
                others > 1 ? "s" : "", others > 1 ? "are" : "is");
    fputc('\n', stderr);
    if (running)
        fprintf(stderr, "ebb record: %d process%s still run%s, and %s recorded no more\n", running,
                running > 1 ? "es" : "", running > 1 ? "" : "s", running > 1 ? "are" : "is");
    if (rendered->sites_path[0])
        fprintf(stderr, "ebb record: %s: the places that allocate\n",
                words_name(rendered->sites_path));
    tell_unpaired(rendered);
    if (!rendered->regions)
        tell_no_regions(&wish->launch, rendered->calls);
}

static bool convert(const struct wish *wish, const char *place, struct spools *spools) {
    struct spool_file spool;
    struct stream stream;
    struct rendered rendered;
    size_t tick_count;
    uint32_t *ticks;
    if (!choose_spool(wish, place, spools) || !spool_file_open(&spool, spools->heaviest))
        return false;
    bool good = read_ticks(spools->heaviest, &ticks, &tick_count) &&
                stream_decode(&stream, &spool, ticks, tick_count);
    if (good) {
        good = render_trace(&stream, &spool, &wish->render, &rendered);
        stream_free(&stream);
    }
    if (good)
        summarize(wish, &spool, &rendered, spools);
    free(ticks);
    spool_file_close(&spool);
    return good;
}

/* ---- both ways */

static int recover(struct wish *wish) {
    struct spools spools;
    if (!site_list_spares(wish->output) || !site_list_allowed(wish->output))
        return EXIT_FAILED;
    wish->render.recovered = true;
    wish->render.about = "recovered";
    wish->render.path = wish->output;
    return convert(wish, wish->recover, &spools) ? 0 : EXIT_FAILED;
}

static int run(struct wish *wish) {
    char output[PLACE_MAX], folder[PLACE_MAX], about[1000];
    struct spools spools = {0};
    if (!name_output(wish, output) || !site_list_spares(output) || !site_list_allowed(output) ||
        !make_folder(output, folder))
        return EXIT_NOT_RECORDED;
    join_command(wish->launch.command, about, sizeof about);
    wish->launch.folder = folder;
    wish->render.path = output;
    wish->render.about = about;
    wish->render.every_ms = wish->launch.every_ms;
    bool started = launch_run(&wish->launch, &wish->launched);
    bool made = started && convert(wish, folder, &spools);
    if ((spools.count && !made) || spools.reason)
        complain("the spool is kept: ebb record --recover %s -o FILE", folder);
    else if (wish->launch.keep && made)
        fprintf(stderr, "ebb record: the spool is kept: %s\n", words_name(folder));
    else
        spools_remove(folder);
    if (wish->launched.code)
        return wish->launched.code;
    return made ? 0 : EXIT_NOT_RECORDED;
}

int command_record(int argc, char **argv) {
    struct wish wish = {0};
    if (!parse(&wish, argc, argv))
        return EXIT_BAD_INPUT;
    if (wish.help) {
        fputs(help_text, stdout);
        return 0;
    }
    return wish.recover ? recover(&wish) : run(&wish);
}
