# SPDX-License-Identifier: Apache-2.0
"""sites.py - what ebb's sites have learnt: a table, and the plans as pictures."""

import matrix
import plan
import table
from markup import EMPTY, tag
from results import as_number

# Head of the column, how its figure follows from a site's report, and its unit.
COLUMNS = (
    ("steps", lambda of: of("steps"), "count"),
    ("with a plan", lambda of: of("planned_steps"), "count"),
    ("recorded", lambda of: of("recorded_steps"), "count"),
    ("blocks served",
     lambda of: share(of("hits"), of("missed")), "percent"),
    ("bytes served",
     lambda of: share(of("hit_bytes"), of("missed_bytes")), "percent"),
    ("missed per step",
     lambda of: over(of("missed_bytes"), of("planned_steps")), "bytes"),
    ("height ÷ most alive",
     lambda of: over(of("plan_height"), of("plan_max_live")), "ratio"),
    ("slots", lambda of: of("plan_slots"), "count"),
    ("plans", lambda of: of("plans"), "count"),
    ("time per plan", lambda of: over(of("planning_ns"), of("plans")), "ns"),
    ("grown out of", lambda of: of("takeovers"), "count"),
    ("born above, rightly", lambda of: of("tenured_right"), "count"),
    ("for nothing", lambda of: of("tenured_wrong"), "count"),
    ("guests", lambda of: of("guests"), "count"),
)


def over(part, whole):
    return part / whole if part is not None and whole else None


def share(part, rest):
    whole = None if part is None or rest is None else part + rest
    return over(None if part is None else 100 * part, whole)


def end_of(suspended, row_steps):
    rows = [f"rows of {row_steps:.0f}"] if row_steps else []
    return ", ".join(rows + ["suspended"] * suspended)


def row_of(case, report):
    name = str(report.get("site", "?"))

    def of(key):
        return as_number(report.get(key))

    end = end_of(report.get("suspended") is True, of("row_steps"))

    return tag("tr", tag("th", case, scope="row", data_value=case),
               tag("td", name, data_value=name, class_="allocator"),
               *[table.value_cell(unit, figure(of)) for _, figure, unit in COLUMNS],
               tag("td", end, data_value=end))


def draw_table(results):
    rows = [row_of(case, report) for case in results.case_names("churn")
            for report in results.reports_of(case, "ebb", "site")]
    heads = ["trace and view", "site"] + [head for head, _, _ in COLUMNS] + ["at the end"]
    return table.framed(heads, rows, "Sites of ebb") if rows else None


def section(results):
    sites = draw_table(results)
    cards = [plan.card(results, case, matrix.case_label(case))
             for case in results.case_names("churn")]
    if not sites and not any(cards):
        return EMPTY
    lead = "What ebb learnt from the steps of each trace, from the first to the last: what was " \
        "served and missed is of the steps that had a plan. Below, the plan of the main kind of " \
        "step: a block is as wide as its life and as high as its room; the stronger its colour, " \
        "the later it is allocated. To the right the same plan as the last step used it: blue " \
        "was served in place, orange was not. Ticks above are blocks born in the parent."
    return tag("section", tag("h2", "Plans"), tag("p", lead, class_="lead"), sites or EMPTY,
               *cards, id="plans")
