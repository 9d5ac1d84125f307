// SPDX-License-Identifier: Apache-2.0
/*
 * names.c - what is in a field arrives in the field of that name: types of one name whose fields
 * are called otherwise are others, at whatever places these are.
 */
#include "handoff/duo.h"
#include "handoff/post.h"

#include <ebb/batch.h>

struct linked {
    struct ebb_object object;
    struct ebb_object *first, *second;
};

#define LINKED(name, place) {name, EBB_FIELD_OBJECT, offsetof(struct linked, place), 0}

/* The last two are the same letters, up to where a name ends. */
static const struct ebb_field fields[][2] = {{LINKED("mean", first), LINKED("variance", second)},
                                             {LINKED("variance", first), LINKED("mean", second)},
                                             {LINKED("variancem", first), LINKED("ean", second)}};

#define STATS(at) \
    {.name = "stats", .bytes = sizeof(struct linked), .fields = fields[at], .field_count = 2}

static struct ebb_type stats[] = {STATS(0), STATS(1), STATS(2)};

static struct linked *linked_in(ebb_region region, const struct ebb_type *type) {
    struct linked *linked = ebb_object_new(region, type, 0);
    assert_non_null(linked);
    linked->first = (void *)ebb_node_new_integer(region, 1);
    assert_int_equal(ebb_object_compose(linked), 0);
    return linked;
}

static int send_mean(ebb_pool *pool, int out, const void *context) {
    struct ebb_parcel parcel;
    ebb_region region = OPEN(.pool = pool);
    if (ebb_type_register(&stats[0]))
        return 1;
    if (ebb_region_send_object(region, linked_in(region, &stats[0]), &parcel))
        return 2;
    return write_all(out, &parcel, sizeof parcel) ? 0 : 3;
}

/* The sender knows the fields by the same names at other places. */
static void fields_do_not_arrive_under_other_names(void **state) {
    struct post post = open_post();
    struct ebb_parcel parcel;
    struct duo sender = duo_fork(post.pool, send_mean, NULL);
    assert_true(read_all(sender.in, &parcel, sizeof parcel));
    assert_int_equal(duo_end(&sender), 0);
    assert_int_equal(ebb_type_register(&stats[1]), 0);
    post.lease = ebb_parcel_open(post.pool, &parcel);
    assert_non_null(post.lease);
    assert_null(ebb_lease_object(post.lease, post.to));
    assert_int_equal(ebb_last_error(), EBB_E_TYPE);
    assert_text_names("'stats' is of another layout here");
    assert_int_equal(ebb_region_close(post.from), 0);
    close_post(&post);
}

static void types_are_told_apart_by_names_of_fields(void **state) {
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        assert_int_equal(ebb_type_register(&stats[i]), 0);
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
        struct post post = open_post();
        struct ebb_object *made = deliver(&post, linked_in(post.from, &stats[i]));
        assert_ptr_equal(made->type, &stats[i]);
        close_post(&post);
    }
}

/* Only the second says where a count would be. */
static void what_is_no_count_makes_no_other_layout(void **state) {
    static const struct ebb_field field[] = {
        LINKED("first", first),
        {"first", EBB_FIELD_OBJECT, offsetof(struct linked, first), sizeof(struct ebb_object)}};
    static struct ebb_type alike[] = {
        {.name = "alike", .bytes = sizeof(struct linked), .fields = field, .field_count = 1},
        {.name = "alike", .bytes = sizeof(struct linked), .fields = field + 1, .field_count = 1}};
    struct post post = open_post();
    struct ebb_parcel parcel;
    assert_int_equal(ebb_type_register(&alike[0]), 0);
    assert_int_equal(ebb_type_register(&alike[1]), 0);
    struct linked *linked = linked_in(post.from, &alike[0]);
    assert_refused(ebb_region_send_object(post.from, linked, &parcel), EBB_E_TYPE);
    assert_text_names("'alike' is the name of two of the same layout");
    assert_int_equal(ebb_region_close(post.from), 0);
    close_post(&post);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_do_not_arrive_under_other_names),
        cmocka_unit_test(types_are_told_apart_by_names_of_fields),
        cmocka_unit_test(what_is_no_count_makes_no_other_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
