"""Runs, their artifacts and cached results, stored pipelines and schedules, for people.

Every method takes the actor and answers only what that actor may see.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from paddleflow.domain.access import require_owner, require_root
from paddleflow.domain.catalog import Pipeline, PipelineVersion
from paddleflow.domain.errors import Invalid, NotFound, not_found
from paddleflow.domain.events import Event
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import (
    CacheId,
    JobId,
    PipelineId,
    RunId,
    ScheduleId,
    UserName,
    VersionId,
)
from paddleflow.domain.jobs import Job
from paddleflow.domain.queries import (
    ArtifactFilter,
    CacheFilter,
    Page,
    PageRequest,
    PipelineFilter,
    RunFilter,
    ScheduleFilter,
)
from paddleflow.domain.runs import ArtifactEvent, ArtifactUse, CacheEntry, NodeKind, Part, Run, RunNode
from paddleflow.domain.schedules import Schedule
from paddleflow.domain.users import Actor
from paddleflow.planning.codec import load_plan
from paddleflow.planning.fingerprint import changed
from paddleflow.planning.paths import separate
from paddleflow.planning.plan import Plan
from paddleflow.ports.files import FileEntry, Files
from paddleflow.ports.store import ReadView, Store

_CHUNK = 256 * 1024
_LINEAGE_LIMIT = 1000
_LISTED = 10_000
"""Entries of one listing of files."""
_COMPARED = 20
"""Earlier results of a step that a miss is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    run: Run
    plan: Plan | None
    """None: a tick that was skipped has none."""
    nodes: tuple[RunNode, ...]
    jobs: Mapping[JobId, Job]
    """Of its steps, those that still exist."""
    used_by: tuple[RunId, ...]
    """Runs that reuse results of this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    made_by: tuple[ArtifactEvent, ...]
    read_by: tuple[ArtifactEvent, ...]


class ChangedPart(NamedTuple):
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyCached:
    step: str
    reused: bool
    sentence: str
    compared_with: RunId | None = None
    changed: tuple[ChangedPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    name: str
    size: int | None
    """None: not known before it ends (an archive)."""
    chunks: Iterator[bytes]
    is_archive: bool


_Filter = TypeVar("_Filter", RunFilter, CacheFilter, ArtifactFilter, PipelineFilter, ScheduleFilter)


class RunReads:
    def __init__(self, store: Store, files: Files) -> None:
        self._store = store
        self._files = files

    def runs(self, actor: Actor, where: RunFilter, request: PageRequest) -> Page[Run]:
        with self._store.read() as view:
            return view.runs.page(_own(actor, where), request)

    def run(self, actor: Actor, run_id: RunId) -> RunView:
        with self._store.read() as view:
            run = _run(view, actor, run_id)
            nodes = view.runs.nodes(run_id)
            jobs = view.jobs.find_many(node.job_id for node in nodes if node.job_id is not None)
            used_by = view.runs.users_of(run_id)
        return RunView(
            run=run,
            plan=load_plan(run.plan) if run.plan else None,
            nodes=nodes,
            jobs={job.id: job for job in jobs},
            used_by=used_by,
        )

    def story(self, actor: Actor, run_id: RunId, limit: int) -> tuple[Event, ...]:
        """What happened to the run, in order."""
        with self._store.read() as view:
            _run(view, actor, run_id)
            return view.events.of_subject(run_id, limit)

    def why_cached(self, actor: Actor, run_id: RunId, step: str) -> WhyCached:
        """Why a step was, or was not, taken from an earlier run. ``step`` is its key, or its full name."""
        with self._store.read() as view:
            run = _run(view, actor, run_id)
            node = _step(view.runs.nodes(run_id), step)
            earlier = view.cache.latest_of_step(run.owner, run.fs_id, node.node, _COMPARED)
        if node.cache_run_id is not None:
            sentence = f"{node.key} was not run: all it depends on is as it was in {node.cache_run_id}"
            return WhyCached(step=node.key, reused=True, sentence=sentence, compared_with=node.cache_run_id)
        if node.fingerprint is None:
            return WhyCached(step=node.key, reused=False, sentence=_never_looked(run, node))
        before = [entry for entry in earlier if entry.run_id != run_id and _is_before(entry, node)]
        if not before:
            sentence = f"{node.key} was run: no earlier result of this step is kept"
            return WhyCached(step=node.key, reused=False, sentence=sentence)
        return _compared(node, before)

    def caches(self, actor: Actor, where: CacheFilter, request: PageRequest) -> Page[CacheEntry]:
        with self._store.read() as view:
            return view.cache.page(_own(actor, where), request)

    def cache(self, actor: Actor, cache_id: CacheId) -> CacheEntry:
        with self._store.read() as view:
            entry = view.cache.find(cache_id)
        if entry is None:
            raise not_found("runCache", cache_id[:80], code="RunCacheNotFound")
        require_owner(actor, entry.owner, "runCache", entry.id, code="AccessDenied")
        return entry

    def artifacts(self, actor: Actor, where: ArtifactFilter, request: PageRequest) -> Page[ArtifactEvent]:
        with self._store.read() as view:
            return view.artifacts.page(_own(actor, where), request)

    def lineage(self, actor: Actor, owner: str, fs_name: str, path: str) -> Lineage:
        """Who made the artifact at a path, and who has read it."""
        user = UserName(owner or actor.name)
        require_owner(actor, user, "fs", fs_name, code="AccessDenied")
        where = ArtifactFilter(
            owners=frozenset({user}), fs_names=frozenset({fs_name}), paths=frozenset({path.strip("/")})
        )
        with self._store.read() as view:
            events = view.artifacts.page(where, PageRequest(limit=_LINEAGE_LIMIT)).rows
        return Lineage(
            made_by=tuple(event for event in events if event.use is ArtifactUse.OUTPUT),
            read_by=tuple(event for event in events if event.use is ArtifactUse.INPUT),
        )

    def files(self, actor: Actor, run_id: RunId, path: str) -> tuple[FileEntry, ...]:
        """What is at and below an artifact of the run."""
        filesystem = self._artifact_fs(actor, run_id, path)
        entries = []
        for entry in self._files.walk(filesystem, path):
            entries.append(entry)
            if len(entries) > _LISTED:
                raise Invalid(f"artifact [{path[:200]}] has more than {_LISTED} files; list a part of it")
        return tuple(entries)

    def download(self, actor: Actor, run_id: RunId, path: str) -> Download:
        """A file as it is, a directory as an archive."""
        filesystem = self._artifact_fs(actor, run_id, path)
        entry = self._files.entry(filesystem, path)
        if entry.is_link:
            raise Invalid(f"[{path[:200]}] is a link, and links are not followed")
        if entry.is_special:
            raise Invalid(f"[{path[:200]}] is neither a file nor a directory")
        name = entry.path.rpartition("/")[2]
        if entry.is_directory:
            chunks = _archive(self._files, filesystem, entry.path)
            return Download(name=f"{name}.tar", size=None, chunks=chunks, is_archive=True)
        chunks = _content(self._files, filesystem, path, entry.size)
        return Download(name=name, size=entry.size, chunks=chunks, is_archive=False)

    def pipelines(self, actor: Actor, where: PipelineFilter, request: PageRequest) -> Page[Pipeline]:
        if where.owners:
            require_root(actor, code="AccessDenied")
        with self._store.read() as view:
            return view.pipelines.page(_own(actor, where), request)

    def pipeline(self, actor: Actor, pipeline_id: PipelineId) -> Pipeline:
        with self._store.read() as view:
            return _pipeline(view, actor, pipeline_id)

    def versions(
        self, actor: Actor, pipeline_id: PipelineId, fs_names: frozenset[str], request: PageRequest
    ) -> Page[PipelineVersion]:
        with self._store.read() as view:
            _pipeline(view, actor, pipeline_id)
            return view.pipelines.page_versions(pipeline_id, fs_names, request)

    def version(self, actor: Actor, pipeline_id: PipelineId, version_id: VersionId) -> PipelineVersion:
        with self._store.read() as view:
            _pipeline(view, actor, pipeline_id)
            version = view.pipelines.find_version(pipeline_id, version_id)
        if version is None:
            raise not_found("pipelineVersion", f"{pipeline_id}-{version_id}"[:80], code="PipelineNotFound")
        return version

    def schedules(self, actor: Actor, where: ScheduleFilter, request: PageRequest) -> Page[Schedule]:
        with self._store.read() as view:
            return view.schedules.page(_own(actor, where), request)

    def schedule(self, actor: Actor, schedule_id: ScheduleId) -> Schedule:
        with self._store.read() as view:
            schedule = view.schedules.find(schedule_id)
        if schedule is None:
            raise not_found("schedule", schedule_id[:80], code="ScheduleNotFound")
        require_owner(actor, schedule.owner, "schedule", schedule.id, code="AccessDenied")
        return schedule

    def _artifact_fs(self, actor: Actor, run_id: RunId, path: str) -> Filesystem:
        """The filesystem of an artifact the run made or read; other files are none of the run's business."""
        with self._store.read() as view:
            run = _run(view, actor, run_id)
            nodes = view.runs.nodes(run_id)
            filesystem = None if run.fs_id is None else view.filesystems.find(run.fs_id)
        main_fs = load_plan(run.plan).main_fs if run.plan else None
        known = {
            each
            for node in nodes
            for joined in (*node.outputs.values(), *node.inputs.values())
            for each in separate(joined, main_fs)
        }
        wanted = path.strip("/")
        if filesystem is None or not any(wanted == each or wanted.startswith(each + "/") for each in known):
            raise NotFound(f"run[{run_id}] has no artifact at [{path[:200]}]", code="RecordNotFound")
        return filesystem


