# SPDX-License-Identifier: Apache-2.0
"""test_rights.py - a process that becomes another user: what docs/malloc.md says of it (Limits)."""

import os
import signal
import subprocess
import sys
import unittest

from kit import Case

BECOME_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@unittest.skipIf(os.geteuid(), "for the superuser alone")
class Rights(Case):
    def become_nobody(self, *words, **environment):
        self.find("setpriv")
        return subprocess.run([*BECOME_NOBODY, *words, "id", "-u"], capture_output=True, text=True,
                              env={**self.plain.env, **environment})

    def test_with_threads_of_the_library_it_is_ended(self):
        """setpriv keeps its capabilities as it changes the user, and changes groups after that."""
        library = self.way.env["LD_PRELOAD"]
        told = self.way.env["EBB_MALLOC_STATS"]
        done = self.become_nobody(LD_PRELOAD=library, EBB_MALLOC_STATS=told)
        self.assertEqual(done.returncode, -signal.SIGABRT)

    def test_without_them_it_becomes_another_user(self):
        library = self.way.env["LD_PRELOAD"]
        self.here.chmod(0o777)
        told = f"EBB_MALLOC_STATS={self.here}/told"
        for words, environment in (((), {"LD_PRELOAD": library}),
                                   (("env", f"LD_PRELOAD={library}", told), {})):
            done = self.become_nobody(*words, **environment)
            self.assertEqual((done.returncode, done.stdout), (0, "65534\n"), done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
