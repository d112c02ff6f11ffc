"""What a schedule owes: which of its ticks to start, to skip or to let wait, and what has to make room.

``due`` looks at a schedule, the runs of it that have not ended, and the time, and answers with everything that is to be
done now. It begins at ``Schedule.next_at``, the oldest tick that nobody has dealt with, and only ever moves on from it:
a clock that is set back finds nothing to do until it has caught up, and no tick is dealt with twice.

However late somebody looks, an answer stays small: at most ``MOST_AT_ONCE`` ticks are started in one go, the others
being still due afterwards, and more than that many skipped for one reason are recorded as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from paddleflow.domain.commands import SkippedTick
from paddleflow.domain.crontab import Crontab, Every, newest_until, next_after, parse
from paddleflow.domain.ids import RunId
from paddleflow.domain.runs import Run, Stop
from paddleflow.domain.schedules import ConcurrencyPolicy, Schedule

MOST_AT_ONCE = 100
_MOST_COUNTED = 1000
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """What is to be done about a schedule now, and when time alone will ask for more."""

    start: tuple[datetime, ...] = ()
    skip: tuple[SkippedTick, ...] = ()
    stop: tuple[RunId, ...] = ()
    """Active runs that make room for what is started."""
    next_at: datetime | None
    """The oldest tick that is not dealt with afterwards; None: there is none up to the schedule's end."""
    look_at: datetime | None
    """When to look again, unless a run ends before; None: not because of the time."""
    waits: bool = False
    """The tick ``next_at`` is due and waits for a run to end."""
    ended: bool = False
    """No tick is left and the end has passed."""

    def move(self, schedule: Schedule) -> bool:
        """Whether anything of this has to be stored."""
        return bool(self.start or self.skip or self.stop or self.ended or self.next_at != schedule.next_at)


def first_tick(crontab: Crontab, *, now: datetime, starts_at: datetime | None = None) -> datetime | None:
    """Of a new schedule: a tick at the very time it starts counts, and a period begins then."""
    if starts_at is None or isinstance(crontab.rule, Every):
        return next_after(crontab, starts_at or now)
    return next_after(crontab, starts_at - _INSTANT)


