// SPDX-License-Identifier: Apache-2.0
/* objects.c - whole objects cross, and what somebody wrote into their description does not. */
#include "handoff/duo.h"
#include "handoff/manifest.h"
#include "handoff/post.h"
#include "kit/boxes.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"
#include "kit/trees.h"
#include "pool/shared.h"

#include <ebb/ragged.h>
#include <ebb/sequence.h>

static void trees_arrive_as_they_were(void **state) {
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct post post = open_post();
        void *same = tree_make(post.to, seed, seed + 1000, TREE_ANY);
        void *made = deliver(&post, tree_make(post.from, seed, seed + 1000, TREE_ANY));
        assert_true(ebb_batch_equal(made, same));
        void *again = ebb_lease_object(post.lease, post.to);
        assert_true(ebb_batch_equal(again, same));
        ebb_lease_drop(post.lease);
        post.lease = NULL;
        assert_true(ebb_batch_equal(made, again)); /* it holds what it needs */
        ebb_check_pool(ebb_pool_default());
        close_post(&post);
    }
}

static void a_tensor_is_where_it_was_sent(void **state) {
    struct post post = open_post();
    struct ebb_tensor *tensor = counting(post.from, SHAPE(40, 50));
    size_t offset = ebb_region_offset(post.from, tensor->data);
    struct ebb_tensor *made = deliver(&post, tensor);
    assert_ptr_equal(made->data, ebb_lease_at(post.lease, offset, 8000));
    assert_int_equal(element_at(made, 1999), 1999);
    assert_false(ebb_tensor_is_read_only(made));
    ebb_lease_drop(post.lease);
    post.lease = NULL;
    assert_states(post.pool, 0, 0, 1);
    assert_int_equal(ebb_object_end(made), 0);
    assert_states(post.pool, 0, 0, 0);
    close_post(&post);
}

static void what_shared_bytes_shares_them_still(void **state) {
    struct post post = open_post();
    struct box *box = box_in(post.from);
    struct ebb_tensor *base = counting(post.from, SHAPE(10, 10));
    struct ebb_tensor *view =
        ebb_tensor_view(post.from, base, 1, SIZES(10), SIZES(10), 3); /* a column */
    box->left = &base->object;
    box->right = &view->object;
    assert_int_equal(ebb_object_compose(box), 0);
    struct box *made = deliver(&post, box);
    struct ebb_tensor *left = (struct ebb_tensor *)made->left;
    struct ebb_tensor *right = (struct ebb_tensor *)made->right;
    assert_ptr_equal(left->storage, right->storage);
    assert_int_equal(left->storage->tensors, 2);
    assert_int_equal(element_at(right, 9), 93);
    *(int32_t *)place_of(left, 93) = -1;
    assert_int_equal(element_at(right, 9), -1);
    close_post(&post);
}

/* Its head is not for others, its elements are. */
static void a_view_that_goes_alone_takes_only_what_it_sees(void **state) {
    struct ebb_own_options compact = {.size = sizeof compact, .compact = true};
    static const int64_t rows[] = {1, 10, 5000};
    for (unsigned i = 0; i < 3; i++) {
        struct post post = open_post();
        ebb_region inner = OPEN(.parent = post.from);
        struct ebb_tensor *base = counting(inner, SHAPE(rows[i], 30));
        struct ebb_tensor *other = counting(inner, SHAPE(rows[i], 30));
        void *views[] = {ebb_tensor_view(inner, base, 1, SIZES(rows[i]), SIZES(30), 7),
                         ebb_tensor_view(inner, other, 1, SIZES(rows[i]), SIZES(30), 0)};
        struct ebb_promoted cost = {0};
        assert_int_equal(ebb_objects_promote(inner, post.from, views, 2, &compact, &cost), 0);
        struct ebb_tensor *column = views[0];
        size_t bytes = (size_t)rows[i] * sizeof(int32_t);
        assert_int_equal(cost.copied_blocks, 2);
        assert_int_equal(cost.copied_bytes, 2 * bytes);
        assert_int_equal(base->storage->tensors, 1);
        assert_int_equal(column->storage->bytes, bytes);
        assert_true(ebb_tensor_is_contiguous(column));
        assert_true(ebb_region_owns(post.from, column));
        assert_int_equal(ebb_region_close(inner), 0);
        assert_int_equal(stats_of(post.from).requested.current, 2 * bytes);
        assert_int_equal(ebb_object_end(views[1]), 0);
        assert_int_equal(stats_of(post.from).requested.current, bytes);
        assert_int_equal(ebb_check_pool(post.pool), 0);
        size_t offset = ebb_region_offset(post.from, column->data);
        struct ebb_tensor *made = deliver(&post, column);
        assert_ptr_equal(made->data, ebb_lease_at(post.lease, offset, bytes));
        for (int64_t row = 0; row < rows[i]; row++)
            assert_int_equal(element_at(made, row), 30 * row + 7);
        close_post(&post);
    }
}

