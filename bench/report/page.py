# SPDX-License-Identifier: Apache-2.0
"""page.py - the whole page: what was measured, the verdicts, the pictures, every figure."""

import contextlib
import errno
import os
import pathlib
import stat
import statistics

import cards
import kin
import loaders
import matrix
import planner
import quantity
import sequences
import serve
import sites
import spike
import table
import targets
from frame import figure
from markup import EMPTY, joined, tag, trusted, void
from results import as_number

HERE = pathlib.Path(__file__).resolve().parent
SPIKE_CHARTS = (("spike_rss_bytes", "resident memory", "Resident memory after each step", True),
                ("spike_step_us", "time of the step", "Time of each step", False))


def machine_text(key, value):
    number = as_number(value)
    if number is not None and "bytes" in key:
        return quantity.bytes_text(number)
    if isinstance(value, float):
        return quantity.short(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)


def definitions(values):
    return tag("dl", *[tag("div", tag("dt", str(key).replace("_", " ")),
                           tag("dd", machine_text(str(key), value)))
                       for key, value in values.items() if value not in (None, "", [], {})],
               class_="facts-list")


def allocator_list(results):
    items = []
    for item in results.allocators:
        words = [str(item.get("name", "?")), str(item.get("version") or "")]
        items.append(tag("li", tag("b", words[0]), f" {words[1]}",
                         tag("small", f" {item['settings']}") if item.get("settings") else EMPTY))
    return tag("ul", *items, class_="allocators") if items else EMPTY


def machine_section(results):
    if not (results.machine or results.settings or results.allocators):
        return EMPTY
    return tag("section", tag("h2", "Machine"), definitions(results.machine),
               definitions(results.settings), allocator_list(results), id="machine")


def speedups(results, peer):
    found = []
    for case in results.case_names("churn"):
        mine = results.value("churn", case, "ebb", "step_us")
        other = results.value("churn", case, peer, "step_us")
        if mine and other and not spike.is_spike(case):
            found.append(other / mine)
    return found


def highlight(number, words):
    return tag("div", tag("strong", number), tag("span", words), class_="highlight")


def highest(results, metric):
    values = [results.value("churn", case, "ebb", metric) for case in results.case_names("churn")
              if not spike.is_spike(case)]
    values = [value for value in values if value is not None]
    return max(values) if values else None


def highlights(results, verdicts):
    found = []
    met, judged = matrix.counts(verdicts)
    if judged:
        found.append(highlight(f"{met} of {judged}", "targets met"))
    for peer in ("glibc", "jemalloc"):
        ratios = speedups(results, peer)
        if ratios:
            found.append(highlight(quantity.ratio_text(statistics.median(ratios)),
                                   f"the speed of {peer}, median of {len(ratios)} traces"))
    for metric, words in (("footprint_ratio", "footprint over bytes alive"),
                          ("faults_per_step", "page faults"),
                          ("syscalls_per_step", "system calls")):
        value = highest(results, metric)
        if value is not None:
            found.append(highlight(quantity.text_of(metric, value),
                                   f"{words} in the median steady step, highest of all traces"))
    return tag("div", *found, class_="highlights") if found else EMPTY


def churn_cases(results):
    """Cases that have rows or at least a description; the spike has a section of its own."""
    names = list(dict.fromkeys(results.case_names("churn") + list(results.cases)))
    return [case for case in names if not spike.is_spike(case)]


def summary_sentence(results):
    traces = churn_cases(results)
    micro = results.case_names("micro")
    peers = matrix.compared_peers(results)
    words = []
    if traces:
        words.append(f"{len(traces)} recorded allocation streams of real ML programs, replayed")
    if micro:
        words.append(f"{len(micro)} micro benchmarks")
    if results.case_names(sequences.BENCH):
        words.append(f"{len(results.case_names(sequences.BENCH))} ways to pack and to pad")
    if results.case_names(planner.BENCH):
        words.append(f"{len(results.case_names(planner.BENCH))} inputs of the planner")
    if loaders.drawn_cases(results):
        words.append(f"{len(loaders.drawn_cases(results))} kinds of batch under way to a trainer")
    if results.case_names(serve.BENCH):
        words.append(f"{len(results.case_names(serve.BENCH))} servers and training loops")
    text = ", ".join(words[:-2] + [" and ".join(words[-2:])]) if words else "Nothing was measured"
    return f"{text}: ebb against {', '.join(peers)}." if peers else f"{text}."


