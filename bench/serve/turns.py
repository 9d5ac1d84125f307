#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""turns.py BUILD [--packages FOLDER] [--fetched FOLDER] [--rounds N] [--servers LIST] [--ways LIST]

What turns that are scopes do to servers that open none themselves: each server under glibc,
libebb-malloc, and libebb-malloc with EBB_MALLOC=turns:wait or turns:receive, one process after the
other, in each of the rounds. Four clients send what is normal, then twelve large requests, then
what is normal again. libebb-malloc writes statistics, so that its thread gives memory back in idle
time, with turns and without.

    instructions_u, _k     for a request, of the program and of the kernel (they need perf); these
                           vary least
    cpu_us                 processor time of the process, for a request
    warm, peak, after      resident MiB before the large requests, the most of it, and 500 normal
                           ones later
    idle                   the same after four idle seconds
    turns, blocks          scopes, and what was allocated in them
    survived               trays pinned and large blocks kept by them

Rows `turns TAB server TAB way TAB metric TAB median TAB least TAB most` over the rounds. Answers
must be the same for all. BUILD is a build folder. --packages is where tests/malloc/survive --fetch
has put redis, memcached and nginx, --fetched what bench/run has fetched for onnxruntime. What is
missing is left out, and named; so is a way in which a server fails, or another allocator serves it.
Exit status: 1 if something failed or answers differ, 2 for wrong arguments, 3 if nothing of it can
be run here.
"""

import argparse
import array
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import cases
import program
from allocators import Allocator
from chosen import check
from program import Failed, Program

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS, WARM, MEASURED, SPIKE, AFTER, IDLE_S = 4, 1500, 3000, 12, 500, 4
WAYS = {"glibc": None, "ebb": "idle_ms:1000", "wait": "turns:wait", "receive": "turns:receive"}
NOTHING_RUNS = 3  # the exit status
SILENT = ("redis", "memcached", "nginx")  # they are told their port


# ---- what clients say; each returns what was answered

def line_of(peer):
    line = peer.readline()
    if not line:
        raise Failed("hangs up")
    return line


def http(peer, method, path, body=b""):
    peer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n"
               f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    peer.flush()
    if b" 200 " not in (said := line_of(peer)):
        raise Failed(f"answers {said}")
    head = b""
    while (line := line_of(peer)).strip():
        head += line.lower()
    if b"transfer-encoding: chunked" not in head:
        return peer.read(int(head.partition(b"content-length:")[2].split()[0]))
    said = b""
    while (length := int(line_of(peer), 16)):
        said += peer.read(length + 2)[:-2]
    line_of(peer)
    return said


def resp(peer, *words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    peer.write(b"".join(parts))
    peer.flush()
    line = line_of(peer)
    return peer.read(int(line[1:]) + 2) if line[:1] == b"$" and line[1:2] != b"-" else line


def ask_redis(peer, dice, times):
    key = dice.randrange(5000)
    value = b"v" * (dice.randrange(20, 800) * times)
    names = {letter: f"{letter}{dice.own}_{key % many}"
             for letter, many in (("s", 5000), ("h", 100), ("l", 50))}
    return b"".join(resp(peer, *words) for words in (
        ("SET", names["s"], value), ("GET", f"s{dice.own}_{dice.randrange(5000)}"),
        ("HSET", names["h"], f"f{key % 313}", value[:100]), ("LPUSH", names["l"], value[:200]),
        ("LTRIM", names["l"], 0, 99)))


def ask_memcached(peer, dice, times):
    value = b"v" * min(dice.randrange(20, 800) * times, 900_000)
    peer.write(b"set %d_%d 0 0 %d\r\n%s\r\n" % (dice.own, dice.randrange(5000), len(value), value))
    peer.flush()
    said = line_of(peer)
    peer.write(b"get %d_%d\r\n" % (dice.own, dice.randrange(5000)))
    peer.flush()
    while (line := line_of(peer)) != b"END\r\n":
        said += line
    return said


def ask_nginx(peer, dice, times):
    body = http(peer, "GET", "/again/large" if times > 1 else f"/{dice.randrange(20)}")
    return b"%d" % len(body)


def ask_tokens(peer, dice, times):
    tokens = array.array("i", (dice.randrange(256) for _ in range(dice.randrange(16, 64) * times)))
    return http(peer, "POST", "/", tokens.tobytes())


def ask_json(peer, dice, times):
    words = [{"key": dice.randrange(1000), "text": "x" * dice.randrange(50)}
             for _ in range(50 * times)]
    return http(peer, "POST", "/", json.dumps(words).encode())


# ---- servers: how they are started, and what is asked

NGINX = """
user root; worker_processes 1; master_process off; daemon off; pid {here}/pid; error_log {here}/e;
events {{ worker_connections 512; }}
http {{
    access_log off; gzip on; gzip_min_length 100; gzip_types *; gzip_http_version 1.1;
    keepalive_requests 1000000; default_type text/plain;
    client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;
    uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
    server {{
        listen 127.0.0.1:{port}; root {here}; ssi on; ssi_types *;
        location /again/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_buffering on; }}
    }}
}}
"""


def nginx(place, here, port):
    for number in range(20):
        (here / str(number)).write_text(f"line {number}\n" * (number + 1) * 100)
    (here / "large").write_text("".join(f'<!--#include file="{i % 20}" -->\n' for i in range(200)))
    (here / "conf").write_text(NGINX.format(here=here, port=port))
    return [place.find("nginx"), "-c", str(here / "conf"), "-p", str(here)]


class Place(cases.Place):
    """And Debian's packages, unpacked."""

    def __init__(self, options):
        super().__init__(options.build, options.fetched)
        self.packages = options.packages
        self.allocators = {way: Allocator("ebb" if settings else "glibc", options.build)
                           for way, settings in WAYS.items()}

    def find(self, name):
        path = os.environ["PATH"] + ":/usr/sbin"
        if self.packages:
            path = f"{self.packages}/usr/bin:{self.packages}/usr/sbin:{path}"
        found = shutil.which(name, path=path)
        if not found:
            raise cases.Absent(f"{name} is not installed")
        return found

    def environment(self, way):
        found = self.allocators[way].environment()
        if self.packages:
            found["LD_LIBRARY_PATH"] = f"{self.packages}/usr/lib/x86_64-linux-gnu"
        if WAYS[way]:
            found["EBB_MALLOC"] = WAYS[way]
        return found

    def check(self, process, way):
        allocator = self.allocators[way]
        if not allocator.path and not allocator.serves(process.pid):
            raise cases.Absent("it is linked with an allocator")
        process.need(allocator)


