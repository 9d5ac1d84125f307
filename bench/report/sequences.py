# SPDX-License-Identifier: Apache-2.0
"""sequences.py - packing and padding: how long ebb and torch take, in copies of the bytes.

Cases are `TASK_KIND_FEATURES`, as bench/sequence writes them. One picture for each kind: a row for
each task, a mark for each peer, where 1 is what copying (and filling) the same bytes costs. Without
torch there is one mark in a row.
"""

import quantity
import scale
from frame import Frame, figure, nothing
from markup import EMPTY, tag
from table import draw_by_metric

BENCH = "sequence"
TASKS = {"pack": "pack", "pad": "pad", "pad_batch_first": "pad, batch first",
         "pad_list": "pad a list", "unpack": "unpack", "join": "join"}
WIDTH, ROW = 420, 24


def kind_text(kind, features):
    return f"{kind}, {features} features" if features != "0" else f"{kind} tokens"


def points_of(results):
    """{kind: {task: {peer: copies}}} of the tasks that have a floor, in the order of the rows."""
    found = {}
    for case in results.case_names(BENCH):
        task, kind, features = (case.rsplit("_", 2) + ["", ""])[:3]
        over = results.value(BENCH, case, "ebb", "over_floor")
        gain = results.value(BENCH, case, "ebb", "faster_than_torch")
        if over is None or over <= 0 or not features:
            continue
        peers = {"ebb": over}
        if gain is not None and gain > 0:
            peers["torch"] = over * gain
        found.setdefault(kind_text(kind, features), {})[TASKS.get(task, task)] = peers
    return found


def draw_mark(frame, x, y, peer, words):
    frame.add("circle", cx=x, cy=y, r=4.5, class_="dot ebb" if peer == "ebb" else "dot",
              tip=f"{peer}: {words}")


def draw_row(frame, across, y, task, peers):
    places = [across.at(value) for value in peers.values()]
    frame.text(frame.left - 8, y + 4, task, text_anchor="end", class_="name malloc")
    frame.line(min(places), y, max(places), y, class_="axis")
    for peer, value in reversed(peers.items()):  # ebb on top
        draw_mark(frame, across.at(value), y, peer, f"{quantity.short(value)} copies")
    if "torch" in peers:
        gain = quantity.short(peers["torch"] / peers["ebb"])
        frame.text(max(places) + 9, y + 4, f"{gain}×", class_="value malloc")


def draw(by_task, title):
    """Rows from the top in the order of the tasks."""
    values = [value for peers in by_task.values() for value in peers.values()]
    if not values:
        return nothing("no figures")
    frame = Frame(WIDTH, 12 + ROW * len(by_task) + 40, left=108, right=50, top=8)
    across = scale.Scale(min([0.5, *values]), max([2.0, *values]), frame.left, frame.right,
                         log=True)
    frame.x_axis(across, "count", "time, copies of the same bytes", most=4)
    frame.line(across.at(1.0), frame.top, across.at(1.0), frame.bottom, class_="floorline")
    for row, (task, peers) in enumerate(by_task.items()):
        draw_row(frame, across, frame.top + ROW * (row + 0.5), task, peers)
    return frame.drawn(title)


def has_torch(results):
    return any("torch" in peers for by_task in points_of(results).values()
               for peers in by_task.values())


def lead_of(results):
    words = "64 sequences of 5 to 200 steps. A mark says how many times the copy (and fill) of " \
        "the same bytes a task takes; 1 is the line. "
    if has_torch(results):
        return words + "Coloured: ebb. Grey: torch on one thread, and how many times as long " \
            "it takes as ebb."
    return words + "torch is left out: python3-torch is not installed where this was measured."


def section(results):
    pictures = [figure(kind, draw(by_task, f"Packing and padding, {kind}"))
                for kind, by_task in points_of(results).items()]
    if not pictures:
        return EMPTY
    return tag("section", tag("h2", "Packing and padding"),
               tag("p", lead_of(results), class_="lead"),
               tag("div", tag("div", *pictures, class_="charts"), class_="card"),
               id="sequences")


def figures_table(results):
    return draw_by_metric(results, BENCH, results.case_names(BENCH),
                          "Packing and padding, every figure")
