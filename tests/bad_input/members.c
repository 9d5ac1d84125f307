// SPDX-License-Identifier: Apache-2.0
/*
 * members.c - fields of sequences and samples that refer to no member: written by hand, or never
 * composed. Whatever is there is not read, let alone followed. What is no object, by itself, too.
 */
#include "bad_input/court.h"
#include "kit/tensors.h"

/* Of the court's child: 4 sequences of int32. */
static struct ebb_packed *packed_exhibit(struct court *court) {
    struct ebb_packed *packed = ebb_padded_pack(
        court->child, counting(court->child, SHAPE(3, 4)), SIZES(3, 1, 2, 0), 4, NULL);
    assert_non_null(packed);
    return packed;
}

static struct ebb_tensor *sizes_in(ebb_region region) {
    struct ebb_tensor *tensor = ebb_tensor_from(region, INT64, SHAPE(3), SIZES(3, 2, 1));
    assert_non_null(tensor);
    return tensor;
}

/* All that reads a packed sequence of 4 refuses it alike. */
static void refuse_packed(struct court *court, const struct ebb_packed *packed, const char *part) {
    struct ebb_tensor *list[4] = {0};
    int64_t lengths[4] = {0};
    court_refused_block(court, ebb_packed_pad(court->child, packed, NULL), EBB_E_NOT_OWNED, part);
    court_refused_block(court, ebb_packed_join(court->child, packed), EBB_E_NOT_OWNED, part);
    court_refused(court, ebb_packed_unpack(court->child, packed, list, 4), EBB_E_NOT_OWNED, part,
                  NULL);
    court_refused(court, ebb_packed_read_lengths(packed, lengths, 4), EBB_E_NOT_OWNED, part, NULL);
    assert_null(list[0]);
}

static void refuse_ragged(struct court *court, const struct ebb_ragged *ragged, const char *part) {
    struct ebb_tensor *list[4] = {0};
    court_refused_block(court, ebb_ragged_pad(court->child, ragged, NULL), EBB_E_NOT_OWNED, part);
    court_refused_block(court, ebb_ragged_pack(court->child, ragged, NULL), EBB_E_NOT_OWNED, part);
    court_refused(court, ebb_ragged_split(court->child, ragged, list, 4), EBB_E_NOT_OWNED, part,
                  NULL);
    assert_null(list[0]);
}

/* What is no member: no address, no object, of nobody. */
static void **strangers(struct court *court) {
    static void *list[4];
    list[0] = (void *)(uintptr_t)8;
    list[1] = memset(block_of(court->child, 200, 16), 0xff, 200);
    list[2] = counting(court->child, SHAPE(6));
    list[3] = court->root_large;
    return list;
}

static void fields_that_were_written_since_are_not_followed(void **state) {
    static const char *const names[] = {"'data'", "'batch_sizes'", "'sorted_indices'",
                                        "'unsorted_indices'"};
    struct court *court = *state;
    struct ebb_packed *packed = packed_exhibit(court);
    struct ebb_ragged *ragged = ebb_packed_join(court->child, packed);
    void **others = strangers(court);
    assert_non_null(ragged);
    court_note(court);
    for (int i = 0; i < 4; i++) {
        struct ebb_tensor *data = ragged->data, *offsets = ragged->offsets;
        struct ebb_tensor **fields[] = {&packed->data, &packed->batch_sizes,
                                        &packed->sorted_indices, &packed->unsorted_indices};
        for (size_t field = 0; field < 4; field++) {
            struct ebb_tensor *member = *fields[field];
            *fields[field] = others[i];
            refuse_packed(court, packed, names[field]);
            *fields[field] = member;
        }
        ragged->data = others[i];
        refuse_ragged(court, ragged, "'data'");
        ragged->data = data, ragged->offsets = others[i];
        refuse_ragged(court, ragged, "'offsets'");
        ragged->offsets = offsets;
    }
}

