// SPDX-License-Identifier: Apache-2.0
/* collations.c - samples that are not alike, rules that cannot be kept: nothing is built. */
#include "bad_input/court.h"
#include "kit/sight.h"
#include "kit/text.h"
#include "kit/trees.h"

#define RULE(where, way) \
    (&(struct ebb_collate_options){ \
        .size = sizeof(struct ebb_collate_options), \
        .rules = &(const struct ebb_collate_rule){.path = where, \
                                                  .how = (enum ebb_collate_how)(way)}, \
        .rule_count = 1})

static const struct ebb_dtype f32 = {EBB_FLOAT, 32, 1}, i64 = {EBB_INT, 64, 1},
                              u8 = {EBB_UINT, 8, 1};

static void *tensor(ebb_region region, struct ebb_dtype dtype, int ndim, int64_t rows,
                    int64_t columns) {
    struct ebb_tensor *made =
        ebb_tensor_new_zeroed(region, dtype, ndim, (const int64_t[]){rows, columns, 3});
    assert_non_null(made);
    return made;
}

static void *sample(ebb_region region, struct ebb_tensor *data, struct ebb_sample_info info) {
    void *made = ebb_sample_new(region, data, &info);
    assert_non_null(made);
    return made;
}

/* {"x": (0, leaf)} */
static void *wrapped(ebb_region region, void *leaf) {
    void *pair[] = {ebb_node_new_integer(region, 0), leaf};
    void *tuple = ebb_node_new_tuple(region, pair, 2);
    void *dict = ebb_node_new_dict(region, (const char *[]){"x"}, &tuple, 1);
    assert_non_null(dict);
    return dict;
}

/* Three samples, the first two alike, refused at path x/1. */
static void assert_unlike(struct court *court, void *first, void *second, void *third,
                          const struct ebb_collate_options *options, int code, const char *left,
                          const char *right) {
    void *samples[] = {first, second, third};
    for (int i = 0; i < 3; i++)
        samples[i] = wrapped(court->root, samples[i]);
    struct sight before = sight_of(court->child), inputs = sight_of(court->root);
    struct ebb_collated done = {1, 2, 3};
    assert_null(ebb_batch_collate(court->child, samples, 3, options, &done));
    assert_sight_refused(court->child, &before, ebb_last_error(), code, "'x/1'", left, right,
                         NULL);
    assert_sight_same(court->root, &inputs);
    assert_true(done.tensors == 1 && done.copied_bytes == 2 && done.padded_bytes == 3);
}

static void shapes_that_do_not_agree_are_named(void **state) {
    struct court *court = *state;
    ebb_region r = court->root;
    assert_unlike(court, tensor(r, f32, 2, 3, 4), tensor(r, f32, 2, 3, 4),
                  tensor(r, f32, 2, 2, 4), NULL, EBB_E_SHAPE, "sample 2 of 3",
                  "shape [2, 4], in the first [3, 4]");
    assert_unlike(court, tensor(r, f32, 2, 3, 4), tensor(r, f32, 2, 3, 4),
                  tensor(r, f32, 1, 3, 4), NULL, EBB_E_SHAPE, "shape [3],", "[3, 4]");
    assert_unlike(court, tensor(r, f32, 2, 3, 4), tensor(r, f32, 2, 1, 5),
                  tensor(r, f32, 1, 3, 4), RULE("x/1", EBB_COLLATE_PAD), EBB_E_SHAPE, "sample 2",
                  "[3, 4]");
    void *points[3];
    for (int i = 0; i < 3; i++)
        points[i] = sample(r, tensor(r, f32, i == 2 ? 2 : 1, 2, 2),
                           (struct ebb_sample_info){.kind = EBB_SAMPLE_POINTS, .canvas = {1, 1}});
    ((struct ebb_sample *)points[2])->data->shape[1] = 1; /* not checked again until composed */
    assert_unlike(court, points[0], points[1], points[2], NULL, EBB_E_SHAPE, "[2, 1]", "[1, 2]");
    int64_t ones[EBB_DIMENSIONS_MAX];
    void *full[3];
    for (int i = 0; i < EBB_DIMENSIONS_MAX; i++)
        ones[i] = 1;
    for (int i = 0; i < 3; i++)
        full[i] = ebb_tensor_new(r, f32, EBB_DIMENSIONS_MAX, ones);
    assert_unlike(court, full[0], full[1], full[2], NULL, EBB_E_SHAPE, "32 dimensions", "one more");
}

