"""What was measured, as ratios of one run, and the tables that show it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.figures import shown

MIB = 1 << 20
MEMORY_LIMIT_MIB = 512.0
"""Of the daemons of one mount together, under every workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One side, one round."""

    rate: float
    """Operations a second."""
    cpu_us: float
    """Of the daemons, for one operation."""
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    median: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"{shown(self.median)} ({shown(self.low)} to {shown(self.high)})"


@dataclass(slots=True, kw_only=True)
class Measured:
    """One workload on all sides. A side that failed has a sentence instead of samples."""

    name: str
    what: str
    unit: str
    native_aims: dict[str, float]
    """Least ratio to native, by side."""
    peer_aims: dict[str, float]
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    wrong: bool = False
    """Some side gave wrong bytes."""

    def ratio(self, side: str, beside: str) -> Ratio | None:
        """Of the rounds that both have."""
        pairs = zip(self.samples.get(side, []), self.samples.get(beside, []), strict=False)
        return quartiles([one.rate / other.rate for one, other in pairs])

    def rate(self, side: str) -> str:
        samples = self.samples.get(side)
        return shown(statistics.median(sample.rate for sample in samples)) if samples else "-"

    def cpu_us(self, side: str) -> float | None:
        samples = self.samples.get(side)
        return statistics.median(sample.cpu_us for sample in samples) if samples else None

    def peak_mib(self, side: str) -> float | None:
        samples = self.samples.get(side)
        return max(sample.peak_bytes for sample in samples) / MIB if samples else None


def quartiles(values: Sequence[float]) -> Ratio | None:
    if not values:
        return None
    if len(values) == 1:
        return Ratio(median=values[0], low=values[0], high=values[0], rounds=1)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Ratio(median=median, low=low, high=high, rounds=len(values))


def judged(ratio: Ratio | None, aim: float | None) -> tuple[str, str]:
    """The ratio, and whether it is what we aim for."""
    if ratio is None:
        return "-", ""
    if aim is None:
        return str(ratio), ""
    return str(ratio), f"≥ {shown(aim)} {'met' if ratio.median >= aim else 'missed'}"


def speed_table(results: Sequence[Measured], ours: Sequence[str], native: str, peer: str) -> str:
    header = ("workload", "our mount", "unit", native, "ours", peer, f"of {native}", "", f"times {peer}", "", "n")
    rows = [
        (
            result.what,
            side,
            result.unit,
            result.rate(native),
            "see below" if side in result.failures else result.rate(side),
            "see below" if peer in result.failures else result.rate(peer),
            *judged(result.ratio(side, native), result.native_aims.get(side)),
            *judged(result.ratio(side, peer), result.peer_aims.get(side)),
            str(len(result.samples.get(side, []))),
        )
        for result in results
        for side in ours
        if side in result.samples or side in result.failures
    ]
    return drawn(header, rows)


def failures(results: Sequence[Measured]) -> list[str]:
    """A sentence for each side that was left out or failed; one that is the same everywhere is said once."""
    where: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for side, sentence in result.failures.items():
            where.setdefault((side, sentence), []).append(result.name)
    return [
        f"{side}: {sentence} ({', '.join(names) if len(names) < 4 else f'in {len(names)} of {len(results)} rows'})"
        for (side, sentence), names in where.items()
    ]


def cost_table(results: Sequence[Measured], ours: Sequence[str], peer: str) -> str:
    header = ("workload", "mount", "for one", "CPU, µs", f"{peer}", "memory, MiB", "", f"{peer}")
    rows = []
    for result in results:
        for side in ours:
            peak = result.peak_mib(side)
            if peak is not None:
                verdict = f"≤ {shown(MEMORY_LIMIT_MIB)} {'met' if peak <= MEMORY_LIMIT_MIB else 'missed'}"
                rows.append(
                    (
                        result.what,
                        side,
                        result.unit.removesuffix("/s"),
                        or_dash(result.cpu_us(side)),
                        or_dash(result.cpu_us(peer)),
                        or_dash(peak),
                        verdict,
                        or_dash(result.peak_mib(peer)),
                    )
                )
    return drawn(header, rows)


def or_dash(value: float | None) -> str:
    return "-" if value is None else shown(value)


def drawn(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])
