# SPDX-License-Identifier: Apache-2.0
"""targets.py - what was to be reached, and whether it was.

The churn benchmark judges its own figures and writes them as `targets`; where a file has none,
the same verdicts are derived here from its rows. Those of the micro benchmarks are always
derived. A target whose figures are missing gives no verdict: silence is not success.
"""

import curves
import kin
import quantity
import spike
from results import as_number

FOOTPRINT_LIMIT = {"tensor": 1.25, "full": 1.4}
# Most that a step holds over most that is alive: steady steps of traces that repeat, steady steps
# of others, all steps; and bytes that may be held above in any case.
PEAK_LIMITS = {"tensor": (1.02, 1.25, 1.15, 0), "full": (1.10, 1.35, 1.25, 256 << 10)}
NAMES = {"steady_peak": "steady peak ÷ most alive", "run_peak": "peak of a run ÷ most alive",
         "step_us": "time ÷ fastest peer", "footprint": "footprint ÷ alive",
         "peak_rss": "peak memory ÷ lowest peer", "faults": "page faults per step",
         "syscalls": "system calls per step",
         "spike_rss": "resident memory 20 steps later ÷ normal",
         "spike_step": "costliest step afterwards ÷ usual"}
# Their limit is the best peer's own figure: shown as a ratio to it.
RELATIVE = ("step_us", "peak_rss")


class Verdict:
    """`unit` as in quantity.unit_of(); "" lets the name of the target decide."""

    def __init__(self, case, target, value, limit, met, text="", unit="", floor=False):
        self.case, self.target, self.value, self.limit = case, target, value, limit
        self.met, self.text, self.floor = met, text, floor
        self.unit = unit or self._guess()

    def _guess(self):
        if self.limit == 0 or any(word in self.target for word in ("faults", "syscalls")):
            return "count"
        unit = quantity.unit_of(self.target)
        return "ratio" if unit == "count" else unit

    def name(self):
        return NAMES.get(self.target, self.target.replace("_", " "))

    def measured(self):
        """The value as text; with more digits where fewer would make it look like the limit."""
        text = self._words(self.value)
        if self.unit == "ratio" and text == self._words(self.limit) and self.value != self.limit:
            return f"{self.value:.3f}×"
        return text

    def goal(self):
        if self.limit is None:
            return ""
        return f"{'≥' if self.floor else '≤'} {self._words(self.limit)}"

    def relative(self):
        """The same verdict with the limit as the unit of the value, where that is asked for."""
        if self.target not in RELATIVE or not self.limit or self.value is None:
            return self
        return Verdict(self.case, self.target, self.value / self.limit, 1.0, self.met, self.text,
                       "ratio", self.floor)

    def _words(self, value):
        return "–" if value is None else quantity.text_of(self.unit, value)


def below(case, target, value, limit, strict=False, unit=""):
    if value is None or limit is None:
        return []
    met = value < limit if strict else value <= limit
    return [Verdict(case, target, value, limit, met, unit=unit)]


def given(results):
    """The verdicts that the file itself carries."""
    found = []
    for item in results.targets:
        case, target = item.get("case"), item.get("target")
        if isinstance(case, str) and isinstance(target, str):
            met = item.get("met")
            verdict = Verdict(case, target, as_number(item.get("value")),
                              as_number(item.get("limit")),
                              met if isinstance(met, bool) else None,
                              str(item.get("text") or ""))
            found.append(verdict.relative())
    return found


def over_best_peer(results, case, metric):
    values = results.by_allocator("churn", case, metric)
    others = [values[name] for name in kin.peers(values) if values[name] > 0]
    return values["ebb"] / min(others) if "ebb" in values and others else None


def footprint(case, figures, limit):
    """A single steady step above its limit is a miss, whatever the median is."""
    found = below(case, "footprint", figures.get("footprint_ratio"), limit)
    over = figures.get("footprint_steps_over")
    for verdict in found if over is not None else []:
        verdict.met = over <= 0
    return found


def peak(case, stretch, figures, limit, allowance):
    held = figures.get(f"{stretch}_peak_bytes")
    live = figures.get(f"{stretch}_peak_live_bytes")
    if held is None or not live or live < 0:
        return []
    met = held <= max(live * limit, live + allowance)
    return [Verdict(case, f"{stretch}_peak", held / live, limit, met, unit="ratio")]


