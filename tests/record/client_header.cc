// SPDX-License-Identifier: Apache-2.0
//
// client_header.cc - a program whose operator new puts the size before each block, as those that
// count memory do. Its arrays are made by the C++ library, which calls that operator.

#include <cstdlib>
#include <new>

#include "client.h"

static const std::size_t header = 16;
static char *volatile sink;

void *operator new(std::size_t size)
{
    char *block = static_cast<char *>(std::malloc(header + size));
    if (!block)
        throw std::bad_alloc();
    *reinterpret_cast<std::size_t *>(block) = size;
    return block + header;
}

void operator delete(void *block) noexcept
{
    if (block)
        std::free(static_cast<char *>(block) - header);
}

void operator delete(void *block, std::size_t) noexcept
{
    operator delete(block);
}

int main()
{
    for (int i = 0; i < CLIENT_STEPS; i++) {
        sink = new char[CLIENT_FRESH];
        delete[] sink;
        sink = new (std::nothrow) char[CLIENT_FRESH];
        delete[] sink;
    }
}
