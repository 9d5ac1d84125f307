#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""test_report.py - bench/report on results that are hostile, broken or empty.

Claims: whatever a results file holds, the page is well formed, holds no element that the report
did not make, and fetches nothing; what is missing is missing quietly; what is no results file is
an error with a message and no page.
"""

import ctypes
import fcntl
import html
import html.parser
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
REPORT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "report"
sys.path.insert(0, str(REPORT))

import buckets  # noqa: E402
import page  # noqa: E402
import plan  # noqa: E402
import planner  # noqa: E402
import program  # noqa: E402
import quantity  # noqa: E402
import scale  # noqa: E402
import scatter  # noqa: E402
import serve  # noqa: E402
import targets  # noqa: E402
from results import Results  # noqa: E402

EVIL = "\"><script>alert('x')</script><img src=x onerror=alert(1)>&'\u2028"
VOID = {"meta", "br", "img", "link", "input"}


class Outline(html.parser.HTMLParser):
    """Collects the elements and checks that every one is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.faults, self.attributes = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def outline(text):
    parser = Outline()
    parser.feed(text)
    parser.close()
    return parser


def row(case="t.full", allocator="ebb", metric="step_us", value=1.0, bench="churn"):
    return {"bench": bench, "case": case, "allocator": allocator, "metric": metric,
            "value": value}


def drawn(data, tsv=""):
    results = Results()
    results.add_json(json.dumps(data))
    results.add_tsv(tsv)
    return page.draw(results)


def full_data(name, allocator="ebb"):
    """Every kind of entry, with `name` wherever a name may stand."""
    peers = [allocator, "glibc", name]
    rows = [row(f"{name}.full", peer, metric, 2.0 + i) for i, peer in enumerate(peers)
            for metric in ("step_us", "peak_rss_bytes", "footprint_ratio", name)]
    rows += [row(name, peer, metric, 3.0 + i, "micro") for i, peer in enumerate(peers)
             for metric in ("ns_per_object", f"{name}.n100", f"{name}.n1000", name)]
    course = [{"case": f"{name}.full", "allocator": peer, "name": f"course_{column}",
               "values": [0, 5, 9]} for peer in peers
              for column in ("event", "live_bytes", "page_bytes")]
    spikes = [{"case": name, "allocator": peer, "name": series, "values": [1, 1, 1, 90, 1]}
              for peer in peers for series in ("spike_rss_bytes", "spike_step_us")]
    slots = [["placed", 0, 64, 0, 60], ["tenured", 0, 0, 0, 8], ["placed", 64, 64, 0, 0],
             ["placed", 0, 32, 1, 99], ["left", 0, 0, 1, 0]]
    reports = [{"case": f"{name}.full", "allocator": allocator, "name": "site",
                "report": {"site": name, "steps": 9, "hits": 8, "missed": 1, "suspended": True}},
               {"case": f"{name}.full", "allocator": allocator, "name": "plan",
                "report": {"site": name, "tag": 0, "height": 4096, "max_live": 128,
                           "followed": True, "slots": slots, "order": [0, 2]}}]
    return {"machine": {name: name, "date": name}, "settings": {"traces": name},
            "allocators": [{"name": name, "version": name, "settings": name}],
            "cases": [{"case": f"{name}.full", "view": name, "main_kind": name, "events": name}],
            "rows": rows, "series": course + spikes, "reports": reports,
            "histograms": [{"case": f"{name}.full", "name": kind, "upto": [16, 32, None],
                            "count": [1, 2, 3], "bytes": [1, 2, 3]}
                           for kind in ("sizes", "lifetimes")],
            "targets": [{"case": f"{name}.full", "target": name, "limit": 1, "value": 2,
                         "met": False, "text": name}]}


class MachineTest(unittest.TestCase):
    def test_measured_numbers_have_three_digits(self):
        self.assertEqual(page.machine_text("load", 6.8056640625), "6.81")
        self.assertEqual(page.machine_text("quick", False), "False")


class BucketsTest(unittest.TestCase):
    def test_the_highest_buckets_have_their_shares(self):
        picture = str(buckets.draw([(16, 1, 0), (32, 3, 2), (64, 0, 1)], "size", True))
        self.assertEqual(re.findall(r">(\d+ %)<", picture), ["75 %", "67 %"])
        self.assertNotIn(" %<", str(buckets.draw([(None, 0, 0), (1, 0, 0)], "size", True)))
        self.assertEqual(re.findall(r">(\d+ %)<", str(buckets.draw([(8, 4, 0)], "size", True))),
                         ["100 %"])

    def test_labels_below_buckets_leave_each_other_room(self):
        for count in range(1, 40):
            edges = [2 ** (i + 1) for i in range(count)] + [None]
            drawn_text = str(buckets.draw([(edge, 1, 1) for edge in edges], "lifetime", False))
            places = [float(x) for x in re.findall(
                r'<text x="([0-9.]+)"[^>]*class="tick"[^>]*text-anchor="middle"', drawn_text)]
            self.assertIn(">never<", drawn_text)
            for left, right in zip(places, places[1:]):
                self.assertGreaterEqual(right - left, buckets.LABEL, count)


class PlanTest(unittest.TestCase):
    def test_blocks_live_until_the_allocation_before_which_they_are_released(self):
        report = full_data("trace")["reports"][1]["report"]
        found = plan.Plan(report)
        self.assertEqual([(block.born, block.died) for block in found.blocks],
                         [(0, 3), (2, 5), (3, 5)])
        self.assertEqual([block.is_hit() for block in found.blocks], [True, False, False])
        self.assertEqual(found.tenured, [(1, True)])

    def test_of_a_large_plan_the_blocks_that_cover_most_are_shown(self):
        slots = [["placed", 16 * i, 16 * (i % 7 + 1), 0, 0] for i in range(3 * plan.BLOCKS_MOST)]
        found = plan.Plan({"height": 1 << 30, "slots": slots, "order": []})
        shown, left_out = found.shown()
        self.assertEqual((len(shown), left_out), (plan.BLOCKS_MOST, 2 * plan.BLOCKS_MOST))
        least = min(block.area() for block in shown)
        self.assertLessEqual(sorted(block.area() for block in found.blocks)[left_out - 1], least)
        self.assertEqual([block.born for block in shown],
                         sorted(block.born for block in shown))