def peaks(results, case, view):
    if view not in PEAK_LIMITS:
        return []
    repeating, others, run, allowance = PEAK_LIMITS[view]
    steady = repeating if results.cases.get(case, {}).get("repeats") is True else others
    figures = results.metrics("churn", case, "ebb")
    return peak(case, "steady", figures, steady, allowance) + \
        peak(case, "run", figures, run, allowance)


def derived_churn(results, case):
    def ebb(metric):
        return results.value("churn", case, "ebb", metric)
    view = str(results.cases.get(case, {}).get("view") or case.rpartition(".")[2])
    return below(case, "step_us", over_best_peer(results, case, "step_us"), 1.0, unit="ratio") + \
        footprint(case, results.metrics("churn", case, "ebb"), FOOTPRINT_LIMIT.get(view)) + \
        peaks(results, case, view) + \
        below(case, "peak_rss", over_best_peer(results, case, "peak_rss_bytes"), 1.0, True,
              "ratio") + \
        below(case, "faults", ebb("faults_per_step"), 0.0) + \
        below(case, "syscalls", ebb("syscalls_per_step"), 0.0)


def churn(results):
    found = given(results)
    judged = {verdict.case for verdict in found}
    for case in results.case_names("churn"):
        if case not in judged and not spike.is_spike(case):
            found += derived_churn(results, case)
    return found


def curve(results, case, prefix, least):
    """ebb's figures at and above `least` objects or bytes."""
    found = []
    for metric, value in results.metrics("micro", case, "ebb").items():
        name, _, point = curves.split_metric(metric) or ("", "", 0)
        if name == prefix and point >= least and value > 0:
            found.append(value)
    return found if len(found) > 1 else None


def highest_over_lowest(results, case, prefix, least):
    values = curve(results, case, prefix, least)
    return max(values) / min(values) if values else None


def highest_less_lowest(results, case, prefix, least):
    values = curve(results, case, prefix, least)
    return max(values) - min(values) if values else None


def highest(results, case, what):
    """ebb's highest figure of this name, over all points of a sweep."""
    values = [value for metric, value in results.metrics("micro", case, "ebb").items()
              if metric.startswith(what + ".")]
    return max(values) if values else None


def ebbs(results, case, metric):
    return results.value("micro", case, "ebb", metric)


def ebb_less_floor(results, case, metric):
    """Nanoseconds above those of the floor, which has one figure for all that ebb has."""
    ours, floor = ebbs(results, case, metric), results.value("micro", case, "floor", "ns_event")
    return None if ours is None or floor is None else ours - floor


# What, figure, where it comes from, limit, unit; then whether more is better. "Flat" has no number
# in the target: half as much again between the cheapest and the dearest point is let pass, from
# the size on where a region's own opening no longer shows.
MICRO = (
    ("10,000 small objects", "time over the floor", (ebbs, "small10k", "over_floor"),
     1.25, "ratio", False),
    ("10,000 small objects", "times faster than the fastest malloc",
     (ebbs, "small10k", "faster_than_malloc"), 2.5, "ratio", True),
    ("10,000 small objects", "times faster than the fastest arena",
     (ebbs, "small10k", "faster_than_arena"), 1.2, "ratio", True),
    ("open and close", "time of the pair, empty", (ebbs, "open_close", "ns_empty"),
     50.0, "ns", False),
    ("close of 10 to 1,000,000 objects", "highest less lowest",
     (highest_less_lowest, "close_n", "ns_close", 10), 50.0, "ns", False),
    ("100 to 10,000,000 objects per region", "highest over lowest",
     (highest_over_lowest, "flat_count", "ns_untouched", 100), 1.5, "ratio", False),
    ("large blocks, 64 KiB to 8 GiB per region", "highest over lowest",
     (highest_over_lowest, "flat_bytes", "ns_eighth", 64 << 10), 1.5, "ratio", False),
    ("small blocks, 64 KiB to 1 GiB per region", "highest over lowest",
     (highest_over_lowest, "flat_bytes", "ns_small", 64 << 10), 1.5, "ratio", False),
    ("a planned step", "allocation or release, over the floor's",
     (ebb_less_floor, "planned", "ns_event"), 1.2, "ns", False),
    ("the same step without a plan", "allocation or release, over the floor's",
     (ebb_less_floor, "planned", "ns_event_unplanned"), 15.0, "ns", False),
    ("a small tensor", "time to make and end it", (ebbs, "tensor", "ns_alone"), 12.0, "ns", False),
    ("a tensor of 64 MiB", "time to relink it",
     (ebbs, "promote_objects", "ns_relink_alone.b67108864"), 1000.0, "ns", False),
    ("a tensor of 64 MiB", "time to relink it, just written: caches empty",
     (ebbs, "promote_objects", "ns_relink_written.b67108864"), 1000.0, "ns", False),
    ("1 to 64 tensors of 4 KiB to 4 MiB", "auto over the better of copy and relink, highest",
     (highest, "promote_objects", "auto_over_best"), 1.1, "ratio", False),
    ("1 to 64 tensors of 4 KiB to 4 MiB", "bytes that auto pins over those it relinks, highest",
     (highest, "promote_objects", "pinned_over_relinked"), 1.0, "ratio", False),
)


