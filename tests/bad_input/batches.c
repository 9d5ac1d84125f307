// SPDX-License-Identifier: Apache-2.0
/* batches.c - trees that cannot be: members of others, names twice, kinds read as others. */
#include "bad_input/court.h"
#include "kit/sight.h"
#include "kit/tensors.h"
#include "kit/text.h"

static void *integer(ebb_region region) {
    void *node = ebb_node_new_integer(region, 5);
    assert_non_null(node);
    return node;
}

static void members_that_cannot_be_are_refused(void **state) {
    struct court *court = *state;
    void *first = integer(court->child), *taken = integer(court->child);
    void *lent = integer(court->child), *ended = integer(court->child);
    assert_non_null(ebb_node_new_list(court->child, &taken, 1));
    assert_int_equal(ebb_object_borrow(lent, court->root), 0);
    assert_int_equal(ebb_object_end(ended), 0);
    const struct {
        void *member;
        int code;
        const char *part;
    } cases[] = {
        {NULL, EBB_E_ARGUMENT, "member 1 is NULL"},
        {first, EBB_E_DUPLICATE, "member 1"},
        {taken, EBB_E_MEMBER, "is a member of node"},
        {lent, EBB_E_BORROWED, "'root'"},
        {ended, EBB_E_RELEASED, NULL},
        {integer(court->root), EBB_E_NOT_OWNED, "'root'"},
        {integer(court->elsewhere), EBB_E_NOT_OWNED, "'elsewhere'"},
        {court->small, EBB_E_TYPE, "no object"},
        {court->small + 16, EBB_E_INTERIOR, NULL},
        {&court, EBB_E_FOREIGN, NULL},
    };
    struct sight before = sight_of(court->child);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *members[] = {first, cases[i].member};
        const char *const names[] = {"a", "b"};
        assert_null(ebb_node_new_list(court->child, members, 2));
        assert_sight_refused(court->child, &before, ebb_last_error(), cases[i].code,
                             cases[i].part, NULL);
        assert_null(ebb_node_new_dict(court->child, names, members, 2));
        assert_sight_refused(court->child, &before, ebb_last_error(), cases[i].code, NULL);
    }
    assert_non_null(ebb_node_new_tuple(court->child, &first, 1)); /* it was not touched */
}

static void names_that_cannot_be_are_refused(void **state) {
    struct court *court = *state;
    void *members[] = {integer(court->child), integer(court->child), integer(court->child)};
    const char *const twice[] = {"a", "b", "a"}, *const none[] = {"a", NULL, "b"};
    const char *const fine[] = {"a", "b", "c"};
    struct sight before = sight_of(court->child);
    assert_null(ebb_node_new_dict(court->child, twice, members, 3));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_DUPLICATE, "'a'", "0", "2",
                         NULL);
    assert_null(ebb_node_new_named_tuple(court->child, "T", none, members, 3));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "name 1", NULL);
    assert_null(ebb_node_new_named_tuple(court->child, NULL, fine, members, 3));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "NULL", NULL);
    assert_null(ebb_node_new_dict(court->child, NULL, members, 3));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "3", NULL);
    assert_null(ebb_node_new_list(court->child, NULL, 3));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "3", NULL);
    assert_null(ebb_node_new_string(court->child, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, NULL);
    assert_null(ebb_node_new_bytes(court->child, NULL, 9));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "9 bytes", NULL);
    assert_null(ebb_node_new_bytes(court->child, "", SIZE_MAX));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_SIZE, NULL);
}

static void regions_that_take_nothing_take_no_nodes(void **state) {
    struct court *court = *state;
    assert_null(ebb_node_new_none(court->closed));
    court_refused(court, ebb_last_error(), EBB_E_STALE, NULL);
    assert_null(ebb_node_new_list(court->closed, NULL, 0));
    court_refused(court, ebb_last_error(), EBB_E_STALE, NULL);
    assert_null(ebb_node_new_list(court->sealed, NULL, 0));
    court_refused(court, ebb_last_error(), EBB_E_SEALED, "'sealed'", NULL);
    assert_null(ebb_node_new_dict(court->measuring, NULL, NULL, 0));
    court_refused(court, ebb_last_error(), EBB_E_MEASURING, NULL);
}