static void data_types_that_differ_are_named(void **state) {
    struct court *court = *state;
    ebb_region r = court->root;
    for (int how = EBB_COLLATE_STACK; how <= EBB_COLLATE_PAD; how++)
        assert_unlike(court, tensor(r, f32, 1, 3, 0), tensor(r, f32, 1, 3, 0),
                      tensor(r, i64, 1, 3, 0), RULE("", how), EBB_E_DTYPE, "int64", "float32");
}

static void structures_that_differ_are_named(void **state) {
    struct court *court = *state;
    ebb_region r = court->root;
    void *list[2], *pair[2];
    for (int i = 0; i < 2; i++) {
        pair[0] = ebb_node_new_none(r);
        pair[1] = ebb_node_new_none(r);
        list[i] = ebb_node_new_list(r, pair, 2 - (size_t)i);
    }
    void *other = ebb_node_new_list(r, (void *[]){ebb_node_new_none(r), ebb_node_new_none(r)}, 2);
    assert_unlike(court, list[0], other, list[1], NULL, EBB_E_STRUCTURE, "1 members",
                  "2 members");
    assert_unlike(court, ebb_node_new_integer(r, 1), ebb_node_new_integer(r, 1),
                  ebb_node_new_real(r, 1), NULL, EBB_E_STRUCTURE, "real", "first integer");
    assert_unlike(court, ebb_node_new_list(r, NULL, 0), ebb_node_new_list(r, NULL, 0),
                  ebb_node_new_tuple(r, NULL, 0), NULL, EBB_E_STRUCTURE, "tuple", "list");
    assert_unlike(court, tensor(r, f32, 2, 1, 1), tensor(r, f32, 2, 1, 1),
                  ebb_node_new_none(r), NULL, EBB_E_STRUCTURE, "none", "tensor");
    assert_unlike(court, tensor(r, f32, 2, 3, 4), tensor(r, f32, 2, 3, 4),
                  sample(r, tensor(r, f32, 2, 3, 4),
                         (struct ebb_sample_info){.kind = EBB_SAMPLE_MASK}),
                  NULL, EBB_E_STRUCTURE, "mask", "tensor");
    void *tuples[3];
    for (int i = 0; i < 3; i++)
        tuples[i] = ebb_node_new_named_tuple(r, i == 2 ? "Q" : "P", NULL, NULL, 0);
    assert_unlike(court, tuples[0], tuples[1], tuples[2], NULL, EBB_E_STRUCTURE, "Q", "first P");
    void *dicts[3];
    for (int i = 0; i < 3; i++) {
        void *value = ebb_node_new_none(r);
        dicts[i] = ebb_node_new_dict(r, (const char *[]){i == 2 ? "y" : "z"}, &value, 1);
    }
    assert_unlike(court, dicts[0], dicts[1], dicts[2], NULL, EBB_E_STRUCTURE, "no such key",
                  "first z");
}