def counted_calls(metric):
    """What its name says was counted, and whether that is due; None, if nothing is."""
    kind, *size = metric.split(".")
    if kind not in ("fast_path", "due"):
        return None
    if size == ["release"]:
        return "a release", kind == "due"
    return ("{} bytes aligned to {}".format(*size), kind == "due") if len(size) == 2 else None


def instructions(results):
    found = []
    for compiler in results.allocator_names("micro", "instructions"):
        rows = [(counted_calls(metric), value) for metric, value in
                results.metrics("micro", "instructions", compiler).items()]
        rows = [(*calls, value) for calls, value in rows if calls]
        bumped = [value for _, due, value in rows if not due]
        for what, due, value in rows:
            if due and not bumped:
                continue
            found += below(f"instructions, {compiler}, {what}" + (" that is due" if due else ""),
                           "count", value, min(bumped) + 12.0 if due else 15.0, unit="count")
    return found


def micro(results):
    found = []
    for what, figure, (measure, *place), limit, unit, more in MICRO:
        value = measure(results, *place)
        if value is not None:
            met = value >= limit if more else value <= limit
            found.append(Verdict(what, figure, value, limit, met, unit=unit, floor=more))
    return found + instructions(results)


# Task, metric of ebb, limit with features and limit of tokens; more is better of what is faster.
SEQUENCES = (("pack", "over_floor", 1.2, 2.5), ("pad", "over_floor", 1.2, None),
             ("pack", "faster_than_torch", 12.0, 30.0), ("pad", "faster_than_torch", 5.0, 5.0))


def sequences(results):
    found = []
    for case in results.case_names("sequence"):
        task, kind, features = (case.rsplit("_", 2) + ["", ""])[:3]
        for name, metric, limit, of_tokens in SEQUENCES:
            limit = of_tokens if features == "0" else limit
            value = results.value("sequence", case, "ebb", metric)
            if task != name or value is None or limit is None:
                continue
            more = metric == "faster_than_torch"
            figure = "torch's time over ebb's" if more else "time over that of a copy of the bytes"
            words = "tokens" if features == "0" else f"{features} features"
            found.append(Verdict(f"{task} 64 sequences, {words}", figure, value, limit,
                                 value >= limit if more else value <= limit, unit="ratio",
                                 floor=more))
    return found


# Case; how many times as long as ebb's the processor time of torch's default is to be, at least,
# and that of the trainer's thread.
LOADERS = (("image_u8", 4.5, None), ("image_f32", 4.0, None), ("detection_list", 8.0, 12.0),
           ("detection_dict", 7.0, 12.0), ("packed", 3.5, None), ("tiny", 25.0, None))
MOST_PER_BATCH = (("syscalls_per_batch", "system calls of a batch", 20.0),
                  ("faults_per_batch", "page faults of a batch", 4.0),
                  ("fds_per_batch", "descriptors of a batch", 0.0),
                  ("pack_us_per_tensor", "us to pack a tensor", 0.8),
                  ("open_us_per_tensor", "us to open a tensor", 0.5))


def loaders(results):
    found = []
    for case, whole, trainer in LOADERS:
        for metric, limit, figure in (("cpu_over_ebb", whole, "torch's processor time over ebb's"),
                                      ("trainer_over_ebb", trainer,
                                       "torch's time of the trainer's thread over ebb's")):
            value = results.value("loader", case, "torch-fd", metric)
            if value is not None and limit is not None:
                found.append(Verdict(f"loader, {case}", figure, value, limit, value >= limit,
                                     unit="ratio", floor=True))
        for metric, figure, limit in MOST_PER_BATCH:
            value = results.value("loader", case, "ebb", metric)
            if value is not None:
                found.append(Verdict(f"loader, {case}", figure, value, limit, value <= limit,
                                     unit="count"))
    return found