static void a_tree_that_does_not_fit_the_limit_leaves_no_trace(void **state) {
    struct court *court = *state;
    unsigned refused = 0, made = 0;
    for (size_t limit = 128; limit < 1024; limit += 16) {
        ebb_region tight = OPEN(.parent = court->root, .limit_bytes = limit);
        void *member = ebb_node_new_none(tight);
        struct sight before = sight_of(tight);
        if (member && ebb_node_new_dict(tight, (const char *[]){"key"}, &member, 1)) {
            made++;
        } else if (member) {
            assert_sight_refused(tight, &before, ebb_last_error(), EBB_E_REGION_LIMIT, NULL);
            assert_int_equal(ebb_object_end(member), 0);
            refused++;
        }
        assert_int_equal(ebb_region_close(tight), 0);
    }
    assert_true(made > 0 && refused >= 8);
}

/* Reads everything from an object that is none of it. */
static void nodes_are_not_read_as_what_they_are_not(void **state) {
    struct court *court = *state;
    void *number = integer(court->child), *text = ebb_node_new_string(court->child, "x");
    void *list = ebb_node_new_list(court->child, NULL, 0);
    void *tensor = ebb_tensor_new(court->child, (struct ebb_dtype){EBB_INT, 8, 1}, 0, NULL);
    struct sight before = sight_of(court->child);
    bool truth = true;
    double real = 1;
    int64_t value = 2;
    size_t count = 3;
    assert_sight_refused(court->child, &before, ebb_node_read_bool(number, &truth), EBB_E_TYPE,
                         "integer", "bool", NULL);
    assert_sight_refused(court->child, &before, ebb_node_read_real(number, &real), EBB_E_TYPE,
                         "real", NULL);
    assert_sight_refused(court->child, &before, ebb_node_read_integer(text, &value), EBB_E_TYPE,
                         "string", NULL);
    assert_sight_refused(court->child, &before, ebb_node_read_integer(tensor, &value), EBB_E_TYPE,
                         "tensor", NULL);
    assert_sight_refused(court->child, &before, ebb_node_read_integer(number, NULL),
                         EBB_E_ARGUMENT, NULL);
    assert_null(ebb_node_string(number));
    assert_null(ebb_node_bytes(text, &count));
    assert_null(ebb_node_name(list));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, "named tuple", NULL);
    assert_null(ebb_node_key(list, 0));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, "list", NULL);
    assert_null(ebb_node_at(number, 0));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, "integer", NULL);
    assert_int_equal(ebb_node_count(tensor), 0);
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, "tensor", NULL);
    assert_int_equal(ebb_node_kind(court->small), 0);
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, NULL);
    assert_true(truth && real > 0 && value == 2 && count == 3);
}

static void paths_that_lead_nowhere_say_where_they_end(void **state) {
    struct court *court = *state;
    void *pair[] = {integer(court->child), integer(court->child)};
    void *list = ebb_node_new_list(court->child, pair, 2);
    void *dict = ebb_node_new_dict(court->child, (const char *[]){"list"}, &list, 1);
    struct sight before = sight_of(court->child);
    const struct {
        const char *path;
        int code;
        const char *part;
    } cases[] = {
        {"nothing", EBB_E_ARGUMENT, "dict of 1 members has no 'nothing'"},
        {"list/2", EBB_E_ARGUMENT, "list of 2 members has no '2'"},
        {"list/-1", EBB_E_ARGUMENT, "'-1'"},
        {"list/x", EBB_E_ARGUMENT, "'x'"},
        {"list//0", EBB_E_ARGUMENT, "''"},
        {"list/", EBB_E_ARGUMENT, "list of 2 members has no ''"},
        {"list/18446744073709551616", EBB_E_ARGUMENT, "'18446744073709551616'"},
        {"lis", EBB_E_ARGUMENT, "'lis'"},
        {"list2", EBB_E_ARGUMENT, "'list2'"},
        {"0", EBB_E_ARGUMENT, "'0'"},
        {"list/0/0", EBB_E_TYPE, "integer"},
        {NULL, EBB_E_ARGUMENT, "NULL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(ebb_node_get(dict, cases[i].path));
        assert_sight_refused(court->child, &before, ebb_last_error(), cases[i].code,
                             cases[i].part, NULL);
    }
    assert_null(ebb_node_get(court->gone_small, ""));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_RELEASED, NULL);
    assert_null(ebb_node_find(dict, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, NULL);
    assert_null(ebb_node_at(list, 2));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "no place 2",
                         NULL);
    assert_null(ebb_node_key(dict, 1));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_ARGUMENT, "at 1", NULL);
}

