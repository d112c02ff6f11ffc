"""When will it start: the scheduler's own future, played forward many times from the books as they are.

Each sample is one possible future: every running and waiting job gets a run time out of what such jobs have taken, and
the loop runs with the same ``decide`` until the job in question starts. Run times are not drawn by chance but spread
evenly: over the samples each job goes through all parts of its distribution, in an order of its own, and one job in
three follows the sample's own level, because good days and bad days exist. So the same question gets the same answer.

The band is wider than the samples say, by a factor found by calibration (``calibrate``): the samples know that run
times vary, and not that tomorrow's jobs differ from yesterday's. Work is bounded; where a sample does not reach the
start within it the answer is "later than".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from paddleflow.domain.errors import invalid_field, not_found
from paddleflow.domain.ids import JobId
from paddleflow.scheduling.decide import DEFAULT_RULES, Rules
from paddleflow.scheduling.entries import Holding, Waiting
from paddleflow.scheduling.ledger import Ledger
from paddleflow.simulation.chance import scatter
from paddleflow.simulation.cluster import Costs
from paddleflow.simulation.durations import Durations
from paddleflow.simulation.loop import Loop, Run
from paddleflow.simulation.metrics import percentile
from paddleflow.simulation.policies import OwnScheduler
from paddleflow.simulation.workload import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Which part of the samples the answer spans, and how much wider it is than they are."""

    low: float = 0.1
    high: float = 0.9
    stretch: float = 4.0
    confidence: float = 0.8
    """The part of starts that fall into such a band, as measured: about that on the hardest load tried, a burst of many
    tenants, and more on steady ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard to look, and what is assumed."""

    samples: int = 16
    """A power of two."""
    most_steps: int = 400
    """Of each sample: decisions until it gives up."""
    grain: float = 0.03
    """Things so close together, as a part of how far ahead they are, are decided on together: what happens tomorrow
    need not be known to the second, and looking ten times as far costs only a few more steps."""
    costs: Costs = field(default_factory=Costs)
    band: Band = field(default_factory=Band)

    def check(self) -> None:
        if self.samples < 1 or self.samples & (self.samples - 1):
            raise invalid_field("samples", f"[{self.samples}] must be a power of two")
        if self.most_steps < 1:
            raise invalid_field("most_steps", f"[{self.most_steps}] must be at least 1")
        if not 0 <= self.grain < 1:
            raise invalid_field("grain", f"[{self.grain:g}] must be from 0 to below 1")


PLAIN = Effort()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Times of the ledger's clock. None: later than ``seen_until``, further than was looked."""

    low: float
    median: float | None
    high: float | None
    confidence: float
    samples: int
    seen_until: float
    starts: tuple[float, ...]
    """Of every sample, rising; infinite where it was not reached."""

    def contains(self, start: float) -> bool:
        return self.low <= start and (self.high is None or start <= self.high)


def forecast_start(
    ledger: Ledger,
    job_id: JobId,
    now: float,
    durations: Durations,
    arrivals: Sequence[Submission] = (),
    effort: Effort = PLAIN,
    rules: Rules = DEFAULT_RULES,
) -> Forecast:
    """When a waiting job starts. ``arrivals`` are the submissions expected from now on, in order of time."""
    effort.check()
    if ledger.waiting_of(job_id) is None:
        raise not_found("waiting job", job_id)
    futures = [
        _Future(
            OwnScheduler(ledger.copy(), rules), now, durations, effort.costs, _Level(number, effort.samples)
        ).start_of(job_id, arrivals, effort)
        for number in range(effort.samples)
    ]
    starts = tuple(sorted(start for start, _ in futures))
    unreached = [seen for start, seen in futures if math.isinf(start)]
    return band_of(starts, now, min(unreached, default=starts[-1]), effort.band)