def machine_line(results):
    """The machine in one line, for the head of the page."""
    machine = results.machine
    cores = as_number(machine.get("cores"))
    memory = as_number(machine.get("memory_bytes"))
    words = [machine.get("cpu"), f"{cores:.0f} cores" if cores else None,
             quantity.bytes_text(memory) if memory else None, machine.get("os"),
             machine.get("kernel"), machine.get("date")]
    return " · ".join(str(word) for word in words if word)


def verdict_section(results, churn, micro):
    spikes = [verdict for verdict in churn if spike.is_spike(verdict.case)]
    pieces = [matrix.draw_churn(results, churn), matrix.draw_list(spikes + micro)]
    pieces = [tag("div", piece, class_="scroll whole") for piece in pieces if piece]
    if not pieces:
        return EMPTY
    lead = "What was to be reached. Point at a verdict, or go to it by Tab, for the numbers " \
        "behind it: a footprint, for one, counts as missed if a single steady step goes over its " \
        "limit."
    return tag("section", tag("h2", "Targets"), tag("p", lead, class_="lead"), *pieces,
               id="targets")


def spike_section(results):
    pictures = []
    for name, label, title, limit in SPIKE_CHARTS:
        for case, lines in results.series_of(name).items():
            metric = name.replace("spike_", "")
            lines = {allocator: lines[allocator] for allocator in kin.in_order(lines)}
            pictures.append(figure(title, spike.draw(lines, metric, label, title, limit),
                                   None if spike.is_spike(case) else case))
    if not pictures:
        return EMPTY
    return tag("section", tag("h2", "After a spike"),
               tag("p", "One step needs a hundred times what the others need. How soon is the "
                   "memory back, and what do the steps after it cost?", class_="lead"),
               tag("div", tag("div", *pictures, class_="charts wide"), class_="card"), id="spike")


def list_section(title, lead, name, pieces):
    pieces = [piece for piece in pieces if piece]
    if not pieces:
        return EMPTY
    return tag("section", tag("h2", title), tag("p", lead, class_="lead"), *pieces, id=name)


def traces_lead(results):
    if results.untouched():
        return "Blocks are neither written nor read: the allocators alone are timed, each in a " \
            "process of its own."
    return "Blocks are really written and read; each allocator runs in a process of its own. " \
        "The lower left of a scatter is better."


def sections(results):
    churn, micro = targets.churn(results), targets.micro(results)
    micro = micro + targets.sequences(results) + planner.verdicts(results) + \
        targets.loaders(results) + serve.verdicts(results)
    traces = churn_cases(results)
    tables = [table.draw(results, "churn", results.case_names("churn"), "Traces, every figure"),
              table.draw_by_metric(results, "micro", results.case_names("micro"),
                                   "Micro benchmarks, every figure"),
              sequences.figures_table(results), planner.figures_table(results),
              loaders.figures_table(results), serve.figures_table(results)]
    return [
        ("Targets", "targets", verdict_section(results, churn, micro)),
        ("Traces", "traces", list_section(
            "Traces", traces_lead(results), "traces",
            [cards.trace_card(results, case) for case in traces])),
        ("Plans", "plans", sites.section(results)),
        ("Spike", "spike", spike_section(results)),
        ("Micro", "micro", list_section(
            "Micro benchmarks", "Medians of interleaved rounds. The floor is a bare bump of a "
            "pointer over memory that was touched before.", "micro",
            [cards.micro_card(results, case) for case in results.case_names("micro")])),
        ("Sequences", "sequences", sequences.section(results)),
        ("Planner", "planner", planner.section(results)),
        ("Loaders", "loaders", loaders.section(results)),
        ("Servers", "serve", serve.section(results)),
        ("Figures", "figures", list_section(
            "Every figure", "A click on a column's head sorts by it.", "figures", tables)),
        ("Machine", "machine", machine_section(results)),
    ], highlights(results, churn + micro)