class PageTest(unittest.TestCase):
    def check(self, text):
        found = outline(text)
        self.assertEqual(found.faults, [])
        self.assertEqual(found.open, [])
        self.assertEqual(found.seen.count("script"), 1)
        for tag in ("img", "link", "iframe", "object", "base"):
            self.assertNotIn(tag, found.seen)
        for _, name, value in found.attributes:
            self.assertFalse(name.startswith("on"), name)
            if name in ("href", "src"):
                self.assertRegex(value, r"^#[A-Za-z0-9-]*$")
        return found

    def test_a_complete_file_shows_every_section(self):
        text = drawn(full_data("trace"))
        self.check(text)
        for anchor in ("targets", "traces", "plans", "spike", "micro", "figures", "machine"):
            self.assertIn(f'id="{anchor}"', text)

    def test_a_site_has_a_row_and_its_plan_two_pictures(self):
        text = drawn(full_data("trace"))
        self.check(text)
        self.assertIn("suspended", text)
        self.assertIn("88.9 %", text)
        self.assertIn('aria-label="The plan of trace.full"', text)
        self.assertIn('aria-label="The last step of trace.full"', text)
        self.assertIn("1 served in the last step", text)

    def test_reports_of_any_shape_do_no_harm(self):
        good = full_data("trace")
        shapes = (None, 7, "x", [], {}, [[]], [["placed"]], [["placed", -1, 64, 0, 0]],
                  [["placed", 0, 1e300, 0, 0]], [["placed", 0, 1 << 60, 0, 0]],
                  [["placed", 0, 64, None, 0]], [[EVIL, 0, 64, 0, 0]])
        for slots in shapes:
            for order in (None, ["x"], [-1, 10 ** 30, 0, 0], {}):
                good["reports"][1]["report"].update({"slots": slots, "order": order})
                self.check(drawn(good))
        for report in (None, 7, [], "x"):
            good["reports"][0]["report"] = report
            self.check(drawn(good))

    def test_hostile_names_stay_text_everywhere(self):
        text = drawn(full_data(EVIL))
        self.check(text)
        self.assertNotIn("<script>alert", text)
        self.assertNotIn("<img", text)
        self.assertIn("&lt;script&gt;alert", text)

    def test_hostile_rows_of_a_tsv_stay_text(self):
        text = drawn({}, f"micro\t{EVIL}\tebb\t{EVIL}\t1\nmicro\tx\t{EVIL}\tns.n10\t2\n")
        self.check(text)
        self.assertNotIn("<script>alert", text)

    def test_hostile_title_stays_text(self):
        self.check(page.draw(Results(), EVIL))

    def test_the_head_says_that_its_figures_are_of_median_steps(self):
        metrics = {"footprint_ratio": 1.25, "faults_per_step": 3, "faults_per_step_max": 512,
                   "syscalls_per_step": 2, "syscalls_per_step_max": 64}
        results = Results()
        results.add_json(json.dumps({"rows": [row(case, metric=metric, value=value / less)
                                              for case, less in (("a.full", 1), ("b.full", 2))
                                              for metric, value in metrics.items()]}))
        self.assertEqual(
            re.findall(r"<strong>([^<]*)</strong><span>([^<]*)<", page.highlights(results, [])),
            [(value, f"{words} in the median steady step, highest of all traces")
             for value, words in (("1.25×", "footprint over bytes alive"), ("3", "page faults"),
                                  ("2", "system calls"))])

    def test_a_run_that_touches_no_blocks_says_so_and_shows_no_empty_pictures(self):
        said = {True: "Blocks are really written and read", False: "Blocks are neither written"}
        for touch in (True, False):
            data = {"settings": {"touch": touch}, "rows": [row(metric="event_ns")]}
            text = drawn(data)
            self.check(text)
            self.assertIn(said[touch], text)
            self.assertNotIn(said[not touch], text)
            for words in ("no times and footprints", "no course of memory", "Memory over one"):
                self.assertEqual(words in text, touch, words)
            data = full_data("t")  # what is there is shown
            data["settings"] = {"touch": touch}
            self.assertIn("Memory over one step", drawn(data))
        self.assertIn(said[True], drawn({"rows": [row()]}))

    def test_nothing_at_all_is_a_page(self):
        self.assertIn("Nothing was measured", drawn({}))
        self.check(drawn({}))
        self.check(drawn({"rows": [], "series": [], "cases": [], "targets": []}))

    def test_each_part_may_be_missing(self):
        for key in full_data("t"):
            data = full_data("t")
            del data[key]
            with self.subTest(missing=key):
                self.check(drawn(data))

    def test_each_part_may_be_of_a_wrong_type(self):
        for key in full_data("t"):
            for value in (None, 7, "text", [], {}, [None], [[]], [{}], [7], {"a": [1]}):
                data = full_data("t")
                data[key] = value
                with self.subTest(part=key, value=value):
                    self.check(drawn(data))

    def test_numbers_may_be_anything(self):
        for value in (0, -1, 1e300, -1e300, 1e-300, "1.5", "x", None, True, [], float("nan"),
                      float("inf"), 10 ** 400):
            data = full_data("t")
            for item in data["rows"]:
                item["value"] = value
            for item in data["series"]:
                item["values"] = [value] * len(item["values"])
            for item in data["histograms"]:
                item["upto"] = item["count"] = item["bytes"] = [value] * 3
            for item in data["targets"]:
                item["limit"] = item["value"] = item["met"] = value
            with self.subTest(value=value):
                text = drawn(data)
                self.check(text)
                self.assertNotRegex(text, r'="(nan|-?inf)')

    def test_digits_in_names_may_be_anything(self):
        for digits in ("\u00b2", "\u0663", "9" * 5000):
            for case in ("close_n", "promote_objects", "ort-c"):
                rows = [row(case, metric=metric, value=2.0, bench=bench)
                        for bench in ("churn", "micro", "serve")
                        for metric in (digits, f"ns_close.n{digits}", f"a{digits}", "ns_close.n10",
                                       f"ns_auto.b{digits}.n8")]
                with self.subTest(digits=digits[:9], case=case):
                    self.check(drawn({"rows": rows}))

    def test_lengths_far_apart_are_drawn(self):
        for low, high in ((5e-324, 1e18), (0, 5e-324), (1e-300, 1e-299), (-5e-324, 5e-324)):
            rows = [row(case, peer, "ns_close.n10", value, "micro")
                    for case in ("close_n", "promote") for peer, value in (("ebb", low),
                                                                          ("glibc", high))]
            rows += [row("t.full", peer, metric, value) for metric in ("step_us", "peak_rss_bytes")
                     for peer, value in (("ebb", low), ("glibc", high))]
            series = [{"case": "spike.x", "allocator": "ebb", "name": "spike_rss_bytes",
                       "values": [low, low, low, high]}]
            with self.subTest(low=low, high=high):
                text = drawn({"rows": rows, "series": series})
                self.check(text)
                self.assertNotRegex(text, r"[\" ,](nan|-?inf)[\" ,]")

    def test_only_the_synthetic_spike_is_kept_from_the_traces(self):
        text = drawn({"rows": [row("spike.full", "ebb", "step_us", 2.0),
                               row("spike.synthetic", "ebb", "spike_rss_ratio_20", 1.0)]})
        self.check(text)
        self.assertEqual(re.findall(r'id="case-([^"]*)"', text), ["spike-2e-full"])
        self.assertIn(">1 recorded allocation streams", text)

    def test_a_sweep_has_a_picture_for_each_size_and_a_line_for_each_mode(self):
        rows = [row("promote_objects", "ebb", f"ns_{mode}.b{size}.n{count}", 9.0 * count, "micro")
                for mode in ("copy", "relink", "auto") for size in (4096, 65536)
                for count in (1, 64)]
        text = drawn({"rows": rows})
        self.check(text)
        self.assertEqual(text.count("that survive\""), 2)
        self.assertEqual(text.count("<polyline"), 6)

    def test_odd_points_of_a_sweep_are_left_out(self):
        for metric in ("ns_auto", "ns_auto.b4", "ns_auto.n8", "ns_auto.bx.n8", ".b4.n8", "x.b4.n",
                       f"{EVIL}.b4.n8", "ns_auto.b" + "9" * 400 + ".n" + "9" * 400):
            with self.subTest(metric=metric):
                self.check(drawn({"rows": [row("promote_objects", "ebb", metric, 1, "micro")]}))

    def test_sequences_have_a_picture_for_each_kind_and_a_mark_for_each_peer(self):
        rows = [row("pack_float32_64", metric=metric, value=value, bench="sequence")
                for metric, value in (("over_floor", 1.1), ("faster_than_torch", 20))]
        rows += [row("join_int64_0", metric="over_floor", value=2, bench="sequence"),
                 row("odd", metric="over_floor", value=2, bench="sequence"),
                 row("pad_float32_64", metric="over_floor", value=0, bench="sequence")]
        text = drawn({"rows": rows})
        self.assertEqual(outline(text).faults, [])
        self.assertEqual(outline(text).seen.count("circle"), 3)
        self.assertIn("float32, 64 features", text)
        self.assertIn("int64 tokens", text)
        self.assertIn("torch: 22 copies", text)
        self.assertNotIn("torch is left out", text)
        self.assertIn("torch is left out", drawn({"rows": rows[2:3]}))

    PLANS = (("a.full", 2000, 1.004, 1.03, 900), ("b_c.tensor", 2001, 1.006, 1.01, 6100),
             ("synthetic_100000", 99996, 1, 1, 70000), ("A.9", 154, 1.2, 1.2, 100))

    def plan_rows(self):
        return [row(case, "ebb", metric, value, "plan")
                for case, *values in self.PLANS for metric, value in
                zip(("buffers", "height_over_live_median", "height_over_live_worst", "plan_us"),
                    values)]

    def test_plans_have_heights_and_times_and_the_worst_of_each_is_judged(self):
        rows = self.plan_rows()
        text = drawn({"rows": rows})
        self.assertEqual(outline(text).faults, [])
        self.assertIn("a.full: 0.400 % in the median step, 3.000 % in the worst", text)
        self.assertIn("synthetic_100000: 99,996 buffers, 70 ms", text)
        self.assertIn("1.0060×", text)
        self.assertEqual(outline(text).seen.count("circle"), 2 * 3 + 4)
        self.assertEqual(text.count('class="limit"'), 2)  # of instances nothing is asked for
        results = Results()
        for line in rows:
            results.add_tsv("\t".join(str(word) for word in line.values()))
        self.assertEqual([(verdict.case, verdict.met) for verdict in planner.verdicts(results)],
                         [("planner, b_c.tensor: the highest of 2 traces", False),
                          ("planner, a.full: the highest of 2 traces", False),
                          ("planner, a.full: the longest up to 2,000 buffers", True),
                          ("planner, b_c.tensor: the longest up to 10,000 buffers", False),
                          ("planner, synthetic_100000: the longest up to 100,000 buffers", True)])

    def test_strange_figures_of_plans_break_nothing(self):
        for metric in ("buffers", "height_over_live_median", "height_over_live_worst", "plan_us"):
            for value in (0, -1, 0.5, 1e18, 1e-300, "x", None):
                for case in ("a.full", "synthetic_", EVIL, "A.9"):
                    with self.subTest(metric=metric, value=value, case=case):
                        rows = self.plan_rows() + [row(case, "ebb", metric, value, "plan")]
                        self.check(drawn({"rows": rows}))

    def test_loaders_have_a_bar_for_each_method_and_verdicts_against_torch(self):
        rows = [row(case, method, metric, value, "loader")
                for case in ("image_u8", "image_u8.w2", "odd") for method, value in
                (("torch-fd", 12), ("packed", 5), ("ebb", 2), ("other", 1))
                for metric in ("cpu_ms_per_batch", "trainer_ms_per_batch")]
        rows.append(row("image_u8", "torch-fd", "cpu_over_ebb", 4.4, "loader"))
        rows.append(row("image_u8", "ebb", "syscalls_per_batch", 20, "loader"))
        text = drawn({"rows": rows + [row("tiny", "ebb", "cpu_ms_per_batch", 0, "loader")]})
        self.assertEqual(outline(text).faults, [])
        self.assertIn("a tensor of 9.6 MB", text)
        self.assertIn("torch-fd: 12 ms", text)
        self.assertEqual(text.count("torch-fd: 12 ms"), 2 * 4)  # seen and heard
        results = Results()
        for line in rows:
            results.add_tsv("\t".join(str(word) for word in line.values()))
        self.assertEqual([verdict.met for verdict in targets.loaders(results)], [False, True])

    def serve_rows(self):
        rows = [row(case, name, metric, value, "serve") for case in ("ort-c", "ort-c-arena", "odd")
                for name, time in (("glibc", 100), ("jemalloc", 96), ("ebb", 94), ("other", 1e18))
                for metric, value in (("cpu_us_per_request", time), ("cpu_over_glibc", time / 100),
                                      ("spike_resident_ratio", 1.2), ("p50_us", 3 * time),
                                      ("p99_us", 9 * time), ("requests_per_second", 2e3 + time),
                                      ("faults_per_request", time / 1e3))]
        rows += [row("train-mlp", name, metric, value, "serve")
                 for name, peak in (("glibc", 50 << 20), ("ebb-scopes", 49 << 20))
                 for metric, value in (("cpu_ms_per_step", 2), ("peak_bytes", peak),
                                       ("faults_per_step", 0))]
        return rows + [row("ort-c", name, f"{prefix}_resident_bytes.n{number}",
                           (40 + number) << 20, "serve") for name in ("glibc", "ebb")
                       for prefix in ("spike", "mixed") for number in range(9)]

    def test_servers_have_pictures_and_no_series_in_the_table(self):
        text = drawn({"rows": self.serve_rows()})
        self.assertEqual(outline(text).faults, [])
        self.assertIn("ebb: 0.94 times glibc", text)
        self.assertIn("-6.0 %", text)
        self.assertIn("ebb, request 8: 48 MiB", text)
        self.assertIn("ebb: 282 µs in the median, 846 µs at the 99th percentile", text)
        self.assertIn("2,094/s", text)
        self.assertIn("onnxruntime, C API: page faults of a request", text)
        self.assertIn("training, mlp: page faults of a step", text)
        self.assertIn("training, mlp: time against memory", text)
        self.assertIn("spike resident ratio", text)
        self.assertNotIn("spike resident bytes", text)
        self.assertEqual(text.count("resident around a spike"), 1)

    def test_targets_of_servers_and_loops(self):
        results = Results()
        for line in self.serve_rows():
            results.add_tsv("\t".join(str(word) for word in line.values()))
        met = {}
        for verdict in serve.verdicts(results):
            met.setdefault(verdict.case, []).append(verdict.met)
        # The arena is onnxruntime's own: what it keeps after a spike is judged for no allocator.
        self.assertEqual(met, {"onnxruntime, C API, ebb": [True, True, False],
                               "onnxruntime, C API, its own arena, ebb": [True, True],
                               "odd, ebb": [True, True, False],
                               "training, mlp, ebb-scopes": [True, True, True]})

    def test_strange_figures_of_servers_break_nothing(self):
        for metric in ("cpu_over_glibc", "cpu_ms_per_step", "peak_bytes", "cpu_us_per_request",
                       "p50_us", "p99_us", "requests_per_second", "faults_per_request",
                       "spike_resident_bytes.n0", "spike_resident_bytes.n7",
                       "mixed_resident_bytes.n1", f"mixed_resident_bytes.n{'9' * 400}"):
            for value in (0, -1, 1e18, 1e-300, "x", None):
                with self.subTest(metric=metric, value=value):
                    rows = self.serve_rows() + [row(case, EVIL, metric, value, "serve")
                                                for case in ("ort-c", "train-mlp", EVIL)]
                    self.check(drawn({"rows": rows}))

    def test_targets_of_sequences_differ_for_tokens(self):
        results = Results()
        for case in ("pack_float32_64", "pack_int64_0"):
            results.add_tsv(f"sequence\t{case}\tebb\tover_floor\t2\n"
                            f"sequence\t{case}\tebb\tfaster_than_torch\t20\n")
        self.assertEqual([verdict.met for verdict in targets.sequences(results)],
                         [False, True, True, False])

    def test_series_of_unequal_length_draw_nothing(self):
        data = full_data("t")
        data["series"][0]["values"] = [1]
        self.check(drawn(data))

    def test_what_cannot_be_read_is_counted(self):
        results = Results()
        results.add_json(json.dumps({"rows": [row(), ["churn", "a", "b", "c"], 5]}))
        results.add_tsv("one\ttwo\n\n# comment\nmicro\ta\tb\tc\tnot a number\n")
        self.assertEqual(results.skipped, 4)
        self.assertIn("4 entries of the results could not be read", page.draw(results))

    def test_rows_end_at_the_ends_of_lines_alone(self):
        results = Results()
        cases = ["a\u2028b", "a\fb", "a\x1cb", "a\x85b", "a\rb"]
        results.add_tsv("".join(f"micro\t{case}\tebb\tns\t1\r\n" for case in cases))
        self.assertEqual((results.case_names("micro"), results.skipped), (cases, 0))

    def test_anchors_of_different_cases_differ(self):
        found = self.check(drawn({"rows": [row("a b.full"), row("a-b.full"), row("a_b.full")]}))
        names = [value for _, name, value in found.attributes if name == "id"]
        self.assertEqual(len(names), len(set(names)))


