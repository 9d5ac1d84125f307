// SPDX-License-Identifier: Apache-2.0
/* words.c - see words.h. */
#include "words.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/name.h"

enum { NAME_BYTES = 8192 }; /* of the longest path, and of its end */

/* Three digits. */
static struct words scaled(double value, double step, const char *const *units, int count) {
    struct words words;
    int unit = 0;
    while (value >= 999.5 && unit < count - 1) {
        value /= step;
        unit++;
    }
    int digits = value >= 99.95 || (unit == 0 && step > 1000) ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(words.text, sizeof words.text, "%.*f %s", digits, value, units[unit]);
    return words;
}

struct words words_bytes(double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return bytes > 0 && bytes < 1 ? (struct words){"<1 B"} : scaled(bytes, 1024, units, 5);
}

struct words words_us(double us) {
    static const char *const units[] = {"us", "ms", "s"};
    return scaled(us, 1000, units, 3);
}

struct words words_count(uint64_t count) {
    struct words words;
    char digits[WORDS_MAX];
    size_t at = 0;
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            words.text[at++] = ',';
        words.text[at++] = digits[i];
    }
    words.text[at] = '\0';
    return words;
}

/* The least above none that so many digits behind the point can say. */
static double least_of(int digits) {
    double least = 1;
    while (digits-- > 0)
        least /= 10;
    return least;
}

struct words words_number(double value, int digits) {
    struct words words;
    double least = least_of(digits);
    bool rounds_away = value > 0 && value < least;
    snprintf(words.text, sizeof words.text, "%s%.*f", rounds_away ? "<" : "", digits,
             rounds_away ? least : value);
    return words;
}

struct words words_share(uint64_t part, uint64_t whole, int digits) {
    struct words words;
    if (!whole)
        return (struct words){"-"};
    double share = 100.0 * (double)part / (double)whole, most = 100 - least_of(digits);
    if (part < whole && share > most)
        snprintf(words.text, sizeof words.text, ">%.*f %%", digits, most);
    else
        snprintf(words.text, sizeof words.text, "%.20s %%",
                 words_number(part ? share : 0, digits).text);
    return words;
}

const char *words_name(const char *name) {
    static char plain[NAME_BYTES];
    name_copy(plain, sizeof plain, name);
    name_make_plain(plain);
    return plain;
}
