# SPDX-License-Identifier: Apache-2.0
"""plan.py - a plan as a picture: offset against time, as planned and as served in the last step.

Time is the order of allocation. A block is a rectangle: as wide as its life, as high as its room.
The blocks of one colour are one path, and of a large plan only those that cover most are drawn, so
that a page stays small. What is born in the parent has no place in the plan: it is a tick above.
"""

import bisect
import itertools

import quantity
import scale
from frame import Frame, figure, nothing
from markup import EMPTY, tag
from results import as_dict, as_list, as_number

WIDTH, HEIGHT = 620, 320
BLOCKS_MOST = 2000
AGES = 5  # shades, by the time of birth


class Block:
    """A slot: `born` and `died` in allocations, `place` and `room` in bytes."""

    def __init__(self, born, place, room, served):
        self.born, self.died, self.place, self.room = born, born, place, room
        self.served = served  # bytes that it got; 0: not served

    def is_hit(self):
        return 0 < self.served <= self.room

    def area(self):
        return self.room * (self.died - self.born)


class Plan:
    """Of a report by ebb_report_plan(); `count` is 0 if that holds no plan that makes sense."""

    def __init__(self, report):
        self.height = as_number(report.get("height")) or 0.0
        self.max_live = as_number(report.get("max_live")) or 0.0
        self.followed = report.get("followed") is True
        self.coarse = report.get("coarse") is True
        self.blocks, self.tenured, self.guests, self.count = [], [], 0, 0
        slots = as_list(report.get("slots"))
        if self.height <= 0 or not slots or not all(map(is_slot, slots)):
            return
        self.count = len(slots)
        by_slot = self._add_slots(slots)
        self._set_ends(slots, as_list(report.get("order")), by_slot)

    def _add_slots(self, slots):
        by_slot = {}
        for born, (where, place, room, _, served) in enumerate(slots):
            if where == "tenured":
                self.tenured.append((born, served > 0))
            self.guests += where == "guest"
            if where == "placed" and place + room <= self.height:
                by_slot[born] = Block(born, place, room, served)
        self.blocks = list(by_slot.values())
        return by_slot

    def _set_ends(self, slots, order, by_slot):
        """A block ends with the first allocation before which its release is expected."""
        passed = list(itertools.accumulate((slot[3] for slot in slots), max))
        for block in self.blocks:
            block.died = self.count
        for rank, number in enumerate(order):
            if isinstance(number, int) and number in by_slot:
                block = by_slot[number]
                block.died = max(block.born + 1, bisect.bisect_right(passed, rank))

    def shown(self):
        """Those that cover most, in the order of their birth; how many are left out."""
        largest = sorted(self.blocks, key=Block.area, reverse=True)[:BLOCKS_MOST]
        return sorted(largest, key=lambda block: block.born), len(self.blocks) - len(largest)


def is_slot(slot):
    return isinstance(slot, list) and len(slot) == 5 and isinstance(slot[0], str) and \
        all(isinstance(value, int) and 0 <= value < 1 << 53 for value in slot[1:])


def of_case(results, case):
    """The plan of ebb's main kind of step, or None."""
    for report in results.reports_of(case, "ebb", "plan"):
        plan = Plan(as_dict(report))
        if plan.count:
            return plan
    return None


def number(value):
    return f"{value:.1f}".removesuffix(".0")


def outline(block, across, up):
    left, top = across.at(block.born), up.at(block.place + block.room)
    width = max(across.at(block.died) - left, 0.5)
    height = max(up.at(block.place) - top, 0.4)
    return f"M{number(left)} {number(top)}h{number(width)}v{number(height)}h-{number(width)}z"


def draw_blocks(frame, blocks, across, up, css, tip):
    if blocks:
        frame.add("path", d="".join(outline(block, across, up) for block in blocks),
                  class_=f"slot {css}", tip=tip)


def draw_tenured(frame, plan, across):
    for served, css in ((True, "tenured"), (False, "missed")):
        ticks = [born for born, given in plan.tenured if given == served or not plan.followed]
        ticks = ticks if served or plan.followed else []
        if ticks:
            words = "".join(f"M{number(across.at(born))} {frame.top - 9}v6" for born in ticks)
            frame.add("path", d=words, class_=f"tick-mark {css}",
                      tip=f"{len(ticks)} born in the parent" if served
                      else f"{len(ticks)} that were to be born in the parent")


def axes(plan):
    frame = Frame(WIDTH, HEIGHT, left=64, top=22)
    across = scale.Scale(0.0, float(plan.count), frame.left, frame.right, whole=True)
    up = scale.Scale(0.0, plan.height, frame.bottom, frame.top, binary=True)
    frame.x_axis(across, "count", "allocation within the step", 5)
    frame.y_axis(up, "bytes", "offset")
    return frame, across, up


def draw_planned(plan, blocks, title):
    frame, across, up = axes(plan)
    for age in range(AGES):
        part = [block for block in blocks if block.born * AGES // plan.count == age]
        draw_blocks(frame, part, across, up, f"age{age}",
                    f"{len(part)} blocks, from allocation {part[0].born:,}" if part else None)
    draw_tenured(frame, plan, across)
    y = up.at(min(plan.max_live, plan.height))
    frame.line(frame.left, y, frame.right, y, class_="floorline",
               tip=f"most bytes alive at once: {quantity.bytes_text(plan.max_live)}")
    return frame.drawn(title)


def draw_served(plan, blocks, title):
    if not plan.followed:
        return nothing("no step followed this plan")
    frame, across, up = axes(plan)
    hits = [block for block in blocks if block.is_hit()]
    missed = [block for block in blocks if not block.is_hit()]
    draw_blocks(frame, hits, across, up, "hit", f"{len(hits)} served from the plan")
    draw_blocks(frame, missed, across, up, "missed", f"{len(missed)} not served from the plan")
    draw_tenured(frame, plan, across)
    return frame.drawn(title)


def facts_of(plan, left_out):
    hits = sum(block.is_hit() for block in plan.blocks)
    words = [f"{len(plan.blocks):,} blocks in {quantity.bytes_text(plan.height)}",
             f"height over most alive {plan.height / plan.max_live:.4f}" if plan.max_live else "",
             f"{hits:,} served in the last step" if plan.followed else "",
             "small blocks are not planned" if plan.coarse else "",
             f"{len(plan.tenured):,} born in the parent" if plan.tenured else "",
             f"{plan.guests:,} there for a while" if plan.guests else "",
             f"{left_out:,} small ones not drawn" if left_out else ""]
    return " · ".join(word for word in words if word)


def card(results, case, label):
    plan = of_case(results, case)
    if plan is None:
        return EMPTY
    blocks, left_out = plan.shown()
    return tag("section", tag("h3", label), tag("p", facts_of(plan, left_out), class_="facts"),
               tag("div",
                   figure("As planned", draw_planned(plan, blocks, f"The plan of {case}")),
                   figure("As served", draw_served(plan, blocks, f"The last step of {case}")),
                   class_="charts wide"), class_="card")
