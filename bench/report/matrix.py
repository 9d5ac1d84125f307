# SPDX-License-Identifier: Apache-2.0
"""matrix.py - met or missed, at a glance: cases down, targets across.

Each verdict is a sign, a number and a colour, so that none of the three is needed alone.
"""

import kin
import quantity
import spike
from markup import joined, tag

COMPARED = ("glibc", "jemalloc")


def anchor_of(case):
    """A name for links that is safe in a URL whatever the case is called."""
    return "case-" + "".join(c if c.isascii() and c.isalnum() else f"-{ord(c):x}-" for c in case)


def sign(met, numbers):
    """Read aloud it has the numbers behind the verdict, too."""
    shape, words = {True: ("✓", "met"), False: ("✗", "missed"), None: ("·", "not judged")}[met]
    return tag("span", shape, class_="sign", role="img",
               aria_label=f"{words}, {numbers}:" if numbers else words)


def verdict_cell(verdict):
    if verdict is None:
        return tag("td", "–", class_="none")
    css = {True: "met", False: "missed", None: "none"}[verdict.met]
    numbers = verdict.text or verdict.goal() or None
    return tag("td", sign(verdict.met, numbers), " ", verdict.measured(), class_=css,
               title=numbers)


def case_label(case):
    name, dot, view = case.rpartition(".")
    if not dot:
        return case
    return joined([name, tag("span", f" {view}", class_="view")])


def speed_cell(results, case, peer):
    mine = results.value("churn", case, "ebb", "step_us")
    other = results.value("churn", case, peer, "step_us")
    if not mine or not other:
        return tag("td", "–", class_="none")
    return tag("td", quantity.ratio_text(other / mine), class_="plain")


def column_head(verdicts, target):
    verdict = next(verdict for verdict in verdicts if verdict.target == target)
    goals = {v.goal() for v in verdicts if v.target == target and v.limit is not None}
    limit = goals.pop() if len(goals) == 1 else "limit differs" if goals else ""
    return tag("th", verdict.name(), tag("small", limit), scope="col")


def draw_churn(results, verdicts):
    """Table of the traces; None if there are no verdicts."""
    verdicts = [verdict for verdict in verdicts if not spike.is_spike(verdict.case)]
    if not verdicts:
        return None
    targets = list(dict.fromkeys(verdict.target for verdict in verdicts))
    by_place = {(verdict.case, verdict.target): verdict for verdict in verdicts}
    peers = [peer for peer in COMPARED if any(
        results.value("churn", case, peer, "step_us") for case in results.case_names("churn"))]
    head = tag("tr", tag("th", "trace and view", scope="col"),
               *[column_head(verdicts, target) for target in targets],
               *[tag("th", f"{peer} ÷ ebb", tag("small", "time per step"), scope="col")
                 for peer in peers])
    rows = []
    for case in dict.fromkeys(verdict.case for verdict in verdicts):
        link = tag("a", case_label(case), href=f"#{anchor_of(case)}")
        rows.append(tag("tr", tag("th", link, scope="row"),
                        *[verdict_cell(by_place.get((case, target))) for target in targets],
                        *[speed_cell(results, case, peer) for peer in peers]))
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="matrix")


def draw_list(verdicts):
    """One line per verdict: what, measured, limit."""
    if not verdicts:
        return None
    rows = [tag("tr", tag("th", verdict.case, scope="row"), tag("td", verdict.name()),
                verdict_cell(verdict), tag("td", verdict.goal(), class_="plain"))
            for verdict in verdicts]
    head = tag("tr", *[tag("th", word, scope="col")
                       for word in ("what", "figure", "measured", "target")])
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="matrix list")


def counts(verdicts):
    """(met, judged)"""
    judged = [verdict for verdict in verdicts if verdict.met is not None]
    return sum(verdict.met for verdict in judged), len(judged)


def compared_peers(results):
    names = {name for case in results.case_names("churn")
             for name in results.allocator_names("churn", case)}
    return kin.peers(names)
