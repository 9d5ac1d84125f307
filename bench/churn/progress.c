// SPDX-License-Identifier: Apache-2.0
/*
 * progress.c - draws `[######....]  42 %  1:05 left  resnet18_train.full`.
 *
 * Drawn at most ten times a second, so that it costs the measured processes nothing, and cut to the
 * terminal's width: of a line that went on in the next only the end could be taken back. Where
 * standard error is no terminal, or one that can take nothing back, one plain line for each tenth.
 */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/name.h"
#include "complain.h"

enum { BAR_WIDTH = 30, LINE_MAX_BYTES = 384, COLUMNS_USUAL = 80, REDRAW_NS = 100000000 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool can_draw(void) {
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && !(kind && strcmp(kind, "dumb") == 0);
}

void progress_begin(struct progress *progress, double total) {
    *progress = (struct progress){.total = total > 0 ? total : 1,
                                  .begin_ns = now_ns(),
                                  .terminal = can_draw()};
}

static unsigned seconds_left(const struct progress *progress) {
    double spent = (double)(now_ns() - progress->begin_ns) / 1e9;
    if (progress->done <= 0)
        return 0;
    return (unsigned)(spent * (progress->total - progress->done) / progress->done + 0.5);
}

static int terminal_columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                           : COLUMNS_USUAL;
}

/* Leaves what fits into so many columns, and no part of a character. All characters that may be two
 * columns wide have three bytes or more; some of those are narrow and take less than is thought. */
static void cut(char *text, int columns) {
    for (size_t bytes; *text; text += bytes) {
        bytes = name_utf8_bytes(text);
        columns -= bytes > 2 ? 2 : 1;
        if (bytes == 0 || columns < 0) {
            *text = '\0';
            return;
        }
    }
}

static void draw_bar(const struct progress *progress, double share, const char *what) {
    char bar[BAR_WIDTH + 1], line[LINE_MAX_BYTES];
    unsigned left = seconds_left(progress);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)(share * BAR_WIDTH));
    bar[BAR_WIDTH] = '\0';
    snprintf(line, sizeof line, "[%s] %3.0f %%  %u:%02u left  %s", bar, share * 100, left / 60,
             left % 60, what);
    cut(line, terminal_columns() - 1);
    fprintf(stderr, "\r\033[K%s", line);
}

static void say_line(struct progress *progress, double share) {
    int tenth = (int)(share * 10);
    if (tenth == progress->tenth)
        return;
    progress->tenth = tenth;
    complain("%d %% done, about %u s left", tenth * 10, seconds_left(progress));
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

void progress_wipe(const struct progress *progress) {
    if (progress->terminal)
        fputs("\r\033[K", stderr);
}

/* Sums that were rounded, and work that was given up, leave less than all of it done. */
void progress_end(struct progress *progress) {
    bool began = progress->done > 0;
    progress->done = progress->total;
    progress_wipe(progress);
    if (began && !progress->terminal)
        say_line(progress, 1);
}
