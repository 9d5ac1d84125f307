// SPDX-License-Identifier: Apache-2.0
/*
 * symbols.c - reads the symbol tables of 64-bit ELF files of this machine's byte order.
 *
 * The files are those of the recorded program, so nothing in them is believed: every table must lie
 * inside of the file, every name inside of its table. What does not fit has no names.
 */
#include "symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "brief.h"

enum { FILES_MAX = 256, PATH_BYTES = 256 };

struct elf {
    char path[PATH_BYTES];
    const char *at; /* NULL: no names */
    size_t bytes;
};

static struct elf files[FILES_MAX];
static int file_count;

static void map_file(struct elf *file) {
    struct stat status;
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 &&
        (size_t)status.st_size >= sizeof(Elf64_Ehdr)) {
        file->bytes = (size_t)status.st_size;
        void *at = mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
        file->at = at == MAP_FAILED ? NULL : at;
    }
    if (descriptor >= 0)
        close(descriptor);
    if (file->at && (memcmp(file->at, ELFMAG, SELFMAG) != 0 || file->at[EI_CLASS] != ELFCLASS64)) {
        munmap((void *)(uintptr_t)file->at, file->bytes);
        file->at = NULL;
    }
}

static struct elf *file_of(const char *path) {
    for (int i = 0; i < file_count; i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    if (file_count == FILES_MAX || strlen(path) >= PATH_BYTES)
        return NULL;
    struct elf *file = &files[file_count++];
    strcpy(file->path, path);
    map_file(file);
    return file;
}

static bool fits(const struct elf *file, uint64_t at, uint64_t bytes) {
    return at <= file->bytes && bytes <= file->bytes - at && at % 4 == 0;
}

static const Elf64_Shdr *sections_of(const struct elf *file, size_t *count) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)file->at;
    *count = head->e_shnum;
    if (head->e_shentsize != sizeof(Elf64_Shdr) ||
        !fits(file, head->e_shoff, *count * sizeof(Elf64_Shdr)))
        return NULL;
    return (const Elf64_Shdr *)(const void *)(file->at + head->e_shoff);
}

/* The name of the nearest function that begins at or before `address`, in one table. */
static const char *find_in(const struct elf *file, const Elf64_Shdr *table,
                           const Elf64_Shdr *names, uint64_t address) {
    const Elf64_Sym *best = NULL;
    if (!fits(file, table->sh_offset, table->sh_size) || names->sh_offset >= file->bytes ||
        names->sh_size > file->bytes - names->sh_offset || names->sh_size == 0)
        return NULL;
    const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(file->at + table->sh_offset);
    const char *text = file->at + names->sh_offset;
    for (size_t i = 0; i < table->sh_size / sizeof *symbol; i++)
        if (ELF64_ST_TYPE(symbol[i].st_info) == STT_FUNC && symbol[i].st_value &&
            symbol[i].st_value <= address && symbol[i].st_name < names->sh_size &&
            address - symbol[i].st_value <= symbol[i].st_size &&
            (!best || symbol[i].st_value > best->st_value))
            best = &symbol[i];
    if (!best || text[names->sh_size - 1] != '\0')
        return NULL;
    return text + best->st_name;
}

static const char *find_symbol(const struct elf *file, uint64_t address) {
    size_t count;
    const Elf64_Shdr *section = sections_of(file, &count);
    for (size_t i = 0; section && i < count; i++) {
        bool has_symbols = section[i].sh_type == SHT_SYMTAB || section[i].sh_type == SHT_DYNSYM;
        if (!has_symbols || section[i].sh_link >= count)
            continue;
        const char *name = find_in(file, &section[i], &section[section[i].sh_link], address);
        if (name)
            return name;
    }
    return NULL;
}

typedef char *demangler(const char *, char *, size_t *, int *);

static demangler *find_demangler(void) {
    union {
        void *found;
        demangler *function;
    } way = {NULL};
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
    if (library)
        way.found = dlsym(library, "__cxa_demangle");
    return way.function;
}

void symbols_name(const char *path, uint64_t address, char *name, size_t room) {
    static demangler *demangle;
    static bool looked;
    const struct elf *file = file_of(path);
    const char *found = file && file->at ? find_symbol(file, address) : NULL;
    int status = 1;
    if (!looked)
        demangle = find_demangler();
    looked = true;
    char *plain = found && demangle && strncmp(found, "_Z", 2) == 0
                      ? demangle(found, NULL, NULL, &status) : NULL;
    const char *text = plain ? plain : found ? found : "";
    brief_function(name, room, text, strlen(text));
    free(plain);
}

void symbols_close(void) {
    for (int i = 0; i < file_count; i++)
        if (files[i].at)
            munmap((void *)(uintptr_t)files[i].at, files[i].bytes);
    file_count = 0;
    memset(files, 0, sizeof files);
}
