// SPDX-License-Identifier: Apache-2.0
/*
 * loops.c - loops that wait, with turns that are scopes: where they begin and end, and that nothing
 * else is to be seen of them.
 *
 * Run preloaded with libebb-malloc and EBB_MALLOC=turns:wait, or turns:receive; without turns, and
 * without libebb-malloc, there is to be no scope. A scope that begins opens a region: this is how
 * they are counted, so blocks are small.
 */
#include <stdbool.h>

#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>

int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes);
int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask, size_t bytes);
ssize_t __recv_chk(int file, void *buffer, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int file, void *buffer, size_t bytes, size_t room, int flags,
                       struct sockaddr *from, socklen_t *length);

static const char *mode = ""; /* which turns there are */

/* ---- all ways to wait for a byte; one or more: it is there ---- */

typedef int waiter(int file, int timeout);

static struct timespec *in_ms(int timeout, struct timespec *time) {
    time->tv_sec = timeout / 1000;
    time->tv_nsec = timeout % 1000 * 1000000L;
    return timeout < 0 ? NULL : time;
}

static int queue_of(int file) {
    struct epoll_event event = {.events = EPOLLIN};
    int queue = epoll_create1(0);
    EXPECT(epoll_ctl(queue, EPOLL_CTL_ADD, file, &event) == 0);
    return queue;
}

static int by_epoll(int file, int timeout) {
    struct epoll_event event;
    int queue = queue_of(file), count = epoll_wait(queue, &event, 1, timeout);
    close(queue);
    return count;
}

static int by_epoll_pwait(int file, int timeout) {
    struct epoll_event event;
    int queue = queue_of(file), count = epoll_pwait(queue, &event, 1, timeout, NULL);
    close(queue);
    return count;
}

static int by_epoll_pwait2(int file, int timeout) {
    struct epoll_event event;
    struct timespec time;
    int queue = queue_of(file);
    int count = epoll_pwait2(queue, &event, 1, in_ms(timeout, &time), NULL);
    close(queue);
    return count;
}

static int by_poll(int file, int timeout) {
    struct pollfd one = {.fd = file, .events = POLLIN};
    return poll(&one, 1, timeout);
}

static int by_poll_chk(int file, int timeout) {
    struct pollfd one = {.fd = file, .events = POLLIN};
    return __poll_chk(&one, 1, timeout, sizeof one);
}

static int by_ppoll(int file, int timeout) {
    struct pollfd one = {.fd = file, .events = POLLIN};
    struct timespec time;
    return ppoll(&one, 1, in_ms(timeout, &time), NULL);
}

static int by_ppoll_chk(int file, int timeout) {
    struct pollfd one = {.fd = file, .events = POLLIN};
    struct timespec time;
    return __ppoll_chk(&one, 1, in_ms(timeout, &time), NULL, sizeof one);
}

static int by_select(int file, int timeout) {
    struct timeval time = {.tv_sec = timeout / 1000, .tv_usec = timeout % 1000 * 1000};
    fd_set files;
    FD_ZERO(&files);
    FD_SET(file, &files);
    return select(file + 1, &files, NULL, NULL, timeout < 0 ? NULL : &time);
}

static int by_pselect(int file, int timeout) {
    struct timespec time;
    fd_set files;
    FD_ZERO(&files);
    FD_SET(file, &files);
    return pselect(file + 1, &files, NULL, NULL, in_ms(timeout, &time), NULL);
}

static int by_recv(int file, int timeout) {
    char byte;
    (void)timeout;
    return (int)recv(file, &byte, 1, 0);
}

static int by_recv_chk(int file, int timeout) {
    char byte;
    (void)timeout;
    return (int)__recv_chk(file, &byte, 1, 1, 0);
}

static int by_recvfrom(int file, int timeout) {
    char byte;
    (void)timeout;
    return (int)recvfrom(file, &byte, 1, 0, NULL, NULL);
}

static int by_recvfrom_chk(int file, int timeout) {
    char byte;
    (void)timeout;
    return (int)__recvfrom_chk(file, &byte, 1, 1, 0, NULL, NULL);
}

static int by_recvmsg(int file, int timeout) {
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    (void)timeout;
    return (int)recvmsg(file, &message, 0);
}

static int by_recvmmsg(int file, int timeout) {
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    (void)timeout;
    return recvmmsg(file, &message, 1, 0, NULL);
}

static const struct {
    waiter *wait;
    const char *mode;
} waits[] = {
    {by_epoll, "wait"},      {by_epoll_pwait, "wait"},  {by_epoll_pwait2, "wait"},
    {by_poll, "wait"},       {by_poll_chk, "wait"},     {by_ppoll, "wait"},
    {by_ppoll_chk, "wait"},  {by_select, "wait"},       {by_pselect, "wait"},
    {by_recv, "receive"},    {by_recv_chk, "receive"},  {by_recvfrom, "receive"},
    {by_recvfrom_chk, "receive"}, {by_recvmsg, "receive"},  {by_recvmmsg, "receive"},
};
enum { WAITS = sizeof waits / sizeof *waits };

