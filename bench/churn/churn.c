// SPDX-License-Identifier: Apache-2.0
/*
 * churn.c - the churn benchmark: recorded programs replayed against several allocators.
 *
 *     churn --traces DIR [--allocators LIST] [--rounds N] [--quick] [--tsv FILE] [--json FILE] ...
 *
 * Reads and compiles the traces, runs every one of them with every allocator in processes of
 * their own (churn-replay, beside this program), prints tables and writes files. What each metric
 * means is in docs/benchmarking.md.
 *
 * Exit codes: 0 all is well; 1 something failed, named at the end, the rest was measured; 2 the
 * arguments, the folder, the only trace or a named file are bad, or nothing could be measured, or
 * memory ran out, or a file could not be written. With 2 the files of a run before are as they
 * were, but for one that could be written where the other could not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "allocator.h"
#include "bench.h"
#include "complain.h"
#include "derive.h"
#include "folder.h"
#include "json.h"
#include "output.h"
#include "rounds.h"
#include "said.h"
#include "summary.h"
#include "tsv.h"

enum { EXIT_SOME_FAILED = 1, EXIT_BAD_INPUT = 2 };

/* Takes out allocators that this machine does not have; -1 if the user asked for one by name. */
static int check_allocators(struct options *options) {
    int kept = 0, missing = 0;
    char path[ALLOCATOR_PATH_MAX];
    for (int nth = 0; nth < options->allocator_count; nth++) {
        const struct allocator *allocator = &allocators[options->allocator[nth]];
        if (allocator_path(allocator, path)) {
            options->allocator[kept++] = options->allocator[nth];
            continue;
        }
        missing++;
        complain("%s: %s not found (%s%s)%s", allocator->name, allocator->library,
                 allocator->package ? "Debian package " : "it belongs beside this program",
                 allocator->package ? allocator->package : "",
                 options->chosen ? "" : ": left out");
    }
    options->allocator_count = kept;
    return (missing && options->chosen) || kept == 0 ? -1 : 0;
}

/* Rows are told apart by the name alone: the figures of two traces would be mixed. What cannot be
 * replayed has no figures. */
static void refuse_second(struct bench *bench, struct workload *workload) {
    if (!workload->fault[0] && strcmp(workload->id, WORKLOAD_SPIKE_ID) == 0)
        snprintf(workload->fault, sizeof workload->fault,
                 "the synthetic trace is called %s in the rows", workload->id);
    for (struct workload *other = bench->workload; other < workload; other++)
        if (!other->fault[0] && !workload->fault[0] && strcmp(other->id, workload->id) == 0)
            snprintf(workload->fault, sizeof workload->fault,
                     "another trace is called %s in the rows, too", workload->id);
}

static bool is_apart(const char *output, const char *other) {
    return !output || !other || !output_is_one_file(output, other) ||
           complain("%s: is %s, too", output, other);
}

/* Nothing is written over a trace. */
static bool traces_are_apart(const struct options *options, const struct folder *folder) {
    bool apart = true;
    for (int i = 0; apart && i < folder->count; i++)
        apart = is_apart(options->tsv, folder->path[i]) &&
                is_apart(options->json, folder->path[i]);
    return apart;
}

/* The traces that are to be replayed. -1 after a message; then there is nothing to be freed. */
static int list_traces(struct folder *folder, const struct options *options) {
    if (folder_list(folder, options->traces) != 0)
        return -1;
    if (traces_are_apart(options, folder))
        return 0;
    folder_free(folder);
    return -1;
}

static int read_workloads(struct bench *bench) {
    struct folder folder;
    if (list_traces(&folder, &bench->options) != 0)
        return -1;
    int room = folder.count + 1;
    bench->workload = calloc((size_t)room, sizeof *bench->workload);
    bench->failure =
        calloc((size_t)room * OPTIONS_ALLOCATORS_MAX, sizeof *bench->failure);
    for (int i = 0; bench->workload && bench->failure && i < folder.count; i++) {
        struct workload *workload = &bench->workload[bench->workload_count++];
        workload_read(workload, folder.path[i], bench->options.quick);
        refuse_second(bench, workload);
        if (workload->fault[0])
            complain("%s: %s", folder.path[i], workload->fault);
    }
    folder_free(&folder);
    return bench->workload && bench->failure ? 0 : (complain("out of memory"), -1);
}

