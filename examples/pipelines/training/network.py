"""A network with one hidden layer that tells two classes of points apart. Plain numpy, trained by gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Network:
    hidden: Array
    hidden_bias: Array
    out: Array
    out_bias: Array

    @classmethod
    def new(cls, width: int, seed: int) -> Network:
        chance = np.random.default_rng(seed)
        return cls(chance.normal(size=(2, width)), np.zeros(width), chance.normal(size=width) * 0.1, np.zeros(1))

    @classmethod
    def load(cls, path: Path) -> Network:
        with path.open("rb") as file, np.load(file) as kept:
            return cls(kept["hidden"], kept["hidden_bias"], kept["out"], kept["out_bias"])

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, hidden=self.hidden, hidden_bias=self.hidden_bias, out=self.out, out_bias=self.out_bias)

    def predict(self, points: Array) -> Array:
        """How likely each point is of class 1."""
        return self._forward(points)[1]

    def accuracy(self, points: Array, classes: Array) -> float:
        return float(np.mean((self.predict(points) > 0.5) == (classes > 0.5)))

    def learn(self, points: Array, classes: Array, rate: float) -> None:
        """One step down the gradient of the cross-entropy over all points."""
        inner, likely = self._forward(points)
        wrong = (likely - classes) / len(points)
        back = np.outer(wrong, self.out) * (1 - inner**2)
        self.out -= rate * (inner.T @ wrong)
        self.out_bias -= rate * wrong.sum()
        self.hidden -= rate * (points.T @ back)
        self.hidden_bias -= rate * back.sum(axis=0)

    def _forward(self, points: Array) -> tuple[Array, Array]:
        inner = np.tanh(points @ self.hidden + self.hidden_bias)
        return inner, 1 / (1 + np.exp(-(inner @ self.out + self.out_bias)))


def load_points(path: Path, part: str) -> tuple[Array, Array]:
    """Points and their classes: those to learn from (``train``), or those kept aside (``test``)."""
    with path.open("rb") as file, np.load(file) as kept:
        return kept[f"{part}_points"], kept[f"{part}_classes"]