def _own(actor: Actor, where: _Filter) -> _Filter:
    """The filter, narrowed to what the actor owns. Root sees everybody's."""
    if actor.is_root:
        return where
    if where.owners and where.owners != {actor.name}:
        require_root(actor, code="AccessDenied")
    return replace(where, owners=frozenset({actor.name}))


def _run(view: ReadView, actor: Actor, run_id: RunId) -> Run:
    run = view.runs.find(run_id)
    if run is None:
        raise not_found("run", run_id[:80], code="RunNotFound")
    require_owner(actor, run.owner, "run", run.id, code="AccessDenied")
    return run


def _pipeline(view: ReadView, actor: Actor, pipeline_id: PipelineId) -> Pipeline:
    pipeline = view.pipelines.find(pipeline_id)
    if pipeline is None:
        raise not_found("pipeline", pipeline_id[:80], code="PipelineNotFound")
    require_owner(actor, pipeline.owner, "pipeline", pipeline.id, code="AccessDenied")
    return pipeline


def _step(nodes: Iterable[RunNode], wanted: str) -> RunNode:
    steps = [node for node in nodes if node.kind is NodeKind.STEP]
    for node in steps:
        if wanted in (node.key, node.id):
            return node
    for node in steps:
        if node.node == wanted:
            return node
    raise NotFound(
        f"the run has no step [{wanted[:80]}]; it has {', '.join(node.key for node in steps[:20]) or 'none yet'}",
        code="RecordNotFound",
    )