static void metadata_that_differs_is_named(void **state) {
    struct court *court = *state;
    ebb_region r = court->root;
    struct ebb_sample_info infos[3];
    void *made[3];
    for (int what = 0; what < 3; what++) {
        for (int i = 0; i < 3; i++) {
            infos[i] = (struct ebb_sample_info){
                .kind = what == 2 ? EBB_SAMPLE_POINTS : EBB_SAMPLE_BOXES,
                .format = what == 2 ? 0 : what == 0 && i == 2 ? EBB_BOX_XYWH : EBB_BOX_XYXY,
                .clamping = what == 2 ? 0 : what == 1 && i == 2 ? EBB_CLAMP_HARD : EBB_CLAMP_SOFT,
                .canvas = {10, i == 2 ? 30 : 20}};
            made[i] = sample(r, tensor(r, f32, 2, 1, what == 2 ? 2 : 4), infos[i]);
        }
        static const char *const parts[] = {"XYWH", "hard", "10 x 30"};
        assert_unlike(court, made[0], made[1], made[2],
                      what == 2 ? RULE("", EBB_COLLATE_STACK) : NULL, EBB_E_METADATA,
                      "sample 2 of 3", parts[what]);
    }
    int user = ebb_sample_register("unlike");
    for (int i = 0; i < 3; i++)
        made[i] = sample(r, tensor(r, f32, 2, 1, 1),
                         (struct ebb_sample_info){
                             .kind = user, .bytes = i == 2 ? "x" : "y", .byte_count = 1});
    assert_unlike(court, made[0], made[1], made[2], NULL, EBB_E_METADATA, "sample 2", "1 bytes");
}