def fate(blocks=4, size=400):
    """Half dies in time; the rest goes the other three ways."""
    parts = {"born": [blocks, size], "died": [blocks / 2, size / 2]}
    return {**parts, "next": [1, size / 4], "later": [0, 0], "never": [1, size / 4]}


def program_figures(name):
    return {"trace": f"/x/{name}.trace.gz", "events": 10, "objects": 5, "max_live_bytes": 400,
            "sites": True, "main_kind": name,
            "kinds": [{"kind": "load", "steps": 1, "peak": 4096, "fate": fate(9, 9000)},
                      {"kind": name, "steps": 2, "peak": 301, "fate": fate()}],
            "places": [{"place": name, "fate": fate()}],
            "steps": [{"number": 2 * i, "born": [400, 400], "survived": [200, 200],
                       "peak": [300, 301 - i]} for i in (0, 1)]}


class StyleTest(unittest.TestCase):
    """What the style sheet promises to small pages, to paper and to weak eyes."""
    SHEET = (REPORT / "report.css").read_text(encoding="utf-8")

    @staticmethod
    def light(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
                 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    def test_words_stand_out_from_what_is_behind_them(self):
        light, dark = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", part)) for part in
                       self.SHEET.partition("* {")[0].split("prefers-color-scheme")]
        for colours in (light, dark):
            for words, behind in (("faint", "card"), ("faint", "paper"), ("soft", "card"),
                                  ("soft", "paper"), ("warm", "warm-pale"), ("warm", "card"),
                                  ("ebb", "card"), ("ink", "paper"), ("tip-ink", "tip")):
                pair = sorted(self.light(colours[name]) for name in (words, behind))
                self.assertGreaterEqual((pair[1] + 0.05) / (pair[0] + 0.05), 4.5, (words, behind))

    def test_words_of_wide_pictures_are_legible_on_a_phone(self):
        picture = program.draw_steps(program_figures("train")["steps"])
        self.assertTrue(picture.startswith('<div class="pan" tabindex="0"><svg'))
        width = float(re.search(r'viewBox="0 0 ([0-9]+)', picture)[1])
        least = float(re.search(r'style="min-width: ([0-9]+)px"', picture)[1])
        self.assertGreaterEqual(12 * least / width, 9)
        self.assertIn(".pan { overflow-x: auto; }", self.SHEET)

    def test_names_without_a_blank_are_broken(self):
        broken = re.search(r"([^\n]*) \{ overflow-wrap: anywhere; \}", self.SHEET)[1].split(", ")
        self.assertLessEqual({"h1", ".lead", ".facts", "figcaption"}, set(broken))

    def test_paper_has_no_table_that_is_wider(self):
        printed = self.SHEET.partition("@media print")[2]
        self.assertRegex(printed, r"#figures \{ display: none; \}")
        self.assertRegex(printed, r"th, td \{[^}]*white-space: normal;")
        self.assertRegex(printed, r"\.pan \.chart \{ min-width: 0 !important; \}")


