// SPDX-License-Identifier: Apache-2.0
/*
 * waits.c - the functions of the C library at which programs wait, in front of its own.
 *
 * Each calls the C library's, and tells turn.h before and after where the environment asks for
 * turns of its kind (options.h). The C library's are looked up when this library is loaded, or when
 * one is called before that: a handler of a signal, or the child of a fork, must not look.
 *
 * Those in use by loops of events are here, and those of sockets. Not read(), which is for files as
 * well; nor what the C library calls inside, to resolve names, for instance: that is no turn.
 */
#include "malloc/waits.h"
#include "malloc/options.h"
#include "malloc/turn.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

#define TAKEN_OVER __attribute__((visibility("default")))
#define CALLER .place = __builtin_return_address(0), .frame = __builtin_frame_address(0)

typedef void function(void);

/* Those with _CHK are what programs call that were built with _FORTIFY_SOURCE. */
enum which {
    EPOLL_WAIT, EPOLL_PWAIT, EPOLL_PWAIT2, POLL, POLL_CHK, PPOLL, PPOLL_CHK, SELECT, PSELECT,
    RECV, RECV_CHK, RECVFROM, RECVFROM_CHK, RECVMSG, RECVMMSG, ACCEPT, ACCEPT4, FUNCTIONS
};

static const char *const names[FUNCTIONS] = {
    "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "__poll_chk", "ppoll", "__ppoll_chk",
    "select", "pselect", "recv", "__recv_chk", "recvfrom", "__recvfrom_chk", "recvmsg", "recvmmsg",
    "accept", "accept4",
};

static function *_Atomic(theirs)[FUNCTIONS];

static __attribute__((cold)) function *find(enum which which) {
    function *found = NULL;
    void *symbol = dlsym(RTLD_NEXT, names[which]);
    memcpy(&found, &symbol, sizeof found);
    atomic_store_explicit(&theirs[which], found, memory_order_relaxed);
    return found;
}

void waits_find(void) {
    for (unsigned which = 0; which < FUNCTIONS; which++)
        (void)find(which);
}

static inline bool has_turns(enum which which) {
    return __builtin_expect(options.turns == (which < RECV ? TURNS_WAIT : TURNS_RECEIVE), 0);
}

/* The C library's function, which is to be called now. */
static inline function *before(enum which which, struct turn_wait *wait) {
    /* relaxed: it is the same whoever finds it */
    function *found = atomic_load_explicit(&theirs[which], memory_order_relaxed);
    if (has_turns(which))
        turn_before(wait);
    return __builtin_expect(found != NULL, 1) ? found : find(which);
}

static inline ssize_t after(enum which which, const struct turn_wait *wait, ssize_t result) {
    if (has_turns(which))
        turn_after(wait, result);
    return result;
}

static bool is_zero(const struct timespec *timeout) {
    return timeout && !timeout->tv_sec && !timeout->tv_nsec;
}

/* ---- epoll ---- */

TAKEN_OVER int epoll_wait(int queue, struct epoll_event *events, int most, int timeout) {
    struct turn_wait wait = {CALLER, .peeks = timeout == 0};
    __typeof__(epoll_wait) *call = (__typeof__(epoll_wait) *)before(EPOLL_WAIT, &wait);
    return (int)after(EPOLL_WAIT, &wait, call(queue, events, most, timeout));
}

TAKEN_OVER int epoll_pwait(int queue, struct epoll_event *events, int most, int timeout,
                           const sigset_t *mask) {
    struct turn_wait wait = {CALLER, .peeks = timeout == 0};
    __typeof__(epoll_pwait) *call = (__typeof__(epoll_pwait) *)before(EPOLL_PWAIT, &wait);
    return (int)after(EPOLL_PWAIT, &wait, call(queue, events, most, timeout, mask));
}

/* New in glibc 2.35: there may be none. */
int epoll_pwait2(int queue, struct epoll_event *events, int most, const struct timespec *timeout,
                 const sigset_t *mask);

TAKEN_OVER int epoll_pwait2(int queue, struct epoll_event *events, int most,
                            const struct timespec *timeout, const sigset_t *mask) {
    struct turn_wait wait = {CALLER, .peeks = is_zero(timeout)};
    __typeof__(epoll_pwait2) *call = (__typeof__(epoll_pwait2) *)before(EPOLL_PWAIT2, &wait);
    if (!call) {
        errno = ENOSYS;
        return -1;
    }
    return (int)after(EPOLL_PWAIT2, &wait, call(queue, events, most, timeout, mask));
}

/* ---- poll ---- */

TAKEN_OVER int poll(struct pollfd *files, nfds_t count, int timeout) {
    struct turn_wait wait = {CALLER, .peeks = timeout == 0};
    __typeof__(poll) *call = (__typeof__(poll) *)before(POLL, &wait);
    return (int)after(POLL, &wait, call(files, count, timeout));
}

int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes);

TAKEN_OVER int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes) {
    struct turn_wait wait = {CALLER, .peeks = timeout == 0};
    __typeof__(__poll_chk) *call = (__typeof__(__poll_chk) *)before(POLL_CHK, &wait);
    return (int)after(POLL_CHK, &wait, call(files, count, timeout, bytes));
}

