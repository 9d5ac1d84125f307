# SPDX-License-Identifier: Apache-2.0
"""buckets.py - a histogram that looks both ways: counts above the line, bytes below it.

Each half is drawn to its own highest bucket, so that the picture says at once where the blocks
are and where the bytes are. The highest share of each half stands beside it, all are in the tips.
Empty buckets at both ends are left out.
"""

import quantity
from frame import Frame, nothing

WIDTH, HEIGHT = 420, 142
LABEL = 46  # width that the text below a bucket wants


def trimmed(buckets):
    full = [i for i, (_, count, weight) in enumerate(buckets) if count > 0 or weight > 0]
    return buckets[full[0]:full[-1] + 1] if full else []


def edge_text(edge, in_bytes):
    if edge is None:
        return "never"
    return quantity.bytes_text(edge) if in_bytes else quantity.count_text(edge)


def draw_bucket(frame, bucket, place, halves, in_bytes):
    """`halves`: total and highest bucket, of blocks and of bytes."""
    (edge, count, weight), (x, width) = bucket, place
    middle = (frame.top + frame.bottom) / 2
    reach = middle - frame.top - 2
    words = edge_text(edge, in_bytes)
    words = words if edge is None else f"up to {words}"
    for value, half, up, css, noun in ((count, halves[0], True, "count", "of blocks"),
                                       (weight, halves[1], False, "weight", "of bytes")):
        share = value / half[0] if half[0] else 0.0
        length = max(value / half[1] * reach, 0.8) if value > 0 else 0.0
        frame.add("rect", x=x, width=width, height=length, rx=1.0, class_=f"bar {css}",
                  y=middle - length if up else middle,
                  tip=f"{words}: {100 * share:.1f} % {noun}")


def draw(buckets, label, in_bytes):
    buckets = trimmed(buckets or [])
    if not buckets:
        return nothing(f"no histogram: {label}")
    frame = Frame(WIDTH, HEIGHT, left=64, top=4, bottom=34)
    middle = (frame.top + frame.bottom) / 2
    halves = [(sum(bucket[i] for bucket in buckets), max(bucket[i] for bucket in buckets))
              for i in (1, 2)]
    slot = (frame.right - frame.left) / len(buckets)
    every = max(1, -(-len(buckets) * LABEL // (frame.right - frame.left)))
    never = len(buckets) - 1 if buckets[-1][0] is None else len(buckets) + every
    for i, bucket in enumerate(buckets):
        x = frame.left + i * slot
        draw_bucket(frame, bucket, (x + slot * 0.08, slot * 0.84), halves, in_bytes)
        if i % every == every // 2 and i <= never - every or i == never:
            frame.text(x + slot / 2, frame.bottom + 13, edge_text(bucket[0], in_bytes),
                       class_="tick", text_anchor="middle")
    frame.line(frame.left, middle, frame.right, middle, class_="axis")
    for noun, y, (total, highest), edge in (("blocks", (frame.top + middle) / 2, halves[0],
                                             frame.top + 9),
                                            ("bytes", (middle + frame.bottom) / 2, halves[1],
                                             frame.bottom - 1)):
        frame.text(frame.left - 8, y + 4, noun, class_="tick", text_anchor="end")
        if total:
            frame.text(frame.left - 8, edge, f"{100 * highest / total:.0f} %", class_="tick",
                       text_anchor="end")
    frame.text((frame.left + frame.right) / 2, frame.height - 3, label, class_="label",
               text_anchor="middle")
    return frame.drawn(f"Share of blocks and of bytes by {label}")
