# SPDX-License-Identifier: Apache-2.0
"""markup.py - pieces of HTML and SVG that cannot be broken out of.

Whatever comes from a results file is hostile until proven otherwise: a trace may be called
"<script>". So there is one way to make markup, tag(), and it escapes every attribute and every
child that is not itself made by tag(). No other module of the report writes a "<".
"""

import html


class Markup(str):
    """A piece that is finished: goes into a page as it is."""


EMPTY = Markup("")


def escaped(value):
    """Any value as text."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value), quote=True))


def joined(pieces):
    return Markup("".join(escaped(piece) for piece in pieces))


def attributes(values):
    """`class_` stands for class, and `_` inside a name for `-`. None and False: left out."""
    words = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        if isinstance(value, float):
            value = f"{value:.2f}".rstrip("0").rstrip(".")
        name = name.rstrip("_").replace("_", "-")
        words.append(f" {name}" if value is True else f' {name}="{escaped(value)}"')
    return "".join(words)


def tag(name, /, *children, **values):
    inner = joined(children)
    return Markup(f"<{name}{attributes(values)}>{inner}</{name}>")


def void(name, /, **values):
    """An element without an end: <meta>, <br>."""
    return Markup(f"<{name}{attributes(values)}>")


def trusted(text):
    """For the report's own style sheet and script, and for nothing else."""
    return Markup(text)
