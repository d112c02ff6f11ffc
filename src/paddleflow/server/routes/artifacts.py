"""Artifacts: what runs made and read, by record and by file; and results that may be reused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from paddleflow.api.artifacts import (
    ArtifactListAnswer,
    CacheAnswer,
    CacheListAnswer,
    FileListAnswer,
    LineageAnswer,
    artifact_answer,
    cache_answer,
    file_answer,
)
from paddleflow.api.wire import Listed
from paddleflow.domain.commands import DeleteArtifact, DeleteCacheEntry
from paddleflow.domain.ids import CacheId, RunId
from paddleflow.domain.queries import ArtifactFilter, CacheFilter
from paddleflow.domain.runs import ArtifactEvent, ArtifactUse, CacheEntry
from paddleflow.engine.run_reads import Download
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes
from paddleflow.server.workers import Workers

_CACHES = Listed[CacheEntry]("runCacheList", cache_answer)
_ARTIFACTS = Listed[ArtifactEvent]("artifactEventList", artifact_answer)

_PIECE = 256 * 1024
"""Bytes of a download that are read at one time."""

_USERS = Param(name="userFilter", about="owners; this and the other filters are words separated by commas")
_FILESYSTEMS = Param(name="fsFilter", about="names of filesystems")
_RUNS = Param(name="runFilter", about="ids of runs")
_FS = Param(name="fsname", required=True)
_RUN = Param(name="runID", required=True)
_PATH = Param(name="path", about="on the run's main filesystem", required=True)
_OWNER = Param(name="username", about="whose; root may name another user")


def artifact_routes(workers: Workers) -> Routes:
    routes = Routes()
    _add_caches(routes)
    _add_records(routes)
    _add_files(routes, workers)
    return routes


def _add_caches(routes: Routes) -> None:
    @routes.add("GET", "/runCache", Access.LOGIN, answer=CacheListAnswer, params=(*PAGE, _USERS, _FILESYSTEMS, _RUNS))
    def list_run_caches(call: Call) -> Response:
        """Results that may be reused: a user's own; everybody's for root."""
        where = CacheFilter(owners=call.owners(), fs_names=call.words("fsFilter"), run_ids=_run_ids(call))
        request = call.page("runCache")
        return call.listing("runCache", request, call.services.runs.caches(call.actor, where, request), _CACHES)

    @routes.add("GET", "/runCache/{runCacheID}", Access.OWNER, answer=CacheAnswer)
    def show_run_cache(call: Call) -> Response:
        return reply(cache_answer(call.services.runs.cache(call.actor, CacheId(call.path("runCacheID")))))

    @routes.add("DELETE", "/runCache/{runCacheID}", Access.OWNER)
    def delete_run_cache(call: Call) -> Response:
        """The result is not reused any more; its files stay with their run."""
        call.submit(DeleteCacheEntry(id=CacheId(call.path("runCacheID"))))
        return empty()


def _add_records(routes: Routes) -> None:
    @routes.add(
        "GET",
        "/artifact",
        Access.LOGIN,
        answer=ArtifactListAnswer,
        params=(
            *PAGE,
            _USERS,
            _FILESYSTEMS,
            _RUNS,
            Param(name="typeFilter", about="input or output"),
            Param(name="pathFilter", about="paths on the filesystem"),
        ),
    )
    def list_artifacts(call: Call) -> Response:
        """What steps read and made: a user's own; everybody's for root."""
        where = ArtifactFilter(
            owners=call.owners(),
            fs_names=call.words("fsFilter"),
            run_ids=_run_ids(call),
            uses=call.choices("typeFilter", ArtifactUse),
            paths=call.words("pathFilter"),
        )
        request = call.page("artifact")
        return call.listing("artifact", request, call.services.runs.artifacts(call.actor, where, request), _ARTIFACTS)

    @routes.add("DELETE", "/artifact", Access.OWNER, params=(_OWNER, _FS, _RUN, _PATH))
    def delete_artifact(call: Call) -> Response:
        """Forget the records; the files stay with their run."""
        call.submit(
            DeleteArtifact(
                owner=call.text("username"),
                fs_name=call.needed("fsname"),
                run_id=RunId(call.needed("runID")),
                path=call.needed("path"),
            )
        )
        return empty()

    @routes.add("GET", "/artifact/lineage", Access.OWNER, answer=LineageAnswer, params=(_FS, _PATH, _OWNER))
    def show_lineage(call: Call) -> Response:
        """Which runs made what is at a path, and which have read it."""
        fs_name, path = call.needed("fsname"), call.needed("path")
        lineage = call.services.runs.lineage(call.actor, call.text("username"), fs_name, path)
        return reply(
            {
                "fsname": fs_name,
                "path": path,
                "madeBy": [artifact_answer(event) for event in lineage.made_by],
                "readBy": [artifact_answer(event) for event in lineage.read_by],
            }
        )


def _add_files(routes: Routes, workers: Workers) -> None:
    @routes.add("GET", "/artifact/files", Access.OWNER, answer=FileListAnswer, params=(_RUN, _PATH), prepares=True)
    def list_artifact_files(call: Call) -> Response:
        """What is at and below an artifact of a run; links are not followed."""
        run_id, path = call.needed("runID"), call.needed("path")
        found = call.services.runs.files(call.actor, RunId(run_id), path)
        return reply({"runID": run_id, "path": path, "fileList": [file_answer(entry) for entry in found]})

    @routes.add(
        "GET",
        "/artifact/download",
        Access.OWNER,
        media="application/octet-stream",
        also_media="application/x-tar",
        params=(_RUN, _PATH),
    )
    async def download_artifact(call: Call) -> Response:
        """A file as it is; a directory as a tar. Links are not followed."""
        run_id, path = call.needed("runID"), call.needed("path")
        # Begun before answering, so that what is wrong is an error and not a broken stream.
        download, first = await workers.run_long(_begun, call, RunId(run_id), path)
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(download.name, safe='')}",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        if download.size is not None:
            headers["Content-Length"] = str(download.size)
        media = "application/x-tar" if download.is_archive else "application/octet-stream"
        return StreamingResponse(_sent(workers, download, first), media_type=media, headers=headers)


def _begun(call: Call, run_id: RunId, path: str) -> tuple[Download, bytes]:
    download = call.services.runs.download(call.actor, run_id, path)
    return download, _piece(download.chunks)


async def _sent(workers: Workers, download: Download, piece: bytes) -> AsyncIterator[bytes]:
    """A thread is taken for each piece only: however slowly a client reads, it holds up nobody."""
    while piece:
        yield piece
        piece = await workers.run_long(_piece, download.chunks)


def _piece(chunks: Iterator[bytes]) -> bytes:
    """The next so many bytes, from as many chunks as it takes (an archive has small ones); none at the end."""
    gathered: list[bytes] = []
    size = 0
    for chunk in chunks:
        gathered.append(chunk)
        size += len(chunk)
        if size >= _PIECE:
            break
    return b"".join(gathered)


def _run_ids(call: Call) -> frozenset[RunId]:
    return frozenset(map(RunId, call.words("runFilter")))
