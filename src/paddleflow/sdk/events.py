"""What happens on the server, as it happens: the event stream, and a job watched to its end.

A stream that breaks is taken up again after the last event seen; it gives up only when the server stays away.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.errors import UnreachableError
from paddleflow.sdk.jobs import JobCalls, JobInfo
from paddleflow.sdk.transport import ATTEMPTS, pause_before


@dataclass(frozen=True)
class EventInfo:
    seq: int
    kind: str
    subject: str
    owner: str | None
    at: str
    """RFC 3339."""
    data: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> EventInfo:
        return cls(
            seq=int(data["seq"]),
            kind=data["kind"],
            subject=data["subject"],
            owner=data.get("owner"),
            at=data.get("at", ""),
            data=data.get("data") or {},
        )


class EventCalls(JobCalls):
    """What the client can follow."""

    def events(
        self,
        after: int = 0,
        *,
        subject: str | None = None,
        kinds: Iterable[str] = (),
        follow: bool = True,
        until: Callable[[], bool] = lambda: False,
    ) -> Iterator[EventInfo]:
        """Every event after number ``after`` that the user may see; with ``follow`` it goes on for ever.

        ``until`` is asked whenever the server is heard of, which is every few seconds at the least; True ends it.
        """
        params = {"subject": subject, "kinds": ",".join(kinds)}
        if not follow:
            more = True
            while more:
                data = self._get("/event", {**params, "after": after, "follow": False})
                yield from map(EventInfo.from_wire, data["eventList"])
                after, more = data["lastSeq"], bool(data.get("isTruncated"))
            return
        silent_rounds = 0

        def heard(chunks: Iterable[bytes]) -> Iterator[bytes]:
            nonlocal silent_rounds
            for chunk in chunks:
                silent_rounds = 0
                if until():
                    return
                yield chunk

        while not until():
            try:
                for event in parse_events(heard(self._stream("/event", {**params, "after": after}))):
                    after = event.seq
                    yield event
                silent_rounds += 1
            except UnreachableError:
                silent_rounds += 1
                if silent_rounds >= ATTEMPTS:
                    raise
            pause_before(silent_rounds + 1)

    def _position(self, subject: str) -> int:
        """The number of the newest event: what comes after it has not happened yet."""
        return int(self._get("/event", {"subject": subject, "follow": False})["lastSeq"])

    def watch_job(self, jobid: str) -> Iterator[JobInfo]:
        """The job now, then once for each change of its status or message, until it has ended."""
        # The position is read before the job, so that a change in between is heard of, at worst twice.
        position = self._position(jobid)
        _, seen = self.show_job(jobid)
        yield seen
        if seen.is_terminal:
            return
        for _event in self.events(position, subject=jobid):
            _, now = self.show_job(jobid)
            if (now.status, now.message) != (seen.status, seen.message):
                yield now
            seen = now
            if seen.is_terminal:
                return


def parse_events(chunks: Iterable[bytes]) -> Iterator[EventInfo]:
    """Server-sent events out of a byte stream, cut anywhere. Comments and unfinished events are dropped."""
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield EventInfo.from_wire(json.loads("\n".join(data)))
            data = []
        elif line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for chunk in chunks:
        rest += decoder.decode(chunk)
        *whole, rest = rest.split("\n")
        for line in whole:
            yield line.removesuffix("\r")
