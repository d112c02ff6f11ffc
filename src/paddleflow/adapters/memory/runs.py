"""Runs, their nodes, and what they left to reuse, to look at and to clear away: the repositories in dictionaries.

The nodes of a run are a dictionary of their own, so that a transaction that puts some copies those of their run and no
others. A dictionary keeps the place of a key whose value is replaced: that is the promised order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from paddleflow.adapters.memory.tables import Rows, Transaction, duplicate, in_utc
from paddleflow.domain.errors import Conflict
from paddleflow.domain.ids import CacheId, FilesystemId, JobId, RunId, UserName
from paddleflow.domain.queries import ArtifactFilter, CacheFilter, Page, PageRequest, RunFilter
from paddleflow.domain.runs import ArtifactEvent, CacheEntry, Run, RunNode, RunStatus

_MOST_MATCHING = 100


def run_rows(transaction: Transaction) -> Rows[Run]:
    return Rows(transaction, "run", lambda run: run.id)


def without_texts(run: Run) -> Run:
    return replace(run, text="", plan="")


def is_among(value: object, wanted: Collection[object]) -> bool:
    """An empty filter lets everything pass."""
    return not wanted or value in wanted


def _cache_rows(transaction: Transaction) -> Rows[CacheEntry]:
    return Rows(transaction, "cache entry", lambda entry: entry.id)


def _artifact_rows(transaction: Transaction) -> Rows[ArtifactEvent]:
    return Rows(
        transaction, "artifact", lambda event: (event.run_id, event.job_id, event.use.value, event.name, event.piece)
    )


def _must_have_a_run(transaction: Transaction, run_id: RunId, what: str) -> None:
    if run_rows(transaction).find(run_id) is None:
        raise Conflict(f"{what} is of no run: there is no run [{run_id}]")


class MemoryRuns:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = run_rows(transaction)

    def find(self, id: RunId) -> Run | None:
        return self._rows.find(id)

    def add(self, run: Run) -> Run:
        return self._rows.add(run)

    def save(self, run: Run) -> Run:
        """``text`` and ``plan`` stay as they were added: a run that came from a list, without them, may be saved."""
        held = self._rows.find(run.id)
        whole = run if held is None else replace(run, text=held.text, plan=held.plan)
        return replace(self._rows.save(whole), text=run.text, plan=run.plan)

    def delete(self, id: RunId) -> None:
        self._rows.delete(id)
        self._transaction.change("run node").pop(id, None)
        _artifact_rows(self._transaction).delete_where(lambda event: event.run_id == id)
        _cache_rows(self._transaction).delete_where(lambda entry: entry.run_id == id)

    def page(self, where: RunFilter, request: PageRequest) -> Page[Run]:
        page = self._rows.page(request, lambda run: _matches(run, where))
        return replace(page, rows=tuple(without_texts(run) for run in page.rows))

    def in_status(self, statuses: frozenset[RunStatus]) -> tuple[Run, ...]:
        return tuple(run for run in self._rows.all() if run.status in statuses)

    def nodes(self, id: RunId) -> tuple[RunNode, ...]:
        held: Mapping[str, RunNode] = self._transaction.table("run node").get(id, {})
        return tuple(held.values())

    def put_nodes(self, nodes: Sequence[RunNode]) -> None:
        table = self._transaction.change("run node")
        changed: dict[RunId, dict[str, RunNode]] = {}
        for node in nodes:
            if node.run_id not in changed:
                _must_have_a_run(self._transaction, node.run_id, f"node [{node.key}]")
                changed[node.run_id] = dict(table.get(node.run_id, {}))
            changed[node.run_id][node.key] = in_utc(node)
        table.update(changed)

    def node_of_job(self, id: JobId) -> RunNode | None:
        for held in self._transaction.table("run node").values():
            for node in held.values():
                if node.job_id == id and node.source_run is None and node.cache_run_id is None:
                    found: RunNode = node
                    return found
        return None

    def users_of(self, id: RunId) -> tuple[RunId, ...]:
        held: Mapping[RunId, Mapping[str, RunNode]] = self._transaction.table("run node")
        return tuple(
            run.id
            for run in self._rows.all()
            if run.id != id
            and any(id in (node.source_run, node.cache_run_id) for node in held.get(run.id, {}).values())
        )


def _matches(run: Run, where: RunFilter) -> bool:
    return (
        is_among(run.owner, where.owners)
        and is_among(run.fs_name, where.fs_names)
        and is_among(run.id, where.ids)
        and is_among(run.name, where.names)
        and is_among(run.status, where.statuses)
        and where.schedule in (None, run.schedule_id)
    )


class MemoryCacheEntries:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = _cache_rows(transaction)

    def find(self, id: CacheId) -> CacheEntry | None:
        return self._rows.find(id)

    def add(self, entry: CacheEntry) -> CacheEntry:
        _must_have_a_run(self._transaction, entry.run_id, f"cache entry [{entry.id}]")
        return self._rows.add(entry)

    def delete(self, id: CacheId) -> None:
        self._rows.delete(id)

    def page(self, where: CacheFilter, request: PageRequest) -> Page[CacheEntry]:
        return self._rows.page(
            request,
            lambda entry: (
                is_among(entry.owner, where.owners)
                and is_among(entry.fs_name, where.fs_names)
                and is_among(entry.run_id, where.run_ids)
            ),
        )

    def matching(self, owner: UserName, fs_id: FilesystemId | None, first: str) -> tuple[CacheEntry, ...]:
        found = [entry for entry in self._of_scope(owner, fs_id) if entry.fingerprint.first == first]
        return tuple(found[:_MOST_MATCHING])

    def latest_of_step(
        self, owner: UserName, fs_id: FilesystemId | None, node: str, limit: int
    ) -> tuple[CacheEntry, ...]:
        return tuple([entry for entry in self._of_scope(owner, fs_id) if entry.node == node][:limit])

    def _of_scope(self, owner: UserName, fs_id: FilesystemId | None) -> list[CacheEntry]:
        """The newest first."""
        return [entry for entry in reversed(self._rows.all()) if (entry.owner, entry.fs_id) == (owner, fs_id)]


class MemoryArtifacts:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = _artifact_rows(transaction)

    def add(self, events: Sequence[ArtifactEvent]) -> None:
        for event in events:
            _must_have_a_run(self._transaction, event.run_id, f"artifact [{event.name}]")
            self._rows.put(event)

    def page(self, where: ArtifactFilter, request: PageRequest) -> Page[ArtifactEvent]:
        return self._rows.page(
            request,
            lambda event: (
                is_among(event.owner, where.owners)
                and is_among(event.fs_name, where.fs_names)
                and is_among(event.run_id, where.run_ids)
                and is_among(event.use, where.uses)
                and is_among(event.path, where.paths)
            ),
        )

    def delete(self, owner: UserName, fs_name: str, run_id: RunId, path: str) -> int:
        return self._rows.delete_where(
            lambda event: (event.owner, event.fs_name, event.run_id, event.path) == (owner, fs_name, run_id, path)
        )


class MemoryRunRemains:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, run_id: RunId, fs_id: FilesystemId, path: str) -> None:
        table = self._transaction.change("run remains")
        if run_id in table:
            raise duplicate("run remains", run_id)
        table[run_id] = (fs_id, path)

    def all(self) -> tuple[tuple[RunId, FilesystemId, str], ...]:
        held: Mapping[RunId, tuple[FilesystemId, str]] = self._transaction.table("run remains")
        return tuple((run_id, *held[run_id]) for run_id in sorted(held))

    def delete(self, run_id: RunId) -> None:
        self._transaction.change("run remains").pop(run_id, None)