static void ways_on_which_a_kind_would_be_lost_are_refused(void **state) {
    struct court *court = *state;
    ebb_region r = court->root;
    const struct {
        int kind;
        enum ebb_collate_how how;
        const char *part;
    } cases[] = {
        {EBB_SAMPLE_IMAGE, EBB_COLLATE_PACK, "no kind"},
        {EBB_SAMPLE_POINTS, EBB_COLLATE_PACK, "no kind"},
        {EBB_SAMPLE_IMAGE, EBB_COLLATE_RAGGED, "cannot be ragged"},
        {EBB_SAMPLE_BOXES, EBB_COLLATE_STACK, "ragged only"},
        {EBB_SAMPLE_BOXES, EBB_COLLATE_PAD, "ragged only"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool boxes = cases[i].kind == EBB_SAMPLE_BOXES, image = cases[i].kind == EBB_SAMPLE_IMAGE;
        void *made[3];
        for (int k = 0; k < 3; k++)
            made[k] = sample(r, tensor(r, f32, 2, 1, boxes ? 4 : 2),
                             (struct ebb_sample_info){.kind = cases[i].kind,
                                                      .format = boxes ? EBB_BOX_XYXY : 0,
                                                      .canvas = {!image, !image}});
        assert_unlike(court, made[0], made[1], made[2], RULE("x", cases[i].how), EBB_E_METADATA,
                      cases[i].part, ebb_sample_kind_name(cases[i].kind));
    }
    for (int ended = 0; ended < 2; ended++) { /* then they look as if they were not ragged */
        struct ebb_sample *again[3];
        for (int k = 0; k < 3; k++) {
            void *box = sample(r, tensor(r, f32, 2, 1, 4),
                               (struct ebb_sample_info){.kind = EBB_SAMPLE_BOXES,
                                                        .format = EBB_BOX_XYXY,
                                                        .canvas = {1, 1}});
            again[k] = ebb_batch_collate(r, &box, 1, NULL, NULL);
            if (ended)
                assert_int_equal(ebb_object_end(again[k]->offsets), 0);
            if (ended)
                assert_int_equal(ebb_object_end(again[k]->canvases), 0);
        }
        assert_unlike(court, again[0], again[1], again[2], NULL, EBB_E_METADATA, "boxes",
                      ended ? "no canvas" : "ragged already");
    }
}

static void leaves_that_nothing_is_known_of_are_refused(void **state) {
    struct court *court = *state;
    void *own[3];
    for (int i = 0; i < 3; i++)
        own[i] = ebb_object_new(court->root, tree_own_type(), 0);
    assert_unlike(court, own[0], own[1], own[2], NULL, EBB_E_TYPE, "no way", "'own'");
}

static void members_that_were_ended_are_missed(void **state) {
    struct court *court = *state;
    void *samples[2];
    for (int i = 0; i < 2; i++)
        samples[i] = wrapped(court->root, tensor(court->root, u8, 1, 3, 0));
    assert_int_equal(ebb_object_end(ebb_node_get(samples[1], "x/1")), 0);
    struct sight before = sight_of(court->child);
    assert_null(ebb_batch_collate(court->child, samples, 2, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_RELEASED, "sample 1",
                         "'x/1'", NULL);
    struct ebb_sample *mask = sample(court->root, tensor(court->root, u8, 1, 3, 0),
                                     (struct ebb_sample_info){.kind = EBB_SAMPLE_MASK});
    assert_int_equal(ebb_object_end(mask->data), 0);
    assert_null(ebb_batch_collate(court->child, (void *[]){mask}, 1, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_RELEASED, "data", NULL);
    assert_int_equal(ebb_object_end(samples[1]), 0);
    assert_null(ebb_batch_collate(court->child, samples, 2, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_RELEASED, NULL);
}

static void paddings_that_do_not_fit_are_refused(void **state) {
    struct court *court = *state;
    ebb_region r = court->root;
    const struct ebb_collate_rule rule = {
        .path = "x", .how = EBB_COLLATE_PAD, .value = {.kind = EBB_VALUE_INT, {-1}}};
    const struct ebb_collate_options options = {sizeof options, &rule, 1};
    assert_unlike(court, tensor(r, u8, 1, 3, 0), tensor(r, u8, 1, 3, 0), tensor(r, u8, 1, 2, 0),
                  RULE("x/1", EBB_COLLATE_STACK), EBB_E_SHAPE, "[2]", "[3]");
    void *samples[] = {tensor(r, u8, 1, 3, 0), tensor(r, u8, 1, 2, 0)};
    for (int i = 0; i < 2; i++)
        samples[i] = wrapped(r, samples[i]);
    struct sight before = sight_of(court->child);
    assert_null(ebb_batch_collate(court->child, samples, 2, &options, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_VALUE, "-1", "uint8", NULL);
    struct ebb_dtype wide = {EBB_FLOAT, 32, 65};
    void *wides[] = {tensor(r, wide, 1, 3, 0), tensor(r, wide, 1, 2, 0)};
    before = sight_of(court->child);
    const struct ebb_collate_rule one = {
        .path = "", .how = EBB_COLLATE_PAD, .value = {.kind = EBB_VALUE_INT, {1}}};
    const struct ebb_collate_options ones = {sizeof ones, &one, 1};
    assert_null(ebb_batch_collate(court->child, wides, 2, &ones, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_DTYPE, "float32x65", NULL);
    for (int how = EBB_COLLATE_RAGGED; how <= EBB_COLLATE_PACK; how++) {
        assert_unlike(court, tensor(r, f32, 2, 3, 4), tensor(r, f32, 2, 1, 4),
                      tensor(r, f32, 2, 3, 5), RULE("x", how), EBB_E_SHAPE, "[3, 5]", "[3, 4]");
        assert_unlike(court, tensor(r, f32, 0, 0, 0), tensor(r, f32, 0, 0, 0),
                      tensor(r, f32, 0, 0, 0), RULE("x", how), EBB_E_SHAPE, "sample 0", "[]");
    }
}

static void options_that_make_no_sense_are_refused(void **state) {
    struct court *court = *state;
    void *samples[] = {wrapped(court->root, ebb_node_new_none(court->root))};
    const struct ebb_collate_options small = {4, NULL, 0}, no_rules = {sizeof small, NULL, 2};
    const struct ebb_collate_options *const options[] = {
        &small,
        &no_rules,
        RULE("y", EBB_COLLATE_PAD),
        RULE("x/2", EBB_COLLATE_PAD),
        RULE(NULL, EBB_COLLATE_PAD),
        RULE("", (enum ebb_collate_how)5),
    };
    static const char *const parts[] = {"4 bytes", "2 rules", "'y'", "'x/2'",
                                        "''",      "how 5"};
    struct sight before = sight_of(court->child);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        assert_null(ebb_batch_collate(court->child, samples, 1, options[i], NULL));
        assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, parts[i],
                             NULL);
    }
    assert_null(ebb_batch_collate(court->child, samples, 0, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_EMPTY, NULL);
    assert_null(ebb_batch_collate(court->child, NULL, 3, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "3", NULL);
    assert_null(ebb_batch_collate(court->child, (void *[]){court->small}, 1, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, NULL);
    assert_null(ebb_batch_collate(court->closed, samples, 1, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_STALE, NULL);
    assert_null(ebb_batch_collate(court->measuring, samples, 1, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_MEASURING, NULL);
    assert_null(ebb_batch_collate(court->sealed, samples, 1, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_SEALED, NULL);
}

static void batches_that_would_be_too_deep_are_refused(void **state) {
    struct court *court = *state;
    void *samples[2];
    for (int i = 0; i < 2; i++) {
        samples[i] = ebb_node_new_string(court->root, "x");
        for (int k = 0; k < EBB_DEPTH_MAX; k++)
            samples[i] = ebb_node_new_tuple(court->root, &samples[i], 1);
    }
    struct sight before = sight_of(court->child);
    assert_null(ebb_batch_collate(court->child, samples, 2, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_DEPTH, "64", NULL);
}

/* A tuple whose member was written back after it had gone further down without it. */
static void samples_that_are_too_deep_are_refused(void **state) {
    struct court *court = *state;
    void *samples[2];
    for (int i = 0; i < 2; i++) {
        struct ebb_node *middle = NULL;
        void *lost = NULL;
        samples[i] = ebb_node_new_string(court->root, "x");
        for (int k = 0; k < 100; k++) {
            samples[i] = ebb_node_new_tuple(court->root, &samples[i], 1);
            if (k != 50)
                continue;
            middle = samples[i];
            lost = middle->members[0];
            middle->members[0] = NULL;
        }
        middle->members[0] = lost;
    }
    struct sight before = sight_of(court->child);
    assert_null(ebb_batch_collate(court->child, samples, 2, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_DEPTH, "100", NULL);
}

/* A struct that was never composed can lead in circles: nothing follows it for ever. */
static void circles_are_not_followed(void **state) {
    static struct page page;
    struct court *court = *state;
    struct ebb_node *circles[2];
    for (int i = 0; i < 2; i++) {
        circles[i] = ebb_object_new(court->child, &ebb_type_node, 0);
        circles[i]->kind = EBB_NODE_LIST;
        circles[i]->count = 1;
        circles[i]->members = ebb_region_alloc(court->child, sizeof(void *), 16);
        circles[i]->members[0] = circles[i];
        struct sight before = sight_of(court->child);
        assert_sight_refused(court->child, &before, ebb_object_compose(circles[i]), EBB_E_CYCLE,
                             NULL);
    }
    struct sight before = sight_of(court->child);
    assert_null(ebb_batch_collate(court->child, (void *const *)circles, 2, NULL, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_NOT_OWNED, "sample 0 of 2",
                         "'0'", "was not composed", NULL);
    assert_false(ebb_batch_equal(circles[0], circles[1]));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_NOT_OWNED, "members",
                         NULL);
    assert_int_equal(ebb_report_batch(circles[0], EBB_REPORT_JSON, page_write, &page), 0);
    assert_string_equal(page.text, "{\"list\":[{\"no member\":true}]}");
    circles[0]->count = circles[1]->count = 0;
}

static struct ebb_node *node_by_hand(ebb_region region, int kind, size_t count, size_t bytes) {
    struct ebb_node *node = ebb_object_new(region, &ebb_type_node, 16);
    assert_non_null(node);
    node->kind = kind;
    node->members = ebb_region_alloc_zeroed(region, 16, 16);
    node->count = count;
    node->byte_count = bytes;
    return node;
}

/* Neither counts nor bytes nor members of what nobody composed are believed. */
static void samples_made_by_hand_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_node *strange = node_by_hand(court->child, EBB_NODE_TUPLE, 2, 0);
    strange->members[0] = strange->members[1] = (void *)&court;
    struct ebb_sample *data = ebb_object_new(court->child, &ebb_type_sample, 0);
    struct ebb_sample *bytes = sample(court->child, tensor(court->child, f32, 1, 2, 0),
                                      (struct ebb_sample_info){.kind = EBB_SAMPLE_MASK});
    data->kind = EBB_SAMPLE_MASK;
    data->data = (struct ebb_tensor *)(void *)&court;
    bytes->byte_count = MIB;
    const struct {
        void *sample;
        int code;
    } cases[] = {
        {node_by_hand(court->child, EBB_NODE_LIST, 100000, 0), EBB_E_TYPE},
        {node_by_hand(court->child, EBB_NODE_DICT, 1, 0), EBB_E_TYPE},
        {node_by_hand(court->child, EBB_NODE_NAMED_TUPLE, 2, MIB), EBB_E_TYPE},
        {node_by_hand(court->child, EBB_NODE_BYTES, 0, MIB), EBB_E_TYPE},
        {node_by_hand(court->child, EBB_NODE_STRING, 0, 16), EBB_E_TYPE},
        {strange, EBB_E_NOT_OWNED},
        {data, EBB_E_NOT_OWNED},
        {bytes, EBB_E_METADATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *two[] = {cases[i].sample, cases[i].sample};
        struct sight before = sight_of(court->child);
        assert_null(ebb_batch_collate(court->child, two, 2, NULL, NULL));
        assert_sight_refused(court->child, &before, ebb_last_error(), cases[i].code, NULL);
    }
}

/* At every limit either the whole batch fits, or nothing happened. How often not. */
static unsigned collate_under_limits(struct court *court, void *const *samples) {
    unsigned refused = 0;
    for (size_t limit = 48;; limit += limit < 4000 ? 16 : limit / 8 & ~(size_t)15) {
        ebb_region tight = OPEN(.parent = court->root, .limit_bytes = limit);
        struct sight before = sight_of(tight);
        bool made = ebb_batch_collate(tight, samples, 3, NULL, NULL) != NULL;
        if (!made)
            assert_sight_refused(tight, &before, ebb_last_error(), EBB_E_REGION_LIMIT, NULL);
        assert_int_equal(ebb_region_close(tight), 0);
        if (made)
            return refused;
        refused++;
    }
}

static void a_batch_that_does_not_fit_the_limit_leaves_no_trace(void **state) {
    struct court *court = *state;
    unsigned refused = 0;
    void *samples[3];
    for (uint64_t seed = 1; seed <= 25; seed++) {
        for (uint64_t i = 0; i < 3; i++)
            assert_non_null(samples[i] = tree_make(court->root, seed, i, TREE_COLLATABLE));
        refused += collate_under_limits(court, samples);
    }
    assert_true(refused > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TRIAL(shapes_that_do_not_agree_are_named),
        TRIAL(data_types_that_differ_are_named),
        TRIAL(structures_that_differ_are_named),
        TRIAL(metadata_that_differs_is_named),
        TRIAL(ways_on_which_a_kind_would_be_lost_are_refused),
        TRIAL(leaves_that_nothing_is_known_of_are_refused),
        TRIAL(members_that_were_ended_are_missed),
        TRIAL(paddings_that_do_not_fit_are_refused),
        TRIAL(options_that_make_no_sense_are_refused),
        TRIAL(batches_that_would_be_too_deep_are_refused),
        TRIAL(samples_that_are_too_deep_are_refused),
        TRIAL(circles_are_not_followed),
        TRIAL(samples_made_by_hand_are_refused),
        TRIAL(a_batch_that_does_not_fit_the_limit_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
