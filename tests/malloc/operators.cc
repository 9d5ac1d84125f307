// SPDX-License-Identifier: Apache-2.0
/*
 * operators.cc - says what C++ does with memory: every form of new and delete, failing ones, the
 * new handler, exceptions through scopes. Output must be the C library's (same.py).
 */
#include <ebb/ebb.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

const char *where;
const std::size_t sizes[] = {0, 1, 8, 24, 100, 1000, 8000, 9000, 70000, 300000, 5000000};
const std::size_t alignments[] = {16, 32, 64, 4096, 65536};

bool fits(void *block, std::size_t bytes, std::size_t align) {
    for (std::size_t i = 0; i < bytes; i++)
        static_cast<unsigned char *>(block)[i] = static_cast<unsigned char>(i);
    return block && reinterpret_cast<std::uintptr_t>(block) % align == 0;
}

void say(const char *what, bool holds) {
    std::printf("%s: %s: %s\n", where, what, holds ? "yes" : "NO");
}

void plain_forms() {
    bool fit = true;
    for (std::size_t bytes : sizes) {
        void *block = ::operator new(bytes);
        fit = fit && fits(block, bytes, 8);
        ::operator delete(block);
        block = ::operator new(bytes);
        ::operator delete(block, bytes);
        block = ::operator new[](bytes);
        fit = fit && fits(block, bytes, 8);
        ::operator delete[](block);
        block = ::operator new[](bytes);
        ::operator delete[](block, bytes);
        block = ::operator new(bytes, std::nothrow);
        fit = fit && fits(block, bytes, 8);
        ::operator delete(block, std::nothrow);
        block = ::operator new[](bytes, std::nothrow);
        fit = fit && fits(block, bytes, 8);
        ::operator delete[](block, std::nothrow);
    }
    say("plain forms fit", fit);
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete(nullptr, std::size_t(5));
    ::operator delete(nullptr, std::nothrow);
    ::operator delete(nullptr, std::align_val_t(64));
}

void aligned_forms() {
    bool fit = true;
    for (std::size_t bytes : sizes)
        for (std::size_t log : alignments) {
            std::align_val_t align{log};
            void *block = ::operator new(bytes, align);
            fit = fit && fits(block, bytes, log);
            ::operator delete(block, align);
            block = ::operator new[](bytes, align);
            fit = fit && fits(block, bytes, log);
            ::operator delete[](block, align);
            block = ::operator new(bytes, align, std::nothrow);
            fit = fit && fits(block, bytes, log);
            ::operator delete(block, align, std::nothrow);
            block = ::operator new[](bytes, align, std::nothrow);
            fit = fit && fits(block, bytes, log);
            ::operator delete[](block, align, std::nothrow);
            block = ::operator new(bytes, align);
            ::operator delete(block, bytes, align);
            block = ::operator new[](bytes, align);
            ::operator delete[](block, bytes, align);
        }
    say("aligned forms fit", fit);
}

/* ---- no memory ---- */

const volatile std::size_t wild[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX - 4096};

template <typename Make> const char *outcome(Make make) {
    try {
        return make() ? "block" : "null";
    } catch (const std::bad_array_new_length &) {
        return "bad_array_new_length";
    } catch (const std::bad_alloc &) {
        return "bad_alloc";
    } catch (const std::exception &) {
        return "another exception";
    } catch (int) {
        return "the handler's";
    }
}

void failing_forms(const char *how) {
    const std::align_val_t align{64};
    for (std::size_t bytes : wild) {
        std::printf("%s: %s, %zu bytes:", where, how, bytes);
        std::printf(" %s", outcome([=] { return ::operator new(bytes); }));
        std::printf(" %s", outcome([=] { return ::operator new[](bytes); }));
        std::printf(" %s", outcome([=] { return ::operator new(bytes, std::nothrow); }));
        std::printf(" %s", outcome([=] { return ::operator new[](bytes, std::nothrow); }));
        if (bytes == SIZE_MAX) { // here libstdc++ 12 rounds up to 0, and has a block
            std::printf("\n");
            continue;
        }
        std::printf(" %s", outcome([=] { return ::operator new(bytes, align); }));
        std::printf(" %s", outcome([=] { return ::operator new[](bytes, align); }));
        std::printf(" %s", outcome([=] { return ::operator new(bytes, align, std::nothrow); }));
        std::printf(" %s\n", outcome([=] { return ::operator new[](bytes, align, std::nothrow); }));
    }
    std::size_t many = wild[0] / 4;
    std::printf("%s: %s: %s %s\n", where, how, outcome([=] { return new double[many]; }),
                outcome([=] { return new (std::nothrow) double[many]; }));
    std::printf("%s: %s: %s\n", where, how,
                outcome([] { return std::make_unique<char[]>(wild[1]).get(); }));
}

int called;

void gives_up() {
    if (++called % 3 == 0)
        std::set_new_handler(nullptr);
}

[[noreturn]] void throws() {
    called++;
    throw 5;
}

[[noreturn]] void throws_bad_alloc() {
    called++;
    throw std::bad_alloc();
}

