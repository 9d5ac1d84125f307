// SPDX-License-Identifier: Apache-2.0
//
// client.h - the numbers that client.c and its test agree on. Sizes differ, to be told apart.

#ifndef EBB_TESTS_RECORD_CLIENT_H
#define EBB_TESTS_RECORD_CLIENT_H

enum {
    CLIENT_MALLOC = 1001,
    CLIENT_CALLOC = 700, // three of them
    CLIENT_ALIGNED = 512,
    CLIENT_POSIX = 12345,
    CLIENT_GROWN = 200003,
    CLIENT_ARRAY = 900, // five of them
    CLIENT_FRESH = 77,
    CLIENT_MEMALIGN = 333,
    CLIENT_VALLOC = 5000,
    CLIENT_CROWD = 200,
    CLIENT_WORKERS = 5,
    CLIENT_LATE = 4, // threads
    CLIENT_LATE_BLOCKS = 3000,
    CLIENT_OPENS = 4000,
    CLIENT_MANY = 50000,
    CLIENT_STEPS = 6,
    CLIENT_STEPPED = 40, // more than a trace nests
    CLIENT_NESTS = 16,   // regions in a trace
    CLIENT_OPEN = 128,   // steps of a thread that the recorder knows at once
    CLIENT_SITES = 1024, // that the recorder knows at once
    CLIENT_MORE = 100,   // sites
    CLIENT_DEEP = 40,
    CLIENT_LOOP = 60,
    CLIENT_LOOP_BLOCKS = 50,
    CLIENT_CODE = 42, // exit code of the scenario `much`
    CLIENT_FILE_LIMIT = 1 << 20, // the head of a spool is most of it
};

#define CLIENT_LONG "a_function_whose_name_says_what_it_does_in_as_many_words_as_there_are_"
#define CLIENT_LONG_NAME CLIENT_LONG CLIENT_LONG CLIENT_LONG

void client_long_name(void) __asm__(CLIENT_LONG_NAME);

int client_number(void); // 7
extern int client_seven;

#if defined __x86_64__
// Its arguments fill whole registers of AVX.
typedef double client_wide __attribute__((vector_size(32)));

double client_sum(client_wide first, client_wide second) __attribute__((target("avx")));
#endif

#endif