class ProgramTest(unittest.TestCase):
    """The page of one recorded program."""

    def page_of(self, figures, data=None):
        results = Results()
        results.add_json(json.dumps(data or {}))
        text = program.draw(figures, results)
        found = outline(text)
        self.assertEqual((found.open, found.faults), ([], []))
        return text, found

    def test_says_what_dies_and_what_survives(self):
        text, _ = self.page_of(program_figures("train"), {"rows": [
            row(value=2.0), row(allocator="glibc", value=3.0)]})
        for words in ("50.0 %", "1.50×", "What survives", "train"):
            self.assertIn(words, text)

    def test_its_figures_are_of_the_kind_that_is_replayed(self):
        text, _ = self.page_of(program_figures("train"), {"rows": [row(value=2.0)]})
        self.assertIn("blocks die with their step, <code>train</code>", text)
        self.assertIn("<strong>100 B</strong><span>outlive a step", text)
        self.assertIn("A step is one of <code>train</code>.", text)

    def test_the_highest_of_many_steps_is_shown(self):
        text, _ = self.page_of(program_figures("train"))
        self.assertIn("<td>301 B</td><td>100 B</td>", text)  # the peak, and what outlives it
        points = re.search(r'<polyline points="([^"]*)"[^>]*data-tip="at once"', text)
        across = [point.split(",")[0] for point in points.group(1).split()]
        self.assertEqual((len(across), len(set(across))), (3, 2))
        self.assertIn("the lowest and the highest of each 2<", text)

    def test_heads_of_several_words_wrap_before_columns_are_cut_off(self):
        text, _ = self.page_of(program_figures("train"))
        self.assertEqual(text.count('<table class="worded">'), 2)
        self.assertIn(".worded thead th { white-space: normal; }", StyleTest.SHEET)

    def test_the_picture_of_steps_says_of_which_kind_they_are(self):
        text, _ = self.page_of(program_figures("train"))
        self.assertIn('<span class="note">of <code>train</code>, the lowest', text)

    def test_the_title_has_the_whole_name(self):
        for name, told in (("a.b.c.trace.gz", "a.b.c"), ("..trace.gz", "."), ("x.y", "x.y"),
                           (".trace.gz", ".trace.gz"), ("train.trace", "train")):
            text, _ = self.page_of({"trace": f"/x.z/{name}"})
            self.assertIn(f"<h1>ebb: what {told} would gain</h1>", text)

    def test_bytes_of_steps_without_any_begin_at_zero(self):
        for bytes_of in ((0, 0), (0, 1), (1, 1)):
            picture = program.draw_steps([{"number": i, "born": [size, size], "survived": [0, 0],
                                           "peak": [size, size]}
                                          for i, size in enumerate(bytes_of)])
            ticks = re.findall(r'text-anchor="(?:middle|end)"[^>]*>([0-9.]+)(?: B)?<', picture)
            self.assertEqual(set(ticks), {"0", "1"})
            bottom = re.findall(r'points="([^"]*)"[^>]*data-tip="outlive it"', picture)[0]
            self.assertEqual({y for point in bottom.split() for y in [point.split(",")[1]]},
                             {"220.0"})

    def test_printed_tables_have_all_of_their_height(self):
        text, _ = self.page_of(program_figures("train"))
        printed = text.partition("@media print")[2].partition("</style>")[0]
        self.assertRegex(printed, r"\.scroll \{[^}]*overflow: visible;[^}]*max-height: none;")

    def test_a_place_has_a_brief_name_and_its_whole_one_in_the_tip(self):
        whole = "one::two<int>::three(int) (libx.so.1)"
        figures = program_figures("train")
        figures["places"][0].update({"place": whole, "brief": "three"})
        text, _ = self.page_of(figures)
        self.assertIn(f'title="{html.escape(whole)}">three</th>', text)

    def test_shares_are_all_or_none_only_where_they_are(self):
        for part, whole, text in ((0, 0, "–"), (0, 5, "0.0 %"), (5, 5, "100.0 %"),
                                  (1, 10 ** 9, "<0.1 %"), (10 ** 9 - 1, 10 ** 9, ">99.9 %"),
                                  (1, 1000, "0.1 %"), (999, 1000, "99.9 %"), (1, 2, "50.0 %")):
            self.assertEqual(program.share_text(part, whole), text)
        self.assertEqual(program.each_text(1, 10 ** 9), "<0.001")

    def test_hostile_names_stay_text(self):
        _, found = self.page_of(program_figures(EVIL))
        self.assertEqual(found.seen.count("script"), 1)
        self.assertNotIn("img", found.seen)

    def test_what_is_typed_or_named_is_set_as_code(self):
        for figures in (program_figures("train"), {**program_figures("train"), "kinds": []}):
            text, found = self.page_of(figures)
            self.assertIn("code", found.seen)
            self.assertNotIn("`", text.partition("<script>")[0].partition("</style>")[2])

    def test_each_part_may_be_missing_or_of_a_wrong_type(self):
        whole = program_figures("train")
        for part in whole:
            for wrong in (None, 7, "x", [], {}, [[]], [{}], [{"fate": 7}], {"born": "x"}):
                self.page_of({**whole, part: wrong})
            self.page_of({key: value for key, value in whole.items() if key != part})
        self.page_of({})


