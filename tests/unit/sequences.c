// SPDX-License-Identifier: Apache-2.0
/*
 * sequences.c - random sequences go from every form to every form, and each byte is looked at.
 *
 * A byte of the payload follows from its sequence, its step and its place in the row, so it is
 * known where it belongs without a second implementation. Inputs have gaps, transposed rows and
 * padding on both sides, that of inputs full of rubbish.
 */
#include "kit/tensors.h"
#include "object/strand.h"

#include <ebb/ebb.h>
#include <stdlib.h>

enum { SEQUENCES_MAX = 140, RUBBISH = 0xEE, GAMES = 1500 };

struct game {
    ebb_region inputs, results;
    uint64_t random;
    struct ebb_dtype dtype;
    int ndim; /* of a row */
    int64_t shape[3];
    size_t row_bytes, payload;
    int64_t count, padded_length, longest;
    int64_t lengths[SEQUENCES_MAX];
    bool sorted;
};

static int64_t below(struct game *game, int64_t limit) {
    game->random = game->random * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((game->random >> 33) % (uint64_t)limit);
}

static bool toss(struct game *game) {
    return below(game, 2) != 0;
}

static unsigned char byte_at(int64_t sequence, int64_t step, size_t at) {
    return (unsigned char)((uint64_t)sequence * 89 + (uint64_t)step * 7 + at * 3 + (at >> 4) + 1);
}

static bool row_holds(const struct game *game, const char *row, int64_t sequence, int64_t step) {
    for (size_t at = 0; at < game->row_bytes; at++)
        if ((unsigned char)row[at] != byte_at(sequence, step, at))
            return false;
    return true;
}

/* ---- games ---- */

static void draw_rows(struct game *game) {
    static const uint8_t widths[] = {8, 16, 32, 64, 128};
    static const int64_t sizes[] = {1, 2, 3, 4, 8, 12, 32, 33, 64};
    game->dtype = (struct ebb_dtype){EBB_COMPLEX, widths[below(game, 5)], 1};
    game->dtype.code = game->dtype.bits == 128 ? EBB_COMPLEX : EBB_INT;
    game->row_bytes = game->dtype.bits / 8;
    game->ndim = (int)below(game, 4);
    for (int i = 0; i < game->ndim; i++) {
        game->shape[i] = sizes[below(game, i == 2 ? 9 : 5)];
        game->row_bytes *= (size_t)game->shape[i];
    }
}

static int descending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

static void draw_lengths(struct game *game) {
    int64_t most = below(game, 4) ? 1 + below(game, 12) : 1 + below(game, 60);
    game->count = below(game, 5) ? 1 + below(game, 9) : 1 + below(game, SEQUENCES_MAX);
    game->longest = 0;
    game->payload = 0;
    for (int64_t i = 0; i < game->count; i++) {
        game->lengths[i] = below(game, most + 1);
        game->payload += (size_t)game->lengths[i] * game->row_bytes;
        if (game->lengths[i] > game->longest)
            game->longest = game->lengths[i];
    }
    game->padded_length = game->longest + (toss(game) ? below(game, 4) : 0);
    game->sorted = toss(game);
    if (game->sorted)
        qsort(game->lengths, (size_t)game->count, sizeof *game->lengths, descending);
}

/* ---- inputs ---- */

/* A tensor of the shape, filled with rubbish: contiguous, with gaps, or with its rows turned. */
static struct ebb_tensor *rubbish(struct game *game, int ndim, const int64_t *shape) {
    int64_t wider[8] = {0}, strides[8] = {0}, stride = 1;
    int64_t way = below(game, 3);
    for (int i = 0; i < ndim; i++)
        wider[i] = shape[i] + (way == 1 && i < 2 ? below(game, 3) : 0);
    struct ebb_tensor *base = ebb_tensor_new(game->inputs, game->dtype, ndim, wider);
    assert_non_null(base);
    memset(base->data, RUBBISH, ebb_tensor_bytes(base));
    if (way != 2)
        return ebb_tensor_view(game->inputs, base, ndim, shape, base->strides, 0);
    for (int i = 0; i < ndim; i++) { /* the first dimension is the dense one */
        strides[i] = stride;
        stride *= shape[i] ? shape[i] : 1;
    }
    return ebb_tensor_view(game->inputs, base, ndim, shape, strides, 0);
}

