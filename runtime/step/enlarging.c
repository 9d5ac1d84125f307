// SPDX-License-Identifier: Apache-2.0
/*
 * enlarging.c - what larger plans are worth (see enlarging.h), a pure function of what it is told.
 *
 * A larger plan, or a look for a longer one, costs about what LEARN_OUTGROWN steps miss that are
 * served nothing. So after the first few it has to be missed before the next.
 */
#include "step/enlarging.h"

void enlarging_start(struct enlarging *enlarging) {
    uint32_t looks = enlarging->looks;
    *enlarging = (struct enlarging){.looks = looks, .pause = {.next = LEARN_WAIT}};
}

/* Where nothing was missed a larger plan would serve no more; nor does it help bad steps where each
 * of so many served no step but the one that it was made for. */
bool enlarging_is_due(struct enlarging *enlarging, uint64_t missed, uint64_t all, bool bad,
                      bool rose) {
    if (enlarging->pause.left || !missed || (bad && enlarging->futile >= LEARN_FUTILE))
        return false;
    enlarging->outgrown += missed;
    if (enlarging->count >= LEARN_GROWTHS && enlarging->outgrown / (bad ? 1 : LEARN_OUTGROWN) < all)
        return false;
    enlarging->outgrown = 0;
    if (enlarging->count < LEARN_GROWTHS)
        enlarging->count++;
    enlarging->futile += bad;
    enlarging->rises += bad && rose && enlarging->rises <= LEARN_GROWTHS;
    return true;
}

/* Some times at once, and then as soon as what such steps missed adds up to what it costs, which is
 * taken for more after each look in vain. Loops that rise from step to step are longer than each
 * plan. */
bool enlarging_wants_look(struct enlarging *enlarging, uint64_t missed, uint64_t all) {
    if (!missed)
        return false;
    enlarging->outgrown += missed;
    if (enlarging->looks >= LEARN_GROWTHS &&
        enlarging->outgrown / all < LEARN_OUTGROWN << enlarging->vain)
        return false;
    enlarging->outgrown = 0;
    if (enlarging->looks < LEARN_GROWTHS || !enlarging->vain)
        enlarging->looks = enlarging->looks % LEARN_GROWTHS + 1;
    return true;
}

void enlarging_look_in_vain(struct enlarging *enlarging) {
    if (enlarging->looks == LEARN_GROWTHS && enlarging->vain < LEARN_VAIN_MOST)
        enlarging->vain++;
}

void enlarging_lose_look(struct enlarging *enlarging) {
    enlarging->looks = LEARN_GROWTHS;
}

void enlarging_fail(struct enlarging *enlarging) {
    enlarging->count -= enlarging->count > 0; /* it was none */
    pause_begin(&enlarging->pause);
}

void enlarging_settle(struct enlarging *enlarging) {
    enlarging->rises = enlarging_looks_ahead(enlarging) ? enlarging->rises : 0;
}
