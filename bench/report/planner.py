# SPDX-License-Identifier: Apache-2.0
"""planner.py - the planner alone: how high its plans are, and how long they take.

Cases are traces (TRACE.VIEW), made-up steps (synthetic_N) and published instances. Heights are of
all steady steps of a trace, in percent above the most bytes alive, which no plan can be lower than;
times are of the step with most buffers. The targets of heights are of traces.
"""

import quantity
import scale
import table
from frame import Frame, figure
from markup import EMPTY, tag
from targets import below

BENCH = "plan"
VIEWS = ("tensor", "full")
MEDIAN_MOST, WORST_MOST = 0.5, 2.0  # percent
TIMES = ((2000, 1e3), (10000, 6e3), (100000, 70e3))  # up to so many buffers, so many us
WIDTH, ROW, HEIGHT, LETTER = 420, 19, 300, 6.2
COLUMNS = (("steps", "count"), ("buffers", "count"), ("max_live_bytes", "bytes"),
           ("height_bytes", "bytes"), ("height_over_live_median", ""),
           ("height_over_live_worst", ""), ("plan_us", "us"), ("sweep_us", "us"),
           ("tries", "count"))


def is_trace(case):
    return case.rpartition(".")[2] in VIEWS


def is_made_up(case):
    return case.startswith("synthetic_")


def is_published(case):
    return not is_trace(case) and not is_made_up(case)


def excess(results, case, which):
    """Percent above the most bytes alive, or None."""
    ratio = results.value(BENCH, case, "ebb", f"height_over_live_{which}")
    return None if ratio is None or ratio < 1 else 100 * (ratio - 1)


def heights_of(results, wanted):
    """{case: (median, worst)}, the highest first."""
    found = {case: tuple(excess(results, case, which) for which in ("median", "worst"))
             for case in results.case_names(BENCH) if wanted(case)}
    found = {case: both for case, both in found.items() if None not in both}
    return dict(sorted(found.items(), key=lambda item: item[1][::-1], reverse=True))


def times_of(results):
    """{case: (buffers, us)}"""
    found = {case: tuple(results.value(BENCH, case, "ebb", metric)
                         for metric in ("buffers", "plan_us"))
             for case in results.case_names(BENCH)}
    return {case: both for case, both in found.items() if None not in both and min(both) > 0}


def most_us(buffers):
    """How long it may take to plan so many; None where nothing is asked for."""
    return next((limit for most, limit in TIMES if buffers <= most), None)


# ---- pictures

def draw_height(frame, across, row, case, median, worst):
    y = frame.top + ROW * (row + 0.5)
    words = f"{case}: {median:.3f} % in the median step, {worst:.3f} % in the worst"
    frame.text(frame.left - 8, y + 4, case, text_anchor="end", class_="name malloc")
    frame.line(across.at(median), y, across.at(worst), y, class_="axis")
    frame.add("circle", cx=across.at(worst), cy=y, r=4.0, class_="dot hollow", tip=words)
    frame.add("circle", cx=across.at(median), cy=y, r=4.5, class_="dot ebb", tip=words)


def draw_heights(heights, limits, title):
    longest = max(len(case) for case in heights)
    frame = Frame(WIDTH, 24 + ROW * len(heights) + 40, left=min(190, int(LETTER * longest) + 14),
                  top=24)
    most = max([worst for _, worst in heights.values()] + [limit for limit, _ in limits])
    across = scale.Scale(0.0, 1.08 * most, frame.left, frame.right)
    frame.x_axis(across, "percent", "above the most bytes alive", 4)
    for limit, words in limits:
        frame.line(across.at(limit), frame.top, across.at(limit), frame.bottom, class_="limit")
        frame.text(across.at(limit), frame.top - 7, words, text_anchor="middle", class_="tick")
    for row, (case, both) in enumerate(heights.items()):
        draw_height(frame, across, row, case, *both)
    return frame.drawn(title)


def draw_limits(frame, across, up):
    """A stair: each stretch of counts has its time."""
    points, low = [], across.low
    for most, limit in TIMES:
        points += [(across.at(low), up.at(limit)), (across.at(most), up.at(limit))]
        low = most
    frame.path(points, class_="curve floor")


