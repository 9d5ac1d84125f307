# SPDX-License-Identifier: Apache-2.0
"""program.py - a process that is told lines and answers with lines: a server, a loop, a client.

What it says on standard error goes to a file that has no name, and is read when it is needed: a
pipe that nobody reads would hold up a program that says much. For each line it has PATIENCE_S.
"""

import os
import select
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 1800  # nothing that is measured takes nearly as long
END_S = 20
LAST_WORDS = 2000


class Failed(Exception):
    """A process did not do what it should; says what it said."""


class Program:
    """Started; to be stopped, or killed. One that does not answer says all on standard error."""

    def __init__(self, command, environment=None, answers=True):
        self.errors, self.heard = tempfile.TemporaryFile(), b""
        self.process = subprocess.Popen(command, env=environment, bufsize=0, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE if answers else self.errors,
                                        stderr=self.errors)
        self.pid = self.process.pid

    def has_ended(self):
        return self.process.poll() is not None

    def tell(self, line):
        try:
            self.process.stdin.write(f"{line}\n".encode())
        except BrokenPipeError:
            pass  # it has ended: what is read next says so

    def hear(self, otherwise="stopped answering"):
        """Its next line. If it ends or says none in time, it is given up as what is `otherwise`."""
        answers, end = self.process.stdout, time.monotonic() + PATIENCE_S
        while b"\n" not in self.heard:
            if not select.select([answers], [], [], max(0, end - time.monotonic()))[0]:
                self.give_up(f"{otherwise}: no line in {PATIENCE_S} s")
            piece = answers.read(1 << 16)
            if not piece:
                self.give_up(otherwise)
            self.heard += piece
        line, _, self.heard = self.heard.partition(b"\n")
        return line.decode(errors="replace")

    def hear_port(self):
        """Of a server, whose first line is `port N`."""
        words = self.hear("does not start").split()
        if len(words) != 2 or words[0] != "port" or not words[1].isdecimal():
            self.give_up("does not start")
        return int(words[1])

    def said(self):
        """On standard error, unless that was told already."""
        if self.errors.closed:
            return ""
        file = self.errors.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def give_up(self, why):
        self.kill()
        said = self.said()[-LAST_WORDS:]
        self.errors.close()
        raise Failed(f"{why}\n{said}".rstrip())

    def need(self, allocator):
        if not allocator.serves(self.pid):
            self.give_up("another allocator serves it")

    def kill(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    def stop(self):
        """Ends its input, which is its sign to end, and passes on what it said. Its exit status;
        None: it had to be killed."""
        self.process.stdin.close()
        try:
            status = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            status = None  # it does not listen
        self.kill()
        sys.stderr.write(self.said())
        self.errors.close()
        return status

    def end(self):
        """As stop(), of one that is to end by itself and well."""
        status = self.stop()
        if status is None:
            raise Failed(f"did not end within {END_S} s of its input's end")
        if status:
            raise Failed(f"ended with {status}" if status > 0 else f"ended by signal {-status}")