class VerdictTest(unittest.TestCase):
    def verdicts(self, rows):
        results = Results()
        results.add_json(json.dumps({"rows": rows}))
        return {(v.case, v.target): v.met for v in targets.churn(results)}

    def test_time_equal_to_the_fastest_peer_is_met_and_above_it_is_not(self):
        for mine, met in ((1.0, True), (1.01, False)):
            rows = [row(value=mine), row(allocator="glibc", value=3.0),
                    row(allocator="mimalloc", value=1.0)]
            self.assertEqual(self.verdicts(rows)[("t.full", "step_us")], met)

    def test_footprint_limit_depends_on_the_view(self):
        rows = [row(f"t.{view}", metric="footprint_ratio", value=1.3)
                for view in ("tensor", "full")]
        found = self.verdicts(rows)
        self.assertFalse(found[("t.tensor", "footprint")])
        self.assertTrue(found[("t.full", "footprint")])

    def test_a_footprint_is_missed_by_a_single_step(self):
        for ratio, over, met in ((1.1, 1, False), (1.1, 0, True), (1.9, 0, True)):
            rows = [row(metric="footprint_ratio", value=ratio),
                    row(metric="footprint_steps_over", value=over)]
            self.assertIs(self.verdicts(rows)[("t.full", "footprint")], met)

    def test_the_worst_point_of_a_sweep_decides(self):
        for worst, met in ((1.1, True), (1.11, False)):
            results = Results()
            results.add_json(json.dumps({"rows": [
                row("promote_objects", "ebb", f"auto_over_best.b4096.n{count}", value, "micro")
                for count, value in ((1, 0.9), (8, worst), (64, 1.0))]}))
            self.assertEqual([(v.value, v.met) for v in targets.micro(results)], [(worst, met)])

    def test_the_numbers_behind_a_verdict_are_for_those_who_listen_too(self):
        data = {"rows": [row(value=9.0), row(allocator="glibc")], "targets": [
            {"case": "t.full", "target": target, "limit": 2, "value": 3, "met": met, "text": text}
            for target, met, text in (("a", False, "3 of at most 2"), ("b", None, ""))]}
        text = drawn(data)
        self.assertIn('aria-label="missed, 3 of at most 2:">✗</span>', text)
        self.assertRegex(text, 'aria-label="not judged, ≤ [^"]*:">·</span>')
        self.assertIn('setAttribute("aria-label", title.textContent)', text)
        self.assertIn("cell.tabIndex = 0;", text)

    def test_missing_figures_give_no_verdict(self):
        self.assertEqual(self.verdicts([row(allocator="glibc")]), {})

    def test_instructions_that_cannot_be_judged_give_no_verdict(self):
        def found(*metrics):
            results = Results()
            results.add_json(json.dumps(
                {"rows": [row("instructions", "gcc", metric, 9, "micro") for metric in metrics]}))
            page.draw(results)
            return [(v.case, v.limit) for v in targets.micro(results)]
        self.assertEqual(found("due.release", "due.4096.64"), [])  # by what is bumped
        self.assertEqual(found("x", "due", "fast_path", "fast_path.48", "fast_path.4.8.2"), [])
        self.assertEqual(found("due.release", "fast_path.48", "slow_path.48.16"), [])
        self.assertEqual(found("due.release", "fast_path.48.16"),
                         [("instructions, gcc, a release that is due", 21),
                          ("instructions, gcc, 48 bytes aligned to 16", 15)])

    def test_verdicts_of_the_file_are_kept(self):
        results = Results()
        results.add_json(json.dumps({"rows": [row(value=9.0), row(allocator="glibc")], "targets": [
            {"case": "t.full", "target": "step_us", "limit": 1, "value": 9, "met": True}]}))
        self.assertEqual([v.met for v in targets.churn(results)], [True])


class ScatterTest(unittest.TestCase):
    """Widths of the words in DejaVu Sans of 11 units, those of ebb bold."""
    WIDTHS = {"ebb": 23.3, "glibc": 26.1, "jemalloc": 46.2, "mimalloc": 50.1, "tcmalloc": 46.7,
              scatter.HINT: 46.4}

    def boxes(self, picture):
        texts = r'<text x="([^"]*)" y="([^"]*)"(?: text-anchor="([a-z]*)")?[^>]*>([^<]*)<'
        for x, y, kind, name in re.findall(texts, picture):
            width = self.WIDTHS.get(name)
            if width:
                left = float(x) - width * {"end": 1, "middle": 0.5}.get(kind, 0)
                yield left, float(y) - 8, left + width, float(y) + 2

    def check(self, points):
        found = list(self.boxes(scatter.draw_points(points, "footprint_ratio", "", "ms", "")))
        self.assertEqual(len(found), len(self.WIDTHS))
        for i, box in enumerate(found):
            for other in found[:i]:
                self.assertEqual(scatter.overlap(box, other), 0, (points, box, other))

    def test_labels_and_the_hint_leave_each_other_room(self):
        for at in range(100):
            self.check({"glibc": (60.0, 11.5), "jemalloc": (60.0 + at / 5, 2.2),
                        "ebb": (105.0 + at / 5, 2.0), "tcmalloc": (155.0, 2.0),
                        "mimalloc": (169.0, 1.9)})
            self.check({"glibc": (1.0 + at / 50, 15.0), "mimalloc": (1.2 + at / 50, 15.1),
                        "ebb": (2.4, 450.0), "jemalloc": (3.7, 16.0), "tcmalloc": (6.8, 15.0)})


