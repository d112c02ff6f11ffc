"""Test every network on the points kept aside; keep the best, its accuracy, and a table of all."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from network import Network, load_points

parser = argparse.ArgumentParser()
parser.add_argument("--points", type=Path, required=True)
parser.add_argument("--models", required=True, help="paths, joined by commas: one for each item of the loop")
parser.add_argument("--best", type=Path, required=True)
parser.add_argument("--accuracy", type=Path, required=True)
parser.add_argument("--table", type=Path, required=True)
given = parser.parse_args()

points, classes = load_points(given.points, "test")
models = [Path(path) for path in given.models.split(",")]
accuracies = [Network.load(path).accuracy(points, classes) for path in models]
best = max(range(len(models)), key=accuracies.__getitem__)
shutil.copyfile(models[best], given.best)
given.accuracy.write_text(f"{accuracies[best]:.4f}")
given.table.write_text("".join(f"model {at} {accuracy:.4f}\n" for at, accuracy in enumerate(accuracies)))
print(given.table.read_text(), end="")