def band_of(starts: tuple[float, ...], now: float, seen_until: float, band: Band) -> Forecast:
    """The answer that these samples give."""
    low, median, high = (percentile(starts, part) for part in (band.low, 0.5, band.high))
    if math.isinf(low):
        low = seen_until
    return Forecast(
        low=now + (low - now) / band.stretch,
        median=None if math.isinf(median) else median,
        high=None if math.isinf(high) else now + (high - now) * band.stretch,
        confidence=1.0 if starts[-1] <= now else band.confidence,
        samples=len(starts),
        seen_until=seen_until,
        starts=starts,
    )


_LATER = 1 << 40
"""Added to the number of a job that is expected again: it comes after everybody who is there."""


def echo(recent: Iterable[Submission], now: float, window_s: float) -> tuple[Submission, ...]:
    """The submissions of the last while, expected once more in the next: the simplest guess of what will come."""
    return tuple(
        replace(
            one,
            at_s=one.at_s + window_s,
            entry=replace(
                one.entry,
                job_id=JobId(f"{one.entry.job_id}+"),
                seq=one.entry.seq + _LATER,
                since=one.at_s + window_s,
            ),
        )
        for one in recent
        if now - window_s < one.at_s <= now
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """Which part of its distribution a job is in, in one of several samples."""

    number: int
    samples: int

    def of(self, seq: int) -> float:
        mixed = scatter(seq + 1)
        if mixed % 3 == 0:
            place = self.number
        else:
            # An odd stride goes through all of a power of two.
            place = (self.number * (2 * (mixed >> 8 & 0xFFFF) + 1) + (mixed >> 32)) % self.samples
        return (place + 0.5) / self.samples


class _Future:
    """One way things may go on."""

    def __init__(self, scheduler: OwnScheduler, now: float, durations: Durations, costs: Costs, level: _Level) -> None:
        ledger = scheduler.ledger
        self._loop = Loop(scheduler, costs, now=now)
        self._durations = durations
        self._level = level
        for holding in ledger.holding.values():
            self._resume(holding, now)
        for line in ledger.waiting.values():
            for waiting in line:
                self._loop.adopt_waiting(Run(self._submission(waiting, waiting.since, 0.0)))

    def start_of(self, job_id: JobId, arrivals: Sequence[Submission], effort: Effort) -> tuple[float, float]:
        """When it starts in this future, and how far was looked."""
        loop = self._loop
        begin = loop.now
        loop.expect(self._submission(one.entry, one.at_s, 0.0) for one in arrivals if one.entry.job_id not in loop.runs)
        loop.decide()
        run = loop.runs[job_id]
        while run.first_start is None and loop.steps < effort.most_steps:
            if loop.step((loop.now - begin) * effort.grain) is None:
                break
        return (math.inf if run.first_start is None else run.first_start), loop.now

    def _resume(self, holding: Holding, now: float) -> None:
        elapsed = max(0.0, now - holding.started_at)
        tasks = max(1, len(holding.held))
        entry = Waiting(
            job_id=holding.job_id,
            seq=holding.seq,
            priority=holding.priority,
            queue=holding.queue,
            cluster=holding.cluster,
            groups=holding.groups,
            elastic=holding.elastic,
            since=holding.started_at,
            limit_s=holding.limit_s,
        )
        submission = self._submission(entry, holding.started_at, elapsed)
        run = Run(submission, work=submission.duration_s * tasks)
        self._loop.adopt_running(run, tasks, holding.started_at, is_leaving=holding.is_leaving)
        if holding.parting and not holding.is_leaving:
            self._loop.expect_release(run, len(holding.parting))

    def _submission(self, entry: Waiting, at_s: float, elapsed: float) -> Submission:
        gpus = entry.request.gpus
        return Submission(
            entry=entry,
            at_s=at_s,
            tasks=sum(group.count for group in entry.groups),
            each=entry.groups[0].each,
            duration_s=self._durations.remaining(entry.queue, gpus, elapsed, self._level.of(entry.seq)),
            kind=0,
            units=0,
        )
