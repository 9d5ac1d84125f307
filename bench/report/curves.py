# SPDX-License-Identifier: Apache-2.0
"""curves.py - one figure over a range of counts or sizes: lines on logarithmic axes."""

import kin
import quantity
import scale
from frame import Frame, nothing

WIDTH, HEIGHT = 420, 270


def is_digits(text):
    """Those of ASCII: others, and what is raised above the line, are no numbers of ours."""
    return text.isascii() and text.isdigit()


def split_metric(metric):
    """("ns_close", "n", 1000.0) of "ns_close.n1000"; None if it is no point of a curve."""
    prefix, dot, point = metric.rpartition(".")
    if not dot or len(point) < 2 or point[0] not in "nb" or not is_digits(point[1:]):
        return None
    return prefix, point[0], float(point[1:][:18])


def curves_of(results, bench, case):
    """{(prefix, tag): {allocator: [(x, y)]}}, sorted by x."""
    found = {}
    for allocator in kin.in_order(results.allocator_names(bench, case)):
        for metric, value in results.metrics(bench, case, allocator).items():
            parts = split_metric(metric)
            if parts:
                lines = found.setdefault(parts[:2], {})
                lines.setdefault(allocator, []).append((parts[2], value))
    for lines in found.values():
        for points in lines.values():
            points.sort()
    return found


def place_names(ends, top, bottom):
    """Heights for the names at the lines' ends, at least 12 apart and within the frame."""
    heights, last = {}, top - 12
    for name, y in sorted(ends.items(), key=lambda item: item[1]):
        last = heights[name] = max(y, last + 12)
    surplus = max(0, last - bottom)
    return {name: y - surplus for name, y in heights.items()}


def draw_curve(frame, name, points, across, up, words):
    css = kin.family(name)
    places = [(across.at(x), up.at(y)) for x, y in points]
    frame.path(places, class_=f"curve {css}")
    for (x, y), (value_x, value_y) in zip(places, points):
        frame.add("circle", cx=x, cy=y, r=3.5 if name == "ebb" else 2.5, class_=f"dot {css}",
                  tip=f"{name}, {words[0](value_x)}: {words[1](value_y)}")
    return places[-1]


def draw(lines, prefix, x_tag, title, label="time"):
    positive = {name: [(x, max(y, 0.1)) for x, y in points if x > 0]
                for name, points in lines.items()}
    positive = {name: points for name, points in positive.items() if points}
    if not positive:
        return nothing("no figures")
    frame = Frame(WIDTH, HEIGHT, left=64, right=96)
    xs = [x for points in positive.values() for x, _ in points]
    ys = [y for points in positive.values() for _, y in points]
    across = scale.Scale(min(xs), max(xs), frame.left, frame.right, log=True,
                         binary=x_tag == "b")
    is_bytes = quantity.unit_of(prefix) == "bytes"
    up = scale.around(ys, frame.bottom, frame.top, 0.08, binary=is_bytes,
                      from_zero=not is_bytes and max(ys) < 12 * min(ys))
    words = (quantity.bytes_text if x_tag == "b" else quantity.count_text,
             lambda value: quantity.text_of(prefix, value))
    x_unit = "bytes" if x_tag == "b" else "count"
    frame.x_axis(across, x_unit, x_unit, 5)
    frame.y_axis(up, prefix, label + (" (log)" if up.log else ""))
    ends = {}
    for name in sorted(positive, key=lambda name: name == "ebb"):
        ends[name] = draw_curve(frame, name, positive[name], across, up, words)
    heights = place_names({name: y + 4 for name, (_, y) in ends.items()}, frame.top,
                          frame.bottom)
    for name, (x, _) in ends.items():
        frame.text(x + 8, heights[name], name, class_=f"name {kin.family(name)}")
    return frame.drawn(title)