/* Writes the row that begins at `row`, element by element. */
static void write_row(const struct game *game, const struct ebb_tensor *tensor, int lead,
                      char *row, int64_t sequence, int64_t step) {
    size_t element = game->dtype.bits / 8, count = game->row_bytes / element;
    for (size_t k = 0; k < count; k++) {
        int64_t left = (int64_t)k, offset = 0;
        for (int i = tensor->ndim - 1; i >= lead; i--) {
            offset += left % tensor->shape[i] * tensor->strides[i];
            left /= tensor->shape[i];
        }
        for (size_t at = 0; at < element; at++)
            row[(size_t)offset * element + at] =
                (char)byte_at(sequence, step, k * element + at);
    }
}

static void make_shape(const struct game *game, int lead, int64_t *shape) {
    memcpy(shape + lead, game->shape, sizeof *shape * (size_t)game->ndim);
}

static struct ebb_tensor *make_padded(struct game *game, bool batch_first, enum ebb_side side) {
    int64_t shape[8], element = game->dtype.bits / 8;
    shape[!batch_first] = game->count;
    shape[batch_first] = game->padded_length;
    make_shape(game, 2, shape);
    struct ebb_tensor *tensor = rubbish(game, 2 + game->ndim, shape);
    for (int64_t i = 0; i < game->count; i++)
        for (int64_t step = 0; step < game->lengths[i]; step++) {
            int64_t at = step + (side ? game->padded_length - game->lengths[i] : 0);
            int64_t offset =
                i * tensor->strides[!batch_first] + at * tensor->strides[batch_first];
            write_row(game, tensor, 2, (char *)tensor->data + offset * element, i, step);
        }
    return tensor;
}

static void make_list(struct game *game, struct ebb_tensor **list) {
    int64_t shape[8], element = game->dtype.bits / 8;
    make_shape(game, 1, shape);
    for (int64_t i = 0; i < game->count; i++) {
        shape[0] = game->lengths[i];
        list[i] = rubbish(game, 1 + game->ndim, shape);
        assert_non_null(list[i]);
        for (int64_t step = 0; step < game->lengths[i]; step++)
            write_row(game, list[i], 1,
                      (char *)list[i]->data + step * list[i]->strides[0] * element, i, step);
    }
}

/* ---- looking at results ---- */

static void look_at_list(const struct game *game, struct ebb_tensor *const *list) {
    for (int64_t i = 0; i < game->count; i++) {
        assert_int_equal(list[i]->ndim, 1 + game->ndim);
        assert_int_equal(list[i]->shape[0], game->lengths[i]);
        assert_true(ebb_tensor_is_contiguous(list[i]));
        for (int64_t step = 0; step < game->lengths[i]; step++)
            assert_true(row_holds(game, (char *)list[i]->data + (size_t)step * game->row_bytes, i,
                                  step));
    }
}

static void look_at_ragged(const struct game *game, const struct ebb_ragged *ragged) {
    const int64_t *offsets = ragged->offsets->data;
    const char *row = ragged->data->data;
    assert_int_equal(ragged->count, game->count);
    assert_int_equal(offsets[0], 0);
    for (int64_t i = 0; i < game->count; i++) {
        assert_int_equal(offsets[i + 1] - offsets[i], game->lengths[i]);
        for (int64_t step = 0; step < game->lengths[i]; step++, row += game->row_bytes)
            assert_true(row_holds(game, row, i, step));
    }
}

