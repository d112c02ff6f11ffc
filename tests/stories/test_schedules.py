"""Stories of schedules, on a clock that moves when told to. Nothing here waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from paddleflow.domain.commands import (
    CreateFilesystem,
    CreateRun,
    CreateSchedule,
    DeleteFilesystem,
    DeleteSchedule,
    DeleteUser,
    FireSchedule,
    StopRun,
    StopSchedule,
)
from paddleflow.domain.errors import Conflict, Denied, Duplicate, Invalid, NotFound, Stale, Unavailable
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import PipelineId, ScheduleId, VersionId
from paddleflow.domain.queries import PageRequest, RunFilter
from paddleflow.domain.runs import Run, RunStatus
from paddleflow.domain.schedules import Schedule, ScheduleStatus
from paddleflow.domain.ticks import MOST_AT_ONCE
from paddleflow.domain.users import PLATFORM, Actor
from paddleflow.engine.pipelines import PipelineDesk, PipelineRequest, RunRequest
from paddleflow.engine.reactors.timekeeper import Timekeeper
from paddleflow.testing.builders import a_node, resources
from paddleflow.testing.platform import ROOT_ACTOR, InMemoryPlatform

MINUTE, HOUR, DAY = 60, 3600, 86400
PIPELINE = """
name: hello
entry_points:
  main:
    command: echo hello
    env: {PF_JOB_FLAVOUR: flavour1, PF_JOB_QUEUE_NAME: default-queue}
