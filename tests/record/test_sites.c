// SPDX-License-Identifier: Apache-2.0
//
// test_sites.c - the list of places that ebb record --sites writes: which it names.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "client.h"
#include "jumps.h"
#include "plugged.h"
#include "recording.h"

static void sites_name_functions(void **state)
{
    struct ebb_trace *trace;
    char name[256], line[1024];
    uint64_t objects = 0;
    bool named = false;
    gzFile file;

    (void)state;
    assert_int_equal(record("--sites", "EBB_CLIENT", "much"), CLIENT_CODE);
    trace = read_it();
    snprintf(name, sizeof name, "%.*s.sites.gz", (int)strlen(path) - 9, path);
    file = gzopen(name, "rb");
    assert_non_null(file);
    while (gzgets(file, line, sizeof line)) {
        named |= line[0] == 's' && strstr(line, " many");
        objects += line[0] >= '0' && line[0] <= '9';
    }
    gzclose(file);
    unlink(name);
    assert_true(named);
    assert_int_equal(objects, trace->totals.objects);
    trace_free(trace);
}

// Folders may have any name; a list has one line for each place, whatever that does to terminals.
static void names_of_folders_are_plain_in_lists(void **state)
{
    char command[2048], place[512];

    (void)state;
    snprintf(place, sizeof place, "%s/a\nb+0x7 \033[31m", folder);
    snprintf(command, sizeof command, "mkdir '%s' && cp %s '%s/client++'", place,
             getenv("EBB_CLIENT"), place);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "record --sites -o %s -- '%s/client++' loop", path,
             place);
    assert_int_equal(ebb(command), 0);
    snprintf(command, sizeof command, "advise %s", path);
    assert_int_equal(ebb(command), 0);
    assert_said("by loop (client++)");
    snprintf(command, sizeof command,
             "gzip -dc %s/out.sites.gz | grep -c '/a?b?0x7 ?.31m/client+++0x' >%s/said", folder,
             folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "rm -r '%s' %s/out.*", place, folder);
    assert_int_equal(system(command), 0);
}

static void places_of_an_older_trace_go(void **state)
{
    char arguments[512];

    (void)state;
    trace_free(recorded("--sites", "loop"));
    trace_free(recorded("", "full"));
    snprintf(arguments, sizeof arguments, "advise %s", path);
    assert_int_equal(ebb(arguments), 0);
    assert_int_equal(files_left(), 0);
}

// How many objects of the trace are of places with this name, of this file.
static int blocks_of(const char *place, const char *file)
{
    char name[256], line[1024];
    int number = -1, of = 0, found = 0;
    gzFile list;
    bool of_place[1 << 15] = {false};

    snprintf(name, sizeof name, "%.*s.sites.gz", (int)strlen(path) - 9, path);
    list = gzopen(name, "rb");
    assert_non_null(list);
    while (gzgets(list, line, sizeof line)) {
        if (sscanf(line, "s %d", &number) == 1)
            of_place[number] = strstr(line, place) && strstr(line, file);
        else if (sscanf(line, "%d", &of) == 1)
            found += of_place[of];
    }
    gzclose(list);
    return found;
}

// Its places have the addresses of the older one's, and were these before.
static void a_library_in_the_place_of_another_has_its_own_places(void **state)
{
    (void)state;
    assert_int_equal(record("--sites", "EBB_PLUGGED", "turns"), 0);
    assert_null(strstr(said(), "other addresses"));
    assert_int_equal(blocks_of(" place_alpha", "librecord_alpha.so"), 2 * PLUGGED_CALLS);
    assert_int_equal(blocks_of(" place_beta", "librecord_beta.so"), PLUGGED_CALLS);
}

// The tool looks for it when the program has ended, from the folder that it was started in.
static void a_library_is_named_by_its_whole_path(void **state)
{
    char command[2048], file[1024];

    (void)state;
    snprintf(command, sizeof command,
             "cd %s && cp %s/librecord_beta.so librecord_alpha.so && %s record -q --sites -o %s "
             "-- %s relative", folder, getenv("EBB_PLUGS"), getenv("EBB_TOOL"), path,
             getenv("EBB_PLUGGED"));
    assert_int_equal(system(command), 0);
    snprintf(file, sizeof file, "%s/librecord_alpha.so+", getenv("EBB_PLUGS"));
    assert_int_equal(blocks_of(" place_alpha", file), PLUGGED_CALLS);
    snprintf(command, sizeof command, "%s/librecord_alpha.so", folder);
    unlink(command);
}

static void places_of_many_libraries_have_names(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "mkdir %s/many && for i in $(seq 0 %d); do cp %s/librecord_alpha.so %s/many/$i.so "
             "|| exit; done", folder, PLUGGED_CROWD - 1, getenv("EBB_PLUGS"), folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/many", folder);
    setenv("EBB_COPIES", command, 1);
    assert_int_equal(record("--sites", "EBB_PLUGGED", "crowd"), 0);
    unsetenv("EBB_COPIES");
    assert_int_equal(blocks_of(" place_alpha", "/many/"), PLUGGED_CROWD * PLUGGED_CALLS);
    snprintf(command, sizeof command, "rm -r %s/many", folder);
    assert_int_equal(system(command), 0);
}

// The operator is not around what follows, nor is it the last end of its block that was noted.
static void what_follows_a_jump_out_of_an_operator_is_of_its_own(void **state)
{
    static const char file[] = "record_jumps_cxx";

    (void)state;
    if (!getenv("EBB_JUMPS_CXX"))
        skip();
    assert_int_equal(record("--sites", "EBB_JUMPS_CXX", ""), 0);
    assert_int_equal(blocks_of(" go_on_with_malloc", file), 2 * JUMPS_BLOCKS);
    assert_int_equal(blocks_of(" go_on_with_new", file), 2 * JUMPS_BLOCKS);
    assert_null(header_line("#lost-frees"));
}

// Nothing is read of a stack that has gone; who is interrupted from a stack above is noted once.
static void operators_lie_on_any_stack(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    if (!getenv("EBB_STACKS_CXX"))
        skip();
    assert_int_equal(record("--sites", "EBB_STACKS_CXX", ""), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALLOC, JUMPS_BELOW), JUMPS_BLOCKS);
    assert_int_equal(count(trace, TRACE_ALLOC, JUMPS_BESIDE), 3 * JUMPS_BLOCKS);
    assert_int_equal(count(trace, TRACE_ALLOC, JUMPS_MUCH), JUMPS_BLOCKS);
    assert_null(header_line("#lost-frees"));
    trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_name_functions),
        cmocka_unit_test(names_of_folders_are_plain_in_lists),
        cmocka_unit_test(places_of_an_older_trace_go),
        cmocka_unit_test(a_library_in_the_place_of_another_has_its_own_places),
        cmocka_unit_test(a_library_is_named_by_its_whole_path),
        cmocka_unit_test(places_of_many_libraries_have_names),
        cmocka_unit_test(what_follows_a_jump_out_of_an_operator_is_of_its_own),
        cmocka_unit_test(operators_lie_on_any_stack),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
