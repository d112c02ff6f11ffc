"""Two half moons that reach into each other, with some noise; a quarter of the points is kept aside for testing."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--count", type=int, required=True)
parser.add_argument("--to", type=Path, required=True)
given = parser.parse_args()

chance = np.random.default_rng(given.seed)
classes = np.arange(given.count) % 2
angles = chance.uniform(0, np.pi, given.count)
upper = np.column_stack([np.cos(angles), np.sin(angles)])
lower = np.column_stack([1 - np.cos(angles), 0.5 - np.sin(angles)])
points = np.where(classes[:, None] == 0, upper, lower) + chance.normal(scale=0.15, size=(given.count, 2))
kept = given.count // 4
with given.to.open("wb") as file:
    np.savez(
        file,
        test_points=points[:kept],
        test_classes=classes[:kept].astype(float),
        train_points=points[kept:],
        train_classes=classes[kept:].astype(float),
    )
print(f"{given.count - kept} points to learn from, {kept} to test with")