/* Without elements, or several views of them: what the type is matters to nobody. */
static void elements_of_any_type_arrive(void **state) {
    static const struct ebb_dtype types[] = {
        {EBB_FLOAT, 8, 1}, {EBB_INT, 4, 1}, {EBB_INT, 24, 1}, {EBB_FLOAT, 32, 4}, {EBB_BOOL, 8, 2}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int64_t rows = 0; rows < 4; rows++) {
            struct post post = open_post();
            struct box *box = box_in(post.from);
            struct ebb_tensor *base = ebb_tensor_new(post.from, types[i], SHAPE(rows, 5));
            int64_t stride = base->strides[0];
            box->left = &base->object;
            box->right = &ebb_tensor_view(post.from, base, SHAPE(rows), &stride, 0)->object;
            assert_int_equal(ebb_object_compose(box), 0);
            struct box *made = deliver(&post, box);
            struct ebb_tensor *left = (struct ebb_tensor *)made->left;
            assert_true(ebb_dtype_equal(left->dtype, types[i]));
            assert_shape(left, SHAPE(rows, 5));
            assert_shape((struct ebb_tensor *)made->right, SHAPE(rows));
            assert_int_equal(ebb_object_end(made), 0);
            close_post(&post);
        }
}

static void what_lies_elsewhere_is_copied(void **state) {
    struct post post = open_post();
    static float elements[100];
    int64_t count = 100;
    for (int i = 0; i < 100; i++)
        elements[i] = (float)i;
    DLManagedTensor managed = {.dl_tensor = {.data = elements, .device = {kDLCPU, 0}, .ndim = 1,
                                             .dtype = {kDLFloat, 32, 1}, .shape = &count}};
    struct ebb_tensor *imported = ebb_tensor_import(post.from, &managed, EBB_EXCHANGE_SHARE);
    assert_non_null(imported);
    struct ebb_tensor *made = deliver(&post, imported);
    assert_memory_equal(made->data, elements, sizeof elements);
    assert_true((char *)made->data >= (char *)ebb_lease_at(post.lease, 0, 1));
    close_post(&post);
}

static void boxes_take_bytes_and_lists_along(void **state) {
    struct post post = open_post();
    struct box *box = box_in(post.from);
    box->bytes = block_of(post.from, 1000, 8);
    box->byte_count = 1000;
    box->parts = ebb_region_alloc_zeroed(post.from, 5 * sizeof *box->parts, 8);
    box->part_count = 5;
    box->parts[1] = &floats_in(post.from, 30)->object;
    box->parts[4] = &box_in(post.from)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    struct box *made = deliver(&post, box);
    assert_true(pattern_holds(made->bytes, 1000, 1000));
    assert_int_equal(made->part_count, 5);
    assert_null(made->left);
    assert_null(made->parts[0]);
    assert_true(floats_hold((struct ebb_tensor *)made->parts[1], 30));
    assert_ptr_equal(made->parts[4]->type, &box_type);
    close_post(&post);
}

struct turned {
    struct ebb_object object;
    void *self;
};

static void mend(struct ebb_object *copy, const struct ebb_object *original) {
    ((struct turned *)copy)->self = copy;
}

static struct ebb_type turned_type = {.name = "turned", .bytes = sizeof(struct turned),
                                      .mend = mend};

