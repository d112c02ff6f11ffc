"""The ticks of a cron rule are exactly those that a clock watcher would write down, minute by minute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.crontab import Crontab, newest_until, next_after, parse
from paddleflow.domain.errors import Invalid

MINUTE = timedelta(minutes=1)
WINDOW = timedelta(hours=36)
LONGEST_JUMP = timedelta(hours=25)

CHANGES = [
    # Somewhere clocks change about this time.
    ("Europe/Berlin", "2026-03-29 01:00"),
    ("Europe/Berlin", "2026-10-25 01:00"),
    ("America/New_York", "2026-03-08 07:00"),
    ("America/New_York", "2026-11-01 06:00"),
    ("Australia/Lord_Howe", "2026-10-03 15:30"),
    ("Australia/Lord_Howe", "2026-04-04 15:00"),
    ("Antarctica/Troll", "2026-03-29 01:00"),
    ("Antarctica/Troll", "2026-10-25 01:00"),
    ("America/St_Johns", "2010-11-07 02:31"),
    ("America/St_Johns", "2010-03-14 03:31"),
    ("America/Sao_Paulo", "2017-10-15 03:00"),
    ("America/Sao_Paulo", "2018-02-18 02:00"),
    ("America/Havana", "2026-11-01 05:00"),
    ("Pacific/Apia", "2011-12-30 10:00"),
    ("Asia/Kathmandu", "2026-12-31 18:15"),
    ("UTC", "2028-02-28 23:00"),
]


@dataclass(frozen=True)
class Wanted:
    """A rule as text, and what each field allows, arrived at without reading the text."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    open_day: bool
    open_weekday: bool

    def allows(self, local: datetime) -> bool:
        in_month = local.day in self.days
        in_week = local.isoweekday() % 7 in self.weekdays
        if self.open_day and self.open_weekday:
            day = True
        elif self.open_day:
            day = in_week
        elif self.open_weekday:
            day = in_month
        else:
            day = in_month or in_week
        return local.minute in self.minutes and local.hour in self.hours and local.month in self.months and day


@st.composite
def a_field(draw: st.DrawFn, low: int, high: int, stars: int = 1) -> tuple[str, frozenset[int]]:
    kind = draw(st.sampled_from(["star"] * stars + ["list", "range", "step"]))
    if kind == "star":
        return draw(st.sampled_from(["*", "?"])), frozenset(range(low, high + 1))
    if kind == "list":
        values = draw(st.lists(st.integers(low, high), min_size=1, max_size=4))
        return ",".join(str(value) for value in values), frozenset(values)
    first = draw(st.integers(low, high))
    if kind == "range":
        last = draw(st.integers(first, high))
        return f"{first}-{last}", frozenset(range(first, last + 1))
    step = draw(st.integers(2, 20))
    return f"{first}/{step}", frozenset(range(first, high + 1, step))


@st.composite
def rules(draw: st.DrawFn) -> Wanted:
    """Often true on any given day, and in the hours in which clocks change, so that a window holds some ticks."""
    early = st.sets(st.integers(0, 3), min_size=1).map(lambda hours: (",".join(map(str, hours)), frozenset(hours)))
    fields = [
        draw(a_field(0, 59)),
        draw(st.one_of(a_field(0, 23, stars=2), early)),
        draw(a_field(1, 31, stars=4)),
        draw(a_field(1, 12, stars=12)),
        draw(a_field(0, 6, stars=4)),
    ]
    texts, sets = zip(*fields, strict=True)
    return Wanted(" ".join(texts), *sets, open_day=texts[2] in "*?", open_weekday=texts[4] in "*?")


def watched(wanted: Wanted, zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Stand before the clock. For all hours, write down every minute it shows that is allowed. Otherwise, whenever the
    clock gets further than ever before, see whether one of the minutes it passed is allowed."""
    furthest = (begin - LONGEST_JUMP).astimezone(zone).replace(tzinfo=None, fold=0)
    at = begin - LONGEST_JUMP
    while at <= end:
        local = at.astimezone(zone).replace(tzinfo=None, fold=0)
        if len(wanted.hours) == 24:
            fires = wanted.allows(local)
        else:
            fires = False
            while furthest < local:
                furthest += MINUTE
                fires = fires or wanted.allows(furthest)
        if fires and at > begin:
            yield at
        at += MINUTE


def computed(crontab: Crontab, begin: datetime, end: datetime) -> Iterator[datetime]:
    tick = next_after(crontab, begin)
    while tick is not None and tick <= end:
        yield tick
        tick = next_after(crontab, tick)


places = st.tuples(st.sampled_from(CHANGES), st.integers(-30 * 60, 6 * 60))


def at_place(place: tuple[tuple[str, str], int]) -> tuple[str, datetime]:
    (zone, change), minutes = place
    return zone, datetime.fromisoformat(change).replace(tzinfo=UTC) + minutes * MINUTE


@settings(max_examples=120)
@given(rules(), places)
def test_no_tick_is_missed_and_none_invented(wanted: Wanted, place: tuple[tuple[str, str], int]) -> None:
    zone, begin = at_place(place)
    found = list(computed(parse(wanted.text, zone), begin, begin + WINDOW))
    assert found == list(watched(wanted, ZoneInfo(zone), begin, begin + WINDOW))


@settings(max_examples=100)
@given(rules(), places, st.integers(0, 36 * 3600))
def test_the_next_tick_does_not_depend_on_where_one_begins(
    wanted: Wanted, place: tuple[tuple[str, str], int], seconds: int
) -> None:
    """From any second between two ticks, the next one is the same."""
    zone, begin = at_place(place)
    crontab = parse(wanted.text, zone)
    later = begin + timedelta(seconds=seconds)
    expected = next((tick for tick in computed(crontab, begin, later + WINDOW) if tick > later), None)
    following = next_after(crontab, later)
    assert following is None or following > later
    if expected is not None or (following is not None and following <= later + WINDOW):
        assert following == expected


@settings(max_examples=100)
@given(st.one_of(rules().map(lambda wanted: wanted.text), st.integers(60, 9000).map("@every {}s".format)), places)
def test_the_newest_tick_is_the_last_of_all(text: str, place: tuple[tuple[str, str], int]) -> None:
    zone, begin = at_place(place)
    crontab, end = parse(text, zone), begin + WINDOW
    ticks = list(computed(crontab, begin, end))
    if ticks:
        assert newest_until(crontab, ticks[0], end) == ticks[-1]
        middle = ticks[len(ticks) // 2]
        assert newest_until(crontab, ticks[0], middle) == middle


@settings(max_examples=300)
@given(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet="0123456789*?/-, @everydailyhmsMONTZ=", max_size=60),
        st.lists(st.text(alphabet="0123456789*?/-,MONJAN", max_size=8), min_size=5, max_size=5).map(" ".join),
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Invalid):
        crontab = parse(text)
        start = datetime(2026, 1, 1, tzinfo=UTC)
        tick = next_after(crontab, start)
        assert tick is None or tick > start
