// SPDX-License-Identifier: Apache-2.0
#include <ebb/ebb.h>
#include <cstdio>

int main() {
    ebb_region step = ebb_region_open(nullptr);
    auto *text = static_cast<char *>(ebb_region_alloc(step, 64, 16));
    if (!text)
        return 1;
    std::snprintf(text, 64, "ebb %s", ebb_version());
    std::puts(text);
    return ebb_region_close(step);
}