class QuantityTest(unittest.TestCase):
    def test_units_follow_from_the_metric(self):
        for metric, value, text in (
                ("peak_rss_bytes", 1536, "1.5 KiB"), ("bytes", 1 << 40, "1 TiB"),
                ("step_us", 12.7, "12.7 µs"),
                ("ns_close.n1000", 2500, "2.5 µs"), ("ms_per_step", 8.1, "8.1 ms"),
                ("footprint_ratio", 1.234, "1.23×"), ("faults_per_step", 0, "0"),
                ("spread_percent", 3.14159, "3.14 %"), ("step_us_vs_ebb", 1.88, "1.88×"),
                ("event_ns_vs_ebb", 2, "2.00×"), ("peak_rss_bytes_vs_ebb", 1.5, "1.50×"),
                ("footprint_steps_over", 6, "6"), ("footprint_steps_over.train", 6, "6"),
                ("over_floor", 1.5, "1.50×"), ("auto_over_best.b4096.n1", 1.1, "1.10×")):
            self.assertEqual(quantity.text_of(metric, value), text)

    def test_between_whole_values_there_is_no_tick(self):
        for high, kind in ((1, "whole"), (3, "whole"), (1.06, "binary"), (3.2, "binary")):
            ticks = scale.Scale(0, high, 0, 100, **{kind: True}).ticks()
            self.assertEqual(ticks, list(range(int(high) + 1)))
        self.assertEqual(scale.Scale(7, 7, 0, 100, whole=True).ticks(), [7])
        self.assertEqual(scale.Scale(0, 1024, 0, 100, binary=True).ticks(2), [0, 512, 1024])

    def test_ticks_of_values_close_together_differ_and_lie_in_the_frame(self):
        for values, metric in (((1 << 30, (1 << 30) + (3 << 20)), "peak_rss_bytes"),
                               ((1 << 30, (1 << 30) + (13 << 20)), "peak_rss_bytes"),
                               ((1000000, 1000006), "bytes"), ((1025, 1026), "bytes"),
                               ((1.001, 1.002), "footprint_ratio"), ((999.9, 1000.1), "us"),
                               ((5e6, 5e6 + 1), "count"), ((99.98, 99.99), "percent")):
            made = scale.around(values, 0, 100, binary="bytes" in metric)
            ticks, words = made.ticks(5), made.words(metric, 5)
            self.assertGreater(len(ticks), 1, values)
            self.assertEqual(len({words(tick) for tick in ticks}), len(ticks), values)
            for tick in ticks:
                self.assertTrue(-0.01 <= made.at(tick) <= 100.01, (values, tick))
        whole = scale.Scale(1000000, 1000009, 0, 100, whole=True)
        self.assertEqual([whole.words("count", 5)(tick) for tick in whole.ticks(5)],
                         [f"1,000,00{last}" for last in (0, 2, 4, 6, 8)])

    def test_ticks_lie_within_the_scale_and_increase(self):
        for low, high, log, binary in ((0, 1, False, False), (3, 3, False, False),
                                       (1e-9, 1e12, True, False), (1, 1 << 33, True, True),
                                       (0, 5 << 20, False, True), (-5, 7, False, False),
                                       (1, 1.1, True, False)):
            made = scale.Scale(low, high, 0, 100, log=log, binary=binary)
            ticks = made.ticks()
            self.assertEqual(ticks, sorted(set(ticks)))
            self.assertLess(len(ticks), 12)
            for tick in ticks:
                self.assertTrue(-0.1 <= made.at(tick) <= 100.1)


