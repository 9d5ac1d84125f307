// SPDX-License-Identifier: Apache-2.0
//
// bytes.c - reads a file, or a pipe, and inflates what is gzip.
//
// The first two bytes tell plain from gzip. zlib's own gzread() is not used: what it finds behind a
// good member, and cannot read, it takes for the end. One invariant: the end is told only where a
// plain file ends, or a member does and nothing but zeros, which tapes leave there, follows.
// Refused: a gzip stream that ends early or is damaged, its check sums included, and other bytes
// behind it.

#include "bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "failure.h"

enum { GZIP_ONLY = 16 + MAX_WBITS };

bool trace_bytes_open(struct trace_bytes *bytes, const char *path, struct trace_error *error)
{
    bytes->begun = bytes->is_gzip = bytes->in_member = false;
    memset(&bytes->zlib, 0, sizeof bytes->zlib);
    bytes->file = open(path, O_RDONLY | O_CLOEXEC);
    return bytes->file >= 0 ||
           trace_fail(error, TRACE_ERROR_OPEN, 0, "cannot open: %s", strerror(errno));
}

void trace_bytes_close(struct trace_bytes *bytes)
{
    if (bytes->is_gzip)
        inflateEnd(&bytes->zlib);
    close(bytes->file);
}

// Reads behind the input that is left, for which there is room. Nothing comes at the end.
static bool fill(struct trace_bytes *bytes, uint64_t line, struct trace_error *error)
{
    z_stream *zlib = &bytes->zlib;
    ssize_t got;

    if (!zlib->avail_in)
        zlib->next_in = bytes->input;
    do
        got = read(bytes->file, zlib->next_in + zlib->avail_in,
                   sizeof bytes->input - zlib->avail_in);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return trace_fail(error, TRACE_ERROR_READ, line, "cannot read: %s", strerror(errno));
    zlib->avail_in += (unsigned)got;
    return true;
}

static bool begin(struct trace_bytes *bytes, uint64_t line, struct trace_error *error)
{
    z_stream *zlib = &bytes->zlib;
    unsigned had;

    do {
        had = zlib->avail_in;
        if (!fill(bytes, line, error))
            return false;
    } while (zlib->avail_in == 1 && had == 0);
    bytes->begun = true;
    if (zlib->avail_in < 2 || zlib->next_in[0] != 0x1f || zlib->next_in[1] != 0x8b)
        return true;
    bytes->is_gzip = bytes->in_member = inflateInit2(zlib, GZIP_ONLY) == Z_OK;
    return bytes->is_gzip ||
           trace_fail(error, TRACE_ERROR_MEMORY, line, "out of memory: gzip stream");
}

static bool fail_to_inflate(const struct trace_bytes *bytes, int status, uint64_t line,
                            struct trace_error *error)
{
    if (status == Z_BUF_ERROR)
        return trace_fail(error, TRACE_ERROR_TRUNCATED, line, "the gzip stream ends too early");
    if (status == Z_MEM_ERROR)
        return trace_fail(error, TRACE_ERROR_MEMORY, line, "out of memory: gzip stream");
    return trace_fail(error, TRACE_ERROR_CORRUPT, line, "damaged gzip stream: %s",
                      bytes->zlib.msg ? bytes->zlib.msg : "a dictionary is missing");
}

// Between members: what is no zero must be another one.
static void look_for_member(struct trace_bytes *bytes)
{
    z_stream *zlib = &bytes->zlib;

    while (zlib->avail_in && !*zlib->next_in) {
        zlib->next_in++;
        zlib->avail_in--;
    }
    if (zlib->avail_in)
        bytes->in_member = inflateReset(zlib) == Z_OK;
}

static bool inflate_some(struct trace_bytes *bytes, uint64_t line, struct trace_error *error)
{
    z_stream *zlib = &bytes->zlib;
    unsigned room = zlib->avail_out;

    while (zlib->avail_out == room) {
        int status = Z_OK;

        if (!zlib->avail_in && !fill(bytes, line, error))
            return false;
        if (!bytes->in_member && !zlib->avail_in)
            return true;
        if (bytes->in_member)
            status = inflate(zlib, Z_NO_FLUSH); // without input: what it has kept
        else
            look_for_member(bytes);
        bytes->in_member &= status != Z_STREAM_END;
        if (status != Z_OK && status != Z_STREAM_END)
            return fail_to_inflate(bytes, status, line, error);
    }
    return true;
}

static bool take_some(struct trace_bytes *bytes, uint64_t line, struct trace_error *error)
{
    z_stream *zlib = &bytes->zlib;
    unsigned most;

    if (!zlib->avail_in && !fill(bytes, line, error))
        return false;
    most = zlib->avail_in < zlib->avail_out ? zlib->avail_in : zlib->avail_out;
    memcpy(zlib->next_out, zlib->next_in, most);
    zlib->next_in += most;
    zlib->avail_in -= most;
    zlib->avail_out -= most;
    return true;
}

bool trace_bytes_read(struct trace_bytes *bytes, char *to, unsigned room, size_t *got,
                      uint64_t line, struct trace_error *error)
{
    bool good;

    if (!bytes->begun && !begin(bytes, line, error))
        return false;
    bytes->zlib.next_out = (unsigned char *)to;
    bytes->zlib.avail_out = room;
    good = bytes->is_gzip ? inflate_some(bytes, line, error) : take_some(bytes, line, error);
    *got = room - bytes->zlib.avail_out;
    return good;
}
