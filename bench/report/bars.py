# SPDX-License-Identifier: Apache-2.0
"""bars.py - one figure per allocator as horizontal bars, the floor as a line.

Where the values lie far apart the axis is logarithmic, and the bars begin at the floor's line:
their length then says how many times the floor it is. Without a floor they begin at the axis.
"""

import kin
import quantity
import scale
from frame import Frame, nothing

WIDTH, ROW, LETTER = 420, 19, 6.2


def scale_for(values, floor, frame):
    low, high = min(values), max(values)
    first, last = frame.left, frame.right - 58
    if low > 0 and high / low > scale.LOG_FROM:
        start = floor if floor else low / 1.6
        return scale.Scale(start, high, first, last, log=True)
    return scale.Scale(0.0, high or 1.0, first, last)


def draw_bar(frame, across, row, name, value, metric):
    y = frame.top + row * ROW
    start, end = across.at(max(across.low, 0.0)), across.at(value)
    css = kin.family(name)
    words = quantity.text_of(metric, value)
    if value > 0:
        frame.add("rect", x=start, y=y + 3.0, width=max(end - start, 1.5), height=ROW - 6.0,
                  rx=2.0, class_=f"bar {css}", tip=f"{name}: {words}")
    frame.text(frame.left - 8, y + ROW * 0.5 + 4, name, text_anchor="end", class_=f"name {css}")
    frame.text(max(end, start) + 6, y + ROW * 0.5 + 4, words, class_=f"value {css}")


def draw(values, metric, title):
    """`values`: {allocator: value}, the lowest on top. A floor that is not lowest (a bump that
    reuses nothing, in a case where reuse pays) is a row like the others."""
    values = {name: value for name, value in values.items() if value >= 0}
    if not values:
        return nothing("no figures")
    names = sorted(values, key=lambda name: (values[name], kin.sort_key(name)))
    floor = values["floor"] if names[0] == "floor" else None
    longest = max(len(name) for name in names)
    frame = Frame(WIDTH, 14 + ROW * len(names) + 22, left=min(150, int(LETTER * longest) + 14),
                  top=6, bottom=28)
    across = scale_for(list(values.values()), floor, frame)
    for row, name in enumerate(names):
        draw_bar(frame, across, row, name, values[name], metric)
    if floor:
        x = across.at(floor)
        frame.line(x, frame.top - 2, x, frame.bottom + 4, class_="floorline")
    note = "bars begin at the floor, logarithmic" if across.log and floor else \
        "logarithmic" if across.log else ""
    frame.text(frame.left, frame.height - 8, note, class_="tick")
    return frame.drawn(title)