class CommandTest(unittest.TestCase):
    def run_report(self, text, *more):
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.json"), pathlib.Path(folder, "out.html")
            source.write_bytes(text)
            done = subprocess.run(
                [sys.executable, "-B", str(REPORT / "report.py"), "--json", str(source), "--out",
                 str(target), *more], capture_output=True, text=True, check=False)
            return done, target.read_text(encoding="utf-8") if target.exists() else None

    def test_halves_of_characters_are_written(self):
        done, text = self.run_report(json.dumps(full_data("x\ud800y")).encode())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("x?y", text)

    def test_writes_one_page(self):
        done, text = self.run_report(json.dumps(full_data("t")).encode())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(text.startswith("<!DOCTYPE html>"))

    def test_what_is_no_results_file_is_an_error_and_no_page(self):
        for text in (b"", b"{", b"[]", b"\xff\xfe\x00", b"[" * 100000):
            done, written = self.run_report(text)
            self.assertEqual(done.returncode, 1, text[:9])
            self.assertRegex(done.stderr, r"\Areport\.py: \S*/in\.json: .")
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIsNone(written)

    def test_rows_of_a_file_without_any_are_an_error_and_no_page(self):
        with tempfile.NamedTemporaryFile(suffix=".tsv") as file:
            for text, code in (("", 1), ("# Title\n\nSome words.\n", 1), ("a\tb\tc\td\te\n", 1),
                               ("words\nchurn\tt.full\tebb\tstep_us\t1\n", 0)):
                pathlib.Path(file.name).write_text(text, encoding="utf-8")
                done, written = self.run_report(b"{}", "--tsv", file.name)
                self.assertEqual((done.returncode, written is None), (code, code != 0), text)
                self.assertEqual(done.stderr, f"report.py: {file.name}: no rows in it\n" * code)

    def test_rows_of_a_file_end_at_the_ends_of_lines_alone(self):
        with tempfile.NamedTemporaryFile(suffix=".tsv") as file:
            file.write("micro\ta\r\u2028\fb\tebb\tns\t1\n".encode())
            file.flush()
            done, written = self.run_report(b"{}", "--tsv", file.name)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertNotIn("could not be read", written)

    def test_no_file_at_all_is_an_error_and_no_page(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-B", str(REPORT / "report.py"), "--out",
                 str(pathlib.Path(folder, "out.html"))], capture_output=True, text=True,
                check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("neither --json nor --tsv", done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def run_beside(self, folder, name, *limit):
        """Both programs draw their page into the folder, under some limit."""
        source = pathlib.Path(folder, "in.json")
        source.write_text(json.dumps(full_data("t")), encoding="utf-8")
        for script, option in (("report.py", "--json"), ("program.py", "--figures")):
            yield subprocess.run([*limit, sys.executable, "-B", str(REPORT / script), option,
                                  str(source), "--out", str(pathlib.Path(folder, name))],
                                 capture_output=True, text=True, check=False)
        source.unlink()

    def test_a_page_that_cannot_be_written_leaves_the_one_before(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder, "out.html")
            target.write_text("the page before", encoding="utf-8")
            for done in self.run_beside(folder, "out.html", "/bin/sh", "-c",
                                        'ulimit -f 1; exec "$0" "$@"'):
                self.assertEqual(done.returncode, 2 if "report.py" in done.args[-5] else 1)
                self.assertRegex(done.stderr, r"/out\.html: File too large\n\Z")
                self.assertEqual(target.read_text(encoding="utf-8"), "the page before")
            self.assertEqual(os.listdir(folder), ["out.html"])

    def test_a_page_takes_the_place_of_a_file_and_of_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            target, link = pathlib.Path(folder, "out.html"), pathlib.Path(folder, "link")
            target.write_text("the page before", encoding="utf-8")
            link.symlink_to("out.html")
            for done in self.run_beside(folder, "link"):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("</html>", target.read_text(encoding="utf-8"))
                target.write_text("the page before", encoding="utf-8")
            self.assertTrue(link.is_symlink())
            link.unlink()
            os.mkfifo(link)
            pipe = os.open(link, os.O_RDWR | os.O_NONBLOCK)
            self.addCleanup(os.close, pipe)
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
            for done in self.run_beside(folder, "link"):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(b"</html>", os.read(pipe, 1 << 20))
            self.assertTrue(link.is_fifo())
            self.assertEqual(sorted(os.listdir(folder)), ["link", "out.html"])

    def test_a_page_is_written_in_the_way_that_its_place_allows(self):
        with tempfile.TemporaryDirectory() as folder:
            own, long = pathlib.Path(folder, "out.html"), "n" * 250 + ".html"
            two = pathlib.Path(folder, "two")
            for done in self.run_beside(folder, long):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            own.write_text("the page before", encoding="utf-8")
            own.chmod(0o640)
            for done in self.run_beside(folder, "out.html"):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(own.stat().st_mode & 0o7777, 0o640)
            os.link(own, two)
            for done in self.run_beside(folder, "two"):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(os.path.samefile(own, two))
            self.assertEqual(sorted(os.listdir(folder)), [long, "out.html", "two"])

    def test_a_page_may_lie_in_a_folder_that_takes_no_other_file(self):
        def without_override():  # root may write everywhere, with that capability
            ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)

        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w") as source:
            target = pathlib.Path(folder, "out.html")
            target.touch()
            os.chmod(folder, 0o500)
            source.write("{}")
            source.flush()
            done = subprocess.run([sys.executable, "-B", REPORT / "report.py", "--json",
                                   source.name, "--out", target], capture_output=True, text=True,
                                  check=False, preexec_fn=without_override)
            os.chmod(folder, 0o700)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("</html>", target.read_text(encoding="utf-8"))

    def test_a_page_for_the_standard_output_comes_behind_what_is_there(self):
        with tempfile.NamedTemporaryFile("w+") as out, tempfile.NamedTemporaryFile("w") as source:
            out.write("said before\n")
            out.flush()
            source.write("{}")
            source.flush()
            subprocess.run([sys.executable, "-B", REPORT / "report.py", "--json", source.name,
                            "--out", "/dev/stdout"], stdout=out, check=True)
            out.seek(0)
            self.assertRegex(out.read(), r"(?s)\Asaid before\n<!DOCTYPE.*</html>\n\Z")

    def test_a_missing_file_is_named(self):
        done, written = self.run_report(b"{}", "--tsv", "/nonexistent.tsv")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent.tsv", done.stderr)
        self.assertIsNone(written)