void failing() {
    failing_forms("no handler");
    for (std::size_t bytes : wild) {
        called = 0;
        std::set_new_handler(gives_up);
        const char *how = outcome([=] { return ::operator new(bytes); });
        std::printf("%s: handler gives up: %s after %d\n", where, how, called);
    }
    std::set_new_handler(throws_bad_alloc);
    failing_forms("handler throws bad_alloc");
    std::set_new_handler(throws);
    std::printf("%s: handler throws: %s\n", where, outcome([] { return ::operator new(wild[0]); }));
    std::printf("%s: called %d times\n", where, called);
    std::set_new_handler(nullptr);
}

const volatile std::size_t wild_alignments[] = {0, 3, 24, 48, 5000, SIZE_MAX / 2 + 2, SIZE_MAX};

/* An alignment that is none: there is no block, and no handler is asked for one. */
void misaligned_forms() {
    called = 0;
    std::set_new_handler(gives_up);
    for (std::size_t log : wild_alignments)
        for (std::size_t bytes : {0, 100, 20000}) {
            const std::align_val_t align{log};
            std::printf("%s: %zu bytes at multiples of %zu:", where, bytes, log);
            std::printf(" %s", outcome([=] { return ::operator new(bytes, align); }));
            std::printf(" %s", outcome([=] { return ::operator new[](bytes, align); }));
            std::printf(" %s", outcome([=] { return ::operator new(bytes, align, std::nothrow); }));
            std::printf(" %s, called %d times\n",
                        outcome([=] { return ::operator new[](bytes, align, std::nothrow); }),
                        called);
        }
    std::set_new_handler(nullptr);
}

/* ---- what C++ programs do ---- */

void library() {
    std::map<std::string, std::vector<std::string>> words;
    for (int i = 0; i < 3000; i++)
        words[std::to_string(i % 97)].emplace_back(static_cast<std::size_t>(i) % 200, 'x');
    std::size_t letters = 0;
    for (const auto &entry : words)
        for (const auto &word : entry.second)
            letters += word.size();
    std::printf("%s: %zu letters\n", where, letters);
    std::ostringstream text;
    for (int i = 0; i < 500; i++)
        text << i << ' ' << i * 0.5 << '\n';
    std::smatch match;
    const std::string all = text.str();
    std::regex_search(all, match, std::regex("(\\d+) (\\d+\\.5)"));
    std::printf("%s: %zu characters, %s\n", where, all.size(), match[0].str().c_str());
    auto shared = std::make_shared<std::vector<int>>(1000, 7);
    std::weak_ptr<std::vector<int>> weak = shared;
    auto sum = std::async(std::launch::async, [shared] { return shared->size(); });
    shared.reset();
    std::printf("%s: %zu, then %s\n", where, sum.get(), weak.expired() ? "gone" : "there");
}

struct alignas(128) Wide {
    char bytes[300];
};

void types() {
    bool right = true;
    for (int i = 0; i < 50; i++) {
        std::unique_ptr<Wide> one(new Wide);
        std::unique_ptr<Wide[]> many(new Wide[7]);
        right = right && reinterpret_cast<std::uintptr_t>(one.get()) % 128 == 0 &&
                reinterpret_cast<std::uintptr_t>(many.get()) % 128 == 0;
    }
    std::vector<Wide> grown;
    for (int i = 0; i < 100; i++)
        grown.emplace_back();
    say("wide types are aligned", right && reinterpret_cast<std::uintptr_t>(&grown[0]) % 128 == 0);
}

/* ---- scopes ---- */

int depth(ebb_site *site, int left, std::vector<std::string> &kept) {
    ebb::scope scope(site);
    std::string local(static_cast<std::size_t>(left) * 37, 'a');
    kept.push_back(local + "b");
    if (!left)
        throw std::runtime_error(kept.back());
    return depth(site, left - 1, kept) + static_cast<int>(local.size());
}

void exceptions(ebb_site *site) {
    std::vector<std::string> kept;
    std::size_t total = 0;
    std::exception_ptr held;
    for (int i = 0; i < 200; i++)
        try {
            depth(site, i % 17, kept);
        } catch (const std::exception &error) {
            total += std::string(error.what()).size();
            held = std::current_exception();
        }
    for (const std::string &text : kept)
        total += text.size();
    std::thread([&] {
        try {
            std::rethrow_exception(held);
        } catch (const std::exception &error) {
            total += std::string(error.what()).size();
        }
        held = nullptr;
    }).join();
    std::printf("%s: exceptions through scopes: %zu, %zu\n", where, kept.size(), total);
}

void all(const char *place, ebb_site *site) {
    where = place;
    plain_forms();
    aligned_forms();
    failing();
    misaligned_forms();
    library();
    types();
    exceptions(site);
}

} // namespace

int main() {
    ebb_site_options options{};
    options.size = sizeof options;
    options.name = "operators";
    options.scope = true;
    ebb_site *site = ebb_site_create(&options);
    all("outside", site);
    for (int i = 0; i < 5; i++) {
        ebb::scope scope(site);
        all("in a scope", site);
    }
    std::printf("the site goes: %d\n", ebb_site_destroy(site));
    return 0;
}