static void nodes_made_by_hand_are_checked_when_they_are_composed(void **state) {
    struct court *court = *state;
    struct ebb_node *node = ebb_object_new(court->child, &ebb_type_node, 8);
    for (int kind = 0; kind <= EBB_NODE_DICT + 1; kind += EBB_NODE_DICT + 1) {
        node->kind = kind;
        struct sight before = sight_of(court->child);
        assert_sight_refused(court->child, &before, ebb_object_compose(node), EBB_E_TYPE, "kind",
                             NULL);
    }
    node->kind = EBB_NODE_STRING;
    node->byte_count = 8;
    memcpy(node + 1, "no  end.", 8);
    assert_refused(ebb_object_compose(node), EBB_E_TYPE);
    node->byte_count = 0;
    assert_refused(ebb_object_compose(node), EBB_E_TYPE);
    node->kind = EBB_NODE_DICT;
    assert_refused(ebb_object_compose(node), EBB_E_TYPE);
    node->byte_count = 8;
    assert_refused(ebb_object_compose(node), EBB_E_TYPE);
    *(uint32_t *)(void *)(node + 1) = 8;
    ((char *)(node + 1))[7] = '\0';
    assert_refused(ebb_object_compose(node), EBB_E_TYPE);
    *(uint32_t *)(void *)(node + 1) = 7;
    assert_int_equal(ebb_object_compose(node), 0);
    node->kind = EBB_NODE_BYTES;
    node->byte_count = 9;
    struct sight before = sight_of(court->child);
    assert_sight_refused(court->child, &before, ebb_object_compose(node), EBB_E_TYPE, "9 bytes",
                         "room for 8", NULL);
}

/* What a kind has no use for would be compared and sent, and nobody could read it. */
static void leaves_made_by_hand_have_what_their_kind_has(void **state) {
    struct court *court = *state;
    struct ebb_node *node = ebb_object_new(court->child, &ebb_type_node, 8);
    node->members = ebb_region_alloc_zeroed(court->child, sizeof(void *), 16);
    for (node->kind = EBB_NODE_NONE; node->kind <= EBB_NODE_BYTES; node->kind++) {
        bool is_scalar = node->kind <= EBB_NODE_REAL;
        for (size_t bytes = is_scalar; bytes < 12; bytes += 5) {
            node->count = !is_scalar;
            node->byte_count = bytes;
            struct sight before = sight_of(court->child);
            assert_sight_refused(court->child, &before, ebb_object_compose(node), EBB_E_TYPE,
                                 is_scalar ? "0 members" : "1 members", "room for 8", NULL);
        }
        node->count = node->byte_count = 0;
        assert_int_equal(ebb_object_compose(node), 0);
    }
}

/* Or there would be more ways through a tree than anybody can go. */
static void a_member_comes_once_also_if_made_by_hand(void **state) {
    struct court *court = *state;
    struct ebb_node *node = ebb_object_new(court->child, &ebb_type_node, 0);
    node->kind = EBB_NODE_LIST;
    node->count = 3;
    node->members = ebb_region_alloc_zeroed(court->child, 3 * sizeof(void *), 16);
    node->members[0] = node->members[2] = integer(court->child);
    struct sight before = sight_of(court->child);
    assert_sight_refused(court->child, &before, ebb_object_compose(node), EBB_E_DUPLICATE,
                         "member 2, integer", NULL);
    node->members[2] = integer(court->child);
    assert_int_equal(ebb_object_compose(node), 0);
}

static void nodes_made_by_hand_are_read_as_far_as_they_are_there(void **state) {
    static struct page page;
    struct court *court = *state;
    struct ebb_node *node = ebb_object_new(court->child, &ebb_type_node, 16);
    size_t count = 7;
    node->kind = EBB_NODE_DICT;
    node->count = 100000;
    node->byte_count = MIB;
    node->members = ebb_region_alloc_zeroed(court->child, 16, 16);
    node->members[1] = (void *)&court;
    struct sight before = sight_of(court->child);
    assert_int_equal(ebb_node_count(node), 0);
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, "100000 members",
                         NULL);
    const void *const reads[] = {ebb_node_at(node, 90000), ebb_node_find(node, "key"),
                                 ebb_node_get(node, "key"), ebb_node_key(node, 90000)};
    for (size_t i = 0; i < 4; i++)
        assert_null(reads[i]);
    assert_int_equal(ebb_report_batch(node, EBB_REPORT_JSON, page_write, &page), 0);
    assert_string_equal(page.text, "{\"object\":\"node\",\"fields\":{\"members\":[]}}");
    node->count = 2;
    node->byte_count = 16;
    memset(node + 1, 0xEE, 15); /* names that begin where there is nothing */
    ((char *)(node + 1))[15] = '\0';
    before = sight_of(court->child);
    assert_string_equal(ebb_node_key(node, 1), "");
    assert_null(ebb_node_find(node, "key"));
    assert_null(ebb_node_at(node, 0));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_RELEASED, NULL);
    assert_null(ebb_node_at(node, 1));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_NOT_OWNED, "member 1",
                         NULL);
    node->kind = EBB_NODE_STRING;
    assert_null(ebb_node_string(node));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_TYPE, "16 bytes", NULL);
    node->kind = EBB_NODE_BYTES;
    node->byte_count = 17;
    assert_null(ebb_node_bytes(node, &count));
    assert_int_equal(count, 7);
    node->kind = EBB_NODE_NONE;
}

