// SPDX-License-Identifier: Apache-2.0
/*
 * closed.c - a row of closed trays (see closed.h).
 *
 * Invariant: a tray in the row is nobody's. The lock is held for a moment only, and no other is
 * taken meanwhile. A tray that the system does not open again goes back into the row, or is lost,
 * and counted, where there is no room; one that it does not close waits in the row all the same,
 * and loses its pages.
 */
#include "malloc/closed.h"

#include "base/os.h"

#include <pthread.h>

/* The oldest at `first`. */
static struct row {
    pthread_mutex_t lock;
    struct tray *trays[CLOSED_MOST];
    unsigned first, count;
    unsigned lost; /* closed for ever */
} row = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* False: there is no room. */
static bool append(struct tray *tray) {
    pthread_mutex_lock(&row.lock);
    bool fits = row.count < CLOSED_MOST;
    if (fits)
        row.trays[(row.first + row.count++) % CLOSED_MOST] = tray;
    pthread_mutex_unlock(&row.lock);
    return fits;
}

static struct tray *remove_oldest(unsigned least) {
    struct tray *tray = NULL;
    pthread_mutex_lock(&row.lock);
    if (row.count && row.count >= least) {
        tray = row.trays[row.first];
        row.first = (row.first + 1) % CLOSED_MOST;
        row.count--;
    }
    pthread_mutex_unlock(&row.lock);
    return tray;
}

static void lose(void) {
    pthread_mutex_lock(&row.lock);
    row.lost++;
    pthread_mutex_unlock(&row.lock);
}

static bool opens(struct tray *tray) {
    return os.reopen(tray, TRAY_BYTES) == 0;
}

struct tray *closed_take(unsigned least) {
    struct tray *tray = remove_oldest(least);
    if (!tray || opens(tray))
        return tray;
    if (!append(tray))
        lose();
    return NULL;
}

void closed_give(struct tray *tray) {
    if (os.shut(tray, TRAY_BYTES) != 0)
        (void)os.give_back(tray, TRAY_BYTES);
    while (!append(tray)) {
        struct tray *oldest = remove_oldest(CLOSED_MOST);
        if (oldest && opens(oldest))
            tray_give(oldest);
        else if (oldest)
            lose();
    }
}

unsigned closed_count(void) {
    pthread_mutex_lock(&row.lock);
    unsigned count = row.count + row.lost;
    pthread_mutex_unlock(&row.lock);
    return count;
}

void closed_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&row.lock);
}
