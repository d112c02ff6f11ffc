"""Figures and how they are shown: what was measured, what we aim for, what the peer does in the same run."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    what: str
    value: float
    unit: str
    target: float | None = None
    more_is_better: bool = False
    peer: str = ""
    peer_value: float | None = None

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        met = self.value >= self.target if self.more_is_better else self.value <= self.target
        return "met" if met else "missed"

    @property
    def aim(self) -> str:
        if self.target is None:
            return ""
        return f"{'≥' if self.more_is_better else '≤'} {shown(self.target)}"


def shown(value: float) -> str:
    """Three digits that matter, thousands apart."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(figures: Sequence[Figure]) -> str:
    header = ("figure", "PaddleFlow", "target", "", "peer in the same run")
    rows = [
        (
            figure.what,
            f"{shown(figure.value)} {figure.unit}",
            figure.aim,
            figure.verdict,
            f"{shown(figure.peer_value)} {figure.unit} ({figure.peer})"
            if figure.peer_value is not None
            else figure.peer,
        )
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def machine() -> str:
    return f"{os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}"


def save(figures: Sequence[Figure], *, short: bool, load_before: float) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "latest.json"
    document = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine(),
        "short": short,
        "load_before": load_before,
        "figures": [{**asdict(figure), "verdict": figure.verdict} for figure in figures],
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return path
