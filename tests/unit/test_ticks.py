"""What is due of a schedule: every policy, late or in time, as tables; and what holds whatever happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.crontab import next_after, parse
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import PipelineId, RunId, ScheduleId, UserName, VersionId
from paddleflow.domain.runs import Run, RunStatus, Stop
from paddleflow.domain.schedules import ConcurrencyPolicy, Schedule
from paddleflow.domain.ticks import MOST_AT_ONCE, Ticks, due, first_tick

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)
SUSPEND, REPLACE, SKIP = ConcurrencyPolicy.SUSPEND, ConcurrencyPolicy.REPLACE, ConcurrencyPolicy.SKIP


def at(minutes: float) -> datetime:
    """So many minutes after nine."""
    return NINE + timedelta(minutes=minutes)


def minutes(moments: Sequence[datetime]) -> list[float]:
    return [(moment - NINE).total_seconds() / 60 for moment in moments]


def a_schedule(crontab: str = "*/10 * * * *", next_at: datetime | None = NINE, **more: object) -> Schedule:
    return Schedule(
        id=ScheduleId("schedule-000001"),
        name="nightly",
        owner=UserName("alice"),
        pipeline_id=PipelineId("ppl-000001"),
        version_id=VersionId("1"),
        crontab=crontab,
        next_at=next_at,
        created_at=NINE - timedelta(days=1),
        updated_at=NINE - timedelta(days=1),
        **more,  # type: ignore[arg-type]
    )


def runs(*stops: Stop) -> list[Run]:
    """Active runs, the oldest first; each as it was told to stop."""
    return [
        Run(
            id=RunId(f"run-{number}"),
            name="nightly",
            owner=UserName("alice"),
            source="",
            text="",
            plan="",
            status=RunStatus.RUNNING if stop is Stop.NO else RunStatus.TERMINATING,
            stop=stop,
            created_at=NINE,
            updated_at=NINE,
        )
        for number, stop in enumerate(stops, start=1)
    ]


def active(count: int) -> list[Run]:
    return runs(*[Stop.NO] * count)


def skipped(ticks: Ticks) -> list[float]:
    return minutes([tick.at for tick in ticks.skip])


def test_before_its_time_nothing_happens() -> None:
    schedule = a_schedule()
    ticks = due(schedule, [], at(-1))
    assert ticks == Ticks(next_at=NINE, look_at=NINE)
    assert not ticks.move(schedule)


def test_in_time_one_run_starts_and_the_next_tick_follows() -> None:
    schedule = a_schedule()
    ticks = due(schedule, [], at(0.02))
    assert ticks == Ticks(start=(NINE,), next_at=at(10), look_at=at(10))
    assert ticks.move(schedule)


@pytest.mark.parametrize(
    ("options", "running", "started", "passed", "stopped", "next_minute", "waits"),
    [
        # Half an hour late: ticks at 0, 10, 20 and 30 are due.
        ({}, 0, [0, 10, 20, 30], [], [], 40, False),
        ({}, 7, [0, 10, 20, 30], [], [], 40, False),
        ({"catch_up": False}, 0, [30], [0, 10, 20], [], 40, False),
        ({"expire_s": 900}, 0, [20, 30], [0, 10], [], 40, False),
        ({"expire_s": 900, "catch_up": False}, 0, [30], [0, 10, 20], [], 40, False),
        ({"concurrency": 2}, 0, [0, 10], [], [], 20, True),
        ({"concurrency": 2}, 1, [0], [], [], 10, True),
        ({"concurrency": 2}, 2, [], [], [], 0, True),
        ({"concurrency": 2}, 3, [], [], [], 0, True),
        ({"concurrency": 4}, 0, [0, 10, 20, 30], [], [], 40, False),
        ({"concurrency": 1, "catch_up": False}, 1, [], [0, 10, 20], [], 30, True),
        ({"concurrency": 1, "expire_s": 900}, 1, [], [0, 10], [], 20, True),
        ({"concurrency": 2, "policy": SKIP}, 1, [0], [10, 20, 30], [], 40, False),
        ({"concurrency": 2, "policy": SKIP}, 2, [], [0, 10, 20, 30], [], 40, False),
        ({"concurrency": 4, "policy": SKIP}, 0, [0, 10, 20, 30], [], [], 40, False),
        ({"concurrency": 1, "policy": SKIP, "catch_up": False}, 0, [30], [0, 10, 20], [], 40, False),
        ({"concurrency": 1, "policy": REPLACE}, 0, [30], [0, 10, 20], [], 40, False),
        ({"concurrency": 1, "policy": REPLACE}, 1, [30], [0, 10, 20], ["run-1"], 40, False),
        ({"concurrency": 2, "policy": REPLACE}, 2, [20, 30], [0, 10], ["run-1", "run-2"], 40, False),
        ({"concurrency": 5, "policy": REPLACE}, 3, [0, 10, 20, 30], [], ["run-1", "run-2"], 40, False),
        ({"concurrency": 9, "policy": REPLACE}, 3, [0, 10, 20, 30], [], [], 40, False),
        ({"concurrency": 2, "policy": REPLACE, "catch_up": False}, 2, [30], [0, 10, 20], ["run-1"], 40, False),
    ],
)
def test_half_an_hour_late(
    options: dict[str, object],
    running: int,
    started: list[float],
    passed: list[float],
    stopped: list[str],
    next_minute: float,
    waits: bool,
) -> None:
    ticks = due(a_schedule(**options), active(running), at(30.5))
    assert minutes(ticks.start) == started
    assert skipped(ticks) == passed
    assert list(ticks.stop) == stopped
    assert ticks.next_at == at(next_minute)
    assert ticks.waits is waits
    assert not ticks.ended


def test_every_reason_is_said() -> None:
    late = at(30.5)
    reasons = {
        policy: due(a_schedule(concurrency=1, policy=policy), active(1), late).skip[0].reason
        for policy in (SKIP, REPLACE)
    }
    assert reasons == {
        SKIP: "as many runs of the schedule as may be, 1, had not ended",
        REPLACE: "replaced by a later tick",
    }
    assert due(a_schedule(expire_s=60), [], late).skip[0].reason == "beyond expire interval: not started within 60 s"
    assert "does not catch up" in due(a_schedule(catch_up=False), [], late).skip[0].reason


def test_a_run_that_is_being_stopped_has_made_its_room_for_a_replacement() -> None:
    going = runs(Stop.GENTLE, Stop.NO)
    ticks = due(a_schedule(concurrency=1, policy=REPLACE), going, at(0))
    assert (ticks.start, ticks.stop) == ((NINE,), ("run-2",))
    ticks = due(a_schedule(concurrency=2, policy=REPLACE), going, at(0))
    assert (ticks.start, ticks.stop) == ((NINE,), ())


def test_a_run_that_is_being_stopped_still_takes_a_place_otherwise() -> None:
    going = runs(Stop.FORCE)
    assert due(a_schedule(concurrency=1), going, at(0)).waits
    assert due(a_schedule(concurrency=1, policy=SKIP), going, at(0)).skip


def test_a_tick_is_too_late_only_after_its_interval() -> None:
    schedule = a_schedule(expire_s=60)
    assert due(schedule, [], at(1)).start == (NINE,)
    assert due(schedule, [], at(1) + timedelta(microseconds=1)).start == ()


def test_a_waiting_tick_is_looked_at_when_time_alone_changes_it() -> None:
    late = at(0.5)
    assert due(a_schedule(concurrency=1), active(1), late).look_at is None
    expiring = due(a_schedule(concurrency=1, expire_s=60), active(1), late)
    assert expiring.look_at == at(1) + timedelta(microseconds=1)
    assert due(a_schedule(concurrency=1, catch_up=False), active(1), late).look_at == at(10)
    after_the_end = a_schedule(concurrency=1, catch_up=False, ends_at=at(5))
    assert due(after_the_end, active(1), at(20)).look_at is None


def test_a_clock_that_is_set_back_fires_nothing_again() -> None:
    schedule = a_schedule()
    ticks = due(schedule, [], at(0))
    moved = replace(schedule, next_at=ticks.next_at)
    for now in (at(0), at(-60), at(9.99)):
        again = due(moved, [], now)
        assert (again.start, again.next_at, again.move(moved)) == ((), at(10), False)


def test_the_end() -> None:
    schedule = a_schedule(ends_at=at(15))
    last = due(schedule, [], at(10))
    assert (minutes(last.start), last.next_at, last.look_at, last.ended) == ([0, 10], None, at(15), False)
    waiting = replace(schedule, next_at=None)
    assert not due(waiting, [], at(14)).move(waiting)
    assert due(waiting, [], at(15)).ended


def test_a_tick_at_the_very_end_counts_and_none_after_it() -> None:
    ticks = due(a_schedule(ends_at=at(10)), [], at(500))
    assert (minutes(ticks.start), ticks.next_at, ticks.ended) == ([0, 10], None, True)


def test_a_tick_that_waits_outlives_the_end() -> None:
    schedule = a_schedule(concurrency=1, ends_at=at(5))
    ticks = due(schedule, active(1), at(60))
    assert (ticks.next_at, ticks.waits, ticks.ended) == (NINE, True, False)
    ticks = due(schedule, [], at(61))
    assert (ticks.start, ticks.next_at, ticks.ended) == ((NINE,), None, True)


YEAR = timedelta(days=365)


def test_a_year_late_comes_in_portions() -> None:
    schedule = a_schedule("* * * * *")
    now, started = NINE + YEAR, []
    for _ in range(3):
        ticks = due(schedule, [], now)
        assert len(ticks.start) == MOST_AT_ONCE and not ticks.skip
        assert ticks.look_at == now, "more is due at once"
        started += ticks.start
        schedule = replace(schedule, next_at=ticks.next_at)
    assert minutes(started) == list(range(3 * MOST_AT_ONCE))


@pytest.mark.parametrize(
    ("options", "running", "started"),
    [
        ({"catch_up": False}, 0, 1),
        ({"expire_s": 150}, 0, 3),
        ({"concurrency": 2, "policy": REPLACE}, 0, 2),
        ({"concurrency": 2, "policy": SKIP}, 2, 0),
        ({"concurrency": 2, "policy": SKIP, "catch_up": False}, 2, 0),
    ],
)
def test_a_year_of_unwanted_ticks_is_one_record(options: dict[str, object], running: int, started: int) -> None:
    now = NINE + YEAR + timedelta(seconds=5)
    ticks = due(a_schedule("* * * * *", **options), active(running), now)
    assert len(ticks.start) == started
    assert ticks.start == tuple(NINE + YEAR - timedelta(minutes=back) for back in reversed(range(started)))
    assert ticks.next_at == NINE + YEAR + timedelta(minutes=1)
    assert ticks.skip[0].at == NINE
    last = NINE + YEAR - timedelta(minutes=started if options.get("policy") is not SKIP else 0)
    if "catch_up" in options and options.get("policy") is SKIP:
        assert len(ticks.skip) == 2
        last -= timedelta(minutes=1)
    else:
        assert len(ticks.skip) == 1
    assert ticks.skip[0].reason.endswith(f"(stands for 1000 or more ticks up to {last.isoformat()})")


def test_many_are_counted() -> None:
    ticks = due(a_schedule("* * * * *", catch_up=False), [], at(150))
    assert [tick.reason.partition(" (")[2] for tick in ticks.skip] == [
        f"stands for 150 ticks up to {at(149).isoformat()})"
    ]


def test_periods_keep_their_beat_however_late() -> None:
    schedule = a_schedule("@every 90s")
    ticks = due(schedule, [], at(4))
    assert (minutes(ticks.start), ticks.next_at) == ([0, 1.5, 3], at(4.5))
    ticks = due(a_schedule("@every 90s", catch_up=False), [], NINE + YEAR)
    assert ticks.next_at is not None and (ticks.next_at - NINE) % timedelta(seconds=90) == timedelta(0)
    assert ticks.start == (ticks.next_at - timedelta(seconds=90),)


def test_local_time_counts() -> None:
    """Half past two in Berlin, over the night without a half past two."""
    begin = datetime(2026, 3, 28, 1, 30, tzinfo=UTC)
    schedule = a_schedule("30 2 * * *", next_at=begin, time_zone="Europe/Berlin")
    ticks = due(schedule, [], begin + timedelta(days=2))
    assert [tick.isoformat() for tick in ticks.start] == [
        "2026-03-28T01:30:00+00:00",
        "2026-03-29T01:00:00+00:00",
        "2026-03-30T00:30:00+00:00",
    ]


def test_a_rule_that_is_not_understood_any_more_is_an_error() -> None:
    with pytest.raises(Invalid, match="time zone"):
        due(a_schedule(time_zone="Gone/Away"), [], NINE)


@pytest.mark.parametrize(
    ("crontab", "starts_at", "expected"),
    [
        ("*/10 * * * *", None, at(10)),
        ("*/10 * * * *", at(20), at(20)),
        ("*/10 * * * *", at(20.5), at(30)),
        ("@every 1h", None, at(60)),
        ("@every 1h", at(20), at(80)),
        ("0 0 30 2 *", None, None),
    ],
)
def test_the_first_tick(crontab: str, starts_at: datetime | None, expected: datetime | None) -> None:
    assert first_tick(parse(crontab), now=NINE, starts_at=starts_at) == expected


looks = st.lists(st.tuples(st.integers(-40, 400), st.booleans()), min_size=1, max_size=25)


@settings(max_examples=200)
@given(
    looks,
    st.sampled_from(["*/10 * * * *", "@every 7m", "0 9-12 * * *"]),
    st.sampled_from([0, 1, 2, 3]),
    st.sampled_from(list(ConcurrencyPolicy)),
    st.sampled_from([0, 300, 3600]),
    st.booleans(),
    st.sampled_from([None, at(200)]),
)
def test_whatever_happens_each_tick_is_dealt_with_once(
    history: list[tuple[int, bool]],
    crontab: str,
    concurrency: int,
    policy: ConcurrencyPolicy,
    expire_s: int,
    catch_up: bool,
    ends_at: datetime | None,
) -> None:
    """The clock moves, also backwards; runs end or do not. What was started and skipped, in order, is the line of
    ticks without a hole, and never more runs are active than may be."""
    schedule = a_schedule(
        crontab, concurrency=concurrency, policy=policy, expire_s=expire_s, catch_up=catch_up, ends_at=ends_at
    )
    living: list[Run] = []
    dealt: list[datetime] = []
    now = NINE
    for forward, someone_ends in history:
        now += timedelta(minutes=forward)
        if someone_ends and living:
            living = [run for run in living[1:] if run.stop is Stop.NO]
        ticks = due(schedule, living, now)
        assert all(tick <= now for tick in ticks.start)
        dealt += sorted([*ticks.start, *(tick.at for tick in ticks.skip)])
        living = [replace(run, stop=Stop.GENTLE) if run.id in ticks.stop else run for run in living]
        living += [replace(active(1)[0], id=RunId(f"run-{tick.isoformat()}")) for tick in ticks.start]
        if concurrency:
            assert len([run for run in living if run.stop is Stop.NO]) <= concurrency
        schedule = replace(schedule, next_at=ticks.next_at)
        again = due(schedule, living, now)
        assert not again.start and not again.skip and not again.stop and again.next_at == ticks.next_at
        assert again.ended or again.look_at is None or again.look_at > now, "it would be looked at without end"
    expected, tick = [], NINE
    for _ in dealt:
        expected.append(tick)
        following = next_after(parse(crontab), tick)
        assert following is not None
        tick = following
    assert dealt == expected
    left = schedule.next_at
    assert left == tick or (left is None and ends_at is not None and tick > ends_at)
