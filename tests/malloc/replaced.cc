// SPDX-License-Identifier: Apache-2.0
/*
 * replaced.cc - a program that has some of the operators new and delete itself, with a header in
 * front of each block: says which of its own each form of C++ calls. Output must be that with the
 * C++ library's other operators (same.py).
 *
 * REPLACED says which: 1 those for one object, 2 for arrays; 4 and 8 the same with an alignment.
 */
#include <ebb/ebb.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace {

enum { ONE = 1, MANY = 2, ONE_ALIGNED = 4, MANY_ALIGNED = 8 };
const std::size_t HEAD = 64; // in front; more where the alignment is

struct head {
    std::size_t bytes;
    int kind;
    char mark[12];
};

thread_local unsigned made[MANY_ALIGNED + 1], ended[MANY_ALIGNED + 1];

std::size_t head_of(std::size_t align) {
    return align > HEAD ? align : HEAD;
}

[[maybe_unused]] void *make(int kind, std::size_t bytes, std::size_t align) {
    const std::size_t before = head_of(align);
    made[kind]++;
    char *all = bytes < PTRDIFF_MAX / 2
                    ? static_cast<char *>(std::aligned_alloc(before, bytes + 2 * before -
                                                                         bytes % before))
                    : nullptr;
    if (!all)
        throw std::bad_alloc();
    head *mine = reinterpret_cast<head *>(all + before) - 1;
    *mine = {bytes, kind, "mine, truly"};
    return all + before;
}

[[maybe_unused]] void end(int kind, void *block, std::size_t align) {
    ended[kind]++;
    if (!block)
        return;
    const head *mine = static_cast<head *>(block) - 1;
    if (mine->kind != kind || std::strcmp(mine->mark, "mine, truly") != 0) {
        std::puts("it was made by another operator");
        std::fflush(stdout);
        std::abort();
    }
    std::free(static_cast<char *>(block) - head_of(align));
}

} // namespace

#if REPLACED & 1
void *operator new(std::size_t bytes) {
    return make(ONE, bytes, 0);
}

void operator delete(void *block) noexcept {
    end(ONE, block, 0);
}
#endif

#if REPLACED & 2
void *operator new[](std::size_t bytes) {
    return make(MANY, bytes, 0);
}

void operator delete[](void *block) noexcept {
    end(MANY, block, 0);
}
#endif

#if REPLACED & 4
void *operator new(std::size_t bytes, std::align_val_t align) {
    return make(ONE_ALIGNED, bytes, std::size_t(align));
}

void operator delete(void *block, std::align_val_t align) noexcept {
    end(ONE_ALIGNED, block, std::size_t(align));
}
#endif

#if REPLACED & 8
void *operator new[](std::size_t bytes, std::align_val_t align) {
    return make(MANY_ALIGNED, bytes, std::size_t(align));
}

void operator delete[](void *block, std::align_val_t align) noexcept {
    end(MANY_ALIGNED, block, std::size_t(align));
}
#endif

