"""Train one network with one learning rate."""

from __future__ import annotations

import argparse
from pathlib import Path

from network import Network, load_points

parser = argparse.ArgumentParser()
parser.add_argument("--points", type=Path, required=True)
parser.add_argument("--rate", type=float, required=True)
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--to", type=Path, required=True)
given = parser.parse_args()

points, classes = load_points(given.points, "train")
network = Network.new(width=16, seed=1)
for epoch in range(given.epochs):
    network.learn(points, classes, given.rate)
    if epoch % 100 == 0:
        print(f"epoch {epoch}: accuracy {network.accuracy(points, classes):.3f}", flush=True)
network.save(given.to)
