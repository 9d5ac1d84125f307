// SPDX-License-Identifier: Apache-2.0
//
// test_ends.c - recordings that end early: killed programs, killed recorders, damaged spools,
// limits, full disks, traces that cannot be written.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "jumps.h"
#include "recording.h"

static void a_killed_program_has_a_trace(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    assert_int_equal(record("", "EBB_CLIENT", "killed"), 128 + SIGKILL);
    assert_said("record_client: ended by signal 9, Killed\n");
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_MANY);
    assert_int_equal(trace->totals.left_bytes, (uint64_t)CLIENT_MANY * CLIENT_MALLOC);
    assert_int_equal(files_left(), 0);
    trace_free(trace);
}

// The name of the spool's folder.
static void find_spools(char *to, size_t room)
{
    DIR *at = opendir(folder);

    to[0] = '\0';
    for (struct dirent *entry; (entry = readdir(at));)
        if (strstr(entry->d_name, ".spool-"))
            snprintf(to, room, "%s/%s", folder, entry->d_name);
    closedir(at);
    assert_true(to[0]);
}

static pid_t start_waiting_client(const char *ready)
{
    pid_t tool = fork();

    assert_true(tool >= 0);
    if (tool == 0) {
        setpgid(0, 0);
        signal(SIGHUP, SIG_DFL); // whoever runs the tests may ignore it, as under nohup
        setenv("CLIENT_READY", ready, 1);
        execl(getenv("EBB_TOOL"), "ebb", "record", "-o", path, "--", getenv("EBB_CLIENT"), "waits",
              (char *)NULL);
        _exit(127);
    }
    setpgid(tool, tool);
    for (int i = 0; i < 1000 && access(ready, F_OK) != 0; i++)
        usleep(10000);
    assert_int_equal(access(ready, F_OK), 0);
    return tool;
}

static void a_killed_recorder_leaves_a_spool_that_can_be_read(void **state)
{
    char ready[128], spools[512], arguments[2048];
    struct ebb_trace *trace;
    int status;
    pid_t tool;

    (void)state;
    unlink(path);
    snprintf(ready, sizeof ready, "%s/ready", folder);
    tool = start_waiting_client(ready);
    kill(-tool, SIGKILL); // the tool and the client
    waitpid(tool, &status, 0);
    assert_int_equal(access(path, F_OK), -1);
    find_spools(spools, sizeof spools);
    snprintf(arguments, sizeof arguments, "record --recover %s -o %s", spools, path);
    assert_int_equal(ebb(arguments), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_MANY);
    assert_non_null(header_line("#recovered"));
    trace_free(trace);
    unlink(ready);
    snprintf(arguments, sizeof arguments, "rm -r %s", spools);
    assert_int_equal(system(arguments), 0);
}

// Of a free() that never returned, too, and of what comes after it.
// What realloc() was left with is thought to have ended, when the next one begins.
static void who_jumps_out_of_the_allocator_is_recorded_on(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    assert_int_equal(record("", "EBB_JUMPS", ""), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALLOC, JUMPS_BESIDE), JUMPS_BLOCKS);
    assert_int_equal(count(trace, TRACE_ALLOC, JUMPS_BELOW), JUMPS_BLOCKS);
    assert_int_equal(count(trace, TRACE_REALLOC, JUMPS_BESIDE + 1), JUMPS_BLOCKS);
    assert_int_equal(count(trace, TRACE_REALLOC, JUMPS_BELOW + 1), JUMPS_BLOCKS);
    assert_int_equal(count(trace, TRACE_ALLOC, JUMPS_LEFT), 1);
    assert_int_equal(trace->totals.left, 0);
    trace_free(trace);
}

