# SPDX-License-Identifier: Apache-2.0
"""parts.py - of what is played at length by hand, a part in each run of all tests.

Where EBB_PARTS is N one of N is drawn, others with each EBB_FRESH_SEED; all where it is not set.
"""

import os


def drawn(items):
    parts, seed = (int(os.environ.get(name) or default)
                   for name, default in (("EBB_PARTS", 1), ("EBB_FRESH_SEED", 0)))
    return [item for number, item in enumerate(items) if (number + seed) % parts == 0]
