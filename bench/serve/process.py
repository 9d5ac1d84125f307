# SPDX-License-Identifier: Apache-2.0
"""process.py - a server and its client, or a training loop, under one allocator."""

import json
import statistics

from program import Failed, Program

CONNECTIONS = 4
TURNS = 10  # of the timed requests, or steps
SPIKE_TIMES, SPIKE_REQUESTS = 20, 8
SETTLE, BEFORE, AFTER = 100, 20, 50  # normal requests around the spike; the first are not read
WARM_PART, WARM_LEAST = 4, 8  # steps of a loop before those that count
LEVEL = 20  # samples whose median is a level


def level(samples):
    return statistics.median(samples[-LEVEL:])


class Server:
    """Started; to be given a client, and to be stopped."""

    def __init__(self, command, allocator):
        self.program, self.client = Program(command, allocator.environment()), None
        self.port = self.program.hear_port()
        self.program.need(allocator)

    def connect(self, client):
        self.client = Program([str(client), str(self.program.pid), str(self.port),
                               str(CONNECTIONS)])

    def load(self, count, low, high, sample=0):
        """What ebb-load says about so many requests, as a dict."""
        self.client.tell(f"{count} {low} {high} {sample}")
        try:
            return json.loads(self.client.hear())
        except Failed as why:
            return self.program.give_up(why)

    def end(self):
        """Stops both, which must end well."""
        self.client.end()
        self.program.end()

    def stop(self):
        if self.client:
            self.client.stop()
        self.program.stop()


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


def many(course, case, count, figures):
    """`count` requests of mixed sizes, those before among them."""
    low, high = case.mixed
    before = course.sent
    left = count - before
    every = max(1, left // 100)
    done = course.load(left, low, high, every)
    figures["mixed_resident_ratio"] = level(done["resident"]) / figures["resident_bytes"]
    for at, resident in enumerate(done["resident"]):
        figures[f"mixed_resident_bytes.n{before + (at + 1) * every}"] = resident


def spike(course, case, figures, with_series):
    """SPIKE_REQUESTS of SPIKE_TIMES the normal size; the normal ones around them."""
    size = case.normal
    course.load(SETTLE, size, size)
    before = course.load(BEFORE, size, size, 1)["resident"]
    during = course.load(SPIKE_REQUESTS, size * SPIKE_TIMES, size * SPIKE_TIMES, 1)["resident"]
    after = course.load(AFTER, size, size, 1)["resident"]
    figures["spike_before_bytes"] = level(before)
    figures["spike_peak_bytes"] = max(during)
    figures["spike_after_bytes"] = after[-1]
    figures["spike_resident_ratio"] = after[-1] / level(before)
    for number, resident in enumerate(before + during + after if with_series else ()):
        figures[f"spike_resident_bytes.n{number}"] = resident


class Course:
    """What one process is put through: figures, processor time of each turn, what it computed:
    checksums by the stretch of the course, the same in all processes that go through it."""

    def __init__(self, case, allocator):
        self.case, self.allocator = case, allocator
        self.figures, self.turns, self.cpu, self.computed = {}, [], [], {}


class Serving(Course):
    """A server: warmed up, timed in turns with the others, then alone."""

    def __init__(self, case, allocator, client):
        super().__init__(case, allocator)
        self.client, self.server, self.stretch, self.sent = client, None, "turns", 0

    def load(self, count, low, high, sample=0):
        """As Server.load(). What comes after the long run has other numbers than without it."""
        done = self.server.load(count, low, high, sample)
        self.sent += count
        self.computed.setdefault(self.stretch, []).append(done["sum"])
        return done

    def begin(self):
        """The first requests, the 1,000 of mixed sizes that resident memory is compared with."""
        low, high = self.case.mixed
        self.server = Server(self.case.command(), self.allocator)
        self.server.connect(self.client)
        self.load(self.case.warm // 2, low, high)
        first = self.load(self.case.warm - self.case.warm // 2, low, high, 1)
        self.figures["resident_bytes"] = level(first["resident"])

    def take_turn(self):
        """What was given back by the clock while others had their turns is not to be timed."""
        self.load(self.case.timed // TURNS // 4, *self.case.mixed)
        self.turns.append(self.load(self.case.timed // TURNS, *self.case.mixed))

    def finish(self, mixed):
        """`mixed`: so many requests in the long run, or 0 for none."""
        self.figures.update(of_turns(self.turns))
        self.cpu = [turn["cpu_us"] / turn["requests"] for turn in self.turns]
        self.stretch = "after the long run" if mixed else "after the turns"
        if mixed:
            many(self, self.case, mixed, self.figures)
        spike(self, self.case, self.figures, bool(mixed))
        self.server.end()

    def stop(self):
        if self.server:
            self.server.stop()


class Training(Course):
    """A loop, which measures itself, in turns with the others."""

    program = None

    def begin(self):
        warm = max(WARM_LEAST, self.case.steps // WARM_PART)
        self.program = Program([*self.case.command(), str(warm)], self.allocator.environment())
        if self.program.hear("does not start").strip() != "ready":
            self.program.give_up("does not start")
        self.program.need(self.allocator)

    def take_turn(self):
        self.program.tell(max(1, self.case.steps // TURNS))
        self.turns.append(json.loads(self.program.hear()))

    def finish(self, _):
        self.program.end()
        self.cpu = [turn["cpu_ms"] for turn in self.turns]
        self.computed = {"turns": [turn["loss"] for turn in self.turns]}
        self.figures = {"cpu_ms_per_step": statistics.median(self.cpu),
                        "faults_per_step": statistics.mean(turn["faults"] for turn in self.turns),
                        "peak_bytes": self.turns[-1]["peak_bytes"]}

    def stop(self):
        if self.program:
            self.program.stop()
