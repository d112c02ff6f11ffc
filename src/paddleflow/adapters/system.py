"""The machine's own clock."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """``ports.clock.Clock`` that tells the real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)