static void what_cannot_be_sent_stays(void **state) {
    struct post post = open_post();
    struct ebb_parcel parcel;
    assert_int_equal(ebb_type_register(&turned_type), 0);
    void *turned = ebb_object_new(post.from, &turned_type, 0);
    struct ebb_region_stats before = stats_of(post.from);
    assert_refused(ebb_region_send_object(post.from, turned, &parcel), EBB_E_TYPE);
    assert_refused(ebb_region_send_object(post.from, &post, &parcel), EBB_E_FOREIGN);
    assert_refused(ebb_region_send_object(post.to, turned, &parcel), EBB_E_KIND);
    struct ebb_tensor *tensor = tensor_of_bytes(post.from, 5000);
    DLManagedTensor *out = share(tensor);
    uint64_t blocks = stats_of(post.from).blocks.current;
    assert_refused(ebb_region_send_object(post.from, tensor, &parcel), EBB_E_BUSY);
    assert_int_equal(stats_of(post.from).blocks.current, blocks);
    give_back(out);
    assert_int_equal(ebb_region_count_exports(post.from), 0);
    struct ebb_tensor *made = deliver(&post, tensor);
    assert_true(pattern_holds(made->data, 5000, 5000));
    close_post(&post);
}

static void a_root_that_is_no_manifest_is_refused(void **state) {
    struct post post = open_post();
    assert_int_equal(ebb_region_close(post.from), 0);
    struct ebb_parcel parcel = send_pattern(post.pool, 5000, 1);
    post.lease = ebb_parcel_open(post.pool, &parcel);
    assert_null(ebb_lease_object(post.lease, post.to));
    assert_int_equal(ebb_last_error(), EBB_E_PARCEL);
    close_post(&post);
}

/* Any word of the description is changed, to anything: an error, or some other tree; no crash, no
 * trace in the region, and no tensor outside of the slot. */
static void damaged_descriptions_are_survived(void **state) {
    unsigned refused = 0, made_some = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct post post = open_post();
        struct dice dice = {seed};
        struct ebb_parcel parcel;
        void *tree = tree_make(post.from, seed, seed, TREE_ANY);
        assert_int_equal(ebb_region_send_object(post.from, tree, &parcel), 0);
        post.lease = ebb_parcel_open(post.pool, &parcel);
        size_t bytes, words;
        uint64_t *root = ebb_lease_root(post.lease, &bytes);
        words = bytes / sizeof *root;
        ebb_region into = OPEN(.parent = post.to);
        for (unsigned turn = 0; turn < 200; turn++) {
            size_t at = dice_roll(&dice, words);
            uint64_t good = root[at];
            switch (dice_roll(&dice, 5)) {
            case 0: root[at] = dice_roll(&dice, UINT64_MAX); break;
            case 1: root[at] = dice_roll(&dice, words * 2); break;
            case 2: root[at] += 1 - dice_roll(&dice, 3); break;
            case 3: root[at] = UINT64_MAX - dice_roll(&dice, 64); break;
            default: root[at] ^= (uint64_t)1 << dice_roll(&dice, 64);
            }
            uint64_t blocks = stats_of(into).blocks.current;
            void *made = ebb_lease_object(post.lease, into);
            if (made) {
                assert_true(ebb_batch_equal(made, made) || ebb_last_error());
                assert_int_equal(ebb_object_end(made), 0);
                made_some++;
            } else {
                assert_int_not_equal(ebb_last_error(), 0);
                refused++;
            }
            assert_int_equal(stats_of(into).blocks.current, blocks);
            root[at] = good;
        }
        assert_int_equal(ebb_region_close(into), 0);
        close_post(&post);
    }
    assert_true(refused > 2000);
    assert_true(made_some > 500);
}