namespace {

const char *where;

/* What was called since the last time. */
void say(const char *what, bool holds = true) {
    std::printf("%s: %s: %s", where, what, holds ? "called" : "WRONG, called");
    for (int kind : {ONE, MANY, ONE_ALIGNED, MANY_ALIGNED}) {
        std::printf(" %u %u", made[kind], ended[kind]);
        made[kind] = ended[kind] = 0;
    }
    std::printf("\n");
}

const std::size_t sizes[] = {0, 1, 24, 1000, 9000, 300000};

template <typename Make, typename End> void pair(const char *what, Make make, End end) {
    bool fits = true;
    for (std::size_t bytes : sizes) {
        void *volatile block = make(bytes);
        fits = fits && block;
        std::memset(block, 1, bytes);
        end(block, bytes);
    }
    say(what, fits);
}

void plain_forms() {
    auto one = [](std::size_t bytes) { return ::operator new(bytes); };
    auto many = [](std::size_t bytes) { return ::operator new[](bytes); };
    auto one_or_null = [](std::size_t bytes) { return ::operator new(bytes, std::nothrow); };
    auto many_or_null = [](std::size_t bytes) { return ::operator new[](bytes, std::nothrow); };
    auto end_one = [](void *block, std::size_t) { ::operator delete(block); };
    auto end_many = [](void *block, std::size_t) { ::operator delete[](block); };
    pair("new, delete", one, end_one);
    pair("new[], delete[]", many, end_many);
    pair("new, sized", one,
         [](void *block, std::size_t bytes) { ::operator delete(block, bytes); });
    pair("new[], sized", many,
         [](void *block, std::size_t bytes) { ::operator delete[](block, bytes); });
    pair("nothrow, delete", one_or_null, end_one);
    pair("nothrow[], delete[]", many_or_null, end_many);
    pair("nothrow, nothrow", one_or_null,
         [](void *block, std::size_t) { ::operator delete(block, std::nothrow); });
    pair("nothrow[], nothrow[]", many_or_null,
         [](void *block, std::size_t) { ::operator delete[](block, std::nothrow); });
}

template <std::size_t LOG> void aligned_forms() {
    static const std::align_val_t align{LOG};
    auto one = [](std::size_t bytes) { return ::operator new(bytes, align); };
    auto many = [](std::size_t bytes) { return ::operator new[](bytes, align); };
    auto one_or_null = [](std::size_t bytes) { return ::operator new(bytes, align, std::nothrow); };
    auto many_or_null = [](std::size_t bytes) {
        return ::operator new[](bytes, align, std::nothrow);
    };
    auto end_one = [](void *block, std::size_t) { ::operator delete(block, align); };
    auto end_many = [](void *block, std::size_t) { ::operator delete[](block, align); };
    std::printf("at multiples of %zu\n", LOG);
    pair("new, delete", one, end_one);
    pair("new[], delete[]", many, end_many);
    pair("new, sized", one,
         [](void *block, std::size_t bytes) { ::operator delete(block, bytes, align); });
    pair("new[], sized", many,
         [](void *block, std::size_t bytes) { ::operator delete[](block, bytes, align); });
    pair("nothrow, delete", one_or_null, end_one);
    pair("nothrow[], delete[]", many_or_null, end_many);
    pair("nothrow, nothrow", one_or_null,
         [](void *block, std::size_t) { ::operator delete(block, align, std::nothrow); });
    pair("nothrow[], nothrow[]", many_or_null,
         [](void *block, std::size_t) { ::operator delete[](block, align, std::nothrow); });
}

void nothing_is_deleted() {
    ::operator delete(nullptr);
    ::operator delete[](nullptr, std::nothrow);
    ::operator delete(nullptr, std::size_t(5));
    ::operator delete[](nullptr, std::size_t(5), std::align_val_t(64));
    say("null");
}

/* ---- no memory ---- */

template <typename Make> void fail(const char *what, Make make) {
    bool is_null = false, is_thrown = false;
    try {
        is_null = !make(std::size_t(PTRDIFF_MAX));
    } catch (const std::bad_alloc &) {
        is_thrown = true;
    }
    std::printf("%s ", is_null ? "null" : is_thrown ? "bad_alloc" : "block");
    say(what);
}

void failing_forms() {
    static const std::align_val_t align{128};
    fail("new", [](std::size_t bytes) { return ::operator new(bytes); });
    fail("new[]", [](std::size_t bytes) { return ::operator new[](bytes); });
    fail("nothrow", [](std::size_t bytes) { return ::operator new(bytes, std::nothrow); });
    fail("nothrow[]", [](std::size_t bytes) { return ::operator new[](bytes, std::nothrow); });
    fail("aligned", [](std::size_t bytes) { return ::operator new(bytes, align); });
    fail("aligned[]", [](std::size_t bytes) { return ::operator new[](bytes, align); });
    fail("aligned nothrow",
         [](std::size_t bytes) { return ::operator new(bytes, align, std::nothrow); });
    fail("aligned nothrow[]",
         [](std::size_t bytes) { return ::operator new[](bytes, align, std::nothrow); });
}

/* ---- what C++ programs do ---- */

struct alignas(128) Wide {
    char bytes[300];
    ~Wide() { bytes[0] = 1; }
};

struct Narrow {
    long numbers[10];
    ~Narrow() { numbers[0] = 1; }
};

void types() {
    delete new Narrow;
    delete[] new Narrow[7];
    delete new (std::nothrow) Narrow;
    delete[] new (std::nothrow) char[100];
    say("objects");
    delete new Wide;
    delete[] new Wide[7];
    delete new (std::nothrow) Wide;
    say("wide objects");
    std::vector<int> numbers(1000);
    for (std::size_t i = 0; i < numbers.size(); i++)
        numbers[i] = static_cast<int>(i * 7919 % 1000);
    std::stable_sort(numbers.begin(), numbers.end()); // with memory that it may go without
    bool sorted = std::is_sorted(numbers.begin(), numbers.end());
    std::vector<Wide>(30);
    std::make_shared<Narrow>();
    std::make_unique<Wide[]>(3);
    say("the library", sorted);
}

/* Made here, ended there. */
void threads() {
    auto one = std::make_unique<Narrow>();
    auto many = std::make_unique<Wide[]>(5);
    std::thread([&] {
        one.reset();
        many.reset();
        say("another thread");
    }).join();
    say("threads");
}

void all(const char *place) {
    where = place;
    plain_forms();
    aligned_forms<32>();
    aligned_forms<4096>();
    nothing_is_deleted();
    failing_forms();
    types();
    threads();
}

} // namespace

int main() {
    ebb_site_options options{};
    options.size = sizeof options;
    options.name = "replaced";
    options.scope = true;
    ebb_site *site = ebb_site_create(&options);
    all("outside");
    auto survivor = std::make_unique<Wide[]>(2);
    for (int i = 0; i < 3; i++) {
        ebb::scope scope(site);
        all("in a scope");
        survivor = std::make_unique<Wide[]>(2);
    }
    survivor.reset();
    say("survivors");
    std::printf("the site goes: %d\n", ebb_site_destroy(site));
    return 0;
}
