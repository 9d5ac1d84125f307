// SPDX-License-Identifier: Apache-2.0
//
// test_spools.c - which spools of a folder go and which are stopped, in which order the records of
// one stand, and what is made of them. The spools are made here; most have nothing but the first
// part of a head.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spool.h"
#include "spool_read.h"
#include "spools.h"
#include "stream.h"

static char folder[] = "/tmp/ebb-spools-XXXXXX";
static char path[128];

static const char *name_of(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool is_there(const char *name)
{
    return access(name_of(name), F_OK) == 0;
}

static void put(int file, size_t at, const void *value, size_t bytes)
{
    assert_int_equal(pwrite(file, value, bytes, (off_t)at), bytes);
}

// The file, open; `locked`: it says that it is, whether or not it is.
static int make(const char *name, uint64_t records, uint32_t space, uint32_t locked)
{
    int file = open(name_of(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)SPOOL_HEAD), 0);
    put(file, offsetof(struct spool_head, magic), SPOOL_MAGIC, strlen(SPOOL_MAGIC));
    put(file, offsetof(struct spool_head, space), &space, sizeof space);
    put(file, offsetof(struct spool_head, locked), &locked, sizeof locked);
    put(file, offsetof(struct spool_head, sequence), &records, sizeof records);
    return file;
}

static uint32_t stopped(int file)
{
    uint32_t why;

    assert_int_equal(pread(file, &why, sizeof why, offsetof(struct spool_head, stopped)),
                     sizeof why);
    return why;
}

static uint32_t own_space(void)
{
    struct stat status;

    assert_int_equal(stat("/proc/self/ns/pid", &status), 0);
    return (uint32_t)status.st_ino;
}

// ---- what happens while the tool looks

static int looks; // at which something happens
static int grows; // the file, to 1000 records

DIR *__real_opendir(const char *name);
DIR *__wrap_opendir(const char *name);

DIR *__wrap_opendir(const char *name)
{
    uint64_t records = 1000;

    if (looks && --looks == 0)
        put(grows, offsetof(struct spool_head, sequence), &records, sizeof records);
    return __real_opendir(name);
}

static void what_has_become_the_heaviest_stays(void **state)
{
    int light = make("1.0", 10, 0, true), noted = 0;

    (void)state;
    close(make("2.0", 100, 0, true));
    grows = make("3.0", 20, 0, true);
    looks = 2;
    assert_int_equal(spools_thin(folder, &noted), 1);
    assert_false(is_there("1.0"));
    assert_true(is_there("2.0") && is_there("3.0"));
    assert_int_equal(stopped(light), SPOOL_STOP_END);
    assert_int_equal(stopped(grows), SPOOL_GOES_ON);
    assert_int_equal(spools_thin(folder, &noted), 1);
    assert_int_equal(noted, 2);
    assert_true(!is_there("2.0") && is_there("3.0"));
    close(light);
    close(grows);
    spools_remove(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

// ---- what is over

static void *map_locked(const char *name, uint32_t space)
{
    int file = make(name, 10, space, true);
    void *head = mmap(NULL, SPOOL_STATE, PROT_READ, MAP_SHARED, file, 0);

    assert_true(head != MAP_FAILED);
    assert_int_equal(flock(file, LOCK_EX | LOCK_NB), 0);
    close(file); // as programs do that close all they do not know
    return head;
}

static void a_spool_is_over_when_nobody_has_it_mapped(void **state)
{
    char name[32];
    void *head;

    (void)state;
    snprintf(name, sizeof name, "%ld.0", (long)getpid());
    for (uint32_t elsewhere = 0; elsewhere < 2; elsewhere++) {
        head = map_locked(name, own_space() + elsewhere);
        assert_false(spools_is_over(folder, name));
        munmap(head, SPOOL_STATE);
        assert_true(spools_is_over(folder, name));
        close(make(name, 10, own_space() + elsewhere, false)); // there is no telling
        assert_false(spools_is_over(folder, name));
    }
}

static pid_t ended_child(void)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return child;
}

// A process that is killed, or that there is no room for, leaves a file with nothing but its space.
static void a_spool_without_a_head_is_over_when_its_process_has_ended(void **state)
{
    const pid_t processes[] = {getpid(), ended_child()};
    const size_t magic = 0;
    char name[32];

    (void)state;
    for (uint32_t elsewhere = 0; elsewhere < 2; elsewhere++)
        for (int ended = 0; ended < 2; ended++) {
            int file, noted = 0;

            snprintf(name, sizeof name, "%ld.0", (long)processes[ended]);
            file = make(name, 0, own_space() + elsewhere, false);
            put(file, offsetof(struct spool_head, magic), &magic, sizeof magic);
            assert_int_equal(spools_is_over(folder, name), ended && !elsewhere);
            assert_int_equal(spools_thin(folder, &noted), ended && !elsewhere);
            assert_int_equal(noted, 0);
            close(file);
            unlink(name_of(name));
        }
}

// A daemon leaves its parent's behind, and notes nothing.
static void the_end_of_a_process_counts_whoever_has_its_spool_mapped(void **state)
{
    char name[32];
    void *head;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    snprintf(name, sizeof name, "%ld.0", (long)child);
    head = map_locked(name, own_space());
    assert_false(spools_is_over(folder, name));
    waitpid(child, NULL, 0);
    assert_true(spools_is_over(folder, name));
    munmap(head, SPOOL_STATE);
}

// The same number in two spaces is that of two processes.
static void processes_that_go_on_are_counted(void **state)
{
    struct spools spools;
    int file[3];

    (void)state;
    spools_remove(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    file[0] = make("7.0", 10, 1, false);
    file[1] = make("7.1", 30, 2, false);
    file[2] = make("7.2", 20, 1, false);
    spools_stop(folder, &spools);
    assert_int_equal(spools.running, 2);
    assert_int_equal(spools.count, 3);
    assert_int_equal(spools.most, 30);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stopped(file[i]), SPOOL_STOP_END);
        close(file[i]);
    }
}