def loop_server(what):
    return [cases.PYTHON, str(HERE / "loop_server.py"), what]


# name: (what is started, what is asked, how many times the normal is large)
SERVERS = {
    "redis": (lambda place, here, port: [
        place.find("redis-server"), "--port", str(port), "--save", "", "--dir", str(here)],
              ask_redis, 2000),
    "memcached": (lambda place, here, port: [
        place.find("memcached"), "-u", "root", "-p", str(port), "-l", "127.0.0.1", "-t", "2"],
                  ask_memcached, 1000),
    "nginx": (nginx, ask_nginx, 20),
    "asyncio-json": (lambda place, here, port: loop_server("json"), ask_json, 200),
    "asyncio-torch": (lambda place, here, port: cases.need_torch() or loop_server("torch"),
                      ask_tokens, 20),
    "node-json": (lambda place, here, port: [cases.need_node(), str(HERE / "json_server.js")],
             ask_json, 200),
    "ort-node": (lambda place, here, port: cases.node_server(place), ask_tokens, 20),
    "ort-c": (lambda place, here, port: cases.ort_server(place), ask_tokens, 20),
    "torch-server": (lambda place, here, port: cases.torch_server(place), ask_tokens, 20),
    "torch-cpp": (lambda place, here, port: [place.program("bench", "serve", "torch-server")],
                  ask_tokens, 20),
}


# ---- a process under load

def connect(process, port):
    end = time.monotonic() + 30
    while True:
        try:
            peer = socket.create_connection(("127.0.0.1", port), program.PATIENCE_S)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return peer.makefile("rwb", buffering=1 << 20)
        except OSError:
            if process.has_ended() or time.monotonic() > end:
                process.give_up("does not start")
            time.sleep(0.05)


class Dice(random.Random):
    """A client's; its number keeps apart what the clients store."""

    def __init__(self, own):
        super().__init__(own)
        self.own = own