/* Its members have ended since, and others have their places. */
static void what_was_never_composed_is_not_read(void **state) {
    struct court *court = *state;
    struct ebb_packed *packed = ebb_object_new(court->child, &ebb_type_packed, 0);
    assert_non_null(packed);
    packed->data = counting(court->child, SHAPE(6, 1000));
    packed->batch_sizes = sizes_in(court->child);
    packed->count = packed->padded_length = 3;
    court_note(court);
    refuse_packed(court, packed, "'data'");
    size_t bytes = ebb_region_block_bytes(court->child, packed->data);
    assert_int_equal(ebb_object_end(packed->data), 0);
    assert_ptr_equal(ebb_region_alloc(court->child, bytes, EBB_STORAGE_ALIGN), packed->data);
    memset(packed->data, 0xff, bytes);
    court_note(court);
    refuse_packed(court, packed, "'data'");
}

static void slots_are_not_checked_beside_what_is_no_member(void **state) {
    struct court *court = *state;
    struct ebb_packed *packed = packed_exhibit(court);
    struct ebb_ragged *ragged = ebb_packed_join(court->child, packed);
    struct ebb_sample_info info = {.kind = EBB_SAMPLE_MASK};
    struct ebb_sample *sample = ebb_sample_new(court->child, counting(court->child, SHAPE(2, 2)),
                                               &info);
    struct ebb_tensor *fresh = sizes_in(court->child);
    void **others = strangers(court);
    assert_true(ragged && sample);
    court_note(court);
    for (int i = 0; i < 4; i++) {
        struct ebb_tensor *data[] = {packed->data, ragged->data, sample->data};
        packed->data = ragged->data = sample->data = others[i];
        court_refused(court, ebb_object_replace(packed, 1, fresh), EBB_E_NOT_OWNED, "'data'",
                      NULL);
        court_refused(court, ebb_object_replace(ragged, 1, fresh), EBB_E_NOT_OWNED, "'data'",
                      NULL);
        court_refused(court, ebb_object_replace(sample, 1, fresh), EBB_E_NOT_OWNED, "'data'",
                      NULL);
        packed->data = data[0], ragged->data = data[1], sample->data = data[2];
    }
}

struct sum {
    struct ebb_object object;
    struct ebb_object *slot, **parts;
    size_t part_count;
};

/* Goes along the parts, as a check may: they are there. */
static int check_sum(const struct ebb_object *object) {
    const struct sum *sum = (const struct sum *)object;
    for (size_t i = 0; i < sum->part_count; i++)
        if (sum->parts[i]->type != &ebb_type_tensor)
            return -1000;
    return 0;
}

/* An empty one. */
static struct sum *sum_in(ebb_region region) {
    static const struct ebb_field fields[] = {
        EBB_FIELD(struct sum, EBB_FIELD_OBJECT, slot),
        EBB_FIELD_COUNTED(struct sum, EBB_FIELD_OBJECTS, parts, part_count),
    };
    static struct ebb_type type = {.name = "sum", .bytes = sizeof(struct sum), .fields = fields,
                                   .field_count = 2, .check = check_sum};
    assert_int_equal(ebb_type_register(&type), 0);
    struct sum *sum = ebb_object_new(region, &type, 0);
    assert_non_null(sum);
    return sum;
}

static void slots_are_not_checked_beside_parts_that_are_not_there(void **state) {
    struct court *court = *state;
    struct sum *sum = sum_in(court->child);
    struct ebb_tensor *fresh = sizes_in(court->child);
    struct ebb_object **parts = sum->parts = block_of(court->child, sizeof *parts, 16);
    sum->part_count = 1;
    parts[0] = &counting(court->child, SHAPE(3))->object;
    assert_int_equal(ebb_object_compose(sum), 0);
    court_note(court);
    sum->parts = NULL;
    court_refused(court, ebb_object_replace(sum, 0, fresh), EBB_E_ARGUMENT, "'parts'", NULL);
    sum->parts = parts;
    sum->part_count = 1000;
    court_refused(court, ebb_object_replace(sum, 0, fresh), EBB_E_SIZE, "'parts'", NULL);
    sum->part_count = 1;
    assert_int_equal(ebb_object_replace(sum, 0, fresh), 0);
}

