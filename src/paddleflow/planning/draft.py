"""An Advance while it is being made: each node once, as it is in the end; a step that is taken back leaves no trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from paddleflow.domain.commands import SubmitJob
from paddleflow.domain.ids import JobId
from paddleflow.domain.runs import ArtifactEvent, CacheEntry, RunNode, RunStatus
from paddleflow.planning.moves import Advance, Fetch, Prepare
from paddleflow.planning.progress import Progress


@dataclass(slots=True, kw_only=True)
class Started:
    before: RunNode
    """The row as it was."""
    submission: SubmitJob
    artifacts: list[ArtifactEvent]


@dataclass(slots=True, kw_only=True)
class Draft:
    now: datetime
    changed: dict[str, None] = field(default_factory=dict)
    started: dict[str, Started] = field(default_factory=dict)
    stop: dict[JobId, None] = field(default_factory=dict)
    cache: list[CacheEntry] = field(default_factory=list)
    artifacts: list[ArtifactEvent] = field(default_factory=list)
    fetch: dict[str, Fetch] = field(default_factory=dict)
    prepare: dict[str, Prepare] = field(default_factory=dict)
    status: RunStatus | None = None
    message: str = ""

    def advance(self, progress: Progress) -> Advance:
        """Questions whose node has ended meanwhile are not asked."""
        return Advance(
            nodes=tuple(progress.nodes[key] for key in self.changed),
            submit=tuple((key, started.submission) for key, started in self.started.items()),
            stop=tuple(self.stop),
            cache=tuple(self.cache),
            artifacts=(*self.artifacts, *(event for one in self.started.values() for event in one.artifacts)),
            status=self.status,
            message=self.message,
            fetch=tuple(
                fetch
                for key, fetch in self.fetch.items()
                if key in progress.groups and progress.groups[key].asked is fetch
            ),
            prepare=tuple(prepare for key, prepare in self.prepare.items() if key in progress.preparing),
        )
