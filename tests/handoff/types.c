// SPDX-License-Identifier: Apache-2.0
/*
 * types.c - types of one name: whose layouts differ, each arrives as itself; where name and layout
 * are those of two, nothing is sent or made that might become the other.
 */
#include "handoff/post.h"

#include <ebb/batch.h>

struct plain {
    struct ebb_object object;
    int64_t number;
};

struct longer {
    struct ebb_object object;
    int64_t numbers[4];
};

struct linked {
    struct ebb_object object;
    struct ebb_object *member;
};

static const struct ebb_field linked_fields[] = {
    EBB_FIELD(struct linked, EBB_FIELD_OBJECT, member)};

static void mend(struct ebb_object *copy, const struct ebb_object *original) {
}

/* A type of the name for each layout; one that cannot be sent is in the way of none. */
static struct ebb_type types[] = {
    {.name = "point", .bytes = sizeof(struct plain), .mend = mend},
    {.name = "point", .bytes = sizeof(struct plain)},
    {.name = "point", .bytes = sizeof(struct longer)},
    {.name = "node", .bytes = sizeof(struct linked), .fields = linked_fields, .field_count = 1},
    {.name = "tensor", .bytes = sizeof(struct plain)}};

static int register_types(void **state) {
    int result = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        result |= ebb_type_register(&types[i]);
    return result;
}

static void types_of_one_name_arrive_as_themselves(void **state) {
    for (size_t i = 1; i < sizeof types / sizeof *types; i++) {
        struct post post = open_post();
        struct ebb_object *object = ebb_object_new(post.from, &types[i], 0);
        ((struct plain *)object)->number = 0;
        if (types[i].fields)
            ((struct linked *)object)->member = (void *)ebb_node_new_integer(post.from, 7);
        assert_int_equal(ebb_object_compose(object), 0);
        struct ebb_object *made = deliver(&post, object);
        assert_ptr_equal(made->type, &types[i]);
        close_post(&post);
    }
}

static struct ebb_type first = {.name = "twin", .bytes = sizeof(struct plain)};
static struct ebb_type second = {.name = "twin", .bytes = sizeof(struct plain)};

static void what_may_become_another_type_is_refused(void **state) {
    struct post post = open_post();
    struct ebb_parcel parcel;
    assert_int_equal(ebb_type_register(&first), 0);
    struct plain *plain = ebb_object_new(post.from, &first, 0);
    plain->number = 5;
    assert_int_equal(ebb_object_compose(plain), 0);
    assert_int_equal(ebb_region_send_object(post.from, plain, &parcel), 0);
    post.lease = ebb_parcel_open(post.pool, &parcel);
    struct plain *made = ebb_lease_object(post.lease, post.to);
    assert_int_equal(made->number, 5);

    assert_int_equal(ebb_type_register(&second), 0); /* between sending and opening */
    assert_null(ebb_lease_object(post.lease, post.to));
    assert_int_equal(ebb_last_error(), EBB_E_TYPE);
    assert_text_names("'twin' is the name of two of the same layout");
    ebb_lease_drop(post.lease);

    post.from = OPEN(.pool = post.pool);
    plain = ebb_object_new(post.from, &second, 0);
    assert_int_equal(ebb_object_compose(plain), 0);
    struct ebb_region_stats before = stats_of(post.from);
    assert_refused(ebb_region_send_object(post.from, plain, &parcel), EBB_E_TYPE);
    assert_text_names("'twin'");
    assert_int_equal(stats_of(post.from).blocks.current, before.blocks.current);
    post.lease = NULL;
    assert_int_equal(ebb_region_close(post.from), 0);
    close_post(&post);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_one_name_arrive_as_themselves),
        cmocka_unit_test(what_may_become_another_type_is_refused),
    };
    return cmocka_run_group_tests(tests, register_types, NULL);
}
