// SPDX-License-Identifier: Apache-2.0
/*
 * leaks_unoptimized.cc - a program as it is debugged: who allocated is known without optimization,
 * too, and in C++, where what a header has inline is the program's own.
 */
#include <ebb/ebb.h>

#include <cstdio>
#include <cstring>

static int count_sites(void *context, const char *text, size_t bytes) {
    int *count = static_cast<int *>(context);
    for (size_t i = 0; i + 7 <= bytes; i++)
        *count += std::memcmp(text + i, "\"site\":", 7) == 0;
    return 0;
}

int main() {
    ebb_region_options options = {};
    options.size = sizeof options;
    options.sites = true;
    ebb_region region = ebb_region_open(&options);
    bool made = ebb_region_alloc(region, 100, 16) && ebb_region_alloc(region, 5000, 16) &&
                ebb_region_alloc(region, 20, 16);
    int sites = 0;
    int told = ebb_report_leaks(region, EBB_REPORT_JSON, count_sites, &sites);
    bool is_right = made && told == 0 && sites == 3 && ebb_region_close(region) == 0;
    std::printf("1..1\n%s 1 - each_call_is_a_site\n# %d of 3 sites\n", is_right ? "ok" : "not ok",
                sites);
    return !is_right;
}