/* Longest first, ties in their order. */
static void look_at_order(const struct game *game, const struct ebb_packed *packed) {
    const int64_t *sorted = packed->sorted_indices->data;
    const int64_t *unsorted = packed->unsorted_indices->data;
    for (int64_t rank = 0; rank < game->count; rank++) {
        assert_int_equal(unsorted[sorted[rank]], rank);
        if (rank == 0)
            continue;
        int64_t before = game->lengths[sorted[rank - 1]], here = game->lengths[sorted[rank]];
        assert_true(before > here || (before == here && sorted[rank - 1] < sorted[rank]));
    }
}

static void look_at_packed(const struct game *game, const struct ebb_packed *packed,
                           int64_t padded_length) {
    const int64_t *sizes = packed->batch_sizes->data;
    const char *row = packed->data->data;
    assert_int_equal(packed->count, game->count);
    assert_int_equal(packed->padded_length, padded_length);
    assert_int_equal(packed->batch_sizes->shape[0], game->longest);
    assert_int_equal(packed->sorted_indices == NULL, !packed->has_indices);
    if (packed->has_indices)
        look_at_order(game, packed);
    for (int64_t step = 0; step < game->longest; step++)
        for (int64_t rank = 0; rank < sizes[step]; rank++, row += game->row_bytes) {
            int64_t sequence =
                packed->has_indices ? ((int64_t *)packed->sorted_indices->data)[rank] : rank;
            assert_true(row_holds(game, row, sequence, step));
        }
    assert_int_equal(row - (char *)packed->data->data, ebb_tensor_bytes(packed->data));
}

static bool element_holds(const struct game *game, const char *row, int64_t padding) {
    size_t element = game->dtype.bits / 8;
    for (size_t at = 0; at < game->row_bytes; at++) {
        unsigned char expected = game->dtype.bits <= 64 && at % element < 8
                                     ? (unsigned char)((uint64_t)padding >> at % element * 8)
                                     : 0;
        if ((unsigned char)row[at] != expected)
            return false;
    }
    return true;
}

static void look_at_padded(const struct game *game, const struct ebb_tensor *padded,
                           const struct ebb_pad_options *options, int64_t length) {
    bool batch_first = options->batch_first;
    assert_non_null(padded);
    assert_int_equal(padded->shape[!batch_first], game->count);
    assert_int_equal(padded->shape[batch_first], length);
    for (int64_t i = 0; i < game->count; i++) {
        int64_t here = game->lengths[i] < length ? game->lengths[i] : length;
        for (int64_t at = 0; at < length; at++) {
            int64_t step = options->side ? at - (length - here) : at;
            size_t row = (size_t)(batch_first ? i * length + at : at * game->count + i);
            const char *place = (char *)padded->data + row * game->row_bytes;
            if (step >= 0 && step < here)
                assert_true(row_holds(game, place, i, step));
            else
                assert_true(element_holds(game, place, options->padding.i));
        }
    }
}

/* ---- from form to form ---- */

static struct ebb_pad_options draw_padding(struct game *game) {
    struct ebb_pad_options options = {.size = sizeof options,
                                      .batch_first = toss(game),
                                      .side = (enum ebb_side)below(game, 2)};
    if (game->dtype.bits <= 64)
        options.padding = ebb_value_int(toss(game) ? 0 : below(game, 256) - 128);
    options.has_total_length = toss(game);
    options.allow_truncation = toss(game);
    options.total_length = options.allow_truncation ? below(game, game->longest + 4)
                                                    : game->longest + below(game, 4);
    return options;
}

static int64_t length_of(const struct ebb_pad_options *options, int64_t remembered) {
    return options->has_total_length ? options->total_length : remembered;
}

