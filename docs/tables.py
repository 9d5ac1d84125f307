# SPDX-License-Identifier: Apache-2.0
"""What figures.py writes: tables of a run's rows, and the sentences below them.

Times and sizes are rounded to the nearest, ebb's and the peers' alike; what compares them, a ratio,
a share or a figure beside its limit, is rounded against ebb, and so are ebb's counts. A figure that
is missing is a dash, and where a peer is better a sentence below the table says so.
"""

import decimal
import math
import re

MIB = 1 << 20

PEERS = ("glibc", "glibc-tuned", "jemalloc", "jemalloc-tuned", "mimalloc", "tcmalloc")
ARENAS = ("apr", "talloc", "obstack", "pmr", "bumpalo")

# The programs of README: one view of each.
PROGRAMS = (
    ("ResNet-18: training", "resnet18_train.tensor"),
    ("transformer: training", "transformer_train.tensor"),
    ("LSTM of characters: training", "charlstm_sgd.tensor"),
    ("autoencoder, gradients of four steps", "autoenc_accum.tensor"),
    ("recommender, embedding bags", "recsys_embbag.tensor"),
    ("small MLP: training", "mlp_digits.tensor"),
    ("small MLP: evaluation", "mlp_digits_eval.tensor"),
    ("collation in a worker", "collate_worker.tensor"),
    ("collation in the trainer", "collate_main.tensor"),
    ("request to an LSTM", "request_lstm.tensor"),
    ("request to scikit-learn *", "request_classic.full"),
    ("the same with Python's objects *", "request_classic_pyobj.full"),
)
# Lines of the micro benchmarks: label, case, metric.
MICRO = (
    ("small object of 16 to 512 B, 10,000 a step, ns", "small10k", "ns_per_object"),
    ("small object of 48 B, 10,000 a step, ns", "const", "ns_per_object"),
    ("open and close, empty, ns", "open_close", "ns_empty"),
    ("open, one block, close, ns", "open_close", "ns_one_block"),
    ("end of a step of 10 blocks, ns", "close_n", "ns_close.n10"),
    ("end of a step of 1,000,000 blocks, ns", "close_n", "ns_close.n1000000"),
    ("block of 48 B, 100 in a step, pointers kept for mallocs (of mallocs mimalloc alone), ns",
     "flat_count", "ns_untouched.n100"),
    ("block of 48 B, 10,000,000 in a step, pointers kept for mallocs (of mallocs mimalloc alone), "
     "ns", "flat_count", "ns_untouched.n10000000"),
    ("allocate and release 48 B, ns", "release", "ns_small_pair"),
    ("allocate and release 64 KiB, ns", "release", "ns_large_pair"),
    ("planned block of 2 to 62 KiB: allocation or release, ns", "planned", "ns_event"),
    ("the same without a plan, ns", "planned", "ns_event_unplanned"),
    ("400 tensors of 256 B to 4 MiB, written, ms", "large", "ms_per_step"),
    ("request of 320 blocks with survivors, us", "request", "us_per_request"),
)
# Those that README has, too.
OPERATIONS = ("small10k", "open_close", "close_n", "release", "planned", "request")
OBJECTS = (
    ("tensor of 3 dimensions, made and ended, ns", "ns_alone"),
    ("1,000 of them, then ended one by one, ns each", "ns_thousand"),
    ("1,000 of them, ended by the step, ns each", "ns_step"),
)
SEQUENCES = (
    ("pack, 64 features", "pack_float32_64"),
    ("pack, 512 features", "pack_float32_512"),
    ("pack, tokens", "pack_int64_0"),
    ("pad back, 64 features", "pad_float32_64"),
    ("pad back, 512 features", "pad_float32_512"),
    ("pad a list, 512 features", "pad_list_float32_512"),
    ("join, 512 features", "join_float32_512"),
)
LOADERS = (
    ("64 images, uint8, one tensor of 9.6 MB", "image_u8"),
    ("64 images, float32, one tensor of 38.5 MB", "image_f32"),
    ("16 images and 112 targets, lists, 128 tensors", "detection_list"),
    ("16 images, mask, 112 targets: 65 MB in 114 tensors", "detection_dict"),
    ("64 token sequences, packed", "packed"),
    ("100 tensors of 32 bytes", "tiny"),
)
LOADER_PEERS = ("torch-fd", "torch-fs", "packed", "piped")
LOADER_SETTINGS = ("", ".w2", ".kept")  # what the names of their cases end in
PROMOTE = (("64 B", 64), ("64 KiB", 65536), ("1 MiB", 1048576), ("64 MiB", 67108864))


