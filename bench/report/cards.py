# SPDX-License-Identifier: Apache-2.0
"""cards.py - the pictures of one trace and view, and of one micro benchmark."""

import bars
import buckets
import course
import curves
import matrix
import quantity
import scatter
import sweep
from frame import figure, nothing
from markup import EMPTY, tag
from results import as_number

MICRO = {
    "small10k": ("10,000 small objects", "16 to 512 bytes each: allocate, write, end the step"),
    "const": ("10,000 objects of 48 bytes", "the size is known to the compiler"),
    "open_close": ("Open and close", "an arena from nothing to nothing"),
    "close_n": ("The end of a step alone", "by the number of its objects"),
    "flat_count": ("Cost by count", "10² to 10⁷ objects of 48 bytes in one step"),
    "flat_bytes": ("Cost by bytes", "1 KiB to 8 GiB in one step"),
    "large": ("400 tensors", "256 B to 4 MiB, written in full, half freed early"),
    "request": ("A request", "300 small and 20 large blocks, 3 survivors"),
    "release": ("Release", "allocate and release at once"),
    "promote": ("Promotion", "one block to the parent, by size"),
    "tensor": ("A small tensor", "float32, 4×3×2: made and ended as an object"),
    "promote_objects": ("What survives of 64 tensors",
                        "promoted to the parent with the step's close, by number, size and mode"),
    "planned": ("A planned step", "2,000 blocks of 2 to 62 KiB, 24 alive at once, untouched"),
    "instructions": ("Instructions", "of what is inline: small blocks, and what is due"),
}
CURVE_NAMES = {"ns_close": "time of the end", "ns_untouched": "per object, untouched",
               "ns_written": "per object, 8 bytes written", "ns_eighth": "blocks of an eighth",
               "ns_small": "blocks of 512 bytes", "ns_copy": "by copy",
               "ns_relink": "by relinking", "ns_auto": "auto", "ns_memcpy": "memcpy"}
BAR_NAMES = {"ns_per_object": "per object",
             "ns_per_object_forgotten": "per object, its pointer not stored",
             "ns_empty": "empty", "ns_one_block": "with one block", "ms_per_step": "per step",
             "us_per_request": "per request", "p99_us": "per request, 99th percentile",
             "ns_alone": "made and ended", "ns_thousand": "1,000 made, then ended",
             "ns_step": "1,000 made, ended by the step",
             "ns_small_pair": "48 bytes, allocate and release",
             "ns_large_pair": "64 KiB, allocate and release"}
HIDDEN = ("spread_percent", "over_floor", "faster_than_malloc", "faster_than_arena")


def facts_of(results, case):
    """A line about the trace, from whatever the file says about it."""
    item = results.cases.get(case, {})
    words = []
    for key, text in (("main_kind", "step: {}"), ("steady_steps", "{} steady steps"),
                      ("events", "{} events"), ("objects", "{} objects")):
        value = item.get(key)
        number = as_number(value)
        if value is not None:
            words.append(text.format(value if number is None else f"{number:,.0f}"))
    alive = as_number(item.get("max_live_bytes"))
    if alive is not None:
        words.append(f"at most {quantity.bytes_text(alive)} alive")
    return " · ".join(words)


def histograms(results, case):
    sizes = results.histograms.get((case, "sizes"))
    lifetimes = results.histograms.get((case, "lifetimes"))
    pictures = [figure("Sizes", buckets.draw(sizes, "size of a block", True))]
    if lifetimes:
        pictures.append(figure("Lifetimes", buckets.draw(
            lifetimes, "allocations until it is freed", False)))
    return tag("div", *pictures, class_="stack")


def trace_figures(results, case):
    """Time and memory. What is missing is said, unless the run was not to have it."""
    pictures = (("Time against memory", scatter.draw(results, case),
                 "no times and footprints in the results"),
                ("Memory over one step", course.draw(results, case),
                 "no course of memory in the results"))
    return [figure(title, picture or nothing(missing)) for title, picture, missing in pictures
            if picture or not results.untouched()]


def trace_card(results, case):
    return tag("section",
               tag("h3", matrix.case_label(case)),
               tag("p", facts_of(results, case), class_="facts"),
               tag("div", *trace_figures(results, case), histograms(results, case),
                   class_="charts"),
               class_="card", id=matrix.anchor_of(case))


def bar_figures(results, case):
    """One picture for every metric that is no point of a curve and no by-product."""
    metrics = {}
    for allocator in results.allocator_names("micro", case):
        for metric in results.metrics("micro", case, allocator):
            if metric not in HIDDEN and curves.split_metric(metric) is None:
                metrics.setdefault(metric, {})
    for metric in metrics:
        values = results.by_allocator("micro", case, metric)
        name = BAR_NAMES.get(metric, metric.replace("_", " ").replace(".", " "))
        yield figure(name, bars.draw(values, metric, f"{name}, {case}"))


def curve_figures(results, case):
    for (prefix, x_tag), lines in curves.curves_of(results, "micro", case).items():
        name = CURVE_NAMES.get(prefix, prefix.replace("_", " "))
        yield figure(name, curves.draw(lines, prefix, x_tag, f"{name}, {case}"))


def promotion_figures(results):
    """The modes of ebb and a memcpy of the same size in one picture."""
    lines = {}
    for (prefix, _), by_name in curves.curves_of(results, "micro", "promote").items():
        for points in by_name.values():
            name = {"ns_memcpy": "floor: memcpy"}.get(prefix, prefix.replace("ns_", ""))
            lines[name] = points
    yield figure("per block", curves.draw(lines, "ns", "b", "Time of promoting one block"))


def figures_of(results, case):
    if case == "promote":
        return list(promotion_figures(results))
    if case == sweep.CASE:
        return list(sweep.figures(results))
    return list(bar_figures(results, case)) + list(curve_figures(results, case))


def micro_card(results, case):
    title, note = MICRO.get(case, (case, ""))
    pictures = figures_of(results, case)
    if not pictures:
        return EMPTY
    table = sweep.draw_table(results) if case == sweep.CASE else None
    return tag("section", tag("h3", title), tag("p", note, class_="facts"),
               tag("div", *pictures, class_="charts"), table or EMPTY, class_="card",
               id=matrix.anchor_of(f"micro.{case}"))