/* One that has turns in this run; with none, any. */
static waiter *usual = by_poll;
static bool has_turns;

struct channel {
    int in, out;
};

static struct channel open_channel(void) {
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    return (struct channel){ends[0], ends[1]};
}

static void put(struct channel channel) {
    EXPECT(write(channel.out, "x", 1) == 1);
}

/* Takes the byte, if who waited for it has left it there. */
static void take(struct channel channel) {
    char bytes[64];
    int there = 0;
    while (ioctl(channel.in, FIONREAD, &there) == 0 && there > 0)
        EXPECT(read(channel.in, bytes, sizeof bytes) > 0);
}

static uint64_t open_regions(void) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    EXPECT(ebb_process_read_stats(&stats) == 0);
    return stats.open_regions;
}

/* A block that is asked for now begins a scope. */
static bool block_begins(void) {
    uint64_t before = open_regions();
    void *volatile block = malloc(100);
    uint64_t after = open_regions();
    free(block);
    return after > before;
}

/* Waits as the loop's own do that called this; its byte is there already. */
#define ROUND(wait, channel) (put(channel), EXPECT((wait)((channel).in, -1) == 1), take(channel))

/* Deeper in the stack than who calls it. */
static __attribute__((noinline)) int deeper(waiter *wait, int file, int timeout) {
    volatile char room[400];
    room[0] = 1;
    int result = wait(file, timeout);
    return result + room[0] - 1;
}

/* What is made with the first scopes is made. The turn that is left open ends with the next wait
 * of who calls this. */
static __attribute__((noinline)) void warm_up(void) {
    struct channel channel = open_channel();
    for (unsigned i = 0; i < 3; i++) {
        ROUND(usual, channel);
        (void)block_begins();
    }
    close(channel.in);
    close(channel.out);
}

/* ---- beginning and end ---- */

/* On a thread of its own, so that there was no loop before. */
static void *loop_by(void *way) {
    unsigned number = (unsigned)(uintptr_t)way;
    bool expected = has_turns && strcmp(waits[number].mode, mode) == 0;
    struct channel channel = open_channel();
    uint64_t between = 0;
    for (unsigned i = 0; i < 20; i++) {
        ROUND(waits[number].wait, channel);
        between = i < 4 ? open_regions() : between; /* what this loop has learnt is there */
        EXPECT(open_regions() == between);
        EXPECT(block_begins() == (expected && i > 0));
        EXPECT(!block_begins());
    }
    return NULL;
}

static void each_wait_ends_a_turn_and_begins_one(void) {
    warm_up();
    for (uintptr_t way = 0; way < WAITS; way++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, loop_by, (void *)way) == 0);
        EXPECT(pthread_join(thread, NULL) == 0);
    }
}

static int listener_of(struct sockaddr_un *address, socklen_t *length) {
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                          (size_t)snprintf(address->sun_path + 1, 50, "ebb-loops-%d", getpid()));
    EXPECT(bind(listener, (struct sockaddr *)address, *length) == 0 && listen(listener, 5) == 0);
    return listener;
}

static void so_does_accepting(void) {
    warm_up();
    struct sockaddr_un address;
    socklen_t length;
    int listener = listener_of(&address, &length);
    for (unsigned i = 0; i < 20; i++) {
        int client = socket(AF_UNIX, SOCK_STREAM, 0);
        EXPECT(connect(client, (struct sockaddr *)&address, length) == 0);
        int server = i < 10 ? accept(listener, NULL, NULL)
                            : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        EXPECT(server >= 0);
        EXPECT(block_begins() == (has_turns && strcmp(mode, "receive") == 0 && i % 10));
        close(server);
        close(client);
    }
}

static struct channel seen;
static uint64_t quiet_regions;

static void *write_when_quiet(void *context) {
    while (open_regions() != quiet_regions)
        usleep(1000);
    put(seen);
    return context;
}

static void a_turn_ends_before_the_sleep(void) {
    warm_up();
    pthread_t thread;
    seen = open_channel();
    for (unsigned i = 0; i < 10; i++) {
        bool sleeps = i > 4;
        if (i == 4)
            quiet_regions = open_regions() - has_turns;
        if (sleeps)
            EXPECT(pthread_create(&thread, NULL, write_when_quiet, NULL) == 0);
        else
            put(seen);
        EXPECT(usual(seen.in, -1) == 1);
        take(seen);
        EXPECT(block_begins() == (has_turns && i > 0));
        EXPECT(!sleeps || pthread_join(thread, NULL) == 0);
    }
}

