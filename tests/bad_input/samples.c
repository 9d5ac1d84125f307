// SPDX-License-Identifier: Apache-2.0
/* samples.c - metadata that fits no kind, tensors that cannot become samples. */
#include "bad_input/court.h"
#include "kit/sight.h"

#include <stdio.h>

static const struct ebb_dtype f32 = {EBB_FLOAT, 32, 1}, i64 = {EBB_INT, 64, 1};

/* Each is refused with EBB_E_METADATA and a text that names the part. */
struct misfit {
    struct ebb_sample_info info;
    struct ebb_dtype dtype;
    int ndim;
    int64_t shape[5];
    const char *part;
};

static void metadata_that_fits_no_kind_is_refused(void **state) {
    struct court *court = *state;
    int user = ebb_sample_register("misfit");
    char byte = 1;
    const struct misfit misfits[] = {
        {{.kind = 0}, f32, 2, {1, 4}, "kind 0"},
        {{.kind = 6}, f32, 2, {1, 4}, "kind 6"},
        {{.kind = -1}, f32, 2, {1, 4}, "kind -1"},
        {{.kind = EBB_SAMPLE_KINDS_MAX - 1}, f32, 2, {1, 4}, "kind 63"},
        {{.kind = EBB_SAMPLE_BOXES, .canvas = {1, 1}}, f32, 2, {1, 4}, "box format 0, 1 to 6"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 7, .canvas = {1, 1}}, f32, 2, {1, 4}, "format 7"},
        {{.kind = EBB_SAMPLE_BOXES, .format = -1, .canvas = {1, 1}}, f32, 2, {1, 4}, "format -1"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 1, .clamping = 4, .canvas = {1, 1}},
         f32, 2, {1, 4}, "clamping mode 4"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 1, .clamping = -7, .canvas = {1, 1}},
         f32, 2, {1, 4}, "clamping mode -7"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 1}, f32, 2, {1, 4}, "canvas 0 x 0"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 1, .canvas = {5, -1}}, f32, 2, {1, 4}, "5 x -1"},
        {{.kind = EBB_SAMPLE_POINTS, .canvas = {0, 5}}, f32, 2, {1, 2}, "canvas 0 x 5"},
        {{.kind = EBB_SAMPLE_POINTS, .format = 1, .canvas = {5, 5}}, f32, 2, {1, 2}, "format 1"},
        {{.kind = EBB_SAMPLE_IMAGE, .canvas = {5, 5}}, f32, 3, {1, 2, 3}, "it has none"},
        {{.kind = EBB_SAMPLE_IMAGE, .clamping = 1}, f32, 3, {1, 2, 3}, "clamping mode 1"},
        {{.kind = EBB_SAMPLE_MASK, .bytes = &byte, .byte_count = 1}, f32, 1, {1}, "1 bytes"},
        {{.kind = user, .byte_count = 12}, f32, 1, {1}, "12 bytes"},
        {{.kind = user, .format = 2}, f32, 1, {1}, "format 2"},
        /* shapes */
        {{.kind = EBB_SAMPLE_BOXES, .format = 1, .canvas = {1, 1}}, f32, 2, {7, 5}, "[7, 5]"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 1, .canvas = {1, 1}}, f32, 1, {3}, "[3]"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 1, .canvas = {1, 1}}, f32, 0, {0}, "[]"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 1, .canvas = {1, 1}}, f32, 3, {1, 1, 4}, "[1, 1, 4]"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 4, .canvas = {1, 1}}, f32, 2, {7, 4}, "[N, 5]"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 5, .canvas = {1, 1}}, f32, 2, {7, 8}, "[N, 5]"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 6, .canvas = {1, 1}}, f32, 2, {7, 5}, "[N, 8]"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 4, .canvas = {1, 1}}, i64, 2, {7, 5}, "int64"},
        {{.kind = EBB_SAMPLE_BOXES, .format = 6, .canvas = {1, 1}}, i64, 1, {8}, "XYXYXYXY"},
        {{.kind = EBB_SAMPLE_POINTS, .canvas = {5, 5}}, f32, 2, {2, 3}, "[2, 3]"},
        {{.kind = EBB_SAMPLE_POINTS, .canvas = {5, 5}}, f32, 1, {3}, "[..., 2]"},
        {{.kind = EBB_SAMPLE_POINTS, .canvas = {5, 5}}, f32, 0, {0}, "points of shape []"},
        {{.kind = EBB_SAMPLE_IMAGE}, f32, 1, {3}, "image of shape [3]"},
        {{.kind = EBB_SAMPLE_VIDEO}, f32, 3, {3, 4, 5}, "[3, 4, 5]"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        const struct misfit *misfit = &misfits[i];
        struct ebb_tensor *tensor =
            ebb_tensor_new(court->child, misfit->dtype, misfit->ndim, misfit->shape);
        assert_non_null(tensor);
        struct sight before = sight_of(court->child);
        assert_null(ebb_sample_new(court->child, tensor, &misfit->info));
        assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_METADATA, misfit->part,
                             NULL);
        assert_int_equal(ebb_object_end(tensor), 0); /* it still is the caller's */
    }
}

