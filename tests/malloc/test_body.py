#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What body.sh makes of functions that it can move, and of those that it cannot: BODY is its path,
OBJDUMP and NM those that it asks."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FUNCTION = """
.text
.globl {name}
.type {name}, @function
{name}:
{lines}
.size {name}, .-{name}
"""
PLAIN = "cmp $8, %rdi\nja ebb_jemalloc_slow\nmov ebb_jemalloc_table@GOTPCREL(%rip), %rax\nret"


class Body(unittest.TestCase):
    def make(self, lines, others="", **environment):
        """The macro of malloc(), where that is these lines, and what was said."""
        with tempfile.TemporaryDirectory(prefix="a folder ") as folder:
            source, made, output = (pathlib.Path(folder) / name for name in ("s.s", "s o", "s h"))
            source.write_text(others + "".join(
                FUNCTION.format(name="ebb_jemalloc_" + name, lines=text)
                for name, text in (("malloc", lines), ("free", PLAIN))))
            subprocess.run(["as", source, "-o", made], check=True)
            done = subprocess.run(
                [os.environ["BODY"], output, os.environ["OBJDUMP"], os.environ["NM"], made],
                check=True, capture_output=True, text=True, env={**os.environ, **environment})
            text = output.read_text()
            return text[:text.index("#define BODY_FREE_SLOW")], done.stderr

    def is_jumped_to(self, lines, others=""):
        macro, said = self.make(lines, others)
        self.assertIn('BODY_MALLOC_SLOW "ebb_jemalloc_malloc"', macro)
        self.assertNotIn(".byte", macro)
        self.assertIn("gates jump to it", said)

    def test_a_plain_function_is_moved(self):
        macro, said = self.make(PLAIN)
        self.assertIn('BODY_MALLOC_SLOW "ebb_jemalloc_slow"', macro)
        self.assertIn(".byte 0x48,0x83,0xff,0x08", macro)
        self.assertEqual(said, "")

    def test_it_is_the_same_in_other_languages(self):
        self.assertEqual(self.make(PLAIN), self.make(PLAIN, LC_ALL="C.UTF-8", LANGUAGE="de"))

    def test_one_with_a_frame_is_jumped_to(self):
        self.is_jumped_to("push %rbx\npop %rbx\nret")

    def test_what_has_no_name_here_is_jumped_to(self):
        self.is_jumped_to("mov other@GOTPCREL(%rip), %rax\nret")
        self.is_jumped_to("cmp $8, %rdi\nja local\nret", ".text\nlocal: ret\n.skip 300\n")

    def test_what_is_reached_from_where_it_lies_is_jumped_to(self):
        data = ".text\ndata: .quad 1, 2\n"
        self.is_jumped_to("mov data(%rip), %rax\nret", data)
        self.is_jumped_to("mov data(%rip), %rax", data)
        self.is_jumped_to("bnd jmp far", ".text\nfar: ret\n.skip 300\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
