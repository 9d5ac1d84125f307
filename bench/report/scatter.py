# SPDX-License-Identifier: Apache-2.0
"""scatter.py - time against memory: one dot per allocator, the lower left is better."""

import kin
import quantity
import scale
from frame import Frame
from markup import EMPTY

WIDTH, HEIGHT = 420, 300
LETTER, BOLD = 6.3, 7.8  # width of a letter of a label, about; those of ebb are bold
HINT = "↙ better"
MEMORY = ("footprint_bytes", "peak_rss_bytes", "peak_rss_grown_bytes", "footprint_ratio")


def memory_metric(results, case):
    """The metric of memory that most allocators have; None if none has one."""
    counts = {metric: len(results.by_allocator("churn", case, metric)) for metric in MEMORY}
    best = max(counts.values())
    preferred = ("peak_rss_bytes",) + MEMORY
    return next((name for name in preferred if best and counts[name] == best), None)


def points_of(results, case, metric):
    times = results.by_allocator("churn", case, "step_us")
    memory = results.by_allocator("churn", case, metric)
    return {name: (memory[name], times[name]) for name in kin.in_order(times)
            if name in memory and memory[name] > 0 and times[name] > 0}


def overlap(first, second):
    left, top = max(first[0], second[0]), max(first[1], second[1])
    right, bottom = min(first[2], second[2]), min(first[3], second[3])
    return max(0, right - left) * max(0, bottom - top)


def width_of(name):
    return (BOLD if kin.family(name) == "ebb" else LETTER) * len(name) + 2


def draw_hint(frame):
    """The box that it covers."""
    x, y = frame.left + 6, frame.bottom - 6
    frame.text(x, y, HINT, class_="hint")
    return x, y - 9, x + LETTER * len(HINT), y + 3


def label_boxes(x, y, width):
    """Places for a label around a dot: box, position of the text, its anchor."""
    for dx, dy, anchor in ((9, 4, "start"), (-9, 4, "end"), (0, -9, "middle"), (0, 17, "middle"),
                           (8, -7, "start"), (-8, -7, "end"), (8, 15, "start"), (-8, 15, "end")):
        start = x + dx - {"start": 0, "end": width, "middle": width / 2}[anchor]
        yield (start, y + dy - 9, start + width, y + dy + 3), (x + dx, y + dy), anchor


def place_label(frame, x, y, width, taken):
    """The place that covers least of what is taken already and stays within the frame."""
    def cost(candidate):
        box = candidate[0]
        outside = max(0, frame.left - box[0]) + max(0, box[2] - frame.width + 2) + \
            max(0, frame.top - 8 - box[1]) + max(0, box[3] - frame.bottom)
        return sum(overlap(box, other) for other in taken) + 50 * outside
    return min(label_boxes(x, y, width), key=cost)


def draw_dots(frame, dots, tips):
    taken = [draw_hint(frame)] + [(x - 6, y - 6, x + 6, y + 6) for x, y in dots.values()]
    for name in sorted(dots, key=lambda name: name == "ebb"):
        x, y = dots[name]
        box, place, anchor = place_label(frame, x, y, width_of(name), taken)
        taken.append(box)
        hollow = " hollow" if name.endswith("-tuned") else ""
        frame.add("circle", cx=x, cy=y, r=7.0 if name == "ebb" else 5.0, tip=tips[name],
                  class_=f"dot {kin.family(name)}{hollow}")
        frame.text(*place, name, text_anchor=anchor, class_=f"name {kin.family(name)}")


def draw_points(points, metric, words, unit, title):
    """`points`: {allocator: (memory, time)}; the metric of the one, `unit` of the other."""
    frame = Frame(WIDTH, HEIGHT, left=64)
    across = scale.around([x for x, _ in points.values()], frame.left, frame.right, 0.15,
                          binary=quantity.unit_of(metric) == "bytes")
    up = scale.around([y for _, y in points.values()], frame.bottom, frame.top, 0.15)
    frame.x_axis(across, metric, words + (" (log)" if across.log else ""), 5)
    frame.y_axis(up, unit, "time per step" + (" (log)" if up.log else ""))
    dots = {name: (across.at(x), up.at(y)) for name, (x, y) in points.items()}
    tips = {name: f"{name}: {quantity.text_of(unit, y)} per step, "
                  f"{quantity.text_of(metric, x)} {words}" for name, (x, y) in points.items()}
    draw_dots(frame, dots, tips)
    return frame.drawn(title)


def draw(results, case):
    """Empty if there are no points."""
    metric = memory_metric(results, case)
    points = points_of(results, case, metric) if metric else {}
    if not points:
        return EMPTY
    words = {"peak_rss_bytes": "peak resident memory", "footprint_bytes": "footprint",
             "footprint_ratio": "footprint / bytes alive"}.get(metric, metric)
    return draw_points(points, metric, words, "us", f"Time per step against {words}, {case}")