TAKEN_OVER int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                     const sigset_t *mask) {
    struct turn_wait wait = {CALLER, .peeks = is_zero(timeout)};
    __typeof__(ppoll) *call = (__typeof__(ppoll) *)before(PPOLL, &wait);
    return (int)after(PPOLL, &wait, call(files, count, timeout, mask));
}

int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask, size_t bytes);

TAKEN_OVER int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                           const sigset_t *mask, size_t bytes) {
    struct turn_wait wait = {CALLER, .peeks = is_zero(timeout)};
    __typeof__(__ppoll_chk) *call = (__typeof__(__ppoll_chk) *)before(PPOLL_CHK, &wait);
    return (int)after(PPOLL_CHK, &wait, call(files, count, timeout, mask, bytes));
}

/* ---- select ---- */

/* It may change the timeout. */
TAKEN_OVER int select(int count, fd_set *readable, fd_set *writable, fd_set *special,
                      struct timeval *timeout) {
    struct turn_wait wait = {CALLER, .peeks = timeout && !timeout->tv_sec && !timeout->tv_usec};
    __typeof__(select) *call = (__typeof__(select) *)before(SELECT, &wait);
    return (int)after(SELECT, &wait, call(count, readable, writable, special, timeout));
}

TAKEN_OVER int pselect(int count, fd_set *readable, fd_set *writable, fd_set *special,
                       const struct timespec *timeout, const sigset_t *mask) {
    struct turn_wait wait = {CALLER, .peeks = is_zero(timeout)};
    __typeof__(pselect) *call = (__typeof__(pselect) *)before(PSELECT, &wait);
    return (int)after(PSELECT, &wait, call(count, readable, writable, special, timeout, mask));
}

/* ---- sockets ---- */

TAKEN_OVER ssize_t recv(int file, void *buffer, size_t bytes, int flags) {
    struct turn_wait wait = {CALLER};
    __typeof__(recv) *call = (__typeof__(recv) *)before(RECV, &wait);
    return after(RECV, &wait, call(file, buffer, bytes, flags));
}

ssize_t __recv_chk(int file, void *buffer, size_t bytes, size_t room, int flags);

TAKEN_OVER ssize_t __recv_chk(int file, void *buffer, size_t bytes, size_t room, int flags) {
    struct turn_wait wait = {CALLER};
    __typeof__(__recv_chk) *call = (__typeof__(__recv_chk) *)before(RECV_CHK, &wait);
    return after(RECV_CHK, &wait, call(file, buffer, bytes, room, flags));
}

/* __SOCKADDR_ARG, here and below: what glibc declares, or compilers see another function. */
TAKEN_OVER ssize_t recvfrom(int file, void *buffer, size_t bytes, int flags, __SOCKADDR_ARG from,
                            socklen_t *length) {
    struct turn_wait wait = {CALLER};
    __typeof__(recvfrom) *call = (__typeof__(recvfrom) *)before(RECVFROM, &wait);
    return after(RECVFROM, &wait, call(file, buffer, bytes, flags, from, length));
}

ssize_t __recvfrom_chk(int file, void *buffer, size_t bytes, size_t room, int flags,
                       __SOCKADDR_ARG from, socklen_t *length);

TAKEN_OVER ssize_t __recvfrom_chk(int file, void *buffer, size_t bytes, size_t room, int flags,
                                  __SOCKADDR_ARG from, socklen_t *length) {
    struct turn_wait wait = {CALLER};
    __typeof__(__recvfrom_chk) *call = (__typeof__(__recvfrom_chk) *)before(RECVFROM_CHK, &wait);
    return after(RECVFROM_CHK, &wait, call(file, buffer, bytes, room, flags, from, length));
}

TAKEN_OVER ssize_t recvmsg(int file, struct msghdr *message, int flags) {
    struct turn_wait wait = {CALLER};
    __typeof__(recvmsg) *call = (__typeof__(recvmsg) *)before(RECVMSG, &wait);
    return after(RECVMSG, &wait, call(file, message, flags));
}

TAKEN_OVER int recvmmsg(int file, struct mmsghdr *messages, unsigned count, int flags,
                        struct timespec *timeout) {
    struct turn_wait wait = {CALLER};
    __typeof__(recvmmsg) *call = (__typeof__(recvmmsg) *)before(RECVMMSG, &wait);
    return (int)after(RECVMMSG, &wait, call(file, messages, count, flags, timeout));
}

TAKEN_OVER int accept(int file, __SOCKADDR_ARG from, socklen_t *length) {
    struct turn_wait wait = {CALLER};
    __typeof__(accept) *call = (__typeof__(accept) *)before(ACCEPT, &wait);
    return (int)after(ACCEPT, &wait, call(file, from, length));
}

TAKEN_OVER int accept4(int file, __SOCKADDR_ARG from, socklen_t *length, int flags) {
    struct turn_wait wait = {CALLER};
    __typeof__(accept4) *call = (__typeof__(accept4) *)before(ACCEPT4, &wait);
    return (int)after(ACCEPT4, &wait, call(file, from, length, flags));
}