// As `kill` does it, or `timeout`: the command is meant, and what it did until then is a trace.
static void who_ends_the_tool_ends_the_command(void **state)
{
    static const int ends[] = {SIGTERM, SIGHUP};
    char ready[128];

    (void)state;
    snprintf(ready, sizeof ready, "%s/ready", folder);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct ebb_trace *trace;
        int status;
        pid_t tool;

        unlink(path);
        tool = start_waiting_client(ready);
        kill(tool, ends[i]); // the tool alone
        waitpid(tool, &status, 0);
        kill(-tool, SIGKILL);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 128 + ends[i]);
        unlink(ready);
        trace = read_it();
        assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_MANY);
        trace_free(trace);
        assert_int_equal(files_left(), 0);
    }
}

// A spool cut anywhere, or with rubbish in it, gives a valid trace or a message.
static void damaged_spools_are_read_as_far_as_they_go(void **state)
{
    char command[4096], spools[512];

    (void)state;
    assert_int_equal(record("--keep", "EBB_CLIENT", "much"), CLIENT_CODE);
    find_spools(spools, sizeof spools);
    for (int cut = 0; cut < 12; cut++) {
        int code;

        snprintf(command, sizeof command,
                 "cp %s/[0-9]* %s/cut && truncate -s %d %s/cut && "
                 "printf 'rubbish rubbish rubbish' | "
                 "dd of=%s/cut bs=1 seek=%d conv=notrunc 2>/dev/null",
                 spools, folder, cut * 200000, folder, folder, 64 + cut * 133337);
        assert_int_equal(system(command), 0);
        unlink(path);
        snprintf(command, sizeof command, "record --recover %s/cut -o %s", folder, path);
        code = ebb(command);
        assert_true(code == 0 || code == 1);
        if (code == 0)
            trace_free(read_it());
        else
            assert_int_equal(access(path, F_OK), -1);
    }
    snprintf(command, sizeof command, "rm -r %s %s/cut", spools, folder);
    assert_int_equal(system(command), 0);
}

static void the_limit_stops_cleanly(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    assert_int_equal(record("--limit 1M", "EBB_CLIENT", "much"), CLIENT_CODE);
    assert_said("stopped early");
    trace = read_it();
    assert_true(trace->totals.allocs > 4096);
    assert_true(trace->totals.allocs < CLIENT_MANY);
    assert_non_null(strstr(header_line("#stopped"), "limit"));
    trace_free(trace);
}

// By hand, without the tool: a number that is none is named, once, and the usual limit holds.
static void a_limit_that_makes_no_sense_is_named(void **state)
{
    static const char *const senseless[] = {"1G", "abc", "-1048576", " 1048576", "1048576 ",
                                            "917503", "34359738369", "99999999999999999999"};
    char command[2048], line[128];
    struct ebb_trace *trace;

    (void)state;
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
        snprintf(command, sizeof command,
                 "mkdir %s/by_hand && { EBB_RECORD_LIMIT='%s' EBB_RECORD_SPOOL=%s/by_hand "
                 "LD_PRELOAD=%s %s much 2>%s/said; [ $? = %d ]; }", folder, senseless[i], folder,
                 getenv("EBB_RECORDER"), getenv("EBB_CLIENT"), folder, CLIENT_CODE);
        assert_int_equal(system(command), 0);
        snprintf(line, sizeof line, "libebb-record: EBB_RECORD_LIMIT is '%s', expected 917504 to "
                 "34359738368 bytes; it has no effect\n", senseless[i]);
        assert_string_equal(said(), line);
        snprintf(command, sizeof command, "record --recover %s/by_hand -o %s", folder, path);
        assert_int_equal(ebb(command), 0);
        trace = read_it();
        assert_true(count(trace, TRACE_ALLOC, 0) >= CLIENT_MANY);
        trace_free(trace);
        snprintf(command, sizeof command, "rm -r %s/by_hand", folder);
        assert_int_equal(system(command), 0);
    }
}

static void a_name_that_is_too_long_is_named(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "EBB_RECORD_SPOOL=$(printf '/%%04096d' 0) LD_PRELOAD=%s %s much 2>%s/said; "
             "[ $? = %d ]", getenv("EBB_RECORDER"), getenv("EBB_CLIENT"), folder, CLIENT_CODE);
    assert_int_equal(system(command), 0);
    assert_string_equal(said(), "libebb-record: EBB_RECORD_SPOOL: more than 4095 bytes, which has "
                                "no effect\n");
}