/* Words of a manifest that would lead behind what was allocated, each by itself. */
static void single_lies_are_named(void **state) {
    struct post post = open_post();
    struct box *box = box_in(post.from);
    struct ebb_tensor *base = counting(post.from, SHAPE(10, 10));
    struct ebb_parcel parcel;
    size_t bytes;
    box->left = &base->object;
    box->right = &ebb_tensor_view(post.from, base, 1, SIZES(10), SIZES(10), 3)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    assert_int_equal(ebb_region_send_object(post.from, box, &parcel), 0);
    post.lease = ebb_parcel_open(post.pool, &parcel);
    uint64_t *words = ebb_lease_root(post.lease, &bytes);
    size_t box_at = 5; /* behind the head and one storage: kind, layout, name, struct ... */
    size_t present = box_at + 4 + 1 + words[box_at + 3] / 8; /* left, right, no parts, bytes */
    size_t left = present + 3, right = left + 4 + 4;
    const struct {
        size_t at;
        uint64_t lie;
        const char *text;
    } lies[] = {
        {1, 2, "one member more than objects"},
        {1, 4, "too short"},
        {2, 0, ""},
        {3, POST_SLOT_BYTES, ""},
        {4, POST_SLOT_BYTES, ""},
        {box_at, 3, "kind of object 3"},
        {box_at + 1, 1, "another layout"},
        {box_at + 2, 2, "not registered"},
        {box_at + 3, 8, "struct too short"},
        {present, 0, "part of nothing"},
        {present, 2, "member 2"},
        {present + 2, 2, "bytes 2"}, /* 1 would be true: a block of no bytes */
        {left + 1, (uint64_t)33 << 32 | words[left + 1] % 256, "dimensions 33"},
        {left + 2, 1, "storage 1"},
        {right + 3, words[4], "not in its storage"},
        {right + 3, words[4] - 4, "not in its storage"},
        {right + 3, 2, "aligned"},
        {right + 5, UINT64_MAX, "negative"},
        {right + 5, words[4], "not in its storage"},
    };
    assert_int_equal(words[present], 1);
    assert_int_equal(words[left], 1);
    assert_int_equal(words[right], 1);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint64_t good = words[lies[i].at];
        words[lies[i].at] = lies[i].lie;
        void *made = ebb_lease_object(post.lease, post.to);
        if (made || !strstr(ebb_last_error_text(), lies[i].text))
            print_error("lie %zu: %s\n", i, made ? "believed" : ebb_last_error_text());
        assert_null(made);
        assert_text_names(lies[i].text);
        words[lies[i].at] = good;
    }
    assert_non_null(ebb_lease_object(post.lease, post.to));
    close_post(&post);
}

/* ---- lies about sequences ---- */

/* Where a packed sequence of two members has what, behind the head and two storages. */
enum packed_word {
    PACKED_STRUCT = 12,
    PACKED_HAS_INDICES = PACKED_STRUCT + 4,
    PACKED_COUNT = PACKED_STRUCT + 5,
    PACKED_PRESENT = PACKED_STRUCT + 7,
    PACKED_SIZES = PACKED_PRESENT + 4 + 8, /* behind the data, of two dimensions */
    PACKED_SIZES_SHAPE = PACKED_SIZES + 4,
    PACKED_SIZES_STRIDE
};

/* Sequences of 3, 2 and 2 steps, in this order: no indices are needed. */
static struct post send_packed(uint64_t **words) {
    struct post post = open_post();
    struct ebb_pack_options sorted = {.size = sizeof sorted, .enforce_sorted = true};
    struct ebb_tensor *sequences[] = {counting(post.from, SHAPE(3, 4)),
                                      counting(post.from, SHAPE(2, 4)),
                                      counting(post.from, SHAPE(2, 4))};
    void *packed = ebb_sequences_pack(post.from, sequences, 3, &sorted);
    struct ebb_parcel parcel;
    size_t bytes;
    assert_non_null(packed);
    assert_int_equal(ebb_region_send_object(post.from, packed, &parcel), 0);
    post.lease = ebb_parcel_open(post.pool, &parcel);
    *words = ebb_lease_root(post.lease, &bytes);
    assert_int_equal((*words)[PACKED_STRUCT - 2], 7 * sizeof(uint64_t));
    assert_int_equal((*words)[PACKED_COUNT], 3);
    assert_int_equal((*words)[PACKED_SIZES_SHAPE], 3);
    assert_int_equal((*words)[PACKED_SIZES_STRIDE], 1);
    assert_int_equal(bytes, (PACKED_SIZES_STRIDE + 1) * sizeof(uint64_t));
    return post;
}

