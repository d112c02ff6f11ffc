"""Commands about schedules.

Which ticks are due is decided by ``domain.ticks``; ``fire_schedule`` stores such a decision with the runs it starts, so
that a tick is dealt with exactly once, whoever keeps time and however often it is killed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from paddleflow.domain import commands, crontab
from paddleflow.domain.access import require_owner
from paddleflow.domain.errors import (
    Conflict,
    Duplicate,
    Invalid,
    NotFound,
    Stale,
    invalid_field,
    no_access,
    not_found,
)
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import ROOT, RunId, ScheduleId, UserName, numbered_id
from paddleflow.domain.names import check_text
from paddleflow.domain.runs import Run, RunStatus, Stop
from paddleflow.domain.schedules import ConcurrencyPolicy, Schedule, ScheduleStatus
from paddleflow.domain.ticks import first_tick
from paddleflow.engine.context import Answer, Context
from paddleflow.engine.handlers.runs import ask_run_to_stop, store_run

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{1,49}")
_DESCRIPTION_LIMIT = 256
_MOST = 2**31 - 1
"""Of a number that a user chooses: what a column of a database holds."""


def create_schedule(ctx: Context, command: commands.CreateSchedule) -> Answer:
    owner = UserName(command.owner or ctx.actor.name)
    if ctx.uow.users.find(owner) is None:
        raise NotFound(f"user[{owner[:80]}] does not exist", code="UserNotExist")
    schedule = ctx.uow.schedules.add(_accepted(ctx, command, owner))
    ctx.emit(EventKind.SCHEDULE_CREATED, schedule.id, owner, name=schedule.name)
    return {"scheduleID": schedule.id}


def stop_schedule(ctx: Context, command: commands.StopSchedule) -> Answer:
    """No further ticks. Its runs go on."""
    schedule = _owned(ctx, command.id)
    if schedule.status is not ScheduleStatus.RUNNING:
        raise Conflict(f"schedule[{schedule.id}] is {schedule.status} already and cannot be stopped")
    _end(ctx, schedule, ScheduleStatus.TERMINATED, "")
    return {}


def delete_schedule(ctx: Context, command: commands.DeleteSchedule) -> Answer:
    """Its runs stay, and still say which schedule started them."""
    schedule = _owned(ctx, command.id)
    if schedule.status is ScheduleStatus.RUNNING:
        raise Conflict(f"schedule[{schedule.id}] is running; stop it first, then delete it")
    ctx.uow.schedules.delete(schedule.id)
    ctx.emit(EventKind.SCHEDULE_DELETED, schedule.id, schedule.owner, name=schedule.name)
    return {}


def fire_schedule(ctx: Context, command: commands.FireSchedule) -> Answer:
    schedule = _schedule(ctx, command.id)
    if schedule.status is not ScheduleStatus.RUNNING:
        raise Conflict(f"schedule[{schedule.id}] is {schedule.status}: it has no ticks any more")
    if schedule.version != command.seen:
        raise Stale(f"schedule[{schedule.id}] changed meanwhile; read it again")
    failed = command.failed
    if ctx.uow.users.find(schedule.owner) is None:
        failed = f"its owner, user[{schedule.owner}], does not exist any more"
    if failed:
        _end(ctx, schedule, ScheduleStatus.FAILED, failed)
        return {"started": []}
    for run_id in command.stop:
        _make_room(ctx, run_id)
    started = _store_runs(ctx, schedule, command)
    fired = replace(schedule, next_at=command.next_at, updated_at=ctx.now)
    ctx.emit(
        EventKind.SCHEDULE_FIRED,
        schedule.id,
        schedule.owner,
        name=schedule.name,
        started=started,
        skipped=len(command.skip),
    )
    if command.next_at is None and (schedule.ends_at is None or schedule.ends_at <= ctx.now):
        _end(ctx, fired, ScheduleStatus.SUCCESS, "")
    else:
        ctx.uow.schedules.save(fired)
    return {"started": started}


def _accepted(ctx: Context, command: commands.CreateSchedule, owner: UserName) -> Schedule:
    """The schedule that was asked for, checked in every field."""
    if not _NAME.fullmatch(command.name):
        raise Invalid(
            f"name[{command.name[:80]}] for [schedule] does not compile with regex rule[^{_NAME.pattern}$]",
            code="InvalidNamePattern",
            details={"field": "name"},
        )
    if ctx.uow.schedules.find_named(owner, command.name) is not None:
        raise Duplicate(
            f"schedule[{command.name}] of user[{owner}] already exists; choose another name, or delete it first",
            code="DuplicatedName",
            details={"name": command.name},
        )
    _check_times(ctx, command)
    rule = crontab.parse(command.crontab, command.time_zone)
    next_at = first_tick(rule, now=ctx.now, starts_at=command.starts_at)
    if next_at is None:
        raise invalid_field("crontab", f"[{command.crontab}] names a date that no calendar has, or is too far ahead")
    _check_pipeline(ctx, command, owner)
    is_over = command.ends_at is not None and next_at > command.ends_at
    return Schedule(
        id=ScheduleId(numbered_id("schedule", ctx.uow.numbers.next("schedule"))),
        name=command.name,
        description=check_text("desc", command.description, limit=_DESCRIPTION_LIMIT),
        owner=owner,
        pipeline_id=command.pipeline_id,
        version_id=command.version_id,
        crontab=command.crontab,
        time_zone=command.time_zone,
        starts_at=command.starts_at,
        ends_at=command.ends_at,
        concurrency=_check_number("concurrency", command.concurrency),
        policy=_check_policy(command.policy),
        expire_s=_check_number("expireInterval", command.expire_s),
        catch_up=command.catch_up,
        message="it has no tick between its start and its end" if is_over else "",
        next_at=None if is_over else next_at,
        created_at=ctx.now,
        updated_at=ctx.now,
    )


def _check_times(ctx: Context, command: commands.CreateSchedule) -> None:
    for field, at in (("startTime", command.starts_at), ("endTime", command.ends_at)):
        if at is not None and at <= ctx.now:
            raise invalid_field(field, f"[{_spell(at)}] is not after now, [{_spell(ctx.now)}]")
    if command.starts_at and command.ends_at and command.ends_at <= command.starts_at:
        raise invalid_field(
            "endTime", f"[{_spell(command.ends_at)}] is not after startTime[{_spell(command.starts_at)}]"
        )


def _spell(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds")


def _check_number(field: str, value: int) -> int:
    if not 0 <= value <= _MOST:
        raise invalid_field(field, f"[{value}] is not between 0 and {_MOST}; 0 means no limit")
    return value


def _check_policy(text: str) -> ConcurrencyPolicy:
    try:
        return ConcurrencyPolicy(text or ConcurrencyPolicy.SUSPEND)
    except ValueError:
        allowed = ", ".join(ConcurrencyPolicy)
        raise invalid_field("concurrencyPolicy", f"[{text[:80]}] is not one of {allowed}") from None


def _check_pipeline(ctx: Context, command: commands.CreateSchedule, owner: UserName) -> None:
    """The one whose runs they will be must be able to run it."""
    pipeline = ctx.uow.pipelines.find(command.pipeline_id)
    if pipeline is None:
        raise not_found("pipeline", command.pipeline_id[:80], code="PipelineNotFound")
    if owner not in (pipeline.owner, ROOT):
        raise no_access(owner, "pipeline", pipeline.id, code="AccessDenied")
    if ctx.uow.pipelines.find_version(pipeline.id, command.version_id) is None:
        raise not_found("pipelineVersion", f"{pipeline.id}-{command.version_id[:80]}", code="PipelineNotFound")


def _make_room(ctx: Context, run_id: RunId) -> None:
    run = ctx.uow.runs.find(run_id)
    if run is not None and not run.is_ended and run.stop is Stop.NO:
        ask_run_to_stop(ctx, run)


def _store_runs(ctx: Context, schedule: Schedule, command: commands.FireSchedule) -> list[RunId]:
    """In the order of the ticks, whether they are started or skipped. Answers the ids of those started."""
    ticks: list[tuple[datetime, commands.CreateRun | commands.SkippedTick]] = [
        *((order.scheduled_at or ctx.now, order) for order in command.start),
        *((tick.at, tick) for tick in command.skip),
    ]
    started = []
    for _, tick in sorted(ticks, key=lambda pair: pair[0]):
        if isinstance(tick, commands.CreateRun):
            started.append(store_run(ctx, tick, schedule.owner).id)
        else:
            _record_skipped(ctx, schedule, tick)
    return started


def _record_skipped(ctx: Context, schedule: Schedule, tick: commands.SkippedTick) -> None:
    """A run that never was: it has no text and no plan, only a reason."""
    run = ctx.uow.runs.add(
        Run(
            id=RunId(numbered_id("run", ctx.uow.numbers.next("run"))),
            name=schedule.name,
            owner=schedule.owner,
            source=f"{schedule.pipeline_id}-{schedule.version_id}",
            text="",
            plan="",
            schedule_id=schedule.id,
            scheduled_at=tick.at,
            status=RunStatus.SKIPPED,
            message=tick.reason,
            created_at=ctx.now,
            finished_at=ctx.now,
            updated_at=ctx.now,
        )
    )
    ctx.emit(EventKind.RUN_FINISHED, run.id, run.owner, status=run.status, message=run.message, name=run.name)


def _end(ctx: Context, schedule: Schedule, status: ScheduleStatus, message: str) -> None:
    ended = ctx.uow.schedules.save(
        replace(schedule, status=status, message=message or schedule.message, next_at=None, updated_at=ctx.now)
    )
    ctx.emit(EventKind.SCHEDULE_ENDED, ended.id, ended.owner, name=ended.name, status=status, message=ended.message)


def _schedule(ctx: Context, schedule_id: ScheduleId) -> Schedule:
    schedule = ctx.uow.schedules.find(schedule_id)
    if schedule is None:
        raise not_found("schedule", schedule_id[:80], code="ScheduleNotFound")
    return schedule


def _owned(ctx: Context, schedule_id: ScheduleId) -> Schedule:
    schedule = _schedule(ctx, schedule_id)
    require_owner(ctx.actor, schedule.owner, "schedule", schedule.id, code="AccessDenied")
    return schedule
