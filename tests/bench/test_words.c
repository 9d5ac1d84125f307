// SPDX-License-Identifier: Apache-2.0
//
// test_words.c - ebb-sequence, ebb-keys, ebb-load and the loops of bench/serve name the word that
// is bad, and measure nothing then.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "trace_scratch.h"

static void refuses(const char *program, const char *arguments, const char *words)
{
    program_says(program, arguments, 2, words);
}

static void bad_sequences_are_refused(void **state)
{
    (void)state;
    refuses("EBB_SEQUENCE", "", "usage: ebb-sequence");
    refuses("EBB_SEQUENCE", "float64 4 3 5", "KIND: neither float32 nor int64: float64");
    refuses("EBB_SEQUENCE", "float32 abc 3 5", "FEATURES: not a number from 0 to 16777216: abc");
    refuses("EBB_SEQUENCE", "float32 -1 3 5", "FEATURES: not a number from 0 to 16777216: -1");
    refuses("EBB_SEQUENCE", "float32 4 3x 5", "ROUNDS: not a number from 1 to 10000: 3x");
    refuses("EBB_SEQUENCE", "float32 4 0 5", "ROUNDS: not a number from 1 to 10000: 0");
    refuses("EBB_SEQUENCE", "int64 0 3 5 0", "LENGTH: not a number from 1 to 16777216: 0");
    program_says("EBB_SEQUENCE", "int64 0 3 5 1", 0, "sequence\tjoin_int64_0\tebb\tns\t");
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    refuses("EBB_KEYS", "2", "usage: ebb-keys");
    refuses("EBB_KEYS", "0 10", "RUNS: not a number from 1 to 10000: 0");
    refuses("EBB_KEYS", "2 10x", "STEPS: not a number from 1 to 100000: 10x");
    refuses("EBB_KEYS", "2 10 loop spiral", "SHAPE: there is none of that name: spiral");
    program_says("EBB_KEYS", "2 10 two", 0, "\ntwo ");
}

static void bad_loads_are_refused(void **state)
{
    (void)state;
    refuses("EBB_LOAD", "1 2", "usage: ebb-load");
    refuses("EBB_LOAD", "x 2 3", "PID: not a number from 1 to 2147483647: x");
    refuses("EBB_LOAD", "1 65536 3", "PORT: not a number from 1 to 65535: 65536");
    refuses("EBB_LOAD", "1 2 65", "CONNECTIONS: not a number from 1 to 64: 65");
    refuses("EBB_LOAD", "1 2 0", "CONNECTIONS: not a number from 1 to 64: 0");
}

static void bad_loops_are_refused(void **state)
{
    (void)state;
    refuses("EBB_PAIRS", "64", "usage: ebb-pairs BYTES WARM");
    refuses("EBB_PAIRS", "-1 1", "ebb-pairs: BYTES: not a number from 1 to 1073741824: -1");
    refuses("EBB_PAIRS", "64k 1", "BYTES: not a number from 1 to 1073741824: 64k");
    refuses("EBB_PAIRS", "0 1", "BYTES: not a number from 1 to 1073741824: 0");
    refuses("EBB_PAIRS", "64 x", "WARM: not a number from 0 to 1000000000: x");
    refuses("EBB_SHORT_LOOP", "x 2 1", "LARGE: not a number from 0 to 1073741824: x");
    refuses("EBB_SHORT_LOOP", "10 2x 1", "THREADS: not a number from 1 to 64: 2x");
    refuses("EBB_SHORT_LOOP", "10 65 1", "THREADS: not a number from 1 to 64: 65");
    refuses("EBB_SHORT_LOOP", "10 2 ''", "WARM: not a number from 0 to 1000000000: ");
    refuses("EBB_ORT_LOOP", "library model 0 1", "THREADS: not a number from 1 to 64: 0");
    refuses("EBB_ORT_LOOP", "library model 1 +1", "WARM: not a number from 0 to 1000000000: +1");
    refuses("EBB_ORT_SERVER", "library model nothing", "usage: ort-server");
}

static void bad_turns_of_loops_are_refused(void **state)
{
    (void)state;
    program_says("EBB_PAIRS", "16 0 </dev/null", 0, "ready\n");
    write_bytes("1\n2x\n", 5);
    assert_int_equal(run_on_scratch("EBB_PAIRS", "16 0 <"), 2);
    assert_non_null(strstr(said, "\"loss\""));
    assert_non_null(strstr(said, "ebb-pairs: steps: not a number from 1 to 1000000000: 2x"));
}

// Its first client is heard to its end and gets no answer.
static void hang_up(int server)
{
    char bytes[4096];
    int client = accept(server, NULL, NULL);

    shutdown(client, SHUT_WR);
    while (recv(client, bytes, sizeof bytes, 0) > 0)
        continue;
    _exit(0);
}

static void a_server_that_hangs_up_has_no_reason(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    char arguments[512];
    pid_t child;

    (void)state;
    assert_int_equal(bind(server, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&address, &size), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        hang_up(server);
    write_bytes("1 2 3 0\n", 8);
    snprintf(arguments, sizeof arguments, "%d %d 1 <%s", (int)getpid(), ntohs(address.sin_port),
             scratch_path());
    assert_int_equal(run_program("EBB_LOAD", arguments), 1);
    assert_string_equal(said, "ebb-load: the server hung up\n");
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_sequences_are_refused),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(bad_loads_are_refused),
        cmocka_unit_test(bad_loops_are_refused),
        cmocka_unit_test(bad_turns_of_loops_are_refused),
        cmocka_unit_test(a_server_that_hangs_up_has_no_reason),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
