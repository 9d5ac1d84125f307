# SPDX-License-Identifier: Apache-2.0
"""run_example.py FILE - runs it; 77, which means skipped, if torch or numpy is not installed."""

import importlib.util
import pathlib
import subprocess
import sys

file = pathlib.Path(sys.argv[1])
text = file.read_text(encoding="utf-8")
for library in ("torch", "numpy"):
    if f"import {library}" in text and not importlib.util.find_spec(library):
        print(f"{library} is not installed")
        sys.exit(77)
sys.exit(subprocess.run([sys.executable, "-B", file]).returncode)
