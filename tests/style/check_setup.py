#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_setup.py LOG - `meson setup` found nothing that Meson is going to do without.

What is missing on a machine is warned of by the build files themselves, and is no matter of this.
"""

import pathlib
import re
import sys

OLD = re.compile(r"uses feature (deprecated|introduced)|Deprecated features used|^DEPRECATION")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_setup.py LOG")
    lines = pathlib.Path(sys.argv[1]).read_text(errors="replace").splitlines()
    found = [line for line in lines if OLD.search(line)]
    right = lines and not found
    print(f"1..1\n{'ok' if right else 'not ok'} 1 - nothing_is_deprecated")
    for line in found:
        print(f"# {line}")
    return not right


if __name__ == "__main__":
    sys.exit(main())