// The spool may hold more than a trace: the rest is left out, and who asked for it is told.
static void a_trace_that_is_full_says_so(void **state)
{
    char command[2048], spools[512];
    struct ebb_trace *trace;

    (void)state;
    assert_int_equal(record("--keep", "EBB_CLIENT", "much"), CLIENT_CODE);
    find_spools(spools, sizeof spools);
    snprintf(command, sizeof command, "%s record --recover %s -o %s 2>%s/said; rm -r %s",
             getenv("EBB_SHORT"), spools, path, folder, spools);
    assert_int_equal(system(command), 0);
    assert_said("; there was more than a trace takes, see #stopped in it");
    assert_non_null(strstr(header_line("#stopped"), "length: more than 40000"));
    trace = read_it();
    assert_true(trace->totals.allocs > 39000 && trace->totals.allocs <= 40000);
    trace_free(trace);
}

// The ends of regions that are open there have lines, too. One lasts from the first block on, by a
// tick that the test makes.
static void a_trace_that_is_full_has_room_for_ends(void **state)
{
    char command[2048], spools[512];
    struct ebb_trace *trace;

    (void)state;
    assert_int_equal(record("--keep", "EBB_FIXED", ""), 0);
    find_spools(spools, sizeof spools);
    snprintf(command, sizeof command,
             "for i in %s/*; do printf '\377\377\377\177' >$i.ticks; done; "
             "%s record --recover %s -o %s 2>%s/said; rm -r %s",
             spools, getenv("EBB_SHORT"), spools, path, folder, spools);
    assert_int_equal(system(command), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 1);
    assert_in_range(trace->event_count, 39990, 40000);
    trace_free(trace);
}

static void a_full_disk_stops_the_recording_not_the_program(void **state)
{
    struct ebb_trace *trace = recorded("", "full");

    (void)state;
    assert_non_null(strstr(header_line("#stopped"), "disk"));
    trace_free(trace);
}

// The spool must not take the last of it: the trace is made beside it.
static void a_full_disk_has_room_for_the_trace(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command, "mkdir %s/disk && unshare -rm mount -t tmpfs disk %s/disk "
             "2>/dev/null", folder, folder);
    if (system(command) != 0)
        skip(); // it is not allowed
    snprintf(command, sizeof command,
             "unshare -rm sh -c 'cd %s; mount -t tmpfs -o size=3m disk disk && "
             "%s record -o disk/out.trace.gz -- /usr/bin/python3 -c \""
             "import random; blocks = {}\n"
             "for i in range(400000): blocks[random.randrange(5000)] = bytes(i %% 9973 + 600)\" "
             "2>said; code=$?; cp disk/* .; exit $code'; code=$?; rmdir %s/disk; exit $code",
             folder, getenv("EBB_TOOL"), folder);
    assert_int_equal(WEXITSTATUS(system(command)), 0);
    assert_non_null(strstr(header_line("#stopped"), "disk"));
    trace_free(read_it());
    assert_int_equal(files_left(), 0);
}

static void a_trace_that_cannot_be_written_leaves_the_spool(void **state)
{
    char command[2048];

    (void)state;
    assert_int_equal(ebb("record -o /nowhere/at/all.trace.gz -- true"), 125);
    assert_said("/nowhere/at/all.trace.gz");
    snprintf(command, sizeof command,
             "cd %s && %s record -o taken.trace.gz -- /usr/bin/python3 -c "
             "'import os; os.mkdir(\"taken.trace.gz\")' >said 2>&1",
             folder, getenv("EBB_TOOL"));
    assert_int_equal(WEXITSTATUS(system(command)), 125);
    assert_said("--recover");
    snprintf(command, sizeof command, "rm -r %s/taken*", folder);
    assert_int_equal(system(command), 0);
}

