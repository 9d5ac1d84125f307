// SPDX-License-Identifier: Apache-2.0
/*
 * budget.c - ebb budget: fails if a step of a recorded program costs more than it may.
 *
 *     ebb budget [--bytes N] [--allocations N] [--promoted N] [--reserved N] [--site KIND] TRACE...
 *
 * Each kind of region of a trace is a site; the trace is replayed once. Bytes and allocations are
 * counted as the trace has them; of promoted bytes and pages the sites tell, and only where they
 * are above the budget. For continuous integration: record the program, check the trace.
 *
 * Exit codes: 0 no step is over; 1 one is; 2 the arguments or a trace are bad; 3 there was no
 * memory, or the output was lost. The highest of all traces; the others are still replayed.
 */
#include <ebb/ebb.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../churn/compiler.h"
#include "base/name.h"
#include "complain.h"
#include "options.h"
#include "play.h"
#include "said.h"

enum { EXIT_OVER = 1, EXIT_BAD_INPUT = 2, EXIT_UNKNOWN = 3, SHOWN_MOST = 10, NAME_BYTES = 4096 };

/* One trace. */
struct check {
    const struct options *options;
    const char *name; /* as a line can show it */
    const struct script *script;
    ebb_site *sites[SCRIPT_KINDS_MAX];
    uint64_t ended[SCRIPT_KINDS_MAX]; /* steps, by kind */
    struct ebb_churn_budget told;     /* by its site of the step that ends; 0: nothing is over */
    uint64_t over;                    /* steps */
};

/* Comes just before the step's on_end(). */
static void on_excess(void *context, const struct ebb_churn_excess *excess) {
    struct check *check = context;
    check->told = excess->spent;
}

static bool has_budget(const struct check *check, uint32_t kind) {
    const char *chosen = check->options->kind;
    return !chosen || strcmp(check->script->kind[kind], chosen) == 0;
}

struct bound {
    const char *what;
    uint64_t spent, most; /* most 0: no bound */
};

enum { BOUNDS = 4 };

static bool is_passed(const struct bound *bound) {
    return bound->most && bound->spent > bound->most;
}

/* One sentence with all that is too high. */
static void print_excess(const struct check *check, uint32_t kind, const struct bound *bounds) {
    const char *before = "";
    printf("%s: step %" PRIu64 " of '%s': ", check->name, check->ended[kind],
           check->script->kind[kind]);
    for (int i = 0; i < BOUNDS; i++) {
        if (!is_passed(&bounds[i]))
            continue;
        printf("%s%" PRIu64 " %s over %" PRIu64, before, bounds[i].spent, bounds[i].what,
               bounds[i].most);
        before = ", ";
    }
    putchar('\n');
}

static void judge(struct check *check, uint32_t kind, const struct ebb_churn_budget *asked) {
    const struct ebb_churn_budget *budget = &check->options->budget, *told = &check->told;
    const struct bound bounds[BOUNDS] = {
        {"bytes", asked->bytes, budget->bytes},
        {"allocations", asked->allocations, budget->allocations},
        {"promoted bytes", told->promoted_bytes, budget->promoted_bytes},
        {"reserved bytes", told->reserved_bytes, budget->reserved_bytes},
    };
    bool passed = false;
    for (int i = 0; i < BOUNDS; i++)
        passed |= is_passed(&bounds[i]);
    if (passed && check->over++ < SHOWN_MOST)
        print_excess(check, kind, bounds);
}

static void on_end(void *context, uint32_t kind, const struct ebb_churn_budget *asked) {
    struct check *check = context;
    if (has_budget(check, kind))
        judge(check, kind, asked);
    check->told = (struct ebb_churn_budget){0};
    check->ended[kind]++;
}

static bool make_sites(struct check *check) {
    const struct ebb_churn_budget *budget = &check->options->budget, none = {0},
        pages = {.promoted_bytes = budget->promoted_bytes,
                 .reserved_bytes = budget->reserved_bytes};
    for (uint32_t kind = 0; kind < check->script->kind_count; kind++) {
        check->sites[kind] = ebb_site_create(EBB_SITE_OPTIONS(
                .name = check->script->kind[kind],
                .budget = has_budget(check, kind) ? pages : none,
                .on_excess = on_excess, .context = check));
        if (!check->sites[kind])
            return false;
    }
    return true;
}

