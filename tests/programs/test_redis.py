# SPDX-License-Identifier: Apache-2.0
"""test_redis.py - redis: what was stored is read again, and memory follows what is stored."""

import random
import socket
import sys
import unittest

from kit import Case, MIB, servers, until

SPIKE = 300 * MIB


class Client:
    """Speaks redis's protocol; an answer is bytes, a number, or a list of such."""

    def __init__(self, port):
        self.peer = servers.wait_for(lambda: socket.create_connection(("127.0.0.1", port), 60))
        self.file = self.peer.makefile("rwb")

    def ask(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.file.write(b"".join(parts))
        self.file.flush()
        return self.answer()

    def answer(self):
        kind, rest = (line := self.file.readline())[:1], line[1:].strip()
        assert kind in b"+:$*", line
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def close(self):
        self.file.close()
        self.peer.close()


class Shadow:
    """Commands at random, beside dicts that have the same."""

    def __init__(self, client, seed):
        self.client, self.dice = client, random.Random(seed)
        self.strings, self.lists = {}, {}

    def play(self, count):
        for _ in range(count):
            key = f"k{self.dice.randrange(300)}"
            value = b"%d" % self.dice.randrange(9) * self.dice.randrange(1, 5000)
            self.dice.choice((self.set, self.push, self.delete, self.read))(key, value)
        assert self.client.ask("DBSIZE") == len(self.strings) + len(self.lists)

    def set(self, key, value):
        self.client.ask("SET", key, value)
        self.strings[key] = value

    def push(self, key, value):
        self.client.ask("RPUSH", "l" + key, value)
        self.lists.setdefault(key, []).append(value)

    def delete(self, key, _):
        assert self.client.ask("DEL", key) == (self.strings.pop(key, None) is not None)

    def read(self, key, _):
        assert self.client.ask("GET", key) == self.strings.get(key)
        assert self.client.ask("LRANGE", "l" + key, 0, -1) == self.lists.get(key, [])


class Redis(Case):
    def setUp(self):
        super().setUp()
        self.find("redis-server", "redis-benchmark")
        self.port = servers.free_port()

    def serve(self):
        return self.runs("redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save",
                         "", "--enable-debug-command", "yes", "--dir", self.here, "--logfile",
                         self.here / "log")

    def connect(self):
        client = Client(self.port)
        self.addCleanup(client.close)
        return client

    def load(self):
        self.plain.run("redis-benchmark", "-p", self.port, "-n", 5000, "-c", 20, "-r", 1000, "-q",
                       "-d", 900, "-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100")

    def test_what_is_stored_is_read_and_survives_a_fork(self):
        """DEBUG RELOAD writes all of it and reads it; BGSAVE does so in a child."""
        with self.serve():
            client = self.connect()
            shadow = Shadow(client, 7)
            shadow.play(8000)
            digest = client.ask("DEBUG", "DIGEST")
            self.assertEqual(client.ask("DEBUG", "RELOAD"), b"OK")
            self.assertEqual(client.ask("DEBUG", "DIGEST"), digest)
            client.ask("BGSAVE")
            shadow.play(4000)
            self.assertTrue(until(lambda: b"rdb_bgsave_in_progress:0" in
                                  client.ask("INFO", "persistence")))
            self.assertIn(b"rdb_last_bgsave_status:ok", client.ask("INFO", "persistence"))
            shadow.play(100)

    def test_memory_comes_back(self):
        with self.serve() as running:
            client = self.connect()
            self.load()
            client.ask("FLUSHALL")
            before = running.level()
            client.ask("DEBUG", "POPULATE", SPIKE // 1000, "key", 900)
            peak = running.resident()
            self.load()
            client.ask("FLUSHALL")
            self.check_comes_back(running, before, peak)
            self.check_nothing_is_lost(running, before[1])
            self.load()


if __name__ == "__main__":
    sys.exit(unittest.main())
