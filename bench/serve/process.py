# SPDX-License-Identifier: Apache-2.0
"""process.py - a server and its client, or a training loop, under one allocator."""

import json
import statistics
import subprocess
import sys

CONNECTIONS = 4
TURNS = 10  # of the timed requests, or steps
SPIKE_TIMES, SPIKE_REQUESTS = 20, 8
BEFORE, AFTER = 20, 50  # normal requests around the spike
WARM_PART, WARM_LEAST = 4, 8  # steps of a loop before those that count
LEVEL = 20  # samples whose median is a level


class Failed(Exception):
    """The process did not do what it should; says what it said."""


def start(command, allocator):
    return subprocess.Popen(command, env=allocator.environment(), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def level(samples):
    return statistics.median(samples[-LEVEL:])


class Server:
    """Started, with its client; to be stopped."""

    def __init__(self, command, allocator, client):
        self.allocator = allocator
        self.process = start(command, allocator)
        words = self.process.stdout.readline().split()
        if len(words) != 2 or words[0] != "port":
            self.give_up("does not start")
        if not allocator.serves(self.process.pid):
            self.give_up("another allocator serves it")
        self.client = subprocess.Popen(
            [str(client), str(self.process.pid), words[1], str(CONNECTIONS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def give_up(self, why):
        self.process.kill()
        _, said = self.process.communicate()
        raise Failed(f"{why}\n{said[-2000:]}")

    def load(self, count, low, high, sample=0):
        """What ebb-load says about so many requests, as a dict."""
        try:
            self.client.stdin.write(f"{count} {low} {high} {sample}\n")
            self.client.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.client.stdout.readline()
        if not line:
            self.give_up("stopped answering")
        return json.loads(line)

    def stop(self):
        try:
            self.client.communicate()
            self.process.stdin.close()  # its sign to end
            self.process.wait(20)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            pass  # it was given up, or does not listen
        self.process.kill()
        self.process.wait()
        if not self.process.stderr.closed:
            sys.stderr.write(self.process.stderr.read())


def of_turns(turns):
    """Figures of the timed requests: medians over the turns."""
    def median_of(value):
        return statistics.median(value(turn) for turn in turns)
    return {"cpu_us_per_request": median_of(lambda turn: turn["cpu_us"] / turn["requests"]),
            "requests_per_second": median_of(lambda turn: turn["requests"] / turn["seconds"]),
            "p50_us": median_of(lambda turn: turn["p50_us"]),
            "p99_us": median_of(lambda turn: turn["p99_us"]),
            "faults_per_request": sum(turn["faults"] for turn in turns) /
            sum(turn["requests"] for turn in turns)}


def many(server, case, count, figures):
    """`count` requests of mixed sizes, those before among them."""
    low, high = case.mixed
    left = count - case.warm - case.timed
    every = max(1, left // 100)
    done = server.load(left, low, high, every)
    figures["mixed_resident_ratio"] = level(done["resident"]) / figures["resident_bytes"]
    for at, resident in enumerate(done["resident"]):
        number = case.warm + case.timed + (at + 1) * every
        figures[f"mixed_resident_bytes.n{number}"] = resident


def spike(server, case, figures, with_series):
    """SPIKE_REQUESTS of SPIKE_TIMES the normal size; the normal ones around them."""
    size = case.normal
    server.load(BEFORE * 5, size, size)
    before = server.load(BEFORE, size, size, 1)["resident"]
    during = server.load(SPIKE_REQUESTS, size * SPIKE_TIMES, size * SPIKE_TIMES, 1)["resident"]
    after = server.load(AFTER, size, size, 1)["resident"]
    figures["spike_before_bytes"] = level(before)
    figures["spike_peak_bytes"] = max(during)
    figures["spike_after_bytes"] = after[-1]
    figures["spike_resident_ratio"] = after[-1] / level(before)
    for number, resident in enumerate(before + during + after if with_series else ()):
        figures[f"spike_resident_bytes.n{number}"] = resident


class Course:
    """What one process is put through: figures, processor time of each turn, what it computed."""

    def __init__(self, case, allocator):
        self.case, self.allocator = case, allocator
        self.figures, self.turns, self.cpu, self.computed = {}, [], [], None


class Serving(Course):
    """A server: warmed up, timed in turns with the others, then alone."""

    def __init__(self, case, allocator, client):
        super().__init__(case, allocator)
        self.client, self.server = client, None

    def begin(self):
        """The first requests, the 1,000 of mixed sizes that resident memory is compared with."""
        low, high = self.case.mixed
        self.server = Server(self.case.command(), self.allocator, self.client)
        self.server.load(self.case.warm // 2, low, high)
        first = self.server.load(self.case.warm - self.case.warm // 2, low, high, 1)
        self.figures["resident_bytes"] = level(first["resident"])

    def take_turn(self):
        """What was given back by the clock while others had their turns is not to be timed."""
        self.server.load(self.case.timed // TURNS // 4, *self.case.mixed)
        self.turns.append(self.server.load(self.case.timed // TURNS, *self.case.mixed))

    def end(self, mixed):
        """`mixed`: so many requests in the long run, or 0 for none."""
        self.figures.update(of_turns(self.turns))
        self.cpu = [turn["cpu_us"] / turn["requests"] for turn in self.turns]
        self.computed = ",".join(turn["sum"] for turn in self.turns)
        if mixed:
            many(self.server, self.case, mixed, self.figures)
        spike(self.server, self.case, self.figures, bool(mixed))

    def stop(self):
        if self.server:
            self.server.stop()


class Training(Course):
    """A loop, which measures itself, in turns with the others."""

    process = None

    def begin(self):
        warm = max(WARM_LEAST, self.case.steps // WARM_PART)
        self.process = start([*self.case.command(), str(warm)], self.allocator)
        if self.process.stdout.readline().strip() != "ready":
            self.give_up("does not start")
        if not self.allocator.serves(self.process.pid):
            self.give_up("another allocator serves it")

    def give_up(self, why):
        self.process.kill()
        raise Failed(f"{why}\n{self.process.communicate()[1][-2000:]}")

    def take_turn(self):
        try:
            self.process.stdin.write(f"{max(1, self.case.steps // TURNS)}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            self.give_up("stopped answering")
        self.turns.append(json.loads(line))

    def end(self, _):
        self.cpu = [turn["cpu_ms"] for turn in self.turns]
        self.computed = tuple(turn["loss"] for turn in self.turns)
        self.figures = {"cpu_ms_per_step": statistics.median(self.cpu),
                        "faults_per_step": statistics.mean(turn["faults"] for turn in self.turns),
                        "peak_bytes": self.turns[-1]["peak_bytes"]}

    def stop(self):
        if self.process and self.process.poll() is None:
            sys.stderr.write(self.process.communicate()[1])
