"""Filters and pages for lists.

Every list is ordered by the store's row number, oldest first, and continues after a marker: the row number of the
last row shown. The filter takes part in the question whether more follows, so a truncated page always has a next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from paddleflow.domain.ids import ClusterName, QueueName, UserName
from paddleflow.domain.jobs import JobStatus

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    limit: int = 50
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    rows: tuple[Row, ...]
    next_after: int | None
    """The marker of the next page, or None when this was the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    owner: UserName | None = None
    statuses: frozenset[JobStatus] = frozenset()
    """Empty: any."""
    queue: QueueName | None = None
    cluster: ClusterName | None = None
    updated_since: datetime | None = None
    activated_since: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """All must match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavourFilter:
    name_contains: str = ""
    cluster: ClusterName | None = None
    """None: only flavours bound to no cluster. Given: those, and that cluster's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilter:
    name: QueueName | None = None
    among: frozenset[QueueName] | None = None
    """None: any; else only these (what a user was granted)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFilter:
    names: frozenset[ClusterName] = frozenset()
    status: str = ""
