#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_wheel.py SOURCE - the wheel is built by its back end, and serves without anything else."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

NEEDED = ["meson.build", "meson_options.txt", "include", "node", "runtime", "python"]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
USE = """
import ebb, numpy
assert "/wheel/" in ebb.__file__, ebb.__file__
assert ebb.Pool("shared").send([numpy.arange(3)]).open()[0].sum() == 3
print(ebb.__version__)
"""


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                            **options)
    if result.returncode != 0:
        print(f"# {result.stdout[-3000:]}\n# {result.stderr[-3000:]}".replace("\n", "\n# "))
        print("not ok 1 - wheel")
        sys.exit(1)
    return result.stdout


def main():
    source = pathlib.Path(sys.argv[1])
    print("1..1", flush=True)
    try:
        import wheel  # noqa: F401
    except ImportError as error:
        print(f"ok 1 - wheel # SKIP {error}")
        return
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for part in NEEDED:
            copy = shutil.copytree if (source / part).is_dir() else shutil.copy
            copy(source / part, scratch / part)
        run(sys.executable, "-c", BUILD, scratch, cwd=scratch / "python",
            env={**os.environ, "PATH": "/usr/bin:" + os.environ["PATH"],
                 "CFLAGS": "-O0"})  # how fast it is does not matter here
        made, = scratch.glob("ebb-*-cp311-abi3-*.whl")
        zipfile.ZipFile(made).extractall(scratch / "wheel")
        said = run(sys.executable, "-B", "-c", USE, cwd="/",
                   env={**os.environ, "PYTHONPATH": str(scratch / "wheel")})
        if f"-{said.strip()}-" not in made.name:
            print(f"not ok 1 - wheel\n# {made.name} holds {said}")
            sys.exit(1)
    print("ok 1 - wheel")


if __name__ == "__main__":
    main()
