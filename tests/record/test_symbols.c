// SPDX-License-Identifier: Apache-2.0
//
// test_symbols.c - symbol tables of files that are not what they should be.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbols.h"

enum { SYMBOLS = 100000, TABLES = 1000, FIRST = 4096 };

static const char names[] = "\0found\0"; // of 8 bytes

// Its section headers all but the first have one and the same table.
static void write_file(FILE *file)
{
    Elf64_Ehdr head = {.e_ident = ELFMAG, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = TABLES + 1};
    Elf64_Sym symbol = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_size = 1};
    Elf64_Shdr section = {.sh_type = SHT_STRTAB, .sh_offset = sizeof head, .sh_size = sizeof names};
    Elf64_Shdr table = {.sh_type = SHT_SYMTAB, .sh_offset = sizeof head + sizeof names,
                        .sh_size = SYMBOLS * sizeof symbol};

    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_shoff = table.sh_offset + table.sh_size;
    assert_int_equal(fwrite(&head, sizeof head, 1, file), 1);
    assert_int_equal(fwrite(names, sizeof names, 1, file), 1);
    for (unsigned i = 0; i < SYMBOLS; i++) {
        symbol.st_value = FIRST + i;
        assert_int_equal(fwrite(&symbol, sizeof symbol, 1, file), 1);
    }
    assert_int_equal(fwrite(&section, sizeof section, 1, file), 1);
    for (unsigned i = 0; i < TABLES; i++)
        assert_int_equal(fwrite(&table, sizeof table, 1, file), 1);
}

static void tables_that_lie_in_one_place_take_no_more_memory_than_one(void **state)
{
    char path[] = "/tmp/ebb-symbols-XXXXXX", name[64] = "";
    struct rlimit before, less;
    int descriptor = mkstemp(path);
    FILE *file = fdopen(descriptor, "w");

    (void)state;
    assert_non_null(file);
    write_file(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    less = before;
    less.rlim_cur = 1 << 30;
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    symbols_name(path, FIRST + SYMBOLS - 1, name, sizeof name);
    void *room = malloc(512 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    unlink(path);
    assert_string_equal(name, "found");
    assert_non_null(room);
    free(room);
    symbols_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_that_lie_in_one_place_take_no_more_memory_than_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
