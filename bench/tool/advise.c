// SPDX-License-Identifier: Apache-2.0
/*
 * advise.c - ebb advise: where regions could begin and end, and what would have to stay out.
 *
 * A trace with steps is judged as it is; in one without, or with --search, period.h looks for them.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "brief.h"
#include "case.h"
#include "command.h"
#include "complain.h"
#include "mark.h"
#include "output.h"
#include "period.h"
#include "site_list.h"
#include "words.h"

enum { PLACES_SHOWN = 12, PLACE_SHOWN = 64 };

/* Below the one, of the bytes of steps those that die within, a region is not worth it; below the
 * other, of all bytes those of steps, it gains little. In percent, as what is worth a line. */
static const double WORTH_IT = 60, WORTH_MUCH = 10, WORTH_A_LINE = 2;

struct wish {
    const char *trace, *output;
    bool search, help;
};

static const char help_text[] =
    "usage: ebb advise [OPTION...] TRACE\n\n"
    "Says what would have died with its step, what would have survived, and who asked for it.\n"
    "Where the program has no steps, finds the allocation with which each of them could begin.\n\n"
    "  --search            look for steps even if the trace has some\n"
    "  -o, --output FILE   write the trace again with the steps that were found; if it has steps\n"
    "                      of its own, only with --search\n"
    "  -h, --help          this text\n";

static bool parse(struct wish *wish, int argc, char **argv) {
    static const struct option known[] = {{"search", 0, NULL, 's'},
                                          {"output", 1, NULL, 'o'},
                                          {"help", 0, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, ":ho:", known, NULL)) != -1;) {
        switch (option) {
        case 's': wish->search = true; break;
        case 'o': wish->output = optarg; break;
        case 'h': wish->help = true; return true;
        default: return complain_of_option(option, argv, known);
        }
    }
    if (wish->output && !*wish->output)
        return complain("-o: a file without a name");
    if (optind + 1 != argc)
        return complain("exactly one trace is wanted, not %d", argc - optind);
    wish->trace = argv[optind];
    return true;
}

static const char *function_of(uint8_t op) {
    switch (op) {
    case TRACE_CALLOC: return "calloc";
    case TRACE_ALIGNED: return "aligned allocation";
    case TRACE_REALLOC: return "realloc";
    default: return "malloc";
    }
}

static void say_verdict(const struct fate *fate, uint64_t all_bytes) {
    double died = percent(fate->died.bytes, fate->born.bytes);
    double own = percent(fate->born.bytes, all_bytes);
    if (fate->born.bytes == 0) {
        puts("  Not worth a region: no bytes are born within.");
        return;
    }
    if (died < WORTH_IT) {
        printf("  Not worth a region: only %s of the bytes die within.\n",
               words_share(fate->died.bytes, fate->born.bytes, 1).text);
        return;
    }
    printf("  A region there would end %s of the bytes and %s of the blocks at once.\n",
           words_share(fate->died.bytes, fate->born.bytes, 1).text,
           words_share(fate->died.blocks, fate->born.blocks, 1).text);
    if (own < WORTH_MUCH)
        printf("  It would gain little: these steps have %s of all bytes.\n",
               words_share(fate->born.bytes, all_bytes, 2).text);
}

/* Of steps, among `all_bytes` within and outside of steps. */
static void say_fate(const struct fate *fate, uint64_t all_bytes) {
    double next = percent(fate->next.bytes, fate->born.bytes);
    double never = percent(fate->never.bytes, fate->born.bytes);
    say_verdict(fate, all_bytes);
    if (next >= WORTH_A_LINE)
        printf("  %s of the bytes die in the next step: a ring of one step (`ring` of\n"
               "  ebb_site_options), or a region that begins where they are freed, would end them, "
               "too.\n",
               words_share(fate->next.bytes, fate->born.bytes, 1).text);
    if (never >= WORTH_A_LINE)
        printf("  %s of the bytes never end: allocate them outside, or promote them.\n",
               words_share(fate->never.bytes, fate->born.bytes, 1).text);
}

static void say_outside(struct amount outside, uint64_t all_bytes) {
    if (outside.bytes)
        printf("Outside of steps: %s blocks of %s, %s of all bytes.\n",
               words_count(outside.blocks).text, words_bytes((double)outside.bytes).text,
               words_share(outside.bytes, all_bytes, 1).text);
}

