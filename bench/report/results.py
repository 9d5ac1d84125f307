# SPDX-License-Identifier: Apache-2.0
"""results.py - what the benchmarks wrote, read with patience.

The files: docs/benchmarking.md ("Files that a run writes"). A results file may come from an older
or a newer benchmark, or from one that was interrupted. Everything that is missing is simply
missing; what cannot be understood is counted in `skipped` and left out. Only a file that cannot
be opened or is no JSON object at all is an error.

Rows may be objects with the keys bench, case, allocator, metric, value, or lists of the five.
"""

import json
import math


class Row:
    def __init__(self, bench, case, allocator, metric, value):
        self.bench, self.case, self.allocator = bench, case, allocator
        self.metric, self.value = metric, value


def as_dict(value):
    return value if isinstance(value, dict) else {}


def as_list(value):
    return value if isinstance(value, list) else []


LARGEST, SMALLEST = 1e18, 1e-18  # nothing that is measured comes near, and axes need an end


def as_number(value):
    """A float up to LARGEST, below SMALLEST 0, or None. Text that is a number counts; booleans do
    not."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if abs(number) < SMALLEST:
        return 0.0
    return number if math.isfinite(number) and abs(number) <= LARGEST else None


class Results:
    def __init__(self):
        self.machine, self.settings = {}, {}
        self.allocators, self.cases, self.targets = [], {}, []
        self.series, self.histograms = {}, {}
        self.reports = {}
        self.skipped = 0
        self._values = {}

    def add_json(self, text):
        """Raises ValueError if `text` is no JSON object."""
        try:
            data = json.loads(text)
        except RecursionError as fault:
            raise ValueError("nested too deeply") from fault
        if not isinstance(data, dict):
            raise ValueError("not a JSON object")
        self.machine.update(as_dict(data.get("machine")))
        self.settings.update(as_dict(data.get("settings")))
        self.allocators += [item for item in as_list(data.get("allocators"))
                            if isinstance(item, dict)]
        for item in as_list(data.get("cases")):
            self._add_case(as_dict(item))
        for row in as_list(data.get("rows")):
            self._add_row(row)
        for item in as_list(data.get("series")):
            self._add_series(as_dict(item))
        for item in as_list(data.get("reports")):
            self._add_report(as_dict(item))
        for item in as_list(data.get("histograms")):
            self._add_histogram(as_dict(item))
        self.targets += [item for item in as_list(data.get("targets")) if isinstance(item, dict)]

    def add_tsv(self, text):
        """Whether there was a row in it."""
        found = False
        for line in text.split("\n"):
            if line.strip() and not line.startswith("#"):
                found = self._add_row(line.split("\t")) or found
        return found

    def _add_case(self, item):
        if isinstance(item.get("case"), str):
            self.cases[item["case"]] = item
        elif item:
            self.skipped += 1

    def _add_row(self, row):
        """Whether it was one."""
        if isinstance(row, dict):
            row = [row.get(key) for key in ("bench", "case", "allocator", "metric", "value")]
        value = as_number(row[4]) if isinstance(row, list) and len(row) == 5 else None
        if value is None or not all(isinstance(word, str) for word in row[:4]):
            self.skipped += 1
            return False
        bench, case, allocator, metric = row[:4]
        self._values.setdefault((bench, case), {}).setdefault(allocator, {})[metric] = value
        return True

    def _add_series(self, item):
        values = [as_number(value) for value in as_list(item.get("values"))]
        key = (item.get("case"), item.get("allocator"), item.get("name"))
        if not values or None in values or not all(isinstance(word, str) for word in key):
            self.skipped += 1
            return
        self.series[key] = values

    def _add_report(self, item):
        key = (item.get("case"), item.get("allocator"), item.get("name"))
        if not all(isinstance(word, str) for word in key) or \
                not isinstance(item.get("report"), dict):
            self.skipped += 1
            return
        self.reports.setdefault(key, []).append(item["report"])

    def _add_histogram(self, item):
        upto, count, weight = (as_list(item.get(key)) for key in ("upto", "count", "bytes"))
        key = (item.get("case"), item.get("name"))
        if not all(isinstance(word, str) for word in key) or not upto \
                or not len(upto) == len(count) == len(weight):
            self.skipped += 1
            return
        self.histograms[key] = [(as_number(edge), as_number(n) or 0.0, as_number(b) or 0.0)
                                for edge, n, b in zip(upto, count, weight)]

    def untouched(self):
        """Whether the replay left the blocks alone: such a run has neither `step_us` nor memory."""
        return self.settings.get("touch") is False

    def case_names(self, bench):
        """In the order in which they were met."""
        return [case for (name, case) in self._values if name == bench]

    def allocator_names(self, bench, case):
        return list(self._values.get((bench, case), {}))

    def metrics(self, bench, case, allocator):
        return self._values.get((bench, case), {}).get(allocator, {})

    def value(self, bench, case, allocator, metric):
        """The figure, or None."""
        return self.metrics(bench, case, allocator).get(metric)

    def by_allocator(self, bench, case, metric):
        """{allocator: value} of those that have one."""
        found = {}
        for allocator, metrics in self._values.get((bench, case), {}).items():
            if metric in metrics:
                found[allocator] = metrics[metric]
        return found

    def course(self, case, allocator):
        """[(event, live bytes, page bytes)] of one step, or []."""
        columns = [self.series.get((case, allocator, f"course_{name}"), [])
                   for name in ("event", "live_bytes", "page_bytes")]
        return list(zip(*columns)) if len({len(column) for column in columns}) == 1 else []

    def reports_of(self, case, allocator, name):
        """What an allocator said about itself: a list of objects whose contents nobody checked."""
        return self.reports.get((case, allocator, name), [])

    def series_of(self, name):
        """{case: {allocator: values}} of one name."""
        found = {}
        for (case, allocator, other), values in self.series.items():
            if other == name:
                found.setdefault(case, {})[allocator] = values
        return found
