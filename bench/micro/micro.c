// SPDX-License-Identifier: Apache-2.0
/*
 * micro.c - the micro benchmarks: `ebb-micro [--quick] [--rounds N] [--cases LIST]
 * [--allocators LIST] [--tsv FILE]`.
 *
 * For each case every contestant gets a process of its own; they take turns, one round each,
 * forwards and backwards, so that whatever else the machine does meets all of them alike. The
 * first turn warms up and is thrown away. Rows (rows.h) go to standard output or to the file,
 * everything else to standard error. Exit codes: 0, also where a peer that is not installed was
 * left out; 1 if a process failed, which is named at the end, or the rows were lost; 2 if a word is
 * bad.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "contest.h"
#include "rows.h"
#include "serve.h"

#define ROUNDS ((size_t)9)
#define ROUNDS_QUICK ((size_t)3)
#define ROUNDS_MOST ((size_t)100)

_Static_assert(ROUNDS_MOST < CHILD_ROUNDS_MAX, "a child has room for them");

struct settings {
    bool quick;
    size_t rounds;          /* 0: as many as usual */
    const char *cases;      /* NULL: all */
    const char *allocators; /* NULL: all */
    const char *tsv;        /* NULL: standard output */
};

static int usage(void) {
    fprintf(stderr, "usage: ebb-micro [--quick] [--rounds N] [--cases LIST] [--allocators LIST] "
                    "[--tsv FILE]\ncases:");
    for (size_t i = 0; i < contest_count; i++)
        fprintf(stderr, " %s", contests[i].name);
    fprintf(stderr, "\nallocators:");
    for (size_t i = 0; i < contestant_count; i++)
        fprintf(stderr, " %s", contestants[i].name);
    fprintf(stderr, "\n");
    return 2;
}

static bool complain(const char *what, const char *value) {
    fprintf(stderr, "ebb-micro: %s: %s\n", what, value);
    return false;
}

static bool take_rounds(struct settings *settings, const char *text) {
    char *end;

    errno = 0;
    settings->rounds = strtoul(text, &end, 10);
    if (errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && settings->rounds > 0 &&
        settings->rounds <= ROUNDS_MOST)
        return true;
    return complain("--rounds: not a number from 1 to 100", text);
}

static bool is_case(const char *name) {
    return contest_find_case(name) != NULL;
}

static bool is_contestant(const char *name) {
    return contest_find_contestant(name) != NULL;
}

/* Whether the list has words, and all are names: another would be measured as nothing. */
static bool are_names(const char *list, bool (*is_name)(const char *name)) {
    char word[64];
    size_t length;
    bool some = false;

    for (const char *at = list; at[strspn(at, " ,")] != '\0'; at += length, some = true) {
        at += strspn(at, " ,");
        length = strcspn(at, " ,");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (!is_name(word))
            return complain("no such case or allocator", word);
        if (contest_lists(at + length, word))
            return complain("named twice", word);
    }
    return some || complain("a list without names", list);
}

static bool takes_part(const struct contest *contest, const struct contestant *contestant,
                       const struct settings *settings) {
    return contest_lists(settings->cases, contest->name) &&
           contest_lists(contest->who, contestant->name) &&
           contest_lists(settings->allocators, contestant->name);
}

/* Whether anybody takes part in a case. */
static bool is_something(const struct settings *settings) {
    for (size_t i = 0; i < contest_count; i++)
        for (size_t who = 0; who < contestant_count; who++)
            if (takes_part(&contests[i], &contestants[who], settings))
                return true;
    return complain("none of the allocators takes part in the cases", settings->allocators);
}

/* Takes one option and its value; how many words it was, 0 after a message. */
static int take_option(struct settings *settings, char **words) {
    if (strcmp(words[0], "--quick") == 0) {
        settings->quick = true;
        return 1;
    }
    if (words[1] == NULL) {
        complain("no option, or one without its value", words[0]);
        return 0;
    }
    if (strcmp(words[0], "--rounds") == 0)
        return take_rounds(settings, words[1]) ? 2 : 0;
    if (strcmp(words[0], "--cases") == 0)
        settings->cases = words[1];
    else if (strcmp(words[0], "--allocators") == 0)
        settings->allocators = words[1];
    else if (strcmp(words[0], "--tsv") == 0)
        settings->tsv = words[1];
    else {
        complain("no such option", words[0]);
        return 0;
    }
    return 2;
}

