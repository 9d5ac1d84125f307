# SPDX-License-Identifier: Apache-2.0
"""frame.py - what all charts share: the picture, its axes and its labels.

A frame is `width` by `height` units of SVG that the page scales to its column. Colours are
classes of the style sheet, so that one picture serves light and dark. Every chart carries a
label for screen readers; marks may carry a tip, which the page's script shows beside the
pointer and which is a plain <title> without it. What is wider than a phone keeps its words legible
there: it is moved within its column.
"""

from markup import EMPTY, joined, tag

COLUMN = 420  # a frame that is no wider fits any page
LEAST_SCALE = 0.75  # of its units, so that words have 9 pixels


class Frame:
    def __init__(self, width, height, left=58, right=14, top=12, bottom=40):
        self.width, self.height = width, height
        self.left, self.right = left, width - right
        self.top, self.bottom = top, height - bottom
        self.pieces = []

    def add(self, name, *children, tip=None, **values):
        if tip is not None:
            children += (tag("title", tip),)
            values["data_tip"] = tip
        self.pieces.append(tag(name, *children, **values))

    def line(self, x1, y1, x2, y2, **values):
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), **values)

    def text(self, x, y, words, **values):
        self.add("text", words, x=float(x), y=float(y), **values)

    def path(self, points, closed_at=None, **values):
        """A line through points; an area down to the height `closed_at` if that is given."""
        if not points:
            return
        words = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        if closed_at is None:
            self.add("polyline", points=words, **values)
            return
        (first, _), (last, _) = points[0], points[-1]
        self.add("polygon", points=f"{first:.1f},{closed_at:.1f} {words} "
                 f"{last:.1f},{closed_at:.1f}", **values)

    def x_axis(self, scale, metric, label, most=6):
        """`metric` says what the ticks are of: its name, or just a unit."""
        words = scale.words(metric, most)
        for tick in scale.ticks(most):
            x = scale.at(tick)
            self.line(x, self.top, x, self.bottom, class_="grid")
            self.text(x, self.bottom + 15, words(tick), class_="tick", text_anchor="middle")
        self.line(self.left, self.bottom, self.right, self.bottom, class_="axis")
        self.text((self.left + self.right) / 2, self.height - 4, label, class_="label",
                  text_anchor="middle")

    def y_axis(self, scale, metric, label, most=5):
        words = scale.words(metric, most)
        for tick in scale.ticks(most):
            y = scale.at(tick)
            self.line(self.left, y, self.right, y, class_="grid")
            self.text(self.left - 6, y + 3.5, words(tick), class_="tick", text_anchor="end")
        middle = (self.top + self.bottom) / 2
        self.text(0, 0, label, class_="label", text_anchor="middle",
                  transform=f"translate(10 {middle:.0f}) rotate(-90)")

    def drawn(self, title):
        """The finished picture."""
        is_wide = self.width > COLUMN
        picture = tag("svg", joined(self.pieces), role="img", aria_label=title, class_="chart",
                      viewBox=f"0 0 {self.width} {self.height}",
                      style=f"min-width: {LEAST_SCALE * self.width:.0f}px" if is_wide else None)
        return tag("div", picture, class_="pan", tabindex="0") if is_wide else picture


def nothing(words):
    """What stands where a chart would, if there is no data for it."""
    return tag("p", words, class_="nothing") if words else EMPTY


def figure(title, picture, note=None):
    caption = [tag("span", title, class_="name")]
    if note:
        caption.append(tag("span", note, class_="note"))
    return tag("figure", tag("figcaption", *caption), picture)
