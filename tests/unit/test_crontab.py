"""Reading cron rules, and their ticks against tables made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from paddleflow.domain.crontab import Every, Fields, newest_until, next_after, parse
from paddleflow.domain.errors import Invalid


def fields(text: str) -> Fields:
    rule = parse(text).rule
    assert isinstance(rule, Fields)
    return rule


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ticks(rule: str, zone: str, after: str, count: int) -> list[str]:
    """The next ``count`` ticks after a UTC time, as the clock of the zone shows them, with its offset."""
    crontab = parse(rule, zone)
    moment, shown = utc(after), []
    for _ in range(count):
        following = next_after(crontab, moment)
        assert following is not None and following > moment and following.tzinfo is UTC
        shown.append(following.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M %z"))
        moment = following
    return shown


ALL = tuple(range(60))


@pytest.mark.parametrize(
    ("text", "place", "values"),
    [
        ("* * * * *", "minutes", ALL),
        ("? * * * *", "minutes", ALL),
        ("5 * * * *", "minutes", (5,)),
        ("5,1,5 * * * *", "minutes", (1, 5)),
        ("10-13 * * * *", "minutes", (10, 11, 12, 13)),
        ("*/25 * * * *", "minutes", (0, 25, 50)),
        ("*/90 * * * *", "minutes", (0,)),
        ("40/7 * * * *", "minutes", (40, 47, 54)),
        ("10-20/5,59 * * * *", "minutes", (10, 15, 20, 59)),
        ("007 * * * *", "minutes", (7,)),
        ("0 22-23 * * *", "hours", (22, 23)),
        ("0 */6 * * *", "hours", (0, 6, 12, 18)),
        ("0 0 31 * *", "days", {31}),
        ("0 0 1-31/15 * *", "days", {1, 16, 31}),
        ("0 0 1 jan,Dec *", "months", {1, 12}),
        ("0 0 1 MAR-may/2 *", "months", {3, 5}),
        ("0 0 * * SUN", "weekdays", {0}),
        ("0 0 * * 7", "weekdays", {0}),
        ("0 0 * * mon-FRI", "weekdays", {1, 2, 3, 4, 5}),
        ("0 0 * * 5-7", "weekdays", {5, 6, 0}),
        ("0 0 * * FRI-SUN", "weekdays", {5, 6, 0}),
        ("0 0 * * 0-6", "weekdays", set(range(7))),
        ("0 0 * * */2", "weekdays", {0, 2, 4, 6}),
        ("0 0 * * 1/3", "weekdays", {1, 4}),
        ("0 0 * * 7/2", "weekdays", {0}),
        ("  0\t0  *  *  * ", "hours", (0,)),
    ],
)
def test_a_field_allows(text: str, place: str, values: object) -> None:
    assert getattr(fields(text), place) == values


@pytest.mark.parametrize(
    ("word", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_words(word: str, same: str) -> None:
    assert fields(word) == fields(same)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m10s", 5410), ("1.5h", 5400), (".5m", 30), ("1000ms", 1), ("1s", 1), ("36h", 129600)],
)
def test_periods(text: str, seconds: int) -> None:
    assert parse(f"@every {text}").rule == Every(period=timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has 0 fields and needs five"),
        ("* * * *", "it has 4 fields"),
        ("0 0 * * * *", "it has 6 fields"),
        ("60 * * * *", r"minute \[60\] is outside 0 to 59"),
        ("* 24 * * *", r"hour \[24\] is outside 0 to 23"),
        ("* * 0 * *", r"day of month \[0\] is outside 1 to 31"),
        ("* * * 13 *", r"month \[13\] is outside 1 to 12"),
        ("* * * * 8", r"day of week \[8\] is outside 0 to 7"),
        ("* * * FOO *", r"month \[FOO\] is not understood; it takes numbers, JAN to DEC and \*"),
        ("MON * * * *", r"minute \[MON\] is not understood"),
        ("-5 * * * *", r"minute \[-5\] is not understood"),
        ("5- * * * *", r"minute \[5-\] is not understood"),
        ("*-5 * * * *", r"minute \[\*-5\] is not understood"),
        ("1,,2 * * * *", r"minute \[\] is not understood"),
        ("1.5 * * * *", r"minute \[1.5\] is not understood"),
        ("² * * * *", r"minute \[²\] is not understood"),
        ("*/0 * * * *", r"minute \[\*/0\] has a step of 0"),
        ("*/ * * * *", r"minute \[\*/\] is not understood"),
        ("*/-1 * * * *", r"minute \[\*/-1\] is not understood"),
        ("30-10 * * * *", r"minute \[30-10\] ends before it begins"),
        ("* * * * FRI-MON", r"day of week \[FRI-MON\] ends before it begins"),
        ("@reboot", r"\[@reboot\] is not one of @yearly"),
        ("@daily @daily", r"\[@daily @daily\] is not one of"),
        ("@every", r"\[@every\] is not one of"),
        ("@every 5", r"\[5\] is not a duration such as"),
        ("@every 1h-5m", r"\[1h-5m\] is not a duration"),
        ("@every five minutes", r"\[@every five minutes\] is not one of"),
        ("@every 500ms", "must be whole seconds"),
        ("@every 1500ms", "must be whole seconds"),
        ("@every 0s", "must be whole seconds"),
        ("@every 99999999h", "must be whole seconds, from one up to 2562047h"),
        ("CRON_TZ=Mars/Olympus 0 0 * * *", r"\[Mars/Olympus\] is not a time zone"),
        ("TZ= 0 0 * * *", r"\[\] is not a time zone"),
        ("TZ=../../etc/passwd 0 0 * * *", "is not a time zone"),
        ("TZ=UTC", "it has 0 fields"),
        ("* " * 200, "it has 400 characters, the limit is 256"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said) as caught:
        parse(text)
    assert caught.value.details == {"field": "crontab"}
    assert caught.value.message.startswith("Field[crontab] is invalid, ")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "Europe", "/etc/passwd", "a\x00b", "../UTC", "é" * 300])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(Invalid, match=r"Field\[timeZone\] is invalid"):
        parse("@daily", zone)


def test_the_zone_in_the_rule_counts() -> None:
    at = utc("2026-01-01 00:00")
    for text in ("CRON_TZ=Asia/Tokyo 0 9 * * *", "TZ=Asia/Tokyo  0 9 * * *"):
        assert next_after(parse(text, "Europe/Berlin"), at) == utc("2026-01-02 00:00")
    assert next_after(parse("0 9 * * *", "Europe/Berlin"), at) == utc("2026-01-01 08:00")
    assert next_after(parse("0 9 * * *"), at) == utc("2026-01-01 09:00")


@pytest.mark.parametrize(
    ("rule", "after", "expected"),
    [
        # strictly after, to the minute
        ("30 9 * * *", "2026-01-01 09:29:59", ["01-01 09:30", "01-02 09:30"]),
        ("30 9 * * *", "2026-01-01 09:30:00", ["01-02 09:30"]),
        ("30 9 * * *", "2026-01-01 09:30:00.000001", ["01-02 09:30"]),
        ("30 9 * * *", "2026-01-01 09:29:59.999999", ["01-01 09:30"]),
        # a month or a day that is not there
        ("0 0 31 * *", "2026-01-31 00:00", ["03-31 00:00", "05-31 00:00", "07-31 00:00", "08-31 00:00"]),
        ("0 0 29 2 *", "2026-01-01 00:00", ["02-29 00:00"]),
        # either day when both are given, and both when one is left open: 2026-02-13 is a Friday
        (
            "0 0 13 * FRI",
            "2026-02-01 00:00",
            ["02-06 00:00", "02-13 00:00", "02-20 00:00", "02-27 00:00"],
        ),
        ("0 0 13 * *", "2026-02-01 00:00", ["02-13 00:00", "03-13 00:00"]),
        ("0 0 ? * FRI", "2026-02-01 00:00", ["02-06 00:00", "02-13 00:00"]),
        ("0 0 */1 * FRI", "2026-02-01 00:00", ["02-06 00:00", "02-13 00:00"]),
        # a step or a range restricts the day, however much it allows
        ("0 0 1-31 * FRI", "2026-02-01 00:00", ["02-02 00:00", "02-03 00:00"]),
        ("0 0 */2 * FRI", "2026-02-01 00:00", ["02-03 00:00", "02-05 00:00", "02-06 00:00", "02-07 00:00"]),
        # the end of a year
        ("59 23 31 12 *", "2026-01-01 00:00", ["12-31 23:59", "12-31 23:59"]),
        ("@monthly", "2026-11-15 00:00", ["12-01 00:00", "01-01 00:00"]),
    ],
)
def test_ticks_in_utc(rule: str, after: str, expected: list[str]) -> None:
    assert ticks(rule, "UTC", after, len(expected)) == [f"{tick} +0000" for tick in expected]


def test_a_leap_day_is_found_over_a_century_that_has_none() -> None:
    assert next_after(parse("0 0 29 2 *"), utc("2096-02-29 00:00")) == utc("2104-02-29 00:00")


@pytest.mark.parametrize("rule", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_date_no_calendar_has_never_comes(rule: str) -> None:
    assert next_after(parse(rule), utc("2026-01-01 00:00")) is None


@pytest.mark.parametrize("rule", ["* * * * *", "0 0 1 1 *", "@every 2562047h"])
def test_the_end_of_the_calendar_is_an_end(rule: str) -> None:
    assert next_after(parse(rule, "Asia/Tokyo"), utc("9999-12-31 23:59:59")) is None


def test_a_period_counts_whole_seconds_from_the_moment_given() -> None:
    crontab = parse("@every 90s", "Europe/Berlin")
    assert next_after(crontab, utc("2026-01-01 00:00:00.7")) == utc("2026-01-01 00:01:30")
    assert next_after(parse("@every 1h"), utc("2026-03-29 00:30")) == utc("2026-03-29 01:30")


SPRING = "2026-03-28 12:00"  # Berlin: 29 March, 02:00 becomes 03:00
AUTUMN = "2026-10-24 12:00"  # Berlin: 25 October, 03:00 becomes 02:00


@pytest.mark.parametrize(
    ("rule", "zone", "after", "expected"),
    [
        # A named hour that is left out fires as soon as the clock has jumped over it, once.
        ("30 2 * * *", "Europe/Berlin", SPRING, ["03-29 03:00 +0200", "03-30 02:30 +0200"]),
        ("*/20 2 * * *", "Europe/Berlin", SPRING, ["03-29 03:00 +0200", "03-30 02:00 +0200", "03-30 02:20 +0200"]),
        ("0 2,3 * * *", "Europe/Berlin", SPRING, ["03-29 03:00 +0200", "03-30 02:00 +0200", "03-30 03:00 +0200"]),
        ("59 1 * * *", "Europe/Berlin", SPRING, ["03-29 01:59 +0100", "03-30 01:59 +0200"]),
        ("0 */2 * * *", "Europe/Berlin", "2026-03-28 23:00", ["03-29 03:00 +0200", "03-29 04:00 +0200"]),
        # A named hour that comes twice fires the first time only.
        ("30 2 * * *", "Europe/Berlin", AUTUMN, ["10-25 02:30 +0200", "10-26 02:30 +0100"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25 00:45", ["10-26 02:30 +0100"]),
        ("*/30 2-3 25 * *", "Europe/Berlin", AUTUMN, ["10-25 02:00 +0200", "10-25 02:30 +0200", "10-25 03:00 +0100"]),
        ("0 3 * * *", "Europe/Berlin", AUTUMN, ["10-25 03:00 +0100", "10-26 03:00 +0100"]),
        # All hours: the hours that pass.
        ("0 * * * *", "Europe/Berlin", "2026-03-29 00:00", ["03-29 03:00 +0200", "03-29 04:00 +0200"]),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-25 00:15",
            ["10-25 02:30 +0200", "10-25 02:00 +0100", "10-25 02:30 +0100", "10-25 03:00 +0100"],
        ),
        ("0 0-23 * * *", "Europe/Berlin", "2026-10-25 00:15", ["10-25 02:00 +0100", "10-25 03:00 +0100"]),
        # The same in the west, where 02:00 becomes 03:00 on 8 March and 02:00 becomes 01:00 on 1 November.
        ("30 2 * * *", "America/New_York", "2026-03-07 12:00", ["03-08 03:00 -0400", "03-09 02:30 -0400"]),
        ("30 1 * * *", "America/New_York", "2026-10-31 12:00", ["11-01 01:30 -0400", "11-02 01:30 -0500"]),
        # Half an hour: Lord Howe, 02:00 becomes 02:30 on 4 October and 02:00 becomes 01:30 on 5 April.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03 00:00", ["10-04 02:30 +1100", "10-05 02:15 +1100"]),
        ("45 2 * * *", "Australia/Lord_Howe", "2026-10-03 00:00", ["10-04 02:45 +1100", "10-05 02:45 +1100"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04 00:00", ["04-05 01:45 +1100", "04-06 01:45 +1030"]),
        ("45 * * * *", "Australia/Lord_Howe", "2026-04-04 14:40", ["04-05 01:45 +1100", "04-05 01:45 +1030"]),
        # Two hours: Troll, 01:00 becomes 03:00 on 29 March.
        ("0 1,2 * * *", "Antarctica/Troll", SPRING, ["03-29 03:00 +0200", "03-30 01:00 +0200"]),
        # At midnight, so that a day begins late: Beirut, 29 March, 00:00 becomes 01:00.
        ("@daily", "Asia/Beirut", SPRING, ["03-29 01:00 +0300", "03-30 00:00 +0300"]),
        # A whole day that is left out: Apia went from 29 to 31 December 2011.
        ("0 9 30 * *", "Pacific/Apia", "2011-12-30 00:00", ["12-31 00:00 +1400", "01-30 09:00 +1400"]),
        ("0 9 * * *", "Pacific/Apia", "2011-12-29 20:00", ["12-31 00:00 +1400", "12-31 09:00 +1400"]),
        # Back over midnight: St John's, 7 November 2010, 00:01 becomes 23:01 of the day before.
        ("0,30 * 6 11 *", "America/St_Johns", "2010-11-07 02:15", ["11-06 23:30 -0330", "11-06 00:00 -0230"]),
        # No daylight saving, and an odd offset.
        ("0 9 * * MON", "Asia/Kathmandu", "2026-01-01 00:00", ["01-05 09:00 +0545", "01-12 09:00 +0545"]),
    ],
)
def test_ticks_where_clocks_change(rule: str, zone: str, after: str, expected: list[str]) -> None:
    assert ticks(rule, zone, after, len(expected)) == expected


@pytest.mark.parametrize(
    ("rule", "tick", "until", "newest"),
    [
        ("*/5 * * * *", "2026-01-01 00:00", "2027-01-01 00:04:59", "2027-01-01 00:00"),
        ("*/5 * * * *", "2026-01-01 00:00", "2026-01-01 00:00", "2026-01-01 00:00"),
        ("*/5 * * * *", "2026-01-01 00:00", "2026-01-01 00:05", "2026-01-01 00:05"),
        ("0 0 1 1 *", "2026-01-01 00:00", "2030-12-31 00:00", "2030-01-01 00:00"),
        ("@every 7s", "2026-01-01 00:00:01", "2026-01-01 00:01", "2026-01-01 00:00:57"),
        ("@every 7s", "2026-01-01 00:00:01", "2026-01-01 00:00:08", "2026-01-01 00:00:08"),
        # A tick by an older time zone database, which is none any more.
        ("0 9 * * *", "2026-01-01 08:00", "2026-01-01 08:30", "2026-01-01 08:00"),
        ("0 9 * * *", "2026-01-01 08:00", "2026-01-02 08:30", "2026-01-01 09:00"),
    ],
)
def test_the_newest_tick(rule: str, tick: str, until: str, newest: str) -> None:
    assert newest_until(parse(rule), utc(tick), utc(until)) == utc(newest)