/* Neither is read beyond its block, whichever says what is not so. */
static void what_does_not_lie_behind_objects_is_not_compared(void **state) {
    struct court *court = *state;
    struct ebb_node *nodes[2];
    struct ebb_sample *samples[2];
    for (int i = 0; i < 2; i++) {
        nodes[i] = ebb_object_new(court->child, &ebb_type_node, i ? 8 : 4000);
        samples[i] = ebb_object_new(court->child, &ebb_type_sample, i ? 8 : 4000);
        nodes[i]->kind = EBB_NODE_BYTES;
        nodes[i]->byte_count = samples[i]->byte_count = 4000;
    }
    struct sight before = sight_of(court->child);
    for (int i = 0; i < 2; i++) {
        assert_false(ebb_batch_equal(nodes[i], nodes[!i]));
        assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_SIZE, "4000 bytes",
                             "room for 8", NULL);
        assert_false(ebb_batch_equal(samples[i], samples[!i]));
        assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_SIZE, "4000 bytes",
                             "room for 8", NULL);
    }
}

/* Whichever of what is asked about has it: also if both are the same. */
static void what_was_not_composed_is_not_compared(void **state) {
    struct court *court = *state;
    struct ebb_sample *samples[2];
    for (int i = 0; i < 2; i++) {
        samples[i] = ebb_object_new(court->child, &ebb_type_sample, 0);
        samples[i]->data = counting(court->child, SHAPE(2));
    }
    struct sight before = sight_of(court->child);
    for (int i = 0; i < 4; i++) {
        assert_false(ebb_batch_equal(samples[i / 2], samples[i % 2]));
        assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_NOT_OWNED, "data",
                             "not composed", NULL);
    }
}

static void reports_of_nothing_are_refused(void **state) {
    static struct page page;
    struct court *court = *state;
    void *node = integer(court->child);
    struct sight before = sight_of(court->child);
    assert_sight_refused(court->child, &before,
                         ebb_report_batch(court->small, EBB_REPORT_TEXT, page_write, &page),
                         EBB_E_TYPE, NULL);
    assert_sight_refused(court->child, &before,
                         ebb_report_batch(node, EBB_REPORT_TEXT, NULL, &page), EBB_E_ARGUMENT,
                         NULL);
    assert_sight_refused(court->child, &before,
                         ebb_report_batch(node, (enum ebb_report_format)2, page_write, &page),
                         EBB_E_ARGUMENT, "2", NULL);
    assert_int_equal(page.length, 0);
    assert_false(ebb_batch_equal(node, NULL));
    assert_sight_refused(court->child, &before, ebb_last_error(), EBB_E_FOREIGN, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TRIAL(members_that_cannot_be_are_refused),
        TRIAL(names_that_cannot_be_are_refused),
        TRIAL(regions_that_take_nothing_take_no_nodes),
        TRIAL(a_tree_that_does_not_fit_the_limit_leaves_no_trace),
        TRIAL(nodes_are_not_read_as_what_they_are_not),
        TRIAL(paths_that_lead_nowhere_say_where_they_end),
        TRIAL(leaves_made_by_hand_have_what_their_kind_has),
        TRIAL(nodes_made_by_hand_are_checked_when_they_are_composed),
        TRIAL(a_member_comes_once_also_if_made_by_hand),
        TRIAL(nodes_made_by_hand_are_read_as_far_as_they_are_there),
        TRIAL(what_does_not_lie_behind_objects_is_not_compared),
        TRIAL(what_was_not_composed_is_not_compared),
        TRIAL(reports_of_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
