// SPDX-License-Identifier: Apache-2.0
/*
 * callers.c - see callers.h.
 *
 * Who sends a method of HTTP gets HTTP, as Prometheus speaks it; who sends anything else, or
 * nothing more, plain text. Who says nothing, or has not ended a request, is held for some looks,
 * since it may come later than the connection, and in parts; nobody waits for it meanwhile. All who
 * are answered in one look get the same two texts at the same time, each as fast as it reads, and
 * whoever has all of its own is let go at once: who reads slowly holds up nobody else of that look.
 *
 * Invariants: no call waits but poll() for those who read, for a second in all; between two looks
 * the records are in the order in which they came, without gaps, and each has a socket. Whatever
 * fails ends the connection, and nothing else.
 */
#include "malloc/callers.h"
#include "base/os.h"
#include "malloc/view.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOLD_MS 1000u /* who connects has so long to say what it wants */
#define READ_MS 1000u /* and to read the answer, or it gets no more of it */
#define ASKED_BYTES 24u /* longer than any method */
#define SAID_BYTES ((size_t)64 << 10) /* are read at a time, */
#define SAID_TIMES 16u                /* so often in one look, or it never ends */
#define BLANK_LINE 2u                 /* ends of lines in a row */
#define HEAD_BYTES 160

/* What a caller has asked for. */
enum wish { UNKNOWN, PLAIN, GET, HEAD, FORBIDDEN, NOTHING };

struct caller {
    int socket;
    enum wish wish;
    size_t heard;
    char asked[ASKED_BYTES]; /* the first bytes */
    unsigned line_ends;      /* in a row, in front of what comes next */
    bool is_heard;           /* it says nothing more, or has had its time */
    uint64_t came_ms;
    const char *at; /* what it has yet to read */
    size_t left;
    bool is_gone; /* in this look: it has no socket any more */
};

static struct caller callers[CALLERS_MOST];
static unsigned count;
static char said[SAID_BYTES]; /* last, by one of them; not on the stack, which is small */

static uint64_t now_ms(void) {
    return os.now_ns() / 1000000;
}

/* ---- what they ask ---- */

static void take_in(int listener, uint64_t now) {
    while (listener >= 0 && count < CALLERS_MOST) {
        int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0)
            return;
        callers[count++] = (struct caller){.socket = socket, .came_ms = now};
    }
}

static bool begins_with(const struct caller *caller, const char *method) {
    size_t length = strlen(method);
    return caller->heard >= length && memcmp(caller->asked, method, length) == 0;
}

static bool is_of_method(char byte) {
    return (byte >= 'A' && byte <= 'Z') || byte == '-';
}

/* A method is what comes before a space. */
static enum wish wish_of(const struct caller *caller) {
    size_t length = 0;
    while (length < caller->heard && is_of_method(caller->asked[length]))
        length++;
    if (length == caller->heard && length < ASKED_BYTES)
        return UNKNOWN;
    if (!length || length == caller->heard || caller->asked[length] != ' ')
        return PLAIN;
    return begins_with(caller, "GET ")    ? GET
           : begins_with(caller, "HEAD ") ? HEAD
                                          : FORBIDDEN;
}

static void keep_first(struct caller *caller, size_t bytes) {
    size_t room = ASKED_BYTES - caller->heard, kept = bytes < room ? bytes : room;
    memcpy(caller->asked + caller->heard, said, kept);
    caller->heard += kept;
}

/* A request of HTTP ends with a blank line. */
static void count_line_ends(struct caller *caller, size_t bytes) {
    for (size_t i = 0; i < bytes && caller->line_ends < BLANK_LINE; i++)
        if (said[i] != '\r')
            caller->line_ends = said[i] == '\n' ? caller->line_ends + 1 : 0;
}

static bool speaks_http(enum wish wish) {
    return wish == GET || wish == HEAD || wish == FORBIDDEN;
}

/* It is to be answered in this look. */
static bool is_due(const struct caller *caller) {
    bool has_said_all = caller->is_heard || caller->line_ends == BLANK_LINE;
    return caller->wish != UNKNOWN && (has_said_all || !speaks_http(caller->wish));
}

/* False: it says nothing now. */
static bool hear_part(struct caller *caller) {
    ssize_t bytes = recv(caller->socket, said, sizeof said, MSG_DONTWAIT);
    if (bytes > 0) {
        keep_first(caller, (size_t)bytes);
        count_line_ends(caller, (size_t)bytes);
        caller->wish = wish_of(caller);
        return true;
    }
    caller->is_heard = bytes == 0;
    if (bytes < 0 && errno != EAGAIN && errno != EINTR)
        caller->wish = NOTHING;
    return false;
}