static struct ebb_packed *pack_padded(struct game *game) {
    struct ebb_pack_options options = {.size = sizeof options,
                                       .batch_first = toss(game),
                                       .side = (enum ebb_side)below(game, 2),
                                       .enforce_sorted = game->sorted && toss(game)};
    struct ebb_tensor *padded = make_padded(game, options.batch_first, options.side);
    struct ebb_tensor *cut[SEQUENCES_MAX];
    size_t count = (size_t)game->count;
    struct ebb_packed *packed =
        ebb_padded_pack(game->results, padded, game->lengths, count, &options);
    assert_non_null(packed);
    look_at_packed(game, packed, game->padded_length);
    assert_int_equal(ebb_padded_unpad(game->results, padded, game->lengths, count, &options, cut),
                     0);
    look_at_list(game, cut);
    struct ebb_ragged *ragged =
        ebb_padded_join(game->results, padded, game->lengths, count, &options);
    assert_non_null(ragged);
    look_at_ragged(game, ragged);
    assert_int_equal(ragged->padded_length, game->padded_length);
    return packed;
}

static void leave_packed(struct game *game, const struct ebb_packed *packed) {
    struct ebb_pad_options padding = draw_padding(game);
    struct ebb_tensor *list[SEQUENCES_MAX];
    int64_t lengths[SEQUENCES_MAX];
    assert_int_equal(ebb_packed_read_lengths(packed, lengths, (size_t)game->count), 0);
    assert_memory_equal(lengths, game->lengths, sizeof *lengths * (size_t)game->count);
    look_at_padded(game, ebb_packed_pad(game->results, packed, &padding), &padding,
                   length_of(&padding, packed->padded_length));
    assert_int_equal(ebb_packed_unpack(game->results, packed, list, (size_t)game->count), 0);
    look_at_list(game, list);
    struct ebb_ragged *ragged = ebb_packed_join(game->results, packed);
    look_at_ragged(game, ragged);
    assert_int_equal(ragged->padded_length, packed->padded_length);
}

static void leave_ragged(struct game *game, const struct ebb_ragged *ragged) {
    struct ebb_pad_options padding = draw_padding(game);
    struct ebb_tensor *list[SEQUENCES_MAX];
    look_at_padded(game, ebb_ragged_pad(game->results, ragged, &padding), &padding,
                   length_of(&padding, ragged->padded_length));
    assert_int_equal(ebb_ragged_split(game->results, ragged, list, (size_t)game->count), 0);
    look_at_list(game, list);
    look_at_packed(game, ebb_ragged_pack(game->results, ragged, NULL), ragged->padded_length);
}

/* Packed sequences of which a member has strides. */
static void leave_strides(struct game *game, const struct ebb_packed *packed) {
    int64_t shape[8];
    make_shape(game, 1, shape);
    shape[0] = packed->data->shape[0];
    struct ebb_tensor *data = rubbish(game, 1 + game->ndim, shape);
    struct ebb_tensor *own[4] = {data};
    if (ebb_tensor_count(data) && ebb_tensor_copy(data, packed->data) != 0)
        fail_msg("%s", ebb_last_error_text());
    struct ebb_tensor *const members[] = {packed->batch_sizes, packed->sorted_indices,
                                          packed->unsorted_indices};
    for (int i = 0; i < 3; i++)
        own[i + 1] = members[i] ? ebb_tensor_contiguous(game->inputs, members[i]) : NULL;
    struct ebb_packed *same = ebb_packed_from(game->inputs, own[0], own[1], own[2], own[3]);
    if (!packed->has_indices && packed->data->shape[0] == 0)
        return; /* without indices, batch sizes of nothing tell of no sequences */
    assert_non_null(same);
    if (same->count == game->count)
        leave_packed(game, same);
}

