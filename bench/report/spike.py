# SPDX-License-Identifier: Apache-2.0
"""spike.py - resident memory after each step, with one step a hundred times the others.

The dashed line is one and a half times the normal step's memory, under which the target wants a
process to be again; a second chart has the time of each step.
"""

import kin
import quantity
import scale
from curves import place_names
from frame import Frame, nothing

CASE = "spike.synthetic"  # no recorded trace has its name
WIDTH, HEIGHT = 640, 300
NORMAL_TIMES = 1.5


def is_spike(case):
    """Whether it is the synthetic trace, which has a section of its own."""
    return case == CASE


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def spike_at(values):
    """Index of the highest value."""
    return max(range(len(values)), key=lambda i: values[i])


def draw_line(frame, name, values, scales, metric, unit):
    across, up = scales
    places = [(across.at(step), up.at(max(value, up.low))) for step, value in enumerate(values)]
    css = kin.family(name)
    frame.path(places, class_=f"curve {css}", tip=name)
    for step, ((x, y), value) in enumerate(zip(places, values)):
        frame.add("circle", cx=x, cy=y, r=5.0, class_="catch",
                  tip=f"{name}, {unit} {step}: {quantity.text_of(metric, value)}")
    return places[-1]


def draw_limit(frame, lines, up):
    values = lines.get("ebb")
    at = spike_at(values) if values else 0
    if at < 2:
        return
    limit = NORMAL_TIMES * median(values[:at])
    y = up.at(limit)
    frame.line(frame.left, y, frame.right, y, class_="limit")
    frame.text(frame.left + 6, y - 5, f"1.5 × normal for ebb: {quantity.bytes_text(limit)}",
               class_="hint")


def draw(lines, metric, label, title, limit=False, unit="step", width=WIDTH):
    """`lines`: {allocator: values, one per step, or what `unit` says}."""
    lines = {name: values for name, values in lines.items() if len(values) > 1}
    if not lines:
        return nothing("no spike in the results")
    frame = Frame(width, HEIGHT, left=70, right=104)
    most = max(len(values) for values in lines.values())
    every = [value for values in lines.values() for value in values if value > 0] or [0.0]
    across = scale.Scale(0, most - 1, frame.left, frame.right, whole=True)
    up = scale.around(every, frame.bottom, frame.top, 0.06,
                      binary=quantity.unit_of(metric) == "bytes")
    frame.x_axis(across, "count", unit, 9)
    frame.y_axis(up, metric, label + (" (log)" if up.log else ""))
    if limit:
        draw_limit(frame, lines, up)
    ends = {}
    for name in sorted(lines, key=lambda name: name == "ebb"):
        ends[name] = draw_line(frame, name, lines[name], (across, up), metric, unit)
    heights = place_names({name: y + 4 for name, (_, y) in ends.items()}, frame.top,
                          frame.bottom)
    for name, (x, _) in ends.items():
        frame.text(x + 8, heights[name], name, class_=f"name {kin.family(name)}")
    return frame.drawn(title)
