"""A clock that stands still until it is told to move."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta


class VirtualClock:
    """``ports.clock.Clock`` for tests and simulations."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start.astimezone(UTC)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> datetime:
        """Move on and answer the new time. Time does not go back."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back, and {seconds} seconds is backwards")
        with self._lock:
            self._now += timedelta(seconds=seconds)
            return self._now