// ---- records

static void put_record(int file, size_t place, uint64_t what, uint64_t when)
{
    const uint64_t words[] = {when, what};

    put(file, SPOOL_HEAD + place * sizeof words, words, sizeof words);
}

// Two lanes have taken turns. What their chunks have room for yet is no record.
static void records_stand_as_they_happened_whatever_else_chunks_have_room_for(void **state)
{
    enum { SECOND = SPOOL_CHUNK_RECORDS };
    static const size_t places[] = {1, SECOND + 1, 3, SECOND + 2};
    int file = make("1.0", 5, 0, true);
    const uint32_t chunks = 2;
    struct spool_file spool;

    (void)state;
    assert_int_equal(ftruncate(file, (off_t)(SPOOL_HEAD + chunks * (uint64_t)SPOOL_CHUNK)), 0);
    put(file, offsetof(struct spool_head, chunks), &chunks, sizeof chunks);
    put_record(file, 0, SPOOL_CHUNK_HEAD, 7);
    put_record(file, 1, spool_what(SPOOL_MALLOC, 0, 4096), spool_when(0, 100));
    put_record(file, 2, SPOOL_WIDE, 1); // belongs to the next
    put_record(file, 3, spool_what(SPOOL_MALLOC, 0, 8192), spool_when(2, 300));
    put_record(file, SECOND, SPOOL_CHUNK_HEAD, 8);
    put_record(file, SECOND + 1, spool_what(SPOOL_FREE, 0, 4096), spool_when(1, 0));
    put_record(file, SECOND + 2, spool_what(SPOOL_FREE, 0, 8192), spool_when(3, 0));
    close(file);
    assert_true(spool_file_open(&spool, name_of("1.0")));
    assert_int_equal(spool.order_count, 5);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(spool.order[i], places[i] + 1);
        assert_int_equal(spool_file_lane(&spool, places[i]), 7 + i % 2);
    }
    assert_int_equal(spool.order[4], 0); // it was not written any more
    spool_file_close(&spool);
    assert_int_equal(unlink(name_of("1.0")), 0);
}

// One chunk for each lane, with `each` records; the first of all has number 1.
static void make_chunks(const char *name, const uint64_t *what, size_t each, uint32_t chunks)
{
    int file = make(name, 1 + each * chunks, 0, true);

    assert_int_equal(ftruncate(file, (off_t)(SPOOL_HEAD + chunks * (uint64_t)SPOOL_CHUNK)), 0);
    put(file, offsetof(struct spool_head, chunks), &chunks, sizeof chunks);
    for (uint32_t i = 0; i < chunks; i++) {
        put_record(file, i * SPOOL_CHUNK_RECORDS, SPOOL_CHUNK_HEAD, i);
        for (size_t j = 0; j < each; j++)
            put_record(file, i * SPOOL_CHUNK_RECORDS + 1 + j, what[i * each + j],
                       spool_when(1 + i * each + j, 100));
    }
    close(file);
}

// A thread is ended between the two words by which it says that it has stopped, and where.
static void a_stop_without_a_place_ends_nothing(void **state)
{
    const uint64_t what[] = {spool_what(SPOOL_MALLOC, 0, 4096), spool_what(SPOOL_FREE, 0, 4096)};
    const uint32_t why = SPOOL_STOP_LIMIT;
    const uint64_t first = 2;
    struct spool_file spool;

    (void)state;
    make_chunks("1.0", what, 2, 1);
    int file = open(name_of("1.0"), O_RDWR | O_CLOEXEC);
    put(file, offsetof(struct spool_head, stopped), &why, sizeof why);
    for (size_t told = 0; told < 2; told++) {
        assert_true(spool_file_open(&spool, name_of("1.0")));
        assert_int_equal(spool.order_count, told ? 2 : 3);
        assert_int_equal(spool.order[1], 2);
        spool_file_close(&spool);
        put(file, offsetof(struct spool_head, stop_sequence), &first, sizeof first);
    }
    close(file);
    assert_int_equal(unlink(name_of("1.0")), 0);
}

