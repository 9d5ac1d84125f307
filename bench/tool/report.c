// SPDX-License-Identifier: Apache-2.0
/*
 * report.c - ebb report: what the recorded program would gain, as text or as a page.
 *
 * Time and memory come from a replay (churn_rows.h), survivors and places from the trace itself,
 * and where the replay fails these are there all the same. The page is drawn by program.py of
 * bench/report, from churn's JSON and from figures_write().
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "churn_rows.h"
#include "command.h"
#include "complain.h"
#include "figures_json.h"
#include "output.h"
#include "site_list.h"
#include "place.h"
#include "words.h"

enum { PLACES_SHOWN = 12, FILE_NAME = 64 };

struct wish {
    const char *trace, *html;
    struct churn_wish churn;
    bool no_replay, help;
};

static const char help_text[] =
    "usage: ebb report [OPTION...] TRACE\n\n"
    "Says what the recorded program would gain: time of a step and memory with ebb and with other\n"
    "allocators, what outlives its step, and who asked for it.\n\n"
    "  --html FILE         write a page, in one file that needs nothing else\n"
    "  --allocators LIST   comma separated (ebb,glibc and, if they are installed,\n"
    "                      jemalloc,mimalloc,tcmalloc)\n"
    "  --rounds N          timed processes for each allocator, 1 to 1000 (3)\n"
    "  --quick             less of the trace\n"
    "  --no-replay         leave out time and memory; not with --allocators,\n"
    "                      --rounds or --quick\n"
    "  -h, --help          this text\n";

static bool take_option(struct wish *wish, int option, const char *value) {
    switch (option) {
    case 'w': wish->html = value; return true;
    case 'a': return churn_take_allocators(value, &wish->churn.allocators);
    case 'r': return churn_take_rounds(value, &wish->churn.rounds);
    case 'q': wish->churn.quick = true; return true;
    case 'n': wish->no_replay = true; return true;
    case 'h': wish->help = true; return true;
    default: return false;
    }
}

static bool parse(struct wish *wish, int argc, char **argv) {
    static const struct option known[] = {
        {"html", 1, NULL, 'w'},  {"allocators", 1, NULL, 'a'}, {"rounds", 1, NULL, 'r'},
        {"quick", 0, NULL, 'q'}, {"no-replay", 0, NULL, 'n'},  {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    bool chose_rounds = false;
    for (int option; (option = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        if (option == '?' || option == ':')
            return complain_of_option(option, argv, known);
        chose_rounds |= option == 'r';
        if (!take_option(wish, option, optarg))
            return false;
    }
    if (wish->help)
        return true;
    if (wish->html && !*wish->html)
        return complain("--html: a file without a name");
    if (wish->no_replay && (wish->churn.allocators || wish->churn.quick || chose_rounds))
        return complain("--no-replay excludes --allocators, --rounds and --quick");
    if (optind + 1 != argc)
        return complain("exactly one trace is wanted, not %d", argc - optind);
    wish->trace = argv[optind];
    return true;
}

/* ---- text */

static void say_ratio(const struct churn_rows *rows, const char *name) {
    const struct churn_row *ebb = churn_row_of(rows, "ebb"), *peer = churn_row_of(rows, name);
    if (!ebb || !peer || ebb->value[CHURN_STEP_US] <= 0 || peer->value[CHURN_STEP_US] <= 0)
        return;
    printf("  Against %s: %.2f times its time for the memory of a step", name,
           ebb->value[CHURN_STEP_US] / peer->value[CHURN_STEP_US]);
    if (ebb->value[CHURN_PEAK] > 0 && peer->value[CHURN_PEAK] > 0)
        printf(", %.2f times its peak", ebb->value[CHURN_PEAK] / peer->value[CHURN_PEAK]);
    puts(".");
}

static void say_gain(const struct churn_rows *rows) {
    const struct churn_row *best = NULL;
    for (int i = 0; i < rows->count; i++) {
        double us = rows->row[i].value[CHURN_STEP_US];
        bool peer = strncmp(rows->row[i].allocator, "ebb", 3) != 0;
        if (peer && us > 0 && (!best || us < best->value[CHURN_STEP_US]))
            best = &rows->row[i];
    }
    say_ratio(rows, "glibc");
    if (best && strcmp(best->allocator, "glibc") != 0)
        say_ratio(rows, best->allocator);
}

/* The exit code; what was wrong has been said, and that the rest is there. */
static int replay(const struct wish *wish, struct churn_rows *rows) {
    int code = churn_run(&wish->churn, rows);
    if (code && rows->count == 0)
        complain("times and memory are left out, as with --no-replay");
    return code ? EXIT_FAILED : 0;
}