def head(title):
    return tag("head", void("meta", charset="utf-8"), tag("title", title),
               void("meta", name="viewport", content="width=device-width, initial-scale=1"),
               void("meta", name="color-scheme", content="light dark"),
               void("meta", http_equiv="Content-Security-Policy",
                    content="default-src 'none'; style-src 'unsafe-inline'; "
                            "script-src 'unsafe-inline'"),
               tag("style", trusted((HERE / "report.css").read_text(encoding="utf-8"))))


def draw(results, title="ebb: what a step costs"):
    """The page as one string of HTML."""
    parts, figures = sections(results)
    parts = [part for part in parts if part[2]]
    links = [tag("a", name, href=f"#{anchor}") for name, anchor, _ in parts]
    skipped = f"{results.skipped} entries of the results could not be read and are left out. " \
        if results.skipped else ""
    body = tag("body",
               tag("header", tag("h1", title),
                   tag("p", summary_sentence(results), class_="lead"),
                   tag("p", machine_line(results), class_="facts"), figures,
                   tag("nav", *links, aria_label="Sections")),
               tag("main", *[content for _, _, content in parts]),
               tag("footer", skipped),
               tag("div", id="tip", role="status", hidden=True),
               tag("script", trusted((HERE / "report.js").read_text(encoding="utf-8"))))
    return joined([trusted("<!DOCTYPE html>\n"), tag("html", head(title), body, lang="en"),
                   trusted("\n")])


class Unwritable(OSError):
    """Why the page cannot be written, and which."""


def status_of(path):
    """None if nothing is there."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def is_standard_output(found):
    with contextlib.suppress(OSError):
        return os.path.samestat(found, os.fstat(1))
    return False


def can_be_replaced(path, found):
    """Whether it is a file of one name and of that name, or is not there yet."""
    if found is None:
        return not os.path.islink(path)
    real = status_of(os.path.realpath(path))  # of a file in memory it is made up
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and real is not None and \
        os.path.samestat(found, real)


def takes_after(file, found):
    """Whether it has now the owner and the mode of what it is to be renamed over."""
    try:
        if found is not None:
            os.fchown(file.fileno(), found.st_uid, found.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode))
    except PermissionError:
        return False
    return True


def renamed(beside, path):
    try:
        os.replace(beside, path)
    except OSError:
        return False
    return True


def write_beside(whole, path, found):
    """False if nothing can be put beside it, or over it, as in a folder that is not writable."""
    beside = os.path.join(os.path.dirname(path), f".report.{os.getpid()}.part")
    try:
        file = open(beside, "xb")  # never through what has that name
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return False
    done = False
    try:
        with file:
            alike = takes_after(file, found)
            if alike:
                file.write(whole)
        done = alike and renamed(beside, path)
    finally:
        if not done:
            os.unlink(beside)
    return done


def write_somehow(whole, path):
    found = status_of(path)
    if found is not None and is_standard_output(found):
        with open(os.dup(1), "wb") as file:
            file.write(whole)
    elif not can_be_replaced(path, found) or \
            not write_beside(whole, os.path.realpath(path), found):
        pathlib.Path(path).write_bytes(whole)


def write(text, path):
    """As the other files of a run (bench/churn/output.c): on a full disk the page that was there
    before is there still, unless nothing can be put beside it or it has several names; pipes,
    devices and the standard output just get it."""
    try:
        write_somehow(text.encode("utf-8", "replace"), path)  # JSON can hold halves of characters
    except OSError as error:
        raise Unwritable(error.errno, error.strerror, path) from error
