# SPDX-License-Identifier: Apache-2.0
"""test_postgres.py - PostgreSQL: a process for each connection, forked; its books are right.

It does not run as root, so there it is another user's, who may not be able to read LIBRARY.
"""

import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import unittest

from kit import Case, KEPT, servers, until

NOBODY = 65534
SPIKE = "select cardinality(array_agg(repeat('x', 1000) || i)) from generate_series(1, 250000) i;\n"


def folder_of_programs():
    """Debian's are in no folder that is looked through for programs."""
    for root in (pathlib.Path(os.environ.get("PACKAGES") or "/"), pathlib.Path("/")):
        for found in root.glob("usr/lib/postgresql/*/bin"):
            if all((found / name).exists() for name in ("postgres", "initdb", "pgbench", "psql")):
                return found
    raise unittest.SkipTest("postgresql is not installed")


class Postgres(Case):
    def setUp(self):
        super().setUp()
        self.programs, self.as_user = folder_of_programs(), []
        if os.geteuid() == 0:  # setpriv itself must not have threads (docs/malloc.md, Limits)
            library = shutil.copy(self.way.env.pop("LD_PRELOAD"), self.here)
            self.as_user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                            "env", f"LD_PRELOAD={library}"]
            os.chown(self.here, NOBODY, NOBODY)
        self.way.run(*self.as_user, self.programs / "initdb", "-D", self.here / "base", "-A",
                     "trust", "-U", "me", "--no-sync")

    def client(self, name, *words):
        return [self.programs / name, "-h", self.here, "-U", "me", *words, "postgres"]

    def query(self, text):
        return self.plain.run(*self.client("psql", "-Atc", text)).strip()

    def pass_a_spike(self, running):
        """One session has 250 MB and frees them; it works on, and they go."""
        psql = self.plain.start(*self.client("psql", "-At"), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)

        def ask(text, answer):
            psql.stdin.write(text.encode())
            psql.stdin.flush()
            self.assertEqual(psql.stdout.readline(), answer)
        with psql:
            ask("select 1;\n", b"1\n")
            before = running.resident()
            peak = before
            psql.stdin.write(SPIKE.encode())
            psql.stdin.flush()
            while not select.select([psql.stdout], [], [], 0.02)[0]:
                peak = max(peak, running.resident())
            self.assertEqual(psql.stdout.readline(), b"250000\n")
            self.assertGreater(peak, before + 3 * KEPT, "there was no spike")

            def is_back():
                for _ in range(50):
                    ask("select 1;\n", b"1\n")
                return running.resident() <= before + KEPT
            self.assertTrue(until(is_back), f"{before} before, {running.resident()} after")

    def test_books_are_right_and_memory_comes_back(self):
        with self.runs(*self.as_user, self.programs / "postgres", "-D", self.here / "base", "-k",
                       self.here, "-c", "listen_addresses=", "-c", "fsync=off",
                       stop=signal.SIGINT) as running:
            servers.unix(self.here / ".s.PGSQL.5432").close()
            self.assertTrue(until(self.is_ready))
            self.plain.run(*self.client("pgbench", "-i", "-q", "-s", "1"))
            self.plain.run(*self.client("pgbench", "-c", "8", "-j", "2", "-t", "200"))
            sums = [self.query(f"select count(*), sum({column}) from pgbench_{table}")
                    .split("|") for table, column in
                    (("accounts", "abalance"), ("tellers", "tbalance"), ("branches", "bbalance"),
                     ("history", "delta"))]
            self.assertEqual([count for count, _ in sums], ["100000", "10", "1", "1600"])
            self.assertEqual(len({total for _, total in sums}), 1, sums)
            self.pass_a_spike(running)

    def is_ready(self):
        return subprocess.run(list(map(str, self.client("psql", "-Atc", "select 1"))),
                              env=self.plain.env, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(unittest.main())