class Rows:
    """Rows of a run: value(bench, case, allocator, metric), None where there is none."""

    def __init__(self, rows):
        self.values = {(row["bench"], row["case"], row["allocator"], row["metric"]): row["value"]
                       for row in rows}

    def value(self, bench, case, allocator, metric):
        return self.values.get((bench, case, allocator, metric))

    def cases(self, bench, allocator=None):
        """Those of which there are rows, on request of one allocator."""
        return sorted({key[1] for key in self.values
                       if key[0] == bench and allocator in (None, key[2])})

    def least(self, bench, case, metric, allocators):
        """(value, allocator) of the smallest, or None."""
        found = [(value, name) for name in allocators
                 if (value := self.value(bench, case, name, metric)) is not None]
        return min(found) if found else None


def number(value):
    """Three digits that matter, no exponent; a dash for nothing."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def rounded(value, digits, way):
    """As it is written, not as the nearest binary fraction is: 1.15 stays 1.15 either way."""
    place = decimal.Decimal(1).scaleb(-digits)
    return float(decimal.Decimal(repr(float(value))).quantize(place, rounding=way))


def one_way(value, way):
    if value is None or abs(value) >= 1e15:
        return number(value)
    return number(rounded(value, 0 if value >= 100 else 1 if value >= 10 else 2, way))


def cut(value):
    """As number(), of what is the better for ebb the higher it is: a peer's figure over ebb's."""
    return one_way(value, decimal.ROUND_FLOOR)


def raised(value):
    """As number(), of what is the worse the higher it is: ebb's figure over another."""
    return one_way(value, decimal.ROUND_CEILING)


def percent(value):
    """Cut, so that only all is 100."""
    return "-" if value is None else f"{int(value * 10) / 10:.1f}"


def count(value):
    return "-" if value is None else f"{value:,.0f}"


def count_raised(value):
    """Of ebb: what happens in half of the steps does not happen in none."""
    return count(value if value is None else math.ceil(value))


def ratio(above, below):
    """None, too, where the quotient has no end."""
    quotient = above / below if above is not None and below else math.inf
    return quotient if math.isfinite(quotient) else None


def table(head, lines):
    marks = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
                     for line in [head, marks, *lines])


# ---- churn


def churn_cases(rows):
    return [case for case in rows.cases("churn")
            if rows.value("churn", case, "ebb", "step_us") is not None and "." in case]


TIMES = ["step, us", "fastest peer", "glibc", "jemalloc"]
PEAKS = ["peak, MiB", "smallest peer"]


def times_of(rows, case):
    mine = rows.value("churn", case, "ebb", "step_us")
    fastest = rows.least("churn", case, "step_us", PEERS)
    return [number(mine), f"{cut(ratio(fastest[0], mine))} {fastest[1]}" if fastest else "-",
            *(cut(ratio(rows.value("churn", case, peer, "step_us"), mine))
              for peer in ("glibc", "jemalloc"))]


def peaks_of(rows, case):
    mine = rows.value("churn", case, "ebb", "peak_rss_bytes")
    smallest = rows.least("churn", case, "peak_rss_bytes", PEERS)
    return [number(ratio(mine, MIB)),
            f"{number(smallest[0] / MIB)} {smallest[1]}" if smallest else "-"]


def churn_line(rows, case):
    def of(metric):
        return rows.value("churn", case, "ebb", metric)

    return [case, *times_of(rows, case), raised(of("footprint_ratio")), *peaks_of(rows, case),
            count_raised(of("faults_per_step")), count_raised(of("syscalls_per_step"))]


def churn_table(rows):
    head = ["trace.view", *TIMES, "footprint", *PEAKS, "faults", "calls"]
    return table(head, [churn_line(rows, case) for case in churn_cases(rows)])


def factors(rows, metric):
    """(ebb's figure over the best peer's, case) of the cases that have both, highest first."""
    found = []
    for case in churn_cases(rows):
        best = rows.least("churn", case, metric, PEERS)
        factor = ratio(rows.value("churn", case, "ebb", metric), best and best[0])
        if factor is not None:
            found.append((factor, case))
    return sorted(found, reverse=True)


