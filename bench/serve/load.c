// SPDX-License-Identifier: Apache-2.0
/*
 * load.c - ebb-load PID PORT CONNECTIONS: loads a server and says what it cost.
 *
 * Reads lines `COUNT LOW HIGH SAMPLE` from standard input, answers each with a line of JSON. So
 * many requests are sent over the connections, each as soon as the answer before it is there; their
 * lengths in tokens are spread from LOW to HIGH, evenly on a logarithmic scale, the same ones for
 * every server. With SAMPLE, what process PID has resident is read after every so many answers.
 *
 *     {"requests": n, "seconds": s, "cpu_us": c, "faults": f, "p50_us": a, "p99_us": b,
 *      "sum": checksum, "resident": [bytes, ...]}
 *
 * cpu_us is the processor time of the process, all threads, and faults its minor page faults. The
 * checksum is over all answers, in whatever order they came.
 *
 * Exit codes: 0 at the end of the input; 1 if the server, an answer or reading failed; 2 if a word
 * or a line is bad.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "argument.h"
#include "message.h"

#define CONNECTIONS_MOST 64
#define REQUESTS_MOST 1000000000
#define LINE_MOST 256
#define TOKENS_MOST (1 << 20)
#define VOCABULARY 256

struct connection {
    int socket;
    uint64_t sent_ns;
    size_t filled;
    char answer[HEAD_MOST];
};

struct run {
    uint64_t count, low, high, sample;
    uint64_t begun, done, checksum;
    uint64_t *latency_ns, *resident;
};

static struct connection connections[CONNECTIONS_MOST];
static int connection_count;
static uint64_t numbered; /* requests of all runs */
static pid_t server;
static clockid_t server_clock;

/* `reason`: of errno, or 0: there is none. */
static void fail(const char *what, int reason) {
    fprintf(stderr, "ebb-load: %s%s%s\n", what, reason ? ": " : "",
            reason ? strerror(reason) : "");
    exit(1);
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        fail("the server has gone", errno);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The text behind the name of the program in /proc/PID/stat, or all of another file. */
static void read_file(const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)server, name);
    FILE *file = fopen(path, "r");
    size_t got = file ? fread(text, 1, size - 1, file) : 0;
    if (got == 0)
        fail(path, errno);
    text[got] = '\0';
    fclose(file);
}

