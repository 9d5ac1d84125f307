#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""program.py - the page of one recorded program: what it would gain, what outlives its steps.

    program.py --figures figures.json [--json bench.json] --out report.html

`ebb report --html` runs it. The figures come from the trace (bench/tool/figures_json.c says what is
in them), the JSON from its replay. The page needs nothing but itself.
"""

import argparse
import json
import sys

import bars
import cards
import kin
import page
import quantity
import scale
import table
from frame import Frame, figure, nothing
from markup import EMPTY, joined, tag, trusted
from results import Results, as_dict, as_list, as_number

WIDTH, HEIGHT = 1240, 260
FATES = (("died", "with its step"), ("next", "in the next step"), ("later", "later"),
         ("never", "not at all"))
CHARTS = (("step_us", "time of a step"), ("peak_over_base_bytes", "peak of memory above the start"),
          ("footprint_bytes", "pages that held a step"), ("faults_per_step", "page faults"))


def amount(fate, name):
    """(blocks, bytes) of one part of a fate; zeros where it is not there."""
    values = [as_number(value) or 0.0 for value in as_list(as_dict(fate).get(name))]
    return (values[0], values[1]) if len(values) == 2 else (0.0, 0.0)


def share_text(part, whole):
    """"100.0 %" of all alone, "0.0 %" of none alone; "–" of nothing."""
    if not whole:
        return "–"
    share = 100 * part / whole
    if part < whole and share > 99.9:
        return ">99.9 %"
    return "<0.1 %" if 0 < share < 0.1 else f"{share:.1f} %"


def each_text(count, steps):
    """What a step has on average; what is not 0 is never said to be."""
    return "<0.001" if 0 < count / steps < 0.001 else quantity.short(count / steps)


def survived(fate):
    born, died = amount(fate, "born"), amount(fate, "died")
    return born[0] - died[0], born[1] - died[1]


def main_kind(figures):
    """The kind of steps that the replay measures."""
    kinds = [as_dict(kind) for kind in as_list(figures.get("kinds"))]
    return next((kind for kind in kinds if kind.get("kind") == figures.get("main_kind")), {})


# ---- head

def replayed_case(results):
    names = results.case_names("churn")
    return names[0] if names else None


def fastest_peer(results, case):
    times = results.by_allocator("churn", case, "step_us")
    peers = {name: value for name, value in times.items() if not name.startswith("ebb")}
    return min(peers, key=peers.get) if peers else None


def ratio_highlights(results, case):
    mine = results.metrics("churn", case, "ebb") if case else {}
    peers = ["glibc", fastest_peer(results, case)] if case else []
    for peer in dict.fromkeys(name for name in peers if name):
        other = results.metrics("churn", case, peer)
        if mine.get("step_us") and other.get("step_us"):
            yield page.highlight(quantity.ratio_text(other["step_us"] / mine["step_us"]),
                                 f"{peer}'s time of a step, over ebb's")


def highlights(figures, results):
    kind = main_kind(figures)
    fate, case = kind.get("fate"), replayed_case(results)
    found = list(ratio_highlights(results, case))
    if kind:
        found.append(page.highlight(share_text(amount(fate, "died")[0], amount(fate, "born")[0]),
                                    joined(["of the blocks die with their step, ",
                                            tag("code", kind.get("kind"))])))
        steps = as_number(kind.get("steps")) or 1
        found.append(page.highlight(quantity.bytes_text(survived(fate)[1] / steps),
                                    "outlive a step, on average"))
    return tag("div", *found, class_="highlights") if found else EMPTY


def facts(figures):
    words = []
    for key, text in (("events", "{} events"), ("objects", "{} objects")):
        value = as_number(figures.get(key))
        if value is not None:
            words.append(text.format(f"{value:,.0f}"))
    alive = as_number(figures.get("max_live_bytes"))
    if alive is not None:
        words.append(f"at most {quantity.bytes_text(alive)} alive")
    if "stopped" in figures:
        words.append(f"the recording stopped early ({figures['stopped']}): what was alive then "
                     "does not end")
    return " · ".join(words)


# ---- sections

def gain_section(figures, results):
    case = replayed_case(results)
    if not case:
        return EMPTY
    pictures = []
    for metric, title in CHARTS:
        values = results.by_allocator("churn", case, metric)
        if values:
            pictures.append(figure(title, bars.draw(values, metric, title)))
    lead = ["The recorded allocations, replayed with each allocator in a process of its own; "
            "every block is written and read. What the program computes in between is not in it."]
    if main_kind(figures):
        lead += [" A step is one of ", tag("code", figures.get("main_kind")), "."]
    return tag("section", tag("h2", "What it would gain"), tag("p", *lead, class_="lead"),
               tag("div", tag("div", *pictures, class_="charts"), class_="card"),
               cards.trace_card(results, case), id="gain")


def reach(step, key):
    """(lowest, highest) of the steps that an entry is of; None of what is no pair of numbers."""
    values = [as_number(value) for value in as_list(step.get(key))]
    return None if None in values or len(values) != 2 else values


def scale_of_bytes(points, frame):
    """Zeros have no logarithm, and a place of their own where none is needed."""
    values = [value for point in points for pair in point[1:] for value in pair]
    up = scale.around([max(value, 1.0) for value in values], frame.bottom, frame.top, 0.08,
                      binary=True)
    return up if up.log else scale.around(values, frame.bottom, frame.top, 0.08, binary=True)


def draw_steps(steps):
    """Bytes of each step: allocated, at once, and what outlived it. Where an entry is of several
    steps, the lines go from the lowest to the highest of them."""
    points = [(as_number(step.get("number")), reach(step, "born"), reach(step, "peak"),
               reach(step, "survived")) for step in map(as_dict, steps)]
    points = [point for point in points if None not in point]
    if len(points) < 2:
        return nothing("too few steps to draw")
    frame = Frame(WIDTH, HEIGHT, left=64, right=96)
    across = scale.Scale(points[0][0], points[-1][0], frame.left, frame.right, whole=True)
    up = scale_of_bytes(points, frame)
    frame.x_axis(across, "count", "step", 6)
    frame.y_axis(up, "bytes", "bytes" + (" (log)" if up.log else ""))
    ends = {}
    for column, (name, css) in enumerate((("allocated", "peer"), ("at once", "ebb"),
                                          ("outlive it", "floor")), 1):
        places = [(across.at(point[0]), up.at(max(value, up.low))) for point in points
                  for value in dict.fromkeys(point[column])]
        frame.path(places, class_=f"curve {css}", tip=name)
        ends[name] = (places[-1][1] + 4, css)
    last = frame.top - 12
    for name, (y, css) in sorted(ends.items(), key=lambda item: item[1][0]):
        last = max(y, last + 12)
        frame.text(frame.right + 8, last, name, class_=f"name {css}")
    return frame.drawn("Bytes of each step")


def table_of(head, rows):
    """Its heads have several words, and wrap where the page would be too narrow."""
    return tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="worded")


def kinds_table(figures):
    head = [tag("th", name, scope="col")
            for name in ("step", "steps", "blocks a step", "bytes a step", "peak", "outlive it")]
    head += [tag("th", f"ends {words}", scope="col") for _, words in FATES]
    rows = []
    for kind in map(as_dict, as_list(figures.get("kinds"))):
        fate, steps = kind.get("fate"), as_number(kind.get("steps")) or 1
        born = amount(fate, "born")
        cells = [tag("td", f"{steps:,.0f}"), tag("td", each_text(born[0], steps)),
                 tag("td", quantity.bytes_text(born[1] / steps)),
                 tag("td", quantity.bytes_text(as_number(kind.get("peak")) or 0.0)),
                 tag("td", quantity.bytes_text(survived(fate)[1] / steps))]
        cells += [tag("td", share_text(amount(fate, name)[1], born[1])) for name, _ in FATES]
        rows.append(tag("tr", tag("th", str(kind.get("kind", "?")), scope="row"), *cells))
    return tag("div", table_of(head, rows), class_="scroll whole", tabindex="0")


def steps_figure(figures):
    """Its note says of which kind the steps are, and how many of them an entry is of; the last may
    be of fewer."""
    steps = as_list(figures.get("steps"))
    numbers = [as_number(as_dict(step).get("number")) for step in steps[:2]]
    each = numbers[1] - numbers[0] if len(numbers) == 2 and None not in numbers else 1
    note = ["of ", tag("code", figures.get("main_kind", "?"))]
    note += [f", the lowest and the highest of each {each:,.0f}"] if each > 1 else []
    return figure("Bytes of each step", draw_steps(steps), joined(note))


def steps_section(figures):
    if not as_list(figures.get("kinds")):
        return tag("section", tag("h2", "Steps"),
                   tag("p", "The trace has no steps: ", tag("code", "ebb record --every"), " or ",
                       tag("code", "--function"), " makes some, and ", tag("code", "ebb advise"),
                       " looks for them.", class_="lead"), id="steps")
    return tag("section", tag("h2", "Steps"),
               tag("p", "What is born in a step, and when it ends; shares are of bytes.",
                   class_="lead"), kinds_table(figures),
               tag("div", tag("div", steps_figure(figures), class_="charts wide"),
                   class_="card"), id="steps")


def place_head(item):
    """The head of a row: the name is brief, the whole is in the tip."""
    name = str(item.get("place", "?"))
    brief = str(item.get("brief", name))
    return tag("th", brief, scope="row", title=name if brief != name else None)


def survivors_row(head, fate, steps):
    left = survived(fate)
    cells = [tag("td", each_text(left[0], steps)),
             tag("td", quantity.bytes_text(left[1] / steps)),
             tag("td", share_text(left[0], amount(fate, "born")[0]))]
    cells += [tag("td", quantity.bytes_text(amount(fate, name)[1])) for name, _ in FATES[1:]]
    return tag("tr", head, *cells)


def places_section(figures):
    places = [as_dict(item) for item in as_list(figures.get("places"))]
    if not places:
        return EMPTY
    steps = sum(as_number(as_dict(kind).get("steps")) or 0
                for kind in as_list(figures.get("kinds"))) or 1
    head = [tag("th", name, scope="col")
            for name in ("place", "blocks a step", "bytes a step", "of its own blocks")]
    head += [tag("th", f"ends {words}, in all", scope="col") for _, words in FATES[1:]]
    rows = [survivors_row(place_head(item), item.get("fate"), steps) for item in places]
    others = as_dict(figures.get("others"))
    count = as_number(others.get("places")) or 0
    if count > 0:
        words = f"and {count:,.0f} other{'s' if count > 1 else ''}"
        rows.append(survivors_row(tag("th", words, scope="row"), others.get("fate"), steps))
    note = "" if figures.get("sites") else " Recorded with --sites, they would be functions."
    lead = "Who asks for blocks that outlive their step, the worst first: candidates for the " \
        f"parent, or for no region at all.{note}"
    return tag("section", tag("h2", "What survives"), tag("p", lead, class_="lead"),
               tag("div", table_of(head, rows), class_="scroll", tabindex="0"), id="survivors")


def figures_section(results):
    rows = table.draw(results, "churn", results.case_names("churn"), "Replay, every figure")
    if not rows:
        return EMPTY
    return tag("section", tag("h2", "Every figure"), rows, id="figures")


# ---- the page

def title_of(trace):
    """By the name of the file; where nothing is left of one, by the whole."""
    return f"ebb: what {trace.removesuffix('.gz').removesuffix('.trace') or trace} would gain"


def draw(figures, results):
    name = str(figures.get("trace", "?")).rsplit("/", 1)[-1]
    title = title_of(name)
    peers = [name for name in kin.in_order(results.allocator_names("churn",
                                                                   replayed_case(results) or ""))
             if name != "ebb"]
    lead = f"Its allocations were recorded ({name})"
    lead += f" and replayed with ebb, {', '.join(peers)}." if peers else "."
    parts = [("Gain", "gain", gain_section(figures, results)),
             ("Steps", "steps", steps_section(figures)),
             ("Survivors", "survivors", places_section(figures)),
             ("Figures", "figures", figures_section(results)),
             ("Machine", "machine", page.machine_section(results))]
    parts = [part for part in parts if part[2]]
    links = [tag("a", name, href=f"#{anchor}") for name, anchor, _ in parts]
    script = (page.HERE / "report.js").read_text(encoding="utf-8")
    body = tag("body",
               tag("header", tag("h1", title), tag("p", lead, class_="lead"),
                   tag("p", facts(figures), class_="facts"), highlights(figures, results),
                   tag("nav", *links, aria_label="Sections")),
               tag("main", *[content for _, _, content in parts]),
               tag("div", id="tip", role="status", hidden=True),
               tag("script", trusted(script)))
    return joined([trusted("<!DOCTYPE html>\n"), tag("html", page.head(title), body, lang="en"),
                   trusted("\n")])


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--figures", required=True, help="what the trace says")
    parser.add_argument("--json", help="results of the replay")
    parser.add_argument("--out", required=True, help="the page to write")
    given = parser.parse_args()
    results = Results()
    try:
        figures = as_dict(json.loads(read_text(given.figures)))
        if given.json:
            results.add_json(read_text(given.json))
        text = draw(figures, results)
        page.write(text, given.out)
    except OSError as fault:
        print(f"ebb report: {fault.filename or given.out}: {fault.strerror}", file=sys.stderr)
        return 1
    except ValueError as fault:
        print(f"ebb report: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