"""


@pytest.fixture
def platform() -> InMemoryPlatform:
    """At midnight, with one pipeline."""
    platform = InMemoryPlatform([a_node("node-1", resources("100", "400Gi"))])
    assert platform.clock.now() == midnight()
    platform.desk.create_pipeline(ROOT_ACTOR, PipelineRequest(text=PIPELINE))
    return platform


def midnight() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def wish(**options: object) -> CreateSchedule:
    defaults: dict[str, object] = {
        "name": "ticking",
        "pipeline_id": PipelineId("ppl-000001"),
        "version_id": VersionId("1"),
        "crontab": "*/10 * * * *",
    }
    return CreateSchedule(**{**defaults, **options})  # type: ignore[arg-type]


def create(platform: InMemoryPlatform, actor: Actor = ROOT_ACTOR, **options: object) -> ScheduleId:
    answer = platform.ask(wish(**options), actor)
    platform.settle()
    return ScheduleId(str(answer["scheduleID"]))


def found(platform: InMemoryPlatform, schedule_id: ScheduleId) -> Schedule:
    with platform.store.read() as view:
        schedule = view.schedules.find(schedule_id)
    assert schedule is not None
    return schedule


def runs(platform: InMemoryPlatform, schedule_id: ScheduleId) -> list[Run]:
    with platform.store.read() as view:
        return list(view.runs.page(RunFilter(schedule=schedule_id), PageRequest(limit=1000)).rows)


def times(platform: InMemoryPlatform, schedule_id: ScheduleId, *statuses: RunStatus) -> list[str]:
    """When the runs were due, those of a status."""
    wanted = statuses or tuple(RunStatus)
    due = [run.scheduled_at for run in runs(platform, schedule_id) if run.status in wanted]
    return [at.strftime("%H:%M") for at in due if at is not None]


def finish(platform: InMemoryPlatform, run: Run) -> None:
    platform.end_step(run.id, "main")


def be_down(platform: InMemoryPlatform, seconds: float) -> None:
    """Nobody keeps time for a while; then the server starts again."""
    platform.clock.advance(seconds)
    platform.restart()


def test_a_tick_becomes_a_run(platform: InMemoryPlatform) -> None:
    ticking = create(platform)
    assert found(platform, ticking).next_at == midnight() + timedelta(minutes=10)
    platform.pass_time(10 * MINUTE - 1)
    assert runs(platform, ticking) == []
    platform.pass_time(2)
    (run,) = runs(platform, ticking)
    assert (run.name, run.owner, run.source, run.schedule_id) == ("ticking", "root", "ppl-000001-1", ticking)
    assert run.scheduled_at == midnight() + timedelta(minutes=10)
    assert run.status is RunStatus.RUNNING
    assert found(platform, ticking).next_at == midnight() + timedelta(minutes=20)
    finish(platform, run)
    assert times(platform, ticking, RunStatus.SUCCEEDED) == ["00:10"]
    platform.pass_time(10 * MINUTE)
    assert times(platform, ticking) == ["00:10", "00:20"]


def test_a_schedule_may_start_later_and_a_tick_at_its_start_counts(platform: InMemoryPlatform) -> None:
    ticking = create(platform, crontab="@hourly", starts_at=midnight() + timedelta(hours=3))
    for _ in range(4):
        platform.pass_time(HOUR)
    assert times(platform, ticking) == ["03:00", "04:00"]


def test_it_ends_when_its_end_has_come(platform: InMemoryPlatform) -> None:
    ticking = create(platform, ends_at=midnight() + timedelta(minutes=25))
    platform.pass_time(21 * MINUTE)
    platform.pass_time(0)
    assert times(platform, ticking) == ["00:10", "00:20"]
    waiting = found(platform, ticking)
    assert (waiting.status, waiting.next_at) == (ScheduleStatus.RUNNING, None)
    platform.pass_time(4 * MINUTE)
    assert found(platform, ticking).status is ScheduleStatus.SUCCESS
    platform.pass_time(DAY)
    assert len(runs(platform, ticking)) == 2


def test_one_without_a_tick_before_its_end_says_so_and_ends(platform: InMemoryPlatform) -> None:
    ticking = create(platform, crontab="@yearly", ends_at=midnight() + timedelta(hours=1))
    schedule = found(platform, ticking)
    assert (schedule.status, schedule.next_at) == (ScheduleStatus.RUNNING, None)
    assert schedule.message == "it has no tick between its start and its end"
    platform.pass_time(HOUR)
    assert found(platform, ticking).status is ScheduleStatus.SUCCESS
    assert runs(platform, ticking) == []


def test_the_end_is_noticed_after_a_downtime(platform: InMemoryPlatform) -> None:
    ticking = create(platform, ends_at=midnight() + timedelta(minutes=25))
    be_down(platform, DAY)
    assert times(platform, ticking) == ["00:10", "00:20"]
    assert found(platform, ticking).status is ScheduleStatus.SUCCESS


def test_what_was_missed_is_made_up_for(platform: InMemoryPlatform) -> None:
    ticking = create(platform)
    be_down(platform, 31 * MINUTE)
    assert times(platform, ticking) == ["00:10", "00:20", "00:30"]
    assert {run.status for run in runs(platform, ticking)} == {RunStatus.RUNNING}


def test_what_was_missed_is_recorded_when_nobody_wants_it(platform: InMemoryPlatform) -> None:
    ticking = create(platform, catch_up=False)
    be_down(platform, 31 * MINUTE)
    assert times(platform, ticking, RunStatus.SKIPPED) == ["00:10", "00:20"]
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:30"]
    skipped = runs(platform, ticking)[0]
    assert "does not catch up" in skipped.message
    assert (skipped.name, skipped.source, skipped.finished_at) == ("ticking", "ppl-000001-1", platform.clock.now())
    assert [run.id for run in runs(platform, ticking)] == ["run-000001", "run-000002", "run-000003"]
    platform.pass_time(9 * MINUTE)
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:30", "00:40"]


def test_what_comes_too_late_is_recorded(platform: InMemoryPlatform) -> None:
    ticking = create(platform, expire_s=5 * MINUTE)
    be_down(platform, 31 * MINUTE)
    assert times(platform, ticking, RunStatus.SKIPPED) == ["00:10", "00:20"]
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:30"]
    assert "beyond expire interval" in runs(platform, ticking)[0].message


def test_a_long_downtime_is_made_up_for_in_portions(platform: InMemoryPlatform) -> None:
    ticking = create(platform, crontab="* * * * *", concurrency=0)
    be_down(platform, 250 * MINUTE)
    assert len(runs(platform, ticking)) == MOST_AT_ONCE
    platform.pass_time(0)
    assert len(runs(platform, ticking)) == 2 * MOST_AT_ONCE
    platform.pass_time(0)
    platform.pass_time(0)
    made = [run.scheduled_at for run in runs(platform, ticking)]
    assert made == [midnight() + timedelta(minutes=minute) for minute in range(1, 251)]


def test_a_year_of_missed_minutes_is_one_record(platform: InMemoryPlatform) -> None:
    ticking = create(platform, crontab="* * * * *", catch_up=False)
    be_down(platform, 365 * DAY)
    record, run = runs(platform, ticking)
    assert record.status is RunStatus.SKIPPED and "stands for 1000 or more ticks" in record.message
    assert run.scheduled_at == midnight() + timedelta(days=365)


def test_a_tick_waits_for_a_run_to_end(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=1)
    for _ in range(3):
        platform.pass_time(10 * MINUTE)
    assert times(platform, ticking) == ["00:10"]
    assert found(platform, ticking).next_at == midnight() + timedelta(minutes=20)
    finish(platform, runs(platform, ticking)[0])
    assert times(platform, ticking) == ["00:10", "00:20"], "at once, without waiting for the clock"
    finish(platform, runs(platform, ticking)[1])
    finish(platform, runs(platform, ticking)[2])
    assert times(platform, ticking, RunStatus.SUCCEEDED) == ["00:10", "00:20", "00:30"]
    platform.pass_time(10 * MINUTE)
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:40"]


def test_a_tick_still_waits_after_a_restart(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=1)
    platform.pass_time(10 * MINUTE)
    be_down(platform, 10 * MINUTE)
    assert times(platform, ticking) == ["00:10"]
    finish(platform, runs(platform, ticking)[0])
    assert times(platform, ticking) == ["00:10", "00:20"]


def test_a_waiting_tick_may_become_too_late(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=1, expire_s=5 * MINUTE)
    platform.pass_time(10 * MINUTE)
    platform.pass_time(10 * MINUTE)
    assert times(platform, ticking) == ["00:10"]
    platform.pass_time(5 * MINUTE + 1)
    assert times(platform, ticking, RunStatus.SKIPPED) == ["00:20"], "though no run has ended"
    finish(platform, runs(platform, ticking)[0])
    assert times(platform, ticking, RunStatus.RUNNING) == []


def test_only_the_newest_tick_waits_when_none_is_made_up_for(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=1, catch_up=False)
    for _ in range(3):
        platform.pass_time(10 * MINUTE)
    assert times(platform, ticking, RunStatus.SKIPPED) == ["00:20"]
    finish(platform, runs(platform, ticking)[0])
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:30"]


def test_a_run_that_is_stopped_makes_room_when_it_has_ended(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=1)
    platform.pass_time(10 * MINUTE)
    platform.pass_time(10 * MINUTE)
    platform.ask(StopRun(id=runs(platform, ticking)[0].id))
    platform.settle()
    assert times(platform, ticking, RunStatus.TERMINATED) == ["00:10"]
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:20"]


def test_runs_of_others_do_not_count(platform: InMemoryPlatform) -> None:
    busy = create(platform, name="busy", concurrency=1)
    idle = create(platform, name="idle", concurrency=1)
    platform.pass_time(10 * MINUTE)
    finish(platform, runs(platform, idle)[0])
    platform.pass_time(10 * MINUTE)
    assert times(platform, busy) == ["00:10"]
    assert times(platform, idle) == ["00:10", "00:20"]


def test_a_newer_tick_replaces_the_oldest_run(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=2, policy="replace")
    for _ in range(3):
        platform.pass_time(10 * MINUTE)
    assert times(platform, ticking, RunStatus.TERMINATED) == ["00:10"]
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:20", "00:30"]


def test_a_run_that_does_not_want_to_go_is_not_told_twice() -> None:
    platform = InMemoryPlatform([a_node("node-1", resources("100", "400Gi"))], obeys_stop=False)
    platform.desk.create_pipeline(ROOT_ACTOR, PipelineRequest(text=PIPELINE))
    ticking = create(platform, concurrency=1, policy="replace")
    for _ in range(3):
        platform.pass_time(10 * MINUTE)
    assert times(platform, ticking, RunStatus.TERMINATING) == ["00:10", "00:20"]
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:30"]
    stories = [[event.kind for event in platform.story_of(run.id)] for run in runs(platform, ticking)]  # type: ignore[arg-type]
    assert [story.count(EventKind.RUN_STOPPING) for story in stories] == [1, 1, 0]


def test_a_tick_is_skipped_while_a_run_is_active(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=1, policy="skip")
    for _ in range(3):
        platform.pass_time(10 * MINUTE)
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:10"]
    assert times(platform, ticking, RunStatus.SKIPPED) == ["00:20", "00:30"]
    finish(platform, runs(platform, ticking)[0])
    platform.pass_time(10 * MINUTE)
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:40"]


def test_stopping_leaves_the_runs_alone(platform: InMemoryPlatform) -> None:
    ticking = create(platform)
    platform.pass_time(10 * MINUTE)
    platform.ask(StopSchedule(id=ticking))
    platform.settle()
    stopped = found(platform, ticking)
    assert (stopped.status, stopped.next_at) == (ScheduleStatus.TERMINATED, None)
    platform.pass_time(DAY)
    be_down(platform, DAY)
    assert times(platform, ticking, RunStatus.RUNNING) == ["00:10"]
    with pytest.raises(Conflict, match="terminated") as caught:
        platform.ask(StopSchedule(id=ticking))
    assert caught.value.code == "ActionNotAllowed"


def test_a_waiting_tick_is_gone_when_its_schedule_is_stopped(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=1)
    platform.pass_time(10 * MINUTE)
    platform.pass_time(10 * MINUTE)
    platform.ask(StopSchedule(id=ticking))
    finish(platform, runs(platform, ticking)[0])
    assert times(platform, ticking) == ["00:10"]


def test_only_an_ended_schedule_can_be_deleted_and_its_runs_stay(platform: InMemoryPlatform) -> None:
    ticking = create(platform)
    platform.pass_time(10 * MINUTE)
    with pytest.raises(Conflict, match="stop it first") as caught:
        platform.ask(DeleteSchedule(id=ticking))
    assert caught.value.code == "ActionNotAllowed"
    platform.ask(StopSchedule(id=ticking))
    platform.ask(DeleteSchedule(id=ticking))
    platform.pass_time(HOUR)
    assert times(platform, ticking) == ["00:10"]
    for again in (StopSchedule(id=ticking), DeleteSchedule(id=ticking)):
        with pytest.raises(NotFound) as missing:
            platform.ask(again)
        assert missing.value.code == "ScheduleNotFound"
    assert create(platform) == "schedule-000002", "the name is free again, the number is not"


@pytest.mark.parametrize(
    ("first", "nightly_at"),
    [
        (datetime(2026, 3, 28, tzinfo=UTC), ["28 01:30", "29 01:00", "30 00:30"]),
        (datetime(2026, 10, 24, tzinfo=UTC), ["24 00:30", "25 00:30", "26 01:30"]),
    ],
)
def test_local_time_counts_through_the_night_the_clocks_change(
    platform: InMemoryPlatform, first: datetime, nightly_at: list[str]
) -> None:
    """Half past two in Berlin: on 29 March there is none, and on 25 October there are two."""
    platform.clock.advance((first - platform.clock.now()).total_seconds())
    nightly = create(platform, name="nightly", crontab="30 2 * * *", time_zone="Europe/Berlin")
    hourly = create(platform, name="hourly", crontab="CRON_TZ=Europe/Berlin 30 * * * *")
    for _ in range(12):
        platform.pass_time(6 * HOUR)
    due = [run.scheduled_at for run in runs(platform, nightly)]
    assert [at.strftime("%d %H:%M") for at in due if at is not None] == nightly_at
    assert len(runs(platform, hourly)) == 72, "an hour is an hour"


def timekeeper(platform: InMemoryPlatform, desk: PipelineDesk | None = None) -> Timekeeper:
    """Of another server on the same store."""
    return Timekeeper(store=platform.store, intake=platform.intake, clock=platform.clock, desk=desk or platform.desk)


class Interrupted(PipelineDesk):
    """A desk at which something else happens first, once."""

    def __init__(self, platform: InMemoryPlatform, meanwhile: Callable[[], object]) -> None:
        super().__init__(
            store=platform.store,
            intake=platform.intake,
            files=platform.files,
            limits=platform.limits,
            capabilities=platform.capabilities,
        )
        self._meanwhile = [meanwhile]

    def order(self, actor: Actor, request: RunRequest) -> CreateRun:
        if self._meanwhile:
            self._meanwhile.pop()()
        return super().order(actor, request)


def test_killed_between_tick_and_run(platform: InMemoryPlatform) -> None:
    """The tick has been dealt with, and nobody has looked at its run: the next server does, and starts no second."""
    ticking = create(platform)
    platform.clock.advance(10 * MINUTE)
    timekeeper(platform).resync()
    assert [run.status for run in runs(platform, ticking)] == [RunStatus.INITIATING]
    platform.restart()
    assert [run.status for run in runs(platform, ticking)] == [RunStatus.RUNNING]


def test_killed_before_the_tick_was_stored(platform: InMemoryPlatform) -> None:
    """All or nothing: what was not stored is still due."""
    ticking = create(platform)
    platform.clock.advance(10 * MINUTE)

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timekeeper(platform, Interrupted(platform, die)).resync()
    assert runs(platform, ticking) == []
    platform.restart()
    assert times(platform, ticking) == ["00:10"]


def test_two_servers_fire_once(platform: InMemoryPlatform) -> None:
    ticking = create(platform)
    other = timekeeper(platform)
    other.resync()
    platform.clock.advance(10 * MINUTE)
    slow = timekeeper(platform, Interrupted(platform, other.tick))
    slow.resync()
    assert times(platform, ticking) == ["00:10"], (
        "the slow one had decided on the same tick, and was told to look again"
    )
    platform.pass_time(10 * MINUTE)
    other.tick()
    slow.tick()
    assert times(platform, ticking) == ["00:10", "00:20"]


def test_stopped_while_its_tick_is_being_dealt_with(platform: InMemoryPlatform) -> None:
    ticking = create(platform)
    platform.clock.advance(10 * MINUTE)
    timekeeper(platform, Interrupted(platform, lambda: platform.ask(StopSchedule(id=ticking)))).resync()
    assert runs(platform, ticking) == []
    assert found(platform, ticking).status is ScheduleStatus.TERMINATED


def test_a_decision_about_another_version_is_refused(platform: InMemoryPlatform) -> None:
    ticking = create(platform)
    seen = found(platform, ticking).version
    platform.ask(FireSchedule(id=ticking, seen=seen, next_at=midnight() + timedelta(hours=1)), PLATFORM)
    with pytest.raises(Stale):
        platform.ask(FireSchedule(id=ticking, seen=seen, next_at=midnight()), PLATFORM)
    assert found(platform, ticking).next_at == midnight() + timedelta(hours=1)
    with pytest.raises(Denied):
        platform.ask(FireSchedule(id=ticking, seen=seen + 1))


FILES = """
name: with_files
entry_points:
  main: {command: ls, env: {PF_JOB_FLAVOUR: flavour1, PF_JOB_QUEUE_NAME: default-queue}}
