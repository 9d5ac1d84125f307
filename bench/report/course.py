# SPDX-License-Identifier: Apache-2.0
"""course.py - memory over the course of one step: bytes alive, and the pages that hold them.

The area is what the program has alive; the lines are what ebb and glibc hold for it. Long
courses are thinned so that every peak stays.
"""

import kin
import quantity
import scale
from frame import Frame
from markup import EMPTY

WIDTH, HEIGHT = 420, 300
POINTS_MOST = 360


def thinned(points):
    """Of each stretch the lowest and the highest point, in their order. (x, y) pairs."""
    stretch = max(1, 2 * len(points) // POINTS_MOST)
    if stretch <= 2:
        return points
    kept = []
    for start in range(0, len(points), stretch):
        part = points[start:start + stretch]
        lowest = min(part, key=lambda point: point[1])
        highest = max(part, key=lambda point: point[1])
        kept += sorted({part[0], lowest, highest})
    return kept + [points[-1]]


def stepped(points):
    """Corner points: a value holds until the next event."""
    corners = points[:1]
    for before, after in zip(points, points[1:]):
        corners += [(after[0], before[1]), after]
    return corners


def on_frame(points, across, up):
    return [(across.at(x), up.at(y)) for x, y in stepped(thinned(points))]


def draw_legend(frame, entries):
    x = frame.left + 4
    for words, css in entries:
        frame.add("rect", x=float(x), y=2.0, width=14.0, height=6.0, rx=1.0, class_=f"key {css}")
        frame.text(x + 18, 9, words, class_="tick")
        x += 26 + 5.6 * len(words)


def courses_of(results, case):
    names = {allocator for (other, allocator, name) in results.series
             if other == case and name == "course_page_bytes"}
    found = {name: results.course(case, name) for name in kin.in_order(names)}
    return {name: points for name, points in found.items() if len(points) > 1}


def draw(results, case):
    """Empty if there is no course."""
    courses = courses_of(results, case)
    if not courses:
        return EMPTY
    frame = Frame(WIDTH, HEIGHT, left=64, top=20)
    first = next(iter(courses.values()))
    highest = max(max(live, held) for points in courses.values() for _, live, held in points)
    events = [event for points in courses.values() for event, _, _ in points]
    across = scale.Scale(min(events), max(events), frame.left, frame.right,
                         whole=True)
    up = scale.Scale(0.0, (highest or 1) * 1.06, frame.bottom, frame.top, binary=True)
    frame.x_axis(across, "count", "event within the step", 5)
    frame.y_axis(up, "bytes", "bytes")
    live = [(event, alive) for event, alive, _ in first]
    frame.path(on_frame(live, across, up), frame.bottom, class_="live")
    legend = [("alive", "live")]
    for name in reversed(list(courses)):
        held = [(event, pages) for event, _, pages in courses[name]]
        css = "ebb" if name == "ebb" else "other"
        peak = max(pages for _, pages in held)
        frame.path(on_frame(held, across, up), class_=f"held {css}",
                   tip=f"{name} holds at most {quantity.bytes_text(peak)}")
        legend.append((f"held by {name}", css))
    draw_legend(frame, legend)
    return frame.drawn(f"Bytes alive and pages held over the course of a step, {case}")
