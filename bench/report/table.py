# SPDX-License-Identifier: Apache-2.0
"""table.py - every figure, sortable.

Traces share their metrics: one row per case and allocator, one column per metric. Micro
benchmarks have each their own: one row per case and metric, one column per allocator. Without the
page's script they are still tables, in the order of the results.
"""

import re

import kin
import quantity
from markup import tag

FIRST = ("step_us", "step_us_spread_percent", "peak_rss_bytes", "footprint_bytes",
         "footprint_ratio", "faults_per_step", "syscalls_per_step")


def columns_of(results, bench, cases):
    names = {metric for case in cases for allocator in results.allocator_names(bench, case)
             for metric in results.metrics(bench, case, allocator)}
    known = [metric for metric in FIRST if metric in names]
    return known + sorted(names - set(known), key=natural)


def natural(metric):
    """Sorts n100 before n1000."""
    return [(len(part), part) if at % 2 else part
            for at, part in enumerate(re.split(r"([0-9]+)", metric))]


def head_cell(words):
    return tag("th", tag("button", words, type="button"), scope="col", aria_sort="none")


def value_cell(metric, value):
    if value is None:
        return tag("td", "", data_value="")
    return tag("td", quantity.text_of(metric, value), data_value=repr(value))


def row_of(results, bench, case, allocator, columns):
    metrics = results.metrics(bench, case, allocator)
    css = "ebb" if allocator == "ebb" else None
    return tag("tr", tag("th", case, scope="row", data_value=case),
               tag("td", allocator, data_value=allocator, class_="allocator"),
               *[value_cell(metric, metrics.get(metric)) for metric in columns], class_=css)


def framed(heads, rows, label):
    head = tag("tr", *[head_cell(name) for name in heads])
    return tag("div", tag("table", tag("caption", label), tag("thead", head),
                          tag("tbody", *rows), class_="figures sortable"),
               class_="scroll", tabindex="0", role="region", aria_label=label)


def draw(results, bench, cases, label):
    columns = columns_of(results, bench, cases)
    if not columns:
        return None
    rows = [row_of(results, bench, case, allocator, columns) for case in cases
            for allocator in kin.in_order(results.allocator_names(bench, case))]
    heads = ["case", "allocator"] + [name.replace("_", " ") for name in columns]
    return framed(heads, rows, label)


def metric_row(results, bench, case, metric, allocators):
    values = results.by_allocator(bench, case, metric)
    return tag("tr", tag("th", case, scope="row", data_value=case),
               tag("td", metric.replace("_", " "), data_value=metric, class_="allocator"),
               *[value_cell(metric, values.get(name)) for name in allocators])


def draw_by_metric(results, bench, cases, label, wanted=lambda metric: True):
    allocators = kin.in_order({name for case in cases
                               for name in results.allocator_names(bench, case)})
    rows = [metric_row(results, bench, case, metric, allocators)
            for case in cases for metric in columns_of(results, bench, [case]) if wanted(metric)]
    return framed(["case", "metric"] + allocators, rows, label) if rows else None