fs_options: {main_fs: {name: data}}
"""


def test_a_pipeline_that_cannot_run_any_more_fails_its_schedule(platform: InMemoryPlatform) -> None:
    """And no other."""
    platform.ask(CreateFilesystem(name="data", url="local:///data"))
    platform.desk.create_pipeline(ROOT_ACTOR, PipelineRequest(text=FILES))
    broken = create(platform, name="broken", pipeline_id=PipelineId("ppl-000002"))
    sound = create(platform, name="sound")
    platform.ask(DeleteFilesystem(name="data"))
    platform.pass_time(10 * MINUTE)
    failed = found(platform, broken)
    assert (failed.status, failed.next_at) == (ScheduleStatus.FAILED, None)
    assert failed.message == "user[root] has no filesystem [data]"
    assert runs(platform, broken) == []
    platform.pass_time(10 * MINUTE)
    assert times(platform, sound) == ["00:10", "00:20"]
    platform.ask(DeleteSchedule(id=broken))


def test_a_user_who_is_gone_starts_nothing_any_more(platform: InMemoryPlatform) -> None:
    alice = platform.a_user("alice", "default-queue")
    platform.desk.create_pipeline(alice, PipelineRequest(text=PIPELINE))
    ticking = create(platform, alice, pipeline_id=PipelineId("ppl-000002"))
    platform.ask(DeleteUser(name=alice.name))
    platform.pass_time(10 * MINUTE)
    assert runs(platform, ticking) == []
    failed = found(platform, ticking)
    assert (failed.status, failed.message) == (
        ScheduleStatus.FAILED,
        "its owner, user[alice], does not exist any more",
    )


def test_what_cannot_be_read_now_is_tried_again(platform: InMemoryPlatform) -> None:
    ticking = create(platform)
    platform.clock.advance(10 * MINUTE)

    def fail() -> None:
        raise Unavailable("the disk does not answer")

    keeper = timekeeper(platform, Interrupted(platform, fail))
    keeper.resync()
    assert runs(platform, ticking) == []
    assert found(platform, ticking).status is ScheduleStatus.RUNNING
    keeper.tick()
    assert times(platform, ticking) == ["00:10"]


def test_a_run_that_is_gone_before_anybody_asked_still_makes_room(platform: InMemoryPlatform) -> None:
    ticking = create(platform, concurrency=1)
    platform.pass_time(10 * MINUTE)
    platform.clock.advance(10 * MINUTE)
    keeper = timekeeper(platform)
    keeper.resync()
    (run,) = runs(platform, ticking)
    with platform.store.write() as uow:
        uow.runs.delete(run.id)
    assert runs(platform, ticking) == []
    keeper.react([Event(kind=EventKind.RUN_FINISHED, subject=run.id, at=platform.clock.now())])
    assert times(platform, ticking) == ["00:20"]


def test_the_owner_is_the_one_whose_runs_they_are(platform: InMemoryPlatform) -> None:
    alice = platform.a_user("alice", "default-queue")
    platform.desk.create_pipeline(alice, PipelineRequest(text=PIPELINE))
    hers = PipelineId("ppl-000002")
    ticking = create(platform, owner="alice", pipeline_id=hers)
    platform.pass_time(10 * MINUTE)
    (run,) = runs(platform, ticking)
    assert (run.owner, run.status) == ("alice", RunStatus.RUNNING)
    with pytest.raises(Denied) as caught:
        create(platform, alice, name="other", owner="root")
    assert caught.value.code == "AccessDenied"
    with pytest.raises(Denied, match=r"user\[alice\] has no access to resource\[pipeline\]"):
        create(platform, owner="alice", name="other")
    create(platform, name="roots", pipeline_id=hers)
    mallory = platform.a_user("mallory")
    for attempt in (StopSchedule(id=ticking), DeleteSchedule(id=ticking)):
        with pytest.raises(Denied) as denied:
            platform.ask(attempt, mallory)
        assert denied.value.code == "AccessDenied"
    platform.ask(StopSchedule(id=ticking), alice)


def test_names_are_unique_for_an_owner(platform: InMemoryPlatform) -> None:
    alice = platform.a_user("alice", "default-queue")
    platform.desk.create_pipeline(alice, PipelineRequest(text=PIPELINE))
    create(platform)
    with pytest.raises(Duplicate) as caught:
        create(platform)
    assert caught.value.code == "DuplicatedName"
    create(platform, alice, pipeline_id=PipelineId("ppl-000002"))


LATER = midnight() + timedelta(hours=1)


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        ({"name": "a"}, r"name\[a\] for \[schedule\]", "InvalidNamePattern"),
        ({"name": "9lives"}, "regex", "InvalidNamePattern"),
        ({"name": "a-b"}, "regex", "InvalidNamePattern"),
        ({"name": "ab\n"}, "regex", "InvalidNamePattern"),
        ({"name": "a" * 51}, "regex", "InvalidNamePattern"),
        ({"description": "d" * 257}, r"Field\[desc\]", "InvalidArguments"),
        ({"crontab": "* * * *"}, r"Field\[crontab\].*4 fields", "InvalidArguments"),
        ({"crontab": "0 0 30 2 *"}, r"Field\[crontab\].*no calendar", "InvalidArguments"),
        ({"crontab": "CRON_TZ=Moon/Base @daily"}, r"Field\[crontab\].*Moon/Base", "InvalidArguments"),
        ({"time_zone": "Moon/Base"}, r"Field\[timeZone\].*Moon/Base", "InvalidArguments"),
        ({"starts_at": midnight()}, r"Field\[startTime\].*not after now", "InvalidArguments"),
        ({"ends_at": midnight() - timedelta(days=1)}, r"Field\[endTime\].*not after now", "InvalidArguments"),
        ({"starts_at": LATER, "ends_at": LATER}, r"Field\[endTime\].*not after startTime", "InvalidArguments"),
        ({"starts_at": datetime(9999, 12, 31, tzinfo=UTC)}, r"Field\[crontab\].*too far", "InvalidArguments"),
        ({"concurrency": -1}, r"Field\[concurrency\]", "InvalidArguments"),
        ({"concurrency": 2**31}, r"Field\[concurrency\]", "InvalidArguments"),
        ({"expire_s": -1}, r"Field\[expireInterval\]", "InvalidArguments"),
        ({"policy": "queue"}, r"Field\[concurrencyPolicy\].*suspend, replace, skip", "InvalidArguments"),
    ],
)
def test_what_is_wrong_is_refused_and_leaves_nothing(
    platform: InMemoryPlatform, options: dict[str, object], said: str, code: str
) -> None:
    before = platform.feed.last_seq()
    with pytest.raises(Invalid, match=said) as caught:
        create(platform, **options)
    assert caught.value.code == code
    assert platform.feed.last_seq() == before


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"pipeline_id": PipelineId("ppl-000009")}, "PipelineNotFound"),
        ({"version_id": VersionId("2")}, "PipelineNotFound"),
        ({"owner": "nobody"}, "UserNotExist"),
    ],
)
def test_what_it_needs_must_be_there(platform: InMemoryPlatform, options: dict[str, object], code: str) -> None:
    with pytest.raises(NotFound) as caught:
        create(platform, **options)
    assert caught.value.code == code


def test_what_happens_is_told(platform: InMemoryPlatform) -> None:
    ticking = create(platform, ends_at=midnight() + timedelta(minutes=10))
    platform.pass_time(10 * MINUTE)
    platform.ask(DeleteSchedule(id=ticking))
    with platform.store.read() as view:
        events = view.events.of_subject(ticking, 100)
    assert [(event.kind, event.owner) for event in events] == [
        (EventKind.SCHEDULE_CREATED, "root"),
        (EventKind.SCHEDULE_FIRED, "root"),
        (EventKind.SCHEDULE_ENDED, "root"),
        (EventKind.SCHEDULE_DELETED, "root"),
    ]
    assert events[1].data["started"] == ["run-000001"]
    assert events[2].data["status"] == "success"