def draw_time(frame, across, up, case, buffers, us):
    x, y, late = across.at(buffers), up.at(us), us > (most_us(buffers) or us)
    css = "dot ebb" if is_trace(case) else "dot floor" if is_made_up(case) else "dot hollow"
    frame.add("circle", cx=x, cy=y, r=4.5, class_=css,
              tip=f"{case}: {quantity.count_text(buffers)} buffers, {quantity.text_of('us', us)}")
    if late:
        frame.text(x - 9, y - 5, case, text_anchor="end", class_="name ebb")


def draw_times(times, title):
    frame = Frame(WIDTH, HEIGHT, left=64)
    counts = [count for count, _ in times.values()] + [TIMES[0][0], TIMES[-1][0]]
    spans = [us for _, us in times.values()] + [TIMES[0][1], TIMES[-1][1]]
    across = scale.Scale(min(counts) / 1.4, max(counts) * 1.4, frame.left, frame.right, log=True)
    up = scale.Scale(min(spans) / 1.6, max(spans) * 1.6, frame.bottom, frame.top, log=True)
    frame.x_axis(across, "count", "buffers (log)", 5)
    frame.y_axis(up, "us", "time to plan (log)")
    draw_limits(frame, across, up)
    for case, (buffers, us) in times.items():
        draw_time(frame, across, up, case, buffers, us)
    return frame.drawn(title)


def pictures_of(results):
    traces, published = heights_of(results, is_trace), heights_of(results, is_published)
    times, found = times_of(results), []
    if traces:
        limits = ((MEDIAN_MOST, "median"), (WORST_MOST, "worst"))
        found.append(figure("Heights, steps of traces",
                            draw_heights(traces, limits, "Heights of plans, traces"),
                            "filled: median, hollow: worst; dashed: targets"))
    if times:
        found.append(figure("Times", draw_times(times, "Time to plan by number of buffers"),
                            "blue: traces, brown: made-up steps, hollow: published; "
                            "dashed: targets"))
    if published:
        found.append(figure("Heights, published instances",
                            draw_heights(published, (), "Heights of plans, instances"),
                            "not like steps: where the planner ends"))
    return found


def section(results):
    pictures = pictures_of(results)
    if not pictures:
        return EMPTY
    return tag("section", tag("h2", "Planner"),
               tag("p", "The planner alone. Every steady step of the public traces is planned, "
                   "and each plan is proved. A height is what a plan needs above the most bytes "
                   "that are alive at once, which nothing can go below; a time is that of the "
                   "step with most buffers.", class_="lead"),
               tag("div", tag("div", *pictures, class_="charts"), class_="card"), id="planner")


# ---- figures and verdicts

def cell(results, case, metric, unit):
    """Of a height all digits count: one more thousandth is what is judged."""
    value = results.value(BENCH, case, "ebb", metric)
    if value is None or unit:
        return table.value_cell(unit, value)
    return tag("td", f"{value:.4f}×", data_value=repr(value))


def figures_table(results):
    rows = [tag("tr", tag("th", case, scope="row", data_value=case),
                *[cell(results, case, metric, unit) for metric, unit in COLUMNS])
            for case in results.case_names(BENCH)]
    heads = ["case"] + [metric.replace("_", " ") for metric, _ in COLUMNS]
    return table.framed(heads, rows, "Planner, every figure") if rows else None


def height_verdicts(results):
    heights, found = heights_of(results, is_trace), []
    for at, (which, limit) in enumerate((("median", MEDIAN_MOST), ("worst", WORST_MOST))):
        if heights:
            case = max(heights, key=lambda name, at=at: heights[name][at])
            found += below(f"planner, {case}: the highest of {len(heights)} traces",
                           f"{which} of the steps, above the most bytes alive",
                           heights[case][at], limit, unit="percent")
    return found


def time_verdicts(results):
    times, found = times_of(results), []
    for most, limit in TIMES:
        spans = {case: us for case, (buffers, us) in times.items() if most_us(buffers) == limit}
        if spans:
            case = max(spans, key=spans.get)
            found += below(f"planner, {case}: the longest up to {most:,} buffers",
                           "time to plan a step", spans[case], limit, unit="us")
    return found


def verdicts(results):
    return height_verdicts(results) + time_verdicts(results)
