"""What jobs print: page-wise as existing scripts read it, or streamed as it is written."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paddleflow.sdk.errors import UnreachableError
from paddleflow.sdk.jobs import job_path
from paddleflow.sdk.session import Session, require, segment
from paddleflow.sdk.transport import ATTEMPTS, pause_before

_PAGE_SIZE = 100
"""Lines of a page, unless told."""


@dataclass(frozen=True)
class LogInfo:
    runid: str
    jobid: str
    taskid: str
    has_next_page: bool
    truncated: bool
    pagesize: int | None
    pageno: int | None
    log_content: str

    @classmethod
    def from_wire(
        cls,
        jobid: str,
        task: Mapping[str, Any],
        *,
        runid: str = "",
        pagesize: int | None = None,
        pageno: int | None = None,
    ) -> LogInfo:
        page = task.get("logInfo") or {}
        return cls(
            runid=runid,
            jobid=jobid,
            taskid=task.get("taskID", ""),
            has_next_page=bool(page.get("hasNextPage")),
            truncated=bool(page.get("truncated")),
            pagesize=pagesize,
            pageno=pageno,
            log_content=page.get("logContent", ""),
        )


class LogCalls(Session):
    """What the client can read of the output of jobs and runs."""

    def show_log(
        self,
        run_id: str,
        job_id: str | None = None,
        page_size: int | str | None = None,
        page_no: int | str | None = None,
        log_file_position: str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"submitLog": the story of the run, "runLog": [LogInfo…]}``, one entry for each task of its jobs."""
        params = {
            "jobID": job_id,
            "pageSize": page_size,
            "pageNo": page_no,
            "logFilePosition": log_file_position,
        }
        data = self._get(f"/log/run/{segment(require(run_id, 'InvalidRunID', 'run_id'))}", params)
        size, number = int(page_size or _PAGE_SIZE), int(page_no or 1)
        logs = [
            LogInfo.from_wire(job.get("jobID", ""), task, runid=data.get("runID", run_id), pagesize=size, pageno=number)
            for job in data.get("runLog") or []
            for task in job.get("taskList") or []
        ]
        return True, {"submitLog": data.get("submitLog", ""), "runLog": logs}

    def show_log_by_limit(
        self,
        job_id: str | None = None,
        name: str | None = None,
        namespace: str | None = None,
        cluster_name: str | None = None,
        read_from_tail: bool | None = None,
        line_limit: int | str | None = None,
        size_limit: str | None = None,
        type: str | None = None,
        framework: str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"eventList": […], "logs": [LogInfo…]}``, one entry for each task."""
        params = {
            "jobID": job_id,
            "name": name,
            "namespace": namespace,
            "clusterName": cluster_name,
            "readFromTail": read_from_tail,
            "lineLimit": line_limit,
            "sizeLimit": size_limit,
            "type": type,
            "framework": framework,
        }
        data = self._get("/log/job", params)
        jobid = data.get("jobID") or job_id or ""
        logs = [LogInfo.from_wire(jobid, task) for task in data.get("taskList") or []]
        return True, {"eventList": data.get("eventList") or [], "logs": logs}

    def stream_log(self, jobid: str, task: str | None = None, follow: bool = True, *, start: int = 0) -> Iterator[str]:
        """The text of a task's log from byte ``start`` (negative: from the end), as it is written.

        With ``follow`` it goes on until the job has ended. A broken connection is taken up where it broke, unless
        ``start`` is negative: then where it broke is not known, and the error is raised.
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for chunk in self.stream_log_bytes(jobid, task, follow, start=start):
            text = decoder.decode(chunk)
            if text:
                yield text
        rest = decoder.decode(b"", final=True)
        if rest:
            yield rest

    def read_log_end(self, jobid: str, task: str | None, length: int) -> tuple[bytes, int]:
        """The last ``length`` bytes of a task's log, or all of it; and the byte from which the rest can be followed."""
        told: dict[str, str] = {}
        params = {"task": task, "start": -length, "follow": False}
        content = b"".join(self._stream(f"{job_path(jobid)}/log", params, told.update))
        size = told.get("x-log-size", "")
        if size.isdecimal():
            return content, int(size)
        # A server of an earlier release does not tell the size: reading from the beginning does.
        whole = b"".join(self.stream_log_bytes(jobid, task, False))
        return whole[-length:], len(whole)

    def stream_log_bytes(
        self, jobid: str, task: str | None = None, follow: bool = True, *, start: int = 0
    ) -> Iterator[bytes]:
        """As ``stream_log``, undecoded."""
        position = start
        failures = 0
        while True:
            told: dict[str, str] = {}
            received = 0
            try:
                params = {"task": task, "start": position, "follow": follow}
                for chunk in self._stream(f"{job_path(jobid)}/log", params, told.update):
                    failures = 0
                    received += len(chunk)
                    yield chunk
                return
            except UnreachableError:
                failures += 1
                if failures >= ATTEMPTS or start < 0:
                    raise
            position = _position_after(position, received, told.get("x-log-gaps", ""))
            pause_before(failures + 1)


def _position_after(start: int, received: int, gaps: str) -> int:
    """The byte of the log that follows what was received from ``start`` on. ``gaps`` says where the server put a line
    in place of bytes it has not kept: ``from-to:length of the line``, separated by commas."""
    position = start + received
    for gap in filter(None, gaps.split(",")):
        span, _, length = gap.partition(":")
        begin, end = map(int, span.split("-"))
        if position < begin + int(length):
            return min(position, begin)  # a line received in part comes again: no byte of the log stands for its rest
        position += end - begin - int(length)
    return position