// There is no room to map a file so large, most of which is a hole; elsewhere there is.
static void a_spool_that_cannot_be_read_stays(void **state)
{
    char command[2048], spools[512];
    struct ebb_trace *trace;

    (void)state;
    unlink(path);
    snprintf(command, sizeof command,
             "ulimit -v 4000000; exec %s record -o %s -- sh -c '%s much; "
             "truncate -s 16G $EBB_RECORD_SPOOL/*' 2>%s/said", getenv("EBB_TOOL"), path,
             getenv("EBB_CLIENT"), folder);
    assert_int_equal(WEXITSTATUS(system(command)), 125);
    assert_said(": Cannot allocate memory\n");
    assert_said("the spool is kept: ebb record --recover");
    find_spools(spools, sizeof spools);
    snprintf(command, sizeof command, "record --recover %s -o %s", spools, path);
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_MANY);
    trace_free(trace);
    snprintf(command, sizeof command, "rm -r %s", spools);
    assert_int_equal(system(command), 0);
}

// Each takes a megabyte: what a script starts must not fill the disk.
static void spools_of_processes_that_have_ended_go(void **state)
{
    char command[2048];

    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        snprintf(command, sizeof command,
                 "record %s -o %s -- sh -c 'for i in $(seq 300); do /bin/true; done; "
                 "for i in $(seq 100); do [ $(ls $EBB_RECORD_SPOOL | wc -l) -%s 150 ] && exit; "
                 "sleep 0.1; done; exit 1'", keep ? "--keep" : "", path, keep ? "gt" : "lt");
        assert_int_equal(ebb(command), 0);
        assert_said(" other programs noted less and are left out");
        assert_true(atoi(strstr(said(), "regions; ") + strlen("regions; ")) >= 300);
    }
    snprintf(command, sizeof command, "rm -r %s.spool-*", path);
    assert_int_equal(system(command), 0);
}

// Libraries may work on after the program's end, and after the recorder's.
static void what_a_process_notes_at_its_end_counts(void **state)
{
    char arguments[2048];

    (void)state;
    snprintf(arguments, sizeof arguments,
             "record -o %s -- sh -c '%s loop; CLIENT_LATE=1 %s number; exit $?'", path,
             getenv("EBB_CLIENT"), getenv("EBB_CLIENT"));
    assert_int_equal(ebb(arguments), 0);
    trace_free(read_it());
}

// The processes of a script, of which there are few in the end.
static void assert_spools_go(const char *before, const char *within, const char *script)
{
    char command[2048];
    FILE *file;

    snprintf(command, sizeof command, "%s/script", folder);
    file = fopen(command, "w");
    assert_non_null(file);
    fprintf(file, "%s\nfor i in $(seq 100); do [ $(ls $EBB_RECORD_SPOOL | wc -l) -lt 15 ] && exit; "
                  "sleep 0.1; done; exit 1\n", script);
    fclose(file);
    snprintf(command, sizeof command, "%s %s record -o %s -- %s sh %s/script 40 2>%s/said", before,
             getenv("EBB_TOOL"), path, within, folder, folder);
    assert_int_equal(system(command), 0);
    assert_non_null(strstr(said(), " other programs noted less and are left out\n"));
    assert_null(strstr(said(), "recorded no more"));
    trace_free(read_it());
}

// A process that becomes many programs; some that have no room for a spool; one that ends without a
// word, where numbers of processes are others; some that nobody waits for but the tool, the first
// process of its space.
static void processes_may_end_in_any_way(void **state)
{
    static const char space[] = "unshare -rpf --mount-proc";
    char command[128];

    (void)state;
    assert_spools_go("", "", "[ $1 = 0 ] || exec sh $0 $(($1 - 1))");
    assert_spools_go("", "", "for i in $(seq 100); do (ulimit -v $((2000 + 20 * $i)); "
                             "exec /bin/true); done 2>/dev/null");
    snprintf(command, sizeof command, "%s true 2>/dev/null", space);
    if (system(command) == 0) { // else it is not allowed
        assert_spools_go("", space, "for i in $(seq $1); do sh -c 'kill -9 $$'; done 2>/dev/null");
        assert_spools_go(space, "", "for i in $(seq $1); do (/bin/true &); done");
    }
    snprintf(command, sizeof command, "%s/script", folder);
    unlink(command);
}