static int say_replay(const struct wish *wish, const struct recorded_case *recorded) {
    struct churn_rows rows;
    int code = replay(wish, &rows);
    if (rows.count == 0)
        return code;
    printf("\nReplayed, every block written and read; a step is one of `%s`:\n\n",
           recorded->trace->kinds.word[recorded->figures.main_kind]);
    churn_print(&rows);
    say_gain(&rows);
    return code;
}

static int say_all(const struct wish *wish, const struct recorded_case *recorded) {
    const struct trace_totals *totals = &recorded->trace->totals;
    printf("%s: %s events, %s objects, at most %s alive, %s left\n\n", words_name(wish->trace),
           words_count(totals->events).text, words_count(totals->objects).text,
           words_bytes((double)totals->max_live_bytes).text,
           words_bytes((double)totals->left_bytes).text);
    case_print_stop(recorded);
    if (recorded->figures.step_count == 0) {
        puts("No steps in it: record with --every or --function, or let `ebb advise -o FILE` put\n"
             "some in. Without them there is nothing to gain.");
        return 0;
    }
    case_print_steps(recorded);
    int code = wish->no_replay ? 0 : say_replay(wish, recorded);
    putchar('\n');
    case_print_worst(recorded, PLACES_SHOWN);
    return code;
}

/* ---- the page */

/* A file in memory that children open by the number they inherit. */
static int memory_file(char name[FILE_NAME]) {
    int file = memfd_create("ebb-report", 0);
    snprintf(name, FILE_NAME, "/proc/self/fd/%d", file);
    return file;
}

static int run_python(const char *script, const char *figures, const char *json,
                      const char *html) {
    int status = 0;
    char *out; /* in one word, or the name "-x" would be an option */
    if (asprintf(&out, "--out=%s", html) < 0)
        return 127;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) { /* -E: PYTHONHOME and its likes are for a Python of the user's */
        if (json)
            execl("/usr/bin/python3", "python3", "-EB", script, "--figures", figures, out, "--json",
                  json, (char *)NULL);
        else
            execl("/usr/bin/python3", "python3", "-EB", script, "--figures", figures, out,
                  (char *)NULL);
        complain("/usr/bin/python3: %s", strerror(errno));
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    free(out);
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

static int draw(struct wish *wish, const struct recorded_case *recorded) {
    char figures[FILE_NAME], json[FILE_NAME], script[PLACE_MAX];
    struct churn_rows rows = {.count = 0};
    int code = EXIT_FAILED;
    int figures_file = memory_file(figures), json_file = memory_file(json);
    if (figures_file < 0 || json_file < 0) {
        complain("no memory: %s", strerror(errno));
        return code;
    }
    wish->churn.json = json;
    if (place_find(PLACE_REPORT, script) && figures_write(recorded, figures_file)) {
        code = wish->no_replay || !recorded->figures.step_count ? 0 : replay(wish, &rows);
        bool whole = rows.count > 0; /* churn that had no room for the file has ended with 2 */
        if (run_python(script, figures, whole ? json : NULL, wish->html) != 0)
            code = EXIT_FAILED;
    }
    close(figures_file);
    close(json_file);
    return code;
}

/* What comes through a pipe comes once, and whoever opened it again would wait for ever. */
static bool can_be_read_again(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISFIFO(status.st_mode))
        return true;
    return complain("%s: a pipe, and a replay reads the trace again (--no-replay does not)", path);
}

/* The page is neither the recording nor its list of places. */
static bool is_apart(const struct wish *wish) {
    char places[OUTPUT_PATH_MAX];
    return output_apart(wish->html, wish->trace) &&
           (!site_list_path(wish->trace, places, sizeof places) ||
            output_apart(wish->html, places));
}

int command_report(int argc, char **argv) {
    struct wish wish = {.churn = {.rounds = 3}};
    char found[CHURN_LIST_MAX];
    struct recorded_case recorded;
    if (!parse(&wish, argc, argv))
        return EXIT_BAD_INPUT;
    if (wish.help) {
        fputs(help_text, stdout);
        return 0;
    }
    if (!wish.no_replay && !can_be_read_again(wish.trace))
        return EXIT_BAD_INPUT;
    if (wish.html && !is_apart(&wish))
        return EXIT_BAD_INPUT;
    if (wish.html && !output_possible(wish.html))
        return EXIT_FAILED;
    if (!wish.churn.allocators && !wish.no_replay) {
        churn_find_allocators("ebb,glibc,jemalloc,mimalloc,tcmalloc", found);
        wish.churn.allocators = found;
    }
    wish.churn.trace = wish.trace;
    int code = case_read(&recorded, wish.trace);
    if (code)
        return code;
    code = wish.html ? draw(&wish, &recorded) : say_all(&wish, &recorded);
    case_free(&recorded);
    return code;
}
