// SPDX-License-Identifier: Apache-2.0
/* replay.c - ebb replay: traces with several allocators, a short table for each. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "churn_rows.h"
#include "command.h"
#include "complain.h"
#include "words.h"

static const char help_text[] =
    "usage: ebb replay [OPTION...] TRACE...\n\n"
    "Replays each trace with every allocator, in processes of their own, and prints a table:\n"
    "time of a step and its spread, the same over ebb's, peak of resident memory above the start,\n"
    "pages held over bytes alive, page faults and system calls in the median step.\n\n"
    "  --allocators LIST   comma separated: ebb,ebb-unplanned,glibc,glibc-tuned,jemalloc,\n"
    "                      jemalloc-tuned,mimalloc,tcmalloc (all that are installed but\n"
    "                      ebb-unplanned)\n"
    "  --rounds N          timed processes for each allocator, 1 to 1000 (3)\n"
    "  --quick             less of each trace\n"
    "  -h, --help          this text\n";

static bool parse(struct churn_wish *wish, bool *help, int argc, char **argv) {
    static const struct option known[] = {
        {"allocators", 1, NULL, 'a'}, {"rounds", 1, NULL, 'r'}, {"quick", 0, NULL, 'q'},
        {"help", 0, NULL, 'h'},       {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        switch (option) {
        case 'a':
            if (!churn_take_allocators(optarg, &wish->allocators))
                return false;
            break;
        case 'r':
            if (!churn_take_rounds(optarg, &wish->rounds))
                return false;
            break;
        case 'q': wish->quick = true; break;
        case 'h': *help = true; return true;
        default: return complain_of_option(option, argv, known);
        }
    }
    return optind < argc || complain("no trace (--help tells more)");
}

int command_replay(int argc, char **argv) {
    struct churn_wish wish = {.rounds = 3};
    bool help = false;
    int code = 0;
    if (!parse(&wish, &help, argc, argv))
        return EXIT_BAD_INPUT;
    if (help) {
        fputs(help_text, stdout);
        return 0;
    }
    for (int i = optind; i < argc; i++) {
        struct churn_rows rows;
        wish.trace = argv[i];
        int result = churn_run(&wish, &rows);
        if (result > code)
            code = result; /* whatever the order, bad input weighs more than what failed */
        if (rows.count == 0)
            continue;
        printf("%s\n", words_name(argv[i]));
        churn_print(&rows);
    }
    return code;
}