/* Each trace keeps its script open, and a folder may hold more than a process has usually. */
static void raise_limit_of_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int count_good(const struct bench *bench) {
    int good = 0;
    for (int i = 0; i < bench->workload_count; i++)
        good += bench->workload[i].fault[0] == '\0';
    return good;
}

static bool anything_failed(const struct bench *bench) {
    for (int i = 0; i < bench->workload_count; i++)
        for (int nth = 0; nth < bench->options.allocator_count; nth++)
            if (*bench_failure(bench, i, nth))
                return true;
    return count_good(bench) < bench->workload_count;
}

static int fail(const char *why) {
    complain("%s", why);
    return EXIT_BAD_INPUT;
}

/* Replays all; returns an exit code. */
static int replay(struct bench *bench) {
    raise_limit_of_files();
    if (check_allocators(&bench->options) != 0 || read_workloads(bench) != 0)
        return EXIT_BAD_INPUT;
    if (count_good(bench) == 0) /* of one it was said why */
        return bench->workload_count == 1 ? EXIT_BAD_INPUT
                                          : fail("no trace that could be replayed");
    if (bench->options.touch && bench->options.spike)
        workload_make_spike(&bench->workload[bench->workload_count++]);
    rounds_run(bench);
    if (!samples_close(&bench->samples) || !derive_rows(bench) || !target_judge(bench))
        return fail("out of memory");
    if (bench->samples.row_count == 0)
        return fail("nothing could be measured");
    summary_print(bench);
    return anything_failed(bench) ? EXIT_SOME_FAILED : EXIT_SUCCESS;
}

/* Nor over what is called the traces, even if nothing is replayed; and both files are not one, but
 * where they are thrown away. */
static bool outputs_are_apart(const struct options *options) {
    bool lost = options->tsv && strcmp(options->tsv, "/dev/null") == 0;
    return is_apart(options->tsv, options->traces) && is_apart(options->json, options->traces) &&
           (lost || is_apart(options->json, options->tsv));
}

/* A replay takes minutes: what would make them vain is found out before. */
static bool check_files(struct bench *bench) {
    const struct options *options = &bench->options;
    return outputs_are_apart(options) &&
           (!options->add_rows || tsv_import(bench, options->add_rows) == 0) &&
           (!options->tsv || output_possible(options->tsv)) &&
           (!options->json || output_possible(options->json));
}

/* One is written even if the other cannot be. Links may have led both to what was not there. */
static int write_files(const struct bench *bench) {
    const struct options *options = &bench->options;
    bool rows = !options->tsv || tsv_write(bench, options->tsv) == 0;
    bool all = !options->json ||
               (outputs_are_apart(options) && json_write(bench, options->json) == 0);
    return rows && all ? EXIT_SUCCESS : EXIT_BAD_INPUT;
}

static void free_bench(struct bench *bench) {
    for (int i = 0; i < bench->workload_count; i++) {
        workload_free(&bench->workload[i]);
        for (int nth = 0; nth < OPTIONS_ALLOCATORS_MAX; nth++)
            free(*bench_failure(bench, i, nth));
    }
    for (int i = 0; i < bench->imported_count; i++)
        free(bench->imported[i].bench);
    free(bench->workload);
    free(bench->failure);
    free(bench->target);
    free(bench->imported);
    samples_free(&bench->samples);
}

static int run(int argc, char **argv) {
    static struct bench bench;
    if (options_parse(&bench.options, argc, argv) != 0)
        return EXIT_BAD_INPUT;
    if (bench.options.help) {
        options_help();
        return EXIT_SUCCESS;
    }
    machine_describe(&bench.machine);
    int code = !check_files(&bench)    ? EXIT_BAD_INPUT
               : bench.options.replay ? replay(&bench)
                                      : EXIT_SUCCESS;
    if (code != EXIT_BAD_INPUT) {
        int written = write_files(&bench);
        code = written ? written : code;
    }
    free_bench(&bench);
    return code;
}

int main(int argc, char **argv) {
    complain_as("churn");
    said_begin();
    int code = run(argc, argv);
    return said_end(code, EXIT_SOME_FAILED, complain_speaker());
}
