"""Durations as people read them: short, and no more exact than they are known."""

from __future__ import annotations

from datetime import datetime

_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


def parsed_time(text: str) -> datetime | None:
    """A time as the server tells it, without a zone; None: there is none, or it has another form."""
    try:
        return datetime.strptime(text, _TIME_FORMAT)  # noqa: DTZ007 - the server's times carry no zone
    except ValueError:
        return None


def spelt_time(text: str, today: datetime) -> str:
    """A time as ``ls -l`` shows it: ``14:03`` today, ``07-28 14:03`` this year, ``2025-07-28`` else."""
    at = parsed_time(text)
    if at is None:
        return text
    if at.date() == today.date():
        return f"{at:%H:%M}"
    return f"{at:%m-%d %H:%M}" if at.year == today.year else f"{at:%Y-%m-%d}"


def spelt_span(started: str, ended: str, today: datetime) -> str:
    """How long something took; of what has not ended since when: the clock of the server is not known here."""
    start, end = parsed_time(started), parsed_time(ended)
    if start is None:
        return ""
    if end is None:
        return f"since {spelt_time(started, today)}"
    return spelt_whole_seconds(max(0.0, (end - start).total_seconds()))


def spelt_whole_seconds(seconds: float) -> str:
    """The same of what is known to the second only: ``<1s``, ``3s``."""
    whole = int(seconds)
    return spelt_seconds(whole) if whole >= 10 else f"{whole}s" if whole else "<1s"


def spelt_seconds(seconds: float) -> str:
    """``0.4s``, ``12s``, ``3m05s``, ``2h07m``."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    return f"{minutes // 60}h{minutes % 60:02}m"
