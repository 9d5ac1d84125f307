// SPDX-License-Identifier: Apache-2.0
/*
 * churn_rows.c - runs `churn` as a program of its own: what it measures must not share a process
 * with anything else.
 */
#include "churn_rows.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../churn/allocator.h"
#include "../churn/table.h"
#include "command.h"
#include "complain.h"
#include "place.h"
#include "words.h"

static const char *const metrics[CHURN_METRICS] = {
    [CHURN_STEP_US] = "step_us",          [CHURN_STEP_LOW] = "step_us_low",
    [CHURN_STEP_HIGH] = "step_us_high",   [CHURN_PEAK] = "peak_over_base_bytes",
    [CHURN_FOOTPRINT] = "footprint_ratio", [CHURN_FAULTS] = "faults_per_step",
    [CHURN_CALLS] = "syscalls_per_step",
};

_Noreturn static void become(const char *churn, const struct churn_wish *wish, const char *tsv) {
    char rounds[16];
    const char *words[20];
    int count = 0, nowhere = open("/dev/null", O_WRONLY);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a replay takes minutes, and nobody would wait for it */
    words[count++] = "churn";
    words[count++] = "--as"; /* what it says is said of this command */
    words[count++] = complain_speaker();
    words[count++] = "--no-spike";
    words[count++] = "--traces";
    words[count++] = wish->trace;
    words[count++] = "--tsv";
    words[count++] = tsv;
    if (wish->allocators) {
        words[count++] = "--allocators";
        words[count++] = wish->allocators;
    }
    if (wish->rounds) {
        snprintf(rounds, sizeof rounds, "%d", wish->rounds);
        words[count++] = "--rounds";
        words[count++] = rounds;
    }
    if (wish->quick)
        words[count++] = "--quick";
    if (wish->json) {
        words[count++] = "--json";
        words[count++] = wish->json;
    }
    words[count] = NULL;
    if (nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO);
    execv(churn, (char *const *)(uintptr_t)words);
    _exit(127);
}

static struct churn_row *row_for(struct churn_rows *rows, const char *allocator) {
    for (int i = 0; i < rows->count; i++)
        if (strcmp(rows->row[i].allocator, allocator) == 0)
            return &rows->row[i];
    if (rows->count == CHURN_ALLOCATORS_MAX)
        return NULL;
    struct churn_row *row = &rows->row[rows->count++];
    snprintf(row->allocator, sizeof row->allocator, "%s", allocator);
    for (int i = 0; i < CHURN_METRICS; i++)
        row->value[i] = -1;
    return row;
}

static void take_line(struct churn_rows *rows, const char *line) {
    char bench[64], name[272], allocator[CHURN_NAME_MAX], metric[96];
    double value;
    if (sscanf(line, "%63[^\t]\t%271[^\t]\t%63[^\t]\t%95[^\t]\t%lf", bench, name, allocator,
               metric, &value) != 5)
        return;
    struct churn_row *row = row_for(rows, allocator);
    for (int i = 0; row && i < CHURN_METRICS; i++)
        if (strcmp(metric, metrics[i]) == 0)
            row->value[i] = value;
}

static bool take_file(struct churn_rows *rows, const char *path) {
    FILE *file = fopen(path, "r");
    char line[1024];
    while (file && fgets(line, sizeof line, file))
        take_line(rows, line);
    if (file)
        fclose(file);
    return rows->count > 0;
}

static int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

static bool refuse_allocator(const char *name, int length) {
    char known[CHURN_LIST_MAX] = "";
    for (int i = 0, used = 0; i < allocator_count && used < CHURN_LIST_MAX; i++)
        used += snprintf(known + used, (size_t)(CHURN_LIST_MAX - used), "%s%s", i ? "," : "",
                         allocators[i].name);
    return complain("--allocators: no such allocator: '%.*s', there are %s", length, name, known);
}

bool churn_take_allocators(const char *text, const char **list) {
    uint64_t taken = 0;
    for (const char *at = text;; at++) {
        int length = (int)strcspn(at, ","), number = allocator_find(at, length);
        if (number < 0)
            return refuse_allocator(at, length);
        if (taken >> number & 1)
            return complain("--allocators: '%.*s' is there twice", length, at);
        taken |= UINT64_C(1) << number;
        at += length;
        if (*at == '\0')
            break;
    }
    *list = text;
    return true;
}

