// SPDX-License-Identifier: Apache-2.0
/* complain.c - see complain.h. */
#include "complain.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"

enum { LINE_BYTES = 16384 }; /* two of the longest paths, and more */

static const char *speaker = "";

void complain_as(const char *name) {
    speaker = name;
}

const char *complain_speaker(void) {
    return speaker;
}

bool complain(const char *format, ...) {
    va_list list;
    char line[LINE_BYTES];
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    name_make_plain(line);
    fprintf(stderr, "%s: %s\n", speaker, line);
    return false;
}

/* How many options the word may mean, as their names begin so; the last of them. */
static int count_meant(const char *word, const struct option *known, const struct option **last) {
    size_t length = strcspn(word, "=");
    int count = 0;
    for (; known->name; known++)
        if (strncmp(known->name, word, length) == 0) {
            *last = known;
            count++;
            if (known->name[length] == '\0')
                return 1;
        }
    return count;
}

bool complain_of_option(int returned, char *const *argv, const struct option *known) {
    const char *word = argv[optind - 1];
    const struct option *meant = NULL;
    int count = strncmp(word, "--", 2) == 0 ? count_meant(word + 2, known, &meant) : 0;
    if (returned == ':')
        return complain("option '%s' wants a value (--help tells more)", word);
    if (count == 1 && !meant->has_arg && strchr(word, '='))
        return complain("option '--%s' takes no value (--help tells more)", meant->name);
    if (optopt) /* a letter; the word in which it stands may be the next */
        return complain("no option '-%c' (--help tells more)", optopt);
    if (count > 1)
        return complain("option '%s' may be one of %d (--help tells more)", word, count);
    return complain("no option '%s' (--help tells more)", word);
}