def say_behind(rows, metric, claim, verb):
    found = factors(rows, metric)
    if not found:
        return None
    worse = [(factor, case) for factor, case in found if factor > 1]
    text = f"{claim} in {len(found) - len(worse)} of {len(found)} cases."
    if worse:
        named = ", ".join(f"{case} ({raised(factor)})" for factor, case in worse)
        text += f" It {verb} than the best peer in: {named}."
    return text


def of_ebb(rows, metric):
    """[(value, case)] of the cases that have one."""
    return [(value, case) for case in churn_cases(rows)
            if (value := rows.value("churn", case, "ebb", metric)) is not None]


def say_not_zero(rows, metric, what):
    found = of_ebb(rows, metric)
    cases = [case for value, case in found if value]
    if not found:
        return f"{what} were not counted."
    text = f"{what} in the median step: " + (", ".join(cases) if cases else "none, anywhere") + "."
    left = len(churn_cases(rows)) - len(found)
    return text + (f" In {left} cases they were not counted." if left else "")


def say_footprint(rows):
    found = of_ebb(rows, "footprint_steps_over")
    over = [(steps, case) for steps, case in found if steps]
    if not found:
        return None
    if not over:
        return "No steady step holds more pages than its target allows."
    named = ", ".join(f"{case} ({count(steps)} of "
                      f"{count(rows.value('churn', case, 'ebb', 'footprint_steps'))})"
                      for steps, case in sorted(over, reverse=True))
    return f"Steady steps that hold more pages than their target allows: {named}."


def plan_line(rows, case):
    def of(metric):
        return rows.value("churn", case, "ebb", metric)

    return [case, percent(of("steady_hits_percent")), percent(of("steady_hit_bytes_percent")),
            count(of("plan_slots")),
            raised(ratio(of("plan_height_bytes"), of("plan_max_live_bytes") or None)),
            raised(of("steady_peak_ratio")), raised(of("run_peak_ratio"))]


def plan_table(rows):
    """What plans serve, and what the costliest step holds; None where no run says."""
    cases = [case for case in churn_cases(rows)
             if rows.value("churn", case, "ebb", "steady_peak_ratio") is not None]
    head = ["plans", "blocks served, %", "bytes served, %", "slots", "height", "steady peak",
            "run peak"]
    return table(head, [plan_line(rows, case) for case in cases]) if cases else None


def say_peaks(about, target, what):
    judged = [item for item in about["targets"] if item["target"] == target]
    over = sorted((item for item in judged if not item["met"]), reverse=True,
                  key=lambda item: (ratio(item["value"], item["limit"]) or 0, item["case"]))
    if not judged:
        return None
    text = f"{what} within its bound in {len(judged) - len(over)} of {len(judged)} cases."
    if over:
        named = ", ".join(f"{item['case']} ({raised(item['value'])} of {item['limit']:.2f})"
                          for item in over)
        text += f" It is above in: {named}."
    return text


def say_spike(rows):
    left = rows.value("churn", "spike.synthetic", "ebb", "spike_rss_ratio_20")
    longest = rows.value("churn", "spike.synthetic", "ebb", "spike_step_ratio_max")
    if left is None or longest is None:
        return None
    return (f"20 steps after a step of 100 times the usual size, resident memory is "
            f"{raised(left)} times what it was before; the longest of the 40 steps after it takes "
            f"{raised(longest)} times the usual time.")


# ---- README's extracts


def program_line(rows, label, case):
    return [label, *times_of(rows, case), *peaks_of(rows, case),
            percent(rows.value("churn", case, "ebb", "steady_hit_bytes_percent"))]


def span_of(worse):
    least, most = worse[-1][0], worse[0][0]
    return raised(most) if len(worse) == 1 else f"{raised(least)} to {raised(most)}"


def say_extent(rows, metric, claim, verb, measure):
    found = factors(rows, metric)
    worse = [pair for pair in found if pair[0] > 1]
    if not found:
        return None
    text = f"{claim} in {len(found) - len(worse)} of {len(found)} recordings"
    if worse:
        text += f", and {verb} {span_of(worse)} times as {measure} as the best peer in the others"
    return text + "."