void churn_find_allocators(const char *list, char found[CHURN_LIST_MAX]) {
    char path[ALLOCATOR_PATH_MAX];
    size_t used = 0;
    found[0] = '\0';
    for (const char *at = list; *at; at += *at == ',') {
        int length = (int)strcspn(at, ","), number = allocator_find(at, length);
        const char *package = allocators[number].package;
        if (package && !allocator_path(&allocators[number], path))
            complain("%.*s is not installed (Debian package %s): left out", length, at, package);
        else
            used += (size_t)snprintf(found + used, CHURN_LIST_MAX - used, "%s%.*s",
                                     used ? "," : "", length, at);
        at += length;
    }
}

bool churn_take_rounds(const char *text, int *rounds) {
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || number < 1 || number > 1000)
        return complain("--rounds: '%s' is no number from 1 to 1000", text);
    *rounds = (int)number;
    return true;
}

/* The rows pass through a file in memory, which churn opens by the number that it inherits. */
int churn_run(const struct churn_wish *wish, struct churn_rows *rows) {
    char churn[PLACE_MAX], tsv[64];
    struct stat status;
    rows->count = 0;
    if (stat(wish->trace, &status) != 0) {
        complain("%s: %s", wish->trace, strerror(errno));
        return EXIT_BAD_INPUT;
    }
    if (S_ISDIR(status.st_mode)) { /* churn takes all of it */
        complain("%s: a folder; name the traces in it", wish->trace);
        return EXIT_BAD_INPUT;
    }
    if (!place_find(PLACE_CHURN, churn))
        return EXIT_FAILED;
    int file = memfd_create("ebb-rows", 0);
    if (file < 0) {
        complain("no memory for rows: %s", strerror(errno));
        return EXIT_FAILED;
    }
    snprintf(tsv, sizeof tsv, "/proc/self/fd/%d", file);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become(churn, wish, tsv);
    int code = child > 0 ? wait_for(child) : 127;
    bool good = code < 2 && take_file(rows, tsv);
    close(file);
    if (good) /* churn has said who failed */
        return code == 0 ? 0 : EXIT_FAILED;
    if (code != EXIT_FAILED && code != EXIT_BAD_INPUT) /* of these it has said why */
        complain("%s: not replayed (%s ended with %d)", wish->trace, churn, code);
    return code == EXIT_BAD_INPUT ? EXIT_BAD_INPUT : EXIT_FAILED; /* churn's own is the same */
}

const struct churn_row *churn_row_of(const struct churn_rows *rows, const char *allocator) {
    for (int i = 0; i < rows->count; i++)
        if (strcmp(rows->row[i].allocator, allocator) == 0)
            return &rows->row[i];
    return NULL;
}

static void put_number(struct table *table, double value, int digits) {
    if (value < 0)
        table_cell(table, "-");
    else
        table_cell(table, "%.*f", digits, value);
}

static void put_row(struct table *table, const struct churn_row *row, double own) {
    double us = row->value[CHURN_STEP_US];
    double spread = row->value[CHURN_STEP_HIGH] - row->value[CHURN_STEP_LOW];
    table_row(table);
    table_cell(table, "%s", row->allocator);
    table_cell(table, "%s", us < 0 ? "-" : words_us(us).text);
    table_cell(table, us > 0 ? "%.0f %%" : "-", us > 0 ? 50 * spread / us : 0.0);
    table_cell(table, us > 0 && own > 0 ? "%.2f" : "-", us / own);
    table_cell(table, "%s", row->value[CHURN_PEAK] < 0
                                ? "-" : words_bytes(row->value[CHURN_PEAK]).text);
    put_number(table, row->value[CHURN_FOOTPRINT], 2);
    put_number(table, row->value[CHURN_FAULTS], 0);
    put_number(table, row->value[CHURN_CALLS], 0);
}

void churn_print(const struct churn_rows *rows) {
    struct table *table = malloc(sizeof *table);
    const struct churn_row *ebb = churn_row_of(rows, "ebb");
    if (!table)
        return;
    table_begin(table, "allocator|step|+-|over ebb|peak|footprint|faults|calls");
    for (int i = 0; i < rows->count; i++)
        put_row(table, &rows->row[i], ebb ? ebb->value[CHURN_STEP_US] : -1);
    table_print(table);
    free(table);
}
