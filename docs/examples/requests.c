// SPDX-License-Identifier: Apache-2.0
/* requests.c - server, request, token: nested regions, a session that survives, a cancellation. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static ebb_region open_below(ebb_region parent, const char *name, size_t limit) {
    ebb_region region = ebb_region_open(
        EBB_REGION_OPTIONS(.name = name, .parent = parent, .limit_bytes = limit));
    need(ebb_region_is_open(region));
    return region;
}

/* One token: scratch in a region of its own, the answer in the request's. */
static char *decode(ebb_region request, char *answer, size_t length) {
    ebb_region token = open_below(request, "token", 0);
    float *logits = ebb_region_alloc(token, 32000 * sizeof *logits, 64);
    need(logits != NULL);
    logits[0] = 1;
    answer = ebb_region_realloc(request, answer, length + 2, 1);
    need(answer != NULL && ebb_region_close(token) == 0);
    memcpy(answer + length, "x", 2);
    return answer;
}

int main(void) {
    ebb_region server = open_below((ebb_region){0}, "server", 0);
    ebb_region request = open_below(server, "request", (size_t)1 << 20);
    char *answer = NULL;
    for (size_t length = 0; length < 40; length++)
        answer = decode(request, answer, length);
    need(strlen(answer) == 40);

    /* The answer outlives the request, everything else ends with it. */
    struct ebb_survivor session = {.block = answer};
    need(ebb_close_keeping(request, server, &session, 1, NULL, NULL) == 0);
    need(strlen(session.block) == 40);
    need(ebb_region_release(server, session.block) == 0);

    /* A cancelled request: closing it closes the token that is still open. */
    request = open_below(server, "request", (size_t)1 << 20);
    ebb_region token = open_below(request, "token", 0);
    need(ebb_region_close_strict(request) == EBB_E_CHILD_OPEN); /* unless asked to be strict */
    need(ebb_region_close(request) == 0 && !ebb_region_is_open(token));
    need(ebb_region_close(token) == EBB_E_STALE);
    return ebb_region_close_strict(server);
}