static void say_anchor(const struct recorded_case *recorded, const struct anchor *anchor) {
    const char *name = recorded->places.name[anchor->place];
    char brief[PLACE_SHOWN], size[WORDS_MAX + sizeof " bytes"] = "any size";
    if (!anchor->any_size)
        snprintf(size, sizeof size, "%s bytes", words_count(anchor->bytes).text);
    brief_place(brief, sizeof brief, *name ? name : "unknown");
    printf("A step begins with %s of %s by %s,\n"
           "on thread %u, every %.0f events (+- %.0f %%), %u times.\n",
           function_of(anchor->op), size, brief,
           anchor->thread, anchor->events, 100 * anchor->spread, anchor->count);
    if (!recorded->places.sites)
        puts("  Recorded with --sites, the place would have a name.");
}

static void say_found(const struct anchor *anchor) {
    uint64_t all_bytes = anchor->fate.born.bytes + anchor->outside.bytes;
    say_fate(&anchor->fate, all_bytes);
    say_outside(anchor->outside, all_bytes);
}

static int search(const struct wish *wish, const struct recorded_case *recorded) {
    struct anchor anchor;
    int code = 0;
    if (!period_find(&anchor, recorded->trace, &recorded->places))
        return EXIT_FAILED;
    if (anchor.count == 0) {
        printf("%s: no steps, and no allocation that comes again at least %d times evenly.\n",
               words_name(wish->trace), PERIOD_LEAST);
        if (wish->output && !complain("%s is not written: no steps were found", wish->output))
            code = EXIT_FAILED;
    } else {
        const struct mark mark = {recorded->trace, &recorded->places, &anchor, wish->trace,
                                  wish->output};
        say_anchor(recorded, &anchor);
        if (!wish->output) /* else it is said of the steps that are written */
            say_found(&anchor);
        if (wish->output && !mark_write(&mark))
            code = EXIT_FAILED;
        else if (wish->output)
            printf("  %s has these steps, as regions `advised`.\n", words_name(wish->output));
    }
    period_free(&anchor);
    return code;
}

static void judge(const struct recorded_case *recorded) {
    const struct figures *figures = &recorded->figures;
    uint64_t all_bytes = figures->all.born.bytes + figures->outside.bytes;
    case_print_steps(recorded);
    putchar('\n');
    for (uint32_t i = 0; i < recorded->trace->kinds.count; i++)
        if (case_steps(recorded, (int)i)) {
            printf("Steps `%s`:\n", recorded->trace->kinds.word[i]);
            say_fate(&figures->kind[i], all_bytes);
        }
    say_outside(figures->outside, all_bytes);
    putchar('\n');
    case_print_worst(recorded, PLACES_SHOWN);
}

/* A trace may be written over together with its list of places, and not one of them alone. */
static bool is_apart(const struct wish *wish) {
    char from[OUTPUT_PATH_MAX], to[OUTPUT_PATH_MAX];
    if (!site_list_path(wish->trace, from, sizeof from) ||
        !site_list_path(wish->output, to, sizeof to))
        return complain("%s, %s: too long a name", wish->trace, wish->output);
    if (access(from, F_OK) != 0)
        return true;
    if (output_is(wish->output, wish->trace))
        return output_is(to, from) || output_apart(wish->output, wish->trace);
    return output_apart(wish->output, from) && output_apart(to, from);
}

int command_advise(int argc, char **argv) {
    struct wish wish = {0};
    struct recorded_case recorded;
    if (!parse(&wish, argc, argv))
        return EXIT_BAD_INPUT;
    if (wish.help) {
        fputs(help_text, stdout);
        return 0;
    }
    if (wish.output && (!site_list_spares(wish.output) || !is_apart(&wish)))
        return EXIT_BAD_INPUT;
    if (wish.output && (!site_list_allowed(wish.output) || !output_possible(wish.output)))
        return EXIT_FAILED;
    int code = case_read(&recorded, wish.trace);
    if (code)
        return code;
    case_print_stop(&recorded);
    if (recorded.figures.step_count && !wish.search) {
        judge(&recorded);
        if (wish.output && !complain("%s is not written: %s has steps (--search looks for others)",
                                     wish.output, wish.trace))
            code = EXIT_FAILED;
    } else {
        code = search(&wish, &recorded);
    }
    case_free(&recorded);
    if (code || !wish.output)
        return code;
    if (case_read(&recorded, wish.output)) /* the steps may make it longer than a trace may be */
        return EXIT_FAILED;
    putchar('\n'); /* what the steps that were found would be like */
    judge(&recorded);
    case_free(&recorded);
    return 0;
}
