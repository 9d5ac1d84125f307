// SPDX-License-Identifier: Apache-2.0
/*
 * turn.c - turns of loops (see turn.h).
 *
 * Invariants: while a turn is awaited, scope_awaited is the last of the thread's entered scopes. If
 * it is without that it is a remnant, of a turn that ended without a block, or below a scope of the
 * program's; the next block removes it. A thread with a step is ready: it has a heap, and ends the
 * step when it ends. Where there is no memory for one of these there is no turn.
 *
 * A block may be asked for by the C library where a thread sets a value for a key: it keeps those
 * of the first keys in the thread, and begins an array for more of them, which it notes after that.
 * What the thread, to be ready, sets in the same array is lost then. So all values that are set as
 * a turn begins are of first keys, made when this library is loaded; else there are no turns.
 *
 * A handler of a signal may have turns of its own, and leave one that has begun: at any instruction
 * of a wait. So a step alone counts as a turn, whatever the state is, and the next block goes on in
 * its scope.
 */
#include "malloc/turn.h"

#include "base/error.h"
#include "step/seat.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#define SIGNAL_BYTES 8u /* of a sigset_t, as the kernel has it */
#define FIRST_KEYS 32u  /* whose values glibc has no array for */

struct scope scope_awaited = {.free = &scope_free_none};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ending;
static ebb_site *site;

enum state { NONE, AWAITED, BEGINNING, BEGUN };

/* Of each thread. */
static __thread struct own {
    const void *place, *frame; /* of the last wait that was no part of a turn, or a loop's */
    const void *inner_place, *inner_frame; /* of the last part of this turn */
    enum state state;
    unsigned parts;      /* of the turn so far */
    struct scope *scope; /* of the turn, if it has begun and there is memory */
    ebb_step step;       /* the same; lane is NULL: none */
    sigset_t signals;    /* that were blocked when it began */
    bool is_ready, has_none;
} own __attribute__((tls_model("initial-exec")));

/* ---- the end ---- */

static bool are_same(const sigset_t *signals, const sigset_t *others) {
    return memcmp(signals, others, SIGNAL_BYTES) == 0;
}

/*
 * A handler of a signal may jump away until signals are blocked: then all of it is left to do, and
 * nothing once they are let in again.
 * False, and nothing: other signals were blocked when the scope began, `in_wait`. This may be a
 * handler that has interrupted malloc().
 */
static bool end_step(bool in_wait) {
    sigset_t all, signals;
    int cancel, before = errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &signals);
    bool may_end = !in_wait || are_same(&signals, &own.signals);
    if (may_end) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        error_mute();
        (void)ebb_step_end(own.step);
        error_unmute();
        own.step.lane = NULL;
        own.state = NONE;
        own.scope = NULL;
        pthread_setcancelstate(cancel, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    errno = before;
    return may_end;
}

static bool end_turn(bool in_wait) {
    if (own.step.lane)
        return end_step(in_wait);
    own.state = NONE;
    return true;
}

void turn_end(void) {
    (void)end_turn(false);
}

/* From here it cannot be ended, see turn_before(). Its next block does, or a wait. */
static void forsake(void) {
    if (!own.step.lane)
        own.state = NONE;
    else if (own.scope && own.scope == here.scope)
        own.scope->over = true;
}

/* The thread ends. Turns in destructors that follow make it ready once more. */
static void leave(void *unused) {
    (void)unused;
    own.is_ready = false;
    turn_end();
}

/* ---- the beginning ---- */

/* The last key is the highest of these: no thread gives one back meanwhile. */
bool turn_prepare(void) {
    heap_make_key();
    seat_make_key();
    return pthread_key_create(&ending, leave) == 0 && ending < FIRST_KEYS;
}

static void prepare(void) {
    site = ebb_site_create(EBB_SITE_OPTIONS(.name = "turn", .scope = true));
}

static bool make_ready(void) {
    pthread_once(&once, prepare);
    own.is_ready = site && heap_own() && pthread_setspecific(ending, &own) == 0;
    return own.is_ready;
}

/* Each loop learns for itself: its place is the tag. */
static void begin_step(void) {
    int cancel, before = errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    error_mute();
    if (own.is_ready || make_ready())
        own.step = ebb_step_begin(site, (uint64_t)(uintptr_t)own.place);
    error_unmute();
    pthread_setcancelstate(cancel, NULL);
    errno = before;
}

struct scope *turn_begin(void) {
    here.scope = NULL; /* what follows may allocate */
    if (own.step.lane)
        return here.scope = own.scope;
    if (own.state != AWAITED)
        return NULL;
    own.state = BEGINNING;
    pthread_sigmask(SIG_SETMASK, NULL, &own.signals);
    begin_step();
    own.scope = here.scope;
    own.state = BEGUN;
    return own.scope;
}

/* ---- waits ---- */

/*
 * Deeper in the stack may be a handler of a signal, which has interrupted malloc(): nothing is done
 * there but to note something. Many waits later the loop may be another one, and what was taken
 * for its frame may have been a handler's, on a stack of its own: deeper ones count no more if they
 * come again.
 */
static bool is_part(const struct turn_wait *wait) {
    bool is_deeper = (uintptr_t)wait->frame < (uintptr_t)own.frame;
    if (own.parts < TURN_PARTS)
        return is_deeper || wait->peeks;
    return is_deeper && (wait->place != own.inner_place || wait->frame != own.inner_frame);
}

static void note_part(const struct turn_wait *wait) {
    own.inner_place = wait->place;
    own.inner_frame = wait->frame;
    if (own.parts < TURN_PARTS)
        own.parts++;
    else
        forsake();
}

/* While a turn begins, whoever waits is a handler, and this one turn is to begin. Who stands aside
 * has locks with which none can end or begin. */
void turn_before(struct turn_wait *wait) {
    bool is_any = own.state != NONE || own.step.lane;
    if (own.state == BEGINNING || here.away)
        return;
    if (is_any && is_part(wait)) {
        note_part(wait);
        return;
    }
    if (is_any && !end_turn(true)) {
        forsake();
        return;
    }
    wait->comes_again = wait->place == own.place && wait->frame == own.frame;
    own.place = wait->place;
    own.frame = wait->frame;
}

/* Handlers of signals may have waited meanwhile: the last wait is this one. */
void turn_after(const struct turn_wait *wait, ptrdiff_t result) {
    bool has_work = result > 0 || (result == 0 && wait->peeks);
    bool is_free = !here.scope || here.scope == &scope_awaited;
    if (!has_work || !is_free || !wait->comes_again || own.has_none)
        return;
    own.place = wait->place;
    own.frame = wait->frame;
    own.inner_place = own.inner_frame = NULL;
    own.parts = 0;
    own.state = AWAITED;
    here.scope = &scope_awaited;
}

void turn_never(void) {
    own.has_none = true;
}
