# SPDX-License-Identifier: Apache-2.0
"""tree.py - a small source tree with ebb's own commands, so that these can be run to their end.

Its programs are called as ebb's are, and say how they were compiled. Its build and its test run a
script each, which a test may replace. No package is installed: dpkg-query says that all are there,
and so is a node.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

SOURCE = pathlib.Path(os.environ["EBB_SOURCE"])
COMMANDS = ["bench/run", "tests/run", "tests/tally.py", "python/setup.py", "python/pyproject.toml",
            "meson_options.txt"]
LIMIT = 120  # seconds; for what hangs

SCRIPTS = """\
custom_target('built', output: 'built', build_by_default: true,
  command: [find_program('sh'), files('build.sh'), '@OUTPUT@'])
test('tested', find_program('sh'), args: files('test.sh'))
"""
PROJECT = """\
project('ebb', 'c', version: '1.2.3', default_options: ['b_ndebug=false'])
add_project_arguments('-DCHECK="' + get_option('check') + '"', language: 'c')
subdir('bench/churn')
subdir('python/ebb')
""" + SCRIPTS
NO_C = "project('ebb', version: '1.2.3')\n" + SCRIPTS  # in half of the time: no compiler is tried
CHURN = """\
#include <stdio.h>
#ifndef __OPTIMIZE__
#define __OPTIMIZE__ 0
#endif
#ifdef NDEBUG
#define ASSERTS "without asserts"
#else
#define ASSERTS "with asserts"
#endif
int main(void)
{
    printf("checks %s, %s, optimized %d, of tree one\\n", CHECK, ASSERTS, __OPTIMIZE__);
    return 2; /* so that there is no report */
}
"""
FILES = {
    "build.sh": 'echo built >"$1"\n',
    "test.sh": "exit 0\n",
    "bench/traces/none": "",
    "bench/churn/churn.c": CHURN,
    "bench/churn/meson.build": "foreach name : ['churn', 'churn-replay', 'ebb-heap']\n"
                               "  executable(name, 'churn.c')\nendforeach\n",
    "python/ebb/__init__.py": "",
    "python/ebb/library": "tree one",
    "python/ebb/meson.build": "custom_target('library', input: 'library',\n"
                              "  output: '_ebb.abi3.so', command: ['cp', '@INPUT@', '@OUTPUT@'])\n",
}
RELEASE = "checks cheap, without asserts, optimized 1, of tree one"


class Tree:
    def __init__(self, folder, project=PROJECT):
        self.folder, self.project = pathlib.Path(folder), project
        for name, text in {**FILES, "meson.build": project}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in COMMANDS:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, path)

    def copy(self, folder):
        """With all that was built, as `cp -a` and `mv` leave it; then changed."""
        shutil.copytree(self.folder, folder)
        other = Tree.__new__(Tree)
        other.folder, other.project = pathlib.Path(folder), self.project
        for name in ("bench/churn/churn.c", "python/ebb/library"):
            path = other.folder / name
            path.write_text(path.read_text().replace("tree one", "tree two"))
        (other.folder / "meson.build").write_text(self.project.replace("1.2.3", "1.2.4"))
        return other

    def start(self, *command, **options):
        environment = {**os.environ, "BASH_FUNC_dpkg-query%%": "() { printf installed; }",
                       "BASH_FUNC_node%%": "() { :; }", **options.pop("environment", {})}
        return subprocess.Popen([str(word) for word in command], env=environment, text=True,
                                cwd=options.pop("cwd", self.folder), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    def run(self, *command, **options):
        """(exit code, what it said)."""
        with self.start(*command, **options) as process:
            said = process.communicate(timeout=LIMIT)[0]
        return process.returncode, said

    def bench(self, **options):
        return self.run(self.folder / "bench" / "run", "--quick", "--only", "churn", **options)

    def tests(self, *arguments, **options):
        return self.run(self.folder / "tests" / "run", *arguments, **options)

    def waits(self, script):
        """From now on that script takes LIMIT to end; gives the file that tells its process."""
        at_work = self.folder / "at_work"
        (self.folder / script).write_text(f"echo $$ >'{at_work}.new'\n"
                                          f"mv '{at_work}.new' '{at_work}'\nexec sleep {LIMIT}\n")
        return at_work


def wait_until(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


def is_alive(process):
    """One that has ended and that nobody has waited for is not."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    return "\nState:\tZ" not in status


def take_default_signals():
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
