// SPDX-License-Identifier: Apache-2.0
/*
 * server.c - see server.h. No other names of libebb than a user of a plain C server would write are
 * used.
 */
#include "scopes.h"
#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static server_infer *infer;
static ebb_site *site; /* NULL: requests are no scopes */

/* Reads the body that follows a head, some of which has come with it. */
static char *read_body(int connection, const char *come, size_t come_bytes, size_t bytes) {
    char *body = malloc(bytes ? bytes : 1);
    if (!body || come_bytes > bytes) {
        free(body);
        return NULL;
    }
    memcpy(body, come, come_bytes);
    while (come_bytes < bytes) {
        ssize_t got = recv(connection, body + come_bytes, bytes - come_bytes, 0);
        if (got <= 0) {
            free(body);
            return NULL;
        }
        come_bytes += (size_t)got;
    }
    return body;
}

static bool answer(int connection, const char *body, size_t bytes) {
    float results[ANSWER_FLOATS];
    char message[256 + sizeof results];
    if (!infer((const int32_t *)(const void *)body, bytes / sizeof(int32_t), results))
        return false;
    int head = snprintf(message, 256, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                        sizeof results);
    memcpy(message + head, results, sizeof results);
    return message_send(connection, message, (size_t)head + sizeof results);
}

static bool serve_request(int connection, const char *come, size_t come_bytes, size_t bytes) {
    ebb_step step = {0};
    if (site)
        step = ebb_step_begin(site, 0);
    char *body = read_body(connection, come, come_bytes, bytes);
    bool served = body && answer(connection, body, bytes);
    free(body);
    if (site && ebb_step_end(step) != 0)
        fprintf(stderr, "server: a step did not end\n");
    return served;
}

static void *serve_connection(void *argument) {
    int connection = (int)(intptr_t)argument;
    char head[HEAD_MOST];
    size_t filled = 0, body_at, bytes;
    for (;;) {
        ssize_t got = recv(connection, head + filled, sizeof head - filled, 0);
        if (got <= 0)
            break;
        filled += (size_t)got;
        if (!message_head(head, filled, &body_at, &bytes))
            continue;
        if (!serve_request(connection, head + body_at, filled - body_at, bytes))
            break;
        filled = 0;
    }
    close(connection);
    return NULL;
}

static void *accept_all(void *argument) {
    int listener = (int)(intptr_t)argument, connection;
    while ((connection = accept(listener, NULL, NULL)) >= 0) {
        pthread_t thread;
        int yes = 1;
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)connection) != 0)
            close(connection);
        else
            pthread_detach(thread);
    }
    return NULL;
}

static int listen_anywhere(unsigned *port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 64) != 0 || getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        return -1;
    *port = ntohs(address.sin_port);
    return listener;
}

int server_run(server_infer *function) {
    unsigned port;
    pthread_t thread;
    char ignored[256];
    infer = function;
    if (!scopes_begin("request", &site))
        return 3;
    int listener = listen_anywhere(&port);
    if (listener < 0 ||
        pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)listener) != 0) {
        perror("server");
        return 1;
    }
    printf("port %u\n", port);
    fflush(stdout);
    while (read(STDIN_FILENO, ignored, sizeof ignored) > 0)
        ;
    return 0;
}