/* Whatever is asked of what is no object, the answer is the same if it is in a field of
 * `sum`. */
static void refuse_as_object(struct court *court, void *address, struct sum *sum, int code) {
    void *list[] = {address};
    uint64_t ended;
    court_refused(court, ebb_objects_promote(court->child, court->root, list, 1, NULL, NULL), code,
                  NULL);
    court_refused(court, ebb_objects_close_keeping(court->child, court->root, list, 1, NULL, NULL,
                                                   &ended), code, NULL);
    assert_ptr_equal(list[0], address);
    court_refused(court, ebb_objects_end_but(court->child, list, 1), code, NULL);
    court_refused(court, ebb_object_attach(address, court->child), code, NULL);
    court_refused(court, ebb_object_borrow(address, court->child), code, NULL);
    court_refused(court, ebb_object_return(address), code, NULL);
    court_refused(court, ebb_object_end(address), code, NULL);
    court_refused(court, ebb_object_compose(address), code, NULL);
    court_refused(court, ebb_object_replace(address, 0, NULL), code, NULL);
    court_refused(court, ebb_object_replace(sum, 0, address), code, NULL);
    court_refused_block(court, ebb_object_move(address, court->root), code, NULL);
    court_refused_block(court, ebb_object_move_outer(court->child, address), code, NULL);
    court_refused_block(court, ebb_object_detach(address), code, NULL);
    court_refused_block(court, ebb_object_as(address, &ebb_type_tensor), code, NULL);
    sum->slot = address;
    court_refused(court, ebb_object_compose(sum), code, NULL);
    list[0] = sum;
    court_refused(court, ebb_objects_promote(court->child, court->root, list, 1, NULL, NULL), code,
                  NULL);
    sum->slot = NULL;
}

static void what_is_no_object_is_refused_by_all_in_the_same_way(void **state) {
    struct court *court = *state;
    static char outside[64];
    struct ebb_tensor *tensor = sizes_in(court->child), *ended = sizes_in(court->child);
    struct sum *sum = sum_in(court->child);
    assert_int_equal(ebb_object_end(ended), 0);
    court_note(court);
    refuse_as_object(court, court->large, sum, EBB_E_TYPE);
    refuse_as_object(court, court->large + 64, sum, EBB_E_INTERIOR);
    refuse_as_object(court, (char *)tensor + 16, sum, EBB_E_INTERIOR);
    refuse_as_object(court, outside, sum, EBB_E_FOREIGN);
    refuse_as_object(court, ended, sum, EBB_E_RELEASED);
    void *list[] = {sum};
    sum->parts = (void *)tensor;
    court_refused(court, ebb_object_compose(sum), EBB_E_TYPE, "'parts'", NULL);
    court_refused(court, ebb_objects_promote(court->child, court->root, list, 1, NULL, NULL),
                  EBB_E_TYPE, "'parts'", NULL);
    sum->parts = (void *)(court->large + 64);
    court_refused(court, ebb_object_compose(sum), EBB_E_INTERIOR, NULL);
    court_refused_block(court, ebb_object_detach(sum), EBB_E_INTERIOR, NULL);
    sum->parts = NULL;
    court_refused_block(court, ebb_object_move(sum, court->measuring), EBB_E_MEASURING, NULL);
    assert_int_equal(ebb_object_compose(sum), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TRIAL(fields_that_were_written_since_are_not_followed),
        TRIAL(what_was_never_composed_is_not_read),
        TRIAL(slots_are_not_checked_beside_what_is_no_member),
        TRIAL(slots_are_not_checked_beside_parts_that_are_not_there),
        TRIAL(what_is_no_object_is_refused_by_all_in_the_same_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
