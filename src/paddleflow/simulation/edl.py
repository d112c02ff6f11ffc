"""The autoscaler of EDL, the elastic platform before this one, as a baseline: its rule, with its faults.

Each pass plans in rounds: every elastic job, least fulfilled first, is offered one more task; then every one, most
fulfilled first, is asked for one less if the cluster is over its desired load. The faults are kept because they are
what is compared with: the order is fixed before the pass, so it is a round robin and not fair; GPUs may be filled to
the last when growing but only to the desired load when shrinking, so a round can give and take for ever; waiting and
departing tasks count as load, so it shrinks again before the last shrinking has had an effect; a resize is free.

Kinder than the original in three ways: a pass ends when a round has changed nothing in sum, a job starts whole or not
at all, and tasks that find no node are not created. Waiting jobs are tried in order, each where it fits, as the pod
scheduler under it does; there are no quotas and no priorities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import Spot
from paddleflow.domain.resources import CPU, GPU, MEMORY, Resources
from paddleflow.scheduling import reasons
from paddleflow.scheduling.decisions import Admission, Decisions, Resize
from paddleflow.scheduling.reasons import Reason, WaitKind
from paddleflow.simulation.cluster import Capacity
from paddleflow.simulation.floor import Floor, fitting
from paddleflow.simulation.line import Line
from paddleflow.simulation.workload import Submission

MAX_LOAD = 0.97
TICK_S = 5.0
_MOST_ROUNDS = 10_000


@dataclass(slots=True)
class Trainer:
    """A job as the autoscaler plans it."""

    each: Resources
    size: int
    least: int
    most: int
    more: int = 0

    @property
    def planned(self) -> int:
        return self.size + self.more

    @property
    def score(self) -> tuple[float, int, int, int]:
        """How fulfilled it was before the pass; ties by what a task takes."""
        fulfilled = (self.size - self.least) / (self.most - self.least) if self.most > self.least else 1.0
        return (fulfilled, self.each.gpus, self.each.cpu_milli, self.each.memory_bytes)


@dataclass(slots=True)
class Load:
    """What the cluster has, and what is asked of it by everybody, running, waiting or on the way out."""

    total: Resources
    asked: dict[str, int]
    max_load: float = MAX_LOAD

    def may_grow(self, trainer: Trainer) -> bool:
        each = trainer.each
        if each.memory_bytes and self._free(MEMORY) <= each.memory_bytes:
            return False
        fits_cpu = int(self.total.cpu_milli * self.max_load) - self.asked.get(CPU, 0) >= each.cpu_milli
        return (fits_cpu or not each.cpu_milli) and self._free(GPU) >= each.gpus

    @property
    def is_over(self) -> bool:
        return any(self.asked.get(name, 0) > int(self.total.get(name) * self.max_load) for name in (GPU, CPU))

    def add(self, each: Resources, tasks: int) -> None:
        for name, units in each:
            self.asked[name] = self.asked.get(name, 0) + units * tasks

    def _free(self, name: str) -> int:
        return self.total.get(name) - self.asked.get(name, 0)


def plan(trainers: list[Trainer], load: Load, *, has_node: set[int] | None = None) -> None:
    """Set ``more`` of each. ``has_node`` are the trainers some node could take one more task of; None: all."""
    elastic = [(number, one) for number, one in enumerate(trainers) if one.least < one.most or one.planned > one.most]
    elastic.sort(key=lambda pair: pair[1].score)
    for _ in range(_MOST_ROUNDS):
        before = [trainer.more for _, trainer in elastic]
        for number, trainer in elastic:
            if trainer.planned >= trainer.most:
                _change(trainer, trainer.most - trainer.planned, load)
            elif (has_node is None or number in has_node) and load.may_grow(trainer):
                _change(trainer, 1, load)
        for _, trainer in reversed(elastic):
            if trainer.planned > trainer.most or (load.is_over and trainer.planned > trainer.least):
                _change(trainer, -1, load)
        if [trainer.more for _, trainer in elastic] == before:
            return


def _change(trainer: Trainer, delta: int, load: Load) -> None:
    if delta:
        trainer.more += delta
        load.add(trainer.each, delta)


@dataclass(slots=True)
class _Running:
    submission: Submission
    spots: list[Spot]
    parting: list[Spot] = field(default_factory=list)

    @property
    def trainer(self) -> Trainer:
        elastic, size = self.submission.entry.elastic, len(self.spots)
        least, most = (size, size) if elastic is None else (elastic.least, elastic.most)
        return Trainer(each=self.submission.each, size=size, least=least, most=most)


class Edl:
    """The rule at work on a cluster."""

    name = "edl"

    def __init__(self, capacity: Capacity) -> None:
        self._floor = Floor(capacity.nodes)
        self._total = capacity.total
        self._running: dict[JobId, _Running] = {}
        self._elastic: dict[JobId, _Running] = {}
        self._waiting = Line()
        self._load = Load(self._total, {})

    def submit(self, submission: Submission, now: float) -> None:
        self._waiting.add(submission)
        self._load.add(submission.each, _starting_tasks(submission))

    def end(self, job_id: JobId) -> None:
        self._elastic.pop(job_id, None)
        running = self._running.pop(job_id)
        self._floor.give([*running.spots, *running.parting], running.submission.each)
        self._load.add(running.submission.each, -len(running.spots) - len(running.parting))

    def requeue(self, submission: Submission, now: float) -> None:
        self.end(submission.entry.job_id)
        self.submit(submission, now)

    def release(self, job_id: JobId) -> None:
        running = self._running[job_id]
        self._floor.give(running.parting, running.submission.each)
        self._load.add(running.submission.each, -len(running.parting))
        running.parting = []

    def decide(self, now: float) -> Decisions:
        running = list(self._elastic.values())
        admissions = tuple(self._admissions())
        resizes = tuple(self._resizes(running))
        moved = bool(resizes) or len(self._elastic) > len(running)
        return Decisions(admissions=admissions, resizes=resizes, wake_at=now + TICK_S if moved else None)

    def _admissions(self) -> Iterator[Admission]:
        full: set[int] = set()
        while (submission := self._waiting.head(without=full)) is not None:
            found = self._floor.find(_starting_tasks(submission), submission.each)
            if found is None:
                full.add(submission.kind)
                continue
            self._waiting.remove(submission)
            job_id = submission.entry.job_id
            spots = self._floor.take(found, submission.each)
            self._running[job_id] = _Running(submission, list(spots))
            if submission.entry.elastic is not None:
                self._elastic[job_id] = self._running[job_id]
            yield Admission(job_id=job_id, spots=spots)

    def _resizes(self, running: list[_Running]) -> Iterator[Resize]:
        # One that is still shrinking is not settled and left alone, unless somebody is starving.
        taking_part = [one for one in running if self._waiting or not one.parting]
        if not taking_part:
            return
        trainers = [one.trainer for one in taking_part]
        plan(trainers, Load(self._total, dict(self._load.asked)), has_node=set(self._with_node(trainers)))
        for one, trainer in zip(taking_part, trainers, strict=True):
            resize = self._resized(one, trainer)
            if resize is not None:
                yield resize

    def _with_node(self, trainers: list[Trainer]) -> Iterator[int]:
        """Its look at nodes: CPU and memory of any one of them, before the pass; GPUs are not looked at."""
        known: dict[tuple[int, int], bool] = {}
        for number, trainer in enumerate(trainers):
            asked = (trainer.each.cpu_milli, trainer.each.memory_bytes)
            if asked not in known:
                amounts = {CPU: asked[0], MEMORY: asked[1]}
                known[asked] = not any(asked) or any(fitting(free, amounts, 1) for free in self._floor.free)
            if known[asked]:
                yield number

    def _resized(self, running: _Running, trainer: Trainer) -> Resize | None:
        job_id, each, size = running.submission.entry.job_id, running.submission.each, trainer.size
        if trainer.more < 0:
            # Which task goes is arbitrary in the original.
            gone = tuple(running.spots[trainer.more :])
            del running.spots[trainer.more :]
            running.parting += gone
            shrunk = Reason(kind=WaitKind.YIELDED, sentence=f"shrunk from {size} to {trainer.planned} for lower load")
            return Resize(job_id=job_id, drop=gone, reason=shrunk)
        added: list[Spot] = []
        for index in range(trainer.more):
            found = self._floor.find(1, each)
            if found is None:
                break
            added += self._floor.take(found, each, first=_free_index([*running.spots, *running.parting]) + index)
        if not added:
            return None
        running.spots += added
        self._load.add(each, len(added))
        return Resize(job_id=job_id, add=tuple(added), reason=reasons.grown(size, size + len(added)))


def _starting_tasks(submission: Submission) -> int:
    elastic = submission.entry.elastic
    return submission.tasks if elastic is None else elastic.least


def _free_index(spots: list[Spot]) -> int:
    return max((spot.index for spot in spots), default=-1) + 1
