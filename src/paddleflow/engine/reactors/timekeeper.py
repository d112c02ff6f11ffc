"""Timekeeper: schedules fire when their time has come.

It keeps a moment to look at each running schedule again; what is to be done then is decided by ``domain.ticks`` from
the rows as they are, and stored by one command that counts only if the schedule has not changed meanwhile. So a tick
is dealt with once: after a crash before the command it is still due, after the command it is not, and of two servers
that look at the same time one is told to look again.

A tick is noticed by the loop under every reactor, which looks at the clock every two seconds; runs remember the exact
time they were due (``Run.scheduled_at``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import heappop, heappush

from paddleflow.domain.commands import CreateRun, FireSchedule
from paddleflow.domain.errors import Conflict, Invalid, NotFound, PaddleFlowError, Unavailable
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import RunId, ScheduleId
from paddleflow.domain.queries import PageRequest, RunFilter
from paddleflow.domain.runs import Run
from paddleflow.domain.schedules import Schedule, ScheduleStatus
from paddleflow.domain.ticks import due
from paddleflow.domain.users import PLATFORM, Actor
from paddleflow.engine.intake import Intake
from paddleflow.engine.pipelines import PipelineDesk, RunRequest
from paddleflow.ports.clock import Clock
from paddleflow.ports.store import Store

log = logging.getLogger(__name__)

_ATTEMPTS = 3
"""How often a schedule that changes under us is looked at before it has to wait for the next tick."""


class Timekeeper:
    name = "timekeeper"
    kinds = frozenset(
        {EventKind.SCHEDULE_CREATED, EventKind.SCHEDULE_ENDED, EventKind.SCHEDULE_DELETED, EventKind.RUN_FINISHED}
    )

    def __init__(self, *, store: Store, intake: Intake, clock: Clock, desk: PipelineDesk) -> None:
        self._store = store
        self._intake = intake
        self._clock = clock
        self._desk = desk
        self._look_at: dict[ScheduleId, datetime] = {}
        self._heap: list[tuple[datetime, ScheduleId]] = []
        """The moments of ``_look_at``, soonest first, among others that do not count any more."""
        self._waiting: set[ScheduleId] = set()
        """Schedules with a tick that waits for one of their runs to end."""

    def resync(self) -> None:
        self._look_at, self._heap, self._waiting = {}, [], set()
        with self._store.read() as view:
            schedules = view.schedules.running()
        self._watch(schedules)
        self.tick()

    def react(self, events: Sequence[Event]) -> None:
        moved = {ScheduleId(event.subject) for event in events if event.kind is not EventKind.RUN_FINISHED}
        finished = {RunId(event.subject) for event in events if event.kind is EventKind.RUN_FINISHED}
        if moved:
            with self._store.read() as view:
                schedules = [schedule for id in sorted(moved) if (schedule := view.schedules.find(id)) is not None]
            for schedule_id in moved:
                self._forget(schedule_id)
            self._watch(schedules)
        if finished and self._waiting:
            self._go_on(finished)

    def tick(self) -> float | None:
        now = self._clock.now()
        ready = []
        while self._heap and self._heap[0][0] <= now:
            moment, schedule_id = heappop(self._heap)
            if self._look_at.get(schedule_id) == moment:
                del self._look_at[schedule_id]
                ready.append(schedule_id)
        # One look each: a schedule with more due than is dealt with in one go comes again at the next tick.
        for schedule_id in ready:
            self._deal_with(schedule_id)
        return (self._heap[0][0] - now).total_seconds() if self._heap else None

    def _watch(self, schedules: Iterable[Schedule]) -> None:
        for schedule in schedules:
            moment = schedule.next_at or schedule.ends_at
            if schedule.status is ScheduleStatus.RUNNING and moment is not None:
                self._remind(schedule.id, moment)

    def _remind(self, schedule_id: ScheduleId, moment: datetime) -> None:
        self._look_at[schedule_id] = moment
        heappush(self._heap, (moment, schedule_id))

    def _forget(self, schedule_id: ScheduleId) -> None:
        self._look_at.pop(schedule_id, None)
        self._waiting.discard(schedule_id)

    def _go_on(self, finished: set[RunId]) -> None:
        """Look at the waiting schedules whose runs these were; at all of them, when a run is gone and cannot tell."""
        with self._store.read() as view:
            runs = view.runs.page(RunFilter(ids=frozenset(finished)), PageRequest(limit=len(finished))).rows
        concerned = {run.schedule_id for run in runs} if len(runs) == len(finished) else self._waiting
        for schedule_id in sorted(self._waiting & concerned):
            self._deal_with(schedule_id)

    def _deal_with(self, schedule_id: ScheduleId) -> None:
        for _ in range(_ATTEMPTS):
            with self._store.read() as view:
                schedule = view.schedules.find(schedule_id)
                active = view.schedules.active_runs(schedule_id)
            if schedule is None or schedule.status is not ScheduleStatus.RUNNING:
                self._forget(schedule_id)
                return
            try:
                self._fire(schedule, active)
            except (Conflict, NotFound):
                continue  # it changed meanwhile, or was stopped or deleted: what to do is decided anew
            return
        self._remind(schedule_id, self._clock.now())

    def _fire(self, schedule: Schedule, active: Sequence[Run]) -> None:
        now = self._clock.now()
        try:
            ticks = due(schedule, active, now)
            orders = self._orders(schedule, ticks.start)
        except Unavailable as error:
            log.warning("schedule %s has to wait, what it needs cannot be read now: %s", schedule.id, error)
            self._remind(schedule.id, now)
            return
        except PaddleFlowError as error:
            self._fail(schedule, error)
            return
        if ticks.move(schedule):
            command = FireSchedule(
                id=schedule.id,
                seen=schedule.version,
                start=orders,
                skip=ticks.skip,
                stop=ticks.stop,
                next_at=ticks.next_at,
            )
            try:
                self._intake.submit(command, PLATFORM)
            except Invalid as error:
                self._fail(schedule, error)
                return
        self._forget(schedule.id)
        if ticks.look_at is not None:
            self._remind(schedule.id, ticks.look_at)
        if ticks.waits:
            self._waiting.add(schedule.id)

    def _orders(self, schedule: Schedule, ticks: Sequence[datetime]) -> tuple[CreateRun, ...]:
        """The pipeline as its owner would run it. It is compiled once: but for their time, the runs are the same."""
        if not ticks:
            return ()
        request = RunRequest(
            pipeline_id=schedule.pipeline_id,
            version_id=schedule.version_id,
            name=schedule.name,
            schedule_id=schedule.id,
        )
        order = self._desk.order(Actor(name=schedule.owner), request)
        return tuple(replace(order, scheduled_at=tick) for tick in ticks)

    def _fail(self, schedule: Schedule, error: PaddleFlowError) -> None:
        """A pipeline that cannot be run now will not be later either: versions do not change."""
        log.warning("schedule %s cannot go on: %s", schedule.id, error)
        command = FireSchedule(id=schedule.id, seen=schedule.version, failed=error.message or error.code)
        self._intake.submit(command, PLATFORM)
        self._forget(schedule.id)
