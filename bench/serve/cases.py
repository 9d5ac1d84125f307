# SPDX-License-Identifier: Apache-2.0
"""cases.py - what is run: servers and the sizes of their requests, training loops and their steps.

`command()` is what starts one, or raises Absent with the reason why it cannot be had here.
"""

import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}  # as npm's packages name them


class Absent(Exception):
    """It is not installed; says what."""


class Place:
    """Where things are: the build folder, and what npm and the models were put into."""

    def __init__(self, build, fetched):
        self.build, self.fetched = build, fetched

    def package(self, name):
        folder = self.fetched / "node_modules" / name
        if not (folder / "package.json").is_file():
            raise Absent(f"npm's package {name} is not there")
        return folder

    def onnxruntime(self):
        machine = MACHINES.get(platform.machine(), platform.machine())
        found = sorted(self.package("onnxruntime-node").glob(
            f"bin/napi-v*/linux/{machine}/libonnxruntime.so.1"))
        if not found:
            raise Absent("the package onnxruntime-node has no library for this machine")
        return str(found[-1])

    def node(self):
        """The newer one that fetch.sh gets where the machine's is too old."""
        machine = MACHINES.get(platform.machine(), platform.machine())
        return self.fetched / "node_modules" / f"node-linux-{machine}" / "bin" / "node"

    def made(self, name):
        if not (self.fetched / name).is_file():
            raise Absent(f"{name} has not been made")
        return str(self.fetched / name)

    def program(self, *path):
        file = self.build.joinpath(*path)
        if not file.is_file():
            raise Absent(f"{file.name} is not built")
        return str(file)


def need_torch():
    if importlib.util.find_spec("torch") is None:
        raise Absent("python3-torch is not installed")


def version_of(node):
    """What it says, and the first number, of `v18.20.4`. One that tells none runs nothing else."""
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, errors="replace",
                              check=False)
    except OSError as why:
        raise Absent(f"{node} cannot be run: {why.strerror}") from why
    number = re.match(r"v(\d+)\.", done.stdout)
    if done.returncode or not number:
        raise Absent(f"{node} does not tell its version")
    return done.stdout.strip(), int(number[1])


def need_node(package=None, newer=None):
    """The program; where npm's package asks for a newer one, as `>=20`, that, or there is none."""
    node = shutil.which("node")
    if not node:
        raise Absent("node is not installed")
    told, version = version_of(node)
    if package:
        described = json.loads((package / "package.json").read_text(encoding="utf-8"))
        least = re.match(r">= *(\d+)", described.get("engines", {}).get("node", ""))
        if least and version < int(least[1]):
            if newer and newer.is_file():
                return str(newer)
            raise Absent(f"npm's package {package.name} needs node {least[1]}, not {told}")
    return node


class Serving:
    """A server. Sizes are tokens; `warm` requests, then `timed` ones that are measured;
    `most` in the long run. Without `scopes`, it opens none."""

    def __init__(self, command, normal=64, mixed=(16, 256), warm=1000, timed=3000, most=100_000,
                 scopes=True):
        self.command, self.normal, self.mixed = command, normal, mixed
        self.warm, self.timed, self.most, self.scopes = warm, timed, most, scopes

    def make_short(self):
        self.timed, self.most = min(self.timed, 1000), min(self.most, 5000)


class Training:
    """A loop. `steps` are measured, after some that are not."""

    scopes, most = True, 0

    def __init__(self, command, steps):
        self.command, self.steps = command, steps

    def make_short(self):
        self.steps //= 4


def ort_server(place, *more):
    return [place.program("bench", "serve", "ort-server"), place.onnxruntime(),
            place.made("model.onnx"), *more]


def node_server(place):
    place.onnxruntime()
    return [need_node(place.package("onnxruntime-node")), str(HERE / "node_server.js"),
            str(place.fetched), place.made("model.onnx"), str(place.build / "node")]


def llama_server(place):
    node = need_node(place.package("node-llama-cpp"), place.node())
    return [node, str(HERE / "llama_server.mjs"), str(place.fetched), place.made("model.gguf")]


def torch_server(place):
    need_torch()
    return [PYTHON, str(HERE / "torch_server.py"), str(place.build / "python")]


def training(place, name):
    need_torch()
    return [PYTHON, str(HERE / "train.py"), name, str(place.build / "python")]


STEPS = {"lstm": 120, "resnet18": 20, "transformer": 24, "elementwise": 60, "mlp": 1500}

PAIRS = (64, 1000)  # bytes
THREADS = (1, 2, 4, 8, 16)
SHORT = {"short": 0, "large": 100_000}  # bytes of the large block


def ort_loop(place, threads):
    return [place.program("bench", "serve", "ort-loop"), place.onnxruntime(),
            place.made("model.onnx"), str(threads)]


def short_loop(place, large, threads):
    return [place.program("bench", "serve", "ebb-short-loop"), str(large), str(threads)]


def loops(place):
    """Requests without a server, by threads: up to two for each processor."""
    found = {}
    for threads in THREADS:
        if threads > 2 * len(os.sched_getaffinity(0)):
            break
        found[f"loop-ort-t{threads}"] = Training(
            lambda threads=threads: ort_loop(place, threads), 40)
        for name, large in SHORT.items():
            found[f"loop-{name}-t{threads}"] = Training(
                lambda threads=threads, large=large: short_loop(place, large, threads), 400)
    return found


def all_cases(place):
    found = {
        "ort-c": Serving(lambda: ort_server(place)),
        "ort-c-arena": Serving(lambda: ort_server(place, "arena")),
        "ort-node": Serving(lambda: node_server(place)),
        "torch-cpp": Serving(lambda: [place.program("bench", "serve", "torch-server")], timed=1500),
        "torch-server": Serving(lambda: torch_server(place), timed=1500),
        "llama": Serving(lambda: llama_server(place), normal=16, mixed=(4, 64), warm=300,
                         timed=1000, most=20_000, scopes=False),
    }
    for size in PAIRS:
        found[f"pairs-{size}"] = Training(
            lambda size=size: [place.program("bench", "serve", "ebb-pairs"), str(size)], 100)
    found.update(loops(place))
    for name, steps in STEPS.items():
        found[f"train-{name}"] = Training(lambda name=name: training(place, name), steps)
    return found
