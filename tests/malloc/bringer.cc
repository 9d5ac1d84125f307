// SPDX-License-Identifier: Apache-2.0
/*
 * bringer.cc - a library that is loaded late and brings C++ along: allocates when it is loaded and
 * when it goes, for libraries.c.
 */
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace {

volatile std::size_t wild = SIZE_MAX / 2;
std::vector<std::string> words(100, std::string(50, 'w'));
thread_local std::string own(200, 't');
int calls;

void gives_up() {
    if (++calls == 3)
        std::set_new_handler(nullptr);
}

} // namespace

extern "C" {

char *bringer_gives() { return static_cast<char *>(std::memset(std::malloc(100), 'g', 100)); }

char *bringer_news() { return new char[300]; }

void bringer_takes(char *block) { std::free(block); }

void bringer_deletes(char *block) { delete[] block; }

int bringer_fails() {
    calls = 0;
    std::set_new_handler(gives_up);
    try {
        ::operator delete(::operator new(wild));
    } catch (const std::bad_alloc &) {
        int thrown = calls;
        calls = 0;
        std::set_new_handler(gives_up);
        char *volatile none = new (std::nothrow) char[wild];
        return none || thrown != calls ? 0 : calls;
    }
    return 0;
}

std::size_t bringer_words() {
    std::size_t letters = own.size();
    for (const std::string &word : words)
        letters += word.size();
    words.push_back("more");
    return letters;
}
}