/* Who has closed its side for writing says nothing more, and may read. Who speaks HTTP would not
 * read, but fail to write, if it was answered before it has said all. */
static void hear(struct caller *caller, uint64_t now) {
    unsigned times = 0;
    while (times < SAID_TIMES && !is_due(caller) && hear_part(caller))
        times++;
    if (now - caller->came_ms >= HOLD_MS)
        caller->is_heard = true;
    if (caller->wish == UNKNOWN && caller->is_heard)
        caller->wish = PLAIN;
}

/* ---- what they get ---- */

/* What else it has asked: the system tells who is not heard to the end that all was cut off, behind
 * the whole answer. Each has a bound of its own: who goes on and on spoils it for itself. */
static void read_away(int socket) {
    unsigned times = 0;
    while (times < SAID_TIMES && recv(socket, said, sizeof said, MSG_DONTWAIT) > 0)
        times++;
}

static void let_go(struct caller *caller) {
    read_away(caller->socket);
    close(caller->socket);
    caller->is_gone = true;
}

static void send_part(struct caller *caller) {
    ssize_t sent = send(caller->socket, caller->at, caller->left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
        caller->at += sent;
        caller->left -= (size_t)sent;
    } else if (errno != EAGAIN && errno != EINTR) {
        caller->left = 0;
    }
}

/* As much as goes at once. True: there is more, to wait for. */
static bool is_waited_for(struct caller *caller) {
    if (!is_due(caller) || caller->is_gone)
        return false;
    if (caller->left)
        send_part(caller);
    if (!caller->left)
        let_go(caller);
    return !caller->is_gone;
}

/* `ready`: those who are waited for. False: there are none. */
static bool send_parts(struct pollfd ready[CALLERS_MOST]) {
    bool is_left = false;
    for (unsigned i = 0; i < count; i++) {
        bool is_waited = is_waited_for(&callers[i]);
        ready[i] = (struct pollfd){.fd = is_waited ? callers[i].socket : -1, .events = POLLOUT};
        is_left |= is_waited;
    }
    return is_left;
}

/* As much as they read until then. */
static void send_until(uint64_t last_ms) {
    static struct pollfd ready[CALLERS_MOST]; /* not on the stack, which is small */
    for (uint64_t now = now_ms(); send_parts(ready) && now < last_ms; now = now_ms())
        if (poll(ready, count, (int)(last_ms - now)) <= 0)
            return;
}

static const char *status_of(enum wish wish) {
    return wish == FORBIDDEN ? "405 Method Not Allowed\r\nAllow: GET, HEAD"
                             : "200 OK\r\nContent-Type: text/plain; version=0.0.4";
}

/* It fits into what the system keeps for a connection, on which nothing has been sent yet. */
static void send_head(struct caller *caller, size_t bytes) {
    char head[HEAD_BYTES];
    int length = snprintf(head, sizeof head, "HTTP/1.0 %s\r\nContent-Length: %zu\r\n\r\n",
                          status_of(caller->wish), caller->wish == FORBIDDEN ? 0 : bytes);
    if (send(caller->socket, head, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) != length)
        caller->wish = NOTHING;
}

static bool is_to_have(const struct caller *caller, bool http) {
    return is_due(caller) && (http ? speaks_http(caller->wish) : caller->wish == PLAIN);
}

static bool wants_any(bool http) {
    for (unsigned i = 0; i < count; i++)
        if (is_to_have(&callers[i], http))
            return true;
    return false;
}

/* To each that is to have it; it has yet to be sent. */
static void hand_out(bool http, char *text, size_t limit) {
    if (!wants_any(http))
        return;
    size_t bytes = view_write(text, limit, http);
    for (unsigned i = 0; i < count; i++) {
        struct caller *caller = &callers[i];
        if (!is_to_have(caller, http))
            continue;
        if (http)
            send_head(caller, bytes);
        caller->at = text;
        caller->left = caller->wish == GET || caller->wish == PLAIN ? bytes : 0;
    }
}

/* Who has not read all by now gets no more. */
static void keep_unanswered(void) {
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!is_due(&callers[i]))
            callers[kept++] = callers[i];
        else if (!callers[i].is_gone)
            let_go(&callers[i]);
    }
    count = kept;
}

void callers_serve(int listener, char *plain, char *for_prometheus, size_t bytes) {
    uint64_t now = now_ms();
    take_in(listener, now);
    for (unsigned i = 0; i < count; i++)
        hear(&callers[i], now);
    hand_out(true, for_prometheus, bytes);
    hand_out(false, plain, bytes);
    send_until(now_ms() + READ_MS);
    keep_unanswered();
}

void callers_forget(void) {
    count = 0;
}
