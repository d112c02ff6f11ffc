"""Cron rules: reading them, and the arithmetic of their ticks.

A rule is written as five fields (minute, hour, day of month, month, day of week), as a word (``@daily``) or as a period
(``@every 1h30m``); ``CRON_TZ=Europe/Berlin `` before it chooses the zone in which the fields are read. The language is
that of robfig/cron, which users of the product know, and Sunday may be written 7 as well as 0.

Clocks are set forward and back, so which instant a local time means needs a rule, and it is this one:

* A rule that names hours (``30 2 * * *``) fires once for each local time that it names, at the first instant at which
  the local clock has reached it. A time that the clock jumps over fires when it has jumped; a time that it shows twice
  fires the first time. Times that fall on one instant this way are one tick.
* A rule for all 24 hours (``*/15 * * * *``) means the hours that pass: it fires whenever the local clock shows such a
  minute, so an hour that comes twice has its ticks twice, and one that is left out has none.

Nothing here knows the present: a tick is computed from a moment one hands in, and is given in UTC. The time zone
database is the one thing read from outside, as the table of facts it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from paddleflow.domain.errors import Invalid, invalid_field

_LIMIT = 256
"""Characters of a rule."""
_SEARCH = timedelta(days=8 * 366 + 1)
"""How far ahead a tick is looked for: between two 29 Februaries lie up to eight years."""
_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)

_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST_S = 2**63 // 10**9
"""The longest period that the notation can express where it comes from: 64 bits of nanoseconds, some 292 years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What each field allows. Days of the week count from Sunday, 0."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """The day of the month is left open; so is ``any_weekday`` for the other. When both are given, either will do."""
    any_weekday: bool

    @property
    def is_hourly(self) -> bool:
        return len(self.hours) == 24

    def has_day(self, day: date) -> bool:
        in_month = day.day in self.days
        in_week = day.isoweekday() % 7 in self.weekdays
        return (in_month and in_week) if self.any_day or self.any_weekday else (in_month or in_week)


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """A tick each ``period`` after the one before, whatever the clocks on the wall do."""

    period: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Crontab:
    rule: Fields | Every
    zone: tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One of the five fields."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Three letters each, from ``low`` on."""


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_PLACES = (
    _Place(name="minute", low=0, high=59),
    _Place(name="hour", low=0, high=23),
    _Place(name="day of month", low=1, high=31),
    _Place(name="month", low=1, high=12, names=_MONTHS),
    _Place(name="day of week", low=0, high=7, names=_WEEKDAYS),
)


def parse(text: str, time_zone: str = "UTC") -> Crontab:
    """Read a rule; ``time_zone`` counts unless the rule itself names one. Raises Invalid, naming the field at fault."""
    if len(text) > _LIMIT:
        raise _wrong(f"it has {len(text)} characters, the limit is {_LIMIT}")
    zone = find_zone(time_zone)
    words = text.split()
    prefix, equals, name = words[0].partition("=") if words else ("", "", "")
    if equals and prefix in ("CRON_TZ", "TZ"):
        zone, words = find_zone(name, field="crontab"), words[1:]
    return Crontab(rule=_parse_rule(words), zone=zone)