// A server that a script has started: the trace says where it was cut, and the file that nobody
// sees any more does not grow.
static void what_outlives_the_command_is_stopped(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "cd %s; : >go; %s record -o %s -- sh -c 'PYTHONMALLOC=malloc /usr/bin/python3 -c "
             "\"import os, time\n"
             "while os.path.exists(\\\"go\\\"): [str(i) for i in range(9000)]; "
             "open(\\\"works\\\", \\\"w\\\").close(); time.sleep(0.01)\" & echo $! >server; "
             "for i in $(seq 100); do [ -e works ] && exit; sleep 0.1; done; exit 1' 2>said; "
             "code=$?; "
             "bytes() { stat -L -c '%%s %%n' /proc/$(cat server)/fd/* | grep '/fd/[0-9][0-9]'; }; "
             "bytes >first; sleep 0.5; bytes >then; rm go; [ $code = 0 ] && cmp first then && "
             "[ -s first ]; code=$?; rm works server first then; exit $code",
             folder, getenv("EBB_TOOL"), path);
    assert_int_equal(WEXITSTATUS(system(command)), 0);
    assert_said("recording stopped early, see #stopped in it");
    assert_said("ebb record: 1 process still runs, and is recorded no more\n");
    trace_free(read_it());
    assert_non_null(strstr(header_line("#stopped"), "end: the command ended"));
    assert_int_equal(files_left(), 0);
}

// The summary is what is said last, so the spool must not be what is left of it.
static void nobody_need_listen_to_the_end(void **state)
{
    char command[2048];

    (void)state;
    unlink(path);
    snprintf(command, sizeof command, "{ %s record -o %s -- %s loop; echo $? >%s/said; } 2>&1 | :",
             getenv("EBB_TOOL"), path, getenv("EBB_CLIENT"), folder);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 1000 && access(path, F_OK) != 0; i++)
        usleep(10000);
    for (int i = 0; i < 1000 && files_left() > 0; i++)
        usleep(10000);
    assert_int_equal(files_left(), 0);
    trace_free(read_it());
}