static void play(struct game *game) {
    struct ebb_tensor *list[SEQUENCES_MAX];
    size_t count = (size_t)game->count;
    make_list(game, list);
    struct ebb_pad_options padding = draw_padding(game);
    struct ebb_pack_options packing = {.size = sizeof packing, .enforce_sorted = game->sorted};
    uint64_t copied = weave_copied_bytes;
    struct ebb_packed *packed = ebb_sequences_pack(game->results, list, count, &packing);
    assert_non_null(packed);
    assert_int_equal(weave_copied_bytes - copied, game->payload);
    look_at_packed(game, packed, game->longest);
    leave_packed(game, packed);
    look_at_padded(game, ebb_sequences_pad(game->results, list, count, &padding), &padding,
                   length_of(&padding, game->longest));
    struct ebb_ragged *ragged = ebb_sequences_join(game->results, list, count);
    look_at_ragged(game, ragged);
    leave_ragged(game, ragged);
    packed = pack_padded(game);
    leave_packed(game, packed);
    leave_strides(game, packed);
}

static void sequences_go_from_every_form_to_every_form(void **state) {
    struct stage *stage = *state;
    for (uint64_t seed = 0; seed < GAMES; seed++) {
        static struct game game;
        memset(&game, 0, sizeof game);
        game.random = seed * 0x9E3779B97F4A7C15u + 1;
        game.inputs = OPEN(.parent = stage->root);
        game.results = OPEN(.parent = stage->root);
        draw_rows(&game);
        draw_lengths(&game);
        play(&game);
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_region_close(game.results), 0);
        assert_int_equal(ebb_region_close(game.inputs), 0);
    }
}

/* Past the caches; rows of whole cache lines, and rows that begin at any byte of one. */
static void large_results_are_right_too(void **state) {
    static const int64_t sizes[] = {4096, 4091};
    struct stage *stage = *state;
    for (int at = 0; at < 2; at++) {
        struct game game = {.random = 4711, .ndim = 1, .shape = {sizes[at]}};
        game.row_bytes = (size_t)sizes[at];
        game.dtype = (struct ebb_dtype){EBB_INT, 8, 1};
        game.inputs = OPEN(.parent = stage->root);
        game.results = OPEN(.parent = stage->root);
        game.count = 70;
        for (int64_t i = 0; i < game.count; i++) {
            game.lengths[i] = i * 37 % 70;
            game.payload += (size_t)game.lengths[i] * game.row_bytes;
        }
        game.longest = game.padded_length = 69;
        assert_true(game.payload > 9 * MIB);
        play(&game);
        assert_int_equal(ebb_region_close(game.results), 0);
        assert_int_equal(ebb_region_close(game.inputs), 0);
    }
}

/* ---- limits ---- */

enum { LIMITED = 5 };

/* Everything that can be seen of a region, but for its pages. */
struct view {
    struct ebb_region_stats stats;
    struct ebb_object_counts counts[EBB_OBJECT_KINDS_MAX];
    size_t listed;
};

static struct view look(ebb_region region) {
    struct view view;
    memset(&view, 0, sizeof view);
    view.stats = stats_of(region);
    view.stats.reserved = (struct ebb_meter){0, 0, 0};
    view.stats.waste = view.stats.runs = 0;
    for (uint32_t kind = 0; kind < EBB_OBJECT_KINDS_MAX; kind++)
        assert_int_equal(ebb_region_read_objects(region, kind, &view.counts[kind]), 0);
    view.listed = ebb_region_list_objects(region, NULL, 0);
    return view;
}

/* One of the operations that make several blocks; false if it was refused. */
static bool operate(ebb_region region, int operation, struct ebb_tensor *const *list,
                    const struct ebb_packed *packed, struct ebb_tensor **back) {
    switch (operation) {
    case 0:
        return ebb_sequences_pack(region, list, LIMITED, NULL) != NULL;
    case 1:
        return ebb_packed_join(region, packed) != NULL;
    case 2:
        return ebb_packed_unpack(region, packed, back, LIMITED) == 0;
    default:
        return ebb_packed_pad(region, packed, NULL) != NULL;
    }
}

