# SPDX-License-Identifier: Apache-2.0
"""sweep.py - promotion of a step's tensors: time and pinned bytes by their size and share.

Metrics are `WHAT.bSIZE.nSURVIVORS`, as the case promote_objects writes them. Points that lack a
mode are drawn without it.
"""

import curves
import quantity
from frame import figure
from markup import tag
from table import framed, value_cell

CASE = "promote_objects"
MODES = ("copy", "relink", "auto")
COLUMNS = ("ns_copy", "ns_relink", "ns_auto", "auto_over_best", "pinned_bytes_relink",
           "pinned_bytes_auto")


def points_of(results):
    """{size: {what: {survivors: value}}}, sizes ascending."""
    found = {}
    for metric, value in results.metrics("micro", CASE, "ebb").items():
        what, _, size = (curves.split_metric(metric) or ("", "", 0))[0].rpartition(".b")
        if what and curves.is_digits(size):
            survivors = curves.split_metric(metric)[2]
            found.setdefault(int(size[:18]), {}).setdefault(what, {})[survivors] = value
    return dict(sorted(found.items()))


def figures(results):
    """A picture for each size: time against the number of survivors, a line for each mode."""
    for size, by_what in points_of(results).items():
        lines = {mode: sorted(by_what[f"ns_{mode}"].items()) for mode in MODES
                 if f"ns_{mode}" in by_what}
        words = quantity.bytes_text(size)
        yield figure(words, curves.draw(lines, "ns", "n", f"Tensors of {words} that survive"))


def point_row(size, survivors, by_what):
    return tag("tr", tag("th", quantity.bytes_text(size), scope="row", data_value=repr(size)),
               value_cell("count", survivors),
               *[value_cell(what, by_what.get(what, {}).get(survivors)) for what in COLUMNS])


def draw_table(results):
    rows = [point_row(size, survivors, by_what)
            for size, by_what in points_of(results).items()
            for survivors in sorted({n for points in by_what.values() for n in points})]
    heads = ["tensor", "survivors"] + [name.replace("_", " ") for name in COLUMNS]
    return framed(heads, rows, "Tensors of a step that survive it, by size and number") \
        if rows else None
