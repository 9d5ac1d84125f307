// SPDX-License-Identifier: Apache-2.0
/*
 * progress.c - draws `[######....]  42 %  1:05 left  resnet18_train.full`.
 *
 * Drawn at most ten times a second, so that it costs the measured processes nothing. Where
 * standard error is no terminal, one plain line for each tenth.
 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 30, REDRAW_NS = 100000000 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void progress_begin(struct progress *progress, double total) {
    *progress = (struct progress){.total = total > 0 ? total : 1,
                                  .begin_ns = now_ns(),
                                  .terminal = isatty(STDERR_FILENO) == 1};
}

static unsigned seconds_left(const struct progress *progress) {
    double spent = (double)(now_ns() - progress->begin_ns) / 1e9;
    if (progress->done <= 0)
        return 0;
    return (unsigned)(spent * (progress->total - progress->done) / progress->done + 0.5);
}

static void draw_bar(const struct progress *progress, double share, const char *what) {
    char bar[BAR_WIDTH + 1];
    unsigned left = seconds_left(progress);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)(share * BAR_WIDTH));
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r\033[K[%s] %3.0f %%  %u:%02u left  %.40s", bar, share * 100, left / 60,
            left % 60, what);
}

static void say_line(struct progress *progress, double share) {
    int tenth = (int)(share * 10);
    if (tenth == progress->tenth)
        return;
    progress->tenth = tenth;
    fprintf(stderr, "churn: %d %% done, about %u s left\n", tenth * 10, seconds_left(progress));
}

void progress_step(struct progress *progress, double work, const char *what) {
    uint64_t now = now_ns();
    progress->done += work;
    double share = progress->done < progress->total ? progress->done / progress->total : 1;
    if (!progress->terminal) {
        say_line(progress, share);
    } else if (now - progress->shown_ns >= REDRAW_NS) {
        progress->shown_ns = now;
        draw_bar(progress, share, what);
    }
}

void progress_end(struct progress *progress) {
    if (progress->terminal)
        fputs("\r\033[K", stderr);
}
