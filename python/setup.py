# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: meson builds the extension, in a folder of its own."""

import pathlib
import re
import shutil
import subprocess

import setuptools
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPTIONS = ["--buildtype=release", "-Db_ndebug=true", "-Dcheck=off", "-Dtests=false",
           "-Dpython=enabled", "-Dwheel=true"]


class MesonExtension(build_ext):
    def build_extension(self, extension):
        build = pathlib.Path(self.build_temp).resolve() / "meson"
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        if not (build / "build.ninja").exists():
            subprocess.run(["meson", "setup", build, ROOT, *OPTIONS], check=True)
        made = "python/ebb/_ebb.abi3.so"
        subprocess.run(["ninja", "-C", build, made], check=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / made, target)


version = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
setuptools.setup(version=version, cmdclass={"build_ext": MesonExtension},
                 ext_modules=[setuptools.Extension("ebb._ebb", [], py_limited_api=True)],
                 options={"bdist_wheel": {"py_limited_api": "cp311"}})
