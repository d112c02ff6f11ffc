"""Warming up: bring a tree into the cache before it is needed, many files at a time, telling how far it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paddleflow.domain.errors import PaddleFlowError
from paddleflow.pfs.backstage import Backstage, Found
from paddleflow.pfs.later import start

_MOST_NAMED = 20
"""Paths that failed and are named; the others are only counted."""


@dataclass(slots=True)
class Warmed:
    files: int = 0
    bytes: int = 0
    found: int = 0
    """Files seen so far; more may follow while directories are still being listed."""
    failed: int = 0
    failures: tuple[str, ...] = ()


class Warming:
    def __init__(
        self,
        backstage: Backstage,
        paths: Sequence[str],
        *,
        with_data: bool,
        at_once: int,
        progress: Callable[[Warmed], bool],
        done: Callable[[Warmed], None],
    ) -> None:
        self._backstage = backstage
        self._waiting: deque[str | Found] = deque(paths)
        self._with_data = with_data
        self._at_once = at_once
        self._progress = progress
        self._done = done
        self._running = 0
        self._is_wanted = True
        self._is_starting = False
        self.warmed = Warmed()

    def begin(self) -> None:
        """Start as many as may run; called again as each ends, perhaps from inside itself."""
        if self._is_starting:
            return
        self._is_starting = True
        while self._waiting and self._running < self._at_once and self._is_wanted:
            self._running += 1
            subject = self._waiting.popleft()
            start(self._warm(subject), lambda _, error, subject=subject: self._ended(subject, error))  # type: ignore[misc]
        self._is_starting = False
        if not self._running:
            self._done(self.warmed)

    async def _warm(self, subject: str | Found) -> None:
        found = await self._backstage.stat(subject) if isinstance(subject, str) else subject
        if found.entry.is_directory:
            cursor = 0
            while True:
                page = await self._backstage.list(found.entry.key, cursor)
                self._waiting.extend(page.entries)
                self.warmed.found += sum(1 for each in page.entries if not each.entry.is_directory)
                cursor += len(page.entries)
                if page.is_last:
                    return
        if isinstance(subject, str):
            self.warmed.found += 1
        if found.version is not None and self._with_data:
            await self._backstage.fetch(found.version, 0, -1)
            self.warmed.bytes += found.version.size
        self.warmed.files += 1

    def _ended(self, subject: str | Found, error: BaseException | None) -> None:
        self._running -= 1
        if error is not None:
            self.warmed.failed += 1
            path = subject if isinstance(subject, str) else subject.entry.key
            reason = error.message if isinstance(error, PaddleFlowError) else str(error)
            if len(self.warmed.failures) < _MOST_NAMED:
                self.warmed.failures = (*self.warmed.failures, f"{path}: {reason}")
        self._is_wanted = self._is_wanted and self._progress(self.warmed)
        self.begin()
