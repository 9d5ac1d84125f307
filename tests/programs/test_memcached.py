# SPDX-License-Identifier: Apache-2.0
"""test_memcached.py - memcached: each client reads what it wrote, and what it has does not grow.

What it stores it keeps in pages of its own, whatever is deleted, and connections it keeps to use
them again. So it hardly frees, and all that can be seen is that crowd after crowd needs no more.
"""

import contextlib
import socket
import sys
import unittest

from kit import Case, MIB, servers

CLIENTS, MANY = 4, 300
VALUE = b"v" * 500_000


class Memcached(Case):
    def setUp(self):
        super().setUp()
        self.find("memcached")
        self.port = servers.free_port()

    def serve(self):
        return self.runs("memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-t",
                         "4", "-m", "256")

    @contextlib.contextmanager
    def connected(self):
        with servers.wait_for(lambda: socket.create_connection(("127.0.0.1", self.port), 60)) \
                as peer, peer.makefile("rwb") as file:
            yield file

    def ask(self, file, request, answer):
        file.write(request)
        file.flush()
        self.assertEqual(file.read(len(answer)), answer)

    def store(self, file, key, value):
        self.ask(file, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value), b"STORED\r\n")

    def load(self, number):
        with self.connected() as file:
            for i in range(3000):
                key, value = b"k%d_%d" % (number, i % 300), b"%d" % (i % 10) * (i * 37 % 6000)
                self.store(file, key, value)
                self.ask(file, b"get %s\r\n" % key,
                         b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value))
            self.ask(file, b"delete %s\r\n" % key, b"DELETED\r\n")
            self.ask(file, b"get %s\r\n" % key, b"END\r\n")

    def crowd(self):
        """Many at once, each of which reads something large and hangs up in the middle or after."""
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(self.connected()) for _ in range(MANY)]
            self.store(peers[0], b"large", VALUE)
            for peer in peers:
                peer.write(b"get large large large large\r\n")
                peer.flush()
            for peer in peers[::2]:
                for _ in range(4):
                    self.assertEqual(peer.readline(), b"VALUE large 0 %d\r\n" % len(VALUE))
                    self.assertEqual(peer.read(len(VALUE) + 2), VALUE + b"\r\n")
                self.assertEqual(peer.readline(), b"END\r\n")

    def in_use(self, running):
        """Beside the pages of what is stored."""
        with self.connected() as file:
            file.write(b"stats slabs\r\n")
            file.flush()
            while (words := file.readline().split())[1:2] != [b"total_malloced"]:
                self.assertNotEqual(words, [b"END"])
        return running.allocated() - int(words[2])

    def test_what_is_stored_is_read_and_crowds_need_no_more(self):
        with self.serve() as running:
            in_use = []
            for _ in range(8):
                servers.on_threads(CLIENTS, self.load)
                self.crowd()
                in_use.append(self.in_use(running))
            self.assertLess(min(in_use[-3:]), max(in_use[:-3]) + MIB // 4, in_use)


if __name__ == "__main__":
    sys.exit(unittest.main())