def due(schedule: Schedule, active: Sequence[Run], now: datetime) -> Ticks:
    """``active``: runs of this schedule that have not ended, the oldest first. Raises Invalid when the schedule's rule
    or its zone is not understood any more."""
    until = now if schedule.ends_at is None else min(now, schedule.ends_at)
    line = _Line(crontab=parse(schedule.crontab, schedule.time_zone), until=until)
    plan = _without_late(schedule, line, _Plan(at=schedule.next_at), now)
    if line.has(plan.at):
        plan = _with_room(schedule, line, plan, active)
    next_at = plan.at if plan.at is None or schedule.ends_at is None or plan.at <= schedule.ends_at else None
    return Ticks(
        start=plan.start,
        skip=plan.skip,
        stop=plan.stop,
        next_at=next_at,
        look_at=_look_at(schedule, line, replace(plan, at=next_at), now),
        waits=plan.waits,
        ended=next_at is None and (schedule.ends_at is None or schedule.ends_at <= now),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What was decided so far; ``at`` is the oldest tick still to be decided about."""

    at: datetime | None
    start: tuple[datetime, ...] = ()
    skip: tuple[SkippedTick, ...] = ()
    stop: tuple[RunId, ...] = ()
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """The ticks of a schedule up to the present or its end, whichever is earlier."""

    crontab: Crontab
    until: datetime

    def has(self, tick: datetime | None) -> bool:
        return tick is not None and tick <= self.until

    def after(self, tick: datetime) -> datetime | None:
        return next_after(self.crontab, tick)

    def ticks(self, first: datetime | None, until: datetime | None = None) -> Iterator[datetime]:
        """From ``first``, which is one, on."""
        end = self.until if until is None else min(until, self.until)
        tick = first
        while tick is not None and tick <= end:
            yield tick
            tick = self.after(tick)

    def newest(self, first: datetime, count: int) -> datetime:
        """Of the ticks from ``first`` on, the oldest among the ``count`` newest."""
        if len(list(islice(self.ticks(first), count + 1))) <= count:
            return first
        tick = newest_until(self.crontab, first, self.until)
        for _ in range(count - 1):
            tick = newest_until(self.crontab, first, tick - _INSTANT)
        return tick

    def skip(self, plan: _Plan, before: datetime, reason: str) -> _Plan:
        """Pass over the ticks earlier than ``before``: each is recorded, or all as one when they are many."""
        if plan.at is None or plan.at >= before or plan.at > self.until:
            return plan
        ticks = list(islice(self.ticks(plan.at, before - _INSTANT), MOST_AT_ONCE + 1))
        if len(ticks) <= MOST_AT_ONCE:
            records = tuple(SkippedTick(at=tick, reason=reason) for tick in ticks)
            return replace(plan, at=self.after(ticks[-1]), skip=plan.skip + records)
        last = newest_until(self.crontab, plan.at, min(before - _INSTANT, self.until))
        counted = sum(1 for _ in islice(self.ticks(plan.at, last), _MOST_COUNTED))
        many = f"{counted} or more" if counted == _MOST_COUNTED else str(counted)
        record = SkippedTick(at=plan.at, reason=f"{reason} (stands for {many} ticks up to {last.isoformat()})")
        return replace(plan, at=self.after(last), skip=(*plan.skip, record))


def _without_late(schedule: Schedule, line: _Line, plan: _Plan, now: datetime) -> _Plan:
    """Ticks that came too late for their own good, and those that a later one makes unwanted."""
    if schedule.expire_s:
        reason = f"beyond expire interval: not started within {schedule.expire_s} s"
        plan = line.skip(plan, now - timedelta(seconds=schedule.expire_s), reason)
    if not schedule.catch_up and plan.at is not None and line.has(plan.at):
        newest = newest_until(line.crontab, plan.at, line.until)
        plan = line.skip(plan, newest, "missed: a later tick is due as well, and the schedule does not catch up")
    return plan


def _with_room(schedule: Schedule, line: _Line, plan: _Plan, active: Sequence[Run]) -> _Plan:
    if not schedule.concurrency:
        return _start(line, plan, MOST_AT_ONCE)
    if schedule.policy is ConcurrencyPolicy.REPLACE:
        return _replace(schedule, line, plan, active)
    room = max(0, schedule.concurrency - len(active))
    plan = _start(line, plan, min(room, MOST_AT_ONCE))
    if room > MOST_AT_ONCE or not line.has(plan.at):
        return plan
    if schedule.policy is ConcurrencyPolicy.SUSPEND:
        return replace(plan, waits=True)
    busy = f"as many runs of the schedule as may be, {schedule.concurrency}, had not ended"
    return line.skip(plan, line.until + _INSTANT, busy)


def _replace(schedule: Schedule, line: _Line, plan: _Plan, active: Sequence[Run]) -> _Plan:
    """The newest ticks are started, as many as may be active, and the oldest runs go. One that was told to stop before
    has made its room already."""
    if plan.at is not None:
        wanted = line.newest(plan.at, min(schedule.concurrency, _MOST_COUNTED))
        plan = line.skip(plan, wanted, "replaced by a later tick")
    plan = _start(line, plan, MOST_AT_ONCE)
    living = [run.id for run in active if run.stop is Stop.NO]
    excess = max(0, len(living) + len(plan.start) - schedule.concurrency)
    return replace(plan, stop=tuple(living[:excess]))


def _start(line: _Line, plan: _Plan, count: int) -> _Plan:
    ticks = tuple(islice(line.ticks(plan.at), count))
    return replace(plan, start=ticks, at=line.after(ticks[-1])) if ticks else plan


def _look_at(schedule: Schedule, line: _Line, plan: _Plan, now: datetime) -> datetime | None:
    if plan.at is None:
        return schedule.ends_at
    if not plan.waits:
        return max(plan.at, now)
    too_late = plan.at + timedelta(seconds=schedule.expire_s) + _INSTANT if schedule.expire_s else None
    newer = None if schedule.catch_up else line.after(plan.at)
    return min((moment for moment in (too_late, newer) if moment is not None and moment > now), default=None)
