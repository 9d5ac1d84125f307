// SPDX-License-Identifier: Apache-2.0
/* suspects.c - a list that is filled when a scope ends and judged when the next one has. */
#include "malloc/suspects.h"
#include "malloc/leaks.h"

/* A bit for each. */
struct keys {
    uint64_t bits[LEAKS_KEYS / 64];
};

/* A number that follows from another one, and looks like any. */
static unsigned scatter(uint64_t number) {
    return (unsigned)(number * 0x9E3779B97F4A7C15u >> 32);
}

void suspects_add(struct suspects *suspects, const struct tray *tray, uint64_t seal) {
    unsigned at = suspects->seen++;
    if (at >= SUSPECTS_MOST)
        at = scatter(seal) % suspects->seen;
    if (at < SUSPECTS_MOST)
        suspects->list[at] = (struct suspect){tray, seal};
}

static void add_keys(struct keys *keys, const struct tray *tray) {
    for (const struct tray_head *head = NULL; (head = tray_next(tray, head));) {
        unsigned key = head->key % LEAKS_KEYS; /* it may have been overwritten */
        if (tray_state(head) == TRAY_LIVE && head->key != TRAY_NO_KEY)
            keys->bits[key / 64] |= UINT64_C(1) << key % 64;
    }
}

static void note_keys(const struct keys *keys) {
    bool is_any = false;
    for (unsigned i = 0; i < LEAKS_KEYS / 64; i++)
        for (uint64_t left = keys->bits[i]; left; left &= left - 1) {
            leaks_note(i * 64 + (unsigned)__builtin_ctzll(left));
            is_any = true;
        }
    if (is_any)
        leaks_turn();
}

void suspects_judge(struct suspects *suspects) {
    if (!suspects->seen)
        return; /* most scopes leave none */
    unsigned count = suspects->seen < SUSPECTS_MOST ? suspects->seen : SUSPECTS_MOST;
    struct keys keys = {{0}};
    bool is_any = false;
    suspects->seen = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct suspect *suspect = &suspects->list[i];
        if (!tray_hold(suspect->tray, suspect->seal))
            continue;
        add_keys(&keys, suspect->tray);
        tray_let();
        is_any = true;
    }
    if (is_any)
        note_keys(&keys);
}

void suspects_convict(const struct tray *trays) {
    struct keys keys = {{0}};
    for (const struct tray *tray = trays; tray; tray = tray->next)
        add_keys(&keys, tray);
    note_keys(&keys);
}