static void tensors_of_others_do_not_become_samples(void **state) {
    struct court *court = *state;
    const struct ebb_sample_info info = {.kind = EBB_SAMPLE_MASK};
    struct ebb_tensor *foreign = ebb_tensor_new(court->root, f32, 0, NULL);
    struct ebb_tensor *taken = ebb_tensor_new(court->child, f32, 0, NULL);
    struct ebb_tensor *lent = ebb_tensor_new(court->child, f32, 0, NULL);
    struct ebb_sample *sample = ebb_sample_new(court->child, taken, &info);
    assert_non_null(sample);
    assert_int_equal(ebb_object_borrow(lent, court->root), 0);
    struct ebb_tensor *const tensors[] = {
        foreign, taken, lent, (struct ebb_tensor *)sample, NULL, (struct ebb_tensor *)court->small};
    const int codes[] = {EBB_E_NOT_OWNED, EBB_E_MEMBER, EBB_E_BORROWED,
                         EBB_E_TYPE,      EBB_E_FOREIGN, EBB_E_TYPE};
    struct sight before = sight_of(court->child);
    for (size_t i = 0; i < 6; i++) {
        assert_null(ebb_sample_new(court->child, tensors[i], &info));
        assert_sight_refused(court->child, &before, ebb_last_error(), codes[i], NULL);
    }
    assert_null(ebb_sample_new(court->child, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_METADATA, NULL);
    assert_null(ebb_sample_new(court->closed, foreign, &info));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_STALE, NULL);
    assert_null(ebb_sample_new(court->measuring, foreign, &info));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_MEASURING, NULL);
    assert_null(ebb_sample_new(court->sealed, foreign, &info));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_NOT_OWNED, "'sealed'",
                         NULL);
}

static void likes_that_are_no_samples_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = ebb_tensor_new(court->child, f32, 0, NULL);
    struct ebb_tensor *other = ebb_tensor_new(court->child, f32, 0, NULL);
    const struct ebb_sample_info info = {.kind = EBB_SAMPLE_MASK};
    struct ebb_sample *mask = ebb_sample_new(court->child, other, &info);
    struct sight before = sight_of(court->child);
    struct ebb_sample_info seen;
    assert_null(ebb_sample_wrap(court->child, tensor, (void *)tensor, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, "'tensor'", NULL);
    assert_null(ebb_sample_wrap(court->child, tensor, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_FOREIGN, NULL);
    assert_null(ebb_sample_wrap(court->child, tensor, mask,
                                &(struct ebb_sample_info){.kind = EBB_SAMPLE_IMAGE}));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_METADATA, "like mask",
                         "image", NULL);
    assert_null(ebb_sample_wrap(court->child, tensor, mask,
                                &(struct ebb_sample_info){.canvas = {4, 5}}));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_METADATA, "4 x 5", NULL);
    assert_sight_refused(court->child, &before, ebb_sample_read((void *)tensor, &seen), EBB_E_TYPE,
                         NULL);
    assert_sight_refused(court->child, &before, ebb_sample_read(mask, NULL), EBB_E_ARGUMENT, NULL);
    assert_null(ebb_sample_row(court->child, mask, 0));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "has 0", NULL);
}

/* At every limit either all of it fits, or nothing happened: view and sample are two blocks. */
static void a_sample_that_does_not_fit_the_limit_leaves_no_trace(void **state) {
    struct court *court = *state;
    struct ebb_sample_info info = {
        .kind = EBB_SAMPLE_BOXES, .format = EBB_BOX_XYXY, .canvas = {1, 1}};
    unsigned refused = 0, made = 0;
    for (size_t limit = 256; limit < 1024; limit += 16) {
        ebb_region tight = OPEN(.parent = court->root, .limit_bytes = limit);
        struct ebb_tensor *boxes = ebb_tensor_new(tight, f32, 1, (const int64_t[]){4});
        struct sight before = sight_of(tight);
        if (boxes && ebb_sample_new(tight, boxes, &info)) {
            made++;
        } else if (boxes) {
            assert_sight_refused(tight, &before, ebb_last_error(), EBB_E_REGION_LIMIT, NULL);
            assert_int_equal(boxes->storage->tensors, 1);
            assert_int_equal(ebb_object_end(boxes), 0);
            refused++;
        }
        assert_int_equal(ebb_region_close(tight), 0);
    }
    assert_true(made > 0 && refused >= 12); /* 12 * 16 bytes are more than either block alone */
}

static void names_of_kinds_are_checked(void **state) {
    struct court *court = *state;
    court_refused(court, ebb_sample_register(NULL), EBB_E_METADATA, "0 bytes", NULL);
    court_refused(court, ebb_sample_register(""), EBB_E_METADATA, "0 bytes", NULL);
    court_refused(court, ebb_sample_register("image"), EBB_E_METADATA, "'image'", NULL);
    court_refused(court, ebb_sample_register("unknown"), EBB_E_METADATA, NULL);
    court_refused(court, ebb_sample_register("01234567890123456789012345678901"), EBB_E_METADATA,
                  "32 bytes", NULL);
    assert_true(ebb_sample_register("0123456789012345678901234567890") >= EBB_SAMPLE_USER);
}

static void kinds_run_out(void **state) {
    struct court *court = *state;
    char name[32];
    int kind = 0;
    for (int i = 0; kind >= 0 && i < 100; i++) {
        snprintf(name, sizeof name, "kind %d", i);
        kind = ebb_sample_register(name);
    }
    court_refused(court, kind, EBB_E_METADATA, "64", NULL);
    assert_true(ebb_sample_register("kind 0") >= EBB_SAMPLE_USER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TRIAL(metadata_that_fits_no_kind_is_refused),
        TRIAL(tensors_of_others_do_not_become_samples),
        TRIAL(likes_that_are_no_samples_are_refused),
        TRIAL(a_sample_that_does_not_fit_the_limit_leaves_no_trace),
        TRIAL(names_of_kinds_are_checked),
        TRIAL(kinds_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