// A device or a pipe that a trace took the name of would be gone.
static void what_is_no_file_keeps_its_name(void **state)
{
    char command[2048], pipe[512];
    struct stat status;

    (void)state;
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    snprintf(command, sizeof command, "record -o %s -- touch %s/touched", pipe, folder);
    assert_int_equal(ebb(command), 125);
    assert_said("no ordinary file");
    snprintf(command, sizeof command, "%s/touched", folder);
    assert_int_equal(access(command, F_OK), -1);
    assert_int_equal(stat(pipe, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    snprintf(command, sizeof command, "ln -s %s %s/link && : >%s", path, folder, path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "record -o %s/link -- %s loop", folder,
             getenv("EBB_CLIENT"));
    assert_int_equal(ebb(command), 0);
    trace_free(read_it());
    snprintf(command, sizeof command, "[ -h %s/link ] && rm %s/link", folder, folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(ebb("record -o '' -- true"), 2);
    assert_said("without a name");
    unlink(pipe);
    assert_int_equal(files_left(), 0);
}

static void programs_that_close_all_files_are_recorded_on(void **state)
{
    struct ebb_trace *trace = recorded("", "closes");

    (void)state;
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_MANY);
    trace_free(trace);
}

// Opened again, the spool must not be a standard stream of the program's.
static void what_a_program_writes_to_closed_streams_is_not_in_the_spool(void **state)
{
    char command[1024];
    struct ebb_trace *trace = recorded("", "mute");

    (void)state;
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_MANY / 9 * 9);
    trace_free(trace);
    unlink(path); // numbers that are out of the way are not to be had
    snprintf(command, sizeof command, "ulimit -n 20; exec %s record -o %s -- %s mute 2>%s/said",
             getenv("EBB_TOOL"), path, getenv("EBB_CLIENT"), folder);
    assert_int_equal(WEXITSTATUS(system(command)), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_MANY / 9 * 9);
    trace_free(trace);
}

// The spool stays what it was, and can be read where there is room.
static void a_full_disk_leaves_no_half_trace(void **state)
{
    char command[2048], spools[512];

    (void)state;
    snprintf(command, sizeof command, "record --keep -o %s -- /usr/bin/python3 -c 'import json'",
             path);
    assert_int_equal(ebb(command), 0);
    find_spools(spools, sizeof spools);
    snprintf(command, sizeof command,
             "rm %s; ulimit -f 4; exec %s record --recover %s --sites -o %s 2>%s/said", path,
             getenv("EBB_TOOL"), spools, path, folder);
    assert_int_equal(WEXITSTATUS(system(command)), 1);
    assert_said("cannot be written: File too large");
    assert_int_equal(access(path, F_OK), -1);
    snprintf(command, sizeof command, "%s/out.sites.gz", folder);
    assert_int_equal(access(command, F_OK), -1);
    snprintf(command, sizeof command, "record --recover %s -o %s", spools, path);
    assert_int_equal(ebb(command), 0);
    trace_free(read_it());
    snprintf(command, sizeof command, "rm -r %s", spools);
    assert_int_equal(system(command), 0);
}

// The trace that had the name, and its list, go with each other and are what they were.
static void a_full_disk_leaves_the_older_trace(void **state)
{
    char command[2048], spools[512];

    (void)state;
    snprintf(command, sizeof command,
             "record --keep --sites -o %s -- /usr/bin/python3 -c 'import json'", path);
    assert_int_equal(ebb(command), 0);
    find_spools(spools, sizeof spools);
    snprintf(command, sizeof command,
             "cd %s; sum out.*.gz >before; ulimit -f 4; %s record --recover %s --sites -o %s "
             "2>said; [ $? = 1 ] && sum out.*.gz | cmp - before",
             folder, getenv("EBB_TOOL"), spools, path);
    assert_int_equal(system(command), 0);
    assert_said("cannot be written: File too large");
    snprintf(command, sizeof command, "rm -r %s %s/out.*.gz %s/before", spools, folder, folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_program_has_a_trace),
        cmocka_unit_test(a_killed_recorder_leaves_a_spool_that_can_be_read),
        cmocka_unit_test(who_jumps_out_of_the_allocator_is_recorded_on),
        cmocka_unit_test(who_ends_the_tool_ends_the_command),
        cmocka_unit_test(damaged_spools_are_read_as_far_as_they_go),
        cmocka_unit_test(the_limit_stops_cleanly),
        cmocka_unit_test(a_limit_that_makes_no_sense_is_named),
        cmocka_unit_test(a_name_that_is_too_long_is_named),
        cmocka_unit_test(a_trace_that_is_full_says_so),
        cmocka_unit_test(a_trace_that_is_full_has_room_for_ends),
        cmocka_unit_test(a_full_disk_stops_the_recording_not_the_program),
        cmocka_unit_test(a_full_disk_has_room_for_the_trace),
        cmocka_unit_test(a_trace_that_cannot_be_written_leaves_the_spool),
        cmocka_unit_test(a_spool_that_cannot_be_read_stays),
        cmocka_unit_test(spools_of_processes_that_have_ended_go),
        cmocka_unit_test(what_a_process_notes_at_its_end_counts),
        cmocka_unit_test(processes_may_end_in_any_way),
        cmocka_unit_test(what_outlives_the_command_is_stopped),
        cmocka_unit_test(nobody_need_listen_to_the_end),
        cmocka_unit_test(what_is_no_file_keeps_its_name),
        cmocka_unit_test(a_full_disk_leaves_no_half_trace),
        cmocka_unit_test(a_full_disk_leaves_the_older_trace),
        cmocka_unit_test(programs_that_close_all_files_are_recorded_on),
        cmocka_unit_test(what_a_program_writes_to_closed_streams_is_not_in_the_spool),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