def _is_before(entry: CacheEntry, node: RunNode) -> bool:
    return node.started_at is None or entry.created_at <= node.started_at


def _never_looked(run: Run, node: RunNode) -> str:
    if node.started_at is None and not node.is_ended:
        return f"{node.key} has not started: whether its result can be reused is found out when it does"
    return f"{node.key} does not use the cache: write cache: {{enable: true}} in the step or for the whole pipeline"


def _compared(node: RunNode, before: list[CacheEntry]) -> WhyCached:
    """The earlier result that differs in the fewest parts says best what changed."""
    fingerprint = node.fingerprint
    assert fingerprint is not None
    differences = [(changed(entry.fingerprint, fingerprint), entry) for entry in before]
    names, entry = min(differences, key=lambda pair: len(pair[0]))
    if not names:
        sentence = f"{node.key} was run: its result in {entry.run_id} had expired or its files were gone"
        return WhyCached(step=node.key, reused=False, sentence=sentence, compared_with=entry.run_id)
    parts = tuple(
        ChangedPart(name, _shown(entry.fingerprint.parts.get(name)), _shown(fingerprint.parts.get(name)))
        for name in names
    )
    sentence = f"{node.key} was run: since {entry.run_id} these have changed: {', '.join(names)}"
    return WhyCached(step=node.key, reused=False, sentence=sentence, compared_with=entry.run_id, changed=parts)


def _shown(part: Part | None) -> str:
    if part is None:
        return "(absent)"
    return part.shown or part.digest[:12]


def _content(files: Files, filesystem: Filesystem, path: str, size: int) -> Iterator[bytes]:
    """Exactly so many bytes: the length was announced."""
    start = 0
    while start < size:
        chunk = files.read_range(filesystem, path, start, min(_CHUNK, size - start))
        if not chunk:
            raise Invalid(f"file [{path[:200]}] became shorter while it was read")
        start += len(chunk)
        yield chunk


def _archive(files: Files, filesystem: Filesystem, path: str) -> Iterator[bytes]:
    """A tar of files and directories, made while it is sent; links, pipes and devices are left out."""
    root = path.rpartition("/")[0]
    for entry in files.walk(filesystem, path):
        if entry.is_link or entry.is_special:
            continue
        header = tarfile.TarInfo(entry.path[len(root) :].lstrip("/"))
        header.mtime = int(entry.modified_at.timestamp())
        if entry.is_directory:
            header.type, header.mode = tarfile.DIRTYPE, 0o755
            yield header.tobuf(tarfile.PAX_FORMAT)
            continue
        header.size, header.mode = entry.size, 0o644
        yield header.tobuf(tarfile.PAX_FORMAT)
        yield from _content(files, filesystem, entry.path, entry.size)
        yield b"\0" * (-entry.size % tarfile.BLOCKSIZE)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)
