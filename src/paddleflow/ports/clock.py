"""Time, as a thing one is given."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present, timezone-aware, in UTC."""
        ...
