# SPDX-License-Identifier: Apache-2.0
"""servers.py - servers of `survive` under load: what they answer and hold, as text."""

import contextlib
import hashlib
import http.client
import signal
import socket
import subprocess
import threading
import time

from programs import Missing


@contextlib.contextmanager
def serving(way, *words, stop=signal.SIGTERM):
    """A server while it is used; it must end well when it is asked to."""
    server = way.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield server
        assert server.poll() is None, f"{words[0]} ended early: {server.returncode}"
        server.send_signal(stop)
        assert server.wait(30) in (0, -stop), f"{words[0]} ended with {server.returncode}"
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def wait_for(connect, seconds=30):
    end = time.monotonic() + seconds
    while True:
        try:
            return connect()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def unix(path):
    def connect():
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(str(path))
        return peer
    return wait_for(connect)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def on_threads(count, work):
    """What each thread's work returns; errors are raised here."""
    results = [None] * count

    def run(number):
        try:
            results[number] = work(number)
        except Exception as error:  # it is the result, then
            results[number] = error
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise AssertionError(f"a client: {result!r}") from result
    return results


# ---- redis

def redis_commands(count):
    for i in range(count):
        key = i * 7919 % 1009
        yield f"SET s{key} {'v' * (i % 3000)}{i}"
        yield f"HSET h{key % 50} f{i % 200} {'w' * (i % 100)}"
        yield f"RPUSH l{key % 20} {i}"
        yield f"ZADD z{key % 10} {i % 97} m{i % 500}"
        if i % 5 == 0:
            yield f"DEL s{(key + 500) % 1009}"
            yield f"APPEND s{key % 100} {'a' * 200}"
        if i % 50 == 0:
            yield f"SORT l{key % 20} DESC LIMIT 0 3"
            yield f"EVAL \"return redis.call('HLEN', 'h1') + {i}\" 0"


def redis(way):
    path = way.scratch / "socket"
    count, requests = (20000, 50000) if way.options.long else (3000, 10000)
    way.find("redis-benchmark")
    with serving(way, "redis-server", "--port", "0", "--unixsocket", path, "--save", "",
                 "--appendonly", "yes", "--enable-debug-command", "yes", "--dir", way.scratch):
        unix(path).close()
        way.run("redis-benchmark", "-s", path, "-n", requests, "-c", "20", "-r", "1000",
                "-q", "-d", "900", "-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100")
        cli = ["redis-cli", "-s", path]
        way.run(*cli, "FLUSHALL")
        answers = way.run(*cli, text="\n".join(redis_commands(count)))
        first = way.run(*cli, "DEBUG", "DIGEST")
        reloaded = way.run(*cli, "DEBUG", "RELOAD") + way.run(*cli, "BGREWRITEAOF")
        return (hashlib.sha256(answers.encode()).hexdigest() + "\n" + first + reloaded +
                way.run(*cli, "DEBUG", "DIGEST") + way.run(*cli, "DBSIZE"))


# ---- memcached

def memcached(way):
    path = way.scratch / "socket"
    count = 20000 if way.options.long else 3000

    def client(number):
        with unix(path) as peer, peer.makefile("rwb") as file:
            held = 0
            for i in range(count):
                value = bytes([i % 251]) * (i * 37 % 6000)
                key = f"k{number}_{i % 700}"
                file.write(f"set {key} 0 0 {len(value)}\r\n".encode() + value + b"\r\n")
                file.flush()
                assert file.readline() == b"STORED\r\n"
                file.write(f"get {key}\r\n".encode())
                file.flush()
                assert file.readline().split()[-1] == str(len(value)).encode()
                assert file.read(len(value) + 2) == value + b"\r\n"
                assert file.readline() == b"END\r\n"
                held += len(value)
            return held

    with serving(way, "memcached", "-u", "root", "-s", path, "-t", "4", "-m", "256"):
        held = on_threads(4, client)
        with unix(path) as peer, peer.makefile("rwb") as file:
            file.write(b"stats\r\n")
            file.flush()
            stats = {}
            while (line := file.readline()) != b"END\r\n":
                _, name, value = line.decode().split(maxsplit=2)
                stats[name] = value.strip()
    names = ["cmd_get", "cmd_set", "get_hits", "get_misses", "curr_items", "bytes", "evictions"]
    return f"{held} {[(name, stats[name]) for name in names]}\n"


# ---- nginx

NGINX = """
user root; worker_processes 2; daemon off; pid {here}/pid; error_log {here}/errors;
events {{ worker_connections 512; }}
http {{
    access_log {here}/access; gzip on; gzip_min_length 100; gzip_types *;
    client_body_temp_path {here}/body; proxy_temp_path {here}/proxy;
    fastcgi_temp_path {here}/fastcgi; uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;
    server {{
        listen 127.0.0.1:{port}; root {here}/files; ssi on; ssi_types *;
        location /again/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_buffering on; }}
    }}
}}
"""


def nginx(way):
    files, port = way.scratch / "files", free_port()
    files.mkdir()
    for i in range(30):
        (files / f"{i}.txt").write_text(f"line {i}\n" * (i * i * 10))
    (files / "all.txt").write_text("".join(f'<!--#include file="{i}.txt" -->' for i in range(9)))
    (way.scratch / "conf").write_text(NGINX.format(here=way.scratch, port=port))
    count = 2000 if way.options.long else 200

    def client(number):
        peer = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        seen = hashlib.sha256()
        for i in range(count):
            name = f"{i % 30}.txt" if i % 10 else "all.txt"
            where = "/again/" if i % 4 == number else "/"
            coding = {"Accept-Encoding": "gzip"} if i % 3 == 0 else {}
            peer.request("GET", where + name, headers=coding)
            answer = peer.getresponse()
            body = answer.read()
            assert answer.status == 200, answer.status
            seen.update(f"{answer.status} {name} {len(body)}".encode() + body)
        return seen.hexdigest()

    with serving(way, "nginx", "-c", way.scratch / "conf", "-p", way.scratch,
                 stop=signal.SIGQUIT):
        wait_for(lambda: socket.create_connection(("127.0.0.1", port))).close()
        seen = on_threads(3, client)
        try:
            said = way.run("wrk", "-t2", "-c40", f"-d{8 if way.options.long else 2}s",
                           f"http://127.0.0.1:{port}/all.txt")
            assert "Requests/sec" in said and "Socket errors" not in said, said
            assert "Non-2xx" not in said, said
        except Missing:
            pass
    return f"{seen}\n"


def chosen(_long):
    return [redis, memcached, nginx]
