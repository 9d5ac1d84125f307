// SPDX-License-Identifier: Apache-2.0
/* name.c - what of a name a line can show, and where one that is too long is cut. */
#include "kit/test.h"

#include "base/name.h"

#include <stdio.h>
#include <string.h>

static size_t encode(uint32_t code, char to[8]) {
    size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint32_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    memset(to, 0, 8);
    for (size_t i = bytes; --i; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(leads[bytes] | code);
    return bytes;
}

static bool is_within(uint32_t code, uint32_t first, uint32_t last) {
    return code >= first && code <= last;
}

static void every_character_is_plain_but_controls_and_what_ends_or_turns_a_line(void **state) {
    (void)state;
    for (uint32_t code = 1; code < 0x110000; code++) {
        char at[8];
        bool is_plain, is_surrogate = is_within(code, 0xd800, 0xdfff);
        bool expected = !is_within(code, 1, 0x1f) && !is_within(code, 0x7f, 0x9f) &&
                        !is_within(code, 0x2028, 0x202e) && !is_within(code, 0x2066, 0x2069) &&
                        !is_surrogate;
        size_t bytes = encode(code, at);
        assert_int_equal(name_character(at, &is_plain), is_surrogate ? 1 : bytes);
        assert_int_equal(is_plain, expected);
    }
}

static void a_name_is_made_plain_in_place(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"", ""}, {"as it is", "as it is"}, {"a\nb\x1b[2J\x7f", "a?b?[2J?"},
        {"\xc2\x85\xc2\x9b" "31m\xc2\xa0", "??31m\xc2\xa0"},
        {"x\xe2\x80\xa8y\xe2\x80\xa9z\xe2\x80\xa7", "x?y?z\xe2\x80\xa7"},
        {"\xe2\x80\xaelr\xe2\x81\xa6", "?lr?"},
        {"\xff\xed\xa0\x80\xc3", "?????"},
        {"\xf0\x9f\x8c\x8a\xe2\x82\xac", "\xf0\x9f\x8c\x8a\xe2\x82\xac"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", names[i][0]);
        name_make_plain(name);
        assert_string_equal(name, names[i][1]);
    }
}

static void assert_copied(const char *name, size_t room, const char *expected) {
    char copy[16];
    memset(copy, 'x', sizeof copy);
    name_copy(copy, room, name);
    assert_string_equal(copy, expected);
    for (size_t i = room; i < sizeof copy; i++)
        assert_int_equal(copy[i], 'x');
}

/* Of one to four bytes, wherever the end of the room falls in it. */
static void names_are_cut_between_characters(void **state) {
    static const char *const characters[] = {"g", "\u00e9", "\u20ac", "\U0001f600"};
    for (size_t i = 0; i < 4; i++) {
        char name[16] = "abc";
        size_t bytes = strlen(characters[i]);
        assert_int_equal(bytes, i + 1);
        memcpy(name + 3, characters[i], bytes);
        assert_copied(name, 3 + bytes + 1, name);
        for (size_t cut = 0; cut < bytes; cut++)
            assert_copied(name, 3 + cut + 1, "abc");
        memcpy(name + 3 + bytes, "yz", 2);
        assert_copied(name, 3 + bytes + 3, name);
        for (size_t cut = 0; cut < bytes; cut++)
            assert_copied(name, 3 + cut + 1, "abc");
    }
}

static void what_is_no_text_is_cut_where_the_room_ends(void **state) {
    assert_copied("abc\xff\xfe\xfd", 6, "abc\xff\xfe");
    assert_copied("\x80\x80\x80\x80\x80", 4, "\x80\x80\x80");
    assert_copied("ab\xe2\x82", 4, "ab\xe2"); /* the last byte of it is missing */
    assert_copied("abc", 1, "");
    assert_copied("", 1, "");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_plain_but_controls_and_what_ends_or_turns_a_line),
        cmocka_unit_test(a_name_is_made_plain_in_place),
        cmocka_unit_test(names_are_cut_between_characters),
        cmocka_unit_test(what_is_no_text_is_cut_where_the_room_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
