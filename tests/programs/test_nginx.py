# SPDX-License-Identifier: Apache-2.0
"""test_nginx.py - nginx: files, compressed, included and passed on, as they are; memory follows
while nobody asks for anything.

Workers are forked. They tell statistics once they have scopes, or have had much: before the crowd
comes with turns alone.
"""

import gzip
import http.client
import signal
import socket
import sys
import unittest

from kit import Case, HAS_TURNS, servers, until

FILES = {f"{i}.txt": f"line {i}\n" * (i * i * 10) for i in range(30)}
PARTS = range(9)
CROWD, HEAD = 300, b"x" * 990_000


class Nginx(Case):
    def setUp(self):
        super().setUp()
        self.find("nginx")
        self.port = servers.free_port()
        folder = self.here / "files"
        folder.mkdir()
        for name, text in FILES.items():
            (folder / name).write_text(text)
        (folder / "all.txt").write_text("".join(f'<!--#include file="{i}.txt" -->'
                                                for i in PARTS))
        self.wanted = {**FILES, "all.txt": "".join(FILES[f"{i}.txt"] for i in PARTS)}
        conf = servers.NGINX.format(here=self.here, port=self.port)
        (self.here / "conf").write_text(conf.replace("gzip on;", "gzip on; keepalive_timeout 5s; "
                                                     "client_header_buffer_size 1m;"))

    def serve(self):
        return self.runs("nginx", "-c", self.here / "conf", "-p", self.here, stop=signal.SIGQUIT)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def load(self, number):
        peer = self.connect()
        names = sorted(self.wanted)
        for i in range(400):
            name = names[(i * 7 + number) % len(names)]
            coding = {"Accept-Encoding": "gzip"} if i % 3 == 0 else {}
            peer.request("GET", ("/again/" if i % 4 == number else "/") + name, headers=coding)
            answer = peer.getresponse()
            body = answer.read()
            if answer.getheader("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            self.assertTrue(answer.status == 200 and body.decode() == self.wanted[name], name)
        peer.close()

    def crowd(self, running):
        """Many send a long head at once, all but its end; what is in memory then."""
        peers = [socket.create_connection(("127.0.0.1", self.port), 60) for _ in range(CROWD)]
        for peer in peers:
            peer.sendall(b"GET /7.txt HTTP/1.0\r\nX: " + HEAD)
        until(lambda: running.resident() > CROWD * len(HEAD))
        peak = running.resident()
        for peer in peers:
            peer.sendall(b"\r\n\r\n")
            with peer, peer.makefile("rb") as file:
                self.assertTrue(file.read().endswith(b"\r\n\r\n" + FILES["7.txt"].encode()))
        return peak

    def test_answers_are_right_and_memory_comes_back(self):
        with self.serve() as running:
            servers.wait_for(lambda: socket.create_connection(("127.0.0.1", self.port))).close()
            servers.on_threads(3, self.load)
            before = running.level()
            peak = self.crowd(running)
            self.check_comes_back(running, before, peak)
            if HAS_TURNS:
                self.assertGreater(running.told()["turn/scopes_total"], 100)
                self.check_nothing_is_lost(running, before[1])
            servers.on_threads(3, self.load)


if __name__ == "__main__":
    sys.exit(unittest.main())
