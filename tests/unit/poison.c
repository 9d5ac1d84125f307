// SPDX-License-Identifier: Apache-2.0
/*
 * poison.c - accesses that no block covers are found: by AddressSanitizer where the build has it,
 * and as a pattern in memory with full checks. Which of the tests run depends on the build.
 *
 * Each bad access happens in a forked child that must not come back; the good ones beside them
 * must, so that a child that always dies would not pass.
 */
#include "kit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifndef HAS_ASAN
#define HAS_ASAN 0
#endif

#if HAS_ASAN
/* Nobody reads the reports of who had to die. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "symbolize=0";
}
#endif

#define HAS_PATTERN (EBB_CHECK_LEVEL >= 2 && !HAS_ASAN)

static const size_t sizes[] = {20, 1000, 1030, 5000, 100000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* True if reading this byte ends the process. */
static bool dies(const void *address) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        volatile const char *byte = address;
        if (!freopen("/dev/null", "w", stderr))
            _exit(3);
        _exit(*byte & 0); /* the read is what counts */
    }
    assert_true(waitpid(child, &status, 0) == child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* Every byte of [from, to) by its ends and middle. */
static void assert_all_die(const char *from, size_t bytes) {
    assert_true(dies(from));
    assert_true(dies(from + bytes / 2));
    assert_true(dies(from + bytes - 1));
}

static void assert_alive(const char *block, size_t bytes) {
    assert_false(dies(block));
    assert_false(dies(block + bytes - 1));
}

static void reads_past_a_block_are_found(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < SIZES; i++) {
        char *block = block_of(stage->root, sizes[i], 16);
        assert_alive(block, sizes[i]);
        assert_true(dies(block + sizes[i]));
    }
}

static void reads_after_a_release_are_found(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 16, 16);
    for (int i = 0; i < SIZES; i++) {
        char *block = block_of(stage->root, sizes[i], 16), *kept = block_of(stage->root, 50, 16);
        assert_int_equal(ebb_region_release(stage->root, block), 0);
        assert_all_die(block, sizes[i]);
        assert_alive(kept, 50);
        char *again = block_of(stage->root, sizes[i], 16);
        assert_alive(again, sizes[i]);
    }
}

static void reads_after_a_close_or_reset_are_found(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 3; way++) {
        ebb_region region = OPEN(.parent = stage->root);
        char *blocks[SIZES];
        for (int i = 0; i < SIZES; i++)
            blocks[i] = block_of(region, sizes[i], 16);
        if (way == 0)
            ebb_region_close(region);
        else
            ebb_region_reset(region, way == 1 ? 0 : EBB_KEEP_ALL);
        for (int i = 0; i < SIZES; i++)
            assert_all_die(blocks[i], sizes[i]);
        ebb_region_close(region);
    }
}

static void reads_after_a_rewind_are_found(void **state) {
    struct stage *stage = *state;
    char *kept = block_of(stage->root, 100, 16), *blocks[SIZES];
    ebb_mark mark = ebb_region_mark(stage->root);
    for (int i = 0; i < SIZES; i++)
        blocks[i] = block_of(stage->root, sizes[i], 16);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    for (int i = 0; i < SIZES; i++)
        assert_all_die(blocks[i], sizes[i]);
    assert_alive(kept, 100);
}

static void reads_past_a_shrunk_block_are_found(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < SIZES; i++) {
        char *block = block_of(stage->root, sizes[i], 16);
        assert_int_equal(ebb_region_resize(stage->root, block, sizes[i] / 2), 0);
        assert_alive(block, sizes[i] / 2);
        assert_true(dies(block + sizes[i] / 2));
        assert_int_equal(ebb_region_resize(stage->root, block, sizes[i]), 0);
        assert_alive(block, sizes[i]);
    }
}

static void relinked_blocks_stay_readable_and_their_neighbours_do_not(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    char *before = block_of(child, 2000, 64), *block = block_of(child, 9000, 64);
    char *after = block_of(child, 2000, 64);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_promote(child, stage->root, &survivor, 1, NULL), 0);
    assert_alive(block, 9000);
    assert_alive(before, 2000);
    assert_int_equal(ebb_region_close(child), 0);
    assert_alive(block, 9000);
    assert_true(dies(block + 9000));
    assert_all_die(before, 2000);
    assert_all_die(after, 2000);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_all_die(block, 9000);
}

static void copies_are_readable_when_their_originals_are_gone(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    char *original = block_of(child, 3000, 64);
    struct ebb_survivor survivor = survivor_of(original, EBB_PROMOTE_COPY);
    assert_int_equal(ebb_close_keeping(child, stage->root, &survivor, 1, NULL, NULL), 0);
    assert_all_die(original, 3000);
    assert_alive(survivor.block, 3000);
}

static void realloc_leaves_nothing_readable_behind(void **state) {
    struct stage *stage = *state;
    char *block = block_of(stage->root, 500, 16);
    block_of(stage->root, 16, 16);
    char *moved = ebb_region_realloc(stage->root, block, 3000, 16);
    assert_ptr_not_equal(moved, block);
    assert_all_die(block, 500);
    assert_alive(moved, 3000);
}

static void what_was_never_a_block_is_not_readable(void **state) {
    struct stage *stage = *state;
    char *block = block_of(stage->root, 16, 16);
    assert_true(dies(block + 16));
    assert_true(dies(block + 1000));
}

static void full_checks_overwrite_released_blocks(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < SIZES; i++) {
        unsigned char *block = block_of(stage->root, sizes[i], 16);
        block_of(stage->root, 16, 16);
        assert_int_equal(ebb_region_release(stage->root, block), 0);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(block[at], 0xe5);
    }
}

static void without_full_checks_a_release_touches_no_byte(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < SIZES; i++) {
        void *block = block_of(stage->root, sizes[i], 16);
        block_of(stage->root, 16, 16);
        assert_int_equal(ebb_region_release(stage->root, block), 0);
        assert_true(pattern_holds(block, sizes[i], (unsigned)sizes[i]));
    }
}

int main(void) {
    static const struct CMUnitTest with_asan[] = {
        STAGED(reads_past_a_block_are_found),
        STAGED(reads_after_a_release_are_found),
        STAGED(reads_after_a_close_or_reset_are_found),
        STAGED(reads_after_a_rewind_are_found),
        STAGED(reads_past_a_shrunk_block_are_found),
        STAGED(relinked_blocks_stay_readable_and_their_neighbours_do_not),
        STAGED(copies_are_readable_when_their_originals_are_gone),
        STAGED(realloc_leaves_nothing_readable_behind),
        STAGED(what_was_never_a_block_is_not_readable),
    };
    static const struct CMUnitTest with_full_checks[] = {
        STAGED(full_checks_overwrite_released_blocks),
    };
    static const struct CMUnitTest without[] = {
        STAGED(without_full_checks_a_release_touches_no_byte),
    };
    if (HAS_ASAN)
        return cmocka_run_group_tests(with_asan, NULL, NULL);
    if (HAS_PATTERN)
        return cmocka_run_group_tests(with_full_checks, NULL, NULL);
    return cmocka_run_group_tests(without, NULL, NULL);
}
