# SPDX-License-Identifier: Apache-2.0
"""Regions and steps: memory that lives as long as a step, and what survives it."""

import numpy

import ebb


def step(run, momentum):
    with ebb.step("train", tag=1, parent=run) as region:
        gradient = region.zeros((256, 256))
        gradient.numpy()[...] = momentum.numpy() * 0.9 + 1
        return region.promote(gradient)  # the run's from now on; all else ends here


def main():
    with ebb.Region(name="run") as run:
        momentum = run.zeros((256, 256))
        for _ in range(20):
            momentum = step(run, momentum)
        kept = momentum.numpy()
        copied = run.stack([kept[0], kept[1]])
        assert copied.shape == (2, 256)

    assert numpy.allclose(kept, kept[0, 0])  # what was handed on outlives the region
    try:
        momentum.shape
    except ebb.Error as error:
        assert error.name == "EBB_E_STALE"
        print(f"{kept[0, 0]:.2f}; {error}")


if __name__ == "__main__":
    main()