class RunTest(unittest.TestCase):
    """bench/run, with nothing to install and nothing to build, and a benchmark that is a script."""

    def run_it(self, churn, *options, only="churn", serve=0, loader="", prepare=lambda root: None):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            program = root / "build" / "release" / "bench" / "churn" / "churn"
            for folder in (root / "bench" / "serve", root / "bench" / "loader",
                           root / "build" / "results", program.parent):
                folder.mkdir(parents=True)
            (root / "bench" / "loader" / "loader.py").write_text(loader)
            (root / "bench" / "serve" / "serve.py").write_text(f"raise SystemExit({serve})")
            (root / "bench" / "report").symlink_to(REPORT)
            lines = (REPORT.parent / "run").read_text(encoding="utf-8").splitlines()
            self.assertEqual(lines[-1], 'main "$@"')
            lines[-1:] = ["install() { :; }", "compile() { :; }", lines[-1]]
            (root / "bench" / "run").write_text("\n".join(lines) + "\n", encoding="utf-8")
            program.write_text(f"#!/bin/sh\n{churn}\n", encoding="utf-8")
            program.chmod(0o755)
            old = root / "build" / "results" / "bench.json"
            old.write_text(json.dumps(full_data("t")), encoding="utf-8")
            prepare(root)
            done = subprocess.run(["bash", root / "bench" / "run", "--only", only, "--traces",
                                   root, *options], capture_output=True, text=True, check=False,
                                  cwd=root)
            return done, (root / "build" / "results" / "bench.html").exists()

    def test_figures_of_a_run_before_are_not_shown_as_new(self):
        for churn in ("kill -9 $$", "exit 127", "exit 2"):
            done, drawn = self.run_it(churn)
            self.assertIn(done.returncode, (1, 2), churn)
            self.assertFalse(drawn, churn)
            self.assertNotIn("report  ", done.stdout)

    def test_a_replay_of_which_a_part_failed_has_a_report(self):
        for code in (0, 1):
            done, drawn = self.run_it(f"exit {code}")
            self.assertEqual((done.returncode, drawn), (code, True), done.stderr)

    def test_servers_that_cannot_be_run_are_left_out_and_those_that_fail_are_not(self):
        for serve, code, said in ((0, 0, ""), (1, 1, "the servers failed"), (2, 1, "differ (2)"),
                                  (3, 0, "they are left out")):
            done, drawn = self.run_it("exit 0", only="churn,serve", serve=serve)
            self.assertEqual((done.returncode, drawn), (code, True), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), serve != 0)

    def test_rows_of_loaders_that_failed_in_part_are_shown(self):
        churn = "while [ $# -gt 1 ]; do [ $1 != --add-rows ] || cat $2; shift; done"
        row = "loader\\ttiny\\tebb\\tcpu_ms_per_batch\\t1"
        for code in (0, 1):
            done, drawn = self.run_it(churn, only="churn,loader",
                                      loader=f"print('{row}')\nraise SystemExit({code})")
            self.assertEqual((done.returncode, drawn), (code, True), done.stderr)
            self.assertIn("loader\ttiny\tebb\tcpu_ms_per_batch\t1\n", done.stdout)
            self.assertEqual("the loaders failed (1)" in done.stderr, code == 1)

    def test_rows_and_instructions_are_shown_where_a_contestant_failed(self):
        def scripts(code):
            def make(root):
                for path, script in (
                        ("build/release/bench/micro/ebb-micro", f"""
                         while [ $# -gt 1 ]; do [ $1 != --tsv ] || file=$2; shift; done
                         printf 'micro\\tx\\tebb\\tns\\t12\\nmicro\\tx\\teb' >$file
                         exit {code}"""),
                        ("bench/micro/instructions.sh",
                         r"printf 'micro\tinstructions\tgcc\tdue\t9\n'")):
                    (root / path).parent.mkdir(parents=True)
                    (root / path).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
                    (root / path).chmod(0o755)
            return make

        churn = "while [ $# -gt 1 ]; do [ $1 != --add-rows ] || cat $2; shift; done"
        for code in (0, 1, 139):
            done, drawn = self.run_it(churn, only="churn,micro", prepare=scripts(code))
            self.assertEqual((done.returncode, drawn), (int(code > 0), True), done.stderr)
            self.assertIn("micro\tx\tebb\tns\t12\nmicro\tinstructions\tgcc\tdue\t9\n\n",
                          done.stdout)
            self.assertEqual(f"the micro benchmarks failed ({code})" in done.stderr, code > 0)

    def test_plans_are_shown_as_a_table_and_as_rows_where_some_failed(self):
        def planner_of(code):
            def make(root):
                program = root / "build/release/bench/plan/ebb-plan"
                program.parent.mkdir()
                program.write_text("#!/bin/sh\n[ $1 = --tsv ] && echo the table, $# words\n"
                                   "printf 'plan\\tx\\tebb\\tplan_us\\t7\\n' >$2\n"
                                   f"exit {code}\n", encoding="utf-8")
                program.chmod(0o755)
                (root / "bench" / "traces").mkdir()
                (root / "bench" / "traces" / "a.trace.gz").touch()
                (root / "bench" / "plan" / "instances").mkdir(parents=True)
                (root / "bench" / "plan" / "instances" / "b.csv").touch()
            return make

        churn = "while [ $# -gt 1 ]; do [ $1 != --add-rows ] || cat $2; shift; done"
        for code in (0, 2):
            done, drawn = self.run_it(churn, only="plan", prepare=planner_of(code))
            self.assertEqual((done.returncode, drawn), (int(code > 0), True), done.stderr)
            self.assertIn("the table, 10 words\nplan\tx\tebb\tplan_us\t7\n", done.stdout)
            self.assertEqual("the planner failed (2)" in done.stderr, code > 0)

    def test_a_run_that_measured_nothing_leaves_the_files_of_the_one_before(self):
        done, drawn = self.run_it("echo asked", only="serve", serve=3)
        self.assertEqual((done.returncode, drawn), (2, False), done.stderr)
        self.assertIn("bench/run: nothing could be measured\n", done.stderr)
        self.assertNotIn("asked", done.stdout)

    def test_what_is_not_replayed_has_the_settings_of_the_run(self):
        done, _ = self.run_it('echo "$@"', "--quick", "--rounds", "2", only="loader",
                              loader=r"print('loader\ttiny\tebb\tcpu_ms_per_batch\t1')")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"--no-replay .*--quick --rounds 2\n")

    def test_a_second_run_at_the_same_time_is_refused(self):
        def hold(root):
            folder = os.open(root / "build" / "results", os.O_RDONLY)
            self.addCleanup(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX)

        done, drawn = self.run_it("echo replayed", prepare=hold)
        self.assertEqual((done.returncode, done.stdout, drawn), (2, "", False))
        self.assertIn("another run is at work in ", done.stderr)

    def test_what_a_run_before_left_is_not_taken_for_this_ones(self):
        left = []

        def leave(root):
            (root / "build" / "results" / "parts").mkdir()
            for name in ("build.log", "micro.tsv"):
                left.append(root / "build" / "results" / "parts" / name)
                left[-1].touch()

        done, _ = self.run_it("ls build/results/parts", prepare=leave)
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in left:
            self.assertNotIn(path.name, done.stdout)

    def test_files_of_the_user_stay_whatever_their_names(self):
        names = ("micro.tsv", "loader.tsv", "serve.tsv", "sequence.tsv", "added.tsv", "build.log")

        def leave(root):
            for name in names:
                (root / "build" / "results" / name).write_text("mine\n", encoding="utf-8")

        done, _ = self.run_it("cd build/results && cat " + " ".join(names), prepare=leave)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("mine\n"), len(names))

    def test_files_among_those_that_each_run_replaces_are_refused(self):
        for option in ("--tsv", "--json", "--html"):
            done, _ = self.run_it("echo replayed", option, "build/results/parts/micro.tsv",
                                  prepare=lambda root: (root / "build/results/parts").mkdir())
            self.assertEqual((done.returncode, done.stdout), (2, ""), option)
            self.assertIn("micro.tsv: what lies there is replaced by each run\n", done.stderr)

    def test_pages_that_cannot_be_are_refused_as_other_files_are(self):
        for options, said in ((("--html", "n" * 256), "n: the name is too long"),
                              (("--tsv", "n" * 256), "n: the name is too long"),
                              (("--json", "/dev/null"), "/dev/null: is no file")):
            done, _ = self.run_it("echo replayed", *options)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertIn(said, done.stderr)
        done, _ = self.run_it("exit 0", "--html", "/dev/full")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/dev/full: No space left on device\n", done.stderr)

    def test_rows_and_page_may_both_be_thrown_away(self):
        done, _ = self.run_it("exit 0", "--html", "/dev/null", "--tsv", "/dev/null")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_long_name_of_a_page_is_a_name(self):
        done, _ = self.run_it("exit 0", "--html", "n" * 250 + ".html")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


def module_of(*path):
    """One of the benchmarks' own."""
    place = REPORT.parent.joinpath(*path)
    found = importlib.util.spec_from_file_location(f"bench_{place.stem}", place)
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


class SequenceTest(unittest.TestCase):
    """The command line of bench/sequence/sequence.py, without torch: that takes long to begin."""

    def run_it(self, *words):
        return subprocess.run([sys.executable, "-B", "-S",
                               REPORT.parent / "sequence" / "sequence.py", *words],
                              capture_output=True, text=True, check=False)

    def test_help_is_no_program(self):
        done = self.run_it("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("PROGRAM is ebb-sequence", done.stdout)

    def test_what_is_no_program_and_no_option_is_refused(self):
        for words, said in (([], "PROGRAM"), (["/bin/true", "--no"], "--no"),
                            (["/nowhere/ebb-sequence"], "/nowhere/ebb-sequence: no such program"),
                            (["/"], "/: no such program")):
            done = self.run_it(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(said, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_what_the_program_says_is_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "program")
            script.write_text("#!/bin/sh\necho no memory at all >&2; exit 1\n", encoding="utf-8")
            script.chmod(0o755)
            done = self.run_it(str(script))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "no memory at all\n"
                                      f"sequence.py: {script} failed (1)\n")


class FairTest(unittest.TestCase):
    def test_the_end_of_what_torch_made_is_in_no_time(self):
        class Made:
            def __del__(self):
                time.sleep(0.02)

        with unittest.mock.patch.dict(sys.modules, torch=None):  # takes long, and is not asked
            module = module_of("sequence", "sequence.py")
        self.assertLess(module.median_ns(Made, 3), 10e6)

    def test_settings_of_the_user_are_for_no_peer(self):
        settings = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "0", "MIMALLOC_VERBOSE": "1",
                    "TCMALLOC_RELEASE_RATE": "9", "LD_PRELOAD": "x", "EBB_MALLOC": "y"}
        module = module_of("serve", "allocators.py")
        with unittest.mock.patch.dict(os.environ, settings):
            found = module.Allocator("glibc", REPORT).environment()
            self.assertFalse(settings.keys() & found.keys())
            self.assertIn("PATH", found)
            tuned = module.Allocator("jemalloc-tuned", REPORT).environment()
            self.assertEqual(tuned["MALLOC_CONF"], module.NO_DECAY)
            self.assertEqual(module.Allocator("ebb", REPORT).environment()["EBB_MALLOC"], "y")


if __name__ == "__main__":
    unittest.main()