static size_t moves_of(const struct stream *stream, enum move_kind kind)
{
    size_t found = 0;

    for (size_t i = 0; i < stream->move_count; i++)
        found += stream->move[i].move == kind;
    return found;
}

// A thread that ends in the midst of a realloc() leaves no block to whoever has its lane next.
static void what_a_thread_held_in_realloc_ends_with_it(void **state)
{
    const uint64_t what[] = {spool_what(SPOOL_MALLOC, 0, 4096),
                             spool_what(SPOOL_REALLOC_FROM, 0, 4096),
                             spool_what(SPOOL_THREAD_END, 0, 0),
                             spool_what(SPOOL_REALLOC_TO, 0, 8192),
                             spool_what(SPOOL_FREE, 0, 8192),
                             spool_what(SPOOL_THREAD_END, 0, 0)};
    struct spool_file spool;
    struct stream stream;

    (void)state;
    make_chunks("1.0", what, 3, 2);
    assert_true(spool_file_open(&spool, name_of("1.0")));
    assert_true(stream_decode(&stream, &spool, NULL, 0));
    assert_int_equal(moves_of(&stream, MOVE_BIRTH), 2);
    assert_int_equal(moves_of(&stream, MOVE_END), 2);
    stream_free(&stream);
    spool_file_close(&spool);
    assert_int_equal(unlink(name_of("1.0")), 0);
}

// A program that has no marks may say that one ends. Regions of ticks go on.
static void an_end_without_a_begin_ends_no_tick(void **state)
{
    const uint64_t what[] = {spool_what(SPOOL_MALLOC, 0, 4096), spool_what(SPOOL_END, 0, 0),
                             spool_what(SPOOL_MALLOC, 0, 8192)};
    const uint32_t tick = 100;
    struct spool_file spool;
    struct stream stream;

    (void)state;
    make_chunks("1.0", what, 3, 1);
    assert_true(spool_file_open(&spool, name_of("1.0")));
    assert_true(stream_decode(&stream, &spool, &tick, 1));
    assert_int_equal(moves_of(&stream, MOVE_BIRTH), 2);
    assert_int_equal(moves_of(&stream, MOVE_BEGIN_REGION), 1);
    assert_int_equal(stream.move[stream.move_count - 1].move, MOVE_END_REGION);
    stream_free(&stream);
    spool_file_close(&spool);
    assert_int_equal(unlink(name_of("1.0")), 0);
}

// The first thread waits from the tick on, while another one frees what it has made.
static void a_tick_ends_the_region_of_a_thread_that_waits(void **state)
{
    static const enum move_kind moves[] = {MOVE_BEGIN_REGION, MOVE_BIRTH, MOVE_BIRTH,
                                           MOVE_END_REGION, MOVE_END, MOVE_END};
    const uint64_t what[] = {spool_what(SPOOL_MALLOC, 0, 4096), spool_what(SPOOL_MALLOC, 0, 8192),
                             spool_what(SPOOL_FREE, 0, 4096), spool_what(SPOOL_FREE, 0, 8192)};
    const uint32_t ticks[] = {3, 4};
    struct spool_file spool;
    struct stream stream;

    (void)state;
    make_chunks("1.0", what, 2, 2);
    assert_true(spool_file_open(&spool, name_of("1.0")));
    assert_true(stream_decode(&stream, &spool, ticks, 2));
    assert_int_equal(stream.move_count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(stream.move[i].move, moves[i]);
        assert_int_equal(stream.move[i].lane, i / 4);
    }
    stream_free(&stream);
    spool_file_close(&spool);
    assert_int_equal(unlink(name_of("1.0")), 0);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    spools_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_become_the_heaviest_stays),
        cmocka_unit_test(a_spool_is_over_when_nobody_has_it_mapped),
        cmocka_unit_test(a_spool_without_a_head_is_over_when_its_process_has_ended),
        cmocka_unit_test(the_end_of_a_process_counts_whoever_has_its_spool_mapped),
        cmocka_unit_test(processes_that_go_on_are_counted),
        cmocka_unit_test(records_stand_as_they_happened_whatever_else_chunks_have_room_for),
        cmocka_unit_test(a_stop_without_a_place_ends_nothing),
        cmocka_unit_test(what_a_thread_held_in_realloc_ends_with_it),
        cmocka_unit_test(an_end_without_a_begin_ends_no_tick),
        cmocka_unit_test(a_tick_ends_the_region_of_a_thread_that_waits),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