/* Notes about objects take memory of this process: no more than their words would. */
static void no_more_objects_are_noted_than_words_hold(void **state) {
    enum { WORDS = 100000 };
    struct post post = open_post();
    uint64_t *words = ebb_region_alloc_zeroed(post.from, WORDS * sizeof *words, 64);
    struct ebb_parcel parcel;
    memcpy(words, (uint64_t[]){MANIFEST_MAGIC, 1, 1}, 3 * sizeof *words);
    assert_int_equal(ebb_region_send(post.from, words, &parcel), 0);
    post.lease = ebb_parcel_open(post.pool, &parcel);
    words = ebb_lease_root(post.lease, NULL);
    ebb_region into = OPEN(.parent = post.to, .limit_bytes = 3 * WORDS * sizeof *words);
    for (unsigned at = 1; at < 3; at++) {
        words[at] = WORDS;
        assert_no_block(ebb_lease_object(post.lease, into), EBB_E_PARCEL);
        assert_text_names("too many objects");
        words[at] = 1;
    }
    words[1] = (WORDS - 3) / 4; /* as many as there can be: looked at one by one */
    words[2] = 0;
    assert_no_block(ebb_lease_object(post.lease, into), EBB_E_PARCEL);
    assert_text_names("kind of object 0");
    close_post(&post);
}

/* A stride of 0 makes any number of integers of one: that would be taken from this process. */
static void what_is_copied_is_no_more_than_was_sent(void **state) {
    uint64_t *words;
    struct post post = send_packed(&words);
    ebb_region into = OPEN(.parent = post.to, .limit_bytes = MIB);
    words[PACKED_SIZES_SHAPE] = (uint64_t)1 << 40;
    words[PACKED_SIZES_STRIDE] = 0;
    assert_no_block(ebb_lease_object(post.lease, into), EBB_E_PARCEL);
    assert_text_names("lie on each other");
    words[PACKED_SIZES_SHAPE] = 3;
    words[PACKED_SIZES_STRIDE] = 1;
    assert_non_null(ebb_lease_object(post.lease, into));
    close_post(&post);
}

/* Storages that are all of the slot, one as the other: 6 words for each tensor, those of the
 * integers are the last. */
static void what_is_copied_in_all_is_no_more_than_was_sent(void **state) {
    struct post post = open_post();
    struct ebb_tensor *sequences[] = {counting(post.from, SHAPE(2, 4)),
                                      counting(post.from, SHAPE(3, 4))};
    void *packed = ebb_sequences_pack(post.from, sequences, 2, NULL);
    struct ebb_parcel parcel;
    size_t bytes;
    assert_int_equal(ebb_region_send_object(post.from, packed, &parcel), 0);
    post.lease = ebb_parcel_open(post.pool, &parcel);
    uint64_t *words = ebb_lease_root(post.lease, &bytes), sent = ebb_lease_bytes(post.lease);
    for (unsigned i = 1; i <= 3; i++) {
        uint64_t *tensor = words + bytes / sizeof *words - 6 * i;
        assert_int_equal(tensor[0], MANIFEST_IS_TENSOR);
        words[MANIFEST_HEAD + MANIFEST_STORAGE * tensor[2]] = 0;
        words[MANIFEST_HEAD + MANIFEST_STORAGE * tensor[2] + 1] = sent;
        tensor[4] = sent / sizeof *words;
    }
    assert_no_block(ebb_lease_object(post.lease, post.to), EBB_E_PARCEL);
    assert_text_names("more to copy than was sent");
    close_post(&post);
}

/* One sequence of STEPS steps, whose elements and batch sizes are those of all such. */
enum { STEPS = 20000, SHARERS = 100 };

static struct ebb_packed *packed_like(ebb_region region, const struct ebb_tensor *data,
                                      const struct ebb_tensor *sizes) {
    return ebb_packed_from(
        region, ebb_tensor_view(region, data, 1, SIZES(STEPS), SIZES(1), 0),
        ebb_tensor_view(region, sizes, 1, SIZES(STEPS), SIZES(1), 0), NULL, NULL);
}

