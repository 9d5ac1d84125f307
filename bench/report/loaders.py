# SPDX-License-Identifier: Apache-2.0
"""loaders.py - batches from workers to a trainer: what each way costs.

Two pictures for each case: processor time of all processes, and that of the trainer's own thread.
Cases with two workers (CASE.w2) and with another setting of glibc (CASE.kept) stand in the table.
"""

import bars
from frame import figure
from markup import EMPTY, tag
from table import draw_by_metric

BENCH = "loader"
TITLES = {"image_u8": "images, uint8: a tensor of 9.6 MB",
          "image_f32": "images, float32: a tensor of 38.5 MB",
          "detection_list": "detection, lists: 16 images, 112 small tensors",
          "detection_dict": "detection, nested: 65 MB in 114 tensors",
          "packed": "packed sequences: 4 tensors of 53 KB",
          "tiny": "100 tensors of 32 bytes"}
PICTURES = (("cpu_ms_per_batch", "all processes"), ("trainer_ms_per_batch", "trainer's thread"))


def drawn_cases(results):
    return [case for case in results.case_names(BENCH) if "." not in case]


def pictures_of(results, case):
    title = TITLES.get(case, case)
    found = []
    for metric, who in PICTURES:
        values = results.by_allocator(BENCH, case, metric)
        if values:
            found.append(figure(f"{title}; {who}",
                                bars.draw(values, metric, f"{title}, time of {who}")))
    return found


def section(results):
    cards = [tag("div", tag("div", *pictures, class_="charts"), class_="card")
             for pictures in (pictures_of(results, case) for case in drawn_cases(results))
             if pictures]
    if not cards:
        return EMPTY
    return tag("section", tag("h2", "Loaders"),
               tag("p", "The stock torch DataLoader with one worker: processor time for each "
                   "batch. The trainer's thread gets a batch, reads it and drops it, while the "
                   "next one is ready.", class_="lead"), *cards, id="loaders")


def figures_table(results):
    return draw_by_metric(results, BENCH, results.case_names(BENCH), "Loaders, every figure")
