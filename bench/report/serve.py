# SPDX-License-Identifier: Apache-2.0
"""serve.py - servers and training loops under each allocator.

For each case: processor time against glibc's, as bars to either side of it, and page faults; for
servers also how long an answer takes and how many there are in a second, and what is resident,
around requests that are twenty times the others and over many requests of mixed sizes.
The series are metrics, METRIC.nNUMBER, of which the tables have none.
"""

import bars
import curves
import kin
import quantity
import scale
import scatter
import spike
from frame import Frame, figure, nothing
from markup import EMPTY, tag
from table import draw_by_metric
from targets import Verdict

BENCH = "serve"
TITLES = {"ort-c": "onnxruntime, C API", "ort-c-arena": "onnxruntime, C API, its own arena",
          "ort-node": "onnxruntime, Node", "torch-server": "torch, Python",
          "torch-cpp": "torch, C++", "llama": "llama.cpp, Node",
          "pairs-64": "a million pairs of malloc and free, 64 bytes",
          "pairs-1000": "the same, 1000 bytes"}
LOOPS = {"ort": "a thousand requests to onnxruntime", "short": "a thousand short requests",
         "large": "a thousand short requests with a large block"}
WIDTH, ROW = 420, 19
CPU_SHARE, SPIKE, MIXED = "cpu_over_glibc", "spike_resident_bytes", "mixed_resident_bytes"
OURS = ("ebb", "ebb-scopes")
KEEPS_ITS_OWN = ("ort-c-arena",)  # what these hold after a spike is not malloc's to give back


def title_of(case):
    kind, _, rest = case.partition("-")
    name, _, threads = rest.partition("-t")
    if kind == "loop" and name in LOOPS:
        return f"{LOOPS[name]}, {threads} thread{'s' if threads != '1' else ''}"
    return TITLES.get(case, f"training, {rest}" if kind == "train" else case)


def series_of(results, case, prefix):
    """{allocator: [values]} of PREFIX.n0, .n1 and so on."""
    lines = curves.curves_of(results, BENCH, case).get((prefix, "n"), {})
    return {name: [value for _, value in points] for name, points in lines.items()}


def draw_share(frame, across, row, name, value):
    y, css = frame.top + row * ROW, kin.family(name)
    start, end = sorted((across.at(1.0), across.at(value)))
    frame.add("rect", x=start, y=y + 3.0, width=max(end - start, 1.5), height=ROW - 6.0, rx=2.0,
              class_=f"bar {css}", tip=f"{name}: {quantity.short(value)} times glibc's")
    frame.text(frame.left - 8, y + ROW * 0.5 + 4, name, text_anchor="end", class_=f"name {css}")
    frame.text(frame.right + 8, y + ROW * 0.5 + 4, f"{100 * (value - 1):+.1f} %",
               class_=f"value {css}")


def draw_shares(values, title):
    """`values`: {allocator: ratio to glibc}, the lowest on top."""
    values = {name: value for name, value in values.items() if value > 0}
    if not values:
        return nothing("no figures")
    names = sorted(values, key=lambda name: (values[name], kin.sort_key(name)))
    frame = Frame(WIDTH, 12 + ROW * len(names) + 8, left=100, right=60, top=6, bottom=8)
    across = scale.Scale(min(0.95, *values.values()), max(1.05, *values.values()), frame.left,
                         frame.right)
    for row, name in enumerate(names):
        draw_share(frame, across, row, name, values[name])
    frame.line(across.at(1.0), frame.top - 2, across.at(1.0), frame.bottom, class_="floorline")
    return frame.drawn(title)


def draw_answers(frame, across, row, name, answers):
    """From the median to what one answer in a hundred is slower than; how many come a second."""
    y, css = frame.top + (row + 0.5) * ROW, kin.family(name)
    p50, p99, rate = answers
    words = f"{name}: {quantity.text_of('us', p50)} in the median, " \
        f"{quantity.text_of('us', p99)} at the 99th percentile"
    frame.text(frame.left - 8, y + 4, name, text_anchor="end", class_=f"name {css}")
    frame.line(across.at(p50), y, across.at(p99), y, class_="axis")
    frame.add("circle", cx=across.at(p99), cy=y, r=4.0, class_="dot hollow", tip=words)
    frame.add("circle", cx=across.at(p50), cy=y, r=4.5, class_=f"dot {css}", tip=words)
    if rate is not None:
        frame.text(frame.right + 8, y + 4, f"{quantity.count_text(rate)}/s",
                   class_=f"value {css}")


def draw_latency(found, title):
    """`found`: {allocator: (p50_us, p99_us, requests a second or None)}, the fastest on top."""
    names = sorted(found, key=lambda name: (found[name][0], kin.sort_key(name)))
    frame = Frame(WIDTH, 8 + ROW * len(names) + 40, left=100, right=72, top=8)
    most = max(p99 for _, p99, _ in found.values())
    across = scale.Scale(0.0, 1.04 * most, frame.left, frame.right)
    frame.x_axis(across, "us", "time to the answer", 4)
    for row, name in enumerate(names):
        draw_answers(frame, across, row, name, found[name])
    return frame.drawn(title)


def answers_of(results, case):
    """Of those that have both times."""
    found = {}
    for name in results.allocator_names(BENCH, case):
        p50, p99, rate = (results.value(BENCH, case, name, metric)
                          for metric in ("p50_us", "p99_us", "requests_per_second"))
        if p50 and p99 and 0 < p50 <= p99:
            found[name] = (p50, p99, rate)
    return found