/* Many sequences may be of one form: tokens and their labels, say. */
static void integers_that_shared_bytes_are_copied_once(void **state) {
    struct post post = open_post();
    struct ebb_tensor *data =
        ebb_tensor_new(post.from, (struct ebb_dtype){EBB_UINT, 8, 1}, 1, SIZES(STEPS));
    struct ebb_tensor *sizes =
        ebb_tensor_new(post.from, (struct ebb_dtype){EBB_INT, 64, 1}, 1, SIZES(STEPS));
    void *sequences[SHARERS];
    assert_int_equal(ebb_tensor_fill(data, ebb_value_int(7)), 0);
    assert_int_equal(ebb_tensor_fill(sizes, ebb_value_int(1)), 0);
    for (unsigned i = 0; i < SHARERS; i++)
        sequences[i] = packed_like(post.from, data, sizes);
    struct ebb_node *list = ebb_node_new_list(post.from, sequences, SHARERS);
    assert_non_null(list);
    ebb_region_close(post.to);
    post.to = OPEN(.name = "to", .limit_bytes = MIB);
    list = deliver(&post, list);
    const struct ebb_packed *first = list->members[0], *last = list->members[SHARERS - 1];
    assert_ptr_equal(first->batch_sizes->data, last->batch_sizes->data);
    assert_null(shared_slot_at(last->batch_sizes->data));
    assert_int_equal(((int64_t *)last->batch_sizes->data)[STEPS - 1], 1);
    ebb_region on = OPEN(.name = "on", .pool = post.pool); /* and so from there */
    list = ebb_lease_object(post.lease, on);
    assert_non_null(list);
    last = list->members[SHARERS - 1];
    assert_null(shared_slot_at(last->batch_sizes->data));
    struct ebb_parcel parcel;
    assert_int_equal(ebb_region_send_object(on, list, &parcel), 0);
    ebb_lease *lease = ebb_parcel_open(post.pool, &parcel);
    assert_true(ebb_lease_bytes(lease) < MIB);
    list = ebb_lease_object(lease, post.to);
    ebb_lease_drop(lease);
    assert_non_null(list);
    last = list->members[SHARERS - 1];
    assert_int_equal(((int64_t *)last->batch_sizes->data)[STEPS - 1], 1);
    ebb_check_pool(ebb_pool_default());
    close_post(&post);
}

/* Any byte may come; only two are a bool. */
static void a_bool_is_false_or_true(void **state) {
    uint64_t *words;
    struct post post = send_packed(&words);
    for (uint64_t byte = 1; byte < 256; byte++) {
        words[PACKED_HAS_INDICES] = byte;
        assert_no_block(ebb_lease_object(post.lease, post.to),
                        byte == 1 ? EBB_E_RELEASED : EBB_E_TYPE);
    }
    words[PACKED_HAS_INDICES] = 0;
    assert_non_null(ebb_lease_object(post.lease, post.to));
    close_post(&post);
}

static void a_count_that_no_array_has_is_refused(void **state) {
    static const uint64_t refused[] = {INT64_MAX, INT64_MAX / 8, UINT64_MAX, (uint64_t)1 << 63};
    uint64_t *words;
    struct post post = send_packed(&words);
    for (unsigned i = 0; i < sizeof refused / sizeof *refused; i++) {
        words[PACKED_COUNT] = refused[i];
        assert_no_block(ebb_lease_object(post.lease, post.to), EBB_E_LENGTH_COUNT);
    }
    words[PACKED_COUNT] = INT64_MAX / 8 - 1;
    struct ebb_packed *packed = ebb_lease_object(post.lease, post.to);
    assert_non_null(packed);
    assert_no_block(ebb_packed_join(post.to, packed), EBB_E_SIZE);
    close_post(&post);
}

/* Whoever passes on what he got makes it in shared memory: not what ebb goes by there. */
static void integers_are_copied_where_nobody_else_writes(void **state) {
    uint64_t *words;
    struct post post = send_packed(&words);
    ebb_region on = OPEN(.name = "on", .pool = post.pool);
    struct ebb_packed *packed = ebb_lease_object(post.lease, on);
    assert_non_null(packed);
    assert_null(shared_slot_at(packed->batch_sizes->data));
    assert_null(shared_slot_at(packed->batch_sizes));
    assert_non_null(shared_slot_at(packed->data->data));
    struct ebb_parcel parcel;
    assert_int_equal(ebb_region_send_object(on, packed, &parcel), 0);
    ebb_lease *lease = ebb_parcel_open(post.pool, &parcel);
    packed = ebb_lease_object(lease, post.to);
    assert_non_null(packed);
    assert_int_equal(packed->count, 3);
    assert_int_equal(*(int64_t *)packed->batch_sizes->data, 3);
    assert_int_equal(element_at(packed->data, 27), 11);
    ebb_lease_drop(lease);
    close_post(&post);
}