/* Steps that have a budget. */
static uint64_t count_steps(const struct check *check) {
    uint64_t steps = 0;
    for (uint32_t kind = 0; kind < check->script->kind_count; kind++)
        steps += has_budget(check, kind) ? check->ended[kind] : 0;
    return steps;
}

static int check_script(struct check *check) {
    const struct stage stage = {.sites = check->sites, .on_end = on_end, .context = check};
    int code = EXIT_UNKNOWN;
    if (!make_sites(check) || !play(check->script, &stage))
        complain("%s: %s", check->name, ebb_last_error_text());
    else
        code = check->over ? EXIT_OVER : EXIT_SUCCESS;
    if (check->over > SHOWN_MOST)
        printf("%s: and %" PRIu64 " more\n", check->name, check->over - SHOWN_MOST);
    if (code != EXIT_UNKNOWN)
        printf("%s: %" PRIu64 " steps, %" PRIu64 " over the budget\n", check->name,
               count_steps(check), check->over);
    for (uint32_t kind = 0; kind < check->script->kind_count; kind++)
        ebb_site_destroy(check->sites[kind]);
    return code;
}

static bool knows_kind(const struct script *script, const char *kind) {
    for (uint32_t i = 0; i < script->kind_count; i++)
        if (!kind || strcmp(script->kind[i], kind) == 0)
            return true;
    return false;
}

static int refuse_kind(const struct check *check) {
    uint32_t kinds = check->script->kind_count, shown = kinds < SHOWN_MOST ? kinds : SHOWN_MOST;
    char list[SHOWN_MOST * (TRACE_WORD_MAX + 2) + 32] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < shown; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 check->script->kind[i]);
    if (shown < kinds)
        snprintf(list + used, sizeof list - used, " and %" PRIu32 " more", kinds - shown);
    complain("%s: --site: no region of this kind, there are %s", check->name, list);
    return EXIT_BAD_INPUT;
}

static int check_trace(struct check *check, const struct ebb_trace *trace) {
    struct compiled compiled;
    char fault[COMPILER_ERROR_MAX];
    int code;
    int result = compiler_run(trace, &compiled, fault);
    if (result != 0) {
        complain("%s: %s", check->name, fault);
        return result == COMPILER_NO_ROOM ? EXIT_UNKNOWN : EXIT_BAD_INPUT;
    }
    check->script = compiled.script;
    if (knows_kind(check->script, check->options->kind))
        code = check_script(check);
    else
        code = refuse_kind(check);
    compiled_free(&compiled);
    return code;
}

static int check_file(const struct options *options, const char *path) {
    char plain[NAME_BYTES];
    struct trace_error error;
    struct ebb_trace *trace = trace_read(path, &error);
    name_copy(plain, sizeof plain, path);
    name_make_plain(plain);
    if (!trace) {
        complain("%s: %s (%s)", plain, error.text, trace_error_name(error.code));
        return error.code == TRACE_ERROR_MEMORY ? EXIT_UNKNOWN : EXIT_BAD_INPUT;
    }
    const char *slash = strrchr(plain, '/');
    struct check check = {.options = options, .name = slash ? slash + 1 : plain};
    int code = check_trace(&check, trace);
    trace_free(trace);
    return code;
}

static int run(int argc, char **argv) {
    struct options options;
    int worst = EXIT_SUCCESS;
    if (options_parse(&options, argc, argv) != 0)
        return EXIT_BAD_INPUT;
    if (options.help)
        options_help();
    for (int i = 0; i < options.path_count && !options.help; i++) {
        int code = check_file(&options, options.paths[i]);
        worst = code > worst ? code : worst;
    }
    return worst;
}

int main(int argc, char **argv) {
    complain_as("ebb budget");
    said_begin();
    return said_end(run(argc, argv), EXIT_UNKNOWN, complain_speaker());
}
