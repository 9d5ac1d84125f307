// SPDX-License-Identifier: Apache-2.0
//
// client_cxx.cc - every form of operator new and delete, with sizes from 101 on; and exceptions,
// but for `client_cxx calm`: mimalloc's operators are made without them.

#include <cstdint>
#include <cstdlib>
#include <new>

#include <dlfcn.h>

using begin_function = void (*)(const char *, std::uint64_t);
using end_function = void (*)();

static volatile std::size_t huge = static_cast<std::size_t>(PTRDIFF_MAX) + 1;
static void *reserve;

// Keeps the compiler from leaving out what is freed at once.
static void *kept(void *block)
{
    static void *volatile sink;
    sink = block;
    return sink;
}

// The first failure gives back what was reserved; the second one throws.
static void give_back()
{
    std::set_new_handler(nullptr);
    for (int i = 0; i < 2; i++) { // the same address again, mostly
        operator delete(kept(operator new(110)));
        std::free(kept(std::malloc(110)));
    }
    std::free(reserve);
}

static bool throws()
{
    reserve = std::malloc(109);
    std::set_new_handler(give_back);
    try {
        void *block = operator new(huge);
        operator delete(block);
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

int main(int argc, char **)
{
    const bool calm = argc > 1;
    auto begin = reinterpret_cast<begin_function>(dlsym(RTLD_DEFAULT, "ebb_record_begin"));
    auto end = reinterpret_cast<end_function>(dlsym(RTLD_DEFAULT, "ebb_record_end"));
    const std::align_val_t align{64};
    delete new char; // what a C++ library keeps for itself is there from now on
    if (!calm && !throws())
        return 1;
    begin("cxx", 0);
    operator delete(kept(operator new(101)));
    operator delete[](kept(operator new[](102)), static_cast<std::size_t>(102));
    operator delete(kept(operator new(103, std::nothrow)), std::nothrow);
    operator delete[](kept(operator new[](104, std::nothrow)), std::nothrow);
    operator delete(kept(operator new(105, align)), align);
    operator delete[](kept(operator new[](106, align)), static_cast<std::size_t>(106), align);
    operator delete(kept(operator new(107, align, std::nothrow)), align, std::nothrow);
    operator delete[](kept(operator new[](108, align, std::nothrow)), align, std::nothrow);
    operator delete(nullptr);
    bool good = calm || operator new(huge, std::nothrow) == nullptr;
    end();
    return good ? 0 : 1;
}