static void nothing_came_nothing_begins(void) {
    warm_up();
    struct channel channel = open_channel();
    ROUND(usual, channel);
    for (unsigned way = 0; way < WAITS && strcmp(waits[way].mode, "wait") == 0; way++)
        for (unsigned i = 0; i < 5; i++) {
            EXPECT(waits[way].wait(channel.in, 2) == 0);
            EXPECT(!block_begins());
            errno = 0;
            EXPECT(epoll_wait(-1, &(struct epoll_event){0}, 1, -1) == -1 && errno == EBADF);
            EXPECT(!block_begins());
            errno = 0;
            EXPECT(recv(-1, &i, 1, 0) == -1 && errno == EBADF);
            EXPECT(!block_begins());
        }
}

/* ---- parts of a turn ---- */

static void who_peeks_or_is_deeper_is_a_part(void) {
    warm_up();
    struct channel channel = open_channel(), other = open_channel();
    for (unsigned i = 0; i < 40; i++) {
        put(other);
        ROUND(usual, channel);
        EXPECT(block_begins() == (has_turns && i > 0));
        for (unsigned k = 0; k < 16 && i > 0; k++) {
            if (i % 3 == 0 && strcmp(mode, "receive") != 0)
                EXPECT(usual(other.in, 0) == 1);
            else
                EXPECT(deeper(usual, other.in, -1) == 1);
            if (strcmp(mode, "receive") == 0)
                put(other);
            EXPECT(!block_begins());
        }
        take(other);
    }
}

static void a_loop_that_only_peeks_has_turns_too(void) {
    warm_up();
    struct channel channel = open_channel();
    unsigned turns = 0;
    if (strcmp(mode, "receive") == 0)
        return;
    ROUND(usual, channel);
    for (unsigned i = 0; i < 200; i++) {
        EXPECT(usual(channel.in, 0) == 0);
        turns += block_begins();
    }
    EXPECT(turns == (has_turns ? 200 / 17 + 1 : 0));
}

static __attribute__((noinline)) unsigned inner_loop(struct channel channel, unsigned rounds) {
    void *blocks[50] = {NULL};
    unsigned late = 0;
    for (unsigned i = 0; i < rounds; i++) {
        ROUND(usual, channel);
        late += block_begins() && i + 20 >= rounds;
        free(blocks[i % 50]);
        EXPECT(blocks[i % 50] = malloc(3000 + i * 16)); /* so that trays are used up */
    }
    for (unsigned i = 0; i < 50; i++)
        free(blocks[i]);
    return late;
}

/* When a tray is used up. What lives on is learnt by its address, and soon asks for none: so it is
 * not the same round each time. */
static void an_inner_loop_takes_over(void) {
    warm_up();
    struct channel channel = open_channel();
    for (unsigned i = 0; i < 6; i++) {
        ROUND(usual, channel);
        EXPECT(block_begins() == (has_turns && i != 0 && i != 3));
        if (i == 2)
            EXPECT(inner_loop(channel, 200) == (has_turns ? 20 : 0));
    }
}

/* ---- scopes of the program's own ---- */

static void own_scopes_are_left_alone(void) {
    warm_up();
    struct channel channel = open_channel();
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "own", .scope = true));
    ebb_step step = {0};
    for (unsigned i = 0; i < 12; i++) {
        ROUND(usual, channel);
        if (i == 7) /* in a turn that had no block */
            step = ebb_step_begin(site, 0);
        EXPECT(block_begins() == (has_turns && (i == 1 || i == 2 || i > 8)));
        if (i == 2) /* in one that had */
            step = ebb_step_begin(site, 0);
        if (i == 6 || i == 8) /* the turn below it has ended */
            EXPECT(ebb_step_end(step) == 0 && !block_begins());
    }
    EXPECT(ebb_site_destroy(site) == 0);
}

static void own_scopes_leave_and_enter(void) {
    warm_up();
    struct channel channel = open_channel();
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "own", .scope = true));
    for (unsigned i = 0; i < 100; i++) {
        void *volatile outside = i % 2 ? malloc(50) : NULL;
        ROUND(usual, channel);
        ebb_step step = ebb_step_begin(site, 0);
        void *volatile inside = malloc(60);
        EXPECT(ebb_scope_leave(step) == 0);
        ROUND(usual, channel);
        EXPECT(block_begins() == has_turns); /* it is open, and not where the thread is */
        void *volatile between = malloc(70);
        if (i % 3)
            ROUND(usual, channel);
        EXPECT(ebb_scope_enter(step) == 0);
        ROUND(usual, channel);
        EXPECT(!block_begins());
        free(between);
        free(outside);
        EXPECT(ebb_step_end(step) == 0);
        free(malloc(80));
        free(inside);
    }
    EXPECT(ebb_site_destroy(site) == 0);
}

