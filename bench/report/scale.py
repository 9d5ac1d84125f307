# SPDX-License-Identifier: Apache-2.0
"""scale.py - from values to pixels, and where the ticks go.

A scale maps [low, high] onto [first, last] pixels, linearly or by the logarithm. Ticks are 1, 2
and 5 times powers of ten; of the byte's larger units, or powers of two, where the values are
bytes. Where values are counts (`whole`), or bytes below a KiB, none lies between whole ones.
words() gives ticks their text: on a linear axis all in one unit, and no two of them the same.
"""

import math

import quantity

LOG_FROM = 12.0  # ranges wider than this are drawn by the logarithm
LEAST_ROOM = 0.005  # of the value, on both sides: what lies closer together is drawn close together


class Scale:
    def __init__(self, low, high, first, last, log=False, binary=False, whole=False):
        low, high = min(low, high), max(low, high)
        self.log = log and low > 0
        if not self.log and high - low <= 1e-9 * max(abs(low), abs(high)):
            room = max(0.5, abs(low) * 0.1)
            low, high = low - room, high + room
        elif high == low:
            low, high = low / 2, low * 2
        self.low, self.high, self.first, self.last = low, high, first, last
        self.binary, self.whole = binary, whole

    def at(self, value):
        share = min(max(self._share(value), -0.05), 1.05)
        return self.first + share * (self.last - self.first)

    def ticks(self, most=6):
        found = self._log_ticks(most) if self.log else self._linear_ticks(most)
        return [tick for tick in found if -1e-6 <= self._share(tick) <= 1 + 1e-6]

    def words(self, metric, most=6):
        """A function from one of so many ticks to its text; `metric` decides about the unit."""
        if self.log:
            return lambda value: quantity.text_of(metric, value)
        return quantity.words_up_to(metric, max(abs(self.low), abs(self.high)), self._step(most))

    def _share(self, value):
        """Of the way from the lowest to the highest."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        return math.log(max(value, self.low * 1e-9) / self.low) / math.log(self.high / self.low)

    def _step(self, most):
        unit = byte_unit(self.high) if self.binary else 1.0
        step = nice_step((self.high - self.low) / most / unit) * unit
        return max(step, 1.0) if self.whole or self.binary else step

    def _linear_ticks(self, most):
        step = self._step(most)
        first = math.ceil(self.low / step - 1e-9)
        return [(first + i) * step for i in range(most + 2)]

    def _log_ticks(self, most):
        base = 2 if self.binary else 10
        low = math.floor(math.log(self.low, base) + 1e-9)
        high = math.ceil(math.log(self.high, base) - 1e-9)
        if base == 10 and high - low <= 2:
            return [factor * 10.0 ** power for power in range(low, high + 1)
                    for factor in (1, 2, 5)]
        stride = max(1, math.ceil((high - low) / most))
        return [float(base) ** power for power in range(low, high + 1)
                if power % stride == 0]


def byte_unit(high):
    """1, 1024 and so on: the largest that a value up to `high` reaches."""
    return 1024.0 ** min(4, math.floor(math.log(high, 1024) + 1e-9)) if high >= 1 else 1.0


def nice_step(step):
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    for factor in (1, 2, 5):
        if factor * power >= step * 0.9999:
            return factor * power
    return 10 * power


def around(values, first, last, room=0.12, binary=False, from_zero=False):
    """A scale that shows all values with some room; logarithmic where they lie far apart."""
    low, high = min(values), max(values)
    if low > 0 and high / low > LOG_FROM and not from_zero:
        factor = (high / low) ** room
        return Scale(low / factor, high * factor, first, last, log=True, binary=binary)
    margin = max((high - low or abs(high) or 1.0) * room, abs(high) * LEAST_ROOM)
    bottom = 0.0 if from_zero or low - margin < 0 <= low or low < high * 0.35 else low - margin
    return Scale(bottom, high + margin, first, last, binary=binary)
