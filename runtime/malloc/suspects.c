// SPDX-License-Identifier: Apache-2.0
/* suspects.c - a list that is filled when a scope ends and judged when the next one has. */
#include "malloc/suspects.h"
#include "malloc/guard.h"
#include "malloc/leaks.h"

static _Atomic(uint64_t) seals;

static unsigned count_of(const struct suspects *suspects, uint16_t key) {
    unsigned count = 0;
    for (unsigned i = 0; i < suspects->count; i++)
        count += suspects->list[i].key == key;
    return count;
}

void suspects_add(struct suspects *suspects, struct tray *tray) {
    /* relaxed: no number is given twice, and who reads it believes nothing else because of it */
    uint64_t seal = atomic_fetch_add_explicit(&seals, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&tray->seal, seal, memory_order_relaxed);
    for (uintptr_t at = tray_first(tray);
         at < tray->used_to && suspects->count < SUSPECTS_MOST;) {
        const struct tray_head *head = (const struct tray_head *)at;
        at += head->step;
        if (tray_state(head) == TRAY_LIVE && count_of(suspects, head->key) < SUSPECTS_OF_A_KEY)
            suspects->list[suspects->count++] = (struct suspect){head, seal, head->key};
    }
}

static bool is_alive(const struct suspect *suspect) {
    const struct tray *tray = tray_of((uintptr_t)suspect->head);
    return atomic_load_explicit(&tray->seal, memory_order_relaxed) == suspect->seal &&
           tray_state(suspect->head) == TRAY_LIVE;
}

void suspects_judge(struct suspects *suspects) {
    uint16_t noted[SUSPECTS_MOST];
    unsigned count = 0;
    for (unsigned i = 0; i < suspects->count; i++) {
        uint16_t key = suspects->list[i].key;
        unsigned at = 0;
        while (at < count && noted[at] != key)
            at++;
        if (at < count || !is_alive(&suspects->list[i]))
            continue;
        noted[count++] = key;
        leaks_note(key);
    }
    suspects->count = 0;
    if (count)
        leaks_turn();
}
