#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""test_docs.py - what the pages show and point to is there.

Claims: each C snippet of the guides (guide, objects, handoff, planning) stands, line by line, in a
program of docs/examples that the tests run, each Python snippet of loader.md in one of
docs/examples/python; the numbers of the policy that planning.md lists are those of numbers.h;
each relative link leads to a file and, with a #part, to a heading of it; a list of contents has
all headings; what is shown as a command can be run, and a program of the benchmarks is built
before; prose has at most 100 columns; docs/figures.py writes between its markers, says where a
peer is better, and names a file that is bad and changes nothing.
"""

import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent),
                str(pathlib.Path(__file__).resolve().parents[2] / "docs")]

import figures  # noqa: E402
import tables  # noqa: E402
from check_readme import ROOT, blocks_of  # noqa: E402

PAGES = [ROOT / "README.md", ROOT / "node" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.c"))
GUIDES = "".join((ROOT / "docs" / page).read_text(encoding="utf-8")
                 for page in ("guide.md", "objects.md", "handoff.md", "planning.md"))
PYTHON_EXAMPLES = sorted((ROOT / "docs" / "examples" / "python").glob("*.py"))
LOADER = (ROOT / "docs" / "loader.md").read_text(encoding="utf-8")
FIGURES = ROOT / "docs" / "figures.py"


def lines_of(code):
    return [line.rstrip() for line in textwrap.dedent(code).splitlines()]


def stands_in(snippet, program):
    """True if the snippet's lines follow each other in the program, however they are indented."""
    wanted = lines_of(snippet)
    lines = [line.rstrip() for line in program.splitlines()]
    return any(lines_of("\n".join(lines[at:at + len(wanted)])) == wanted
               for at in range(len(lines) - len(wanted) + 1))


