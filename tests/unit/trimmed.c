// SPDX-License-Identifier: Apache-2.0
/*
 * trimmed.c - drafts that have more alive than is wanted leave slots out: no more than have to be,
 * and none of a key that has one slot; what is left keeps its order, its lives and its keys.
 */
#include "kit/tidy.h"

#include "step/trim.h"

enum { MOST = 200 };

static const struct packing_effort effort = {.keys = PACKING_ORDERS, .slack_ppm = 5000};

static uint64_t seed;

static uint32_t chance(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

static struct draft *draft_at_random(uint32_t keys) {
    struct record_entry record[MOST];
    uint32_t count = 1 + chance(MOST), releases = 0;
    for (uint32_t i = 0; i < count; i++) {
        record[i] = (struct record_entry){.bytes = 64 * (1 + MOST * chance(40) + i), /* once */
                                          .key = 1 + chance(keys), .passed = releases,
                                          .rank = PLAN_NEVER, .align_log2 = 6,
                                          .survived = chance(20) == 0};
        for (uint32_t goes = chance(4); goes; goes--) {
            uint32_t id = chance(i + 1);
            if (record[id].rank != PLAN_NEVER || record[id].survived)
                continue;
            record[id].rank = releases++;
            record[id].until = i + 1;
        }
    }
    return draft_from_record(record, count, draft_hash(record, count), NULL, DRAFT_TENURE_ONCE);
}

static bool is_there(const struct draft *draft, uint32_t slot, uint32_t later) {
    return slot <= later && draft->slots[slot].rank >= draft->slots[later].passed;
}

static uint64_t alive_at(const struct draft *draft, uint32_t later) {
    uint64_t granules = 0;
    for (uint32_t i = 0; i <= later; i++)
        granules += is_there(draft, i, later) ? draft->slots[i].room : 0;
    return granules * RANGE_GRANULE;
}

static uint64_t most_alive(const struct draft *draft) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < draft->count; i++)
        most = alive_at(draft, i) > most ? alive_at(draft, i) : most;
    return most;
}

static bool has_key(const struct draft *draft, uint32_t key) {
    for (uint32_t i = 0; i < draft->count; i++)
        if (draft->slots[i].key == key)
            return true;
    return false;
}

/* Of the whole draft, numbers of those that the trimmed one still has: each is the next one that is
 * the same in all that does not change. */
static void assert_part_of(const struct draft *draft, const struct draft *whole, uint64_t most) {
    uint32_t number[MOST], found = 0, placed = 0;
    for (uint32_t i = 0; i < whole->count; i++) {
        const struct draft_slot *own = &draft->slots[found], *slot = &whole->slots[i];
        bool stays = found < draft->count && own->key == slot->key && own->room == slot->room &&
                     own->needed == slot->needed && own->survived == slot->survived;
        assert_true(stays || slot->room);
        if (stays)
            number[found++] = i;
    }
    assert_int_equal(found, draft->count);
    for (uint32_t i = 0; i < draft->count; i++) {
        placed += draft->slots[i].room != 0;
        for (uint32_t k = 0; k < i; k++)
            assert_int_equal(is_there(draft, k, i), is_there(whole, number[k], number[i]));
    }
    assert_int_equal(placed, draft->placed);
    assert_true(most_alive(draft) <= most);
}

static void what_is_there_when_there_is_too_much_is_left_out(void **state) {
    unsigned trims = 0;
    for (seed = 0; trims < 200;) {
        struct draft *whole = draft_at_random(1 + chance(12));
        struct plan *plan = draft_plan(whole, &effort, UINT64_MAX);
        struct draft *draft = plan ? draft_of_plan(plan) : NULL;
        uint64_t most = plan ? most_alive(whole) / 100 * (40 + chance(70)) : 0;
        if (draft && draft_trim(draft, plan->by_key, most)) {
            assert_true(most_alive(whole) > most && draft->count < whole->count);
            assert_part_of(draft, whole, most);
            for (uint32_t i = 0; i < whole->count; i++)
                assert_true(has_key(draft, whole->slots[i].key));
            struct plan *shorter = draft_plan(draft, &effort, UINT64_MAX);
            assert_non_null(shorter);
            plan_drop(shorter);
            trims++;
        } else if (draft) {
            assert_int_equal(draft->count, whole->count);
        }
        draft_drop(draft);
        plan_drop(plan);
        draft_drop(whole);
    }
}

/* So many blocks of 64 KiB, each with a key of its own or all with one, to the end. */
static void assert_trimmed(bool own, uint64_t most, uint32_t left) {
    enum { BLOCKS = 8 };
    struct record_entry record[BLOCKS];
    for (uint32_t i = 0; i < BLOCKS; i++)
        record[i] = (struct record_entry){.bytes = 65536, .key = 1 + own * i, .rank = PLAN_NEVER,
                                          .align_log2 = 6};
    struct draft *draft = draft_from_record(record, BLOCKS, 1, NULL, DRAFT_TENURE_ONCE);
    struct plan *plan = draft_plan(draft, &effort, UINT64_MAX);
    assert_int_equal(draft_trim(draft, plan->by_key, most), left < BLOCKS);
    assert_int_equal(draft->count, left);
    plan_drop(plan);
    draft_drop(draft);
}

static void a_draft_is_trimmed_if_it_has_to_be_and_each_key_stays(void **state) {
    assert_trimmed(false, 8 * 65536, 8);
    assert_trimmed(false, 8 * 65536 - 1, 7);
    assert_trimmed(false, 65536, 1);
    assert_trimmed(false, 65535, 8);
    assert_trimmed(true, 8 * 65536 - 1, 8);
}

/* They are of no loop: whoever is shorter has them all the same. */
static void slots_without_a_key_stay(void **state) {
    enum { BLOCKS = 16 };
    struct record_entry record[BLOCKS];
    for (uint32_t i = 0; i < BLOCKS; i++)
        record[i] = (struct record_entry){.bytes = 65536, .key = i % 2, .rank = PLAN_NEVER,
                                          .align_log2 = 6};
    struct draft *draft = draft_from_record(record, BLOCKS, 1, NULL, DRAFT_TENURE_ONCE);
    struct plan *plan = draft_plan(draft, &effort, UINT64_MAX);
    assert_true(draft_trim(draft, plan->by_key, 10 * 65536));
    assert_int_equal(draft->count, 10);
    uint32_t keyless = 0;
    for (uint32_t i = 0; i < draft->count; i++)
        keyless += !draft->slots[i].key;
    assert_int_equal(keyless, BLOCKS / 2);
    plan_drop(plan);
    draft_drop(draft);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TIDY(what_is_there_when_there_is_too_much_is_left_out),
        TIDY(a_draft_is_trimmed_if_it_has_to_be_and_each_key_stays),
        TIDY(slots_without_a_key_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