static uint64_t faults(void) {
    char text[1024];
    unsigned long minor = 0;
    read_file("stat", text, sizeof text);
    const char *behind = strrchr(text, ')');
    if (!behind || sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %lu", &minor) != 1)
        fail("stat: not as it should be", 0);
    return minor;
}

static uint64_t field(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? strtoul(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* Pages of files count as many as at the first reading: they come and go as the system wants. */
static uint64_t resident(void) {
    static uint64_t of_files;
    char text[4096];
    read_file("status", text, sizeof text);
    if (of_files == 0)
        of_files = field(text, "\nRssFile:");
    return of_files + field(text, "\nRssAnon:") + field(text, "\nRssShmem:");
}

/* Numbers that follow from a number alone (splitmix64). */
static uint64_t scatter(uint64_t number) {
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

static size_t length_of(const struct run *run, uint64_t number) {
    double part = (double)(scatter(number) >> 11) / (double)(UINT64_C(1) << 53);
    double low = (double)run->low, high = (double)run->high;
    return (size_t)(low * pow(high / low, part) + 0.5);
}

static void ask(struct run *run, struct connection *connection) {
    static char message[256 + TOKENS_MOST * sizeof(int32_t)];
    uint64_t number = numbered++;
    size_t length = length_of(run, number);
    int head = snprintf(message, 256,
                        "POST / HTTP/1.1\r\nHost: loopback\r\nContent-Length: %zu\r\n\r\n",
                        length * sizeof(int32_t));
    for (size_t i = 0; i < length; i++) {
        int32_t token = (int32_t)(scatter(number + i) % VOCABULARY);
        memcpy(message + head + i * sizeof token, &token, sizeof token);
    }
    run->begun++;
    connection->filled = 0;
    connection->sent_ns = clock_ns(CLOCK_MONOTONIC);
    if (!message_send(connection->socket, message, (size_t)head + length * sizeof(int32_t)))
        fail("send", errno);
}

static uint64_t sum_of(const char *bytes, size_t size) {
    uint64_t sum = size;
    for (size_t i = 0; i < size; i++)
        sum = scatter(sum ^ (unsigned char)bytes[i]);
    return sum;
}

/* Takes what has come; true: the answer is whole. */
static bool hear(struct run *run, struct connection *connection) {
    size_t body_at, bytes;
    ssize_t got = recv(connection->socket, connection->answer + connection->filled,
                       sizeof connection->answer - connection->filled, 0);
    if (got <= 0)
        fail("the server hung up", got < 0 ? errno : 0);
    connection->filled += (size_t)got;
    if (!message_head(connection->answer, connection->filled, &body_at, &bytes) ||
        connection->filled < body_at + bytes)
        return false;
    if (bytes != ANSWER_FLOATS * sizeof(float) || memcmp(connection->answer + 9, "200", 3) != 0) {
        fprintf(stderr, "ebb-load: no answer of the size that it should have:\n%.*s",
                (int)body_at, connection->answer);
        exit(1);
    }
    run->latency_ns[run->done++] = clock_ns(CLOCK_MONOTONIC) - connection->sent_ns;
    run->checksum += sum_of(connection->answer + body_at, bytes);
    if (run->sample && run->done % run->sample == 0)
        run->resident[run->done / run->sample - 1] = resident();
    return true;
}

static void send_all(struct run *run) {
    struct pollfd waiting[CONNECTIONS_MOST];
    for (int i = 0; i < connection_count; i++) {
        waiting[i] = (struct pollfd){.fd = connections[i].socket, .events = POLLIN};
        if (run->begun < run->count)
            ask(run, &connections[i]);
    }
    while (run->done < run->count) {
        int ready = poll(waiting, (nfds_t)connection_count, 60000);
        if (ready <= 0)
            fail("no answer for a minute", ready < 0 ? errno : 0);
        for (int i = 0; i < connection_count; i++)
            if (waiting[i].revents && hear(run, &connections[i]) && run->begun < run->count)
                ask(run, &connections[i]);
    }
}

static int by_size(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void tell(const struct run *run, uint64_t wall_ns, uint64_t cpu_ns, uint64_t minor) {
    qsort(run->latency_ns, run->count, sizeof *run->latency_ns, by_size);
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"cpu_us\": %.3f, \"faults\": %llu, "
           "\"p50_us\": %.3f, \"p99_us\": %.3f, \"sum\": \"%016llx\", \"resident\": [",
           (unsigned long long)run->count, (double)wall_ns / 1e9, (double)cpu_ns / 1e3,
           (unsigned long long)minor, (double)run->latency_ns[run->count / 2] / 1e3,
           (double)run->latency_ns[run->count * 99 / 100] / 1e3,
           (unsigned long long)run->checksum);
    for (uint64_t i = 0; run->sample && i < run->count / run->sample; i++)
        printf("%s%llu", i ? ", " : "", (unsigned long long)run->resident[i]);
    printf("]}\n");
    fflush(stdout);
}

static void load(struct run *run) {
    run->latency_ns = calloc(run->count, sizeof *run->latency_ns);
    run->resident = calloc(run->count, sizeof *run->resident);
    if (!run->latency_ns || !run->resident)
        fail("memory", errno);
    uint64_t minor = faults(), cpu = clock_ns(server_clock), wall = clock_ns(CLOCK_MONOTONIC);
    send_all(run);
    wall = clock_ns(CLOCK_MONOTONIC) - wall;
    cpu = clock_ns(server_clock) - cpu;
    tell(run, wall, cpu, faults() - minor);
    free(run->latency_ns);
    free(run->resident);
}

static void open_connections(unsigned port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < connection_count; i++) {
        int yes = 1, made = socket(AF_INET, SOCK_STREAM, 0);
        if (made < 0 || connect(made, (struct sockaddr *)&address, sizeof address) != 0)
            fail("connect", errno);
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        connections[i].socket = made;
    }
}

/* The number in front of the text, which goes on behind it; false: none there, or above `most`. */
static bool take_number(const char **text, unsigned long long most, uint64_t *number) {
    char *end;
    const char *begin = *text + strspn(*text, " \t");
    if (*begin < '0' || *begin > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(begin, &end, 10);
    if (errno || value > most)
        return false;
    *text = end;
    *number = value;
    return true;
}

static bool is_run(const char *text, struct run *run) {
    return take_number(&text, REQUESTS_MOST, &run->count) &&
           take_number(&text, TOKENS_MOST, &run->low) &&
           take_number(&text, TOKENS_MOST, &run->high) &&
           take_number(&text, REQUESTS_MOST, &run->sample) &&
           text[strspn(text, " \t\r\n")] == '\0' &&
           run->count > 0 && run->low > 0 && run->low <= run->high;
}

/* False at the end of the input. */
static bool next_run(struct run *run) {
    char line[LINE_MOST];
    *run = (struct run){0};
    if (!fgets(line, sizeof line, stdin)) {
        if (ferror(stdin))
            fail("standard input", errno);
        return false;
    }
    bool whole = strchr(line, '\n') || feof(stdin);
    if (whole && is_run(line, run))
        return true;
    fprintf(stderr, "ebb-load: not COUNT LOW HIGH SAMPLE, 1 to %d requests with 1 to %d tokens: "
            "%.*s\n", REQUESTS_MOST, TOKENS_MOST, (int)strcspn(line, "\r\n"), line);
    exit(2);
}

int main(int argc, char **argv) {
    struct run run;
    if (argc != 4) {
        fprintf(stderr, "usage: ebb-load PID PORT CONNECTIONS\n");
        return 2;
    }
    server = (pid_t)argument_number("PID", argv[1], 1, INT_MAX);
    unsigned port = (unsigned)argument_number("PORT", argv[2], 1, UINT16_MAX);
    connection_count = (int)argument_number("CONNECTIONS", argv[3], 1, CONNECTIONS_MOST);
    int known = clock_getcpuclockid(server, &server_clock);
    if (known != 0)
        fail("no such process", known);
    open_connections(port);
    while (next_run(&run))
        load(&run);
    return 0;
}