/* ---- options ---- */

static const char *self;

static void preload(const char *library) {
    const char *before = getenv("LD_PRELOAD");
    char both[4000];
    snprintf(both, sizeof both, "%s:%s", before ? before : "", library);
    setenv("LD_PRELOAD", both, 1);
}

/* What a program with these options says on its standard error. NULL: nothing more is preloaded. */
static void hear_with(const char *library, const char *asked, char *said, size_t room) {
    int ends[2];
    EXPECT(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("EBB_MALLOC", asked, 1);
        if (library)
            preload(library);
        dup2(ends[1], STDERR_FILENO);
        execl(self, self, "--nothing", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    ssize_t length = 0, part;
    while ((part = read(ends[0], said + length, room - 1 - (size_t)length)) > 0)
        length += part;
    said[length] = 0;
    act_await(child);
    close(ends[0]);
}

static void hear(const char *asked, char *said, size_t room) {
    hear_with(NULL, asked, said, room);
}

static void bad_options_are_named(void) {
    static const char *const bad[][2] = {
        {"turns:never", "turns is 'never', expected wait or receive"},
        {"turns:", "turns is '', expected wait or receive"},
        {"turns", "turns is '', expected wait or receive"},
        {"turns:waits", "turns is 'waits', expected wait or receive"},
        {"turn:wait", "no such key: 'turn', there are idle_ms and turns"},
        {"idle_ms:-1", "idle_ms is '-1', expected 0 to 86400000"},
        {"idle_ms", "idle_ms is '', expected 0 to 86400000"},
        {"idle_ms: -18446744073709551611",
         "idle_ms is ' -18446744073709551611', expected 0 to 86400000"},
        {"a\nb\t\x1b[2J\x7f", "no such key: 'a?b??[2J?', there are idle_ms and turns"},
        {"\xc2\x9bmr\xe2\x80\xaez\xc3\xbc\xff",
         "no such key: '?mr?z\xc3\xbc?', there are idle_ms and turns"},
        {"turns:\n,idle_ms:1", "turns is '?', expected wait or receive"},
        {"idle_ms:1,turns:receive", ""},
        {"turns:wait", ""},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        char said[300], line[300];
        hear(bad[i][0], said, sizeof said);
        snprintf(line, sizeof line, "ebb-malloc: EBB_MALLOC: %s\n", bad[i][1]);
        EXPECT(strcmp(said, *bad[i][1] && ebb_scope_is_served() ? line : "") == 0);
    }
}

static void so_are_long_ones(void) {
    static const char line[] = "ebb-malloc: EBB_MALLOC: no such key: 'xxx";
    char asked[2000], said[600];
    memset(asked, 'x', sizeof asked - 1);
    asked[sizeof asked - 1] = 0;
    hear(asked, said, sizeof said);
    EXPECT(strncmp(said, line, ebb_scope_is_served() ? sizeof line - 1 : 0) == 0);
    EXPECT(!*said || said[strlen(said) - 1] == '\n');
}

/* What a turn notes for the end of its thread would be in the midst of others' values. */
static void turns_that_cannot_be_had_are_told(void) {
    static const char line[] =
        "ebb-malloc: EBB_MALLOC: there are no turns, as others have made too many keys\n";
    char said[300];
    hear_with(getenv("MANY_KEYS"), "turns:wait", said, sizeof said);
    EXPECT(strcmp(said, ebb_scope_is_served() ? line : "") == 0);
    hear_with(getenv("MANY_KEYS"), "idle_ms:1", said, sizeof said);
    EXPECT(!*said);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--nothing") == 0)
        return 0;
    self = argv[0];
    static const struct act acts[] = {
        ACT(each_wait_ends_a_turn_and_begins_one),
        ACT(so_does_accepting),
        ACT(a_turn_ends_before_the_sleep),
        ACT(nothing_came_nothing_begins),
        ACT(who_peeks_or_is_deeper_is_a_part),
        ACT(a_loop_that_only_peeks_has_turns_too),
        ACT(an_inner_loop_takes_over),
        ACT(own_scopes_are_left_alone),
        ACT(own_scopes_leave_and_enter),
        ACT(bad_options_are_named),
        ACT(so_are_long_ones),
        ACT(turns_that_cannot_be_had_are_told),
    };
    const char *options = getenv("EBB_MALLOC");
    if (options && strncmp(options, "turns:", 6) == 0)
        mode = options + 6;
    has_turns = *mode && ebb_scope_is_served();
    if (strcmp(mode, "receive") == 0)
        usual = by_recv;
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
