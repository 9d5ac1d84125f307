// SPDX-License-Identifier: Apache-2.0
/*
 * promotions.c - misuses around promotions: targets that are closed, sealed, unrelated or over
 * budget; lists with something wrong at any place, which then change nothing at all.
 */
#include "bad_input/court.h"

#include <stdlib.h>

/* Both ways to promote refuse the list, leave it untouched, and report no cost. */
static void assert_list_refused(struct court *court, ebb_region source, ebb_region target,
                                struct ebb_survivor *list, size_t count, int code) {
    struct ebb_survivor before[8];
    struct ebb_promoted cost = {0}, nothing = {0};
    uint64_t lost = 4711;
    assert_true(count <= 8);
    memcpy(before, list, count * sizeof *list);
    for (int way = 0; way < 2; way++) {
        int result = way ? ebb_close_keeping(source, target, list, count, &cost, &lost)
                         : ebb_promote(source, target, list, count, &cost);
        court_refused(court, result, code, NULL);
        assert_memory_equal(&cost, &nothing, sizeof cost);
        assert_int_equal(lost, 4711);
        for (size_t i = 0; i < count; i++) {
            assert_ptr_equal(list[i].block, before[i].block);
            assert_int_equal(list[i].mode, before[i].mode);
        }
    }
}

static void targets_that_are_no_ancestor_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_survivor list[] = {survivor_of(court->large, EBB_PROMOTE_AUTO)};
    ebb_region below = OPEN(.name = "below", .parent = court->child);
    ebb_region beside = OPEN(.name = "beside", .parent = court->root);
    court_note(court);
    assert_list_refused(court, court->child, below, list, 1, EBB_E_NOT_ANCESTOR);
    assert_text_names("'below'");
    assert_text_names("'child'");
    assert_list_refused(court, court->child, beside, list, 1, EBB_E_NOT_ANCESTOR);
    assert_list_refused(court, court->child, court->elsewhere, list, 1, EBB_E_NOT_ANCESTOR);
    assert_list_refused(court, court->root, court->child, list, 1, EBB_E_NOT_ANCESTOR);
}

static void closed_targets_and_sources_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_survivor list[] = {survivor_of(court->large, EBB_PROMOTE_AUTO)};
    assert_list_refused(court, court->child, court->closed, list, 1, EBB_E_STALE);
    assert_list_refused(court, court->closed, court->root, list, 1, EBB_E_STALE);
    assert_list_refused(court, court->child, ebb_region_of(NULL), list, 1, EBB_E_STALE);
}

static void sealed_targets_are_refused(void **state) {
    struct court *court = *state;
    ebb_region below = OPEN(.name = "below", .parent = court->sealed);
    struct ebb_survivor list[] = {survivor_of(block_of(below, 5000, 64), EBB_PROMOTE_RELINK),
                                  survivor_of(block_of(below, 50, 16), EBB_PROMOTE_COPY)};
    court_note(court);
    assert_list_refused(court, below, court->sealed, list, 2, EBB_E_SEALED);
    assert_text_names("'sealed'");
    assert_list_refused(court, below, court->sealed, &list[0], 1, EBB_E_SEALED);
    assert_list_refused(court, below, court->sealed, &list[1], 1, EBB_E_SEALED);
    list[1].mode = EBB_PROMOTE_COPY;
    assert_int_equal(ebb_promote(below, court->root, list, 2, NULL), 0); /* past the seal */
}

static void targets_over_budget_are_refused(void **state) {
    struct court *court = *state;
    ebb_region below = OPEN(.parent = court->limited);
    block_of(court->limited, 1024, 64);
    struct ebb_survivor list[] = {survivor_of(block_of(below, 100, 16), EBB_PROMOTE_COPY),
                                  survivor_of(block_of(below, 1500, 64), EBB_PROMOTE_COPY)};
    court_note(court);
    struct ebb_region_stats before = stats_of(court->limited);
    struct ebb_promoted cost = {0};
    court_refused(court, ebb_promote(below, court->limited, &list[1], 1, &cost),
                  EBB_E_REGION_LIMIT, "'limited'", "1536", "4096", NULL);
    assert_refused(ebb_promote(below, court->limited, list, 2, &cost), EBB_E_REGION_LIMIT);
    struct ebb_region_stats after = stats_of(court->limited);
    assert_memory_equal(&before.blocks, &after.blocks, 3 * sizeof before.blocks);
    assert_int_equal(before.subtree_used, after.subtree_used);
    ebb_check_pool(court->limited_pool);
}

static void measuring_regions_have_nothing_to_promote(void **state) {
    struct court *court = *state;
    ebb_region below = OPEN(.parent = court->measuring);
    struct ebb_survivor list[] = {
        survivor_of(ebb_region_alloc(below, 5000, 64), EBB_PROMOTE_COPY)};
    court_note(court);
    assert_list_refused(court, below, court->measuring, list, 1, EBB_E_MEASURING);
}

/* A list of three with something wrong in one place, at every place. */
static void assert_wrong_entry(struct court *court, struct ebb_survivor wrong, int code) {
    for (int at = 0; at < 3; at++) {
        struct ebb_survivor list[] = {survivor_of(court->large, EBB_PROMOTE_RELINK),
                                      survivor_of(court->small, EBB_PROMOTE_COPY),
                                      survivor_of(court->root_large, EBB_PROMOTE_AUTO)};
        list[at] = wrong;
        assert_list_refused(court, court->child, court->root, list, 3, code);
    }
}