def programs_part(rows, about):
    head = ["recorded program", *TIMES, *PEAKS, "bytes served, %"]
    said = [say_extent(rows, "step_us", "ebb is the fastest", "takes", "long"),
            say_extent(rows, "peak_rss_bytes", "It has the lowest peak of resident memory",
                       "needs", "much"),
            say_not_zero(rows, "faults_per_step", "Page faults"),
            say_not_zero(rows, "syscalls_per_step", "System calls")]
    return [wrap(measured(about)), table(head, [program_line(rows, *line) for line in PROGRAMS]),
            bullets(said)]


def operations_part(rows, about):
    return [wrap(measured(about)), micro_table(rows, OPERATIONS)]


# ---- micro


def best_of(rows, case, metric, names):
    best = rows.least("micro", case, metric, names)
    if not best:
        return "-"
    value = max(best[0], 0.0)  # the end of a step is a difference, of which nothing may be left
    return f"{number(value)} {best[1]}"


def micro_line(rows, label, case, metric):
    return [label, number(rows.value("micro", case, "ebb", metric)),
            number(rows.value("micro", case, "floor", metric)),
            best_of(rows, case, metric, PEERS), best_of(rows, case, metric, ARENAS)]


def micro_table(rows, cases=None):
    """Of all cases, or of some."""
    lines = [micro_line(rows, *line) for line in MICRO if not cases or line[1] in cases]
    return table(["", "ebb", "floor", "fastest malloc", "fastest arena"], lines)


def promote_line(rows, label, size):
    def of(allocator, metric):
        return number(rows.value("micro", "promote", allocator, f"{metric}.b{size}"))

    return [label, of("ebb", "ns_copy"), of("ebb", "ns_relink"), of("ebb", "ns_auto"),
            of("floor", "ns_memcpy")]


def promote_table(rows):
    return table(["promote one block, ns", "copy", "relink", "auto", "memcpy"],
                 [promote_line(rows, *line) for line in PROMOTE])


# ---- objects


def objects_table(rows):
    lines = [[label, number(rows.value("micro", "tensor", "ebb", metric)),
              best_of(rows, "tensor", metric, PEERS)] for label, metric in OBJECTS]
    return table(["objects", "ebb", "fastest malloc"], lines)


def sweep_of(rows, what):
    """[(value, tensor's bytes, survivors)] over the sweep, highest first."""
    found = []
    for (bench, case, allocator, metric), value in rows.values.items():
        point = re.fullmatch(what + r"\.b([0-9]{1,18})\.n([0-9]{1,18})", metric)
        if (bench, case, allocator) == ("micro", "promote_objects", "ebb") and point:
            found.append((value, int(point[1]), int(point[2])))
    return sorted(found, reverse=True)


def point_text(value, size, survivors):
    return f"{raised(value)} ({survivors} of 64 tensors of {size >> 10:,} KiB)"


def say_objects(rows):
    said = []
    alone, written = (rows.value("micro", "promote_objects", "ebb", f"ns_relink_{how}.b67108864")
                      for how in ("alone", "written"))
    if alone is not None and written is not None:
        said.append(f"Relinking a tensor of 64 MiB takes {number(alone)} ns; just after it was "
                    f"written, with nothing of ebb's in the caches, {number(written)} ns.")
    auto = sweep_of(rows, "auto_over_best")
    if auto:
        over = [point for point in auto if point[0] > 1.1]
        said.append(f"Promoting 1 to 64 tensors of 4 KiB to 4 MiB, auto takes at most "
                    f"{point_text(*auto[0])} times what the better of copy and relink takes; "
                    f"in {len(auto) - len(over)} of {len(auto)} cases at most 1.1 times.")
    pinned = sweep_of(rows, "pinned_over_relinked")
    if pinned:
        said.append(f"Auto pins at most {point_text(*pinned[0])} times the bytes it relinks.")
    return said


# ---- sequences


def sequence_line(rows, label, case):
    def of(allocator, metric, divisor=1.0):
        value = rows.value("sequence", case, allocator, metric)
        return number(None if value is None else value / divisor)

    return [label, of("ebb", "ns", 1e3), of("torch", "ns", 1e3),
            raised(rows.value("sequence", case, "ebb", "over_floor"))]


def sequence_table(rows):
    return table(["64 sequences of 5 to 200, us", "ebb", "torch", "ebb over a copy of the bytes"],
                 [sequence_line(rows, *line) for line in SEQUENCES])


# ---- loaders


