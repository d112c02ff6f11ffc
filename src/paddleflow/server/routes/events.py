"""What happens, as it happens: the event stream, and a job's log followed to its end.

Both are coroutines that sleep until the feed rings; only reading takes a worker thread, for as long as it takes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from starlette.responses import Response, StreamingResponse

from paddleflow.api.platform import EventListAnswer, event_answer
from paddleflow.domain.errors import PaddleFlowError
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import JobId, TaskId
from paddleflow.engine.logs import CUT_OFF, gap_notice, joined, requested_start
from paddleflow.ports.runtime import LogChunk
from paddleflow.server.call import Call, reply, uri_problem
from paddleflow.server.routing import Access, Param, Routes
from paddleflow.server.streams import Streams, Wake
from paddleflow.server.workers import Workers

HEARTBEAT_S = 15.0
_BATCH = 500
_LISTED = 1000
"""Events in one answer that is not followed."""
_SCANNED = 20_000
"""Events looked at for one such answer; a filter may match few of them."""
_LOG_CHUNK = 256 * 1024
_LOG_POLL_S = 0.2
"""A log grows without events; while somebody watches, it is looked at this often."""
_LOG_PAUSE_S = 0.02
"""Between two looks at a log at the least, however busy the feed is."""
_STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Which events a follower asked for; empty means any."""

    subject: str
    kinds: frozenset[str]

    def matches(self, event: Event) -> bool:
        return (not self.subject or event.subject == self.subject) and (not self.kinds or event.kind in self.kinds)


def event_routes(streams: Streams, workers: Workers) -> Routes:
    routes = Routes()

    @routes.add(
        "GET",
        "/event",
        Access.LOGIN,
        answer=EventListAnswer,
        also_media="text/event-stream",
        params=(
            Param(name="after", kind="integer", about="the last event already seen; omitted: from now", low=0),
            Param(name="subject", about="only events about this id or name"),
            Param(name="kinds", about="only these kinds, separated by commas"),
            Param(name="follow", kind="boolean", about="false: answer a JSON list and end"),
        ),
    )
    async def follow_events(call: Call) -> Response:
        """Everything that happened to what the user owns, in order."""
        wanted = _wanted(call)
        after = _position(call)
        if not call.flag("follow", True):
            return await workers.run(_list_events, call, wanted, after)
        if after is None:
            after = await workers.run(call.services.feed.last_seq)
        body = _event_stream(call, streams, workers, wanted, after)
        return StreamingResponse(body, media_type="text/event-stream", headers=_STREAM_HEADERS)

    @routes.add(
        "GET",
        "/job/{jobID}/log",
        Access.OWNER,
        media="text/plain",
        params=(
            Param(name="task", about="which task; the first unless told"),
            Param(name="start", kind="integer", about="byte to begin at; negative: so many before the end"),
            Param(name="follow", kind="boolean", about="go on until the job has ended"),
        ),
    )
    async def follow_log(call: Call) -> Response:
        """The bytes a task has printed. ``X-Log-Size`` tells how many there were when the answer began, and
        ``X-Log-Gaps`` where a line stands for bytes that were not kept: ``from-to:length of the line``."""
        start, follow = call.integer("start", 0), call.flag("follow", False)
        # Read once before answering, so that what is wrong is an error and not a broken stream.
        first = await workers.run(_read_log, call, start)
        start = requested_start(start, first.size)
        body = _log_stream(call, streams, workers, first, start) if follow else _log_once(call, workers, first, start)
        gaps = [(max(begin, start), end) for begin, end in first.gaps if end > start]
        headers = {**_STREAM_HEADERS, "X-Log-Size": str(first.size)}
        if gaps:
            headers["X-Log-Gaps"] = ",".join(f"{begin}-{end}:{len(gap_notice(begin, end))}" for begin, end in gaps)
        return StreamingResponse(body, media_type="text/plain", headers=headers)

    return routes


def _wanted(call: Call) -> _Wanted:
    kinds = frozenset(kind.strip() for kind in call.text("kinds").split(",") if kind.strip())
    unknown = kinds - set(EventKind)
    if unknown:
        raise uri_problem("kinds", min(unknown), f"choose from {', '.join(EventKind)}")
    return _Wanted(subject=call.text("subject"), kinds=kinds)