static void sizes_beside_a_zero_may_be_anything(void **state) {
    struct stage *stage = *state;
    const int64_t huge = (int64_t)1 << 40, lengths[] = {3, 1};
    struct ebb_tensor *padded = counting(stage->root, SHAPE(3, 2, 0, huge, huge));
    struct ebb_packed *packed = ebb_padded_pack(stage->root, padded, lengths, 2, NULL);
    assert_non_null(packed);
    assert_shape(packed->data, SHAPE(4, 0, huge, huge));
    assert_shape(ebb_packed_pad(stage->root, packed, NULL), SHAPE(3, 2, 0, huge, huge));
}

/* So may their product, which no number holds. */
static void lengths_of_rows_without_bytes_may_be_any_product(void **state) {
    struct stage *stage = *state;
    const int64_t huge = (int64_t)1 << 62;
    struct ebb_tensor *list[8] = {counting(stage->root, SHAPE(huge, 0))};
    for (int i = 1; i < 8; i++)
        list[i] = counting(stage->root, SHAPE(0, 0));
    assert_shape(ebb_sequences_pad(stage->root, list, 8, NULL), SHAPE(huge, 8, 0));
    struct ebb_ragged *ragged = ebb_sequences_join(stage->root, list, 8);
    assert_non_null(ragged);
    assert_shape(ragged->data, SHAPE(huge, 0));
    assert_shape(ebb_ragged_pad(stage->root, ragged, NULL), SHAPE(huge, 8, 0));
}

/* Nothing is written where there is nothing. */
static void a_packed_sequence_of_none_is_read_to_nowhere(void **state) {
    struct stage *stage = *state;
    struct ebb_packed *packed = ebb_packed_from(
        stage->root, counting(stage->root, SHAPE(0, 3)),
        ebb_tensor_new(stage->root, (struct ebb_dtype){EBB_INT, 64, 1}, SHAPE(0)), NULL, NULL);
    assert_non_null(packed);
    assert_int_equal(packed->count, 0);
    assert_int_equal(ebb_packed_unpack(stage->root, packed, NULL, 0), 0);
    assert_int_equal(ebb_packed_read_lengths(packed, NULL, 0), 0);
}

static void limits_that_refuse_any_block_leave_no_trace(void **state) {
    struct stage *stage = *state;
    struct game game = {.random = 1, .ndim = 1, .shape = {30}, .row_bytes = 120, .count = LIMITED,
                        .lengths = {3, 0, 9, 9, 1}, .longest = 9, .padded_length = 9};
    struct ebb_tensor *list[LIMITED];
    unsigned refused[4] = {0}, done[4] = {0};
    game.dtype = (struct ebb_dtype){EBB_INT, 32, 1};
    game.inputs = stage->root;
    make_list(&game, list);
    struct ebb_packed *packed = ebb_sequences_pack(stage->root, list, LIMITED, NULL);
    for (size_t limit = 16; limit < 9000; limit += 48)
        for (int operation = 0; operation < 4; operation++) {
            struct ebb_tensor *back[LIMITED] = {0};
            ebb_region region = OPEN(.pool = stage->pool, .limit_bytes = limit);
            struct view before = look(region);
            if (operate(region, operation, list, packed, back)) {
                done[operation]++;
            } else {
                struct view after = look(region);
                assert_refused(ebb_last_error(), EBB_E_REGION_LIMIT);
                assert_memory_equal(&before, &after, sizeof before);
                assert_null(back[0]);
                refused[operation]++;
            }
            assert_int_equal(ebb_region_close(region), 0);
        }
    for (int operation = 0; operation < 4; operation++)
        assert_true(refused[operation] > 10 && done[operation] > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(sequences_go_from_every_form_to_every_form),
        STAGED(large_results_are_right_too),
        STAGED(sizes_beside_a_zero_may_be_anything),
        STAGED(lengths_of_rows_without_bytes_may_be_any_product),
        STAGED(a_packed_sequence_of_none_is_read_to_nowhere),
        STAGED(limits_that_refuse_any_block_leave_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
