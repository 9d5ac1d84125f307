# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: meson builds the extension, in a folder of its own."""

import pathlib
import re
import shutil
import subprocess
import sys

import setuptools
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
OPTIONS = ["--buildtype=release", "-Db_ndebug=true", "-Dcheck=off", "-Dtests=false",
           "-Dpython=enabled", "-Dwheel=true"]


def project_text():
    """Of ebb's meson.build. In any other folder lies whatever its owner put there."""
    path = ROOT / "meson.build"
    text = path.read_text() if HERE.name == "python" and path.is_file() else ""
    if not re.search(r"^project\('ebb',", text, re.MULTILINE):
        sys.exit(f"setup.py: {ROOT} is not the source tree of ebb, which the package is built from")
    return text


def configure(build):
    """A folder that was configured for another tree, otherwise, or not to the end is made anew."""
    stamp, wanted = build / "setup.options", "\n".join([str(ROOT), *OPTIONS])
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    shutil.rmtree(build, ignore_errors=True)
    subprocess.run(["meson", "setup", build, ROOT, *OPTIONS], check=True)
    stamp.write_text(wanted)


class MesonExtension(build_ext):
    def build_extension(self, extension):
        build = pathlib.Path(self.build_temp).resolve() / "meson"
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        configure(build)
        made = "python/ebb/_ebb.abi3.so"
        subprocess.run(["ninja", "-C", build, made], check=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / made, target)


class NoSourceArchive(sdist):
    def run(self):
        sys.exit("setup.py: no sdist: libebb's sources lie outside of python/; build a wheel from "
                 "the source tree")


version = re.search(r"version: '([\d.]+)'", project_text())[1]
setuptools.setup(version=version,
                 cmdclass={"build_ext": MesonExtension, "sdist": NoSourceArchive},
                 ext_modules=[setuptools.Extension("ebb._ebb", [], py_limited_api=True)],
                 options={"bdist_wheel": {"py_limited_api": "cp311"}})