/* 0, or -1 after a message if the words make no sense. */
static int read_settings(struct settings *settings, char **words) {
    while (*words != NULL) {
        int taken = take_option(settings, words);

        if (taken == 0)
            return -1;
        words += taken;
    }
    if (settings->rounds == 0)
        settings->rounds = settings->quick ? ROUNDS_QUICK : ROUNDS;
    if (settings->cases != NULL && !are_names(settings->cases, is_case))
        return -1;
    if (settings->allocators != NULL && !are_names(settings->allocators, is_contestant))
        return -1;
    return is_something(settings) ? 0 : -1;
}

/* One that is not installed is left out, and no failure. */
static void start_children(struct child *children, const struct contest *contest,
                           const struct settings *settings, bool *failed) {
    for (size_t i = 0; i < contestant_count; i++)
        if (takes_part(contest, &contestants[i], settings))
            failed[i] = child_start(&children[i], &contestants[i], contest->name,
                                    settings->quick) == CHILD_FAILED;
}

static void take_turn(struct child *children, const char *case_name, size_t turn, bool *failed) {
    for (size_t i = 0; i < contestant_count; i++) {
        size_t who = turn % 2 == 0 ? i : contestant_count - 1 - i;

        if (children[who].pid > 0 && child_round(&children[who], turn == 0) != 0) {
            fprintf(stderr, "LEFT OUT: %s %s: its process ended in turn %zu\n", case_name,
                    contestants[who].name, turn);
            child_end(&children[who]);
            children[who].series_count = 0;
            failed[who] = true;
        }
    }
}

/* Marks in `failed` the contestants whose process was to be there and was not, or ended. */
static void run_contest(FILE *out, const struct contest *contest, const struct settings *settings,
                        bool *failed) {
    struct child *children = (struct child *)calloc(contestant_count, sizeof *children);

    if (children == NULL)
        abort();
    fprintf(stderr, "micro: %s\n", contest->name);
    start_children(children, contest, settings, failed);
    for (size_t turn = 0; turn <= settings->rounds; turn++)
        take_turn(children, contest->name, turn, failed);
    for (size_t i = 0; i < contestant_count; i++)
        child_end(&children[i]);
    rows_write_case(out, contest, children);
    free(children);
}

/* True if none has failed; those that have are named once more, since much was said since. */
static bool none_failed(const bool *failed) {
    bool none = true;

    for (size_t i = 0; i < contest_count * contestant_count; i++)
        if (failed[i]) {
            fprintf(stderr, "ebb-micro: failed: %s %s\n", contests[i / contestant_count].name,
                    contestants[i % contestant_count].name);
            none = false;
        }
    return none;
}

/* False if a process failed. */
static bool run_contests(FILE *out, const struct settings *settings) {
    bool *failed = (bool *)calloc(contest_count * contestant_count, sizeof *failed);
    bool none;

    if (failed == NULL)
        abort();
    for (size_t i = 0; i < contest_count; i++)
        if (contest_lists(settings->cases, contests[i].name))
            run_contest(out, &contests[i], settings, &failed[i * contestant_count]);
    none = none_failed(failed);
    free(failed);
    return none;
}

/* Some of it may have been lost before, with rows of a case that went before the last. */
static bool is_written(FILE *out) {
    bool lost = ferror(out) != 0;

    if (fclose(out) == 0 && !lost)
        return true;
    fprintf(stderr, "ebb-micro: not all rows could be written\n");
    return false;
}

int main(int count, char **words) {
    struct settings settings = {0};
    FILE *out = stdout;
    bool good;

    if (count == 5 && strcmp(words[1], "--serve") == 0)
        return serve(words[2], words[3], strcmp(words[4], "quick") == 0);
    if (read_settings(&settings, words + 1) != 0)
        return usage();
    signal(SIGPIPE, SIG_IGN);
    if (settings.tsv != NULL && (out = fopen(settings.tsv, "w")) == NULL) {
        fprintf(stderr, "ebb-micro: cannot write %s\n", settings.tsv);
        return 1;
    }
    good = run_contests(out, &settings);
    return is_written(out) && good ? 0 : 1;
}
