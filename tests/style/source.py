# SPDX-License-Identifier: Apache-2.0
"""source.py - what the style rules look at: the files of the tree and the shape of C text.

C is not parsed, only split: comments, literals and preprocessor lines are replaced by blanks of
the same length, so line numbers stay, and what is left is matched by braces. That is enough for
code that has no unbalanced braces in macros, and the rules would notice (no function found).
"""

import functools
import pathlib
import re
import shutil
import subprocess

C_SUFFIXES = {".c", ".h"}
CODE_SUFFIXES = C_SUFFIXES | {".cc", ".cpp", ".hpp", ".rs", ".py", ".sh"}
CODE_NAMES = {"meson.build", "meson_options.txt"}

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.DOTALL)


def blanked(text):
    return re.sub(r"[^\n]", " ", text)


class Function:
    """A function with a body. Its lines run from the first of its head to its closing brace."""

    def __init__(self, path, name, first, last):
        self.path, self.name, self.first, self.last = path, name, first, last
        self.lines = last - first + 1

    def __str__(self):
        return f"{self.path}:{self.first}: {self.name}()"


class File:
    def __init__(self, root, path):
        self.path = path  # relative, with slashes
        self.parts = path.split("/")
        self.suffix = pathlib.PurePosixPath(path).suffix
        data = (root / path).read_bytes()
        self.is_text = b"\0" not in data
        self.text = data.decode("utf-8", "replace") if self.is_text else ""

    @property
    def lines(self):
        return self.text.splitlines()

    @property
    def is_c(self):
        return self.suffix in C_SUFFIXES

    @property
    def is_code(self):
        return (self.suffix in CODE_SUFFIXES or self.parts[-1] in CODE_NAMES
                or self.suffix == "" and self.text.startswith("#!"))

    def below(self, *folders):
        return any(self.path.startswith(folder + "/") for folder in folders)

    @functools.cached_property
    def uncommented(self):
        """The C text without comments."""
        return TOKEN.sub(lambda m: blanked(m[0]) if m["comment"] else m[0], self.text)

    @functools.cached_property
    def bare(self):
        """The C text without comments, literals and preprocessor lines."""
        text = TOKEN.sub(lambda m: blanked(m[0]), self.text)
        return DIRECTIVE.sub(lambda m: blanked(m[0]), text)

    def comment_lines(self):
        """(lines that are comment and nothing else, lines that carry a comment, all not blank)."""
        rest, whole, carrying, filled = self.uncommented.splitlines(), 0, 0, 0
        for line, code in zip(self.lines, rest):
            filled += bool(line.strip())
            carrying += len(code.strip()) < len(line.strip())
            whole += bool(line.strip()) and not code.strip()
        return whole, carrying, filled

    def includes(self):
        """(line, the file, True if quoted) of each #include."""
        pattern = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')
        for number, line in enumerate(self.uncommented.splitlines(), 1):
            found = pattern.match(line)
            if found:
                yield number, found[1] or found[2], found[2] is not None

    def functions(self):
        text, depth, head = self.bare, 0, 0
        for at in (m.start() for m in re.finditer(r"[{};]", text)):
            if text[at] == "{":
                if depth == 0 and re.fullmatch(r"\s*extern\s*", text[head:at]):
                    head = at + 1  # extern "C" { is no body
                    continue
                if depth == 0:
                    opened = at
                depth += 1
                continue
            if text[at] == "}" and depth > 0:
                depth -= 1
                if depth == 0:
                    name = function_name(text[head:opened])
                    if name:
                        start = head + re.match(r"\s*", text[head:opened]).end()
                        yield Function(self.path, name, text.count("\n", 0, start) + 1,
                                       text.count("\n", 0, at) + 1)
            if depth == 0:
                head = at + 1


def function_name(head):
    """The function whose body follows this text, or None if something else does."""
    head = ATTRIBUTE.sub("", head).strip()
    found = re.search(r"(\w+)\s*\(", head)
    return found[1] if found and head.endswith(")") and "=" not in head else None


class Tree:
    """All files that git tracks, and those that it neither tracks nor ignores."""

    def __init__(self, root):
        root = pathlib.Path(root)
        self.files = [File(root, path) for path in sorted(paths_of(root))]

    def code(self, *folders):
        return [f for f in self.files if f.is_code and (not folders or f.below(*folders))]

    def c(self, *folders):
        return [f for f in self.files if f.is_c and f.below(*folders)]

    def file(self, path):
        return next((f for f in self.files if f.path == path), None)


def paths_of(root):
    if (root / ".git").exists() and shutil.which("git"):
        command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached",
                   "--others", "--exclude-standard"]
        listing = subprocess.run(command, check=True, capture_output=True).stdout.decode()
        return {path for path in listing.split("\0") if path and (root / path).is_file()}
    found = (f.relative_to(root).as_posix() for f in root.rglob("*") if f.is_file())
    return {path for path in found if not path.startswith("build/")}