def _position(call: Call) -> int | None:
    """Where to begin. A browser that reconnects says where it was in a header; that is the later word."""
    resumed = call.request.headers.get("last-event-id", "")
    if resumed:
        if not (resumed.isascii() and resumed.isdigit() and len(resumed) <= 18):
            raise uri_problem("Last-Event-ID", resumed)
        return int(resumed)
    return call.integer("after", low=0) if call.text("after") else None


def _list_events(call: Call, wanted: _Wanted, after: int | None) -> Response:
    """From ``after`` on, or without it the latest."""
    end = call.services.feed.last_seq()
    position = max(0, end - _LISTED) if after is None else after
    found: list[Event] = []
    scanned = 0
    more = True
    while more and len(found) < _LISTED and scanned < _SCANNED:
        visible, reached = call.services.reads.events(call.actor, position, _BATCH)
        matching = [event for event in visible if wanted.matches(event)]
        room = _LISTED - len(found)
        if len(matching) > room:
            matching = matching[:room]
            reached = matching[-1].seq
        found.extend(matching)
        scanned += _BATCH
        more = reached > position
        position = reached
    events = [event_answer(event) for event in found]
    return reply({"eventList": events, "lastSeq": position, "isTruncated": more and position < end})


def _spelt(event: Event) -> str:
    data = json.dumps(event_answer(event), separators=(",", ":"))
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {data}\n\n"


async def _event_stream(
    call: Call, streams: Streams, workers: Workers, wanted: _Wanted, after: int
) -> AsyncIterator[str]:
    reads = call.services.reads
    yield ": following\n\n"
    with streams.following() as wake:
        while not streams.closed:
            try:
                visible, reached = await workers.run(reads.events, call.actor, after, _BATCH)
            except PaddleFlowError:
                # The headers are long gone; ending tells the client to come back with the last id it saw.
                return
            matching = "".join(_spelt(event) for event in visible if wanted.matches(event))
            if matching:
                yield matching
            if reached > after:
                after = reached
            elif not await wake.wait(HEARTBEAT_S):
                if not await workers.run(_still_allowed, call):
                    return
                yield ": heartbeat\n\n"


def _still_allowed(call: Call) -> bool:
    """A stream outlives the moment of its log-in; a revoked or expired token ends it."""
    try:
        call.services.reads.actor_of(call.token)
    except PaddleFlowError:
        return False
    return True


def _read_log(call: Call, start: int) -> LogChunk:
    task = call.text("task")
    job_id = JobId(call.path("jobID"))
    return call.services.logs.read(call.actor, job_id, TaskId(task) if task else None, start, _LOG_CHUNK)


async def _log_once(call: Call, workers: Workers, first: LogChunk, start: int) -> AsyncIterator[bytes]:
    """What the log holds now; what is added meanwhile is not waited for."""
    parts = joined(first, start, partial(_read_log, call))
    try:
        while (part := await workers.run(next, parts, None)) is not None:
            yield part
    except PaddleFlowError:
        return  # the job was deleted while its log was read: there is no more of it


async def _log_stream(
    call: Call, streams: Streams, workers: Workers, first: LogChunk, start: int
) -> AsyncIterator[bytes]:
    with streams.following() as wake:
        chunk, position, ended = first, start, False
        while not streams.closed:
            if chunk.content or chunk.start > position:
                if chunk.start > position:
                    # A gap that opens while a slow reader is followed is not in X-Log-Gaps: if the connection breaks
                    # after that, the client goes on too early and shows some lines twice.
                    yield gap_notice(position, chunk.start)
                yield chunk.content
                position = chunk.start + len(chunk.content)
            elif ended:
                if chunk.is_cut_off:
                    yield CUT_OFF
                return
            else:
                await _pause(wake)
            try:
                # Asked before reading: what was printed before the end is then surely read.
                ended = await workers.run(call.services.logs.ended, JobId(call.path("jobID")))
                chunk = await workers.run(_read_log, call, position)
            except PaddleFlowError:
                return  # deleted, or the database is away; the client goes on from the byte it has


async def _pause(wake: Wake) -> None:
    if await wake.wait(_LOG_POLL_S):
        await wake.rest(_LOG_PAUSE_S)
