# SPDX-License-Identifier: Apache-2.0
"""way.py - how a real program is run: whose malloc() it has, where, and with which packages."""

import os
import pathlib
import shutil
import subprocess

import programs


class Way:
    """How programs are run: whose malloc() they have, and where."""

    def __init__(self, libraries, scratch, options, **environment):
        self.scratch, self.options = scratch, options
        self.source = pathlib.Path(__file__).resolve().parents[2]
        self.env = {key: value for key, value in os.environ.items()
                    if key not in ("LD_PRELOAD", "MALLOC_PERTURB_", "PYTHONPATH")}
        self.env |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(scratch),
                     "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
                     "EBB_TURNS": str(scratch.parent / "turns")}
        self.env |= environment
        if libraries:
            self.env["LD_PRELOAD"] = " ".join(str(library) for library in libraries)
        if options.packages and options.packages.exists():
            root = options.packages.resolve()
            self.env["PATH"] = f"{root}/usr/bin:{root}/usr/sbin:{self.env['PATH']}"
            self.env["LD_LIBRARY_PATH"] = f"{root}/usr/lib/x86_64-linux-gnu"
            self.env["PYTHONPATH"] = f"{root}/usr/lib/python3.11"
        self.env["PATH"] = "/usr/bin:/bin:/usr/sbin:" + self.env["PATH"]

    def find(self, program):
        found = shutil.which(program, path=self.env["PATH"])
        if not found:
            raise programs.Missing(program)
        return found

    def start(self, *words, **options):
        return subprocess.Popen([self.find(words[0]), *map(str, words[1:])], env=self.env,
                                cwd=self.scratch, **options)

    def run(self, *words, text="", timeout=600, status=0, **environment):
        """All that the program says; names of folders left out. It must end with that status: what
        fails at once says the same in all ways. None is any."""
        done = subprocess.run([self.find(str(words[0])), *map(str, words[1:])], cwd=self.scratch,
                              input=text.encode(), env={**self.env, **environment},
                              timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = done.stdout.decode(errors="replace").replace(str(self.scratch), "HERE")
        assert status in (None, done.returncode), \
            f"{words[0]} ended with {done.returncode}: {said[-500:]}"
        return said