class Running:
    """A server, its clients, and what they heard."""

    def __init__(self, process, port, ask, times):
        self.pid, self.ask, self.times = process.pid, ask, times
        self.clients = [(connect(process, port), Dice(number), hashlib.sha256())
                        for number in range(CLIENTS)]

    def load(self, count, large=False):
        def send(client):
            peer, dice, heard = client
            for _ in range(count // CLIENTS):
                heard.update(self.ask(peer, dice, self.times if large else 1))
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as threads:
            for _ in threads.map(send, self.clients):
                pass

    def resident(self):
        fields = pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2 ** 20

    def cpu_us(self):
        return time.clock_gettime(~self.pid << 3 | 2) * 1e6

    def counted(self, count):
        """{metric: value a request}"""
        perf = shutil.which("perf")
        counter = None
        if perf:
            counter = subprocess.Popen(
                [perf, "stat", "-x,", "-e", "instructions:u,instructions:k", "-p",
                 str(self.pid)], stderr=subprocess.PIPE, text=True)
            time.sleep(0.3)
        before = self.cpu_us()
        self.load(count)
        found = {"cpu_us": (self.cpu_us() - before) / count}
        if counter:
            counter.send_signal(2)
            said = counter.communicate()[1]
            for number, which in re.findall(r"^(\d+),.*instructions:(.)", said, re.MULTILINE):
                found[f"instructions_{which}"] = int(number) / count
        return found


def statistics_of(file):
    """What scopes did, as the live view tells."""
    if not file.exists():
        return {}
    total = {}
    for name, value in re.findall(r"^ +(\w+) +(\d+)$", file.read_text(), re.MULTILINE):
        total[name] = total.get(name, 0) + int(value)
    return {"turns": total.get("scopes_total", 0), "blocks": total.get("scope_blocks_total", 0),
            "survived": total.get("scope_pinned_trays_total", 0) +
            total.get("scope_survivors_total", 0)}


def course(running):
    figures = {}
    running.load(WARM)
    figures["warm"] = running.resident()
    figures.update(running.counted(MEASURED))
    for _ in range(SPIKE // CLIENTS):
        running.load(CLIENTS, large=True)
        figures["peak"] = max(figures.get("peak", 0), running.resident())
    running.load(AFTER)
    figures["after"] = running.resident()
    time.sleep(IDLE_S)
    figures["idle"] = running.resident()
    return figures


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(place, server, way, here):
    """(program, its port), with statistics in a file of that folder"""
    port, environment = free_port(), place.environment(way)
    if WAYS[way]:
        environment["EBB_MALLOC_STATS"] = str(here / "stats")
    return Program(SERVERS[server][0](place, here, port), environment, server not in SILENT), port


def measure(place, server, way):
    """(figures, what was heard)"""
    _, ask, times = SERVERS[server]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        here = pathlib.Path(folder)
        process, port = started(place, server, way, here)
        stack.callback(process.kill)
        try:
            port = port if server in SILENT else process.hear_port()
            running = Running(process, port, ask, times)
            place.check(process, way)
            figures = course(running)
        except (Failed, OSError, ValueError, IndexError) as why:
            process.give_up(why)
        figures.update(statistics_of(here / "stats"))
        return figures, " ".join(heard.hexdigest() for _, _, heard in running.clients)


def options_of():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("--fetched", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", default=",".join(SERVERS))
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.fetched = (options.fetched or options.build.parent / "serve").resolve()
    options.servers, options.ways = options.servers.split(","), options.ways.split(",")
    check(parser, options.rounds, "server or way", ("--servers", options.servers, SERVERS),
          ("--ways", options.ways, WAYS))
    return options


def tell(text):
    print(f"turns: {text}", file=sys.stderr, flush=True)


def present(place, options):
    """The servers and ways that can be had; says which cannot."""
    ways = [way for way in options.ways if not place.allocators[way].absent]
    servers = []
    for way in options.ways:
        if way not in ways:
            tell(f"left out: {way}, libebb-malloc is not there")
    for server in options.servers if ways else ():
        try:
            with tempfile.TemporaryDirectory() as folder:
                SERVERS[server][0](place, pathlib.Path(folder), 0)
            servers.append(server)
        except cases.Absent as why:
            tell(f"left out: {server}, {why}")
    return servers, ways


class Seen:
    """What the rounds of a server showed. A way that failed once is left out of it."""

    def __init__(self):
        self.figures, self.heard, self.failed = {}, set(), False

    def take(self, place, server, way):
        """Whether all went well."""
        try:
            figures, answers = measure(place, server, way)
        except (cases.Absent, Failed, OSError) as why:
            tell(f"left out: {server}, {way}: {why}")
            self.failed = self.failed or not isinstance(why, cases.Absent)
            self.figures.pop(way, None)
            return False
        self.heard.add(answers)
        for metric, value in figures.items():
            self.figures.setdefault(way, {}).setdefault(metric, []).append(value)
        return True

    def print_rows(self, server):
        for way, metrics in self.figures.items():
            for metric, values in metrics.items():
                print(f"turns\t{server}\t{way}\t{metric}\t{statistics.median(values):.6g}\t"
                      f"{min(values):.6g}\t{max(values):.6g}", flush=True)


def main():
    options = options_of()
    place, good, shown = Place(options), True, False
    servers, ways = present(place, options)
    for server in servers:
        seen, left = Seen(), ways
        for _ in range(options.rounds):
            left = [way for way in left if seen.take(place, server, way)]
        seen.print_rows(server)
        if len(seen.heard) > 1:
            tell(f"answers of {server} differ")
        good = good and not seen.failed and len(seen.heard) <= 1
        shown = shown or bool(seen.figures)
    if good and not shown:
        tell("nothing is left to run")
        return NOTHING_RUNS
    return not good


if __name__ == "__main__":
    sys.exit(main())