def prose_of(text):
    """(number, line) of what is neither code, nor table, nor generated."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside and not line.startswith(("|", "    ")):
            yield number, line


def anchors_of(text):
    """The anchors of the headings, as GitHub makes them."""
    heads = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


class Pages(unittest.TestCase):
    def test_snippets_of_the_guide_stand_in_programs_that_are_run(self):
        programs = [example.read_text(encoding="utf-8") for example in EXAMPLES]
        shown = blocks_of(GUIDES, "c")
        self.assertGreater(len(shown), 10)
        for snippet in shown:
            self.assertTrue(any(stands_in(snippet, program) for program in programs), snippet)

    def test_snippets_of_the_loaders_page_stand_in_programs_that_are_run(self):
        programs = [example.read_text(encoding="utf-8") for example in PYTHON_EXAMPLES]
        shown = blocks_of(LOADER, "python")
        self.assertGreater(len(shown), 5)
        for snippet in shown:
            self.assertTrue(any(stands_in(snippet, program) for program in programs), snippet)
        for example in PYTHON_EXAMPLES:
            if example.name != "run_example.py":
                self.assertIn(f"examples/python/{example.name}", LOADER)

    def test_the_numbers_of_the_policy_are_those_of_its_header(self):
        header = (ROOT / "runtime/step/numbers.h").read_text(encoding="utf-8")
        page = (ROOT / "docs/planning.md").read_text(encoding="utf-8")
        units = {"": 1, " %": 10_000, " KiB": 1 << 10, " MiB": 1 << 20}
        listed = {name: int(number.replace(",", "")) * units[unit] for name, number, unit in
                  re.findall(r"^\| `(LEARN_\w+)` \| ([\d,]+)( [%KM]\S*|) \|", page, re.M)}
        number = r"(\d+)u|\(\(uint\d+_t\)(\d+) << (\d+)\)"
        defined = {name: int(plain) if plain else int(base) << int(shift)
                   for name, plain, base, shift in
                   re.findall(rf"^#define (LEARN_\w+) (?:{number})$", header, re.M)}
        self.assertEqual(len(defined), len(re.findall(r"^#define LEARN_\w+ ", header, re.M)))
        del defined["LEARN_MILLION"]
        self.assertEqual(listed, defined)

    def test_every_example_is_shown_and_short(self):
        for example in EXAMPLES:
            self.assertIn(f"examples/{example.name}", GUIDES)
            self.assertLess(len(example.read_text(encoding="utf-8").splitlines()), 60, example)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
                path, _, part = link.partition("#")
                target = page.parent / path if path else page
                if link.startswith("http"):
                    continue
                self.assertTrue(target.exists(), f"{page.name}: {link}")
                if part:
                    self.assertIn(part, anchors_of(target.read_text(encoding="utf-8")), link)

    def test_what_is_shown_as_a_command_can_be_run(self):
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            for name in re.findall(r"(?:^    |`)((?:bench|tests)/[\w./-]+) ", text, re.MULTILINE):
                self.assertTrue(os.access(ROOT / name, os.X_OK), f"{page.name}: {name}")

    def test_lists_of_contents_are_those_of_the_headings(self):
        for page in PAGES:
            text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
            listed = re.findall(r"^- \[(.*)\]\(#.*\)$", text, re.M)
            if listed:
                heads = re.findall(r"^## (.*)$", text, re.M)
                self.assertEqual(listed, heads, page.name)

    def test_programs_of_the_benchmarks_are_built_before_they_are_shown(self):
        lists = re.findall(r"programs\+?=\((.*)\)", (ROOT / "bench/run").read_text())
        built_by_run = " ".join(lists).split()
        self.assertIn("ebb-micro", built_by_run)
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            programs = r"(?:^    | )(build/\w+)/(bench/[\w/]+/([\w-]+)) "
            for shown in re.finditer(programs, text, re.M):
                folder, path, name = shown.groups()
                if folder == "build/release" and name in built_by_run:
                    continue
                builds = rf"(?:meson compile|ninja) -C {folder}(?: {path}| {name})?(?: &&|  |$)"
                self.assertTrue(re.search(builds, text[:shown.start()], re.M),
                                f"{page.name}: {folder}/{path} is not built")

    def test_prose_has_at_most_100_columns(self):
        for page in PAGES:
            for number, line in prose_of(page.read_text(encoding="utf-8")):
                self.assertLessEqual(len(line), 100, f"{page.name}:{number}")


class Figures(unittest.TestCase):
    ABOUT = {"machine": {"date": "2025-01-31T12:00:00Z", "cpu": "a cpu", "cores": 2,
                         "memory_bytes": 1 << 33, "kernel": "k", "os": "o", "compiler": "c",
                         "load": 0.5},
             "settings": {"rounds": 5, "quick": False, "touch": True, "plan": True},
             "allocators": [{"name": name, "package": "libc6", "version": "2.36"} for name in (
                 "ebb", "glibc", "glibc-tuned", "jemalloc", "jemalloc-tuned", "mimalloc",
                 "tcmalloc")],
             "cases": [], "failures": [], "targets": []}
    README = "a\n" + "".join(f"<!-- {part}:begin -->\n<!-- {part}:end -->\n\n"
                             for part in ("churn", "micro", "sequence", "loader", "programs",
                                          "operations")) + "b\n"
    NAMES = ("readme", "results", "loader")

    def write(self, rows, about=None, readme=README, asked="results", prepare=lambda scratch: None,
              rough=True, **options):
        """(exit code, standard error, that page afterwards); `prepare` may change the files"""
        about = self.ABOUT if about is None else about
        if isinstance(about, dict):
            names = ("bench", "case", "allocator", "metric", "value")
            about = {"rows": [dict(zip(names, row)) for row in rows], **about}
        with tempfile.TemporaryDirectory() as name:
            scratch = pathlib.Path(name)
            (scratch / "json").write_text(json.dumps(about))
            for page in self.NAMES:
                (scratch / page).write_text(readme, encoding="utf-8", newline="")
                (scratch / page).chmod(0o640)
            prepare(scratch)
            command = [sys.executable, "-B", FIGURES] + ["--rough"] * rough
            for what in ("json", *self.NAMES):
                command += [f"--{what}", scratch / what]
            done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
            self.assertEqual(len(list(scratch.iterdir())), 4)
            self.assertEqual({(scratch / page).stat().st_mode & 0o7777
                              for page in self.NAMES}, {0o640})
            return (done.returncode, done.stderr,
                    (scratch / asked).read_bytes().decode("utf-8"))

    def test_a_peer_that_is_better_is_named_with_the_factor(self):
        code, error, text = self.write([("churn", "t.full", "ebb", "step_us", 30),
                                        ("churn", "t.full", "glibc", "step_us", 20)])
        self.assertEqual((code, error), (0, ""))
        self.assertIn("fastest in 0 of 1 cases", text)
        self.assertIn("t.full (1.50)", text)
        self.assertTrue(text.startswith("a\n<!-- churn:begin -->\n"))
        rest = self.README[self.README.index("<!-- churn:end -->"):]
        self.assertTrue(text.endswith("\n" + rest))

    def test_what_is_compared_is_rounded_against_ebb(self):
        rows = [("churn", f"{case}.full", who, metric, value) for case, who, metric, value in (
            ("a", "ebb", "step_us", 100.4), ("a", "glibc", "step_us", 99.9),
            ("b", "ebb", "step_us", 100), ("b", "glibc", "step_us", 115),
            ("a", "ebb", "footprint_ratio", 1.001), ("a", "ebb", "faults_per_step", 0.5),
            ("a", "ebb", "syscalls_per_step", 0), ("a", "ebb", "steady_peak_ratio", 1.0204))]
        about = self.with_one("targets", 0, "value", value=1.0204)
        about["targets"][0]["limit"] = 1.02
        code, error, text = self.write(rows, about)
        self.assertEqual((code, error), (0, ""))
        self.assertIn("| a.full | 100 | 0.99 glibc | 0.99 | - | 1.01 | - | - | 1 | 0 |", text)
        self.assertIn("| b.full | 100 | 1.15 glibc | 1.15 |", text)
        self.assertIn("a.full (1.01)", text)
        self.assertIn("(1.03 of 1.02)", text)
        self.assertRegex(text, r"\| a\.full \|.*\| 1\.03 \| - \|")

    def test_figures_far_from_each_other_are_shown_or_have_no_ratio(self):
        rows = [("churn", "t.full", who, metric, value) for who, metric, value in (
            ("ebb", "step_us", 1e-300), ("glibc", "step_us", -1e18), ("mimalloc", "step_us", 5),
            ("ebb", "steady_peak_ratio", 1e18), ("ebb", "plan_height_bytes", 1e18),
            ("ebb", "plan_max_live_bytes", 1e-300))]
        code, error, text = self.write(rows)
        self.assertEqual((code, error), (0, ""))
        self.assertIn("| t.full | 0.00 | - glibc | - |", text)
        self.assertRegex(text, r"\| - \| 1,000,000,000,000,000,000 \| - \|")

    def test_what_happens_in_few_batches_does_not_happen_in_none(self):
        rows = [("loader", "tiny", "ebb", f"{what}_per_batch", 0.004)
                for what in ("syscalls", "faults", "fds")]
        code, error, text = self.write(rows, asked="loader")
        self.assertEqual((code, error), (0, ""))
        self.assertIn("| - / 1 | - / 0.01 | - / 1 |", text)

    def test_names_do_not_end_a_cell(self):
        code, error, text = self.write([("churn", "a|b.full", "ebb", "step_us", 30)])
        self.assertEqual((code, error), (0, ""))
        self.assertIn("| a\\|b.full | 30.0 |", text)

    def test_nothing_is_claimed_of_what_was_not_measured(self):
        alone = [("churn", "t.full", "ebb", "step_us", 30)]
        text = self.write(alone)[2]
        for claim in ("fastest in", "lowest peak", "No steady step", "none, anywhere"):
            self.assertNotIn(claim, text)
        self.assertIn("System calls were not counted.", text)
        two = alone + [("churn", "u.full", "ebb", "step_us", 10),
                       ("churn", "u.full", "glibc", "step_us", 20),
                       ("churn", "u.full", "ebb", "syscalls_per_step", 0)]
        text = self.write(two)[2].replace("\n  ", " ")
        self.assertIn("fastest in 1 of 1 cases", text)
        self.assertIn("none, anywhere. In 1 cases they were not counted.", text)

    def test_the_worst_point_of_a_sweep_of_objects_is_named(self):
        rows = [("micro", "promote_objects", "ebb", f"auto_over_best.b{size}.n{count}", value)
                for size, count, value in ((4096, 8, 1.0), (16384, 32, 1.5), (65536, 64, 1.1))]
        code, error, text = self.write(rows)
        self.assertEqual((code, error), (0, ""))
        self.assertIn("1.50 (32 of 64 tensors of 16 KiB)", text.replace("\n  ", " "))
        self.assertIn("in 2 of 3 cases", text.replace("\n  ", " "))

    def test_sequences_are_shown_in_us_with_a_dash_for_a_missing_torch(self):
        rows = [("sequence", "pack_float32_64", "ebb", "ns", 36500),
                ("sequence", "pack_float32_64", "ebb", "over_floor", 1.13)]
        code, error, text = self.write(rows)
        self.assertEqual((code, error), (0, ""))
        self.assertRegex(text, r"pack, 64 features +\| +36\.5 +\| +- +\| +1\.13")

    def test_loaders_have_a_page_of_their_own(self):
        rows = [("loader", "tiny", "torch-fd", "cpu_ms_per_batch", 12),
                ("loader", "tiny", "torch-fd", "cpu_over_ebb", 24.5),
                ("loader", "tiny", "piped", "cpu_over_ebb", 1.5),
                ("loader", "tiny", "packed", "cpu_over_ebb", 3),
                ("loader", "tiny.w2", "torch-fd", "cpu_over_ebb", 20),
                ("loader", "tiny", "ebb", "faults_per_batch", 1.25)]
        code, error, text = self.write(rows, asked="loader")
        self.assertEqual((code, error), (0, ""))
        self.assertRegex(text, r"32 bytes \| 12\.0 \| - \| 24\.5 \| 1\.50 piped \|.*- / 1\.25 \|")
        self.assertIn("100 tensors of 32 bytes (tiny) 20.0.", text)
        self.assertEqual(self.write(rows)[2], self.README)
        rows.append(("churn", "t.full", "ebb", "step_us", 30))
        self.assertNotEqual(self.write(rows)[2], self.README)

    def test_what_was_not_measured_again_stays_with_its_day(self):
        both = [("churn", "t.full", "ebb", "step_us", 30), ("micro", "large", "ebb", "ms", 1)]
        before = self.write(both)[2]
        later = {**self.ABOUT, "machine": {**self.ABOUT["machine"],
                                           "date": "2025-02-28T12:00:00Z"}}
        after = self.write(both[:1], later, before)[2]
        middle = before.index("<!-- churn:end -->")
        self.assertEqual(after, before[:middle].replace("2025-01-31", "2025-02-28")
                         + before[middle:])
        self.assertIn("Measured 2025-01-31", after)

    def test_readme_has_an_extract_of_either_table(self):
        rows = [("churn", "resnet18_train.tensor", "ebb", "step_us", 20),
                ("churn", "resnet18_train.tensor", "mimalloc", "step_us", 22.39),
                ("churn", "resnet18_train.full", "ebb", "step_us", 30),
                ("churn", "resnet18_train.full", "glibc", "step_us", 20),
                ("churn", "request_lstm.full", "ebb", "step_us", 30),
                ("churn", "request_lstm.full", "glibc", "step_us", 27),
                ("micro", "planned", "ebb", "ns_event", 1.5),
                ("micro", "const", "ebb", "ns_per_object", 2.5)]
        code, error, text = self.write(rows, asked="readme")
        self.assertEqual((code, error), (0, ""))
        self.assertIn("| ResNet-18: training | 20.0 | 1.11 mimalloc | - | - | - | - | - |", text)
        self.assertIn("- ebb is the fastest in 1 of 3 recordings, and takes 1.12 to 1.50 times as",
                      text)
        self.assertIn("allocation or release, ns | 1.50 | - | - | - |", text)
        self.assertNotIn("48 B, 10,000 a step", text)
        self.assertNotIn("resnet18_train", text)
        shown = {case for _, case in tables.PROGRAMS}
        self.assertLessEqual(shown, figures.bundled_cases())
        self.assertEqual({case.split(".")[0] for case in shown},
                         {case.split(".")[0] for case in figures.bundled_cases()})

    def test_a_difference_of_which_nothing_is_left_is_none(self):
        rows = [("micro", "close_n", "ebb", "ns_close.n10", 60),
                ("micro", "close_n", "obstack", "ns_close.n10", -1.9)]
        self.assertIn("| 60.0 | - | - | 0.00 obstack |", self.write(rows)[2])

    def test_writing_twice_changes_nothing_more(self):
        rows = [("churn", "t.full", "ebb", "step_us", 30), ("micro", "large", "ebb", "ms", 1)]
        once = self.write(rows)[2]
        self.assertEqual(self.write(rows, readme=once)[2], once)

    def test_line_ends_stay_as_they_are(self):
        rows = [("churn", "t.full", "ebb", "step_us", 30)]
        wanted = self.write(rows)[2].replace("\n", "\r\n")
        self.assertEqual(self.write(rows, readme=self.README.replace("\n", "\r\n"))[2], wanted)
        odd = "a\rb\u2028c\n" + self.README
        self.assertTrue(self.write(rows, readme=odd)[2].startswith("a\rb\u2028c\na\n<!--"))

    def test_a_page_that_cannot_be_written_changes_none(self):
        def enlarge(scratch):
            with open(scratch / "loader", "a", encoding="utf-8") as page:
                page.write("x" * 100_000)

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

        both = [("churn", "t.full", "ebb", "step_us", 30),
                ("loader", "tiny", "ebb", "faults_per_batch", 1.25)]
        for page, wanted in (("results", self.README), ("loader", self.README + "x" * 100_000)):
            code, error, text = self.write(both, asked=page, prepare=enlarge, preexec_fn=limit)
            self.assertEqual((code, text == wanted), (2, True), error)
            self.assertRegex(error, r"/loader: File too large\n\Z")

    def test_one_page_may_have_two_names(self):
        def link(scratch):
            (scratch / "loader").unlink()
            (scratch / "loader").symlink_to("results")

        both = [("churn", "t.full", "ebb", "step_us", 30),
                ("loader", "tiny", "ebb", "faults_per_batch", 1.25)]
        for page in ("results", "loader"):
            code, error, text = self.write(both, asked=page, prepare=link)
            self.assertEqual((code, error), (0, ""))
            self.assertIn("t.full", text)
            self.assertIn("/ 1.25 |", text)

    def refused(self, rows, about=None, page=README, rough=True):
        code, error, text = self.write(rows, about, page, rough=rough)
        self.assertEqual((code, text), (2, page), error)
        self.assertRegex(error, r"\Afigures\.py: /\S*/(json|readme|results): .*\n\Z")
        return error

    GOOD = [("churn", "t.full", "ebb", "step_us", 30)]

    def test_a_bad_file_is_named_and_changes_nothing(self):
        self.refused(self.GOOD, page="no markers\n")
        for marker in ("<!-- churn:begin -->", "<!-- churn:end -->"):
            self.assertIn("comes twice", self.refused(self.GOOD, page=self.README + marker))
        for row, said in ((("churn",), "rows[1] has no case"),
                          (("a", "b", "c", "d", None), "rows[1].value is not a number"),
                          (("churn", "t.full", "ebb", "step_us", "7"), "rows[1].value is not a"),
                          (("churn", "t.full", "glibc", "step_us", float("nan")), "rows[1].value"),
                          (("churn", "t.full", "glibc", "step_us", -1e27), "rows[1].value is not"),
                          (("churn", "t.full", "ebb", "steady_hits_percent", 1e308),
                           "rows[1].value is not a number of at most 1e18"),
                          (("churn", "\udcff.full", "ebb", "step_us", 1), "surrogates not")):
            self.assertIn(said, self.refused([*self.GOOD, row]))
        self.assertIn("json: no row of ebb in churn, micro",
                      self.refused([("other", "b", "c", "d", 1)]))
        self.assertIn("json: no row of churn has ebb's step_us",
                      self.refused([("churn", "t.full", "glibc", "step_us", 1)]))

    def test_a_run_that_is_quick_or_left_the_blocks_or_plans_alone_is_refused(self):
        for setting, said in (({"quick": True}, "json: of a quick run; --rough"),
                              ({"touch": False}, "json: of a run that left the blocks alone; "),
                              ({"plan": False}, "json: of a run without plans; ")):
            about = {**self.ABOUT, "settings": {**self.ABOUT["settings"], **setting}}
            rows = [("churn", "t.full", "ebb", "event_ns", 5), *self.whole_micro()]
            self.assertIn(said, self.refused(rows, about, rough=False))
            alone = self.write(rows[1:], about, rough=False)[0]
            self.assertEqual(alone, 2 if setting.get("quick") else 0, setting)

    def test_the_fastest_malloc_or_arena_is_of_all_or_the_line_says_of_which(self):
        text = (ROOT / "bench/micro/contest.c").read_text(encoding="utf-8")
        every = re.search(r'#define MALLOCS "(.*)"', text)[1]
        self.assertEqual(sorted(every.split()), sorted(tables.PEERS))
        all_of_them = re.findall(r'\{"(\S+)", FAMILY_', text)
        lists = {case: all_of_them if words == "NULL" else
                 words.replace("MALLOCS", f'"{every}"').replace('"', "").split()
                 for case, words in re.findall(r'\{"(\w+)", CASE_\w+, \w+, (.*)\},', text)}
        for case, names in figures.CONTESTS.items():
            self.assertEqual({*lists[case]} - {"floor-in-memory"}, {*names}, case)
        for label, case, _ in tables.MICRO:
            part = [name for name in tables.PEERS if name in figures.CONTESTS[case]]
            if part and len(part) < len(tables.PEERS):
                self.assertIn(f"(of mallocs {', '.join(part)} alone)", label)

    def test_a_line_says_where_mallocs_alone_keep_pointers(self):
        flat = (ROOT / "bench/micro/case_flat.h").read_text(encoding="utf-8")
        results = (ROOT / "docs/results.md").read_text(encoding="utf-8")
        self.assertIn("if (!ops->forgets)\n            flat->blocks[i] = block;", flat)
        for label, case, _ in tables.MICRO:
            self.assertIn(f"| {label} |", results)
            if case.startswith("flat"):
                self.assertIn(", pointers kept for mallocs", label)

    def test_the_longest_step_after_the_spike_is_of_all_that_come_then(self):
        header = (ROOT / "bench/churn/spike.h").read_text(encoding="utf-8")
        after = re.search(r"SPIKE_AFTER = (\d+),", header)[1]
        rows = [*self.GOOD, *(("churn", "spike.synthetic", "ebb", metric, value)
                              for metric, value in (("spike_rss_ratio_20", 1.15),
                                                    ("spike_step_ratio_max", 1.61)))]
        said = rf"; the longest of the {after} steps after it takes [0-9.]+ times the usual time\."
        results = (ROOT / "docs/results.md").read_text(encoding="utf-8")
        for text in (self.write(rows)[2], results):
            self.assertRegex(text.replace("\n  ", " "), said)

    def test_a_replay_without_all_peers_is_refused(self):
        some = {**self.ABOUT, "allocators": [peer for peer in self.ABOUT["allocators"]
                                             if "malloc" not in peer["name"]]}
        self.assertIn("json: of a run without jemalloc, jemalloc-tuned, mimalloc, tcmalloc; ",
                      self.refused(self.GOOD, some, rough=False))
        code, error, text = self.write(self.whole_micro(), some, rough=False)
        self.assertEqual((code, error), (0, ""))

    def whole_micro(self):
        """A row of each contestant in each case of the micro benchmarks."""
        return [("micro", case, name, "ns", 30)
                for case, names in figures.CONTESTS.items() for name in names]

    def test_micro_benchmarks_in_which_a_contestant_failed_are_refused(self):
        rows = self.whole_micro()
        code, error, text = self.write(rows, rough=False)
        self.assertEqual((code, error), (0, ""))
        for case, name in (("release", "tcmalloc"), ("const", "bumpalo"), ("tensor", "ebb")):
            lacking = [row for row in rows if row[1:3] != (case, name)]
            said = f"json: of a run in which {case} lacks figures of {name}; --rough takes it"
            self.assertIn(said, self.refused(lacking, rough=False))
            self.assertEqual(self.write(lacking)[:2], (0, ""))
            replay, about = self.whole()
            self.assertIn(said, self.refused(replay + lacking, about, rough=False))

    def test_loaders_in_which_a_method_failed_are_refused(self):
        sequence = ("sequence", "pack_float32_64", "ebb", "ns", 36500)
        methods = ("torch-fd", "torch-fs", "packed", "piped", "ebb")
        cases = [case for _, case in tables.LOADERS]
        times = [("loader", case + setting, method, "cpu_ms_per_batch", 1)
                 for case in cases for setting in ("", ".w2", ".kept") for method in methods]
        calls = [("loader", case, method, "syscalls_per_batch", 1)
                 for case in cases for method in methods]
        for rows in (times, times + calls):
            code, error, text = self.write([sequence, *rows], asked="loader", rough=False)
            self.assertEqual((code, error), (0, ""))
            self.assertIn("32 bytes", text)
            for case, method in (("tiny", "piped"), ("packed.w2", "torch-fd"),
                                 ("image_u8.kept", "ebb")):
                lacking = [row for row in rows if row[1:3] != (case, method)]
                error = self.refused([sequence, *lacking], rough=False)
                self.assertIn(f"json: of a run in which {case} lacks figures of {method}; --rough",
                              error)
                self.assertEqual(self.write(lacking, asked="loader")[:2], (0, ""))
        self.assertIn(f"{cases[0]} lacks figures of {methods[0]}; ",
                      self.refused(times + calls[1:], rough=False))

    def whole(self, *more):
        """The rows and the description of a replay of all bundled traces, and of these."""
        cases = sorted({path.name.removesuffix(".trace.gz")
                        for path in (ROOT / "bench/traces").glob("*.trace.gz")}) + list(more)
        self.assertGreater(len(cases), 20)
        rows = [("churn", case, peer["name"], "step_us", 30) for case in cases
                for peer in self.ABOUT["allocators"]]
        return rows, {**self.ABOUT, "cases": [{"case": case}
                                              for case in (*cases, "spike.synthetic")]}

    def test_a_replay_that_lacks_traces_or_rows_is_refused(self):
        rows, about = self.whole("t.full", "u.full")
        code, error, text = self.write(rows, about, rough=False)
        self.assertEqual((code, error), (0, ""))
        self.assertIn(f"fastest in {len(about['cases']) - 1} of", text)
        for name in ("ebb", "glibc"):
            lacking = [row for row in rows if row[1:3] != ("u.full", name)]
            self.assertIn(f"json: of a run in which u.full has no step_us of {name}; --rough",
                          self.refused(lacking, about, rough=False))
        fewer = {**about, "cases": about["cases"][1:]}
        gone = about["cases"][0]["case"]
        self.assertIn(f"json: of a run without 1 of the bundled traces, such as {gone}; --",
                      self.refused([row for row in rows if row[1] != gone], fewer, rough=False))

    def test_a_replay_in_which_something_failed_is_refused(self):
        rows, about = self.whole()
        failures = [{"case": "x.full", "allocator": "glibc", "text": "boom"}]
        self.assertIn("json: of a run with 1 failures (x.full: glibc: boom); --rough takes it",
                      self.refused(rows, {**about, "failures": failures}, rough=False))
        failures[0]["allocator"] = ""
        self.assertIn("(x.full: boom)",
                      self.refused(rows, {**about, "failures": failures}, rough=False))

    def test_a_section_without_figures_of_ebb_stays(self):
        counted = [("micro", "instructions", "gcc", "fast_path.48.16", 13)]
        self.assertIn("json: no row of ebb in churn, ", self.refused(counted))
        before = self.write([("micro", "large", "ebb", "ms_per_step", 1)])[2]
        sequence = [("sequence", "pack_float32_64", "ebb", "ns", 36500)]
        after = self.write(counted + sequence, readme=before)[2]
        middle = before.index("<!-- micro:end -->")
        self.assertEqual(after[:middle], before[:middle])
        self.assertIn("36.5", after)

    def with_one(self, *path, value):
        """The description of a run, with this value in that place."""
        about = json.loads(json.dumps({**self.ABOUT, "targets": [
            {"target": "steady_peak", "case": "t.full", "value": 2, "limit": 1, "met": False}]}))
        place = about
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        return about

    def test_a_description_of_another_shape_is_refused(self):
        self.assertIn("json: what it holds is not an object", self.refused(self.GOOD, []))
        self.assertIn("json: it has no settings",
                      self.refused(self.GOOD, {"machine": self.ABOUT["machine"]}))
        self.assertIn("json: machine has no ", self.refused(self.GOOD, {"machine": {}}))
        for path, value, said in (
                (("machine", "memory_bytes"), None, "machine.memory_bytes is not a number"),
                (("machine", "load"), float("nan"), "machine.load is not a number"),
                (("machine", "cores"), 10 ** 400, "machine.cores is not a number"),
                (("targets", 0, "limit"), 1e300, "targets[0].limit is not a number of at most"),
                (("machine", "cpu"), "\ud800", "surrogates not allowed"),
                (("allocators",), None, "allocators is not a list"),
                (("allocators",), [5], "allocators[0] is not an object"),
                (("settings", "quick"), 1, "settings.quick is not true or false"),
                (("targets", 0, "value"), None, "targets[0].value is not a number"),
                (("targets", 0, "case"), 7, "targets[0].case is not text")):
            error = self.refused(self.GOOD, self.with_one(*path, value=value))
            self.assertIn("json: ", error)
            self.assertIn(said, error)

    def test_names_may_be_of_any_language_and_metrics_unknown(self):
        rows = [("churn", "ü\u2028.full", "ebb", "step_us", 30),
                ("micro", "promote_objects", "ebb", "auto_over_best.b4", 1)]
        code, error, text = self.write(rows)
        self.assertEqual((code, error), (0, ""))
        self.assertIn("| ü\u2028.full | 30.0 |", text)

    def test_a_target_without_a_limit_and_two_of_one_case_are_said(self):
        about = self.with_one("targets", 0, "limit", value=0)
        about["targets"] *= 2
        code, error, text = self.write(self.GOOD, about)
        self.assertEqual((code, error), (0, ""))
        self.assertIn("It is above in: t.full (2.00 of 0.00), t.full", text.replace("\n  ", " "))


if __name__ == "__main__":
    unittest.main()