static int send_trees(ebb_pool *pool, int out, const void *context) {
    for (uint64_t seed = 1; seed <= 30; seed++) {
        ebb_region region = OPEN(.pool = pool);
        struct ebb_parcel parcel;
        void *tree = tree_make(region, seed, seed, TREE_ANY);
        if (!tree || ebb_region_send_object(region, tree, &parcel) != 0 ||
            !write_all(out, &parcel, sizeof parcel))
            return 1;
    }
    return 0;
}

static void trees_come_from_another_process(void **state) {
    ebb_pool *pool = shared_pool(40, POST_SLOT_BYTES);
    ebb_region here = OPEN(.name = "here");
    (void)tree_own_type();
    struct duo duo = duo_fork(pool, send_trees, NULL);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct ebb_parcel parcel;
        assert_true(read_all(duo.in, &parcel, sizeof parcel));
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        void *made = ebb_lease_object(lease, here);
        if (!made)
            print_error("%s\n", ebb_last_error_text());
        assert_non_null(made);
        ebb_lease_drop(lease);
        assert_true(ebb_batch_equal(made, tree_make(here, seed, seed, TREE_ANY)));
    }
    assert_int_equal(duo_end(&duo), 0);
    assert_int_equal(ebb_region_close(here), 0);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

/* They are private to the process as long as their region is shared, and may leave it. */
static void many_numbers_of_sequences_are_aligned_as_large_tensors_are(void **state) {
    enum { COUNT = 3000 };
    struct post post = open_post();
    struct ebb_tensor *sequence = counting(post.from, SHAPE(1)), *sequences[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        sequences[i] = sequence;
    const struct ebb_pack_options options = {.size = sizeof options, .enforce_sorted = false};
    struct ebb_packed *packed = ebb_sequences_pack(post.from, sequences, COUNT, &options);
    assert_non_null(packed);
    const struct ebb_tensor *indices = packed->sorted_indices;
    assert_int_equal((uintptr_t)indices->data % EBB_STORAGE_ALIGN, 0);
    struct ebb_ragged *ragged = ebb_sequences_join(post.from, sequences, COUNT);
    assert_non_null(ragged);
    assert_int_equal((uintptr_t)ragged->offsets->data % EBB_STORAGE_ALIGN, 0);
    assert_non_null(packed = ebb_object_move(packed, post.to));
    give_back(share(packed->sorted_indices));
    give_back(share(packed->unsorted_indices));
    assert_non_null(ragged = ebb_object_move(ragged, post.to));
    give_back(share(ragged->offsets));
    assert_int_equal(ebb_region_close(post.from), 0);
    close_post(&post);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_is_where_it_was_sent),
        cmocka_unit_test(what_shared_bytes_shares_them_still),
        cmocka_unit_test(a_view_that_goes_alone_takes_only_what_it_sees),
        cmocka_unit_test(elements_of_any_type_arrive),
        cmocka_unit_test(what_lies_elsewhere_is_copied),
        cmocka_unit_test(boxes_take_bytes_and_lists_along),
        cmocka_unit_test(what_cannot_be_sent_stays),
        cmocka_unit_test(a_root_that_is_no_manifest_is_refused),
        cmocka_unit_test(trees_arrive_as_they_were),
        cmocka_unit_test(trees_come_from_another_process),
        cmocka_unit_test(single_lies_are_named),
        cmocka_unit_test(no_more_objects_are_noted_than_words_hold),
        cmocka_unit_test(what_is_copied_is_no_more_than_was_sent),
        cmocka_unit_test(what_is_copied_in_all_is_no_more_than_was_sent),
        cmocka_unit_test(integers_that_shared_bytes_are_copied_once),
        cmocka_unit_test(a_bool_is_false_or_true),
        cmocka_unit_test(integers_are_copied_where_nobody_else_writes),
        cmocka_unit_test(a_count_that_no_array_has_is_refused),
        cmocka_unit_test(damaged_descriptions_are_survived),
        cmocka_unit_test(many_numbers_of_sequences_are_aligned_as_large_tensors_are),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