def faults_pictures(results, case, title):
    for metric, of_what in (("faults_per_request", "request"), ("faults_per_step", "step")):
        values = results.by_allocator(BENCH, case, metric)
        if values:
            words = f"{title}: page faults of a {of_what}"
            yield figure(words, bars.draw(values, metric, words))


def pictures_of(results, case):
    title, found = title_of(case), []
    shares = results.by_allocator(BENCH, case, CPU_SHARE)
    if shares:
        found.append(figure(f"{title}: processor time, glibc's is the line",
                            draw_shares(shares, f"{title}, processor time")))
    answers = answers_of(results, case)
    if answers:
        found.append(figure(f"{title}: answers", draw_latency(answers, f"{title}, answers"),
                            "median, hollow: p99"))
    found += faults_pictures(results, case, title)
    peaks = results.by_allocator(BENCH, case, "peak_bytes")
    times = results.by_allocator(BENCH, case, "cpu_ms_per_step")
    points = {name: (peaks[name], times[name]) for name in kin.in_order(times)
              if peaks.get(name, 0) > 0 and times[name] > 0}
    if points:
        found.append(figure(f"{title}: time against memory", scatter.draw_points(
            points, "peak_bytes", "peak resident memory", "ms", f"{title}, time and memory")))
    around = series_of(results, case, SPIKE)
    if around:
        found.append(figure(f"{title}: resident around a spike",
                            spike.draw(around, SPIKE, "resident", f"{title}, a spike",
                                       unit="request", width=WIDTH)))
    long_run = curves.curves_of(results, BENCH, case).get((MIXED, "n"))
    if long_run:
        found.append(figure(f"{title}: resident over requests of mixed sizes",
                            curves.draw(long_run, MIXED, "n", f"{title}, mixed sizes",
                                        "resident")))
    return found


def section(results):
    cards = [tag("div", tag("div", *pictures, class_="charts"), class_="card")
             for pictures in (pictures_of(results, case) for case in results.case_names(BENCH))
             if pictures]
    if not cards:
        return EMPTY
    return tag("section", tag("h2", "Servers and training loops"),
               tag("p", "Real programs, each in a process of its own under each allocator. "
                   "Servers are loaded over loopback by four connections; in a spike requests are "
                   "twenty times as large as the others. ebb-scopes opens a scope for each request "
                   "or step.", class_="lead"), *cards, id="serve")


def figures_table(results):
    return draw_by_metric(results, BENCH, results.case_names(BENCH),
                          "Servers and training loops, every figure",
                          lambda metric: curves.split_metric(metric) is None)


# ---- verdicts

def least_of_peers(results, case, metric):
    values = results.by_allocator(BENCH, case, metric)
    others = [values[name] for name in kin.peers(values)]
    return min(others) if others else None


def below(case, who, figure_name, value, limit, unit):
    if value is None or limit is None:
        return []
    return [Verdict(f"{title_of(case)}, {who}", figure_name, value, limit, value <= limit,
                    unit=unit)]


def over(value, limit):
    return value / limit if value is not None and limit else None


def of_loop(results, case, who):
    def mine(metric):
        return results.value(BENCH, case, who, metric)
    cpu, peak = "cpu_ms_per_step", "peak_bytes"
    return below(case, who, "time of a step over that of the best peer",
                 over(mine(cpu), least_of_peers(results, case, cpu)), 1.02, "ratio") + \
        below(case, who, "peak memory over that of the smallest peer",
              over(mine(peak), least_of_peers(results, case, peak)), 1.0, "ratio") + \
        below(case, who, "page faults of a step", mine("faults_per_step"), 1.0, "count")


def of_server(results, case, who):
    def mine(metric):
        return results.value(BENCH, case, who, metric)
    cpu = "cpu_us_per_request"
    found = below(case, who, "time of a request over that of the best peer",
                 over(mine(cpu), least_of_peers(results, case, cpu)), 1.0, "ratio") + \
        below(case, who, "time of a request over glibc's", mine(CPU_SHARE), 0.95, "ratio")
    if case in KEEPS_ITS_OWN:
        return found
    return found + \
        below(case, who, "resident 50 requests after a spike, over before",
              mine("spike_resident_ratio"), 1.15, "ratio") + \
        below(case, who, "resident after many mixed requests, over after the first 1,000",
              mine("mixed_resident_ratio"), 1.05, "ratio")


def of_pairs(results, case, who):
    """In a scope by the clock, outside against jemalloc: that is who serves them."""
    mine = results.value(BENCH, case, who, "cpu_ms_per_step")
    if who == "ebb-scopes":
        return below(case, who, "nanoseconds of a pair in a scope", mine, 5.0, "count")
    theirs = results.value(BENCH, case, "jemalloc", "cpu_ms_per_step")
    return below(case, who, "time of a pair over jemalloc's", over(mine, theirs), 1.05, "ratio")


def of_requests(results, case, who):
    """Without a server: time of processors is all that is asked for."""
    mine = results.value(BENCH, case, who, "cpu_ms_per_step")
    return below(case, who, "processor time of a request over that of the best peer",
                 over(mine, least_of_peers(results, case, "cpu_ms_per_step")), 1.0, "ratio")


JUDGES = {"train": of_loop, "pairs": of_pairs, "loop": of_requests}


def verdicts(results):
    found = []
    for case in results.case_names(BENCH):
        judge = JUDGES.get(case.partition("-")[0], of_server)
        for who in OURS:
            found += judge(results, case, who)
    return found