def find_zone(name: str, *, field: str = "timeZone") -> tzinfo:
    """UTC is known everywhere, the others where the system keeps its time zone database."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # Nothing by that name, not even the shape of one (".."), or a directory of zones ("Europe").
        raise invalid_field(
            field, f"[{name[:80]}] is not a time zone that is known here, such as UTC or Europe/Berlin"
        ) from None


def next_after(crontab: Crontab, moment: datetime) -> datetime | None:
    """The first tick that is later than ``moment``, in UTC; None when there is none (the 30th of February)."""
    moment = moment.astimezone(UTC)
    try:
        match crontab.rule:
            case Every(period=period):
                return (moment + period).replace(microsecond=0)
            case Fields() as rule if rule.is_hourly:
                return _next_shown(rule, crontab.zone, moment)
            case Fields() as rule:
                return _next_reached(rule, crontab.zone, moment)
    except OverflowError:
        return None  # beyond the year 9999 there is no calendar


def newest_until(crontab: Crontab, tick: datetime, until: datetime) -> datetime:
    """The last tick that is not later than ``until``, where ``tick`` is one such. Does not walk: a year is as quick as
    an hour."""
    if isinstance(crontab.rule, Every):
        return tick + (until - tick) // crontab.rule.period * crontab.rule.period
    before, not_before = tick - _SECOND, until
    while not_before - before > _SECOND:
        middle = before + (not_before - before) / 2
        following = next_after(crontab, middle)
        if following is not None and following <= until:
            before = middle
        else:
            not_before = middle
    newest = next_after(crontab, before)
    # A tick computed by an older time zone database may be none by the present one; it is still where we begin.
    return tick if newest is None or newest > until else max(tick, newest)


def _parse_rule(parts: list[str]) -> Fields | Every:
    if parts[:1] == ["@every"] and len(parts) == 2:
        return Every(period=_parse_period(parts[1]))
    if parts and parts[0].startswith("@"):
        word = " ".join(parts)
        if word not in _WORDS:
            raise _wrong(f"[{word[:80]}] is not one of {', '.join(_WORDS)} and @every 1h30m")
        parts = _WORDS[word].split()
    if len(parts) != len(_PLACES):
        named = ", ".join(place.name for place in _PLACES)
        raise _wrong(f"it has {len(parts)} fields and needs five ({named}), or a word such as @daily")
    minutes, hours, days, months, weekdays = (
        _parse_field(place, part) for place, part in zip(_PLACES, parts, strict=True)
    )
    return Fields(
        minutes=tuple(sorted(minutes[0])),
        hours=tuple(sorted(hours[0])),
        days=days[0],
        months=months[0],
        weekdays=frozenset(day % 7 for day in weekdays[0]),
        any_day=days[1],
        any_weekday=weekdays[1],
    )


def _parse_field(place: _Place, text: str) -> tuple[frozenset[int], bool]:
    """The values allowed, and whether the field is left open (``*``)."""
    values: set[int] = set()
    is_open = False
    for part in text.split(","):
        spread, slash, stride = part.partition("/")
        step = _parse_number(place, stride, part) if slash else 1
        if step == 0:
            raise _wrong(f"{place.name} [{part[:40]}] has a step of 0; the smallest is 1")
        low, high, any_value = _parse_range(place, spread, part, to_the_end=bool(slash))
        values.update(range(low, high + 1, step))
        is_open = is_open or (any_value and step == 1)
    return frozenset(values), is_open


def _parse_range(place: _Place, text: str, part: str, *, to_the_end: bool) -> tuple[int, int, bool]:
    """``*``, ``5`` or ``MON-FRI``; a single value with a step goes on to the end of the field."""
    if text in ("*", "?"):
        # Sunday is both 0 and 7: counting it once keeps */2 regular.
        return place.low, 6 if place.high == 7 else place.high, True
    first, dash, last = text.partition("-")
    low = _parse_value(place, first, part)
    if not dash:
        return low, max(low, 6 if place.high == 7 else place.high) if to_the_end else low, False
    high = _parse_value(place, last, part)
    if place.high == 7 and high == 0 < low:
        high = 7  # FRI-SUN
    if high < low:
        raise _wrong(f"{place.name} [{part[:40]}] ends before it begins")
    return low, high, False


def _parse_value(place: _Place, text: str, part: str) -> int:
    if text.upper() in place.names:
        return place.names.index(text.upper()) + place.low
    value = _parse_number(place, text, part)
    if not place.low <= value <= place.high:
        raise _wrong(f"{place.name} [{part[:40]}] is outside {place.low} to {place.high}")
    return value


def _parse_number(place: _Place, text: str, part: str) -> int:
    if not (text.isascii() and text.isdigit()):
        names = f", {place.names[0]} to {place.names[-1]}" if place.names else ""
        raise _wrong(
            f"{place.name} [{part[:40]}] is not understood; it takes numbers{names} and *, with - for ranges, / for "
            "steps and , for lists"
        )
    return int(text)


def _parse_period(text: str) -> timedelta:
    """As Go writes durations: ``1h30m10s``."""
    amounts = _AMOUNT.findall(text)
    if not amounts or "".join(number + unit for number, unit in amounts) != text:
        raise _wrong(f"@every [{text[:40]}] is not a duration such as 90s, 15m or 1h30m")
    seconds = sum((Decimal(number) * _UNITS[unit] for number, unit in amounts), Decimal(0))
    if not 1 <= seconds <= _LONGEST_S or seconds != int(seconds):
        raise _wrong(f"@every [{text[:40]}] must be whole seconds, from one up to {_LONGEST_S // 3600}h")
    return timedelta(seconds=int(seconds))


def _wrong(problem: str) -> Invalid:
    return invalid_field("crontab", problem)


def _next_reached(rule: Fields, zone: tzinfo, moment: datetime) -> datetime | None:
    """For rules that name hours. Local times up to the present one have been reached by now; of the later ones, those
    in an hour that comes a second time have been too."""
    reached = (_first_reached(local, zone) for local in _local_times(rule, _wall(moment, zone)))
    return next((at for at in reached if at > moment), None)


def _next_shown(rule: Fields, zone: tzinfo, moment: datetime) -> datetime | None:
    """For rules of all hours. If the clock is going to be set back within a day, local times that lie behind come
    again, so the search begins there."""
    setback = max(_offset(moment, zone) - _offset(moment + _DAY, zone), timedelta(0))
    wall = _wall(moment, zone)
    best: datetime | None = None
    for local in _local_times(rule, wall - setback):
        later = [at for at in _all_shown(local, zone) if at > moment]
        if later:
            best = min(later) if best is None else min(best, *later)
        if best is not None and local > wall:
            break  # every further local time is first shown later than this one
    return best


def _local_times(rule: Fields, after: datetime) -> Iterator[datetime]:
    """Local times, without a zone, that the rule allows, in order; for as long as it is worth looking."""
    first = after.replace(second=0, microsecond=0) + _MINUTE
    day, end = first.date(), (first + _SEARCH).date()
    while day <= end:
        if day.month not in rule.months:
            day = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
            continue
        if rule.has_day(day):
            begin = (first.hour, first.minute) if day == first.date() else (0, 0)
            for hour in rule.hours[bisect_left(rule.hours, begin[0]) :]:
                for minute in rule.minutes:
                    if (hour, minute) >= begin:
                        yield datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001  a time on the wall
        day += _DAY


def _first_reached(local: datetime, zone: tzinfo) -> datetime:
    """The first instant at which the clock of the zone shows this local time or a later one."""
    at = local.replace(tzinfo=zone).astimezone(UTC)
    if _wall(at, zone) == local:
        return at
    # The clock jumps over it. With the offset from after the jump it reads as an instant before the jump, and the other
    # way round, so the jump lies between the two.
    before, not_before = local.replace(tzinfo=zone, fold=1).astimezone(UTC), at
    while not_before - before > _SECOND:
        middle = before + (not_before - before) // _SECOND // 2 * _SECOND
        if _wall(middle, zone) >= local:
            not_before = middle
        else:
            before = middle
    return not_before


def _all_shown(local: datetime, zone: tzinfo) -> list[datetime]:
    """The instants at which the clock of the zone shows this local time: one, or two, or none."""
    both = {local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return [at for at in both if _wall(at, zone) == local]


def _wall(at: datetime, zone: tzinfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(at: datetime, zone: tzinfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)