def loader_line(rows, label, case):
    def of(method, metric):
        return rows.value("loader", case, method, metric)

    best = rows.least("loader", case, "cpu_over_ebb", LOADER_PEERS[1:])
    return [label, number(of("torch-fd", "cpu_ms_per_batch")),
            number(of("ebb", "cpu_ms_per_batch")),
            cut(of("torch-fd", "cpu_over_ebb")),
            f"{cut(best[0])} {best[1]}" if best else "-",
            cut(of("torch-fd", "trainer_over_ebb")),
            f"{count(of('torch-fd', 'syscalls_per_batch'))} / "
            f"{count_raised(of('ebb', 'syscalls_per_batch'))}",
            f"{count(of('torch-fd', 'faults_per_batch'))} / "
            f"{raised(of('ebb', 'faults_per_batch'))}",
            f"{count(of('torch-fd', 'fds_per_batch'))} / "
            f"{count_raised(of('ebb', 'fds_per_batch'))}"]


def loader_table(rows):
    return table(["one batch, one worker", "torch, ms", "ebb, ms", "torch over ebb",
                  "best other over ebb", "trainer's thread, torch over ebb",
                  "system calls, torch / ebb", "faults, torch / ebb", "descriptors, torch / ebb"],
                 [loader_line(rows, *line) for line in LOADERS])


def say_other_loaders(rows, suffix, what):
    said = [f"{label.split(',')[0]} ({case}) {cut(value)}" for label, case in LOADERS
            if (value := rows.value("loader", case + suffix, "torch-fd", "cpu_over_ebb"))]
    return f"{what}, torch over ebb: {', '.join(said)}." if said else None


def say_alone(rows):
    packed, opened = (rows.value("loader", "tiny", "ebb", f"{how}_us_per_tensor")
                      for how in ("pack", "open"))
    if packed is None or opened is None:
        return None
    return (f"One small tensor among many, in one process: {number(packed)} us to pack, "
            f"{number(opened)} us to open.")


def loader_part(rows, about):
    said = [say_other_loaders(rows, ".w2", "With two workers"),
            say_other_loaders(rows, ".kept", "Where glibc keeps its memory, for both"),
            say_alone(rows)]
    head = measured(about) + (" Debian's torch. Times are of processors: trainer and worker "
                              "together, or the trainer's own thread.")
    return [wrap(head), loader_table(rows), bullets(said)]


# ---- the sections


def measured(about, detail=""):
    """When and where, and on request in how much detail."""
    machine = about["machine"]
    rough = " A quick run: figures are rough." if about["settings"]["quick"] else ""
    return (f"Measured {machine['date'][:10]} on {machine['cpu']}, {machine['cores']} cores, "
            f"{machine['memory_bytes'] / (1 << 30):.0f} GiB, {machine['kernel']}, "
            f"{machine['os']}, {machine['compiler']}{detail}.{rough}")


def versions(about):
    said = ", ".join(f"{peer['package']} {peer['version']}" for peer in about["allocators"]
                     if peer["package"] and not peer["name"].endswith("-tuned"))
    return f" Peers: {said}."


def wrap(text, width=100):
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def bullets(said):
    return "\n".join("- " + wrap(text, 98).replace("\n", "\n  ") for text in said if text)


def churn_part(rows, about):
    said = [
        say_behind(rows, "step_us", "ebb is the fastest", "takes longer"),
        say_behind(rows, "peak_rss_bytes", "ebb has the lowest peak of resident memory",
                   "needs more"),
        say_footprint(rows),
        say_peaks(about, "steady_peak", "What the costliest steady step holds is"),
        say_peaks(about, "run_peak", "What the costliest step of a whole run holds is"),
        say_not_zero(rows, "faults_per_step", "Page faults"),
        say_not_zero(rows, "syscalls_per_step", "System calls"),
        say_spike(rows),
    ]
    settings, load = about["settings"], about["machine"]["load"]
    head = measured(about, f"; {settings['rounds']} rounds, load {load:.2f} at the start")
    return [wrap(head + versions(about)), churn_table(rows), plan_table(rows), bullets(said)]


def micro_part(rows, about):
    return [wrap(measured(about) + versions(about)), micro_table(rows), promote_table(rows),
            objects_table(rows), bullets(say_objects(rows))]


def sequence_part(rows, about):
    return [wrap(measured(about)), sequence_table(rows)]