static void lists_with_wrong_pointers_change_nothing(void **state) {
    struct court *court = *state;
    int local = 0;
    void *heap = malloc(16);
    const int mode = EBB_PROMOTE_COPY;
    assert_wrong_entry(court, survivor_of(NULL, mode), EBB_E_ARGUMENT);
    assert_wrong_entry(court, survivor_of(&local, mode), EBB_E_FOREIGN);
    assert_wrong_entry(court, survivor_of(heap, mode), EBB_E_FOREIGN);
    assert_wrong_entry(court, survivor_of(court->foreign, mode), EBB_E_FOREIGN);
    assert_wrong_entry(court, survivor_of(court->small + 16, mode), EBB_E_INTERIOR);
    assert_wrong_entry(court, survivor_of(court->small + 3, mode), EBB_E_INTERIOR);
    assert_wrong_entry(court, survivor_of(court->large + 64, mode), EBB_E_INTERIOR);
    assert_wrong_entry(court, survivor_of(court->gone_small, mode), EBB_E_RELEASED);
    assert_wrong_entry(court, survivor_of(court->gone_large, mode), EBB_E_RELEASED);
    free(heap);
}

static void lists_with_wrong_modes_or_alignments_change_nothing(void **state) {
    struct court *court = *state;
    char *block = block_of(court->child, 77, 16);
    court_note(court);
    static const int modes[] = {-1, 3, 16, 17, 32, 1 << 30};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        assert_wrong_entry(court, survivor_of(block, modes[i]), EBB_E_ARGUMENT);
    static const size_t aligns[] = {3, 6, 100, EBB_ALIGN_MAX + 1, EBB_ALIGN_MAX * 2, SIZE_MAX};
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        struct ebb_survivor wrong = survivor_of(block, EBB_PROMOTE_COPY);
        wrong.align = aligns[i];
        assert_wrong_entry(court, wrong, EBB_E_ALIGNMENT);
    }
}

static void lists_that_name_a_block_twice_change_nothing(void **state) {
    struct court *court = *state;
    char *blocks[] = {court->small, court->large, court->root_large};
    for (size_t i = 0; i < 3; i++)
        for (size_t first = 0; first < 3; first++)
            for (size_t second = first + 1; second < 4; second++) {
                struct ebb_survivor list[4];
                char *fill[4] = {court->small, court->large, court->root_large, NULL};
                fill[3] = block_of(court->child, 16, 16);
                for (size_t k = 0, used = 0; k < 4; k++) {
                    while (fill[used] == blocks[i])
                        used++;
                    list[k] = survivor_of(k == first || k == second ? blocks[i] : fill[used],
                                          EBB_PROMOTE_COPY);
                    used += k != first && k != second;
                }
                court_note(court);
                assert_list_refused(court, court->child, court->root, list, 4, EBB_E_DUPLICATE);
            }
}

static void a_refused_list_can_be_promoted_once_it_is_right(void **state) {
    struct court *court = *state;
    struct ebb_survivor list[] = {survivor_of(court->small, EBB_PROMOTE_COPY),
                                  survivor_of(court->large, EBB_PROMOTE_RELINK),
                                  survivor_of(court->small, EBB_PROMOTE_COPY)};
    assert_list_refused(court, court->child, court->root, list, 3, EBB_E_DUPLICATE);
    assert_int_equal(ebb_promote(court->child, court->root, list, 2, NULL), 0);
    assert_true(pattern_holds(list[0].block, 100, 100));
    assert_true(pattern_holds(list[1].block, 5000, 5000));
}

static void a_list_that_is_missing_is_refused(void **state) {
    struct court *court = *state;
    for (int way = 0; way < 2; way++)
        court_refused(court, way ? ebb_close_keeping(court->child, court->root, NULL, 3, NULL, NULL)
                                 : ebb_promote(court->child, court->root, NULL, 3, NULL),
                      EBB_E_ARGUMENT, "3 survivors", NULL);
}

static void closing_into_itself_is_refused(void **state) {
    struct court *court = *state;
    struct ebb_survivor survivor = survivor_of(court->large, EBB_PROMOTE_AUTO);
    court_refused(court, ebb_close_keeping(court->child, court->child, &survivor, 1, NULL, NULL),
                  EBB_E_NOT_ANCESTOR, "'child'", NULL);
    assert_true(ebb_region_is_open(court->child));
}

static void a_root_cannot_be_kept_anywhere(void **state) {
    struct court *court = *state;
    struct ebb_survivor survivor = survivor_of(court->root_large, EBB_PROMOTE_AUTO);
    court_refused(court, ebb_close_keeping(court->root, court->elsewhere, &survivor, 1, NULL, NULL),
                  EBB_E_NOT_ANCESTOR, "'root'", "'elsewhere'", NULL);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TRIAL(targets_that_are_no_ancestor_are_refused),
        TRIAL(closed_targets_and_sources_are_refused),
        TRIAL(sealed_targets_are_refused),
        TRIAL(targets_over_budget_are_refused),
        TRIAL(measuring_regions_have_nothing_to_promote),
        TRIAL(lists_with_wrong_pointers_change_nothing),
        TRIAL(lists_with_wrong_modes_or_alignments_change_nothing),
        TRIAL(lists_that_name_a_block_twice_change_nothing),
        TRIAL(a_refused_list_can_be_promoted_once_it_is_right),
        TRIAL(a_list_that_is_missing_is_refused),
        TRIAL(closing_into_itself_is_refused),
        TRIAL(a_root_cannot_be_kept_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
