# SPDX-License-Identifier: Apache-2.0
"""quantity.py - numbers as people read them: 1.5 MiB, 12.7 µs, 0.93×.

The unit follows from the metric's name, as the rows carry it: `step_us`, `peak_rss_bytes`,
`ns_close.n1000`, `footprint_ratio`. Three significant digits everywhere, and more on an axis whose
ticks these would not tell apart.
"""

import math

DIGITS_MOST = 6  # behind the point


def decimals(step):
    """Digits behind the point that multiples of 1, 2 or 5 times a power of ten need."""
    return min(max(0, math.ceil(-math.log10(step) - 1e-9)), DIGITS_MOST)


def short(value, step=1.0):
    """Three significant digits, no exponent, no trailing zeros; more where values `step` apart
    would else have one text."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    digits = max(decimals(step), 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, DIGITS_MOST)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def unit_for(value, units):
    """(size, name) out of pairs with the smallest first."""
    fitting = [unit for unit in units if abs(value) >= unit[0] * 0.9995]
    return fitting[-1] if fitting else units[0]


def scaled(value, units):
    size, name = unit_for(value, units)
    return f"{short(value / size)} {name}" if value else "0"


BYTES = [(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"), (1 << 40, "TiB")]
TIME_NS = [(1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]
COUNTS = [(1, ""), (1e6, "M"), (1e9, "G")]


def bytes_text(value):
    return scaled(value, BYTES)


def ns_text(value):
    return scaled(value, TIME_NS)


def ratio_text(value):
    return f"{value:.2f}×" if abs(value) < 100 else f"{short(value)}×"


def count_text(value):
    return short(value) if abs(value) < 1e6 else scaled(value, COUNTS)


def unit_of(metric):
    """One of bytes, ns, us, ms, ratio, percent, count."""
    words = metric.split(".")[0].split("_")
    if words[-2:] == ["vs", "ebb"]:
        return "ratio"
    if words[-2:] == ["steps", "over"]:
        return "count"
    for unit in ("ratio", "percent", "bytes"):
        if unit in words:
            return unit
    for unit in ("ns", "us", "ms"):
        if unit in words:
            return unit
    if "over" in words or "faster" in words or "times" in words:
        return "ratio"
    return "count"


TO_NS = {"ns": 1, "us": 1e3, "ms": 1e6}


def text_of(metric, value):
    """`metric`: its name, or just a unit."""
    unit = unit_of(metric)
    if unit == "bytes":
        return bytes_text(value)
    if unit == "ratio":
        return ratio_text(value)
    if unit == "percent":
        return f"{short(value)} %"
    return count_text(value) if unit == "count" else ns_text(value * TO_NS[unit])


def units_of(metric):
    """(what a value is multiplied with, the units to say it in)."""
    unit = unit_of(metric)
    if unit in TO_NS:
        return TO_NS[unit], TIME_NS
    known = {"bytes": BYTES, "percent": [(1, "%")], "ratio": [(1, "×")]}
    return 1, known.get(unit, COUNTS)


def words_up_to(metric, highest, step):
    """A function from value to text for values `step` apart: all in the unit that fits the
    highest, or in one of which a step is no tiny part."""
    times, units = units_of(metric)
    size, name = unit_for(highest * times, [unit for unit in units
                                            if unit[0] <= 1000 * step * times] or units[:1])
    apart = step * times / size
    if name == "×" and highest < 100:
        return lambda value: f"{value:.{max(2, decimals(apart))}f}×"
    between = "" if name == "×" else " "
    return lambda value: f"{short(value * times / size, apart)}{between}{name}".strip() \
        if value else "0"
