"""How good the forecasts are: measured on a replay, where the truth is known afterwards.

Every so many submissions that have to wait are asked about at the moment they arrive, with what could be known then:
run times of jobs that have ended, and the submissions so far. When the replay is over the answers are compared with
what happened in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from paddleflow.domain.ids import JobId
from paddleflow.scheduling.ledger import Ledger
from paddleflow.simulation.durations import Durations
from paddleflow.simulation.forecast import PLAIN, Band, Effort, Forecast, band_of, echo, forecast_start
from paddleflow.simulation.loop import Loop
from paddleflow.simulation.metrics import percentile
from paddleflow.simulation.policies import OwnScheduler
from paddleflow.simulation.workload import Submission, Workload

LOW_QUANTILES = (0.1, 0.05, 0.0)
STRETCHES = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One forecast and what happened."""

    job_id: JobId
    asked_at: float
    forecast: Forecast
    started_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    band: Band
    checks: tuple[Check, ...]
    """Of jobs that had to wait."""
    at_once: int
    """Asked about and started at the moment of submission: nothing to forecast."""
    coverage: float
    """Part of the checks whose start fell into the band."""
    median_error: float
    """Of the forecast's median, as a part of how long the wait really was."""


class _Learning(OwnScheduler):
    """The scheduler, and somebody who notes how long jobs ran."""

    def __init__(self, ledger: Ledger, durations: Durations) -> None:
        super().__init__(ledger)
        self._durations = durations
        self.clock: Callable[[], float] = lambda: 0.0

    def end(self, job_id: JobId) -> None:
        holding = self.ledger.holding_of(job_id)
        if holding is not None:
            self._durations.learn(holding.queue, holding.uses.gpus, self.clock() - holding.started_at)
        super().end(job_id)


def calibrate(
    workload: Workload, *, every: int = 50, expect_s: float = 86_400.0, effort: Effort = PLAIN
) -> Calibration:
    """Replay, ask about every so-manieth submission, compare. ``expect_s`` of past submissions are expected again."""
    durations = Durations()
    scheduler = _Learning(OwnScheduler.on(workload.capacity).ledger, durations)
    loop = Loop(scheduler, workload.capacity.costs)
    scheduler.clock = lambda: loop.now
    loop.expect(workload.submissions)
    asked: list[tuple[JobId, float, Forecast]] = []
    seen = at_once = 0
    submissions = workload.submissions
    while loop.step() is not None:
        while seen < len(submissions) and submissions[seen].at_s <= loop.now:
            seen += 1
            if seen % every:
                continue
            job_id = submissions[seen - 1].entry.job_id
            if scheduler.ledger.waiting_of(job_id) is None:
                at_once += 1
                continue
            arrivals = echo(_recent(submissions, seen, loop.now - expect_s), loop.now, expect_s)
            told = forecast_start(scheduler.ledger, job_id, loop.now, durations, arrivals, effort)
            asked.append((job_id, loop.now, told))
    checks = []
    for job_id, asked_at, told in asked:
        started = loop.runs[job_id].first_start
        if started is not None:
            checks.append(Check(job_id=job_id, asked_at=asked_at, forecast=told, started_at=started))
    return Calibration(
        band=effort.band,
        checks=tuple(checks),
        at_once=at_once,
        coverage=coverage(checks, effort.band),
        median_error=_median_error(checks),
    )


def coverage(checks: Sequence[Check], band: Band) -> float:
    """The part of the starts that this band would have held."""
    held = (
        band_of(one.forecast.starts, one.asked_at, one.forecast.seen_until, band).contains(one.started_at)
        for one in checks
    )
    return sum(held) / len(checks) if checks else 1.0


def narrowest_band(checks: Sequence[Check], confidence: float = 0.8) -> Band:
    """The band, of those worth trying, that holds so many of the starts and is the narrowest on the median."""
    bands = [Band(low=low, high=1.0 - low, stretch=stretch) for low in LOW_QUANTILES for stretch in STRETCHES]
    good = [band for band in bands if coverage(checks, band) >= confidence]
    chosen = min(good or bands[-1:], key=lambda band: (_median_width(checks, band), band.stretch))
    return Band(low=chosen.low, high=chosen.high, stretch=chosen.stretch, confidence=round(coverage(checks, chosen), 2))


def _recent(submissions: Sequence[Submission], seen: int, since: float) -> Iterable[Submission]:
    first = seen
    while first > 0 and submissions[first - 1].at_s > since:
        first -= 1
    return submissions[first:seen]


def _median_width(checks: Iterable[Check], band: Band) -> float:
    widths = []
    for one in checks:
        told = band_of(one.forecast.starts, one.asked_at, one.forecast.seen_until, band)
        widths.append((told.high if told.high is not None else float("inf")) - told.low)
    return percentile(sorted(widths), 0.5)


def _median_error(checks: Iterable[Check]) -> float:
    errors = []
    for one in checks:
        waited = one.started_at - one.asked_at
        told = one.forecast.median
        errors.append(float("inf") if told is None else abs(told - one.started_at) / max(waited, 1.0))
    return percentile(sorted(errors), 0.5)
